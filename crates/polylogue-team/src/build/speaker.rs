//! Agents that reply by a model: in the way in which they reason, with their memory.

use polylogue::layers::parse::{Parsed, ToolBlocks};
use polylogue::tools::Approval;
use polylogue::tools::approval::ApprovalRequest;
use polylogue::tools::memory::LongTermMemory;
use polylogue::{Assistant, Name, Result};
use polylogue_core::{AnyAgent, AnyTool, ConfigError, UnknownName};

use super::agent::reader;
use super::builder::{AgentBuilder, BuildScope};
use crate::agent::{Agent, ModelKeys};
use crate::memory::AgentMemory;
use crate::output_blocks::OutputBlock;
use crate::reasoning::{Reasoner, Reasoning};

impl<'a> AgentBuilder<'a> {
    /// The agent that replies by a model, reminded of facts if it has a memory.
    pub(super) fn with_reminders(
        &self,
        agent: &'a Agent,
        keys: &'a ModelKeys,
        around: &BuildScope<'a>,
    ) -> Result<AnyAgent> {
        let voice = self.voice(agent, keys, around)?;
        Ok(match agent.memory() {
            Some(memory) => memory.with_reminders(self.long_term(agent, memory)?, voice),
            None => voice,
        })
    }

    /// `assistant` with the tools of its memory, if it has them.
    pub(super) fn remembering(&self, agent: &Agent, assistant: Assistant) -> Result<Assistant> {
        Ok(match agent.memory() {
            Some(memory) => {
                let limits = agent.tool_limits.truncating();
                let around = |tool| self.context.wrapped(limits.around(tool));
                memory.with_tools(&self.long_term(agent, memory)?, around, assistant)
            }
            None => assistant,
        })
    }

    fn long_term(&self, agent: &Agent, memory: &AgentMemory) -> Result<LongTermMemory> {
        let scope = self.team.memory.scope_of(&self.team.name, &agent.name, memory);
        let scope = scope.map_err(|error| {
            ConfigError::invalid(format!("the memory of `{}`", agent.name), error.to_string())
        })?;
        Ok(LongTermMemory::new(self.context.memory(&agent.name)?, scope))
    }

    /// What replies for `agent` by a model, in the way in which it reasons.
    fn voice(&self, agent: &'a Agent, keys: &'a ModelKeys, around: &BuildScope<'a>) -> Result<AnyAgent> {
        match &keys.reasoning {
            Some(reasoning) => {
                let reasoner = ReasoningAgent { builder: self, agent, keys, around };
                reasoning.build(agent.name.as_str(), &reasoner)
            }
            None if keys.output_blocks.is_empty() => self.assistant(agent, keys, around).map(AnyAgent::new),
            None => self.parsed(agent, keys, around).map(AnyAgent::new),
        }
    }

    /// The assistants as which the model of `agent` is asked.
    pub(super) fn speakers(&self, agent: &'a Agent, keys: &'a ModelKeys) -> Result<Vec<Assistant>> {
        let around = &BuildScope::default();
        Ok(match keys.reasoning.as_deref() {
            Some(Reasoning::React(given)) => {
                given.build(&ReasoningAgent { builder: self, agent, keys, around })?.assistants().into()
            }
            Some(_) => vec![self.assistant_without_tools(agent, keys)?, self.assistant(agent, keys, around)?],
            None if keys.output_blocks.is_empty() => vec![self.assistant(agent, keys, around)?],
            None => vec![self.parsed(agent, keys, around)?.assistant().clone()],
        })
    }

    /// The agent with a parser of its blocks.
    fn parsed(&self, agent: &'a Agent, keys: &'a ModelKeys, around: &BuildScope<'a>) -> Result<Parsed> {
        let blocks = ToolBlocks::new(keys.output_blocks.iter().map(OutputBlock::build));
        Ok(Parsed::new(self.assistant(agent, keys, around)?, blocks))
    }

    /// The agent `name`, which replies only by a model.
    pub(super) fn speaker(&self, name: &Name, around: &BuildScope<'a>) -> Result<Assistant> {
        let agent = self.team.agents.iter().find(|agent| agent.name == *name);
        let no_agent = || UnknownName::new("agent that replies only by a model", name);
        let (agent, keys) = agent.and_then(|agent| Some((agent, agent.plain()?))).ok_or_else(no_agent)?;
        self.assistant(agent, keys, around)
    }
}

/// An agent with a reasoning strategy, where it is built.
struct ReasoningAgent<'b, 'a> {
    builder: &'b AgentBuilder<'a>,
    agent: &'a Agent,
    keys: &'a ModelKeys,
    around: &'b BuildScope<'a>,
}

impl Reasoner for ReasoningAgent<'_, '_> {
    fn agent(&self) -> Result<Assistant> {
        self.builder.assistant(self.agent, self.keys, self.around)
    }

    fn agent_without_tools(&self) -> Result<Assistant> {
        self.builder.assistant_without_tools(self.agent, self.keys)
    }

    fn other(&self, name: &Name) -> Result<Assistant> {
        self.builder.speaker(name, self.around)
    }

    fn tools(&self) -> Result<Vec<AnyTool>> {
        let mut all = Vec::new();
        for given in self.keys.tools.iter() {
            let tools = self.builder.prompted(given, *self.agent.tool_limits)?;
            all.extend(tools.into_iter().map(|tool| tool.tool().clone()));
        }
        if !all.is_empty() {
            all.extend(reader(self.agent));
        }
        Ok(all)
    }

    fn approval(&self) -> Result<Approval<ApprovalRequest>> {
        self.builder.approval_of_calls(self.agent)
    }
}
