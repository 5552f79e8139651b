//! Calls between two markers.

use std::sync::Arc;

use polylogue_core::Message;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Parser, value};

/// The value that a [`ToolBlock`] parses. As JSON it has the keys `tool_type`, `thought`, `action` and `status`, and
/// `flaw` if the block was refused.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ParsedBlock {
    /// The kind of tool; `None` when the text has no block.
    pub tool_type: Option<String>,
    /// The text before the block, or the whole text when there is none.
    pub thought: String,
    /// The content of the block, or what validation made of it; null when there is none.
    pub action: Value,
    /// 1 for a block, 0 for none, -1 for a block whose content was refused: then it is the raw text, and not a call.
    pub status: i8,
    /// Why validation refused the content.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flaw: Option<String>,
}

impl ParsedBlock {
    /// Returns the value in `message`; `None` if no block parser made one.
    pub fn from_message(message: &Message) -> Option<Self> {
        serde_json::from_value(value(message)?.clone()).ok()
    }

    /// A text without a block.
    fn none(text: &str) -> Self {
        Self { tool_type: None, thought: text.into(), action: Value::Null, status: 0, flaw: None }
    }

    /// Returns the kind of tool, if the text has a call, valid or not.
    pub fn calls(message: &Message) -> Option<String> {
        Self::from_message(message)?.tool_type
    }
}

/// Parses the first block between two markers. The end marker can be missing, as with a stop word.
#[derive(Clone, derive_more::Debug)]
#[must_use]
pub struct ToolBlock {
    kind: String,
    template: String,
    begin: String,
    end: String,
    #[debug(skip)]
    validate: Option<Arc<Validate>>,
    restores: bool,
}

type Validate = dyn Fn(&str) -> Result<Value, String> + Send + Sync;

impl ToolBlock {
    /// Blocks for a kind of tool, between `<tool>` and `</tool>`.
    pub fn new(kind: impl Into<String>) -> Self {
        let (begin, end) = ("<tool>\n".into(), "</tool>\n".into());
        Self { kind: kind.into(), template: String::new(), begin, end, validate: None, restores: false }
    }

    /// Sets the markers.
    pub fn between(self, begin: impl Into<String>, end: impl Into<String>) -> Self {
        Self { begin: begin.into(), end: end.into(), ..self }
    }

    /// Sets the format instructions.
    pub fn instructions(self, template: impl Into<String>) -> Self {
        Self { template: template.into(), ..self }
    }

    /// Sets a function that converts or refuses the content of a block. Must be deterministic.
    pub fn validate(self, validate: impl Fn(&str) -> Result<Value, String> + Send + Sync + 'static) -> Self {
        Self { validate: Some(Arc::new(validate)), ..self }
    }

    /// Accepts only blocks with a JSON object.
    pub fn json(self) -> Self {
        self.validate(|text| match serde_json::from_str(text.trim()) {
            Ok(value @ Value::Object(_)) => Ok(value),
            Ok(_) => Err("it is not a JSON object".into()),
            Err(error) => Err(error.to_string()),
        })
    }

    /// Sends the model its earlier blocks with both markers, and without the text after them; refused blocks are
    /// omitted.
    pub fn restore(self) -> Self {
        Self { restores: true, ..self }
    }

    fn read(&self, text: &str) -> ParsedBlock {
        let Some((thought, rest)) = text.split_once(&self.begin) else {
            return ParsedBlock::none(text);
        };
        let action = rest.split_once(&self.end).map_or(rest, |(action, _)| action);
        let (action, status, flaw) = match self.validate.as_ref().map(|validate| validate(action)) {
            None => (Value::from(action), 1, None),
            Some(Ok(value)) => (value, 1, None),
            Some(Err(flaw)) => (Value::from(action), -1, Some(flaw)),
        };
        ParsedBlock { tool_type: Some(self.kind.clone()), thought: thought.into(), action, status, flaw }
    }

    fn write(&self, text: &str, block: &ParsedBlock) -> Option<String> {
        match (&block.action, block.status) {
            _ if !self.restores => Some(text.to_owned()),
            (_, -1) => None,
            (Value::Null, _) => Some(block.thought.clone()),
            (Value::String(action), _) => {
                Some(format!("{}{}{action}{}", block.thought, self.begin, self.end))
            }
            (action, _) => Some(format!("{}{}{action}{}", block.thought, self.begin, self.end)),
        }
    }
}

impl Parser for ToolBlock {
    fn instruction(&self) -> String {
        self.template.clone()
    }

    fn parse(&self, text: &str) -> Result<Option<Value>, String> {
        Ok(serde_json::to_value(self.read(text)).ok())
    }

    fn render(&self, text: &str, value: &Value) -> Option<String> {
        match serde_json::from_value(value.clone()) {
            Ok(block) => self.write(text, &block),
            Err(_) => Some(text.to_owned()),
        }
    }
}

/// Several kinds of blocks: parses the first kind, in the given order, that is in the text.
#[derive(Debug, Clone, Default)]
pub struct ToolBlocks {
    template: String,
    blocks: Vec<ToolBlock>,
}

impl ToolBlocks {
    /// Creates a parser of blocks of these kinds.
    pub fn new(blocks: impl IntoIterator<Item = ToolBlock>) -> Self {
        Self { template: String::new(), blocks: blocks.into_iter().collect() }
    }

    /// Sets the text before the format instructions of the blocks.
    #[must_use]
    pub fn instructions(self, template: impl Into<String>) -> Self {
        Self { template: template.into(), ..self }
    }
}

impl Parser for ToolBlocks {
    fn instruction(&self) -> String {
        let texts = std::iter::once(&self.template).chain(self.blocks.iter().map(|block| &block.template));
        texts.filter(|text| !text.trim().is_empty()).cloned().collect::<Vec<_>>().join("\n\n")
    }

    fn parse(&self, text: &str) -> Result<Option<Value>, String> {
        let mut read = self.blocks.iter().map(|block| block.read(text));
        Ok(serde_json::to_value(
            read.find(|block| block.tool_type.is_some()).unwrap_or_else(|| ParsedBlock::none(text)),
        )
        .ok())
    }

    fn render(&self, text: &str, value: &Value) -> Option<String> {
        let kind = value.get("tool_type").and_then(Value::as_str);
        match self.blocks.iter().find(|block| Some(&*block.kind) == kind) {
            Some(block) => block.render(text, value),
            None => Some(text.to_owned()),
        }
    }
}
