//! Stores: persistence of logs.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::clock::Timestamp;
use super::event::Event;
use crate::{LogId, StoreError};

/// A store of logs: a database, a folder of files, memory.
///
/// `polylogue_test::store` has conformance tests for every store.
pub trait Store: Send + Sync + 'static {
    /// Creates an empty log and claims it.
    ///
    /// # Errors
    /// [`StoreError::Exists`] when the log exists.
    fn create(&self, id: &LogId, meta: &Meta) -> impl Future<Output = Result<Claim, StoreError>> + Send;

    /// Claims a log for writing. Claims of processes that have died are ignored.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when another writer is alive, [`StoreError::NotFound`].
    fn claim(&self, id: &LogId) -> impl Future<Output = Result<Claim, StoreError>> + Send;

    /// Appends `batch`. After success, the events survive a loss of power; after an error, none of them is stored.
    /// After a crash half-way a first part of them may be stored, and a dropped future may still append: any prefix
    /// is a valid conversation.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when the claim was lost, [`StoreError::Gap`] when the first event does not follow the
    /// last one stored, [`StoreError::Full`], [`StoreError::ReadOnly`].
    fn append(
        &self,
        claim: &Claim,
        batch: &[Arc<Event>],
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Releases the claim.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn release(&self, claim: Claim) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Reads the events from `from` on, in order.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the number of intact events before the damage; [`read_intact`](Self::read_intact)
    /// returns them.
    fn read(&self, id: &LogId, from: u64) -> impl Future<Output = Result<Vec<Event>, StoreError>> + Send;

    /// Reads everything that is readable of a log, even of a damaged one.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or when nothing can be read at all.
    fn read_intact(&self, id: &LogId) -> impl Future<Output = Result<Intact, StoreError>> + Send;

    /// Returns the metadata that the log was created with.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn meta(&self, id: &LogId) -> impl Future<Output = Result<Meta, StoreError>> + Send;

    /// Lists all logs, newest first.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn list(&self) -> impl Future<Output = Result<Vec<Listing>, StoreError>> + Send;

    /// Removes a log and all its events.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when a writer is alive, [`StoreError::NotFound`].
    fn remove(&self, id: &LogId) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Renews the lease of a claim. Every append does so too; a turn that takes longer than the lease must renew it.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when the claim was lost, [`StoreError::Replaced`] when the log was removed.
    fn renew(&self, claim: &Claim) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Claims a log as [`claim`](Self::claim) does, even if its writer is alive but its lease has expired, because it
    /// is stopped or hangs. That writer is fenced: its further appends are rejected.
    ///
    /// # Errors
    /// As [`claim`](Self::claim); [`StoreError::Busy`] while the lease lasts.
    fn take_over(&self, id: &LogId) -> impl Future<Output = Result<Claim, StoreError>> + Send;

    /// Repairs a damaged log: keeps its intact beginning and moves the rest to a backup. Returns the number of events
    /// that remain. Does nothing if the log is intact.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when a writer is alive, [`StoreError::NotFound`].
    fn repair(&self, id: &LogId) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Checks what all logs share, such as the database file. Returns the damage, if there is any. Reads all of it.
    ///
    /// # Errors
    /// When it cannot be read at all.
    fn damage(&self) -> impl Future<Output = Result<Option<StoreError>, StoreError>> + Send {
        async { Ok(None) }
    }
}

/// How long a claim lasts without renewal, before another process can [take it over](Store::take_over).
pub const LEASE: std::time::Duration = std::time::Duration::from_secs(30);

/// Everything that is readable of a log, damaged or not.
///
/// The events are in order. If there is damage, [`StoreError::Damaged`] says how many of them precede it: these are a
/// valid conversation that can be forked and continued. The others were read after the damage.
#[derive(Debug, Clone, PartialEq)]
pub struct Intact {
    /// Every readable event, in the order of `seq`.
    pub events: Vec<Event>,
    /// The damage, if there is any.
    pub damage: Option<StoreError>,
}

/// The metadata of a log.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Meta {
    /// The title in lists.
    pub title: String,
    /// The time of creation.
    #[serde(rename = "created_ms")]
    pub created: Timestamp,
    /// Anything that the creator needs to run the log again; the kernel does not read it.
    #[serde(default)]
    pub team: Value,
    /// Where it was forked from, if it is a fork.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parent: Option<Parent>,
}

/// Where a log was forked from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Parent {
    /// The log whose events it begins with.
    pub id: LogId,
    /// The first event that was not copied unchanged.
    pub event: u64,
}

/// An entry of a list of logs, known without reading whole logs.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// The id.
    pub id: LogId,
    /// [`Meta::title`].
    pub title: String,
    /// [`Meta::created`].
    pub created: Timestamp,
    /// Whether there is a [`Meta::team`], which is not loaded.
    pub has_team: bool,
    /// [`Meta::parent`].
    pub parent: Option<Parent>,
    /// How many events it has.
    pub events: u64,
    /// The last event, if it is readable and is the one that was appended last.
    pub last: Option<Event>,
    /// Whether its beginning or its end is damaged. Damage elsewhere is found only by reading all of it.
    pub is_damaged: bool,
}

/// The right to append to a log. Only one claim is valid at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    /// The log.
    pub id: LogId,
    /// The fencing token: larger than that of earlier claims.
    pub fence: u64,
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
    fn renew(claim: &'a Claim) -> ();
    fn take_over(id: &'a LogId) -> Claim;
    fn repair(id: &'a LogId) -> u64;
    fn damage() -> Option<StoreError>;
}

/// Any store. Cloning shares it.
#[derive(Clone)]
pub struct AnyStore(Arc<dyn ErasedStore>);

impl From<&Self> for AnyStore {
    fn from(store: &Self) -> Self {
        store.clone()
    }
}

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
    async fn renew(&self, claim: &Claim) -> Result<(), StoreError> {
        self.0.renew(claim).await
    }
    async fn take_over(&self, id: &LogId) -> Result<Claim, StoreError> {
        self.0.take_over(id).await
    }
    async fn repair(&self, id: &LogId) -> Result<u64, StoreError> {
        self.0.repair(id).await
    }
    async fn damage(&self) -> Result<Option<StoreError>, StoreError> {
        self.0.damage().await
    }
}

impl fmt::Debug for AnyStore {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyStore")
    }
}
