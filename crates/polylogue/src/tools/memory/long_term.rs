//! A memory with its scope.

use polylogue_core::{Agent, AnyTool};

use super::tools::{Forget, Recall, Remember};
use super::{AnyMemory, Reminded, Scope};

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

    /// The tools `remember`, `recall` and `forget`. All are repeatable: remembering or forgetting twice has no further
    /// effect. Calls in one message run in parallel; `Queue` of `polylogue-tools` runs them one after the other.
    #[must_use]
    pub fn tools(&self) -> Vec<AnyTool> {
        vec![AnyTool::new(Remember::of(self)), AnyTool::new(Recall::of(self)), AnyTool::new(Forget::of(self))]
    }

    /// `agent`, prompted before each turn with at most `facts` facts that match the last message.
    #[must_use]
    pub fn reminds<A: Agent>(&self, agent: A, facts: usize) -> Reminded<A> {
        Reminded::new(agent, self.clone(), facts)
    }
}
