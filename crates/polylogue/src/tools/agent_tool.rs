//! An agent or a chat as a tool of another agent.
//!
//! [`Assistant::agent_tool`](crate::Assistant::agent_tool) offers it to the model, which writes the task and receives
//! the result. All events are in the log, in an inner chat: usage is counted, a resumed run continues inside, finished
//! model calls are not repeated, and people in it can be asked.
//!
//! A chat starts again for each call, and its summary is the result. An agent remembers earlier calls of the same agent,
//! and its reply is the result. Several such calls in one reply run one after the other.
//!
//! # Next to the conversation
//! With [`background`](AgentTool::background) a call returns at once, and the result is posted later: see
//! [`background`](crate::tools::background).
//!
//! # Limits
//! A chat has the limits of its policy: [`with_termination`](crate::policies::with_termination) applies to its own turns, tokens, cost and time,
//! without those of the outer chat. [`AgentTool::max_calls`] limits the calls per turn.
//!
//! ```
//! # fn example(research: polylogue::Chat, critic: polylogue::Assistant, model: polylogue::AnyModel) -> polylogue::Result<()> {
//! use polylogue::Assistant;
//! use polylogue::tools::agent_tool::AgentTool;
//!
//! let writer = Assistant::new("Writer", model)?
//!     .agent_tool(AgentTool::chat(research).description("Finds out what is known of a subject.").max_calls(2))
//!     .agent_tool(AgentTool::agent(critic).description("Says what is wrong with a text."));
//! # Ok(())
//! # }
//! ```

use std::sync::Arc;

use polylogue_core::{
    Act, Agent, AnyAgent, AnyTool, Chat, Error, Interrupt, Name, Part, Result, Status, ToolCall, ToolResult,
    ToolSpec, ToolStatus, Turn,
};
use serde_json::{Value, json};

use crate::tools::known::known;

/// An agent or a chat as a tool. See the [module](self).
#[derive(Debug, Clone)]
#[must_use]
pub struct AgentTool {
    target: Target,
    name: Name,
    spec: ToolSpec,
    max_calls: u32,
    background: bool,
}

#[derive(Debug, Clone)]
enum Target {
    Chat(Arc<Chat>),
    Agent(AnyAgent),
}

impl AgentTool {
    /// Default limit on calls per turn.
    pub const DEFAULT_MAX_CALLS: u32 = 8;

    /// Makes `chat` a tool with its name and description.
    pub fn chat(chat: Chat) -> Self {
        let (name, description) = (Agent::name(&chat).clone(), Agent::description(&chat).to_owned());
        Self::new(Target::Chat(Arc::new(chat)), name, &description)
    }

    /// Makes `agent` a tool with its name and description.
    pub fn agent(agent: impl Agent) -> Self {
        let agent = AnyAgent::new(agent);
        let (name, description) = (agent.name().clone(), agent.description().to_owned());
        Self::new(Target::Agent(agent), name, &description)
    }

    fn new(target: Target, name: Name, description: &str) -> Self {
        let task = "What is to be done, with all that has to be known: nothing of this conversation is";
        let parameters = json!({
            "type": "object",
            "properties": {"task": {"type": "string", "description": task}},
            "required": ["task"],
            "additionalProperties": false,
        });
        // A repeated call finds the earlier result in the log.
        let spec = ToolSpec::new(name.tool_name(""), "", parameters).repeatable();
        Self { target, name, spec, max_calls: Self::DEFAULT_MAX_CALLS, background: false }
            .description(description)
    }

    /// Sets the name of the tool: 1 to 64 ASCII letters, digits, `_` and `-`. Default: that of the agent or chat, in
    /// [the characters that providers accept](Name::tool_name).
    pub fn named(mut self, name: impl Into<String>) -> Self {
        self.spec.name = name.into();
        self
    }

    /// Sets the description for the model: what the agent does, and when to call it. The name of the agent or chat is
    /// added where the tool name differs.
    pub fn description(mut self, description: impl Into<String>) -> Self {
        let (name, description) = (&self.name, description.into());
        self.spec.description = match name.tool_name("") == name.as_str() {
            true => description,
            false => format!("Asks {name}. {description}").trim_end().to_owned(),
        };
        self
    }

    /// Sets the limit on calls per turn; further calls fail.
    pub fn max_calls(self, times: u32) -> Self {
        Self { max_calls: times, ..self }
    }

    /// Runs each call as a [background task](crate::tools::background): it returns at once, and its result is posted when it is there.
    /// An agent then begins each task without memory of earlier calls.
    pub fn background(self) -> Self {
        let spec = self.spec.max_bytes(super::background::MAX_NOTICE_BYTES);
        Self { spec, background: true, ..self }
    }

    pub(crate) const fn is_background(&self) -> bool {
        self.background
    }

    /// What works in its background tasks.
    pub(crate) fn worker(&self) -> AnyAgent {
        match &self.target {
            Target::Chat(chat) => AnyAgent::new(SharedChat(Arc::clone(chat))),
            Target::Agent(agent) => agent.clone(),
        }
    }

    pub(crate) fn name(&self) -> &str {
        &self.spec.name
    }

    /// The tool for the model.
    pub(crate) fn tool(&self) -> AnyTool {
        self.found(Vec::new())
    }

    /// The tool with the result of each call.
    pub(crate) fn found(&self, outcomes: Vec<(String, ToolResult)>) -> AnyTool {
        known(self.spec.clone(), outcomes, "no agent was asked")
    }

    /// Runs `call`, or starts it as a background task if fewer than `max_background` are open. `asked` is the number of earlier calls in
    /// this turn.
    pub(crate) async fn ask(
        &self,
        turn: &mut Turn<'_>,
        call: &ToolCall,
        asked: u32,
        max_background: usize,
    ) -> Result<ToolResult> {
        let task = call.args.get("task").and_then(Value::as_str).map_or("", str::trim);
        if task.is_empty() {
            return Ok(ToolResult::failed("`task` must be a text that says what is to be done"));
        }
        if asked >= self.max_calls {
            let name = self.name();
            let limit = match self.max_calls {
                1 => "once".to_owned(),
                limit => format!("{limit} times"),
            };
            return Ok(ToolResult::failed(format!("`{name}` is asked at most {limit} before you answer")));
        }
        if self.background {
            return super::background::start(turn, self.name(), task, max_background).await;
        }
        match &self.target {
            Target::Chat(chat) => match turn.run(chat, task).await? {
                Status::Closed { reason, summary } if summary.trim().is_empty() => {
                    Ok(ToolResult::failed(format!("It ended without a result: {reason}")))
                }
                Status::Closed { summary, .. } => {
                    let Act::Say(parts) = turn.say_result(summary) else {
                        return Ok(ToolResult::failed("It ended without a result"));
                    };
                    Ok(ToolResult::new(ToolStatus::Done, for_caller(parts)).truncated())
                }
                Status::Waiting(_) => Err(Interrupt::Waiting.into()),
                Status::Cancelled => Err(Interrupt::Cancelled.into()),
            },
            Target::Agent(agent) => match turn.ask(agent, task).await {
                Ok(reply) if reply.parts.iter().all(Part::is_blank) => {
                    Ok(ToolResult::failed("It ended without a result"))
                }
                Ok(reply) => Ok(ToolResult::new(ToolStatus::Done, for_caller(reply.parts)).truncated()),
                Err(Error::Interrupt(Interrupt::Ended { reason, .. })) => {
                    Ok(ToolResult::failed(format!("It ended without a result: {reason}")))
                }
                Err(error) => Err(error),
            },
        }
    }
}

/// A chat that works in background tasks.
struct SharedChat(Arc<Chat>);

impl Agent for SharedChat {
    fn name(&self) -> &Name {
        Agent::name(&*self.0)
    }

    fn description(&self) -> &str {
        Agent::description(&*self.0)
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        self.0.act(turn).await
    }
}

/// The parts of a reply for the calling model, with a note if it was truncated.
fn for_caller(parts: Vec<Part>) -> Vec<Part> {
    let as_shown = |part| match part {
        Part::Cut(finish) => Part::text(format!("(This is {finish}.)")),
        part => part,
    };
    parts.into_iter().map(as_shown).collect()
}
