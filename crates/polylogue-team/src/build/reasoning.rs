//! Agents that reason, and those in whose words something is read.

use polylogue::aggregate::few_shot;
use polylogue::hook::Hooked;
use polylogue::parse::{Actions, Block, Mixed, Parsed, ToolBlock};
use polylogue::reason::{Best, ChoiceTexts, PlanAndSolve, React, Refine, Rewoo};
use polylogue::reply::{Reply, Trigger, when};
use polylogue::{AnyAgent, AnyModel, Assistant, Error, Line, Name, Result};

use super::AgentBuilder;
use super::room::Around;
use crate::reasoning::{self, OutputBlock, Reasoning, RunsOutputBlocks};
use crate::team::Agent;

impl<'a> AgentBuilder<'a> {
    /// What speaks for `agent` by a model, in the way in which it reasons.
    pub(super) fn voice(&self, agent: &'a Agent, around: &Around<'a>) -> Result<AnyAgent> {
        match &agent.reasoning {
            Some(reasons) => self.reasoning(agent, reasons, around),
            None if agent.output_blocks.is_empty() => self.assistant(agent, around).map(AnyAgent::new),
            None => self.parsed(agent, around).map(AnyAgent::new),
        }
    }

    /// The assistants as which the model of `agent` is asked.
    pub(super) fn speakers(&self, agent: &'a Agent) -> Result<Vec<Assistant>> {
        let around = Around::default();
        Ok(match &agent.reasoning {
            Some(Reasoning::React(given)) => self.react(agent, given, &around)?.assistants().into(),
            Some(_) => vec![self.unarmed(agent)?, self.assistant(agent, &around)?],
            None if agent.output_blocks.is_empty() => vec![self.assistant(agent, &around)?],
            None => vec![self.parsed(agent, &around)?.assistant().clone()],
        })
    }

    fn reasoning(&self, agent: &'a Agent, reasons: &'a Reasoning, around: &Around<'a>) -> Result<AnyAgent> {
        let name = agent.name.as_str();
        let other = |other: &Option<Name>| match other {
            Some(other) => self.speaker(other, around),
            None => self.assistant(agent, around),
        };
        let count = |number: u32| usize::try_from(number).unwrap_or(usize::MAX);
        Ok(match reasons {
            Reasoning::React(given) => AnyAgent::new(self.react(agent, given, around)?),
            Reasoning::PlanAndSolve(reasoning::PlanAndSolve { planner, solver, max_steps }) => {
                let planner = match planner {
                    Some(planner) => self.speaker(planner, around)?,
                    None => self.unarmed(agent)?,
                };
                let plan = PlanAndSolve::new(name, planner, other(solver)?)?;
                AnyAgent::new(match max_steps {
                    Some(steps) => plan.max_steps(count(*steps)),
                    None => plan,
                })
            }
            Reasoning::Rewoo(reasoning::Rewoo { planner, solver }) => {
                let one = |who: &Option<Name>| match who {
                    Some(who) => self.speaker(who, around),
                    None => self.unarmed(agent),
                };
                let mut rewoo = Rewoo::new(name, one(planner)?, one(solver)?)?;
                rewoo = rewoo.approval(self.approval_of_calls(agent.approval.as_ref())?);
                for given in &agent.tools {
                    for tool in self.prompted(given, agent.tool_limits)? {
                        rewoo = rewoo.tool(tool.tool().clone());
                    }
                }
                AnyAgent::new(rewoo)
            }
            Reasoning::Refine(reasoning::Refine { critic, rounds, until }) => {
                let refine = Refine::new(name, self.assistant(agent, around)?, other(critic)?)?;
                let refine = refine.rounds(rounds.unwrap_or(Refine::DEFAULT_ROUNDS));
                AnyAgent::new(match until {
                    Some(until) => refine.until(until),
                    None => refine,
                })
            }
            Reasoning::Best(reasoning::Best { critic, options, retries, texts }) => {
                let critic = self.speaker(critic, around)?;
                let best = Best::of(count(*options), self.assistant(agent, around)?, critic);
                let texts = texts.clone().unwrap_or_default().over(ChoiceTexts::default());
                AnyAgent::new(best.retries(retries.unwrap_or(Best::DEFAULT_RETRIES)).texts(texts))
            }
        })
    }

    pub(super) fn react(
        &self,
        agent: &'a Agent,
        given: &reasoning::React,
        around: &Around<'a>,
    ) -> Result<React> {
        let react = React::new(self.assistant(agent, around)?);
        let react = react.rounds(given.rounds.unwrap_or(React::DEFAULT_ROUNDS));
        let react = if given.summarize { react.summarize() } else { react };
        Ok(if given.as_text { react.in_text() } else { react })
    }

    /// The agent with a parser of its blocks.
    pub(super) fn parsed(&self, agent: &'a Agent, around: &Around<'a>) -> Result<Parsed> {
        let blocks = Mixed::of(agent.output_blocks.iter().map(block));
        Ok(Parsed::new(self.assistant(agent, around)?, blocks))
    }

    /// The agent `name`, which speaks by a model and by nothing else.
    pub(super) fn speaker(&self, name: &Name, around: &Around<'a>) -> Result<Assistant> {
        let agent = self.team.agents.iter().find(|agent| agent.name == *name);
        let no_agent =
            || Error::config(format!("`{name}` is no agent that speaks by a model and by nothing else"));
        self.assistant(agent.filter(|agent| agent.is_plain()).ok_or_else(no_agent)?, around)
    }

    /// The layer that runs blocks: it passes on what has none.
    pub(super) fn block_runner(&self, agent: &Agent, given: &RunsOutputBlocks) -> Result<impl Reply + use<>> {
        let approval = self.approval_of_calls(agent.approval.as_ref())?;
        let mut actions = Actions::new(agent.name.as_str())?.approval(approval);
        for given in &given.tools {
            for tool in self.tools_of(&given.tool, given.scope, agent.tool_limits)? {
                actions = actions.tool(tool);
            }
        }
        for (kind, tool) in &given.code {
            for tool in self.tools(tool, agent.tool_limits)? {
                actions = actions.runs(kind, tool);
            }
        }
        let called = Trigger::received(|line: &Line| Block::calls(&line.message).is_some());
        Ok(when(called, AnyAgent::new(actions)))
    }
}

fn block(given: &OutputBlock) -> ToolBlock {
    let block = ToolBlock::new(given.kind.as_str()).between(given.begin.as_str(), given.end.as_str());
    let block = if given.json { block.json() } else { block };
    let block = if given.restore { block.restore() } else { block };
    match &given.instructions {
        Some(told) => block.instructions(told.as_str()),
        None => block,
    }
}

/// `model`, with the examples of `agent` before every conversation.
pub(super) fn shown(model: AnyModel, agent: &Agent) -> AnyModel {
    if agent.examples.is_empty() {
        return model;
    }
    let pairs = agent.examples.iter().map(|shot| (shot.user.as_str(), shot.assistant.as_str()));
    AnyModel::new(Hooked::new(model).on_view(few_shot(pairs)))
}
