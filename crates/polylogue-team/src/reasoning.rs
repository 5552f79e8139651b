//! How an agent reasons, and what is read in its replies.

use std::collections::BTreeMap;

use polylogue_config::Config;
use polylogue_core::Name;
use serde::{Deserialize, Serialize};

use crate::text::{ParticipantRef, ToolRef};
use crate::tooling::RunTool;

/// How an agent reasons before it replies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "Reasoning")]
pub enum Reasoning {
    /// It calls tools in rounds until it has an answer.
    React(React),
    /// A planner writes a plan, and a solver solves its steps one after the other.
    PlanAndSolve(PlanAndSolve),
    /// A planner plans all tool calls at once, and a solver answers from their results.
    Rewoo(Rewoo),
    /// It writes a draft, and a critic criticizes it, for some rounds.
    Refine(Refine),
    /// It is asked several times for the same reply, and a critic chooses one.
    Best(Best),
}

/// Rounds of tool calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub struct React {
    /// Maximum number of rounds in a turn.
    #[key(none = "5", range = 0..=10_000)]
    pub rounds: Option<u32>,
    /// Whether the model is asked once more, without tools, after the last round. Otherwise the chat ends then.
    #[key(default = false)]
    pub summarize: bool,
    /// Whether the model writes `Action:` and receives `Observation:`, even if it supports function calls. A model without
    /// them always does.
    #[key(default = false)]
    pub as_text: bool,
}

/// A plan and its steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub struct PlanAndSolve {
    /// The agent that writes the plan.
    #[key(as = Option<ParticipantRef>, none = "the agent itself")]
    pub planner: Option<Name>,
    /// The agent that solves the steps.
    #[key(as = Option<ParticipantRef>, none = "the agent itself")]
    pub solver: Option<Name>,
    /// Maximum number of steps of a plan.
    #[key(none = "20", range = 1..=10_000)]
    pub max_steps: Option<u32>,
}

/// A plan of all tool calls, and an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub struct Rewoo {
    /// The agent that plans the calls.
    #[key(as = Option<ParticipantRef>, none = "the agent itself")]
    pub planner: Option<Name>,
    /// The agent that answers from the results.
    #[key(as = Option<ParticipantRef>, none = "the agent itself")]
    pub solver: Option<Name>,
}

/// Drafts and critique.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub struct Refine {
    /// The agent that criticizes the drafts.
    #[key(as = Option<ParticipantRef>, none = "the agent itself")]
    pub critic: Option<Name>,
    /// Maximum number of rounds of critique.
    #[key(none = "3", range = 0..=10_000)]
    pub rounds: Option<u32>,
    /// What the critic says when it has no more objections.
    #[key(none = "`DONE`", nonempty)]
    pub until: Option<String>,
}

/// The best of several proposals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
pub struct Best {
    /// The agent that chooses.
    #[key(as = ParticipantRef)]
    pub critic: Name,
    /// How often the agent is asked.
    #[key(default = 3, range = 1..=100)]
    pub options: u32,
    /// How often the critic is asked again when it chooses none. Then the first proposal is taken.
    #[key(none = "2", range = 0..=100)]
    pub retries: Option<u32>,
    /// The texts in which the proposals are shown to the critic.
    #[key(none = "the built-in ones")]
    pub texts: Option<ChoiceTexts>,
}

/// The texts in which proposals are shown to a critic. `{count}` in them is the number of proposals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub struct ChoiceTexts {
    /// The question. `{options}` in it are the proposals, one after the other.
    #[key(none = "a built-in text", nonempty)]
    pub prompt: Option<String>,
    /// The line before each proposal. `{number}` in it is its number.
    #[key(none = "`Option {number}:`", nonempty)]
    pub option: Option<String>,
    /// The question after an answer without the number of a proposal.
    #[key(none = "a built-in text", nonempty)]
    pub retry_prompt: Option<String>,
}

impl ChoiceTexts {
    /// These, and `usual` for what is not set.
    pub(crate) fn over(&self, usual: polylogue::reason::ChoiceTexts) -> polylogue::reason::ChoiceTexts {
        let of = |own: &Option<String>, usual| own.as_deref().map_or(usual, Into::into);
        polylogue::reason::ChoiceTexts {
            prompt: of(&self.prompt, usual.prompt),
            option: of(&self.option, usual.option),
            retry_prompt: of(&self.retry_prompt, usual.retry_prompt),
        }
    }
}

/// An example of what an agent receives and replies.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "Example")]
pub struct Example {
    /// The message it receives.
    #[key(nonempty)]
    pub user: String,
    /// Its reply.
    #[key(nonempty)]
    pub assistant: String,
}

/// A block in an agent's replies, between two markers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "OutputBlock")]
pub struct OutputBlock {
    /// The kind of block, by which `runs_output_blocks` of other agents name it.
    #[key(nonempty)]
    pub kind: String,
    /// The marker at its beginning, with its line break.
    #[key(nonempty)]
    pub begin: String,
    /// The marker at its end. It can be missing, for example because it is a `stop` text of the parameters.
    #[key(nonempty)]
    pub end: String,
    /// Whether it must hold a JSON object. A block that does not is not run.
    #[key(default = false)]
    pub json: bool,
    /// Instructions for the model about the block, at the end of its system message.
    #[key(none = "none", nonempty)]
    pub instructions: Option<String>,
    /// Whether the model reads its earlier blocks with both markers, and without the text that followed them.
    #[key(default = false)]
    pub restore: bool,
}

/// Which blocks of the messages it receives an agent runs.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "RunsOutputBlocks", nonempty)]
pub struct RunsOutputBlocks {
    /// By kind of code block, the tool that receives the text as its argument `code`.
    #[key(as = BTreeMap<String, ToolRef>)]
    pub code: BTreeMap<String, String>,
    /// The tools that JSON blocks can call, as `{"name": ..., "parameters": {...}}`.
    #[key(unique)]
    pub tools: Vec<RunTool>,
}

impl RunsOutputBlocks {
    /// The tools that it may run.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &String> {
        self.tools.iter().map(|given| &given.tool).chain(self.code.values())
    }
}
