//! Tasks, alone and in a group that solves them by talking.

use polylogue_config::Config;
use polylogue_core::Name;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::remote::GivenTool;
use crate::text::{MediaText, ParticipantRef, Template};

/// Agents that solve their tasks by talking.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
#[config(name = "GroupSolve")]
pub struct GroupSolve {
    /// The tasks, one of each participant, in the order in which they speak.
    #[key(required, nonempty)]
    pub tasks: Vec<Task>,
    /// Tasks that are solved alone before the talk. The others do not read them, and they stay in the history of their agent.
    pub before: Vec<Task>,
    /// Tasks that are solved alone after the talk.
    pub after: Vec<Task>,
    /// What ends the talk.
    #[key(default = EndMode::MaxIterations)]
    pub end: EndMode,
    /// Maximum number of iterations, in every mode. In an iteration every participant speaks once.
    #[key(default = polylogue::GroupSolve::DEFAULT_MAX_ITERATIONS, range = 1..=100_000)]
    pub max_iterations: u64,
    /// The first message of a talk of two.
    pub shift: Shift,
    /// Whether each of two has the other's task and answer in its history, as if it were its own.
    #[key(default = false)]
    pub reconcile: bool,
    /// How agents are asked whether their task is complete.
    pub check: Completion,
}

/// What ends a talk. The limit on iterations always does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
pub enum EndMode {
    /// Only the limit. No agent is asked whether its task is complete.
    #[default]
    MaxIterations,
    /// The first task that is complete, at once.
    FirstCompletion,
    /// The first task that is complete, after the next speaker has spoken.
    OneLastChat,
    /// The first task that is complete, after every participant has spoken once more.
    OneLastGroupChat,
    /// All tasks of agents that are asked, at once.
    AllComplete,
}

/// A task of an agent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
pub struct Task {
    /// The agent.
    #[key(as = ParticipantRef)]
    pub who: Name,
    /// What it must do.
    pub prompt: Template,
    /// Tools for this task, besides those of the agent.
    #[key(unique)]
    pub tools: Vec<GivenTool>,
    /// The JSON Schema that the agent's replies about this task must satisfy.
    #[key(none = "none", nonempty)]
    pub output_schema: Option<Map<String, Value>>,
    /// Pictures, sounds and documents that belong to the prompt.
    pub media: Vec<Media>,
    /// Whether the agent is asked after each of its turns whether its task is complete.
    #[key(default = false)]
    pub self_terminating: bool,
    /// Whether its thoughts about what is left to do stay in its history.
    #[key(default = false)]
    pub keeps_reflections: bool,
    /// Whether prompt and answer of a task that is solved alone are removed from the agent's history.
    #[key(default = false)]
    pub forget: bool,
}

/// A picture, sound or document.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
pub struct Media {
    /// Its media type, such as `image/png`.
    #[key(name = "type", nonempty)]
    pub kind: String,
    /// Its address, which begins with `https:` or `data:`.
    #[key(as = MediaText, nonempty)]
    pub url: String,
}

/// The first message of a talk of two.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "FirstMessage")]
pub struct Shift {
    /// The agent that receives it, and speaks first.
    #[key(as = Option<ParticipantRef>, none = "the second")]
    pub to: Option<Name>,
    /// Its text.
    #[key(none = "the other's answer to its task", nonempty)]
    pub says: Option<String>,
}

/// How agents are asked whether their task is complete: first what is left to do, then whether that is anything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, Config)]
pub struct Completion {
    /// The first question: what is left to do. The agent answers freely.
    #[key(none = "a built-in text", nonempty)]
    pub reflection: Option<String>,
    /// The second question: whether that is anything.
    #[key(none = "a built-in text", nonempty)]
    pub decision: Option<String>,
    /// The question after an answer that decides neither.
    #[key(none = "a built-in text", nonempty)]
    pub again: Option<String>,
    /// The words of the decision.
    #[key(none = "`yes` and `no`")]
    pub words: Option<DecisionWords>,
    /// The temperature of the decision; `own` for the agent's.
    #[key(none = "0.3", range = 0..=2)]
    pub temperature: Option<DecisionTemperature>,
    /// Whether the decision is requested as JSON.
    #[key(none = "if the model is known to support a schema")]
    pub structured: Option<bool>,
}

/// The words of a decision. They have letters only.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
pub struct DecisionWords {
    /// Something is left to do.
    #[key(nonempty)]
    pub open: String,
    /// Nothing is left to do.
    #[key(nonempty)]
    pub complete: String,
}

/// The temperature of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize, Config)]
#[config(by_shape)]
pub enum DecisionTemperature {
    /// The agent's, for models that take no other.
    Own(Own),
    /// This.
    Of(f64),
}

/// The word `own`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "OwnTemperature")]
pub enum Own {
    /// The agent's temperature.
    Own,
}
