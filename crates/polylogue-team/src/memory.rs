//! Long-term memory.

use polylogue::tools::memory::LongTerm;
use polylogue_config::{At, Config};

use crate::text::ModelText;

/// Long-term memory of a team.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
pub struct TeamMemory {
    /// Name of the memory. Teams with the same scope share it; `user {{user}}` gives each value of a variable its own
    /// memory.
    #[key(none = "the team's name", nonempty)]
    pub scope: Option<At<String>>,
    /// Embedding model, as `provider:model`, with which facts are also found by meaning. Ignored in a team within a
    /// team.
    #[key(as = Option<ModelText>, none = "facts are found by words only")]
    pub embed: Option<String>,
}

/// Long-term memory of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Memory")]
pub struct AgentMemory {
    /// Adds the tools `remember`, `recall` and `forget`.
    #[key(default = true)]
    pub tools: bool,
    /// Number of facts that match the last message and are added before each reply.
    #[key(default = LongTerm::DEFAULT_FACTS, range = 0..=50)]
    pub auto_recall: usize,
    /// Uses a private memory instead of the team's.
    #[key(default = false)]
    pub private: bool,
}
