//! Tools suggested by one agent and executed by another.
//!
//! [`Assistant::suggest_tool`](crate::Assistant::suggest_tool) offers a tool to a model without running it: a call ends
//! the turn and is part of the message. [`Executor`] is the layer that runs such calls of others and replies with the
//! results. In between a person can read the calls, or reply something else, which answers the calls as interrupted.
//! Single calls can need [approval](Executor::approval) by a person, who can approve, edit or reject them. Every call
//! gets a result.
//!
//! # A caller and an executor
//! ```
//! # fn example(model: polylogue_core::AnyModel, clock: polylogue_core::AnyTool) -> polylogue_core::Result<()> {
//! use polylogue::layers::executor::Executor;
//! use polylogue::layers::human_input::HumanInput;
//! use polylogue::layers::reply::Stack;
//! use polylogue::{Assistant, Chat, Tool, round_robin};
//!
//! let chat = Chat::builder("clock")
//!     .participant(Assistant::new("Caller", model)?.suggest_tool(clock.spec().clone()))
//!     .participant(Stack::new("Runner")?.then(HumanInput::never()).then(Executor::new().tool(clock)))
//!     .policy(round_robin())
//!     .build()?;
//! # Ok(())
//! # }
//! ```

use std::ops::ControlFlow;

use polylogue_core::{Act, AnyTool, ExecutedCall, Name, Part, Result, Tool, ToolCall, ToolSpec, Turn};

use crate::layers::reply::ReplyLayer;
use crate::tools::approval::{Approval, ApprovalRequest};
use crate::tools::runner::{Finished, Runner};

/// Runs the tool calls of other participants: the layer `executor`.
///
/// It answers all open calls of its own tools at the same time, in one message with the results in the order of the
/// calls. In a chat of two it also answers calls of unknown tools, since no other participant can. Passes on when there
/// is no call.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct Executor {
    tools: Vec<AnyTool>,
    answers_all: bool,
    approval: Approval<ApprovalRequest>,
}

impl Executor {
    /// Creates an executor without tools.
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool. Replaces a tool of the same name.
    pub fn tool(mut self, tool: impl Tool) -> Self {
        let tool = AnyTool::new(tool);
        self.tools.retain(|other| other.spec().name != tool.spec().name);
        self.tools.push(tool);
        self
    }

    /// Makes the executor answer calls of unknown tools in larger chats, too, with an error that names its tools.
    pub fn answers_all(self) -> Self {
        Self { answers_all: true, ..self }
    }

    /// Sets which calls need approval by a person. Default: none. The person can approve, reject or edit the call; the
    /// caller receives the decision.
    pub fn approval(self, approval: Approval<ApprovalRequest>) -> Self {
        Self { approval, ..self }
    }

    /// Returns the specs of its tools, for [`Assistant::suggest_tool`](crate::Assistant::suggest_tool).
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().map(Tool::spec)
    }

    /// The calls that it answers in this turn.
    fn due(&self, turn: &Turn<'_>) -> Vec<(Name, ToolCall)> {
        let participants = turn.transcript().participants();
        let all = self.answers_all || participants.len() <= 2 && participants.contains(turn.me());
        let mut calls = pending_for(turn);
        calls.retain(|(_, call)| all || self.specs().any(|spec| spec.name == call.tool));
        calls
    }
}

impl ReplyLayer for Executor {
    fn label(&self) -> &'static str {
        "executor"
    }

    async fn reply(&self, turn: &mut Turn<'_>) -> Result<Option<Act>> {
        let due = self.due(turn);
        if due.is_empty() || turn.request().to.is_private() {
            return Ok(None);
        }
        let calls = due.iter().zip(distinct(&due)).map(|((who, _), call)| (who.clone(), call)).collect();
        let runner = Runner { tools: &self.tools, approval: &self.approval, searches: false };
        let finished = match runner.run_for(turn, calls).await? {
            ControlFlow::Continue(finished) => finished,
            ControlFlow::Break(act) => return Ok(Some(act)),
        };
        let answer = |((to, ToolCall { id, tool, .. }), Finished { outcome, .. })| {
            Part::ToolResult(ExecutedCall { to, id, tool, result: outcome })
        };
        Ok(Some(Act::Say(due.into_iter().zip(finished).map(answer).collect())))
    }
}

/// The calls with distinct ids: two agents can use the same id.
fn distinct(due: &[(Name, ToolCall)]) -> Vec<ToolCall> {
    let mut calls: Vec<ToolCall> = Vec::with_capacity(due.len());
    for (who, call) in due {
        let taken = |id: &str| calls.iter().any(|other| other.id == id);
        let ids = std::iter::once(call.id.clone())
            .chain((1_usize..).map(|nth| format!("{}-{who}-{nth}", call.id)))
            .find(|id| !taken(id));
        calls.push(ToolCall { id: ids.unwrap_or_default(), ..call.clone() });
    }
    calls
}

/// The open calls in messages of others that the agent sees.
pub(crate) fn pending_for(turn: &Turn<'_>) -> Vec<(Name, ToolCall)> {
    let (chat, me) = (turn.transcript(), turn.me());
    let asks = |call: &ToolCall, part: &Part| matches!(part, Part::ToolCall(other) if other.id == call.id);
    let is_seen = |who: &Name, call: &ToolCall| {
        let of = |line: &&polylogue_core::TranscriptMessage| {
            line.message.from == *who && line.message.parts.iter().any(|part| asks(call, part))
        };
        chat.messages().rev().find(of).is_some_and(|line| line.is_seen_by(me))
    };
    chat.pending_calls().iter().filter(|(who, call)| who != me && is_seen(who, call)).cloned().collect()
}
