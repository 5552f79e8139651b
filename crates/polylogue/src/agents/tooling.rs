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
//! use polylogue::tools::FunctionTool;
//! use polylogue::agents::tooling::{PromptedTool, ToolCalling};
//! use polylogue::{AnyModel, Assistant};
//! #[derive(serde::Deserialize, schemars::JsonSchema)]
//! struct Guess {
//!     secret: u32,
//!     guess: u32,
//! }
//! # fn example(model: AnyModel) -> Result<Assistant, polylogue::kernel::data::NameError> {
//! let compare = FunctionTool::new("high_low", "Compares two numbers.", async |Guess { secret, guess }: Guess| {
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
//! # fn example(model: AnyModel) -> Result<Assistant, polylogue::kernel::data::NameError> {
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
//! # fn example(model: AnyModel, clock: impl Tool) -> Result<Assistant, polylogue::kernel::data::NameError> {
//! // The model has function calls but chooses wrong tools: JSON objects with a schema work better.
//! Ok(Assistant::new("Clerk", model)?.tool(clock).tool_calling(ToolCalling::Schema))
//! # }
//! ```
//!
//! # Several tools, and a history as in Yacana's first generation
//! ```
//! # use polylogue::{AnyModel, Assistant, Tool};
//! use polylogue::agents::tooling::{PromptedTool, ToolCalling, ToolHistory};
//! # fn example(model: AnyModel, add: impl Tool, note: impl Tool) -> Result<Assistant, polylogue::kernel::data::NameError> {
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
mod model_settings;
mod native;
mod object;
mod read;
mod several;
mod support;
mod text;
mod turn;
mod words;

pub(crate) use super::lenient;

pub(crate) use self::answer::one_turn;
pub use self::model_settings::ModelSettings;
pub(crate) use self::turn::{AssistantTurn, continued, marked};
pub use crate::agents::prompted::{PromptedTool, ToolCalling, ToolHistory};
