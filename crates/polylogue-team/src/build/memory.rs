//! Agents that remember.

use polylogue::tools::memory::LongTerm;
use polylogue::{Assistant, Error, Result};
use polylogue_core::AnyAgent;
use polylogue_tools::Queue;

use super::builder::{AgentBuilder, BuildScope};
use crate::agent::{Agent, ModelKeys};

impl<'a> AgentBuilder<'a> {
    /// The agent that replies by a model, reminded of facts if it has a memory.
    pub(super) fn reminded(
        &self,
        agent: &'a Agent,
        keys: &'a ModelKeys,
        around: &BuildScope<'a>,
    ) -> Result<AnyAgent> {
        let voice = self.voice(agent, keys, around)?;
        let facts = agent.memory().map_or(0, |memory| memory.auto_recall);
        Ok(match self.long_term(agent)?.filter(|_| facts > 0) {
            Some(memory) => AnyAgent::new(memory.reminds(voice, facts)),
            None => voice,
        })
    }

    /// `assistant` with the tools of its memory, if it has them.
    pub(super) fn remembering(&self, agent: &Agent, assistant: Assistant) -> Result<Assistant> {
        let has_tools = agent.memory().is_some_and(|memory| memory.tools);
        Ok(match self.long_term(agent)?.filter(|_| has_tools) {
            Some(memory) => {
                // What is remembered is there for the next call of the same message.
                let queue = Queue::default();
                assistant.tools(
                    memory.tools().into_iter().map(|tool| queue.joined_by(agent.tool_limits.around(tool))),
                )
            }
            None => assistant,
        })
    }

    fn long_term(&self, agent: &Agent) -> Result<Option<LongTerm>> {
        let Some(memory) = agent.memory() else { return Ok(None) };
        let scope = self.team.memory_scope(&agent.name, memory);
        let scope = scope.map_err(|error| Error::config(error.to_string()))?;
        Ok(Some(LongTerm::new(self.context.memory(&agent.name)?, scope)))
    }
}
