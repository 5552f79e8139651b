//! Why a cassette cannot be written or read.

use std::io;
use std::path::Path;

use polylogue_core::Fault;

/// Why a cassette cannot be written or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CassetteError {
    /// A new cassette was asked for, but there is such a file.
    #[error("the file `{place}` exists already")]
    Exists {
        /// The file.
        place: String,
    },
    /// Another program records to it.
    #[error("the cassette `{place}` is being recorded by another program")]
    Busy {
        /// The file.
        place: String,
    },
    /// The file is something else.
    #[error("the file `{place}` is no cassette")]
    NoCassette {
        /// The file.
        place: String,
    },
    /// It was written by a later version.
    #[error("the cassette `{place}` has format {found}, and this version knows up to {known}")]
    Newer {
        /// The file.
        place: String,
        /// The format found.
        found: u64,
        /// The last format known.
        known: u64,
    },
    /// A line is not what was written, does not follow the line before, or cannot be read.
    #[error("line {line} of the cassette `{place}` is damaged: {why}")]
    Damaged {
        /// The file.
        place: String,
        /// The line, counted from 1.
        line: usize,
        /// What is wrong with it.
        why: String,
    },
    /// The system refuses.
    #[error("the cassette `{place}` cannot be {doing}: {why}")]
    Io {
        /// The file.
        place: String,
        /// `read` or `written`.
        doing: &'static str,
        /// What the system says.
        why: String,
    },
}

impl CassetteError {
    /// Whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Exists { .. } | Self::NoCassette { .. } | Self::Busy { .. } => Fault::Config,
            Self::Newer { .. } | Self::Damaged { .. } | Self::Io { .. } => Fault::System,
        }
    }

    /// What to do about it.
    #[must_use]
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
