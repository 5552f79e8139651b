//! Ids of logs, and failed operations of their stores.

use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::fault::Fault;

/// The id of a log: 1 to 64 ASCII letters, digits, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct LogId(Arc<str>);

impl LogId {
    /// Checks `text` and makes an id of it.
    ///
    /// # Errors
    /// When `text` is empty, too long, or has other characters.
    pub fn new(text: &str) -> Result<Self, StoreError> {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if (1..=64).contains(&text.len()) && text.chars().all(legal) {
            Ok(Self(text.into()))
        } else {
            Err(StoreError::BadId { id: text.chars().take(80).collect() })
        }
    }

    /// Returns the id as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The id of a log that is in no store.
    pub(crate) fn in_memory() -> Self {
        Self("in-memory".into())
    }
}

impl fmt::Display for LogId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for LogId {
    type Error = StoreError;
    fn try_from(text: String) -> Result<Self, StoreError> {
        Self::new(&text)
    }
}

impl TryFrom<&str> for LogId {
    type Error = StoreError;
    fn try_from(text: &str) -> Result<Self, StoreError> {
        Self::new(text)
    }
}

impl TryFrom<&Self> for LogId {
    type Error = StoreError;
    fn try_from(id: &Self) -> Result<Self, StoreError> {
        Ok(id.clone())
    }
}

impl From<std::convert::Infallible> for StoreError {
    fn from(never: std::convert::Infallible) -> Self {
        match never {}
    }
}

impl From<LogId> for String {
    fn from(id: LogId) -> Self {
        id.0.as_ref().to_owned()
    }
}

/// A failed store operation. Events stored before stay stored.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// The id is invalid.
    #[error("`{id}` is not a valid conversation id")]
    BadId {
        /// The id.
        id: String,
    },
    /// The log does not exist.
    #[error("there is no conversation `{id}`")]
    NotFound {
        /// The id.
        id: LogId,
    },
    /// The log exists already.
    #[error("the conversation `{id}` already exists")]
    Exists {
        /// The id.
        id: LogId,
    },
    /// Another writer has claimed the log.
    #[error("the conversation `{id}` is being run by {holder}")]
    Busy {
        /// The id.
        id: LogId,
        /// The writer: process and machine.
        holder: String,
    },
    /// The log waits for a worker, which must look at it.
    #[error("the conversation `{id}` waits for a worker")]
    Queued {
        /// The id.
        id: LogId,
    },
    /// Another writer has claimed the log since.
    #[error("the conversation `{id}` was taken over by another process")]
    Fenced {
        /// The id.
        id: LogId,
    },
    /// The file was replaced, changed or removed by another program.
    #[error("{place} was replaced, changed or removed while it was written")]
    Replaced {
        /// The file.
        place: String,
    },
    /// Events are missing between the stored ones and those to be appended.
    #[error("the conversation `{id}` has {kept} events, but event {given} was to be appended")]
    Gap {
        /// The id.
        id: LogId,
        /// The number of stored events.
        kept: u64,
        /// The first event to be appended.
        given: u64,
    },
    /// The disk is full.
    #[error("no space is left on the disk to write {place}")]
    Full {
        /// The file.
        place: String,
    },
    /// The place is not writable.
    #[error("{place} cannot be written: {why}")]
    ReadOnly {
        /// The file or folder.
        place: String,
        /// The system's error message.
        why: String,
    },
    /// The file is not a valid log.
    #[error("{place} is damaged: {why}; {intact} events are intact")]
    Damaged {
        /// The file.
        place: String,
        /// The damage.
        why: String,
        /// How many events before the damage are readable.
        intact: u64,
    },
    /// The file is something other than a store. It is not changed.
    #[error("`{place}` does not keep conversations: {why}")]
    Foreign {
        /// The file.
        place: String,
        /// The kind of file.
        why: String,
    },
    /// A later version wrote it.
    #[error("{place} has format {found}, and this version knows up to {known}")]
    Newer {
        /// The file.
        place: String,
        /// The format found.
        found: u64,
        /// The last supported format.
        known: u64,
    },
    /// A later version appended an event of a type that this one does not know. It is kept unchanged.
    #[error(
        "{place} has an event that only a later version of Polylogue knows: event {seq} of type `{kind}`"
    )]
    UnknownEvent {
        /// The file.
        place: String,
        /// The number of the event; those before it are intact.
        seq: u64,
        /// The type of the event.
        kind: String,
    },
    /// A later version posted an instruction that this one does not know. It is kept unchanged.
    #[error(
        "{place} has an instruction that only a later version of Polylogue knows: message {number}, `{kind}`"
    )]
    UnknownInstruction {
        /// The inbox.
        place: String,
        /// The number of the message.
        number: u64,
        /// The name of the instruction.
        kind: String,
    },
    /// An earlier version wrote it, in a format that is no longer supported.
    #[error(
        "{place} has format {found}, of an earlier version of Polylogue; this version reads format {known}"
    )]
    Older {
        /// The file.
        place: String,
        /// The format found.
        found: u64,
        /// The supported format.
        known: u64,
    },
    /// The database cannot be reached. It may be again.
    #[error("{place} cannot be reached: {why}")]
    Unreachable {
        /// The database, without a password.
        place: String,
        /// The system's error message.
        why: String,
    },
    /// The database refuses access, or would not keep acknowledged events. It is not written.
    #[error("{place} cannot be used: {why}")]
    Unsuitable {
        /// The database, without a password.
        place: String,
        /// The problem.
        why: String,
        /// How to fix it.
        hint: String,
    },
    /// Any other error of the system.
    #[error("{place}: {why}")]
    Io {
        /// The file.
        place: String,
        /// The system's error message.
        why: String,
    },
}

impl StoreError {
    /// Returns who can fix the error.
    pub const fn fault(&self) -> Fault {
        match self {
            Self::Gap { .. } => Fault::Bug,
            Self::BadId { .. }
            | Self::NotFound { .. }
            | Self::Exists { .. }
            | Self::Busy { .. }
            | Self::Queued { .. }
            | Self::Unsuitable { .. } => Fault::Config,
            _ => Fault::System,
        }
    }

    /// Returns how many events before the damage, or before an event of a later version, are intact; 0 for other errors.
    pub const fn intact(&self) -> u64 {
        match self {
            Self::Damaged { intact, .. } => *intact,
            Self::UnknownEvent { seq, .. } => *seq,
            _ => 0,
        }
    }

    /// Returns how to fix the error.
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::BadId { .. } => "ids have 1 to 64 letters, digits, `-` and `_`".into(),
            Self::NotFound { .. } => "`polylogue runs` lists what there is".into(),
            Self::Busy { id, .. } => format!(
                "wait until that process is done, or stop it; of one that hangs or died, `polylogue resume {id} --take-over` takes the \
                 conversation once its lease has run out"
            ),
            Self::Queued { id } => {
                format!("let a worker run it first, or take it back with `polylogue cancel {id}`")
            }
            Self::Fenced { .. } => "let the other process continue, or resume when it is done".into(),
            Self::Replaced { .. } => "restore or remove nothing while a conversation runs; `polylogue verify` shows what is \
                                     there now, and `polylogue resume` continues from that"
                .into(),
            Self::Older { .. } => "read it with the version that wrote it; for new conversations, choose another place with `--store`, or remove it".into(),
            Self::Full { .. } => "free some space and resume; everything up to here is kept".into(),
            Self::ReadOnly { .. } | Self::Foreign { .. } => "choose another place with `--store`".into(),
            Self::Unreachable { .. } => "check that it runs and takes more connections, and its host and port in `--store`; everything that was acknowledged is kept, and \
                                        `polylogue resume` continues from there"
                .into(),
            Self::Unsuitable { hint, .. } => hint.clone(),
            Self::UnknownEvent { .. } | Self::UnknownInstruction { .. } => "update Polylogue here to the version of the process that wrote it; nothing is lost, and nothing needs a \
                                         repair"
                .into(),
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
