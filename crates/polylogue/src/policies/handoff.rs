//! Handoffs: the speaker selects the next speaker.
//!
//! An agent hands over with the tool [`Handoff`]; its target speaks next. All participants see all messages, including
//! the note of a handoff, which becomes a message of the agent that hands over.
//!
//! # A front desk, a specialist and a customer
//! ```
//! use polylogue::policies::handoff::{AfterHandoff, Handoff, handoffs};
//! use polylogue::{AnyModel, Assistant, Chat, Human, Name};
//! # fn example(model: AnyModel) -> Result<Chat, polylogue::Error> {
//! let front = Assistant::new("Front", model.clone())?.tool(Handoff::to("Billing", "For invoices and refunds.")?);
//! let billing = Assistant::new("Billing", model)?.tool(Handoff::to("Front", "For everything but money.")?);
//! let chat = Chat::builder("support")
//!     .participant(front)
//!     .participant(billing)
//!     .participant(Human::new("Customer")?)
//!     .policy(handoffs(Name::new("Front")?, AfterHandoff::To(Name::new("Customer")?)))
//!     .build()?;
//! # Ok(chat)
//! # }
//! ```

use std::sync::Arc;

use crate::stop::LibraryStopReason;
use polylogue_core::{
    Body, Choice, Chooser, Event, Message, Name, NameError, Part, Policy, Step, StopReason, Tool, ToolCall,
    ToolCx, ToolError, ToolResult, ToolSpec, ToolStatus, Transcript, TurnRequest, steerable,
};
use serde_json::{Value, json};

use crate::policies::replay::is_present;

/// The next speaker after a turn without a handoff.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AfterHandoff {
    /// The same agent continues; when its message is empty, the chat ends.
    Stay,
    /// The chat ends.
    End,
    /// This participant speaks, then the one with the conversation again: a person among agents.
    To(Name),
}

/// Starts with `start`; after a turn with a successful [`Handoff`], its target speaks, otherwise `after` applies. Of
/// several handoffs in one turn the first counts.
///
/// A custom tool hands over by a result with [`Part::Data`] `{"handoff": "Name"}`.
///
/// A person who was handed to has no such tool: after their message the turn goes back to the agent that handed over, except
/// with [`AfterHandoff::End`].
///
/// The chat ends when the next speaker has left or has not joined.
pub fn handoffs(start: Name, after: AfterHandoff) -> impl Policy {
    let policy = move |chat: &Transcript| {
        let turn = last_turn(chat);
        match transfer(turn, chat) {
            Some(transfer) => match transfer.unsaid_note(turn) {
                Some(note) => Step::Post(note),
                None => speak(transfer.to, chat, Some(Chooser::Handoff)),
            },
            None => go_on(&start, &after, chat),
        }
    };
    // Choosing the next speaker is a handoff to them.
    steerable(policy, |_, _| None)
}

/// The step after a turn without a handoff.
fn go_on(start: &Name, after: &AfterHandoff, chat: &Transcript) -> Step {
    let holder = holder(start, chat);
    let spoken = chat.recent_turns().next().filter(|_| chat.turns() > 0);
    match (after, spoken) {
        (_, None) => speak(holder, chat, None),
        (AfterHandoff::End, Some(turn)) => LibraryStopReason::NoHandoff { who: turn.who.clone() }.close(chat),
        (_, Some(turn)) if turn.who == holder && is_of_person(last_turn(chat)) => match giver(chat) {
            Some(giver) => speak(giver, chat, Some(Chooser::Handoff)),
            None => go_on_after(after, holder, chat),
        },
        _ => go_on_after(after, holder, chat),
    }
}

/// The step after a turn of one that can hand over.
fn go_on_after(after: &AfterHandoff, holder: Name, chat: &Transcript) -> Step {
    let spoken = chat.recent_turns().next();
    match (after, spoken) {
        (AfterHandoff::Stay, Some(turn)) if turn.is_silent && is_present(chat, &turn.who) => {
            Step::close(StopReason::from(LibraryStopReason::NoReply { who: turn.who.clone() }), chat)
        }
        (AfterHandoff::To(other), Some(turn)) if turn.who != *other || !is_present(chat, other) => {
            speak(other.clone(), chat, None)
        }
        _ => speak(holder, chat, None),
    }
}

/// A turn of `who`, if present.
fn speak(who: Name, chat: &Transcript, by: Option<Chooser>) -> Step {
    if let Some((who, why)) = chat.left().iter().find(|(gone, _)| *gone == who) {
        return Step::close(StopReason::Left { who: who.clone(), why: why.clone() }, chat);
    }
    if chat.late_joiners().any(|name| *name == who) {
        return Step::close(
            StopReason::from(LibraryStopReason::NoSpeaker { after: chat.last_speaker().cloned() }),
            chat,
        );
    }
    let others = || chat.present().filter(|name| Some(*name) != chat.last_speaker()).cloned().collect();
    let request = TurnRequest::to_all(who);
    Step::Turn(match by {
        Some(by) => request.with_choice(Choice { of: others(), by, reply: None }),
        None => request,
    })
}

/// The target of the last handoff, or `start`.
fn holder(start: &Name, chat: &Transcript) -> Name {
    let handed = |event: &Arc<Event>| match &event.body {
        Body::TurnStarted { turns: requests } => {
            requests.iter().find(|request| is_handoff(request)).map(|request| request.who.clone())
        }
        _ => None,
    };
    chat.events().iter().rev().find_map(handed).unwrap_or_else(|| start.clone())
}

/// Who handed over last.
fn giver(chat: &Transcript) -> Option<Name> {
    let events = chat.events();
    let requests = |event: &Arc<Event>, is: fn(&TurnRequest) -> bool| match &event.body {
        Body::TurnStarted { turns } => {
            turns.iter().find(|request| is(request)).map(|request| request.who.clone())
        }
        _ => None,
    };
    let handed = events.iter().rposition(|event| requests(event, is_handoff).is_some())?;
    let before = events.get(..handed)?;
    before.iter().rev().find_map(|event| requests(event, |request| !request.to.is_private()))
}

/// Whether a person spoke in `turn`: there was an answer, and no model was called. A person has no tool to hand over with.
fn is_of_person(turn: &[Arc<Event>]) -> bool {
    let answered = turn.iter().any(|event| matches!(event.body, Body::InputProvided { .. }));
    answered && !turn.iter().any(|event| matches!(event.body, Body::ModelReplied(_)))
}

fn is_handoff(request: &TurnRequest) -> bool {
    request.choice.as_ref().is_some_and(|choice| matches!(choice.by, Chooser::Handoff | Chooser::User))
}

/// The events since the start of the last turn in the chat.
fn last_turn(chat: &Transcript) -> &[Arc<Event>] {
    let begins = |event: &Arc<Event>| match &event.body {
        Body::TurnStarted { turns: requests } => requests.iter().any(|request| !request.to.is_private()),
        Body::Reopened { message, .. } => message.is_some(),
        _ => false,
    };
    let events = chat.events();
    events.iter().rposition(begins).and_then(|at| events.get(at..)).unwrap_or_default()
}

/// A handoff that succeeded.
struct CompletedHandoff {
    from: Name,
    to: Name,
    note: Option<Arc<str>>,
}

/// The handoff in `turn`: the first in the order of the calls. Calls in later private turns do not count.
fn transfer(turn: &[Arc<Event>], chat: &Transcript) -> Option<CompletedHandoff> {
    let private = |event: &&Arc<Event>| matches!(event.body, Body::TurnStarted { .. });
    turn.iter().skip(1).take_while(|event| !private(event)).find_map(|event| {
        let Body::ToolCalled { who, call } = &event.body else { return None };
        let to = target(call, outcome(turn, &call.id)?, chat)?;
        Some(CompletedHandoff { from: who.clone(), to, note: note(&call.args).ok().flatten() })
    })
}

/// The result of a call, if it succeeded.
fn outcome<'t>(turn: &'t [Arc<Event>], id: &str) -> Option<&'t ToolResult> {
    turn.iter().find_map(|event| match &event.body {
        Body::ToolReturned { id: of, result: outcome, .. } if of == id => {
            Some(outcome).filter(|outcome| outcome.status == ToolStatus::Done)
        }
        _ => None,
    })
}

/// The target of a successful call, if it hands over.
fn target(call: &ToolCall, outcome: &ToolResult, chat: &Transcript) -> Option<Name> {
    let named = outcome.parts.iter().find_map(|part| match part {
        Part::Data(data) => Name::new(data.get("handoff")?.as_str()?).ok(),
        _ => None,
    });
    named.or_else(|| {
        chat.participants().iter().find(|name| name.tool_name(Handoff::PREFIX) == call.tool).cloned()
    })
}

impl CompletedHandoff {
    /// The note as a message, unless it is in the chat already.
    fn unsaid_note(&self, turn: &[Arc<Event>]) -> Option<Message> {
        let note = self.note.as_ref()?;
        let says = |event: &Arc<Event>| match &event.body {
            Body::Message(message) | Body::Posted(message) => {
                message.from == self.from && message.text().contains(&**note)
            }
            _ => false,
        };
        (!turn.iter().any(says)).then(|| Message::new(self.from.clone(), Arc::clone(note)))
    }
}

/// The note of a handoff, if there is one.
fn note(args: &Value) -> Result<Option<Arc<str>>, ToolError> {
    match args.get("note") {
        None | Some(Value::Null) => Ok(None),
        Some(Value::String(note)) => Ok(Some(note.trim()).filter(|note| !note.is_empty()).map(Into::into)),
        Some(other) => Err(format!("`note` must be a text; got {other}").into()),
    }
}

/// The tool `transfer_to_NAME`: hands the conversation over to another participant, and ends the turn.
///
/// For names with other characters than ASCII letters, digits, `_` and `-`, the tool has the
/// [name that providers accept](Name::tool_name).
///
/// Fails, with an error for the model, when the target is not present, or when the reply calls another handoff first:
/// only the first of several succeeds.
#[derive(Debug, Clone)]
pub struct Handoff {
    to: Name,
    spec: ToolSpec,
}

impl Handoff {
    /// The prefix of the names of all handoff tools.
    pub const PREFIX: &'static str = "transfer_to_";

    /// The most bytes of the error of a handoff that is not done.
    pub const MAX_FAILURE: usize = 400;

    /// Hands over to `who`; `when` tells the model when to do so.
    ///
    /// # Errors
    /// When the name is illegal.
    pub fn to(who: impl AsRef<str>, when: &str) -> Result<Self, NameError> {
        let to = Name::new(who)?;
        let note = json!({
            "type": "string",
            "description": "What the next participant needs to know besides the conversation; all participants see it",
        });
        let parameters =
            json!({"type": "object", "properties": {"note": note}, "additionalProperties": false});
        let description = format!("Hands the conversation over to {to}. {when}");
        let spec = ToolSpec::new(to.tool_name(Self::PREFIX), description.trim(), parameters)
            .repeatable()
            .ends_turn();
        Ok(Self { to, spec })
    }
}

impl Tool for Handoff {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let short = |error: ToolError| {
            ToolResult::failed(error.0).truncated_to(Self::MAX_FAILURE).text().into_owned()
        };
        self.transfer(&args, cx).map_err(|error| ToolError(short(error)))
    }
}

impl Handoff {
    fn transfer(&self, args: &Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let note = note(args)?;
        if let Some(first) = first_transfer(cx).filter(|first| first.id != cx.id) {
            return Err(format!(
                "this was not done: a reply can hand over once, and `{}` came first",
                first.tool
            )
            .into());
        }
        if self.to == *cx.who {
            return Err("you have the conversation already".into());
        }
        if !is_present(cx.transcript, &self.to) {
            let others = cx.transcript.present().filter(|name| *name != cx.who);
            let others: Vec<_> = others.map(|name| format!("`{name}`")).collect();
            let who = if others.is_empty() { "no other participant is".into() } else { others.join(", ") };
            return Err(format!("`{}` is not here, so continue without them; here: {who}", self.to).into());
        }
        Ok(ToolResult::done(note.unwrap_or_else(|| format!("I hand over to {}.", self.to).into())))
    }
}

/// The first handoff in the reply that this call is part of.
fn first_transfer<'a>(cx: &ToolCx<'a>) -> Option<&'a ToolCall> {
    let parts = cx.turn.iter().rev().find_map(|event| match &event.body {
        Body::ModelReplied(reply) => Some(&reply.parts),
        _ => None,
    })?;
    parts.iter().find_map(|part| match part {
        Part::ToolCall(call) if call.tool.starts_with(Handoff::PREFIX) => Some(call),
        _ => None,
    })
}
