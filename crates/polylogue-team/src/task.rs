//! What a team file says of tasks, alone and in a group that solves them by talking.

use polylogue_core::Name;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::remote::GivenTool;
use crate::text::{MediaText, NameText, OptionText, Template};

/// Two or more that solve their tasks by talking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Solve {
    /// The tasks of those who talk, one of each participant, in the order in which they speak.
    #[schemars(length(min = 1))]
    pub tasks: Vec<Task>,
    /// Tasks that are solved alone before the talk: nobody else reads them, and they stay in the history of their agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub before: Vec<Task>,
    /// Tasks that are solved alone when the talk is over.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Task>,
    /// What ends the talk: `max_iterations` when left out.
    #[serde(default)]
    pub end: EndMode,
    /// How many iterations there are at most, however the talk ends: in each, everybody speaks once.
    #[serde(default = "five")]
    #[schemars(range(min = 1, max = 100_000))]
    pub max_iterations: u64,
    /// The first message of a talk of two: who is told it, and what it says.
    #[serde(default, skip_serializing_if = "Shift::is_default")]
    pub shift: Shift,
    /// Whether each of two knows the other's task and answer, as if it had been its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub reconcile: bool,
    /// How agents are asked whether their task is complete.
    #[serde(default, skip_serializing_if = "Completion::is_default")]
    pub check: Completion,
}

const fn five() -> u64 {
    polylogue::Solve::DEFAULT_MAX_ITERATIONS
}

/// What ends a talk. In every mode the limit on iterations does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndMode {
    /// The limit alone: nobody is asked whether a task is complete.
    #[default]
    MaxIterations,
    /// The first task that is complete, at once.
    FirstCompletion,
    /// The first task that is complete, when whoever comes next has spoken.
    OneLastChat,
    /// The first task that is complete, when everybody has spoken once more.
    OneLastGroupChat,
    /// All tasks of those who are asked, at once.
    AllComplete,
}

/// A task: what an agent is told to do.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Task {
    /// Whose task it is.
    #[schemars(with = "NameText")]
    pub who: Name,
    /// What it is told to do.
    pub prompt: Template,
    /// Tools for this task, besides those of the agent.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(extend("uniqueItems" = true))]
    pub tools: Vec<GivenTool>,
    /// The JSON Schema that all that the agent says about this task has to satisfy.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(extend("minProperties" = 1))]
    pub answers: Option<Map<String, Value>>,
    /// Pictures, sounds and documents that are told with the prompt.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub media: Vec<Media>,
    /// Whether the agent says when its task is complete: it is asked after each of its turns.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub stops_by_itself: bool,
    /// Whether what it thinks is left to do, when it is asked, stays in its history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub keeps_reflections: bool,
    /// Whether a task that is solved alone leaves neither prompt nor answer in the agent's history.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forgets: bool,
}

/// A picture, sound or document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Media {
    /// Its media type, such as `image/png`.
    #[serde(rename = "type")]
    #[schemars(with = "OptionText")]
    pub kind: String,
    /// Where it is: a URL that begins with `https:` or `data:`.
    #[schemars(with = "MediaText")]
    pub url: String,
}

/// The first message of a talk of two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Shift {
    /// Who is told it, and so speaks first: the second when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<NameText>")]
    pub to: Option<Name>,
    /// What it says: the other's answer to its task when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub says: Option<String>,
}

impl Shift {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// How agents are asked whether their task is complete: what is left to do, then whether that is anything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields, default)]
pub struct Completion {
    /// What an agent is asked first: what is left to do. It answers freely.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub reflection: Option<String>,
    /// What it is asked then: whether that is anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub decision: Option<String>,
    /// What it is asked when it decided neither.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<OptionText>")]
    pub again: Option<String>,
    /// The words of the decision: `yes` and `no` when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<DecisionWords>,
    /// The temperature of the decision, 0.3 when left out; `own` for that of the agent.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub temperature: Option<DecisionTemperature>,
    /// Whether the decision is asked for as JSON: where the model is known to keep to a schema when left out.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub structured: Option<bool>,
}

impl Completion {
    fn is_default(&self) -> bool {
        *self == Self::default()
    }
}

/// The words of a decision, of letters alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct DecisionWords {
    /// Something is left to do.
    #[schemars(with = "OptionText")]
    pub open: String,
    /// Nothing is.
    #[schemars(with = "OptionText")]
    pub complete: String,
}

/// The temperature of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
#[schemars(inline)]
pub enum DecisionTemperature {
    /// That of the agent, for models that take no other.
    Own(Own),
    /// This.
    Of(#[schemars(range(min = 0, max = 2))] f64),
}

/// The word `own`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
#[schemars(inline)]
pub enum Own {
    /// As the agent writes.
    Own,
}
