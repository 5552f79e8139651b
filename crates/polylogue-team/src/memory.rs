//! Long-term memory.

use polylogue::memory::{LongTerm, MemoryError, Scope};
use polylogue_config::{As, Config, Switch};
use serde::{Deserialize, Serialize};

use crate::team::{Agent, Team};
use crate::text::ModelText;

/// Long-term memory of a team.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub struct TeamMemory {
    /// Name of the memory. Teams with the same scope share it; `user {{user}}` gives each value of a variable its own
    /// memory.
    #[key(none = "the team's name", nonempty)]
    pub scope: Option<String>,
    /// Embedding model, as `provider:model`, with which facts are also found by meaning. Ignored in a team within a
    /// team.
    #[key(as = Option<ModelText>, none = "facts are found by words only")]
    pub embed: Option<String>,
}

/// Settings of an agent's long-term memory.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct AgentMemory {
    /// Whether it has the tools `remember`, `recall` and `forget`.
    pub tools: bool,
    /// How many facts are recalled before it speaks.
    pub recalls: u32,
    /// Whether its memory is private, not the team's.
    pub own: bool,
}

impl AgentMemory {
    /// Whether it remembers nothing.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        !self.tools && self.recalls == 0
    }
}

/// Long-term memory of an agent.
#[derive(Config)]
pub(crate) struct Memory {
    /// Adds the tools `remember`, `recall` and `forget`.
    #[key(default = true)]
    tools: bool,
    /// Number of facts that match the last message and are added before each reply.
    #[key(default = facts(), range = 0..=50)]
    auto_recall: u32,
    /// Uses a private memory instead of the team's.
    #[key(default = false)]
    private: bool,
}

fn facts() -> u32 {
    u32::try_from(LongTerm::DEFAULT_FACTS).unwrap_or(u32::MAX)
}

impl As<AgentMemory> for Switch<Memory> {
    fn into_value(self) -> AgentMemory {
        match self {
            Self::Off => AgentMemory::default(),
            Self::On(Memory { tools, auto_recall: recalls, private: own }) => {
                AgentMemory { tools, recalls, own }
            }
        }
    }

    fn from_value(value: &AgentMemory) -> Self {
        if value.is_off() && !value.own {
            return Self::Off;
        }
        let AgentMemory { tools, recalls, own } = *value;
        Self::On(Memory { tools, auto_recall: recalls, private: own })
    }
}

impl Team {
    /// Whether an agent of the team or of a team within it has long-term memory. Then the team must be built with a
    /// [memory](crate::BuildContext::with_memory).
    #[must_use]
    pub fn needs_memory(&self) -> bool {
        self.agents.iter().any(|agent| !agent.memory.is_off())
            || self.teams.iter().any(|sub| sub.team.needs_memory())
    }

    /// The memory scope of `agent`.
    pub(crate) fn scope_of(&self, agent: &Agent) -> Result<Scope, MemoryError> {
        let team = self.memory.scope.as_deref().unwrap_or(self.name.as_str());
        match agent.memory.own {
            true => Scope::new(&format!("{team}/{}", agent.name)),
            false => Scope::new(team),
        }
    }
}
