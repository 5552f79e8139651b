//! Memories: stores of facts.

use std::pin::Pin;
use std::sync::Arc;

use polylogue_core::Meter;

use crate::facts::{Fact, MemoryError, Note, Query, Recalled, Scope};

/// A store of facts that outlive conversations. One value serves any number of conversations and scopes at once.
pub trait Memory: Send + Sync + 'static {
    /// Stores a fact. Idempotent: the same [`Source`](crate::Source) in the same scope is the same fact, whatever its text, so a
    /// call that is repeated by a resumed turn returns the fact stored first. So does a text that the scope already
    /// contains.
    ///
    /// # Errors
    /// [`MemoryError::Refused`] when the text is blank or too long, or the scope is full.
    fn remember(&self, note: &Note) -> impl Future<Output = Result<Fact, MemoryError>> + Send;

    /// Returns the facts of a scope that match best, best first. Any text is a query.
    ///
    /// # Errors
    /// When the memory cannot be read.
    fn recall(&self, query: &Query) -> impl Future<Output = Result<Recalled, MemoryError>> + Send;

    /// Recalls as [`recall`](Self::recall), for a tool: `meter` counts the usage of embedding models.
    ///
    /// # Errors
    /// As [`recall`](Self::recall).
    fn recall_metered(
        &self,
        query: &Query,
        meter: &Meter<'_>,
    ) -> impl Future<Output = Result<Recalled, MemoryError>> + Send {
        let _ = meter;
        self.recall(query)
    }

    /// Removes the fact `id` of a scope; returns whether it existed. Ids are never reused.
    ///
    /// # Errors
    /// When the memory cannot be written.
    fn forget(&self, scope: &Scope, id: u64) -> impl Future<Output = Result<bool, MemoryError>> + Send;

    /// Lists the facts of a scope, or of all, newest first, at most `limit`.
    ///
    /// # Errors
    /// When the memory cannot be read.
    fn list(
        &self,
        scope: Option<&Scope>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Fact>, MemoryError>> + Send;
}

/// A memory that stores nothing, for agents that are only inspected, never run.
#[derive(Debug, Clone, Copy, Default)]
pub struct Nothing;

impl Memory for Nothing {
    async fn remember(&self, _: &Note) -> Result<Fact, MemoryError> {
        Err(MemoryError::Refused("this memory keeps nothing".into()))
    }
    async fn recall(&self, _: &Query) -> Result<Recalled, MemoryError> {
        Ok(Recalled::default())
    }
    async fn forget(&self, _: &Scope, _: u64) -> Result<bool, MemoryError> {
        Ok(false)
    }
    async fn list(&self, _: Option<&Scope>, _: usize) -> Result<Vec<Fact>, MemoryError> {
        Ok(Vec::new())
    }
}

type Boxed<'a, T> = Pin<Box<dyn Future<Output = Result<T, MemoryError>> + Send + 'a>>;

/// Any memory. Cloning shares it.
#[derive(Clone, derive_more::Debug)]
#[debug("AnyMemory")]
pub struct AnyMemory(Arc<dyn ErasedMemory>);

trait ErasedMemory: Send + Sync {
    fn remember<'a>(&'a self, note: &'a Note) -> Boxed<'a, Fact>;
    fn recall<'a>(&'a self, query: &'a Query) -> Boxed<'a, Recalled>;
    fn recall_metered<'a>(&'a self, query: &'a Query, meter: &'a Meter<'_>) -> Boxed<'a, Recalled>;
    fn forget<'a>(&'a self, scope: &'a Scope, id: u64) -> Boxed<'a, bool>;
    fn list<'a>(&'a self, scope: Option<&'a Scope>, limit: usize) -> Boxed<'a, Vec<Fact>>;
}

impl<M: Memory> ErasedMemory for M {
    fn remember<'a>(&'a self, note: &'a Note) -> Boxed<'a, Fact> {
        Box::pin(Memory::remember(self, note))
    }
    fn recall<'a>(&'a self, query: &'a Query) -> Boxed<'a, Recalled> {
        Box::pin(Memory::recall(self, query))
    }
    fn recall_metered<'a>(&'a self, query: &'a Query, meter: &'a Meter<'_>) -> Boxed<'a, Recalled> {
        Box::pin(Memory::recall_metered(self, query, meter))
    }
    fn forget<'a>(&'a self, scope: &'a Scope, id: u64) -> Boxed<'a, bool> {
        Box::pin(Memory::forget(self, scope, id))
    }
    fn list<'a>(&'a self, scope: Option<&'a Scope>, limit: usize) -> Boxed<'a, Vec<Fact>> {
        Box::pin(Memory::list(self, scope, limit))
    }
}

impl AnyMemory {
    /// Wraps `memory`.
    pub fn new(memory: impl Memory) -> Self {
        Self(Arc::new(memory))
    }
}

impl Memory for AnyMemory {
    async fn remember(&self, note: &Note) -> Result<Fact, MemoryError> {
        self.0.remember(note).await
    }
    async fn recall(&self, query: &Query) -> Result<Recalled, MemoryError> {
        self.0.recall(query).await
    }
    async fn recall_metered(&self, query: &Query, meter: &Meter<'_>) -> Result<Recalled, MemoryError> {
        self.0.recall_metered(query, meter).await
    }
    async fn forget(&self, scope: &Scope, id: u64) -> Result<bool, MemoryError> {
        self.0.forget(scope, id).await
    }
    async fn list(&self, scope: Option<&Scope>, limit: usize) -> Result<Vec<Fact>, MemoryError> {
        self.0.list(scope, limit).await
    }
}
