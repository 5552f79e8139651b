//! Where logs are kept.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::{Event, Fault, Timestamp};

/// A place that keeps logs: a database, a folder of files, memory.
///
/// `polylogue_test::store` has the tests that every store passes.
pub trait Store: Send + Sync + 'static {
    /// Begins an empty log and claims it.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when there is such a log.
    fn create(&self, id: &LogId, meta: &Meta) -> impl Future<Output = Result<Claim, StoreError>> + Send;

    /// Claims a log for writing. A claim of a process that is gone does not count.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another writer is alive, [`StoreError::NotFound`].
    fn claim(&self, id: &LogId) -> impl Future<Output = Result<Claim, StoreError>> + Send;

    /// Appends `batch`. When it succeeds, the events survive a loss of power; when it fails, none of them is kept. After a
    /// crash half-way some first ones may be kept, and a future that is dropped may still append: any prefix is a valid
    /// conversation.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when the claim was lost, [`StoreError::Gap`] when the first event does not follow the
    /// last one kept, [`StoreError::Full`], [`StoreError::ReadOnly`].
    fn append(
        &self,
        claim: &Claim,
        batch: &[Arc<Event>],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Gives the claim back.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn release(&self, claim: Claim) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// The events from `from` on, in order.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] names how many events before the damage are intact; [`read_intact`](Self::read_intact)
    /// gives them.
    fn read(&self, id: &LogId, from: u64) -> impl Future<Output = Result<Vec<Event>, StoreError>> + Send;

    /// Everything that can be read of a log, even of a damaged one.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or when nothing can be read at all.
    fn read_intact(&self, id: &LogId) -> impl Future<Output = Result<Intact, StoreError>> + Send;

    /// What was said of the log when it was created.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn meta(&self, id: &LogId) -> impl Future<Output = Result<Meta, StoreError>> + Send;

    /// All logs, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn list(&self) -> impl Future<Output = Result<Vec<Listing>, StoreError>> + Send;

    /// Removes a log and all its events.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when a writer is alive, [`StoreError::NotFound`].
    fn remove(&self, id: &LogId) -> impl Future<Output = Result<(), StoreError>> + Send;
}

/// Everything that can be read of a log, damaged or not.
///
/// The events are in order. When there is damage, [`StoreError::Damaged`] says how many of them are the unbroken
/// beginning: a conversation that can be forked and gone on with. Those behind are what could be read after the
/// damage.
#[derive(Debug, Clone, PartialEq)]
pub struct Intact {
    /// Every event that can be read, in the order of `seq`.
    pub events: Vec<Event>,
    /// What is wrong with the log, if anything.
    pub damage: Option<StoreError>,
}

/// The name of a log: 1 to 64 ASCII letters, digits, `-` and `_`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct LogId(Arc<str>);

impl LogId {
    /// Checks `text` and makes an id of it.
    ///
    /// # Errors
    /// When `text` has other characters, or none, or too many.
    pub fn new(text: &str) -> Result<Self, StoreError> {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if (1..=64).contains(&text.len()) && text.chars().all(legal) {
            Ok(Self(text.into()))
        } else {
            Err(StoreError::BadId { id: text.chars().take(80).collect() })
        }
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
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

impl From<LogId> for String {
    fn from(id: LogId) -> Self {
        id.0.as_ref().to_owned()
    }
}

/// What is said of a log when it is created.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// What people read in a list.
    pub title: String,
    /// When it was created.
    #[serde(rename = "created_ms")]
    pub created: Timestamp,
    /// Whatever the creator needs to run the log again: the kernel does not look at it.
    #[serde(default)]
    pub team: Value,
}

/// A log in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// Its id.
    pub id: LogId,
    /// What was said of it.
    pub meta: Meta,
    /// How many events it has.
    pub events: u64,
    /// The last of them, when it can be read.
    pub last: Option<Event>,
}

/// The right to append to a log. Only one is valid at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The log.
    pub id: LogId,
    /// Tells this claim from earlier and later ones.
    pub fence: u64,
}

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

    /// What to do about it.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::BadId { .. } => "ids have 1 to 64 letters, digits, `-` and `_`".into(),
            Self::NotFound { .. } => "`polylogue runs` lists what there is".into(),
            Self::Busy { .. } => "wait until that process is done, or stop it".into(),
            Self::Full { .. } => "free some space and resume; everything up to here is kept".into(),
            Self::ReadOnly { .. } | Self::Foreign { .. } => "choose another place with `--store`".into(),
            Self::Newer { .. } => "read it with the version that wrote it, or a later one".into(),
            Self::Damaged { intact, .. } if *intact > 0 => {
                "`polylogue show` still shows what is intact".into()
            }
            _ => return None,
        })
    }
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

macro_rules! erased_store {
    ($($(#[$doc:meta])* fn $name:ident($($arg:ident: $ty:ty),*) -> $out:ty;)*) => {
        trait ErasedStore: Send + Sync {
            $(fn $name<'a>(&'a self, $($arg: $ty),*) -> Boxed<'a, $out>;)*
        }
        impl<S: Store> ErasedStore for S {
            $(fn $name<'a>(&'a self, $($arg: $ty),*) -> Boxed<'a, $out> {
                Box::pin(Store::$name(self, $($arg),*))
            })*
        }
    };
}

erased_store! {
    fn create(id: &'a LogId, meta: &'a Meta) -> Claim;
    fn claim(id: &'a LogId) -> Claim;
    fn append(claim: &'a Claim, batch: &'a [Arc<Event>]) -> ();
    fn release(claim: Claim) -> ();
    fn read(id: &'a LogId, from: u64) -> Vec<Event>;
    fn read_intact(id: &'a LogId) -> Intact;
    fn meta(id: &'a LogId) -> Meta;
    fn list() -> Vec<Listing>;
    fn remove(id: &'a LogId) -> ();
}

/// Any store. Cloning shares it.
#[derive(Clone)]
pub struct AnyStore(Arc<dyn ErasedStore>);

impl AnyStore {
    /// Wraps `store`.
    pub fn new(store: impl Store) -> Self {
        Self(Arc::new(store))
    }
}

impl Store for AnyStore {
    async fn create(&self, id: &LogId, meta: &Meta) -> Result<Claim, StoreError> {
        self.0.create(id, meta).await
    }
    async fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        self.0.claim(id).await
    }
    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        self.0.append(claim, batch).await
    }
    async fn release(&self, claim: Claim) -> Result<(), StoreError> {
        self.0.release(claim).await
    }
    async fn read(&self, id: &LogId, from: u64) -> Result<Vec<Event>, StoreError> {
        self.0.read(id, from).await
    }
    async fn read_intact(&self, id: &LogId) -> Result<Intact, StoreError> {
        self.0.read_intact(id).await
    }
    async fn meta(&self, id: &LogId) -> Result<Meta, StoreError> {
        self.0.meta(id).await
    }
    async fn list(&self) -> Result<Vec<Listing>, StoreError> {
        self.0.list().await
    }
    async fn remove(&self, id: &LogId) -> Result<(), StoreError> {
        self.0.remove(id).await
    }
}

impl fmt::Debug for AnyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyStore")
    }
}
