//! Agents that reason, and those in whose words something is read.

use polylogue::agents::reason::{Best, ChoiceTexts, PlanAndSolve, React, Refine, Rewoo};
use polylogue::layers::aggregate::few_shot;
use polylogue::layers::hook::Hooked;
use polylogue::layers::parse::{Actions, Block, Mixed, Parsed, ToolBlock};
use polylogue::layers::reply::{Reply, Trigger, when};
use polylogue::{AnyModel, Assistant, Error, Name, Result};
use polylogue_config::At;
use polylogue_core::{AnyAgent, Line};

use super::builder::{AgentBuilder, BuildScope};
use crate::agent::{Agent, ModelKeys};
use crate::output_blocks::{OutputBlock, RunsOutputBlocks};
use crate::reasoning::{self, Reasoning};
use crate::set::Set as _;

impl<'a> AgentBuilder<'a> {
    /// What replies for `agent` by a model, in the way in which it reasons.
    pub(super) fn voice(
        &self,
        agent: &'a Agent,
        keys: &'a ModelKeys,
        around: &BuildScope<'a>,
    ) -> Result<AnyAgent> {
        match &keys.reasoning {
            Some(reasons) => self.reasoning(agent, keys, reasons, around),
            None if keys.output_blocks.is_empty() => self.assistant(agent, keys, around).map(AnyAgent::new),
            None => self.parsed(agent, keys, around).map(AnyAgent::new),
        }
    }

    /// The assistants as which the model of `agent` is asked.
    pub(super) fn speakers(&self, agent: &'a Agent, keys: &'a ModelKeys) -> Result<Vec<Assistant>> {
        let around = BuildScope::default();
        Ok(match keys.reasoning.as_deref() {
            Some(Reasoning::React(given)) => self.react(agent, keys, given, &around)?.assistants().into(),
            Some(_) => vec![self.unarmed(agent, keys)?, self.assistant(agent, keys, &around)?],
            None if keys.output_blocks.is_empty() => vec![self.assistant(agent, keys, &around)?],
            None => vec![self.parsed(agent, keys, &around)?.assistant().clone()],
        })
    }

    fn reasoning(
        &self,
        agent: &'a Agent,
        keys: &'a ModelKeys,
        reasons: &'a Reasoning,
        around: &BuildScope<'a>,
    ) -> Result<AnyAgent> {
        let name = agent.name.as_str();
        let other = |other: &Option<At<Name>>| match other {
            Some(other) => self.speaker(other, around),
            None => self.assistant(agent, keys, around),
        };
        let planner = |planner: &Option<At<Name>>| match planner {
            Some(planner) => self.speaker(planner, around),
            None => self.unarmed(agent, keys),
        };
        Ok(match reasons {
            Reasoning::React(given) => AnyAgent::new(self.react(agent, keys, given, around)?),
            Reasoning::PlanAndSolve(given) => {
                let plan = PlanAndSolve::new(name, planner(&given.planner)?, other(&given.solver)?)?;
                AnyAgent::new(plan.max_steps(given.max_steps))
            }
            Reasoning::Rewoo(given) => {
                let mut rewoo = Rewoo::new(name, planner(&given.planner)?, planner(&given.solver)?)?;
                rewoo = rewoo.approval(self.approval_of_calls(agent.approval.as_deref())?);
                for given in keys.tools.iter() {
                    for tool in self.prompted(given, *agent.tool_limits)? {
                        rewoo = rewoo.tool(tool.tool().clone());
                    }
                }
                AnyAgent::new(rewoo)
            }
            Reasoning::Refine(given) => {
                let refine = Refine::new(name, self.assistant(agent, keys, around)?, other(&given.critic)?)?;
                let refine = refine.rounds(given.rounds);
                AnyAgent::new(refine.set(given.until.as_ref(), |refine, until| refine.until(until)))
            }
            Reasoning::Best(given) => {
                let critic = self.speaker(&given.critic, around)?;
                let best = Best::of(given.options, self.assistant(agent, keys, around)?, critic);
                let texts = given.texts.clone().unwrap_or_default().over(ChoiceTexts::default());
                AnyAgent::new(best.retries(given.retries).texts(texts))
            }
        })
    }

    fn react(
        &self,
        agent: &'a Agent,
        keys: &'a ModelKeys,
        given: &reasoning::React,
        around: &BuildScope<'a>,
    ) -> Result<React> {
        let react = React::new(self.assistant(agent, keys, around)?).rounds(given.rounds);
        let react = react.set_if(given.summarize, React::summarize);
        Ok(react.set_if(given.as_text, React::in_text))
    }

    /// The agent with a parser of its blocks.
    fn parsed(&self, agent: &'a Agent, keys: &'a ModelKeys, around: &BuildScope<'a>) -> Result<Parsed> {
        let blocks = Mixed::of(keys.output_blocks.iter().map(block));
        Ok(Parsed::new(self.assistant(agent, keys, around)?, blocks))
    }

    /// The agent `name`, which replies only by a model.
    pub(super) fn speaker(&self, name: &Name, around: &BuildScope<'a>) -> Result<Assistant> {
        let agent = self.team.agents.iter().find(|agent| agent.name == *name);
        let no_agent = || Error::config(format!("`{name}` is not an agent that replies only by a model"));
        let (agent, keys) = agent.and_then(|agent| Some((agent, agent.plain()?))).ok_or_else(no_agent)?;
        self.assistant(agent, keys, around)
    }

    /// The layer that runs blocks: it passes on what has none.
    pub(super) fn block_runner(&self, agent: &Agent, given: &RunsOutputBlocks) -> Result<impl Reply + use<>> {
        let approval = self.approval_of_calls(agent.approval.as_deref())?;
        let mut actions = Actions::new(agent.name.as_str())?.approval(approval);
        for given in &given.tools {
            for tool in self.tools_of(&given.tool, given.scope.as_deref().copied(), *agent.tool_limits)? {
                actions = actions.tool(tool);
            }
        }
        for (kind, tool) in &given.code {
            for tool in self.tools(tool, *agent.tool_limits)? {
                actions = actions.runs(kind, tool);
            }
        }
        let called = Trigger::received(|line: &Line| Block::calls(&line.message).is_some());
        Ok(when(called, AnyAgent::new(actions)))
    }
}

fn block(given: &OutputBlock) -> ToolBlock {
    let block = ToolBlock::new(given.kind.as_str()).between(given.begin.as_str(), given.end.as_str());
    let block = block.set_if(given.json, ToolBlock::json);
    let block = block.set_if(given.restore, ToolBlock::restore);
    block.set(given.instructions.as_deref(), ToolBlock::instructions)
}

/// `model`, with few-shot examples before every conversation.
pub(super) fn shown(model: AnyModel, keys: &ModelKeys) -> AnyModel {
    if keys.examples.is_empty() {
        return model;
    }
    let pairs = keys.examples.iter().map(|shot| (shot.user.as_str(), shot.assistant.as_str()));
    AnyModel::new(Hooked::new(model).on_view(few_shot(pairs)))
}
