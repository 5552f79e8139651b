//! Why a cache cannot be written or read.

use std::io;
use std::path::Path;

use polylogue_core::Fault;

/// Why a cache cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CacheError {
    /// Another program uses it.
    #[error("the cache `{place}` is in use by another program")]
    Busy {
        /// The file.
        place: String,
    },
    /// The file is not a cache.
    #[error("the file `{place}` is no cache of replies")]
    NoCache {
        /// The file.
        place: String,
    },
    /// A later version wrote it.
    #[error("the cache `{place}` has format {found}, and this version knows up to {known}")]
    Newer {
        /// The file.
        place: String,
        /// The format found.
        found: u64,
        /// The last supported format.
        known: u64,
    },
    /// A line before the last cannot be read.
    #[error("line {line} of the cache `{place}` is damaged: {why}")]
    Damaged {
        /// The file.
        place: String,
        /// The line, counted from 1.
        line: usize,
        /// The damage.
        why: String,
    },
    /// The system reports an error.
    #[error("the cache `{place}` cannot be {doing}: {why}")]
    Io {
        /// The file.
        place: String,
        /// `read` or `written`.
        doing: &'static str,
        /// The system's error message.
        why: String,
    },
}

impl CacheError {
    /// Who can fix it.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::NoCache { .. } | Self::Busy { .. } => Fault::Config,
            Self::Newer { .. } | Self::Damaged { .. } | Self::Io { .. } => Fault::System,
        }
    }

    /// How to fix it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Busy { .. } => "wait until it is done, or use another file".into(),
            Self::NoCache { .. } => "name another file, or one that does not exist yet".into(),
            Self::Newer { .. } => "use the version that wrote it, or a later one, or another file".into(),
            Self::Damaged { line, .. } => {
                format!("the replies before line {line} are intact: cut the file there, or remove it")
            }
            Self::Io { .. } => return None,
        })
    }

    pub(super) fn io(place: &Path, doing: &'static str, error: &io::Error) -> Self {
        Self::Io { place: place.display().to_string(), doing, why: error.to_string() }
    }
}
