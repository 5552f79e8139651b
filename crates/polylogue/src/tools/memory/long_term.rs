//! A memory, and whose it is.

use polylogue_core::{Agent, AnyTool};

use super::tools::{Forget, Recall, Remember};
use super::{AnyMemory, Reminded, Scope};

/// A memory that outlives conversations, and whose it is. Cloning shares the memory.
#[derive(Debug, Clone)]
pub struct LongTerm {
    pub(super) memory: AnyMemory,
    pub(super) scope: Scope,
}

impl LongTerm {
    /// How many facts are recalled when nobody names a number.
    pub const DEFAULT_FACTS: usize = 5;

    /// The facts of `scope` in `memory`.
    #[must_use]
    pub const fn new(memory: AnyMemory, scope: Scope) -> Self {
        Self { memory, scope }
    }

    /// Whose facts they are.
    #[must_use]
    pub const fn scope(&self) -> &Scope {
        &self.scope
    }

    /// The tools `remember`, `recall` and `forget`. All of them may be called again: remembering or forgetting twice is doing
    /// it once. Those of one message are called at the same time; `Queue` of `polylogue-tools` makes them follow one another.
    #[must_use]
    pub fn tools(&self) -> Vec<AnyTool> {
        vec![AnyTool::new(Remember::of(self)), AnyTool::new(Recall::of(self)), AnyTool::new(Forget::of(self))]
    }

    /// `agent`, told before it speaks of at most `facts` that match what it was told last.
    #[must_use]
    pub fn reminds<A: Agent>(&self, agent: A, facts: usize) -> Reminded<A> {
        Reminded::new(agent, self.clone(), facts)
    }
}
