//! A memory with its scope.

use polylogue_memory::{AnyMemory, Scope};

/// A memory that outlives conversations, with its scope. Clones share the memory.
#[derive(Debug, Clone)]
pub struct LongTerm {
    pub(super) memory: AnyMemory,
    pub(super) scope: Scope,
}

impl LongTerm {
    /// Default number of facts to recall.
    pub const DEFAULT_FACTS: usize = 5;

    /// The facts of `scope` in `memory`.
    #[must_use]
    pub const fn new(memory: AnyMemory, scope: Scope) -> Self {
        Self { memory, scope }
    }

    /// The scope of the facts.
    #[must_use]
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }
}
