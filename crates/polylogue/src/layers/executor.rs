//! Tools that one agent asks for and another runs.
//!
//! [`Assistant::suggest_tool`](crate::Assistant::suggest_tool) offers a tool to a model without running it: a call ends the turn,
//! and stands in the message. [`Executor`] is the layer that runs what others ask for in this way, and says what came of
//! it. Between the two a person may look at the calls, or say something instead: then the calls are answered as interrupted. Before
//! single calls a person may be [asked](Executor::approval), to approve, change or reject them.
//! Whatever happens, every call is answered.
//!
//! # A caller and an executor
//! ```
//! # fn example(model: polylogue_core::AnyModel, clock: polylogue_core::AnyTool) -> polylogue_core::Result<()> {
//! use polylogue::executor::Executor;
//! use polylogue::oversight::Oversight;
//! use polylogue::reply::Stack;
//! use polylogue::{Assistant, Chat, Tool, in_turn};
//!
//! let chat = Chat::named("clock")
//!     .with(Assistant::new("Caller", model)?.advertise(clock.spec().clone()))
//!     .with(Stack::new("Runner")?.then(Oversight::never()).then(Executor::new().tool(clock)))
//!     .policy(in_turn())
//!     .build()?;
//! # Ok(())
//! # }
//! ```

mod declared;

use polylogue_core::{Act, AnyTool, Call, CallOutcome, Name, Part, Result, Tool, ToolSpec, Turn};

pub use self::declared::Declared;
use crate::approval::{Approval, Decided, Wanted};
use crate::reply::Reply;

/// Runs the tools that others ask for: the layer `executor`.
///
/// It answers the calls of its own tools that nobody has answered yet, all at the same time, in one message with the
/// outcomes in the order of the calls. In a chat of two it also answers calls of tools that it does not have, since nobody
/// else can. It passes on when there is no call for it.
#[derive(Debug, Clone, Default)]
pub struct Executor {
    tools: Vec<AnyTool>,
    answers_all: bool,
    approval: Approval<Wanted>,
}

impl Executor {
    /// An executor without tools.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Adds a tool. One of the same name is replaced.
    #[must_use]
    pub fn tool(mut self, tool: impl Tool) -> Self {
        let tool = AnyTool::new(tool);
        self.tools.retain(|other| other.spec().name != tool.spec().name);
        self.tools.push(tool);
        self
    }

    /// Lets it answer calls of tools that it does not have in a larger chat, too: with a failure that names its tools.
    #[must_use]
    pub fn answers_all(self) -> Self {
        Self { answers_all: true, ..self }
    }

    /// Sets when a person is asked before a call is made. By default nobody is. The person may let it be made, reject it, or
    /// give other arguments; whoever called is told.
    #[must_use]
    pub fn approval(self, approval: Approval<Wanted>) -> Self {
        Self { approval, ..self }
    }

    /// What it runs, to be [advertised](crate::Assistant::suggest_tool).
    pub fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter().map(Tool::spec)
    }

    /// The calls that it answers in this turn.
    fn due(&self, turn: &Turn<'_>) -> Vec<(Name, Call)> {
        let members = turn.transcript().participants();
        let all = self.answers_all || members.len() <= 2 && members.contains(turn.me());
        let mut calls = pending_for(turn);
        calls.retain(|(_, call)| all || self.specs().any(|spec| spec.name == call.tool));
        calls
    }
}

impl Reply for Executor {
    fn label(&self) -> &'static str {
        "executor"
    }

    async fn reply(&self, turn: &mut Turn<'_>) -> Result<Option<Act>> {
        let due = self.due(turn);
        if due.is_empty() || turn.request().to.is_private() {
            return Ok(None);
        }
        let is_known = |call: &Call| self.specs().any(|spec| spec.name == call.tool);
        let calls = due.iter().zip(told_apart(&due));
        let wanted = calls.map(|((who, _), call)| Wanted::new(who.clone(), call)).collect();
        let decided = match Decided::of(&self.approval, turn, wanted, is_known).await {
            Ok(decided) => decided,
            Err(act) => return Ok(Some(act)),
        };
        let made = turn.call(&decided.noting(&self.tools), &decided.made()).await?;
        let outcomes = decided.outcomes(made);
        let answer =
            |((to, Call { id, tool, .. }), outcome)| Part::Outcome(CallOutcome { to, id, tool, outcome });
        Ok(Some(Act::Say(due.into_iter().zip(outcomes).map(answer).collect())))
    }
}

/// The calls with ids that differ: two agents may use the same.
fn told_apart(due: &[(Name, Call)]) -> Vec<Call> {
    let mut calls: Vec<Call> = Vec::with_capacity(due.len());
    for (who, call) in due {
        let taken = |id: &str| calls.iter().any(|other| other.id == id);
        let ids = std::iter::once(call.id.clone())
            .chain((1_usize..).map(|nth| format!("{}-{who}-{nth}", call.id)))
            .find(|id| !taken(id));
        calls.push(Call { id: ids.unwrap_or_default(), ..call.clone() });
    }
    calls
}

/// The calls in messages of others that the agent sees, and that nobody has answered yet.
pub(crate) fn pending_for(turn: &Turn<'_>) -> Vec<(Name, Call)> {
    let (chat, me) = (turn.transcript(), turn.me());
    let asks = |call: &Call, part: &Part| matches!(part, Part::Call(other) if other.id == call.id);
    let is_seen = |who: &Name, call: &Call| {
        let of = |line: &&polylogue_core::Line| {
            line.message.from == *who && line.message.parts.iter().any(|part| asks(call, part))
        };
        chat.messages().rev().find(of).is_some_and(|line| line.is_seen_by(me))
    };
    chat.pending_calls().iter().filter(|(who, call)| who != me && is_seen(who, call)).cloned().collect()
}
