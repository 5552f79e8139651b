//! Long-term memory: facts that agents keep beyond one conversation, their authors, and how they are found again.
//!
//! A conversation's log is what happened in it. A [`Memory`] is what agents store for later conversations. It changes
//! from run to run, so whatever an agent receives from it is logged, and a replay does not query it again.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{LogId, Meter, ModelError, Name, StoreError, Timestamp, ToolUsage};

/// A store of facts that outlive conversations. One value serves any number of conversations and scopes at once.
pub trait Memory: Send + Sync + 'static {
    /// Stores a fact. Idempotent: the same [`Source`] in the same scope is the same fact, whatever its text, so a
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

    /// As [`recall`](Self::recall), for a tool: `meter` counts the usage of embedding models.
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

/// The owner of facts: facts of one scope are not found in another. 1 to 200 bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scope(Arc<str>);

impl Scope {
    /// The maximum length in bytes.
    pub const MAX_BYTES: usize = 200;

    /// Makes a scope from any text that names its owner: a team, an agent, a user.
    ///
    /// # Errors
    /// When it is blank or too long, or has control characters.
    pub fn new(text: &str) -> Result<Self, MemoryError> {
        let text = text.trim();
        if text.is_empty() || text.len() > Self::MAX_BYTES || text.chars().any(char::is_control) {
            let rule = "must have 1 to 200 bytes, and no line ends";
            return Err(MemoryError::Refused(format!("the scope of a memory {rule}")));
        }
        Ok(Self(text.into()))
    }

    /// As text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl TryFrom<String> for Scope {
    type Error = MemoryError;
    fn try_from(text: String) -> Result<Self, MemoryError> {
        Self::new(&text)
    }
}

impl From<Scope> for String {
    fn from(scope: Scope) -> Self {
        scope.0.as_ref().to_owned()
    }
}

/// Where a fact was stored.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The conversation.
    pub conversation: LogId,
    /// A call within it. Unique within the conversation.
    pub call: String,
}

/// A fact to be stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// The scope.
    pub scope: Scope,
    /// The fact, understandable without the conversation.
    pub text: String,
    /// The author.
    pub by: Name,
    /// When: usually the time of the event that led to it, so that no clock is read.
    pub time: Timestamp,
    /// Where.
    pub source: Source,
}

impl Note {
    /// The maximum length of the text in characters.
    pub const MAX_CHARS: usize = 4_000;

    /// The stored text: without surrounding white space.
    ///
    /// # Errors
    /// [`MemoryError::Refused`] when it is blank or too long.
    pub fn checked(&self) -> Result<&str, MemoryError> {
        let text = self.text.trim();
        if text.is_empty() {
            return Err(MemoryError::Refused("there is nothing to remember: the text is empty".into()));
        }
        match text.chars().count() {
            0..=Self::MAX_CHARS => Ok(text),
            count => Err(MemoryError::Refused(format!(
                "the text has {count} characters, and a fact has at most {}",
                Self::MAX_CHARS
            ))),
        }
    }
}

/// A stored fact.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// Its id. Never reused, not even after the fact is removed.
    pub id: u64,
    /// The scope.
    pub scope: Scope,
    /// The fact.
    pub text: String,
    /// The author.
    pub by: Name,
    /// When.
    #[serde(rename = "time_ms")]
    pub time: Timestamp,
    /// Where.
    #[serde(flatten)]
    pub source: Source,
}

/// A search in a memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// The scope to search.
    pub scope: Scope,
    /// Any text.
    pub text: String,
    /// The maximum number of facts.
    pub limit: usize,
}

impl Query {
    /// The maximum of `limit`.
    pub const MAX_LIMIT: usize = 50;
}

/// The result of a search.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recalled {
    /// The facts, best first.
    pub facts: Vec<Fact>,
    /// Why part of the search failed, such as that the embedding endpoint is down.
    pub missed: Option<String>,
    /// The usage of the embedding model.
    pub used: Option<ToolUsage>,
}

/// Why a memory operation failed.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// The request breaks a rule. The text is for a model to act on.
    #[error("{0}")]
    Refused(String),
    /// The store failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The embedding model failed, and nothing can be done without it.
    #[error(transparent)]
    Embed(#[from] ModelError),
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
#[derive(Clone)]
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

impl fmt::Debug for AnyMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("AnyMemory")
    }
}
