//! How tools and output schemas reach models: settings of an assistant.

use polylogue_core::{AnyTool, Tool};
use serde_json::Value;

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

/// The part that an agent's history keeps of a turn with prompted tool calls.
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
#[must_use]
pub struct PromptedTool {
    tool: AnyTool,
    pub(super) must: bool,
    examples: Vec<(String, Value)>,
    pub(super) max_errors: u32,
    pub(super) max_call_errors: u32,
}

impl PromptedTool {
    /// Default limit on errors in a row, of each kind.
    pub const DEFAULT_MAX_ERRORS: u32 = 5;

    /// Creates an optional tool with the default options.
    pub fn new(tool: impl Tool) -> Self {
        Self::of(AnyTool::new(tool))
    }

    pub(crate) const fn of(tool: AnyTool) -> Self {
        let limit = Self::DEFAULT_MAX_ERRORS;
        Self { tool, must: false, examples: Vec::new(), max_errors: limit, max_call_errors: limit }
    }

    /// Makes the tool mandatory: it must be called in every turn that is not private.
    pub fn mandatory(self) -> Self {
        Self { must: true, ..self }
    }

    /// Adds an example: a request and the arguments for it. Models that call tools by text read it before they write
    /// their own arguments; it never stays in a history.
    pub fn example(mut self, request: impl Into<String>, args: Value) -> Self {
        self.examples.push((request.into(), args));
        self
    }

    /// Sets how often in a row, in one call, the tool can fail or its arguments be invalid JSON. One error more ends
    /// the chat with [`LibraryStopReason::Errors`](crate::stop::LibraryStopReason::Errors). Applies to tools called by text.
    pub fn max_errors(self, errors: u32) -> Self {
        Self { max_errors: errors, ..self }
    }

    /// Sets how often in a row, in one call, the arguments can violate the tool's schema. As
    /// [`max_errors`](Self::max_errors), and counted separately.
    pub fn max_call_errors(self, errors: u32) -> Self {
        Self { max_call_errors: errors, ..self }
    }

    /// Returns the tool.
    pub const fn tool(&self) -> &AnyTool {
        &self.tool
    }

    pub(crate) fn name(&self) -> &str {
        &self.tool.spec().name
    }

    pub(super) fn examples(&self) -> &[(String, Value)] {
        &self.examples
    }
}
