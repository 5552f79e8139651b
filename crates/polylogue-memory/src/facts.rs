//! Facts, and how they are stored and found.

use std::fmt;
use std::sync::Arc;

use polylogue_core::{LogId, ModelError, Name, StoreError, Timestamp, ToolUsage};
use serde::{Deserialize, Serialize};

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
            let rule = "must have 1 to 200 bytes, and no control characters";
            return Err(MemoryError::Refused(format!("the scope of a memory {rule}")));
        }
        Ok(Self(text.into()))
    }

    /// Returns the scope as text.
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
    /// The time: usually the time of the event that led to it, so that no clock is read.
    pub time: Timestamp,
    /// The conversation and call in which it was made.
    pub source: Source,
}

impl Note {
    /// The maximum length of the text in characters.
    pub const MAX_CHARS: usize = 4_000;

    /// Returns the stored text: without surrounding white space.
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
    /// The id. Never reused, not even after the fact is removed.
    pub id: u64,
    /// The scope.
    pub scope: Scope,
    /// The fact.
    pub text: String,
    /// The author.
    pub by: Name,
    /// The time of the note.
    #[serde(rename = "time_ms")]
    pub time: Timestamp,
    /// The conversation and call in which it was made.
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
    /// The part of the search that failed and why, as a phrase: `looked for by words only: the embedding endpoint is down`.
    pub missed: Option<String>,
    /// The usage of the embedding model.
    pub used: Option<ToolUsage>,
}

impl Recalled {
    /// How [`missed`](Self::missed) says that facts were found by their words, and not by their meaning.
    pub const WORDS_ONLY: &str = "looked for by words only";
}

/// The reason why a memory operation failed.
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
