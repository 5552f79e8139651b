//! Triggers: which messages a layer replies to.

use std::ops::{BitAnd, BitOr};
use std::sync::Arc;

use polylogue_core::{Act, AnyAgent, Body, Message, Name, Part, Result, Transcript, TranscriptMessage, Turn};

use super::ReplyLayer;

/// Wraps `layer`: it is asked only when `trigger` holds.
pub fn when<R: ReplyLayer>(trigger: Trigger, layer: R) -> When<R> {
    When { trigger, layer }
}

/// A layer that is asked only when its trigger holds; see [`when`].
#[derive(Debug, Clone)]
pub struct When<R> {
    trigger: Trigger,
    layer: R,
}

impl<R: ReplyLayer> ReplyLayer for When<R> {
    fn label(&self) -> &str {
        self.layer.label()
    }
    fn may_be_silent(&self) -> bool {
        self.layer.may_be_silent()
    }
    fn background_agent(&self, target: &str) -> Option<AnyAgent> {
        self.layer.background_agent(target)
    }
    async fn reply(&self, turn: &mut Turn<'_>) -> Result<Option<Act>> {
        if self.trigger.holds(turn) { self.layer.reply(turn).await } else { Ok(None) }
    }
}

/// A condition on the last message of another participant that the agent sees, [`Turn::last_message`].
///
/// Triggers compose: `a | b` holds when either does, `a & b` when both do.
///
/// ```
/// use polylogue::layers::reply::{MessageKind, Trigger};
/// let asked_by_ann = Trigger::from_participant("Ann".try_into()?) & Trigger::kind(MessageKind::Text);
/// # Ok::<(), polylogue::kernel::data::NameError>(())
/// ```
#[derive(Clone, derive_more::Debug)]
pub struct Trigger(#[debug(skip)] Arc<Holds>);

type Holds = dyn Fn(&Turn<'_>) -> bool + Send + Sync;

/// The content of a message, or its origin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum MessageKind {
    /// The message has text.
    Text,
    /// The message calls tools.
    Calls,
    /// The message has results of tools.
    Outcomes,
    /// The message has a picture, a sound or a document.
    Media,
    /// The message is from a person: the sender of the task, or a person who answered in that turn.
    Person,
}

impl Trigger {
    /// Creates a custom condition on the turn, a pure function.
    pub fn on(holds: impl Fn(&Turn<'_>) -> bool + Send + Sync + 'static) -> Self {
        Self(Arc::new(holds))
    }

    /// Holds once there is a message.
    pub fn any_message() -> Self {
        Self::on(|turn| turn.last_message().is_some())
    }

    /// Holds as long as there is no message of others: the agent begins the chat. In AutoGen, the trigger `None`.
    pub fn no_message() -> Self {
        Self::on(|turn| turn.last_message().is_none())
    }

    /// Holds when the last message is from `name`.
    pub fn from_participant(name: Name) -> Self {
        Self::received(move |line| line.message.from == name)
    }

    /// Holds when the last message is from one of `names`.
    pub fn from_any_of(names: impl IntoIterator<Item = Name>) -> Self {
        let names: Vec<Name> = names.into_iter().collect();
        Self::received(move |line| names.contains(&line.message.from))
    }

    /// Holds when the pure function `holds` is true of the last message.
    pub fn received(holds: impl Fn(&TranscriptMessage) -> bool + Send + Sync + 'static) -> Self {
        Self::on(move |turn| turn.last_message().is_some_and(&holds))
    }

    /// Holds when the last message is of this kind.
    pub fn kind(kind: MessageKind) -> Self {
        Self::on(move |turn| turn.last_message().is_some_and(|line| is(kind, line, turn.transcript())))
    }

    /// Holds when one of `triggers` holds.
    pub fn any(triggers: impl IntoIterator<Item = Self>) -> Self {
        let triggers: Vec<Self> = triggers.into_iter().collect();
        Self::on(move |turn| triggers.iter().any(|trigger| trigger.holds(turn)))
    }

    /// Returns whether the trigger holds.
    pub fn holds(&self, turn: &Turn<'_>) -> bool {
        (self.0)(turn)
    }
}

impl BitOr for Trigger {
    type Output = Self;
    fn bitor(self, other: Self) -> Self {
        Self::on(move |turn| self.holds(turn) || other.holds(turn))
    }
}

impl BitAnd for Trigger {
    type Output = Self;
    fn bitand(self, other: Self) -> Self {
        Self::on(move |turn| self.holds(turn) && other.holds(turn))
    }
}

fn is(kind: MessageKind, line: &TranscriptMessage, chat: &Transcript) -> bool {
    let has = |is: fn(&Part) -> bool| line.message.parts.iter().any(is);
    match kind {
        MessageKind::Text => has(|part| matches!(part, Part::Text(_)) && !part.is_blank()),
        MessageKind::Calls => has(|part| matches!(part, Part::ToolCall(_))),
        MessageKind::Outcomes => has(|part| matches!(part, Part::ToolResult(_))),
        MessageKind::Media => has(|part| matches!(part, Part::Media(_))),
        MessageKind::Person => line.message.from == Name::user() || is_answered(line, chat),
    }
}

/// Whether a person gave an answer in the turn that ended with `line`.
fn is_answered(line: &TranscriptMessage, chat: &Transcript) -> bool {
    let Message { from, .. } = &line.message;
    let before = chat.events().iter().rev().skip_while(|event| event.seq != line.seq).skip(1);
    let of_turn = before.take_while(|event| match &event.body {
        Body::ModelReplied(reply) => reply.who == *from,
        Body::InputRequired(question) => question.who == *from,
        Body::InputProvided { to: who, .. }
        | Body::Prompted { who, .. }
        | Body::ToolCalled { who, .. }
        | Body::ToolReturned { who, .. }
        | Body::Cleared { who, .. }
        | Body::Failed { who, .. } => who == from,
        _ => false,
    });
    // The last answer counts: after an empty one other layers reply.
    let mut answers = of_turn.filter_map(|event| match &event.body {
        Body::InputProvided { text, .. } => Some(!text.trim().is_empty()),
        _ => None,
    });
    answers.next().unwrap_or(false)
}
