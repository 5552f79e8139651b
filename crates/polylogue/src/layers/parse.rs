//! Parsers for model output.
//!
//! A [`Parser`] makes a value of a text. [`Parsed`] is an agent with a parser: its message has the text, and the value
//! as [`Part::Note`], which models never receive. The model is prompted with the format, and sees its earlier output as
//! it wrote it. Text that cannot be parsed is not a call: [`ActionExecutor`] runs only what was parsed, and reports the rest
//! as errors.
//! | you want | look at |
//! |---|---|
//! | plain text, with a format in the system message | [`Template`] |
//! | a call between two markers, such as a fenced block | [`ToolBlock`] |
//! | one of several such blocks | [`ToolBlocks`] |
//! | JSON that satisfies a schema | [`Assistant::output_schema`](crate::Assistant::output_schema) |
//! | anything else | a custom [`Parser`] |
//! | to run what was parsed | [`ActionExecutor`]; the result: [`CallRecord`] |
//!
//! # A model that writes Python when needed
//! ```
//! # fn example(model: polylogue_core::AnyModel, python: polylogue_core::AnyTool) -> polylogue_core::Result<()> {
//! use polylogue::Assistant;
//! use polylogue::layers::parse::{ActionExecutor, Parsed, ToolBlock};
//!
//! let block = ToolBlock::new("interpreter").between("```python\n", "\n```\n");
//! let coder = Parsed::new(Assistant::new("coder", model)?.system("Solve it step by step."), block);
//! let runner = ActionExecutor::new("runner")?.tool_for("interpreter", python);
//! # let _ = (coder, runner);
//! # Ok(())
//! # }
//! ```

mod action;
mod block;
mod call_record;
mod template;
mod tool_table;

use std::sync::Arc;

use polylogue_core::{Act, Agent, AnyModel, Entry, Error, Message, Part, Result, Turn};
use serde_json::Value;

pub use self::action::ActionExecutor;
pub use self::block::{ParsedBlock, ToolBlock, ToolBlocks};
pub use self::call_record::{CallRecord, RunState};
pub use self::template::Template;

use crate::Assistant;
use crate::layers::hook::HookedModel;

/// Parses values in texts.
pub trait Parser: Send + Sync + 'static {
    /// Returns the format instructions at the end of the system message; blank for none.
    fn instruction(&self) -> String {
        String::new()
    }

    /// Parses the value in `text`; `None` if there is none. Must be deterministic.
    ///
    /// # Errors
    /// What is wrong with the text, in words that the model can act on.
    fn parse(&self, text: &str) -> Result<Option<Value>, String>;

    /// Returns what the model receives instead of its own earlier `text` with `value` in it; `None` omits the message. Default:
    /// the original text.
    fn render(&self, text: &str, value: &Value) -> Option<String> {
        let _ = value;
        Some(text.to_owned())
    }
}

/// A model agent with a parser for its messages; see the [module](self).
#[derive(Clone, derive_more::Debug)]
pub struct Parsed {
    agent: Assistant,
    #[debug(skip)]
    parser: Arc<dyn Parser>,
    retries: u32,
}

impl Parsed {
    /// Wraps `agent` with a parser for its messages.
    pub fn new(agent: Assistant, parser: impl Parser) -> Self {
        let parser: Arc<dyn Parser> = Arc::new(parser);
        let (renders, instructs, before) = (Arc::clone(&parser), Arc::clone(&parser), agent.clone());
        let model =
            HookedModel::new(agent.model.clone()).on_view(move |entries, _| as_sent(&*renders, entries));
        let mut agent = agent;
        agent.model = AnyModel::new(model);
        let agent = agent.system_from(move |task| {
            let texts = [before.system_for(task).unwrap_or_default(), instructs.instruction().into()];
            let texts: Vec<&str> =
                texts.iter().map(|text| &**text).filter(|text| !text.trim().is_empty()).collect();
            texts.join("\n\n")
        });
        Self { agent, parser, retries: 0 }
    }

    /// Sets how often the model is sent the error and asked again when its text cannot be parsed. After that the turn
    /// fails.
    #[must_use]
    pub fn retries(self, retries: u32) -> Self {
        Self { retries, ..self }
    }

    /// Returns the assistant by which its model is called, with the format in its system message. For inspection.
    pub const fn assistant(&self) -> &Assistant {
        &self.agent
    }

    /// Copies the agent with other settings, such as stop words, made by `change`. The copy shares the memory.
    #[must_use]
    pub fn with(self, change: impl FnOnce(Assistant) -> Assistant) -> Self {
        Self { agent: change(self.agent), ..self }
    }
}

/// Returns the last value in `message`: of a parser, or of an [output schema](Assistant::output_schema).
pub fn value(message: &Message) -> Option<&Value> {
    message.parts.iter().rev().find_map(|part| match part {
        Part::Note(value) | Part::Data(value) => Some(value),
        _ => None,
    })
}

/// Returns `entries` as the model of a [`Parsed`] agent receives them: what it wrote before is [rendered](Parser::render). For
/// inspection.
pub fn as_sent(parser: &dyn Parser, entries: Vec<Entry>) -> Vec<Entry> {
    entries.into_iter().filter_map(|entry| rendered(entry, parser)).collect()
}

/// An entry as the model receives it: its own earlier messages as the parser renders them. Those with a call stay
/// unchanged, since the result follows.
fn rendered(entry: Entry, parser: &dyn Parser) -> Option<Entry> {
    // Thoughts belong to the text as the model wrote it.
    let is_replaced = |part: &Part| matches!(part, Part::Text(_) | Part::Thought(_));
    let Entry::Assistant { parts, .. } = &entry else { return Some(entry) };
    let text = polylogue_core::text_of(parts).into_owned();
    let calls = parts.iter().any(|part| matches!(part, Part::ToolCall(_)));
    let value = if calls || text.is_empty() { None } else { parser.parse(&text).ok().flatten() };
    let Some(value) = value else { return Some(entry) };
    let text = Part::text(parser.render(&text, &value)?);
    let rest = parts.iter().filter(|part| !is_replaced(part)).cloned();
    Some(Entry::own(std::iter::once(text).chain(rest).collect()))
}

impl Agent for Parsed {
    forward_agent!(agent: name, description, sub_agents, background_agent);

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let mut left = self.retries;
        loop {
            let parts = match self.agent.act(turn).await? {
                Act::Say(parts) => parts,
                act => return Ok(act),
            };
            match self.parser.parse(&polylogue_core::text_of(&parts)) {
                Ok(value) => return Ok(Act::Say(parts.into_iter().chain(value.map(Part::Note)).collect())),
                Err(flaw) if left > 0 => turn.prompt(format!("{flaw} Write it again.")).await?,
                Err(flaw) => {
                    return Err(Error::agent(format!("what `{}` wrote cannot be read: {flaw}", self.name())));
                }
            }
            left -= 1;
        }
    }
}
