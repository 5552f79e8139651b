//! Tools and answers of a form for models that know neither function calls nor schemas.
//!
//! An [`Assistant`](crate::Assistant) with tools works with any model. How tools are called is chosen by what the model can
//! do, or by [`tools_by`](crate::Assistant::tool_calling):
//!
//! 1. [`Native`](ToolCalling::Native): the provider's function calls.
//! 2. [`Schema`](ToolCalling::Schema): every reply is a JSON object, held to a schema: either something to say, or a call.
//! 3. [`Json`](ToolCalling::Json): a talk, step by step, in which arguments are written in the provider's JSON mode.
//! 4. [`Text`](ToolCalling::Text): the same talk with nothing but text.
//!
//! In the talk the model is told of the tool, and says that it understood; whether it helps is asked when the tool need not
//! be used; its arguments are asked for as JSON; the tool is run, and the task is solved with what it returned. With several
//! tools the model chooses one by its name, and is asked after each call whether it needs another. JSON is read with lenience.
//! What is wrong with it, and what a tool refuses, is told to the model, which is asked again, up to a limit. All of it is in
//! the log; none of it stays in what the agent remembers, unless a [`ToolHistory`] is asked for.
//!
//! # A tool that must be used, with an example
//! ```
//! use polylogue::executor::Declared;
//! use polylogue::tooling::{Taught, ToolUse};
//! use polylogue::{AnyModel, Assistant};
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Guess {
//!     secret: u32,
//!     guess: u32,
//! }
//! # fn example(model: AnyModel) -> Result<Assistant, polylogue::NameError> {
//! let compare = Declared::new("high_low", "Compares two numbers.", async |Guess { secret, guess }: Guess| {
//!     Ok(format!("The secret number is {:?} than the guess.", secret.cmp(&guess)))
//! });
//! let compare = Taught::new(compare)
//!     .mandatory()
//!     .example("compare 3 with the secret 7", serde_json::json!({"secret": 7, "guess": 3}));
//! Ok(Assistant::new("Master", model)?.teach(compare).tools_by(ToolUse::Text))
//! # }
//! ```
//!
//! # An answer of a form
//! ```
//! # use polylogue::{AnyModel, Assistant};
//! # fn example(model: AnyModel) -> Result<Assistant, polylogue::NameError> {
//! let schema = serde_json::json!({
//!     "type": "object", "properties": {"city": {"type": "string"}, "population": {"type": "integer"}},
//!     "required": ["city", "population"], "additionalProperties": false,
//! });
//! // What it says is the JSON, and the same as a value: `Part::Data`.
//! Ok(Assistant::new("Geographer", model)?.answers(schema))
//! # }
//! ```
//!
//! # A model of which it is known what it can do
//! Capabilities belong to the model: `polylogue_models::Config::capabilities` sets them for an endpoint, `LearnedCapabilities` remembers what turned
//! out, and a model of one's own says them by [`Model::capabilities`](polylogue_core::Model::capabilities). What is unknown is tried, best way
//! first; a refusal is in the log as [`Body::CapabilityMissing`](polylogue_core::Body::CapabilityMissing), and the turn goes on in the next way.
//! ```
//! # use polylogue::{AnyModel, Assistant, Tool};
//! use polylogue::tooling::ToolUse;
//! # fn example(model: AnyModel, clock: impl Tool) -> Result<Assistant, polylogue::NameError> {
//! // It takes tools, but calls the wrong ones: objects that are held to a schema do better.
//! Ok(Assistant::new("Clerk", model)?.tool(clock).tools_by(ToolUse::Schema))
//! # }
//! ```
//!
//! # Several tools, and a history as Yacana's first generation has it
//! ```
//! # use polylogue::{AnyModel, Assistant, Tool};
//! use polylogue::tooling::{Taught, ToolUse, Trace};
//! # fn example(model: AnyModel, add: impl Tool, note: impl Tool) -> Result<Assistant, polylogue::NameError> {
//! // One that must be used in every turn, and one that is asked about; twice it may be refused, once called with nonsense.
//! let add = Taught::new(add).mandatory().max_errors(2).max_call_errors(1);
//! Ok(Assistant::new("Clerk", model)?.teach(add).tool(note).tools_by(ToolUse::Text).trace(Trace::FiveMessages))
//! # }
//! ```
//!
//! # Thoughts
//! What a reasoning model thinks, whether its server tells it by a field or it stands between `<think>` tags, is a
//! [`Part::Thought`](polylogue_core::Part::Thought) of the reply in the log. It is read for no decision, no arguments and no answer,
//! and no other agent is sent it.

mod answer;
mod asks;
mod can;
pub(crate) mod check;
pub(crate) mod lenient;
mod native;
mod object;
mod read;
mod several;
mod talk;
mod words;
mod work;

use polylogue_core::{AnyTool, Tool};
use serde_json::Value;

pub use self::asks::Asks;
pub(crate) use self::work::{Work, continued, marked};

/// How a model is made to call tools, and to answer in a form.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolCalling {
    /// By the best way that the model knows. What it is known to be able to do is configuration of the model
    /// ([`Model::capabilities`](polylogue_core::Model::capabilities)); what is not known is tried, and when the provider refuses, the agent
    /// goes on in the next way, in the same turn and from then on.
    #[default]
    Auto,
    /// By the provider's function calls.
    Native,
    /// By replies that are held to a JSON Schema.
    Schema,
    /// Step by step, with the provider's JSON mode where JSON is asked for.
    Json,
    /// Step by step, with nothing but text; with JSON mode only where the model is known to have it.
    Text,
}

/// What an agent remembers of a turn in which it called tools by text.
///
/// Where calls are native, calls and results stay in its history, as providers want it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolHistory {
    /// What it said in the end: the task solved with what the tools returned.
    #[default]
    Answer,
    /// The five messages of Yacana's first generation: the task, that the tool can be used, that it is to be used, its
    /// arguments, what it returned. What the one tool returned is also what the agent says, unless it answers in a form; with
    /// several tools at hand it is why no further call is needed.
    Full,
}

/// A tool, and how a model is taught to use it.
#[derive(Debug, Clone)]
pub struct PromptedTool {
    tool: AnyTool,
    must: bool,
    examples: Vec<(String, Value)>,
    max_errors: u32,
    max_call_errors: u32,
}

impl PromptedTool {
    /// How many errors in a row are tolerated, of each kind, unless it is told otherwise.
    pub const DEFAULT_MAX_ERRORS: u32 = 5;

    /// `tool`, which the model may use or not.
    #[must_use]
    pub fn new(tool: impl Tool) -> Self {
        Self::of(AnyTool::new(tool))
    }

    pub(crate) const fn of(tool: AnyTool) -> Self {
        let limit = Self::DEFAULT_MAX_ERRORS;
        Self { tool, must: false, examples: Vec::new(), max_errors: limit, max_call_errors: limit }
    }

    /// The same tool, which has to be used in every turn in which the agent speaks to others.
    #[must_use]
    pub fn mandatory(self) -> Self {
        Self { must: true, ..self }
    }

    /// Adds an example: what is asked for in words, and the arguments for that. Where tools are called by text the model reads
    /// it before it writes its own; it never stays in a history.
    #[must_use]
    pub fn example(mut self, request: impl Into<String>, args: Value) -> Self {
        self.examples.push((request.into(), args));
        self
    }

    /// Sets how often in a row, in one call, the tool may refuse what it is called with, or its arguments be no JSON. One error
    /// more ends the chat, as [`StopReason::Errors`](polylogue_core::StopReason::Errors). Holds where tools are called by text.
    #[must_use]
    pub fn max_errors(self, errors: u32) -> Self {
        Self { max_errors: errors, ..self }
    }

    /// Sets how often in a row, in one call, the arguments may not fit the tool's schema. As
    /// [`max_errors`](Self::max_errors), and counted apart from it.
    #[must_use]
    pub fn max_call_errors(self, errors: u32) -> Self {
        Self { max_call_errors: errors, ..self }
    }

    /// The tool.
    #[must_use]
    pub const fn tool(&self) -> &AnyTool {
        &self.tool
    }

    pub(crate) fn name(&self) -> &str {
        &self.tool.spec().name
    }

    fn examples(&self) -> &[(String, Value)] {
        &self.examples
    }
}
