//! An agent, or a whole chat, as a tool of another agent.
//!
//! [`Assistant::agent_tool`](crate::Assistant::agent_tool) offers it to the model, which says what it is to do, and is told what came
//! of it. What happens there is in the log, in a room of its own: it is counted with all the rest, a run that is resumed goes on
//! within it, no finished model call is made again, and a person in it can be asked.
//!
//! A chat begins anew each time, and its summary is the outcome. An agent remembers what the same agent asked of it before,
//! and its reply is the outcome. Several consultations of one reply are made one after the other.
//!
//! # Limits of its own
//! A chat has those of its policy: [`until`](crate::until) it has used so many turns, tokens, so much money or time, of its
//! own and not of the conversation around. [`AgentTool::max_calls`] says how often it is asked in one turn.
//!
//! ```
//! # fn example(research: polylogue::Chat, critic: polylogue::Assistant, model: polylogue::AnyModel) -> polylogue::Result<()> {
//! use polylogue::Assistant;
//! use polylogue::consult::Consult;
//!
//! let writer = Assistant::new("Writer", model)?
//!     .consult(Consult::chat(research).about("Finds out what is known of a subject.").at_most(2))
//!     .consult(Consult::agent(critic).about("Says what is wrong with a text."));
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use polylogue_core::{
    Act, Agent, AnyAgent, AnyTool, Call, Chat, Error, Name, Outcome, OutcomeStatus, Part, Result, Status,
    Tool, ToolCx, ToolError, ToolSpec, Turn,
};
use serde_json::{Value, json};

/// An agent or a chat as a tool. See the [module](self).
#[derive(Debug, Clone)]
pub struct AgentTool {
    whom: Whom,
    name: Name,
    spec: ToolSpec,
    at_most: u32,
}

#[derive(Debug, Clone)]
enum Whom {
    Chat(Arc<Chat>),
    Agent(AnyAgent),
}

impl AgentTool {
    /// How often it is asked in one turn, unless it is told otherwise.
    pub const DEFAULT_AT_MOST: u32 = 8;

    /// `chat` as a tool of its name and description.
    #[must_use]
    pub fn chat(chat: Chat) -> Self {
        let (name, description) = (Agent::name(&chat).clone(), Agent::description(&chat).to_owned());
        Self::new(Whom::Chat(Arc::new(chat)), name, &description)
    }

    /// `agent` as a tool of its name and description.
    #[must_use]
    pub fn agent(agent: impl Agent) -> Self {
        let agent = AnyAgent::new(agent);
        let (name, description) = (agent.name().clone(), agent.description().to_owned());
        Self::new(Whom::Agent(agent), name, &description)
    }

    fn new(whom: Whom, name: Name, description: &str) -> Self {
        let task = "What is to be done, with all that has to be known: nothing of this conversation is";
        let parameters = json!({
            "type": "object",
            "properties": {"task": {"type": "string", "description": task}},
            "required": ["task"],
            "additionalProperties": false,
        });
        // Asking it again finds in the log what came of it before.
        let spec = ToolSpec::new(name.tool_name(""), "", parameters).repeatable();
        Self { whom, name, spec, at_most: Self::DEFAULT_AT_MOST }.description(description)
    }

    /// Sets the name of the tool: 1 to 64 ASCII letters, digits, `_` and `-`. Default: that of the agent or chat, in
    /// [the characters that providers take](Name::tool_name).
    #[must_use]
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.spec.name = name.into();
        self
    }

    /// Sets the description that the model reads: what it does, and when to ask it. The name of the agent or chat stands before that
    /// where the tool cannot have it.
    #[must_use]
    pub fn description(mut self, description: impl Into<String>) -> Self {
        let (name, description) = (&self.name, description.into());
        self.spec.description = match name.tool_name("") == name.as_str() {
            true => description,
            false => format!("Asks {name}. {description}").trim_end().to_owned(),
        };
        self
    }

    /// Sets how often it is asked in one turn; a call beyond that fails.
    #[must_use]
    pub fn max_calls(self, times: u32) -> Self {
        Self { at_most: times, ..self }
    }

    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    /// What the model is told.
    pub(crate) fn tool(&self) -> AnyTool {
        AnyTool::new(Found { spec: self.spec.clone(), outcomes: Vec::new() })
    }

    /// The same tool, which returns to each call what came of it.
    pub(crate) fn found(&self, outcomes: Vec<(String, Outcome)>) -> AnyTool {
        AnyTool::new(Found { spec: self.spec.clone(), outcomes })
    }

    /// Asks it what `call` says. `asked` is how often it was asked in this turn before.
    pub(crate) async fn ask(&self, turn: &mut Turn<'_>, call: &Call, asked: u32) -> Result<Outcome> {
        let task = call.args.get("task").and_then(Value::as_str).map_or("", str::trim);
        if task.is_empty() {
            return Ok(Outcome::failed("`task` must be a text that says what is to be done"));
        }
        if asked >= self.at_most {
            let name = self.name();
            let limit = match self.at_most {
                1 => "once".to_owned(),
                limit => format!("{limit} times"),
            };
            return Ok(Outcome::failed(format!("`{name}` is asked at most {limit} before you answer")));
        }
        match &self.whom {
            Whom::Chat(chat) => match turn.run(chat, task).await? {
                Status::Closed { reason, summary } if summary.trim().is_empty() => {
                    Ok(Outcome::failed(format!("Nothing came of it: {reason}")))
                }
                Status::Closed { summary, .. } => {
                    let Act::Say(parts) = turn.says(summary) else {
                        return Ok(Outcome::failed("Nothing came of it"));
                    };
                    Ok(Outcome::new(OutcomeStatus::Done, told(parts)).bounded())
                }
                Status::Waiting(_) => Err(Error::Waiting),
                Status::Halted => Err(Error::Cancelled),
            },
            Whom::Agent(agent) => match turn.ask(agent, task).await {
                Ok(reply) if reply.parts.iter().all(Part::is_blank) => {
                    Ok(Outcome::failed("Nothing came of it"))
                }
                Ok(reply) => Ok(Outcome::new(OutcomeStatus::Done, told(reply.parts)).bounded()),
                Err(Error::Ended { reason, .. }) => {
                    Ok(Outcome::failed(format!("Nothing came of it: {reason}")))
                }
                Err(error) => Err(error),
            },
        }
    }
}

/// The parts of a reply as the model that asked for it reads them: that it is cut off is said.
fn told(parts: Vec<Part>) -> Vec<Part> {
    let tell = |part| match part {
        Part::Cut(finish) => Part::text(format!("(This is {finish}.)")),
        part => part,
    };
    parts.into_iter().map(tell).collect()
}

/// A tool that returns what was found out before it is called.
struct Found {
    spec: ToolSpec,
    /// By the ids of calls.
    outcomes: Vec<(String, Outcome)>,
}

impl Tool for Found {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, _: Value, cx: &ToolCx<'_>) -> Result<Outcome, ToolError> {
        let found = self.outcomes.iter().find(|(id, _)| id == cx.id);
        found.map(|(_, outcome)| outcome.clone()).ok_or_else(|| "nobody was asked".into())
    }
}
