//! Tasks: prompts that agents solve, alone or together with others.
//!
//! A [`Task`] is a prompt and the agent that answers it. Tasks are solved one after the other ([`tasks`](super::tasks)), or by
//! several agents that talk until one task, or all, are complete ([`GroupSolve`](super::GroupSolve)). Prompts and answers stay in the
//! agent's history of the conversation: its next task continues from there.
//!
//! # A task after another
//! ```
//! use polylogue::tasks::{Task, tasks};
//! use polylogue::{AnyModel, Assistant, Chat};
//! # fn example(model: AnyModel) -> polylogue::Result<Chat> {
//! let keeper = Assistant::new("Keeper", model)?;
//! let draw = Task::new(keeper.clone(), "Think of a number from 1 to 9. Say it once, now.");
//! let double = Task::new(keeper, "Double the number.");
//! tasks("numbers", [draw, double])
//! # }
//! ```
//!
//! # A task without a trace in the history
//! ```
//! # use polylogue::tasks::Task;
//! # use polylogue::{AnyModel, Assistant};
//! # fn example(model: AnyModel) -> Result<Task, polylogue::kernel::data::NameError> {
//! let judge = Assistant::new("Judge", model)?;
//! Ok(Task::new(judge, "Is the text above about money? Answer yes or no.").forget())
//! # }
//! ```

use std::sync::Arc;

use polylogue_core::{
    Act, Agent, AnyAgent, ConfigError, Error, Media, Name, Part, PatternError, Result, Tool, Turn,
    ViewOptions,
};
use serde_json::Value;

use crate::Assistant;
use crate::agents::tooling::{AssistantTurn, PromptedTool};

/// A prompt for an agent.
///
/// A task is configuration: the same value can be solved in any number of conversations.
#[derive(Clone, derive_more::Debug)]
#[must_use]
pub struct Task {
    worker: Worker,
    #[debug(skip)]
    prompt: PromptFn,
    has_prompt: bool,
    media: Vec<Media>,
    self_terminating: bool,
    keeps_reflections: bool,
    forgets: bool,
    /// A setting that the worker does not support.
    flaw: Option<&'static str>,
}

/// Makes the prompt from the task of the chat.
type PromptFn = Arc<dyn Fn(&str) -> Arc<str> + Send + Sync>;

/// The worker of a task.
#[derive(Clone, Debug)]
enum Worker {
    Model(Box<Assistant>),
    Other(AnyAgent),
}

impl Task {
    /// Creates the task `prompt` for an agent with a model.
    ///
    /// Tasks whose agents have the same name belong to the same agent: each can have other settings.
    pub fn new(agent: Assistant, prompt: impl Into<Arc<str>>) -> Self {
        // Checks of completion are private turns, and must leave no trace in what the agent reads.
        let options = ViewOptions { forget_private_turns: true, ..agent.view_options().clone() };
        Self::of(Worker::Model(Box::new(agent.view(options))), prompt.into())
    }

    /// Creates the task `prompt` for any other agent: a person, a function, a stack of layers, or a chat. It can talk about its
    /// task, but cannot be asked whether it is complete.
    pub fn by(agent: impl Agent, prompt: impl Into<Arc<str>>) -> Self {
        Self::of(Worker::Other(AnyAgent::new(agent)), prompt.into())
    }

    fn of(worker: Worker, prompt: Arc<str>) -> Self {
        Self {
            worker,
            has_prompt: !prompt.trim().is_empty(),
            prompt: Arc::new(move |_| Arc::clone(&prompt)),
            media: Vec::new(),
            self_terminating: false,
            keeps_reflections: false,
            forgets: false,
            flaw: None,
        }
    }

    /// Sets a prompt made from the task of the chat. Must be deterministic.
    pub fn prompt_from(self, prompt: impl Fn(&str) -> String + Send + Sync + 'static) -> Self {
        Self { prompt: Arc::new(move |about| prompt(about).into()), has_prompt: true, ..self }
    }

    /// Adds a tool for turns about this task.
    pub fn tool(self, tool: impl Tool) -> Self {
        self.model("has a tool", |agent| agent.tool(tool))
    }

    /// Adds a tool with prompting options for turns about this task: see [`Assistant::prompted_tool`].
    pub fn prompted_tool(self, prompted: PromptedTool) -> Self {
        self.model("has a tool", |agent| agent.prompted_tool(prompted))
    }

    /// Sets the output schema of the agent for this task: see [`Assistant::output_schema`].
    pub fn output_schema(self, schema: Value) -> Self {
        self.model("has a schema", |agent| agent.output_schema(schema))
    }

    /// Adds a picture, sound or document to the prompt. It is sent once, with the prompt.
    pub fn media(mut self, media: Media) -> Self {
        self.media.push(media);
        self
    }

    /// Lets the agent judge when its task is complete: in a group that ends by that, it is asked after each of its
    /// turns.
    pub fn self_terminating(self) -> Self {
        let flaw = self.flaw.or(self.assistant().is_none().then_some("stops by itself"));
        Self { self_terminating: true, flaw, ..self }
    }

    /// Keeps the answers about what is left to do in the agent's own history.
    pub fn keeps_reflections(self) -> Self {
        Self { keeps_reflections: true, ..self }
    }

    /// Keeps neither prompt nor answer in the agent's history. For solo tasks.
    pub fn forget(self) -> Self {
        let flaw = self.flaw.or(self.assistant().is_none().then_some("forgets"));
        Self { forgets: true, flaw, ..self }
    }

    fn model(self, what: &'static str, change: impl FnOnce(Assistant) -> Assistant) -> Self {
        match self.worker {
            Worker::Model(agent) => Self { worker: Worker::Model(Box::new(change(*agent))), ..self },
            worker @ Worker::Other(_) => Self { worker, flaw: self.flaw.or(Some(what)), ..self },
        }
    }

    /// Returns the agent's name.
    pub fn who(&self) -> &Name {
        match &self.worker {
            Worker::Model(agent) => agent.name(),
            Worker::Other(agent) => agent.name(),
        }
    }

    pub(crate) fn description(&self) -> &str {
        match &self.worker {
            Worker::Model(agent) => Agent::description(&**agent),
            Worker::Other(agent) => agent.description(),
        }
    }

    /// The agent, if it can be asked whether its task is complete.
    pub(crate) fn assistant(&self) -> Option<&Assistant> {
        match &self.worker {
            Worker::Model(agent) => Some(agent),
            Worker::Other(_) => None,
        }
    }

    /// The prompt in a chat with the task `about`.
    pub(crate) fn prompt(&self, about: &str) -> Arc<str> {
        (self.prompt)(about)
    }

    /// The parts of the message with `text`, which is made from the prompt.
    pub(crate) fn parts(&self, text: Arc<str>) -> Vec<Part> {
        std::iter::once(Part::Text(text)).chain(self.media.iter().cloned().map(Part::Media)).collect()
    }

    pub(crate) const fn has_media(&self) -> bool {
        !self.media.is_empty()
    }

    pub(crate) const fn is_flagged(&self) -> bool {
        self.self_terminating
    }

    pub(crate) const fn keeps(&self) -> bool {
        self.keeps_reflections
    }

    pub(crate) const fn is_forgotten(&self) -> bool {
        self.forgets
    }

    /// Runs a turn about it.
    pub(crate) async fn work(&self, turn: &mut Turn<'_>) -> Result<Act> {
        match &self.worker {
            Worker::Model(agent) => AssistantTurn::begin(agent, turn).about_a_task().act().await,
            Worker::Other(agent) => agent.act(turn).await,
        }
    }

    /// Whether the worker supports all settings.
    pub(crate) fn check(&self) -> Result<()> {
        if !self.has_prompt && self.media.is_empty() {
            return Err(ConfigError::missing(format!("the task of `{}`", self.who()), "prompt").into());
        }
        self.flaw.map_or(Ok(()), |has| {
            let but = format!("`{}` does not speak by a model", self.who());
            Err(self.conflict(has, &but, "for an `Assistant`, use `Task::new`"))
        })
    }

    /// The task `has` a setting that `but` excludes.
    pub(super) fn conflict(&self, has: &str, but: &str, hint: &'static str) -> Error {
        let of = format!("the task of `{}`", self.who()).into();
        PatternError::Conflict { of, has: has.into(), but: but.into(), hint: Some(hint) }.into()
    }
}
