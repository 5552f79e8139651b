//! Long-term memory.

use polylogue::tools::memory::{LongTerm, MemoryError, Scope};
use polylogue_config::{At, Config};
use polylogue_core::Name;

use crate::agent::Agent;
use crate::team::Team;
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

impl Team {
    /// Whether an agent of the team or of a team within it has long-term memory. Then the team must be built with a
    /// [memory](crate::BuildContext::with_memory).
    #[must_use]
    pub fn needs_memory(&self) -> bool {
        self.agents.iter().any(|agent| agent.memory().is_some())
            || self.teams.iter().any(|sub| sub.team.needs_memory())
    }

    /// The memory scope of the agent `name`, whose memory has these settings.
    pub(crate) fn memory_scope(&self, name: &Name, memory: &AgentMemory) -> Result<Scope, MemoryError> {
        let team = self.memory.scope.as_ref().map_or(self.name.as_str(), |scope| scope.as_str());
        match memory.private {
            true => Scope::new(&format!("{team}/{name}")),
            false => Scope::new(team),
        }
    }
}

impl Agent {
    /// The settings of its memory, if it has one.
    pub(crate) fn memory(&self) -> Option<&AgentMemory> {
        self.model()?.memory.on().filter(|memory| memory.tools || memory.auto_recall > 0)
    }
}
