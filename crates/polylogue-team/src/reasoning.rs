//! Reasoning strategies and few-shot examples.

use polylogue::agents::reason as lib;
use polylogue::layers::aggregate::few_shot;
use polylogue::layers::hook::HookedModel;
use polylogue::tools::Approval;
use polylogue::tools::approval::ApprovalRequest;
use polylogue::{AnyModel, Assistant, Result};
use polylogue_config::{At, Config};
use polylogue_core::{AnyAgent, AnyTool, Name};

use crate::set::Set as _;
use crate::text::AgentRef;

/// Reasoning strategy that an agent follows before it replies.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Reasoning")]
pub enum Reasoning {
    /// ReAct: the agent calls tools in rounds until it has an answer.
    React(React),
    /// A planner writes a plan, and a solver solves its steps one after the other.
    PlanAndSolve(PlanAndSolve),
    /// ReWOO: a planner plans all tool calls at once, and a solver answers from their results.
    Rewoo(Rewoo),
    /// The agent writes a draft, and a critic criticizes it, for several rounds.
    Refine(Refine),
    /// The agent writes several proposals, and a critic selects one.
    Best(Best),
}

impl Reasoning {
    /// The other agents that it names.
    pub(crate) fn others(&self) -> impl Iterator<Item = &At<Name>> {
        let (planner, solver, critic) = match self {
            Self::React(_) => (None, None, None),
            Self::PlanAndSolve(given) => (given.planner.as_ref(), given.solver.as_ref(), None),
            Self::Rewoo(given) => (given.planner.as_ref(), given.solver.as_ref(), None),
            Self::Refine(given) => (None, None, given.critic.as_ref()),
            Self::Best(given) => (None, None, Some(&given.critic)),
        };
        planner.into_iter().chain(solver).chain(critic).filter(|name| name.ok)
    }

    /// Whether another agent plans, and whether another one solves.
    pub(crate) const fn planner_and_solver(&self) -> (bool, bool) {
        match self {
            Self::PlanAndSolve(given) => (given.planner.is_some(), given.solver.is_some()),
            Self::Rewoo(given) => (given.planner.is_some(), given.solver.is_some()),
            Self::React(_) | Self::Refine(_) | Self::Best(_) => (false, false),
        }
    }

    /// Its name, if it calls tools in its own way.
    pub(crate) const fn calls_tools(&self) -> Option<&'static str> {
        match self {
            Self::React(_) => Some("react"),
            Self::Rewoo(_) => Some("rewoo"),
            Self::PlanAndSolve(_) | Self::Refine(_) | Self::Best(_) => None,
        }
    }
}

/// ReAct: rounds of tool calls.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct React {
    /// Maximum number of rounds per turn.
    #[key(default = lib::React::DEFAULT_MAX_ROUNDS, range = 0..=10_000)]
    pub rounds: u32,
    /// Calls the model once more without tools after the last round. Otherwise the chat ends at the limit.
    #[key(default = false)]
    pub summarize: bool,
    /// Uses `Action:` and `Observation:` in text even if the model supports function calls. A model without function
    /// calls always uses them.
    #[key(default = false)]
    pub as_text: bool,
}

/// A plan and its steps.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct PlanAndSolve {
    /// Agent that writes the plan.
    #[key(as = Option<AgentRef>, none = "the agent itself")]
    pub planner: Option<At<Name>>,
    /// Agent that solves the steps.
    #[key(as = Option<AgentRef>, none = "the agent itself")]
    pub solver: Option<At<Name>>,
    /// Maximum number of steps in a plan.
    #[key(default = lib::PlanAndSolve::DEFAULT_MAX_STEPS, range = 1..=10_000)]
    pub max_steps: usize,
}

/// ReWOO: a plan of all tool calls, then an answer.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct Rewoo {
    /// Agent that plans the tool calls.
    #[key(as = Option<AgentRef>, none = "the agent itself")]
    pub planner: Option<At<Name>>,
    /// Agent that answers from the results.
    #[key(as = Option<AgentRef>, none = "the agent itself")]
    pub solver: Option<At<Name>>,
    /// Maximum number of steps in a plan, each of which is a tool call.
    #[key(default = lib::Rewoo::DEFAULT_MAX_STEPS, range = 1..=10_000)]
    pub max_steps: usize,
}

/// Drafts and critique.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct Refine {
    /// Agent that criticizes the drafts.
    #[key(as = Option<AgentRef>, none = "the agent itself")]
    pub critic: Option<At<Name>>,
    /// Maximum number of rounds of critique.
    #[key(default = lib::Refine::DEFAULT_ROUNDS, range = 0..=10_000)]
    pub rounds: u32,
    /// Text with which the critic accepts a draft.
    #[key(none = "`DONE`", nonempty)]
    pub until: Option<String>,
}

/// Best of several proposals.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct Best {
    /// Agent that selects a proposal.
    #[key(as = AgentRef)]
    pub critic: At<Name>,
    /// Number of proposals.
    #[key(default = 3, range = 1..=100)]
    pub options: usize,
    /// Maximum number of retries after an answer that selects no proposal. Then the first proposal is taken.
    #[key(default = lib::BestOfN::DEFAULT_RETRIES, range = 0..=100)]
    pub retries: u32,
    /// Texts that present the proposals to the critic.
    #[key(none = "built-in texts")]
    pub texts: Option<ChoiceTexts>,
}

/// Texts that present proposals to a critic. `{count}` is replaced by the number of proposals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
pub struct ChoiceTexts {
    /// Prompt for the selection. `{options}` is replaced by the proposals.
    #[key(none = "a built-in text", nonempty)]
    pub prompt: Option<String>,
    /// Line before each proposal. `{number}` is replaced by its number.
    #[key(none = "`Option {number}:`", nonempty)]
    pub option: Option<String>,
    /// Prompt for a retry after an answer without the number of a proposal.
    #[key(none = "a built-in text", nonempty)]
    pub retry_prompt: Option<String>,
}

/// What a reasoning strategy is made of.
pub(crate) trait Reasoner {
    /// The agent that reasons.
    fn agent(&self) -> Result<Assistant>;
    /// The same without tools and output schema.
    fn agent_without_tools(&self) -> Result<Assistant>;
    /// The agent `name`, which replies only by a model.
    fn other(&self, name: &Name) -> Result<Assistant>;
    /// The tools of the agent.
    fn tools(&self) -> Result<Vec<AnyTool>>;
    /// Approval of calls of its tools.
    fn approval(&self) -> Result<Approval<ApprovalRequest>>;
}

/// Building.
impl Reasoning {
    /// The agent `name`, which reasons in this way.
    pub(crate) fn build(&self, name: &str, of: &dyn Reasoner) -> Result<AnyAgent> {
        Ok(match self {
            Self::React(given) => AnyAgent::new(given.build(of)?),
            Self::PlanAndSolve(given) => AnyAgent::new(given.build(name, of)?),
            Self::Rewoo(given) => AnyAgent::new(given.build(name, of)?),
            Self::Refine(given) => AnyAgent::new(given.build(name, of)?),
            Self::Best(given) => AnyAgent::new(given.build(of)?),
        })
    }
}

/// `named`, or the agent itself.
fn agent_or(named: Option<&At<Name>>, of: &dyn Reasoner) -> Result<Assistant> {
    named.map_or_else(|| of.agent(), |name| of.other(name))
}

/// `named`, or the agent itself without tools.
fn planner_or(named: Option<&At<Name>>, of: &dyn Reasoner) -> Result<Assistant> {
    named.map_or_else(|| of.agent_without_tools(), |name| of.other(name))
}

impl React {
    pub(crate) fn build(&self, of: &dyn Reasoner) -> Result<lib::React> {
        let react = lib::React::new(of.agent()?).max_rounds(self.rounds);
        let react = react.set_if(self.summarize, lib::React::summarize);
        Ok(react.set_if(self.as_text, lib::React::in_text))
    }
}

impl PlanAndSolve {
    fn build(&self, name: &str, of: &dyn Reasoner) -> Result<lib::PlanAndSolve> {
        let (planner, solver) = (planner_or(self.planner.as_ref(), of)?, agent_or(self.solver.as_ref(), of)?);
        Ok(lib::PlanAndSolve::new(name, planner, solver)?.max_steps(self.max_steps))
    }
}

impl Rewoo {
    fn build(&self, name: &str, of: &dyn Reasoner) -> Result<lib::Rewoo> {
        let (planner, solver) =
            (planner_or(self.planner.as_ref(), of)?, planner_or(self.solver.as_ref(), of)?);
        let rewoo = lib::Rewoo::new(name, planner, solver)?.max_steps(self.max_steps);
        let rewoo = rewoo.approval(of.approval()?);
        Ok(of.tools()?.into_iter().fold(rewoo, lib::Rewoo::tool))
    }
}

impl Refine {
    fn build(&self, name: &str, of: &dyn Reasoner) -> Result<lib::Refine> {
        let refine = lib::Refine::new(name, of.agent()?, agent_or(self.critic.as_ref(), of)?)?;
        Ok(refine.rounds(self.rounds).set(self.until.as_ref(), |refine, until| refine.until(until)))
    }
}

impl Best {
    fn build(&self, of: &dyn Reasoner) -> Result<lib::BestOfN> {
        let best = lib::BestOfN::new(self.options, of.agent()?, of.other(&self.critic)?);
        let texts = self.texts.clone().unwrap_or_default().or(lib::ChoiceTexts::default());
        Ok(best.retries(self.retries).texts(texts))
    }
}

impl Example {
    /// `model`, with `examples` before every conversation.
    pub(crate) fn shown_to(model: AnyModel, examples: &[Self]) -> AnyModel {
        if examples.is_empty() {
            return model;
        }
        let pairs = examples.iter().map(|shot| (shot.user.as_str(), shot.assistant.as_str()));
        AnyModel::new(HookedModel::new(model).on_view(few_shot(pairs)))
    }
}

impl ChoiceTexts {
    /// These, and `usual` for what is not set.
    pub(crate) fn or(&self, usual: lib::ChoiceTexts) -> lib::ChoiceTexts {
        let of = |own: &Option<String>, usual| own.as_deref().map_or(usual, Into::into);
        lib::ChoiceTexts {
            prompt: of(&self.prompt, usual.prompt),
            option: of(&self.option, usual.option),
            retry_prompt: of(&self.retry_prompt, usual.retry_prompt),
        }
    }
}

/// A few-shot example: a message and the reply to it.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Example")]
pub struct Example {
    /// Message that the agent receives.
    #[key(nonempty)]
    pub user: String,
    /// Reply of the agent.
    #[key(nonempty)]
    pub assistant: String,
}
