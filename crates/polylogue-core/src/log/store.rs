//! Stores: persistence of logs.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::claim::Claim;
use super::dyn_queue::{Boxed, DynQueue};
use super::event::Event;
use super::inbox::InboxMessage;
use super::list::{ListQuery, Page};
use super::meta::Meta;
use crate::{BlobId, LogId, StoreError};

/// Time for which a [key](Store::reserve_key) is reserved.
pub const KEY_RESERVATION: Duration = Duration::from_hours(24);

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

    /// Returns the living process that has claimed a log, as [`StoreError::Busy`] names it; `None` if the log can be claimed.
    /// Takes no claim: a caller that gives up half-way leaves none.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or when the store cannot be read.
    fn holder(&self, id: &LogId) -> impl Future<Output = Result<Option<String>, StoreError>> + Send;

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

    /// Reads the events with the numbers in `range`, in order; fewer if the log is shorter. A store whose logs are long reads no more of
    /// one, so that reading it in pages takes as long as reading it at once.
    ///
    /// # Errors
    /// [`StoreError::Damaged`] with the number of intact events before the damage; [`read_intact`](Self::read_intact)
    /// returns them. Damage after the range may not be seen.
    fn read_range(
        &self,
        id: &LogId,
        range: Range<u64>,
    ) -> impl Future<Output = Result<Vec<Event>, StoreError>> + Send;

    /// Reads the events from `from` on, in order.
    ///
    /// # Errors
    /// As [`read_range`](Self::read_range).
    fn read(&self, id: &LogId, from: u64) -> impl Future<Output = Result<Vec<Event>, StoreError>> + Send {
        self.read_range(id, from..u64::MAX)
    }

    /// Reads everything that is readable of a log, even of a damaged one.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or when nothing can be read at all.
    fn read_intact(&self, id: &LogId) -> impl Future<Output = Result<RecoveredEvents, StoreError>> + Send;

    /// Returns the metadata that the log was created with.
    ///
    /// # Errors
    /// [`StoreError::NotFound`].
    fn meta(&self, id: &LogId) -> impl Future<Output = Result<Meta, StoreError>> + Send;

    /// Lists the logs that match `query`, newest first, without reading them: the store keeps a [`Summary`](super::Summary) of
    /// each, which it updates in the same write as the events. [`Page::of`] applies the query.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn list(&self, query: &ListQuery) -> impl Future<Output = Result<Page, StoreError>> + Send;

    /// Returns the number of logs. Default: that of all that [`list`](Self::list) returns. A store that can count without reading each
    /// log implements it.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn count(&self) -> impl Future<Output = Result<u64, StoreError>> + Send {
        async { Ok(self.list(&ListQuery::default()).await?.logs.len() as u64) }
    }

    /// Removes a log and all its events.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when a writer is alive, [`StoreError::NotFound`].
    fn remove(&self, id: &LogId) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Packs the events of a log that is at rest into less space, which reading does not show and a claim undoes. Returns whether this store
    /// does so. Default: it does not.
    ///
    /// # Errors
    /// [`StoreError::Busy`] when a writer is alive, [`StoreError::Queued`] when a worker must look at it; [`StoreError::NotFound`].
    fn archive(&self, id: &LogId) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let _ = id;
        async { Ok(false) }
    }

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

    /// Confirms that a claim is valid, right before a model or tool call begins: one that another process has taken over the log from
    /// must not begin a call which that process has finished. Default: at once, without asking; the store of a worker asks when
    /// the claim was not confirmed for long.
    ///
    /// # Errors
    /// [`StoreError::Fenced`] when the claim was lost, or when the store cannot be asked.
    fn confirm(&self, claim: &Claim) -> impl Future<Output = Result<(), StoreError>> + Send {
        let _ = claim;
        async { Ok(()) }
    }

    /// Puts a message into the inbox of a log, also while another process has claimed it. After success it survives a loss of power. Returns its number,
    /// from 1 on; a message with the key of an earlier one is not stored again, and gets the number of that one.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or when the store cannot be written.
    fn post(
        &self,
        id: &LogId,
        message: &InboxMessage,
    ) -> impl Future<Output = Result<u64, StoreError>> + Send;

    /// Returns the messages in the inbox of a log after the number `after`, in order. They stay there: a message was taken when
    /// an [event](Event::inbox) has its number.
    ///
    /// # Errors
    /// [`StoreError::NotFound`]; [`StoreError::UnknownInstruction`] when a later version posted one that this one does not know; or when the
    /// inbox cannot be read.
    fn inbox(
        &self,
        id: &LogId,
        after: u64,
    ) -> impl Future<Output = Result<Vec<(u64, InboxMessage)>, StoreError>> + Send;

    /// Returns a log whose inbox has a message with this key; `None` if there is none. Default: looks into all inboxes, and skips those that
    /// cannot be read. A store that finds a key without reading each inbox implements it.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn posted_with(&self, key: &str) -> impl Future<Output = Result<Option<LogId>, StoreError>> + Send {
        async move {
            for listing in self.list(&ListQuery::default()).await?.logs {
                if let Ok(inbox) = self.inbox(&listing.id, 0).await
                    && inbox.iter().any(|(_, message)| *message.key == *key)
                {
                    return Ok(Some(listing.id));
                }
            }
            Ok(None)
        }
    }

    /// Reserves `key` for a request, before the request has any effect. `request` identifies it, such as a digest. Returns the request that has
    /// the key: `request`, or an earlier one that reserved it less than [`KEY_RESERVATION`] ago. Of several processes at the same time, one
    /// reserves it. After success the reservation survives a loss of power. It belongs to no log, and the store removes it after that time.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn reserve_key(
        &self,
        key: &str,
        request: &str,
    ) -> impl Future<Output = Result<String, StoreError>> + Send;

    /// Waits until a message was posted to the inbox of a log that this store has claimed, or its claim has ended. Returns whether the store
    /// hears of messages; one may be missed all the same, so the inbox must be looked at now and then. Default: it hears of none, at once.
    ///
    /// # Errors
    /// When the store is closed.
    fn inbox_news(&self, id: &LogId) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let _ = id;
        async { Ok(false) }
    }

    /// Stores `bytes`, such as a large result of a tool call, next to a log, also while another process has claimed it. `blob` is
    /// [their id](BlobId::of). The same bytes again change nothing. After success they survive a loss of power, and are removed with the log. Returns
    /// whether this store can; default: it cannot, and results are truncated.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], [`StoreError::Full`], [`StoreError::ReadOnly`].
    fn store_blob(
        &self,
        id: &LogId,
        blob: &BlobId,
        bytes: &[u8],
    ) -> impl Future<Output = Result<bool, StoreError>> + Send {
        let _ = (id, blob, bytes);
        async { Ok(false) }
    }

    /// Reads what was [stored](Self::store_blob) next to a log; `None` if there is none.
    ///
    /// # Errors
    /// [`StoreError::NotFound`] without the log; [`StoreError::Io`] if the bytes are not those that were stored.
    fn stored_blob(
        &self,
        id: &LogId,
        blob: &BlobId,
    ) -> impl Future<Output = Result<Option<Arc<[u8]>>, StoreError>> + Send {
        let _ = (id, blob);
        async { Ok(None) }
    }

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

    /// Writes something that is in no log, and returns when it is stored: whether there is space, and the store takes writes at all. Default:
    /// does nothing.
    ///
    /// # Errors
    /// [`StoreError::Full`], [`StoreError::ReadOnly`], or why else an event could not be stored now.
    fn check_writable(&self) -> impl Future<Output = Result<(), StoreError>> + Send {
        async { Ok(()) }
    }

    /// Returns this store as a [`Queue`](super::Queue), if it is one: `Some(self)`. Default: it is none, and workers cannot use
    /// it.
    fn as_queue(&self) -> Option<&dyn DynQueue> {
        None
    }
}

/// Everything that is readable of a log, damaged or not.
///
/// The events are in order. If there is damage, [`StoreError::Damaged`] says how many of them precede it: these are a
/// valid conversation that can be forked and continued. The others were read after the damage.
#[derive(Debug, Clone, PartialEq)]
pub struct RecoveredEvents {
    /// Every readable event, in the order of `seq`.
    pub events: Vec<Event>,
    /// The damage, if there is any.
    pub damage: Option<StoreError>,
}

/// Writes each method of [`Store`] once for [`AnyStore`] and once for [`StoreWrapper`].
macro_rules! forwarded {
    ($($name:ident($(ref $r:ident: $ref:ty,)* $(val $v:ident: $val:ty,)?) -> $out:ty;)*) => {
        trait ErasedStore: Send + Sync {
            fn as_queue(&self) -> Option<&dyn DynQueue>;
            $(fn $name<'a>(&'a self, $($r: &'a $ref,)* $($v: $val)?) -> Boxed<'a, $out>;)*
        }

        impl<S: Store> ErasedStore for S {
            fn as_queue(&self) -> Option<&dyn DynQueue> {
                Store::as_queue(self)
            }
            $(fn $name<'a>(&'a self, $($r: &'a $ref,)* $($v: $val)?) -> Boxed<'a, $out> {
                Box::pin(Store::$name(self, $($r,)* $($v)?))
            })*
        }

        impl Store for AnyStore {
            fn as_queue(&self) -> Option<&dyn DynQueue> {
                self.0.as_queue()
            }
            $(async fn $name(&self, $($r: &$ref,)* $($v: $val)?) -> Result<$out, StoreError> {
                self.0.$name($($r,)* $($v)?).await
            })*
        }

        /// A store around another one: implement the methods that differ, the others are forwarded. Every wrapper is a [`Store`].
        ///
        /// ```
        /// use polylogue_core::{AnyStore, LogId, StoreError, StoreWrapper};
        ///
        /// struct KeepsAll(AnyStore);
        ///
        /// impl StoreWrapper for KeepsAll {
        ///     fn inner(&self) -> &AnyStore {
        ///         &self.0
        ///     }
        ///     async fn remove(&self, id: &LogId) -> Result<(), StoreError> {
        ///         Err(StoreError::ReadOnly { place: id.to_string(), why: "nothing is removed".into() })
        ///     }
        /// }
        /// ```
        pub trait StoreWrapper: Send + Sync + 'static {
            /// Returns the store that it wraps.
            fn inner(&self) -> &AnyStore;
            /// Returns the store as a queue. Default: the queue that the wrapped store is. A wrapper whose methods of
            /// [`Queue`](super::Queue) differ returns itself.
            fn as_queue(&self) -> Option<&dyn DynQueue> {
                Store::as_queue(self.inner())
            }
            $(
                #[doc = concat!("Default: [`Store::", stringify!($name), "`] of the wrapped store.\n\n# Errors\nAs that.")]
                fn $name(&self, $($r: &$ref,)* $($v: $val)?) -> impl Future<Output = Result<$out, StoreError>> + Send {
                    Store::$name(self.inner(), $($r,)* $($v)?)
                }
            )*
        }

        impl<W: StoreWrapper> Store for W {
            fn as_queue(&self) -> Option<&dyn DynQueue> {
                StoreWrapper::as_queue(self)
            }
            $(async fn $name(&self, $($r: &$ref,)* $($v: $val)?) -> Result<$out, StoreError> {
                StoreWrapper::$name(self, $($r,)* $($v)?).await
            })*
        }
    };
}

forwarded! {
    create(ref id: LogId, ref meta: Meta,) -> Claim;
    claim(ref id: LogId,) -> Claim;
    holder(ref id: LogId,) -> Option<String>;
    append(ref claim: Claim, ref batch: [Arc<Event>],) -> ();
    release(val claim: Claim,) -> ();
    read(ref id: LogId, val from: u64,) -> Vec<Event>;
    read_range(ref id: LogId, val range: Range<u64>,) -> Vec<Event>;
    read_intact(ref id: LogId,) -> RecoveredEvents;
    meta(ref id: LogId,) -> Meta;
    list(ref query: ListQuery,) -> Page;
    count() -> u64;
    remove(ref id: LogId,) -> ();
    renew(ref claim: Claim,) -> ();
    take_over(ref id: LogId,) -> Claim;
    confirm(ref claim: Claim,) -> ();
    post(ref id: LogId, ref message: InboxMessage,) -> u64;
    inbox(ref id: LogId, val after: u64,) -> Vec<(u64, InboxMessage)>;
    posted_with(ref key: str,) -> Option<LogId>;
    reserve_key(ref key: str, ref request: str,) -> String;
    inbox_news(ref id: LogId,) -> bool;
    store_blob(ref id: LogId, ref blob: BlobId, ref bytes: [u8],) -> bool;
    stored_blob(ref id: LogId, ref blob: BlobId,) -> Option<Arc<[u8]>>;
    repair(ref id: LogId,) -> u64;
    archive(ref id: LogId,) -> bool;
    damage() -> Option<StoreError>;
    check_writable() -> ();
}

/// Any store. Cloning shares it.
#[derive(Clone, derive_more::Debug)]
#[debug("AnyStore")]
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
