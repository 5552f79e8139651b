//! What is remembered beyond one conversation: facts, who wrote them down, and how they are found again.
//!
//! A conversation's log is what happened in it. A [`Memory`] is what agents wrote down for later conversations: it
//! changes from run to run, so whatever an agent is told of it is in the log, and a log that is run again does not look
//! into it anew.

use std::fmt;
use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{LogId, Meter, ModelError, Name, StoreError, Timestamp, ToolUsage};

/// Facts that outlive conversations. One value serves any number of conversations and scopes at once.
pub trait Memory: Send + Sync + 'static {
    /// Keeps a fact. The same [`Source`] in the same scope is the same fact, whatever it says: who asks twice, as a resumed
    /// turn may, is given what was kept the first time. So is who says what a fact of the scope says already.
    ///
    /// # Errors
    /// [`MemoryError::Refused`] when the text is blank or too long, or the scope is full.
    fn remember(&self, note: &Note) -> impl Future<Output = Result<Fact, MemoryError>> + Send;

    /// The facts of a scope that match best, best first. Any text is a query.
    ///
    /// # Errors
    /// When the memory cannot be read.
    fn recall(&self, query: &Query) -> impl Future<Output = Result<Recalled, MemoryError>> + Send;

    /// The same for a tool, whose `meter` counts what models take that are asked for it.
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

    /// Removes the fact `id` of a scope; whether there was one. Ids are never given to another fact.
    ///
    /// # Errors
    /// When the memory cannot be written.
    fn forget(&self, scope: &Scope, id: u64) -> impl Future<Output = Result<bool, MemoryError>> + Send;

    /// The facts of a scope, or of all, newest first, at most `limit`.
    ///
    /// # Errors
    /// When the memory cannot be read.
    fn list(
        &self,
        scope: Option<&Scope>,
        limit: usize,
    ) -> impl Future<Output = Result<Vec<Fact>, MemoryError>> + Send;
}

/// Whose facts: what is remembered in one scope is not found in another. 1 to 200 bytes without control characters.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Scope(Arc<str>);

impl Scope {
    /// The longest, in bytes.
    pub const MAX_BYTES: usize = 200;

    /// Any text that says whose: of a team, an agent, a user.
    ///
    /// # Errors
    /// When it is blank or too long, or has control characters.
    pub fn new(text: &str) -> Result<Self, MemoryError> {
        let text = text.trim();
        if text.is_empty() || text.len() > Self::MAX_BYTES || text.chars().any(char::is_control) {
            let rule = "has to have 1 to 200 bytes, and no line ends";
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

/// Where a fact was written down.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Source {
    /// The conversation.
    pub conversation: LogId,
    /// Which call within it: no other call of the conversation has the same.
    pub call: String,
}

/// What is to be remembered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Note {
    /// Whose memory.
    pub scope: Scope,
    /// The fact, in words that are understood without the conversation.
    pub text: String,
    /// Who writes it down.
    pub by: Name,
    /// When: as a rule the time of the event that led to it, so that nothing reads a clock.
    pub time: Timestamp,
    /// Where.
    pub source: Source,
}

impl Note {
    /// The longest text, in characters.
    pub const MAX_CHARS: usize = 4_000;

    /// The text as it is kept: without space around it.
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

/// What is remembered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Fact {
    /// What it is called: never that of another fact, not even of one that is forgotten.
    pub id: u64,
    /// Whose memory it is in.
    pub scope: Scope,
    /// The fact.
    pub text: String,
    /// Who wrote it down.
    pub by: Name,
    /// When.
    #[serde(rename = "time_ms")]
    pub time: Timestamp,
    /// Where.
    #[serde(flatten)]
    pub source: Source,
}

/// What is looked for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Query {
    /// In whose memory.
    pub scope: Scope,
    /// Any words.
    pub text: String,
    /// How many facts at most.
    pub limit: usize,
}

impl Query {
    /// How many facts are given at most, whatever is asked for.
    pub const MAX_LIMIT: usize = 50;
}

/// What was found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Recalled {
    /// The facts, best first.
    pub facts: Vec<Fact>,
    /// Why it was not looked for in every way: the endpoint of embeddings failed, say.
    pub missed: Option<String>,
    /// What embedding took.
    pub used: Option<ToolUsage>,
}

/// Why a memory could not do what was asked.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum MemoryError {
    /// What was asked for is against a rule, in words a model can act on.
    #[error("{0}")]
    Refused(String),
    /// The place where it is kept failed.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Embedding failed where nothing can be done without it.
    #[error(transparent)]
    Embed(#[from] ModelError),
}

/// A memory that holds nothing and keeps nothing: for agents that are looked at, and never run.
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
