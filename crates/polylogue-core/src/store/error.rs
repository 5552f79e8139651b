//! What can go wrong with a store.

use super::LogId;
use crate::Fault;

/// Why a store could not do what was asked. What was kept before is still kept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The id is illegal.
    #[error("`{id}` is no legal id of a conversation")]
    BadId {
        /// The id.
        id: String,
    },
    /// There is no such log.
    #[error("there is no conversation `{id}`")]
    NotFound {
        /// The id.
        id: LogId,
    },
    /// There is such a log already.
    #[error("there is a conversation `{id}` already")]
    Exists {
        /// The id.
        id: LogId,
    },
    /// Somebody else is writing to the log.
    #[error("the conversation `{id}` is being run by {holder}")]
    Busy {
        /// The id.
        id: LogId,
        /// Who: process and machine.
        holder: String,
    },
    /// Somebody else has claimed the log since.
    #[error("the conversation `{id}` was taken over by another process")]
    Fenced {
        /// The id.
        id: LogId,
    },
    /// The file was replaced, changed or removed behind the writer's back.
    #[error("{place} was replaced, changed or removed while it was written")]
    Replaced {
        /// The file.
        place: String,
    },
    /// Events are missing between what is kept and what was to be appended.
    #[error("the conversation `{id}` has {kept} events, but event {given} was to be appended")]
    Gap {
        /// The id.
        id: LogId,
        /// How many events are kept.
        kept: u64,
        /// The first event given.
        given: u64,
    },
    /// There is no space left.
    #[error("there is no space left to write {place}")]
    Full {
        /// The file.
        place: String,
    },
    /// The place may not be written.
    #[error("{place} cannot be written: {why}")]
    ReadOnly {
        /// The file or folder.
        place: String,
        /// What the system says.
        why: String,
    },
    /// Something is there that is no log, or no longer one.
    #[error("{place} is damaged: {why}; {intact} events are intact")]
    Damaged {
        /// The file.
        place: String,
        /// What is wrong.
        why: String,
        /// How many events before the damage can be read.
        intact: u64,
    },
    /// Something else is there. It is left as it is.
    #[error("`{place}` does not keep conversations: {why}")]
    Foreign {
        /// The file.
        place: String,
        /// What it is.
        why: String,
    },
    /// It was written by a later version.
    #[error("{place} has format {found}, and this version knows up to {known}")]
    Newer {
        /// The file.
        place: String,
        /// The format found.
        found: u64,
        /// The last format known.
        known: u64,
    },
    /// An earlier version wrote it, in a format that is no longer read.
    #[error("{place} has format {found}, and this version reads format {known}")]
    Older {
        /// The file.
        place: String,
        /// The format found.
        found: u64,
        /// The format that is read.
        known: u64,
    },
    /// Anything else the system says.
    #[error("{place}: {why}")]
    Io {
        /// The file.
        place: String,
        /// What the system says.
        why: String,
    },
}

impl StoreError {
    /// Whose fault it is.
    #[must_use]
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Gap { .. } => Fault::Bug,
            Self::BadId { .. } | Self::NotFound { .. } | Self::Exists { .. } | Self::Busy { .. } => {
                Fault::Config
            }
            _ => Fault::System,
        }
    }

    /// How many events of the log before the damage are what was written: of other errors none is known to be.
    #[must_use]
    pub const fn intact(&self) -> u64 {
        match self {
            Self::Damaged { intact, .. } => *intact,
            _ => 0,
        }
    }

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::BadId { .. } => "ids have 1 to 64 letters, digits, `-` and `_`".into(),
            Self::NotFound { .. } => "`polylogue runs` lists what there is".into(),
            Self::Busy { .. } => "wait until that process is done, or stop it; of one that hangs, \
                                 `polylogue resume --take-over` takes the conversation once its lease has run out"
                .into(),
            Self::Fenced { .. } => "let the process that has it now go on, or resume when it is done".into(),
            Self::Replaced { .. } => "restore or remove nothing while a conversation runs; `polylogue verify` tells what is \
                                     there now, and `polylogue resume` continues from that"
                .into(),
            Self::Older { .. } => "choose another place with `--store`, or read it with the version that wrote it".into(),
            Self::Full { .. } => "free some space and resume; everything up to here is kept".into(),
            Self::ReadOnly { .. } | Self::Foreign { .. } => "choose another place with `--store`".into(),
            Self::Newer { .. } => "read it with the version that wrote it, or a later one".into(),
            Self::Damaged { intact, .. } if *intact > 0 => {
                "`polylogue show` shows the events before the damage, and `polylogue verify --repair` keeps that and \
                 sets the rest aside, so that the conversation can be resumed"
                    .into()
            }
            _ => return None,
        })
    }
}
