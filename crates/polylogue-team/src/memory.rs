//! What a team file says of what is remembered from one conversation to the next.

use polylogue::memory::{LongTerm, MemoryError, Scope};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::team::{Agent, Team};
use crate::text::{ModelText, OptionText};

/// Whose memory the agents with `memory` have, and how things are found in it.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(rename = "TeamMemory")]
pub struct TeamMemory {
    /// Whose it is: teams that say the same share it. The team's name when left out; `user {{user}}` gives every value of a
    /// variable a memory of its own.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub scope: Option<String>,
    /// A model that makes vectors of texts, as `provider:model`: then things are found by what they mean, too. By their words
    /// when left out. Of a team within a team it does not count.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<ModelText>")]
    pub embed: Option<String>,
}

impl TeamMemory {
    pub(crate) fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// What an agent remembers from one conversation to the next, and how.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "MemoryForm")]
#[schemars(inline, with = "MemoryForm")]
pub struct AgentMemory {
    /// Whether it has the tools `remember`, `recall` and `forget`.
    pub tools: bool,
    /// How many facts it is reminded of before it speaks.
    pub recalls: u32,
    /// Whether its memory is its own, and not that of the team.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub own: bool,
}

impl AgentMemory {
    /// Whether it remembers nothing.
    #[must_use]
    pub const fn is_off(&self) -> bool {
        !self.tools && self.recalls == 0
    }
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum MemoryForm {
    /// Whether it has the tools, and is reminded of up to five facts.
    Switch(bool),
    /// How it does.
    Full(FullMemory),
}

/// What an agent remembers from one conversation to the next, and how.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "Memory")]
struct FullMemory {
    /// Whether it has the tools `remember`, `recall` and `forget`; true when left out.
    #[serde(default)]
    tools: Option<bool>,
    /// Of how many facts that match what was said last it is reminded before it speaks, 5 when left out; of none by 0.
    #[serde(default)]
    #[schemars(range(min = 0, max = 50))]
    recalls: Option<u32>,
    /// Whether its memory is its own, and not that of the team.
    #[serde(default)]
    own: bool,
}

impl From<MemoryForm> for AgentMemory {
    fn from(form: MemoryForm) -> Self {
        let facts = u32::try_from(LongTerm::DEFAULT_FACTS).unwrap_or(u32::MAX);
        match form {
            MemoryForm::Switch(false) => Self::default(),
            MemoryForm::Switch(true) => Self { tools: true, recalls: facts, own: false },
            MemoryForm::Full(FullMemory { tools, recalls, own }) => {
                Self { tools: tools.unwrap_or(true), recalls: recalls.unwrap_or(facts), own }
            }
        }
    }
}

impl Team {
    /// Whether an agent of the team, or of those within it, remembers something beyond its conversation: then it is built with a
    /// [memory](crate::Workplace::with_memory).
    #[must_use]
    pub fn needs_memory(&self) -> bool {
        self.agents.iter().any(|agent| !agent.memory.is_off())
            || self.teams.iter().any(|sub| sub.team.needs_memory())
    }

    /// Whose facts `agent` has.
    pub(crate) fn scope_of(&self, agent: &Agent) -> Result<Scope, MemoryError> {
        let team = self.memory.scope.as_deref().unwrap_or(self.name.as_str());
        match agent.memory.own {
            true => Scope::new(&format!("{team}/{}", agent.name)),
            false => Scope::new(team),
        }
    }
}
