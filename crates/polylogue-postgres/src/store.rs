//! Logs in a database.

use std::ops::Range;
use std::sync::{Arc, mpsc};
use std::time::Duration;

use polylogue_core::{
    AnyStore, BlobId, Claim, Due, DynQueue, Event, Features, Heartbeat, InboxMessage, LeaseNumber, ListQuery,
    LogId, Meta, Page, ParkedLog, Queue, QueueOverview, RecoveredEvents, Store, StoreError, WorkerInfo,
};
use polylogue_store::parts::{Batch, ClaimGuard};

use crate::address::Address;
use crate::database::Database;
use crate::live_point::LivePoint;
use crate::logs::Logs;
use crate::migrate::{Migrated, migrate};
use crate::schema::{FORMAT, FORMATS, Formats};
use crate::thread::Thread;

/// Logs in Postgres.
///
/// Cloning is not possible: a store is one holder of claims, which are released when it is dropped. Statements run on a thread of the
/// store, so it needs no runtime. Dropping a future does not undo its operation, except that a claim that the caller did not receive
/// is released.
#[derive(derive_more::Debug)]
#[debug("Postgres {{ address: {:?}, .. }}", self.inner.database.address())]
pub struct Postgres {
    thread: Thread,
    inner: Arc<Logs>,
}

/// How long a store that is dropped waits for the release of its claims. Otherwise they expire.
const FAREWELL: Duration = Duration::from_secs(3);

impl Postgres {
    /// The format of the tables.
    pub const FORMAT: u64 = FORMAT;

    /// The tenant whose logs a store has by default.
    pub const LOCAL: &str = "local";

    /// Opens the logs in the database at `address`. It is connected to on first use, which creates the tables if there are none.
    ///
    /// # Errors
    /// When no thread can be started.
    pub fn open(address: Address) -> Result<Self, StoreError> {
        Self::open_with(address, FORMATS)
    }

    /// Opens the logs as [`open`](Self::open) for a version with these migrations.
    pub(crate) fn open_with(address: Address, formats: Formats) -> Result<Self, StoreError> {
        let thread = Thread::start("polylogue-postgres", &address)?;
        let inner = Logs::new(Database::of_formats(address, formats), Self::LOCAL);
        Ok(Self { thread, inner: Arc::new(inner) })
    }

    /// Returns the store of a tenant's logs: no query reaches those of others. Default: [`LOCAL`](Self::LOCAL).
    ///
    /// # Errors
    /// When it is in use.
    pub fn of_tenant(mut self, name: &str) -> Result<Self, StoreError> {
        let place = self.inner.place();
        let in_use = || StoreError::Io { place, why: "it is in use by another tenant".into() };
        Arc::get_mut(&mut self.inner).ok_or_else(in_use)?.tenant = name.to_owned();
        Ok(self)
    }

    /// Sets the address at which others follow what this store runs. Default: nowhere, so that they read what is stored.
    ///
    /// # Errors
    /// When it is in use.
    pub fn with_live(mut self, point: LivePoint) -> Result<Self, StoreError> {
        let place = self.inner.place();
        let in_use = || StoreError::Io { place, why: "it is in use already".into() };
        Arc::get_mut(&mut self.inner).ok_or_else(in_use)?.live = Some(point);
        Ok(self)
    }

    /// Connects, and returns warnings about a database that can be used: it is slow, or a failover may lose events.
    ///
    /// # Errors
    /// [`StoreError::Unreachable`]; [`StoreError::Unsuitable`] when it would lose acknowledged events, is a replica, is read-only,
    /// has another isolation level than read committed, or lacks a table; [`StoreError::Newer`], [`StoreError::Older`], [`StoreError::Foreign`].
    pub async fn check(&self) -> Result<Vec<String>, StoreError> {
        self.run(|inner| async move { inner.database.warnings().await }).await
    }

    /// Migrates the tables of an earlier version to the format of this one, in one transaction: if that fails at any point, nothing has
    /// changed. Several calls at once migrate once. Processes of earlier versions lose their claims, and cannot write any more.
    ///
    /// # Errors
    /// As [`check`](Self::check), except for tables that can be migrated; [`StoreError::Unsuitable`] also while another program has
    /// locked the tables.
    ///
    /// ```no_run
    /// # use polylogue_postgres::{Address, Postgres};
    /// # async fn example() -> Result<(), Box<dyn std::error::Error>> {
    /// let store = Postgres::open(Address::parse("postgres://polylogue@db.example.com/polylogue")?)?;
    /// let migrated = store.migrate().await?;
    /// println!("from format {} to format {}", migrated.from, migrated.to);
    /// # Ok(())
    /// # }
    /// ```
    pub async fn migrate(&self) -> Result<Migrated, StoreError> {
        self.run(|logs| async move {
            let migrated = migrate(&logs.database).await;
            migrated.map_err(|failure| failure.give_up(logs.database.address()))
        })
        .await
    }

    /// Runs an operation on the thread of the store.
    async fn run<T, F>(&self, operation: impl FnOnce(Arc<Logs>) -> F) -> Result<T, StoreError>
    where
        T: Send + 'static,
        F: Future<Output = Result<T, StoreError>> + Send + 'static,
    {
        self.thread.run(operation(Arc::clone(&self.inner))).await
    }

    /// As [`run`](Self::run), for a claim: it is released if the caller does not receive it.
    async fn claiming<F>(&self, operation: impl FnOnce(Arc<Logs>) -> F) -> Result<Claim, StoreError>
    where
        F: Future<Output = Result<Claim, StoreError>> + Send + 'static,
    {
        let (inner, handle) = (Arc::clone(&self.inner), self.thread.handle.clone());
        let claimed = operation(Arc::clone(&self.inner));
        let guarded = self.run(move |_| async move {
            let claim = claimed.await?;
            Ok(ClaimGuard::new(claim, move |claim| {
                let claim = claim.clone();
                // One that is not released expires.
                handle.spawn(async move { drop(inner.release(&claim).await) });
            }))
        });
        guarded.await.map(ClaimGuard::accept)
    }
}

impl Drop for Postgres {
    fn drop(&mut self) {
        if !self.inner.held().is_empty() {
            let (inner, (done, released)) = (Arc::clone(&self.inner), mpsc::channel());
            self.thread.handle.spawn(async move {
                drop(inner.release_all().await);
                // Fails only when it took too long.
                let _ = done.send(());
            });
            let _ = released.recv_timeout(FAREWELL);
        }
    }
}

impl From<Postgres> for AnyStore {
    fn from(store: Postgres) -> Self {
        Self::new(store)
    }
}

impl Store for Postgres {
    async fn create(&self, id: &LogId, meta: &Meta) -> Result<Claim, StoreError> {
        let (id, meta) = (id.clone(), meta.clone());
        self.claiming(|inner| async move { inner.create(&id, &meta).await }).await
    }

    async fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        let id = id.clone();
        self.claiming(|inner| async move { inner.claim(&id).await }).await
    }

    async fn holder(&self, id: &LogId) -> Result<Option<String>, StoreError> {
        let id = id.clone();
        self.run(|inner| async move { inner.holder(&id).await }).await
    }

    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        let (batch, claim) = (Batch::new(&claim.id, batch)?, claim.clone());
        self.run(|inner| async move {
            inner.append(&claim, batch).await?;
            inner.announcements.announce(&inner.database);
            Ok(())
        })
        .await
    }

    async fn release(&self, claim: Claim) -> Result<(), StoreError> {
        self.run(|inner| async move { inner.release(&claim).await }).await
    }

    async fn read_range(&self, id: &LogId, range: Range<u64>) -> Result<Vec<Event>, StoreError> {
        let id = id.clone();
        self.run(|inner| async move { inner.read(&id, range).await }).await
    }

    async fn read_intact(&self, id: &LogId) -> Result<RecoveredEvents, StoreError> {
        let id = id.clone();
        self.run(|inner| async move { inner.read_intact(&id).await }).await
    }

    async fn meta(&self, id: &LogId) -> Result<Meta, StoreError> {
        let id = id.clone();
        self.run(|inner| async move { inner.meta(&id).await }).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        let query = query.clone();
        self.run(|inner| async move { inner.list(&query).await }).await
    }

    async fn count(&self) -> Result<u64, StoreError> {
        self.run(|inner| async move { inner.count().await }).await
    }

    async fn remove(&self, id: &LogId) -> Result<(), StoreError> {
        let id = id.clone();
        self.run(|inner| async move { inner.remove(&id).await }).await
    }

    async fn archive(&self, id: &LogId) -> Result<bool, StoreError> {
        let id = id.clone();
        self.run(|logs| async move { logs.archive(&id).await.map(|()| true) }).await
    }

    async fn renew(&self, claim: &Claim) -> Result<(), StoreError> {
        let claim = claim.clone();
        self.run(|inner| async move { inner.renew(&claim).await }).await
    }

    /// As [`claim`](Store::claim), which takes logs whose leases have expired for a minute, because a process that has died cannot be told
    /// from one that is stopped, and the clock of the database may jump. This one goes by that clock.
    async fn take_over(&self, id: &LogId) -> Result<Claim, StoreError> {
        let id = id.clone();
        self.claiming(|inner| async move { inner.take_over(&id).await }).await
    }

    async fn post(&self, id: &LogId, message: &InboxMessage) -> Result<u64, StoreError> {
        let (id, message) = (id.clone(), message.clone());
        self.run(|inner| async move { inner.post(&id, &message).await }).await
    }

    async fn inbox(&self, id: &LogId, after: u64) -> Result<Vec<(u64, InboxMessage)>, StoreError> {
        let id = id.clone();
        self.run(|inner| async move { inner.inbox(&id, after).await }).await
    }

    async fn posted_with(&self, key: &str) -> Result<Option<LogId>, StoreError> {
        let key = key.to_owned();
        self.run(|inner| async move { inner.posted_with(&key).await }).await
    }

    async fn reserve_key(&self, key: &str, request: &str) -> Result<String, StoreError> {
        let (key, request) = (key.to_owned(), request.to_owned());
        self.run(|logs| async move { logs.reserve_key(&key, &request).await }).await
    }

    async fn inbox_news(&self, id: &LogId) -> Result<bool, StoreError> {
        let logs = &self.inner;
        logs.notifications.listen(&self.thread.handle, &logs.database, &logs.node);
        Ok(logs.notifications.news(id).await)
    }

    async fn store_blob(&self, id: &LogId, blob: &BlobId, bytes: &[u8]) -> Result<bool, StoreError> {
        let (id, blob, bytes) = (id.clone(), blob.clone(), bytes.to_vec());
        self.run(|logs| async move { logs.store_blob(&id, &blob, &bytes).await.map(|()| true) }).await
    }

    async fn stored_blob(&self, id: &LogId, blob: &BlobId) -> Result<Option<Arc<[u8]>>, StoreError> {
        let (id, blob) = (id.clone(), blob.clone());
        self.run(|logs| async move { logs.stored_blob(&id, &blob).await }).await
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.run(|logs| async move { logs.check_writable().await }).await
    }

    async fn repair(&self, id: &LogId) -> Result<u64, StoreError> {
        let id = id.clone();
        self.run(|inner| async move { inner.repair(&id).await }).await
    }

    fn as_queue(&self) -> Option<&dyn DynQueue> {
        Some(self)
    }
}

impl Queue for Postgres {
    async fn claim_due(
        &self,
        room: usize,
        offers: &Features,
        except: &[LogId],
        ended: LeaseNumber,
    ) -> Result<Vec<Claim>, StoreError> {
        let (offers, except) = (offers.clone(), except.to_vec());
        // Claims that the caller does not receive expire.
        self.run(|logs| async move { logs.claim_due(room, &offers, &except, ended).await }).await
    }

    async fn last_lease(&self) -> Result<LeaseNumber, StoreError> {
        self.run(|logs| async move { logs.last_lease().await }).await
    }

    async fn release_at_rest(&self, claim: Claim, due: Due) -> Result<(), StoreError> {
        self.run(|logs| async move { logs.release_at_rest(&claim, due).await }).await
    }

    async fn release_until(&self, claim: Claim, due: Due) -> Result<(), StoreError> {
        self.run(|logs| async move { logs.release_until(&claim, due).await }).await
    }

    async fn release_failed(&self, claim: Claim, due: Due, why: &str) -> Result<(), StoreError> {
        let why = why.to_owned();
        self.run(|logs| async move { logs.release_failed(&claim, due, &why).await }).await
    }

    async fn release_to_others(&self, claim: Claim, why: &str) -> Result<(), StoreError> {
        let why = why.to_owned();
        self.run(|logs| async move { logs.release_to_others(&claim, &why).await }).await
    }

    async fn schedule(&self, id: &LogId, due: Due, needs: Option<&Features>) -> Result<(), StoreError> {
        let (id, needs) = (id.clone(), needs.cloned());
        self.run(|logs| async move { logs.schedule(&id, due, needs.as_ref()).await }).await
    }

    async fn set_needs(&self, id: &LogId, needs: &Features) -> Result<(), StoreError> {
        let (id, needs) = (id.clone(), needs.clone());
        self.run(|logs| async move { logs.set_needs(&id, &needs).await }).await
    }

    async fn needs(&self, id: &LogId) -> Result<Features, StoreError> {
        let id = id.clone();
        self.run(|logs| async move { logs.needs(&id).await }).await
    }

    async fn is_queued(&self, id: &LogId) -> Result<bool, StoreError> {
        let id = id.clone();
        self.run(|logs| async move { logs.is_queued(&id).await }).await
    }

    async fn continue_if_lost(&self, claim: &Claim) -> Result<(), StoreError> {
        let claim = claim.clone();
        self.run(|logs| async move { logs.continue_if_lost(&claim).await }).await
    }

    async fn heartbeat(&self, claims: &[Claim]) -> Result<Vec<Heartbeat>, StoreError> {
        let claims = claims.to_vec();
        self.run(|logs| async move { logs.heartbeat(&claims).await }).await
    }

    async fn parked(&self) -> Result<Vec<ParkedLog>, StoreError> {
        self.run(|logs| async move { logs.parked().await }).await
    }

    async fn announce(&self, worker: Option<&WorkerInfo>) -> Result<(), StoreError> {
        let worker = worker.cloned();
        self.run(|logs| async move { logs.announce(worker.as_ref()).await }).await
    }

    async fn overview(&self, most: usize) -> Result<QueueOverview, StoreError> {
        self.run(|logs| async move { logs.overview(most).await }).await
    }
}
