//! Runs what a parser read.

use polylogue_core::{
    Act, Agent, AnyTool, Call, Message, Name, NameError, Outcome, OutcomeStatus, Result, Tool, Turn,
};
use serde_json::{Value, json};

use super::Block;

/// An agent that runs the tool that the message it hears calls, as a [`Block`], and says what came of it.
///
/// A block that is an object is `{"name": ..., "parameters": {...}}`; one that is a text is code, for the tool that
/// [`runs`](Self::runs) its kind. What could not be read is never run: whoever wrote it is told so.
#[derive(Debug, Clone)]
pub struct Actions {
    name: Name,
    tools: Vec<AnyTool>,
    /// Kind of block, name of the tool.
    kinds: Vec<(String, String)>,
}

impl Actions {
    /// An agent without tools.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn new(name: &str) -> Result<Self, NameError> {
        Ok(Self { name: Name::new(name)?, tools: Vec::new(), kinds: Vec::new() })
    }

    /// Adds a tool. One of the same name is replaced.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        let tool = AnyTool::new(tool);
        self.tools.retain(|other| other.spec().name != tool.spec().name);
        self.tools.push(tool);
        self
    }

    /// Adds a tool that is given the text of blocks of this kind, as its argument `code`.
    #[must_use]
    pub fn runs(mut self, kind: &str, tool: impl Tool) -> Self {
        let tool = AnyTool::new(tool);
        self.kinds.retain(|(other, _)| other != kind);
        self.kinds.push((kind.to_owned(), tool.spec().name.clone()));
        self.tool(tool)
    }

    /// The call in `message`.
    ///
    /// # Errors
    /// What whoever wrote it is told.
    fn call(&self, message: &Message) -> Result<(String, Value), String> {
        let block = Block::of(message).ok_or("There is nothing to run.")?;
        match (block.action, block.status) {
            (_, -1) => Err("What you wrote has not the form asked for, and was not run.".into()),
            (Value::Null, _) => Err("There is nothing to run.".into()),
            (Value::String(code), _) => {
                let kind = block.tool_type.unwrap_or_default();
                let tool = self.kinds.iter().find(|(other, _)| *other == kind).map(|(_, tool)| tool.clone());
                Ok((
                    tool.ok_or_else(|| format!("There is nothing here that runs `{kind}`."))?,
                    json!({"code": code}),
                ))
            }
            (Value::Object(mut call), _) => match call.remove("name") {
                Some(Value::String(name)) => {
                    Ok((name, call.remove("parameters").unwrap_or_else(|| json!({}))))
                }
                _ => Err("A call has to have a `name` and `parameters`.".into()),
            },
            _ => Err("A call has to be an object with `name` and `parameters`.".into()),
        }
    }
}

impl Agent for Actions {
    fn name(&self) -> &Name {
        &self.name
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let (tool, args) = match self.call(&turn.message()) {
            Ok(call) => call,
            Err(flaw) => return Ok(Act::say(flaw)),
        };
        let id = format!("action-{}", turn.transcript().begun(turn.me()));
        let outcomes = turn.call(&self.tools, &[Call { id, tool, args }]).await?;
        Ok(outcomes.into_iter().next().map_or(Act::Pass, said))
    }
}

fn said(outcome: Outcome) -> Act {
    let is_blank = outcome.parts.iter().all(polylogue_core::Part::is_blank);
    match (is_blank, outcome.status) {
        (false, _) => Act::Say(outcome.parts),
        (true, OutcomeStatus::Done) => Act::say("(It ran, and there is no output.)"),
        (true, _) => Act::say("(It failed, and there is no output.)"),
    }
}
