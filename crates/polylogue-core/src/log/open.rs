//! Creating, opening and releasing logs.

use super::buffer::EventBuffer;
use super::in_memory::InMemory;
use super::{AnyStore, Claim, Due, Log, Meta, Queue as _, Store as _};
use crate::{Event, LogId, Result, StoreError};

impl Log {
    /// Creates a conversation in memory only, gone when it is dropped.
    pub fn in_memory() -> Self {
        let claim = InMemory::claim();
        Self::new(AnyStore::new(InMemory::default()), claim.id.clone(), claim, EventBuffer::default())
    }

    /// Creates a conversation in memory with the `events` of another one, in the state in which a process opens that one. For
    /// reading, not for continuing it.
    pub fn from_events(events: Vec<Event>) -> Self {
        let claim = InMemory::claim();
        let mut buffer = EventBuffer::default();
        buffer.take_in(events);
        Self::new(AnyStore::new(InMemory::default()), claim.id.clone(), claim, buffer)
    }

    /// Creates a conversation in `store`.
    ///
    /// # Errors
    /// When `id` is illegal or exists, or the store cannot be written.
    pub async fn create<I: TryInto<LogId>>(store: impl Into<AnyStore>, id: I) -> Result<Self>
    where
        StoreError: From<I::Error>,
    {
        Self::create_with(store, id, &Meta::default()).await
    }

    /// Creates a log like [`create`](Self::create), with a title and what else is needed to run it again.
    ///
    /// # Errors
    /// As [`create`](Self::create).
    pub async fn create_with<I: TryInto<LogId>>(
        store: impl Into<AnyStore>,
        id: I,
        meta: &Meta,
    ) -> Result<Self>
    where
        StoreError: From<I::Error>,
    {
        let (store, id) = (store.into(), id.try_into().map_err(StoreError::from)?);
        let claim = store.create(&id, meta).await?;
        Ok(Self::new(store, id, claim, EventBuffer::default()))
    }

    /// Opens a conversation in `store` to continue it.
    ///
    /// # Errors
    /// When `id` does not exist, another process runs it, or it is damaged.
    pub async fn open<I: TryInto<LogId>>(store: impl Into<AnyStore>, id: I) -> Result<Self>
    where
        StoreError: From<I::Error>,
    {
        let (store, id) = (store.into(), id.try_into().map_err(StoreError::from)?);
        let claim = store.claim(&id).await?;
        Self::of_claim(store, id, claim).await
    }

    /// Opens a conversation even if another process has claimed it, once that lease has expired because the process
    /// is stopped or hangs. That process is fenced: its further appends are rejected.
    ///
    /// # Errors
    /// As [`open`](Self::open); [`StoreError::Busy`] while the lease lasts.
    pub async fn take_over<I: TryInto<LogId>>(store: impl Into<AnyStore>, id: I) -> Result<Self>
    where
        StoreError: From<I::Error>,
    {
        let (store, id) = (store.into(), id.try_into().map_err(StoreError::from)?);
        let claim = store.take_over(&id).await?;
        Self::of_claim(store, id, claim).await
    }

    /// Opens the conversation of a claim, as a worker receives it from a [`Queue`](crate::Queue).
    ///
    /// # Errors
    /// When it cannot be read; its claim is released.
    pub async fn open_claimed(store: impl Into<AnyStore>, claim: Claim) -> Result<Self> {
        Self::of_claim(store.into(), claim.id.clone(), claim).await
    }

    /// Returns how many events it had when it was opened.
    pub const fn inherited_events(&self) -> u64 {
        self.inherited
    }

    /// Releases the claim. Dropping a log does so too, but cannot report errors.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn release(mut self) -> Result<()> {
        self.released = true;
        Ok(self.store.release(self.claim.clone()).await?)
    }

    /// Releases the log like [`release`](Self::release), after a run that has ended: if workers had to look at it, as after one that
    /// was handed over to them, they do so at `due` only, or when an inbox message comes.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn release_at_rest(mut self, due: Due) -> Result<()> {
        self.released = true;
        match self.store.queue() {
            Some(queue) => queue.release_at_rest(self.claim.clone(), due).await?,
            None => self.store.release(self.claim.clone()).await?,
        }
        Ok(())
    }

    /// Lets workers continue it if this process loses its claim, such as by dying:
    /// [`Queue::continue_if_lost`](crate::Queue::continue_if_lost).
    ///
    /// # Errors
    /// When the store cannot be written, or is no queue.
    pub async fn continue_if_lost(&self) -> Result<()> {
        let queue = self.store.queue().ok_or_else(crate::AnyQueue::not_a_queue)?;
        Ok(queue.continue_if_lost(&self.claim).await?)
    }

    /// Confirms that the claim is valid before a call begins.
    pub(crate) async fn confirm_claim(&self) -> Result<()> {
        Ok(self.store.confirm(&self.claim).await?)
    }

    async fn of_claim(store: AnyStore, id: LogId, claim: Claim) -> Result<Self> {
        match store.read(&id, 0).await {
            Ok(events) => {
                let mut buffer = EventBuffer::default();
                buffer.take_in(events);
                Ok(Self::new(store, id, claim, buffer))
            }
            Err(error) => {
                // The damage is the error that counts.
                let _ = store.release(claim).await;
                Err(error.into())
            }
        }
    }
}
