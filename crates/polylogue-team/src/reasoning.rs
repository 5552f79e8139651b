//! What a team file says of how an agent reasons, and of what is read in what it says.

use std::collections::BTreeMap;

use polylogue_core::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::text::{NameText, OptionText, ToolText};
use crate::tooling::RunTool;

/// In what way an agent reasons before it says something.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(from = "ReasonsForm", rename_all = "snake_case")]
#[schemars(inline, with = "ReasonsForm")]
pub enum Reasons {
    /// It calls tools in rounds until it has an answer.
    React(React),
    /// One makes a plan, another solves its steps.
    PlanAndSolve(PlanAndSolve),
    /// One plans all calls of tools, another answers from what they returned.
    Rewoo(Rewoo),
    /// It writes, and is criticised.
    Refine(Refine),
    /// It is asked several times, and a critic chooses.
    Best(Best),
}

#[derive(Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
enum ReasonsForm {
    Word(ReasonsWord),
    Full(ReasonsFull),
}

/// In what way an agent reasons before it says something.
#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ReasonsWord {
    /// It calls tools in rounds until it has an answer.
    React,
    /// It makes a plan, and solves its steps one after the other.
    PlanAndSolve,
    /// It plans all calls of its tools at once, and answers from what they returned.
    Rewoo,
    /// It writes, and criticises what it wrote.
    Refine,
}

#[derive(Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
enum ReasonsFull {
    /// It calls tools in rounds until it has an answer.
    React(React),
    /// One makes a plan, another solves its steps one after the other.
    PlanAndSolve(PlanAndSolve),
    /// One plans all calls of tools at once, another answers from what they returned.
    Rewoo(Rewoo),
    /// It writes, and is criticised, for some rounds.
    Refine(Refine),
    /// It is asked several times for the same reply, and a critic chooses one.
    Best(Best),
}

impl From<ReasonsForm> for Reasons {
    fn from(form: ReasonsForm) -> Self {
        match form {
            ReasonsForm::Word(ReasonsWord::React) => Self::React(React::default()),
            ReasonsForm::Word(ReasonsWord::PlanAndSolve) => Self::PlanAndSolve(PlanAndSolve::default()),
            ReasonsForm::Word(ReasonsWord::Rewoo) => Self::Rewoo(Rewoo::default()),
            ReasonsForm::Word(ReasonsWord::Refine) => Self::Refine(Refine::default()),
            ReasonsForm::Full(ReasonsFull::React(react)) => Self::React(react),
            ReasonsForm::Full(ReasonsFull::PlanAndSolve(plan)) => Self::PlanAndSolve(plan),
            ReasonsForm::Full(ReasonsFull::Rewoo(rewoo)) => Self::Rewoo(rewoo),
            ReasonsForm::Full(ReasonsFull::Refine(refine)) => Self::Refine(refine),
            ReasonsForm::Full(ReasonsFull::Best(best)) => Self::Best(best),
        }
    }
}

/// Rounds of calls.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct React {
    /// How many rounds of calls a turn has at most, 5 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10_000))]
    pub rounds: Option<u32>,
    /// Whether the model is asked once more, without tools, after the last round. Else the chat ends then.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub sums_up: bool,
    /// Whether the model writes `Action:` and is told the `Observation:`, whatever it can do. A model without function calls
    /// does so anyway.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub in_text: bool,
}

/// A plan, and its steps.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct PlanAndSolve {
    /// Who makes the plan; the agent itself when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NameText>")]
    pub planner: Option<Name>,
    /// Who solves its steps; the agent itself when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NameText>")]
    pub solver: Option<Name>,
    /// How many steps a plan may have, 20 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1, max = 10_000))]
    pub max_steps: Option<u32>,
}

/// A plan of all calls, and an answer.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Rewoo {
    /// Who plans the calls; the agent itself when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NameText>")]
    pub planner: Option<Name>,
    /// Who answers from what they returned; the agent itself when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NameText>")]
    pub solver: Option<Name>,
}

/// Drafts and criticism.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Refine {
    /// Who criticises what the agent writes; the agent itself when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NameText>")]
    pub critic: Option<Name>,
    /// How many rounds of criticism there are at most, 3 when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 10_000))]
    pub rounds: Option<u32>,
    /// What the critic says when there is nothing more to criticise.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub until: Option<String>,
}

/// The best of several proposals.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Best {
    /// Who chooses.
    #[schemars(with = "NameText")]
    pub critic: Name,
    /// How often the agent is asked, 3 when left out.
    #[serde(default = "three")]
    #[schemars(range(min = 1, max = 100))]
    pub options: u32,
    /// How often the critic is asked again when it chooses nothing, 2 when left out. Then the first is taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 0, max = 100))]
    pub retries: Option<u32>,
    /// The texts in which the proposals are shown to the critic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub texts: Option<ChoiceTexts>,
}

/// The texts in which proposals are shown to a critic; `{count}` in them is the number of proposals.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct ChoiceTexts {
    /// The question; `{options}` in it are the proposals, one after the other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub prompt: Option<String>,
    /// The line before each proposal; `{number}` in it is its number. Default: `Option {number}:`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub option: Option<String>,
    /// What a critic receives whose answer holds no number of a proposal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
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

const fn three() -> u32 {
    3
}

/// An example of what an agent hears and says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Shot {
    /// What somebody says.
    #[schemars(with = "OptionText")]
    pub asked: String,
    /// What the agent says then.
    #[schemars(with = "OptionText")]
    pub said: String,
}

/// A block in what an agent says, between a begin and an end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct TextBlock {
    /// What kind of block it is: whoever runs blocks goes by this.
    #[schemars(with = "OptionText")]
    pub kind: String,
    /// How it begins, line break included.
    #[schemars(with = "OptionText")]
    pub begin: String,
    /// How it ends. It may be missing, as it is when it is a `stop` of the parameters.
    #[schemars(with = "OptionText")]
    pub end: String,
    /// Whether it has to hold a JSON object. What does not is no call of anything.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub json: bool,
    /// What the model is told of the form, at the end of its system text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub told: Option<String>,
    /// Whether the model reads its earlier blocks with both begin and end, and without what it wrote after them.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub restores: bool,
}

/// What an agent runs of the blocks that were read in what it hears.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
#[schemars(extend("minProperties" = 1))]
pub struct RunsBlocks {
    /// By the kinds of blocks of code: the tool that is given the text as its argument `code`.
    #[serde(skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, ToolText>")]
    pub code: BTreeMap<String, String>,
    /// The tools that blocks of JSON call, as `{"name": ..., "parameters": {...}}`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("uniqueItems" = true))]
    pub tools: Vec<RunTool>,
}

impl RunsBlocks {
    /// The tools that it may run.
    pub(crate) fn tools(&self) -> impl Iterator<Item = &String> {
        self.tools.iter().map(|given| &given.tool).chain(self.code.values())
    }
}
