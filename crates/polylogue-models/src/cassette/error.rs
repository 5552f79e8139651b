//! Why a cassette cannot be written or read.

use std::io;
use std::path::Path;

use polylogue_core::Fault;

/// The reason why a cassette cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// The file to be created exists already.
    #[error("the file `{place}` already exists")]
    Exists {
        /// The file.
        place: String,
    },
    /// Another program records to it.
    #[error("the recording `{place}` is being written by another program")]
    Busy {
        /// The file.
        place: String,
    },
    /// The file is not a cassette.
    #[error("the file `{place}` is not a recording")]
    NoCassette {
        /// The file.
        place: String,
    },
    /// A later version wrote it.
    #[error("the recording `{place}` has format {found}, and this version knows up to {known}")]
    Newer {
        /// The file.
        place: String,
        /// The format found.
        found: u64,
        /// The last supported format.
        known: u64,
    },
    /// A line was changed, does not follow the line before, or cannot be read.
    #[error("line {line} of the recording `{place}` is damaged: {why}")]
    Damaged {
        /// The file.
        place: String,
        /// The line, counted from 1.
        line: usize,
        /// The damage.
        why: String,
    },
    /// The system reports an error.
    #[error("the recording `{place}` cannot be {doing}: {why}")]
    Io {
        /// The file.
        place: String,
        /// `read` or `written`.
        doing: &'static str,
        /// The system's error message.
        why: String,
    },
}

impl CassetteError {
    /// Returns who can fix it.
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Exists { .. } | Self::NoCassette { .. } | Self::Busy { .. } => Fault::Config,
            Self::Newer { .. } | Self::Damaged { .. } | Self::Io { .. } => Fault::System,
        }
    }

    /// Returns how to fix it.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::Exists { .. } => "record to another file, or remove this one".into(),
            Self::Busy { .. } => "wait until it is done, or record to another file".into(),
            Self::Newer { .. } => "replay it with the version that recorded it, or a later one".into(),
            Self::Damaged { line, .. } => {
                format!("the calls before line {line} are intact: cut the file there")
            }
            Self::NoCassette { .. } | Self::Io { .. } => return None,
        })
    }

    pub(super) fn io(place: &Path, doing: &'static str, error: &io::Error) -> Self {
        Self::Io { place: place.display().to_string(), doing, why: error.to_string() }
    }
}
