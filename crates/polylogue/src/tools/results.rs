//! Large results of tools: stored whole next to the conversation, and read back piece by piece.
//!
//! A result of hundreds of kilobytes fills the context window of a model, and truncating it loses what the model needs. With [`LargeResults`], the model
//! receives the beginning and the end of such a result, and its id; `read_result` reads ranges of the whole and searches it. The definition of
//! `read_result` is among the tools from the start, so that prompt caches stay valid.
//!
//! Results are stored by the [store](polylogue_core::Store::store_blob) of the conversation, under a digest of their text: they survive kills and
//! resumption, and forks have a copy. A result has at most [`MAX_BYTES`](StoredResult::MAX_BYTES), a conversation at most
//! [`MAX_COUNT`](StoredResult::MAX_COUNT) results; beyond that, results are truncated. A model reads only results of its conversation.
//!
//! # Results of more than 20,000 bytes are stored
//! ```
//! use polylogue::tools::results::LargeResults;
//! # fn example(agent: polylogue::Assistant, tools: Vec<polylogue::kernel::tool::AnyTool>) -> polylogue::Assistant {
//! agent.tools(LargeResults::default().above(20_000).tools(tools))
//! # }
//! ```

mod read;

use polylogue_core::{
    AnyTool, NotStored, Part, StoredResult, Tool, ToolCx, ToolError, ToolResult, ToolSpec, text,
};
use serde_json::Value;

pub use self::read::ReadResult;

/// Bytes that a reference takes in a result at most.
const NOTE: usize = 256;

/// Settings of large results of tools, which are stored whole instead of truncated.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LargeResults {
    above: usize,
}

impl Default for LargeResults {
    fn default() -> Self {
        Self { above: Self::DEFAULT_ABOVE }
    }
}

impl LargeResults {
    /// Default of [`above`](Self::above): results up to this size are never truncated.
    pub const DEFAULT_ABOVE: usize = ToolResult::MAX_BYTES;

    /// Minimum number of bytes above which results are stored. With a lower limit they are truncated.
    pub const MIN_ABOVE: usize = 1_000;

    /// Maximum number of bytes of a stored result that the model receives at once: of its beginning and its end, and by a call
    /// of `read_result`.
    pub const SHOWN: usize = read::SHOWN;

    /// Sets the number of bytes up to which a result is not stored.
    #[must_use]
    pub const fn above(self, bytes: usize) -> Self {
        Self { above: bytes }
    }

    /// The bytes of a stored result that the model receives at once.
    fn shown(&self) -> usize {
        self.above.min(Self::SHOWN).saturating_sub(NOTE)
    }

    /// Returns `tools`, whose large results are stored, and `read_result`. If one of them has that name, `tools` unchanged.
    pub fn tools(&self, tools: impl IntoIterator<Item = AnyTool>) -> Vec<AnyTool> {
        let tools: Vec<AnyTool> = tools.into_iter().collect();
        let has_name = |tool: &AnyTool| tool.spec().name == StoredResult::READER;
        if tools.is_empty() || self.above < Self::MIN_ABOVE || tools.iter().any(has_name) {
            return tools;
        }
        let reader = AnyTool::new(self.reader());
        tools.into_iter().map(|tool| self.around(tool)).chain([reader]).collect()
    }

    /// Wraps `tool`: its large results are stored. Its agent needs the [reader](Self::reader), too.
    pub fn around(&self, tool: AnyTool) -> AnyTool {
        AnyTool::new(StoringTool { tool, limits: self.clone() })
    }

    /// Returns the tool `read_result`, which returns as much at once as such a result has.
    pub fn reader(&self) -> ReadResult {
        ReadResult::default().max_bytes(self.shown())
    }
}

/// A tool whose large results are stored.
struct StoringTool {
    tool: AnyTool,
    limits: LargeResults,
}

impl StoringTool {
    /// `outcome`, or its beginning and end if it is large: with a reference, or with the reason why there is none.
    async fn stored(&self, outcome: ToolResult, cx: &ToolCx<'_>) -> ToolResult {
        let text = outcome.to_text();
        if text.len() <= self.limits.above || outcome.stored.is_some() {
            return outcome;
        }
        match cx.results.store(&text).await {
            Ok(stored) => outcome.shortened(self.limits.shown(), stored),
            Err(why) => truncated(outcome, self.limits.above, &why),
        }
    }
}

fn truncated(outcome: ToolResult, bytes: usize, why: &NotStored) -> ToolResult {
    let why = text::excerpt(&why.to_string(), NOTE / 2);
    let mut outcome = outcome.truncated_to(bytes.saturating_sub(NOTE));
    outcome.parts.push(Part::text(format!("(The whole result is not stored: {why}.)")));
    outcome
}

impl Tool for StoringTool {
    fn spec(&self) -> &ToolSpec {
        self.tool.spec()
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        match self.tool.call(args, cx).await {
            Ok(outcome) => Ok(self.stored(outcome, cx).await),
            Err(error) if error.0.len() <= self.limits.above => Err(error),
            Err(error) => Ok(self.stored(ToolResult::failed(error.0), cx).await),
        }
    }
}
