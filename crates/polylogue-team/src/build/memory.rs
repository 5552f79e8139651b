//! Agents that remember.

use polylogue::memory::LongTerm;
use polylogue::{AnyAgent, Assistant, Error, Result};
use polylogue_tools::Queue;

use super::AgentBuilder;
use super::room::Around;
use crate::team::Agent;

impl<'a> AgentBuilder<'a> {
    /// The agent that speaks by a model, reminded of what it wrote down if it is to be.
    pub(super) fn reminded(&self, agent: &'a Agent, around: &Around<'a>) -> Result<AnyAgent> {
        let voice = self.voice(agent, around)?;
        let facts = usize::try_from(agent.memory.recalls).unwrap_or(usize::MAX);
        Ok(match self.long_term(agent)?.filter(|_| facts > 0) {
            Some(memory) => AnyAgent::new(memory.reminds(voice, facts)),
            None => voice,
        })
    }

    /// `assistant` with the tools of its memory, if it has them.
    pub(super) fn remembering(&self, agent: &Agent, assistant: Assistant) -> Result<Assistant> {
        Ok(match self.long_term(agent)?.filter(|_| agent.memory.tools) {
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
        if agent.memory.is_off() {
            return Ok(None);
        }
        let scope = self.team.scope_of(agent).map_err(|error| Error::config(error.to_string()))?;
        Ok(Some(LongTerm::new(self.workplace.memory(&agent.name)?, scope)))
    }
}
