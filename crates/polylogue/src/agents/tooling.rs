//! Tools and structured output for models with neither function calls nor schemas.
//!
//! An [`Assistant`](crate::Assistant) with tools works with any model. The way of calling tools depends on the
//! capabilities of the model, or is set by [`tool_calling`](crate::Assistant::tool_calling):
//!
//! 1. [`Native`](ToolCalling::Native): the provider's function calls.
//! 2. [`Schema`](ToolCalling::Schema): every reply is a JSON object that satisfies a schema: either a message or a
//!    call.
//! 3. [`Json`](ToolCalling::Json): a dialog, step by step, with arguments in the provider's JSON mode.
//! 4. [`Text`](ToolCalling::Text): the same dialog in plain text.
//!
//! In the dialog the model reads about the tool and confirms; is asked whether the tool helps, unless the tool is
//! mandatory; writes its arguments as JSON; and solves the task with the result of the tool. With several tools the
//! model chooses one by name, and is asked after each call whether it needs another. JSON is parsed leniently. JSON
//! errors and errors of the tool are sent to the model for a retry, up to a limit. All steps are in the log; none stays
//! in the agent's history, unless a [`ToolHistory`] is set.
//!
//! # A mandatory tool with an example
//! ```
//! use polylogue::layers::executor::Declared;
//! use polylogue::agents::tooling::{PromptedTool, ToolCalling};
//! use polylogue::{AnyModel, Assistant};
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Guess {
//!     secret: u32,
//!     guess: u32,
//! }
//! # fn example(model: AnyModel) -> Result<Assistant, polylogue::kernel::NameError> {
//! let compare = Declared::new("high_low", "Compares two numbers.", async |Guess { secret, guess }: Guess| {
//!     Ok(format!("The secret number is {:?} than the guess.", secret.cmp(&guess)))
//! });
//! let compare = PromptedTool::new(compare)
//!     .mandatory()
//!     .example("compare 3 with the secret 7", serde_json::json!({"secret": 7, "guess": 3}));
//! Ok(Assistant::new("Master", model)?.prompted_tool(compare).tool_calling(ToolCalling::Text))
//! # }
//! ```
//!
//! # Structured output
//! ```
//! # use polylogue::{AnyModel, Assistant};
//! # fn example(model: AnyModel) -> Result<Assistant, polylogue::kernel::NameError> {
//! let schema = serde_json::json!({
//!     "type": "object", "properties": {"city": {"type": "string"}, "population": {"type": "integer"}},
//!     "required": ["city", "population"], "additionalProperties": false,
//! });
//! // The message is the JSON text, and the same as a value: `Part::Data`.
//! Ok(Assistant::new("Geographer", model)?.output_schema(schema))
//! # }
//! ```
//!
//! # Capabilities of a model
//! Capabilities belong to the model: `polylogue_models::Config::capabilities` sets them for an endpoint,
//! `LearnedCapabilities` remembers what was detected, and a custom model returns them from
//! [`Model::capabilities`](polylogue_core::Model::capabilities). Unknown ones are tried, best way first; a refusal is
//! logged as [`Body::CapabilityMissing`](polylogue_core::Body::CapabilityMissing), and the turn continues in the next
//! way.
//! ```
//! # use polylogue::{AnyModel, Assistant, Tool};
//! use polylogue::agents::tooling::ToolCalling;
//! # fn example(model: AnyModel, clock: impl Tool) -> Result<Assistant, polylogue::kernel::NameError> {
//! // The model has function calls but chooses wrong tools: JSON objects with a schema work better.
//! Ok(Assistant::new("Clerk", model)?.tool(clock).tool_calling(ToolCalling::Schema))
//! # }
//! ```
//!
//! # Several tools, and a history as in Yacana's first generation
//! ```
//! # use polylogue::{AnyModel, Assistant, Tool};
//! use polylogue::agents::tooling::{PromptedTool, ToolCalling, ToolHistory};
//! # fn example(model: AnyModel, add: impl Tool, note: impl Tool) -> Result<Assistant, polylogue::kernel::NameError> {
//! // A mandatory tool and an optional one. The first can fail twice, and get invalid arguments once.
//! let add = PromptedTool::new(add).mandatory().max_errors(2).max_call_errors(1);
//! Ok(Assistant::new("Clerk", model)?.prompted_tool(add).tool(note).tool_calling(ToolCalling::Text).tool_history(ToolHistory::Full))
//! # }
//! ```
//!
//! # Reasoning
//! The reasoning of a model, in a field of the response or between `<think>` tags, is a
//! [`Part::Thought`](polylogue_core::Part::Thought) of the reply in the log. Decisions, arguments and answers are never
//! parsed from it, and other agents do not see it.

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

/// How a model calls tools and writes structured output.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolCalling {
    /// The best way that the model supports. Known capabilities are configuration of the model
    /// ([`Model::capabilities`](polylogue_core::Model::capabilities)); unknown ones are tried, and when the provider
    /// refuses, the agent switches to the next way, in the same turn and from then on.
    #[default]
    Auto,
    /// The provider's function calls.
    Native,
    /// Replies that satisfy a JSON Schema.
    Schema,
    /// A dialog, with the provider's JSON mode for JSON.
    Json,
    /// A dialog in plain text; JSON mode only where the model is known to support it.
    Text,
}

/// What an agent's history keeps of a turn with prompted tool calls.
///
/// With native calls, calls and results always stay in the history, as providers require.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolHistory {
    /// The final message only.
    #[default]
    Answer,
    /// The five messages of Yacana's first generation: the task, that the tool can be used, that it is used, its
    /// arguments, its result. The result of a single tool is also the agent's message, unless the agent has an output
    /// schema; with several tools, the last message says why no further call is needed.
    Full,
}

/// A tool with prompting options for models that call tools by text.
#[derive(Debug, Clone)]
pub struct PromptedTool {
    tool: AnyTool,
    must: bool,
    examples: Vec<(String, Value)>,
    max_errors: u32,
    max_call_errors: u32,
}

impl PromptedTool {
    /// Default limit on errors in a row, of each kind.
    pub const DEFAULT_MAX_ERRORS: u32 = 5;

    /// An optional tool.
    #[must_use]
    pub fn new(tool: impl Tool) -> Self {
        Self::of(AnyTool::new(tool))
    }

    pub(crate) const fn of(tool: AnyTool) -> Self {
        let limit = Self::DEFAULT_MAX_ERRORS;
        Self { tool, must: false, examples: Vec::new(), max_errors: limit, max_call_errors: limit }
    }

    /// Makes the tool mandatory: it must be called in every turn that is not private.
    #[must_use]
    pub fn mandatory(self) -> Self {
        Self { must: true, ..self }
    }

    /// Adds an example: a request and the arguments for it. Models that call tools by text read it before they write
    /// their own arguments; it never stays in a history.
    #[must_use]
    pub fn example(mut self, request: impl Into<String>, args: Value) -> Self {
        self.examples.push((request.into(), args));
        self
    }

    /// Sets how often in a row, in one call, the tool can fail or its arguments be invalid JSON. One error more ends
    /// the chat with [`Reason::Errors`](crate::stop::Reason::Errors). Applies to tools called by text.
    #[must_use]
    pub fn max_errors(self, errors: u32) -> Self {
        Self { max_errors: errors, ..self }
    }

    /// Sets how often in a row, in one call, the arguments can violate the tool's schema. As
    /// [`max_errors`](Self::max_errors), and counted separately.
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
