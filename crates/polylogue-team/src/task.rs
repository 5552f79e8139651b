//! Tasks, alone and in a group that solves them by talking.

use polylogue::tasks::EndMode;
use polylogue_config::{At, Config};
use polylogue_core::Name;

use crate::remote::GivenTool;
use crate::text::{MediaText, MemberRef, ParticipantRef, Schema, Template};

/// Agents discuss their tasks until a limit is reached or they judge them complete.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(name = "GroupSolve")]
pub struct GroupSolve {
    /// Tasks of the participants, one each, in speaking order.
    #[key(required, nonempty)]
    pub tasks: Vec<At<Task>>,
    /// Tasks that agents solve alone before the discussion. They stay in the history of their agent; other agents do
    /// not see them.
    pub before: Vec<Task>,
    /// Tasks that agents solve alone after the discussion.
    pub after: Vec<Task>,
    /// Condition that ends the discussion.
    #[key(as = At<EndModeKey>, default = EndMode::MaxIterations)]
    pub end: At<EndMode>,
    /// Maximum number of iterations, in every mode. In an iteration each participant speaks once.
    #[key(default = polylogue::tasks::GroupSolve::DEFAULT_MAX_ITERATIONS, range = 1..=100_000)]
    pub max_iterations: u64,
    /// First message of a discussion between two agents.
    pub shift: At<Shift>,
    /// With two agents, adds the task and the answer of each to the history of the other, as if they were its own.
    #[key(default = false)]
    pub reconcile: At<bool>,
    /// Questions that ask agents whether their task is complete.
    pub check: Completion,
}

/// Condition that ends a discussion. The limit on iterations always applies.
#[derive(Config)]
#[config(name = "EndMode", for = EndMode)]
enum EndModeKey {
    /// At the limit on iterations. Agents are not asked whether their task is complete.
    MaxIterations,
    /// As soon as one task is complete.
    FirstCompletion,
    /// When one task is complete and the next speaker has spoken.
    OneLastChat,
    /// When one task is complete and every participant has spoken once more.
    OneLastGroupChat,
    /// As soon as the tasks of all agents that are asked are complete.
    AllComplete,
}

/// A task of an agent.
#[derive(Debug, Clone, PartialEq, Config)]
pub struct Task {
    /// Agent that solves the task.
    #[key(as = ParticipantRef)]
    pub who: At<Name>,
    /// Prompt of the task.
    pub prompt: At<Template>,
    /// Tools for this task, in addition to those of the agent.
    #[key(unique)]
    pub tools: At<Vec<At<GivenTool>>>,
    /// JSON Schema that the agent's replies to this task must satisfy.
    #[key(none = "none", nonempty)]
    pub output_schema: Option<At<Schema>>,
    /// Images, audio and documents that are attached to the prompt.
    pub media: Vec<Media>,
    /// Asks the agent after each of its turns whether its task is complete.
    #[key(default = false)]
    pub self_terminating: At<bool>,
    /// Keeps the agent's answers about what remains to be done in its history.
    #[key(default = false)]
    pub keeps_reflections: At<bool>,
    /// Removes the prompt and the answer of a task that is solved alone from the agent's history.
    #[key(default = false)]
    pub forget: At<bool>,
}

/// An image, audio or document.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct Media {
    /// Media type, such as `image/png`.
    #[key(name = "type", nonempty)]
    pub kind: String,
    /// Address, beginning with `https:` or `data:`.
    #[key(as = MediaText, nonempty)]
    pub url: String,
}

/// First message of a discussion between two agents.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
#[config(name = "FirstMessage")]
pub struct Shift {
    /// Agent that receives the message and speaks first.
    #[key(as = Option<MemberRef>, none = "the second agent")]
    pub to: Option<Name>,
    /// Text of the message.
    #[key(none = "the other agent's answer to its task", nonempty)]
    pub says: Option<String>,
}

/// Questions that ask an agent whether its task is complete: what remains to be done, then a decision.
#[derive(Debug, Clone, Default, PartialEq, Config)]
pub struct Completion {
    /// First question: what remains to be done. The agent answers freely.
    #[key(none = "a built-in text", nonempty)]
    pub reflection: Option<String>,
    /// Second question: whether anything remains to be done.
    #[key(none = "a built-in text", nonempty)]
    pub decision: Option<String>,
    /// Question for a retry after an answer that contains no decision.
    #[key(none = "a built-in text", nonempty)]
    pub again: Option<String>,
    /// Words of the decision.
    #[key(none = "`yes` and `no`")]
    pub words: Option<DecisionWords>,
    /// Temperature of the decision. `own` uses the agent's temperature.
    #[key(none = "0.3", range = 0..=2)]
    pub temperature: Option<DecisionTemperature>,
    /// Requests the decision as JSON.
    #[key(none = "if the model is known to support a schema")]
    pub structured: Option<bool>,
}

/// Words of a decision, letters only.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
pub struct DecisionWords {
    /// Word for a task that is not complete.
    #[key(nonempty)]
    pub open: At<String>,
    /// Word for a complete task.
    #[key(nonempty)]
    pub complete: At<String>,
}

/// Temperature of a decision.
#[derive(Debug, Clone, Copy, PartialEq, Config)]
#[config(by_shape)]
pub enum DecisionTemperature {
    /// The agent's temperature, for models that accept no other.
    Own(Own),
    /// This temperature.
    Of(f64),
}

/// The word `own`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
#[config(name = "OwnTemperature")]
pub enum Own {
    /// The agent's temperature.
    Own,
}
