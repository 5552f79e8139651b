//! Long-term memory.

use polylogue::Assistant;
use polylogue::tools::memory::{LongTermMemory, MemoryError, Scope};
use polylogue_config::{At, Config, Switch};
use polylogue_core::{AnyAgent, AnyTool, Name};
use polylogue_tools::Queue;

use crate::codes;
use crate::diagnostic::Report;
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
    #[key(as = Option<At<ModelText>>, none = "facts are found by words only")]
    pub embed: Option<At<String>>,
    /// Length of the vectors, for embedding models that can shorten them. Facts with vectors of another length are
    /// embedded again. A model that ignores it is an error of the search.
    #[key(none = "that of the model", range = 1..=16_384)]
    pub dimensions: Option<u32>,
}

/// Long-term memory of an agent.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Memory")]
pub struct AgentMemory {
    /// Adds the tools `remember`, `recall` and `forget`.
    #[key(default = true)]
    pub tools: bool,
    /// Number of facts that match the last message and are added before each reply.
    #[key(default = LongTermMemory::DEFAULT_FACTS, range = 0..=50)]
    pub auto_recall: usize,
    /// Uses a private memory instead of the team's.
    #[key(default = false)]
    pub private: bool,
}

/// Building.
impl AgentMemory {
    /// Whether the agent has any of it.
    pub(crate) const fn is_used(&self) -> bool {
        self.tools || self.auto_recall > 0
    }

    /// `assistant` with the tools of `memory`, each with what is `around` it, if it has them.
    pub(crate) fn with_tools(
        &self,
        memory: &LongTermMemory,
        around: impl Fn(AnyTool) -> AnyTool,
        assistant: Assistant,
    ) -> Assistant {
        if !self.tools {
            return assistant;
        }
        // What is remembered is there for the next call of the same message.
        let queue = Queue::default();
        assistant.tools(memory.tools().into_iter().map(|tool| queue.joined_by(around(tool))))
    }

    /// `voice`, to which facts of `memory` are added before each reply, if any are.
    pub(crate) fn with_reminders(&self, memory: LongTermMemory, voice: AnyAgent) -> AnyAgent {
        match self.auto_recall {
            0 => voice,
            facts => AnyAgent::new(memory.reminds(voice, facts)),
        }
    }
}

impl TeamMemory {
    /// The scope of the memory of `agent` in the team `team`.
    pub(crate) fn scope_of(
        &self,
        team: &Name,
        agent: &Name,
        memory: &AgentMemory,
    ) -> Result<Scope, MemoryError> {
        let team = self.scope.as_ref().map_or(team.as_str(), |scope| scope.as_str());
        match memory.private {
            true => Scope::new(&format!("{team}/{agent}")),
            false => Scope::new(team),
        }
    }

    /// Reports settings without effect and invalid scopes, of the `agents` with their settings too. `is_used` says whether an agent of
    /// the team, or of a team within it, has a memory.
    pub(crate) fn check<'t>(
        given: &At<Self>,
        team: &Name,
        agents: impl Iterator<Item = (&'t Name, &'t At<Switch<AgentMemory>>)>,
        is_used: bool,
        report: &mut Report<'_>,
    ) {
        for (agent, switch) in agents.filter(|(_, switch)| switch.given().is_some()) {
            let Switch::On(memory) = &**switch else { continue };
            if !memory.is_used() {
                let hint = "leave out `tools: false`, or let it recall at least one fact";
                let message = format!("`{agent}` neither has the tools nor is reminded of anything");
                report.error_with_hint(switch.key(), message, hint);
            } else if let Err(error) = given.scope_of(team, agent, memory) {
                let at = given.scope.as_ref().map_or(switch.key(), |scope| &scope.span);
                return report.error(at, error.to_string());
            }
        }
        if let Some(at) = given.given().filter(|_| given.dimensions.is_some() && given.embed.is_none()) {
            let hint = "add `embed`, as in `embed: openai:text-embedding-3-small`, or leave it out";
            report.error_with_hint(at, "`dimensions` has no effect without an embedding model", hint);
        }
        if let Some(at) = given.given().filter(|_| !is_used) {
            let hint = "add `memory: true` to an agent, or leave it out";
            report.warning(codes::UNUSED, at, "no agent of the team has a memory", hint);
        }
    }
}
