//! Queues: logs that wait for workers, and when each must be looked at.

use super::claim::{Claim, LeaseNumber};
use super::due::{Due, Heartbeat, ParkedLog};
use super::dyn_queue::{Boxed, DynQueue, argument, queue_methods};
use super::features::Features;
use super::overview::{QueueOverview, QueuedLog, WorkerInfo};
use super::store::{AnyStore, Store, StoreWrapper};
use crate::{LogId, StoreError};

/// A [`Store`] that knows which logs a worker must look at, and when.
///
/// A log has one due time at most, so that claim, lease, takeover, timer, retry and wake-up are one mechanism:
///
/// | state | due | leaves by |
/// |---|---|---|
/// | idle: no worker must look at it | never | [`schedule`](Self::schedule), a message or an answer |
/// | timed | in the future | time, a message or an answer |
/// | ready | now or past | [`claim_due`](Self::claim_due) |
/// | held | at the end of its lease | a release, the end of the lease |
/// | parked, after [`MAX_TRIES`](super::MAX_TRIES) tries without progress, or a failure after which it is not tried again | never | [`schedule`](Self::schedule), a message or an answer |
///
/// A new log is idle when its creator [releases](Store::release) it, and ready when its creator
/// [releases it until now](Self::release_until).
///
/// [`Store::post`] wakes a log by messages and answers ([`Instruction::wakes`](crate::Instruction::wakes)): it is ready at once.
/// One that is held is ready again when it is released, unless its holder has taken the message by then, which an
/// [event](crate::Event::inbox) with its number says: who takes it runs the log, or [schedules](Self::schedule) it. Times are those of
/// the store's clock, not of workers.
///
/// A log that a process claims by its id, with [`Store::claim`], is not due until that claim is released or its lease expires. Releasing
/// it with [`Store::release`] leaves its due time as it was, and a parked one parked for the reason that it had.
///
/// `polylogue_test::queue` has conformance tests for every queue.
pub trait Queue: Store {
    /// Claims logs that are due and need nothing but what the worker `offers`: those that have waited longest first, up to `room`;
    /// none if none is due, and none of those that are named by `except`. Logs of workers whose leases have expired are due. One that
    /// was claimed [`MAX_TRIES`](super::MAX_TRIES) times without an append or a release is parked instead.
    ///
    /// A lease has expired when the clock of the store says so, and its number is at most `ended`, which is what the
    /// [last one](Self::last_lease) was a lease ago by the clock of the worker: that of the store may jump. With
    /// [`LeaseNumber::ALL`] the clock of the store decides alone.
    ///
    /// Read the log after this, not before.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn claim_due(
        &self,
        room: usize,
        offers: &Features,
        except: &[LogId],
        ended: LeaseNumber,
    ) -> impl Future<Output = Result<Vec<Claim>, StoreError>> + Send;

    /// Returns the number of the last lease that was granted or renewed. Default: [`LeaseNumber::ALL`], for a store whose
    /// leases end by a clock that does not jump.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn last_lease(&self) -> impl Future<Output = Result<LeaseNumber, StoreError>> + Send {
        async { Ok(LeaseNumber::ALL) }
    }

    /// Releases a claim, and has the log looked at again at `due`, or at once if an inbox message came since it was claimed that the log
    /// does not have. Clears the count of its tries; one that was parked is parked no more. A claim that was lost is left alone.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn release_until(&self, claim: Claim, due: Due) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Releases a claim as [`release_until`](Self::release_until) for a process that has claimed a log by its id, and run it to
    /// its rest: one that no worker had to look at stays idle. One that was parked becomes idle, or is due at the time of
    /// [`Due::At`]; without an append under this claim it stays parked.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn release_at_rest(&self, claim: Claim, due: Due) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// As [`release_until`](Self::release_until) for a log that could not be run, because of `why`: its tries still count, and after
    /// [`MAX_TRIES`](super::MAX_TRIES) of them without an append it is parked, whatever `due` is. With [`Due::Never`] no further try would help: it is
    /// parked at once, unless an inbox message came since it was claimed that the log does not have.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn release_failed(
        &self,
        claim: Claim,
        due: Due,
        why: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Releases a claim for other workers, because this one cannot run its log, for the reason `why`: the log is due at once if a worker
    /// had to look at it, and the claim is no try. A claim that was lost is left alone.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn release_to_others(
        &self,
        claim: Claim,
        why: &str,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Schedules a log for `due`, by workers that have what it `needs`; without a value, it needs what it needed before, at
    /// first nothing. One that is held stays so; unless `due` is [`Due::Never`], it is ready again when it is released. One
    /// that is parked is parked no more.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or when the store cannot be written.
    fn schedule(
        &self,
        id: &LogId,
        due: Due,
        needs: Option<&Features>,
    ) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Sets what a worker must offer to be given this log. Changes nothing else: one that is parked stays so.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or when the store cannot be written.
    fn set_needs(&self, id: &LogId, needs: &Features) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Returns what a worker must offer to be given this log.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or when the store cannot be read.
    fn needs(&self, id: &LogId) -> impl Future<Output = Result<Features, StoreError>> + Send;

    /// Returns whether workers look at a log by themselves, now or later: it has a due time.
    ///
    /// # Errors
    /// [`StoreError::NotFound`], or when the store cannot be read.
    fn is_queued(&self, id: &LogId) -> impl Future<Output = Result<bool, StoreError>> + Send;

    /// Lets workers continue the log of a claim if the claim is lost: from now on it is due when the lease of the claim ends.
    /// For a process that has claimed a log by its id and does not stay, such as a server; it [releases](Self::release_at_rest)
    /// the log at its rest. A claim that was lost is left alone.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn continue_if_lost(&self, claim: &Claim) -> impl Future<Output = Result<(), StoreError>> + Send;

    /// Renews the leases of claims in one operation. Returns those that are still valid, in their order: what the others ran must
    /// stop, and append nothing.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn heartbeat(&self, claims: &[Claim]) -> impl Future<Output = Result<Vec<Heartbeat>, StoreError>> + Send;

    /// Returns the parked logs, by their ids.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn parked(&self) -> impl Future<Output = Result<Vec<ParkedLog>, StoreError>> + Send;

    /// Says that this process is a worker, and is well; without a value, that it is none any more. Workers repeat it as often as their
    /// heartbeats. Default: does nothing.
    ///
    /// # Errors
    /// When the store cannot be written.
    fn announce(&self, worker: Option<&WorkerInfo>) -> impl Future<Output = Result<(), StoreError>> + Send {
        let _ = worker;
        async { Ok(()) }
    }

    /// Returns which workers there are, and which logs are not idle: the first `most` of them, and counts of all. Default: the
    /// parked ones.
    ///
    /// # Errors
    /// When the store cannot be read.
    fn overview(&self, most: usize) -> impl Future<Output = Result<QueueOverview, StoreError>> + Send {
        async move {
            let logs = self.parked().await?.into_iter().map(QueuedLog::from);
            Ok(QueueOverview::of_logs(logs, most))
        }
    }
}

/// How the methods of a queue are forwarded: to one of any type, and by wrappers.
macro_rules! forwarded {
    ($($name:ident($($arg:ident: $kind:ident $ty:ty),*) -> $out:ty;)*) => {
        impl<Q: Queue> DynQueue for Q {
            $(fn $name<'a>(&'a self, $($arg: argument!('a $kind $ty)),*) -> Boxed<'a, $out> {
                Box::pin(Queue::$name(self, $($arg),*))
            })*
        }

        /// A queue around another one: implement the methods that differ, the others are forwarded to the store that it
        /// [wraps](StoreWrapper::inner). Every such wrapper is a [`Queue`]; it also returns itself as
        /// [`as_queue`](StoreWrapper::as_queue).
        pub trait QueueWrapper: StoreWrapper {
            $(
                #[doc = concat!(
                    "Default: [`Queue::", stringify!($name), "`] of the wrapped store.\n\n# Errors\nAs that; when the store is no queue."
                )]
                fn $name(&self, $($arg: argument!($kind $ty)),*) -> impl Future<Output = Result<$out, StoreError>> + Send {
                    async move { queue_of(self.inner())?.$name($($arg),*).await }
                }
            )*
        }

        impl<W: QueueWrapper> Queue for W {
            $(async fn $name(&self, $($arg: argument!($kind $ty)),*) -> Result<$out, StoreError> {
                QueueWrapper::$name(self, $($arg),*).await
            })*
        }
    };
}

queue_methods!(forwarded);

fn queue_of(store: &AnyStore) -> Result<&dyn DynQueue, StoreError> {
    Store::as_queue(store).ok_or_else(AnyQueue::not_a_queue)
}

/// Any store that is a [`Queue`]. Cloning shares it.
#[derive(Debug, Clone)]
pub struct AnyQueue(AnyStore);

impl AnyStore {
    /// Returns this store as a queue; `None` if it is none: workers cannot use it.
    pub fn queue(&self) -> Option<AnyQueue> {
        Store::as_queue(self).map(|_| AnyQueue(self.clone()))
    }
}

impl AnyQueue {
    /// Wraps `queue`, if it returns itself as a queue.
    pub fn new(queue: impl Queue) -> Option<Self> {
        AnyStore::new(queue).queue()
    }

    /// Returns the queue as a store.
    pub const fn store(&self) -> &AnyStore {
        &self.0
    }

    /// Returns the error for a store that is no queue.
    pub fn not_a_queue() -> StoreError {
        StoreError::Unsuitable {
            place: "the store".into(),
            why: "workers cannot ask it which conversations are due".into(),
            hint: "keep the conversations in a database: a SQLite file, or Postgres".into(),
        }
    }
}

impl StoreWrapper for AnyQueue {
    fn inner(&self) -> &AnyStore {
        &self.0
    }
}

impl QueueWrapper for AnyQueue {}
