//! Nested chats: a layer that works out a reply in an inner chat.
//!
//! For most nested chats this is not needed: a [`Chat`] is an agent and can be a participant. [`Nested`] is for an
//! agent that also replies in other ways, and works out only some replies in an inner chat.

use std::sync::Arc;

use polylogue_core::{
    Act, Agent, Chat, Interrupt, Result, Status, Step, StopReason, Transcript, TranscriptMessage, Turn,
    TurnRequest,
};

use crate::layers::reply::ReplyLayer;
use crate::policies::carryover::with_context;
use crate::policies::order::{last_reply, with_summary};
use crate::stop::LibraryStopReason;

/// A layer that replies with the summary of an inner chat, often a [`sequential`](crate::policies::order::sequential) of chats.
///
/// By default the inner chat starts with the last message that the agent sees. Its summary is the reply. Without a
/// message to start with, or without a summary, the layer passes on.
///
/// [`when`](crate::layers::reply::when) selects the messages to reply to: by sender, by content, or both. Endless nesting,
/// where participants of the inner chat reply by the same layer, is stopped by the limit on
/// [depth](polylogue_core::Limits::depth): the run ends with [`StopReason::Depth`].
///
/// # An agent with a nested chat for questions of Ann
/// ```
/// # fn example(research: polylogue::Chat, model: polylogue::AnyModel) -> polylogue::Result<()> {
/// use polylogue::Assistant;
/// use polylogue::layers::nested::{Nested, OuterContext};
/// use polylogue::layers::reply::{Stack, Trigger, when};
///
/// let from_ann = Trigger::from_participant("Ann".try_into()?) & Trigger::received(|line| line.message.text().contains('?'));
/// let clerk = Stack::new("Clerk")?
///     .then(when(from_ann, Nested::new(research).context(OuterContext::All)))
///     .then(Assistant::new("Clerk", model)?);
/// # let _ = clerk;
/// # Ok(())
/// # }
/// ```
#[derive(derive_more::Debug)]
#[must_use]
pub struct Nested {
    chat: Chat,
    message: OuterContext,
    carry: Option<OuterContext>,
    #[debug(skip)]
    reply: Option<Box<ReplyFn>>,
}

type ReplyFn = dyn Fn(&StopReason, &str) -> Option<Act> + Send + Sync;

/// The part of the outer conversation that is carried into the inner chat.
#[derive(Clone, Default, derive_more::Debug)]
#[non_exhaustive]
pub enum OuterContext {
    /// The last message that the agent sees.
    #[default]
    Last,
    /// Every message that the agent sees, with the names of the speakers.
    All,
    /// A summary by an agent; see [`OuterContext::summarized_by`].
    Reflected(Reflection),
    /// The result of a function of the turn; see [`OuterContext::custom`].
    Custom(#[debug(skip)] Arc<OuterFn>),
}

type OuterFn = dyn Fn(&Turn<'_>) -> String + Send + Sync;

/// An agent that summarizes the outer conversation, in its own chat.
#[derive(Debug, Clone)]
pub struct Reflection(Arc<Chat>);

impl OuterContext {
    /// Carries a summary by `agent`, asked with `prompt`, of every message that the replying agent sees. Takes one turn of
    /// `agent`, in its own chat before the inner one.
    ///
    /// # Errors
    /// When the agent's name is illegal.
    pub fn summarized_by(agent: impl Agent, prompt: impl Into<Arc<str>>) -> Result<Self> {
        let (who, prompt) = (agent.name().clone(), prompt.into());
        let ask = move |chat: &Transcript| match chat.turns() {
            0 => Step::Turn(TurnRequest {
                prompt: Some(Arc::clone(&prompt)),
                ..TurnRequest::to_all(who.clone())
            }),
            _ => LibraryStopReason::Replied { who: who.clone() }.close(chat),
        };
        let chat =
            Chat::builder("reflection").participant(agent).policy(with_summary(ask, last_reply)).build()?;
        Ok(Self::Reflected(Reflection(Arc::new(chat))))
    }

    /// Carries the result of `text` for the turn: from the last message, its sender, or the whole conversation. Must be
    /// deterministic.
    pub fn custom(text: impl Fn(&Turn<'_>) -> String + Send + Sync + 'static) -> Self {
        Self::Custom(Arc::new(text))
    }

    /// The text; `None` while input of a person is pending.
    async fn text(&self, turn: &mut Turn<'_>) -> Result<Option<String>> {
        Ok(Some(match self {
            Self::Last => {
                turn.last_message().map(|line| line.message.to_text().into_owned()).unwrap_or_default()
            }
            Self::All => everything(turn),
            Self::Custom(text) => text(turn),
            Self::Reflected(reflection) => {
                let everything = everything(turn);
                if everything.is_empty() {
                    return Ok(Some(everything));
                }
                match closed(turn.run(&reflection.0, &everything).await?)? {
                    None => return Ok(None),
                    Some((_, summary)) => summary.to_string(),
                }
            }
        }))
    }
}

fn everything(turn: &Turn<'_>) -> String {
    let seen = |line: &&TranscriptMessage| line.is_seen_by(turn.me());
    let say = |line: &TranscriptMessage| format!("{}: {}", line.message.from, line.message.to_text());
    turn.transcript().messages().filter(seen).map(say).collect::<Vec<_>>().join("\n\n")
}

/// The stop reason and the summary of a chat; `None` while input of a person is pending.
fn closed(status: Status) -> Result<Option<(StopReason, Arc<str>)>> {
    match status {
        Status::Closed { reason, summary } => Ok(Some((reason, summary))),
        Status::Waiting(_) => Ok(None),
        Status::Cancelled => Err(Interrupt::Cancelled.into()),
    }
}

impl Nested {
    /// Replies with the summary of `chat`, which starts with the last message that the agent sees.
    pub fn new(chat: Chat) -> Self {
        Self { chat, message: OuterContext::Last, carry: None, reply: None }
    }

    /// Sets what the inner chat starts with: its task.
    pub fn message(self, message: OuterContext) -> Self {
        Self { message, ..self }
    }

    /// Sets what else is carried into the inner chat, below the line `Context:`.
    pub fn context(self, carry: OuterContext) -> Self {
        Self { carry: Some(carry), ..self }
    }

    /// Sets a function that makes the reply from the stop reason and the summary. `None` passes on to the next layer.
    pub fn map_reply(self, reply: impl Fn(&StopReason, &str) -> Option<Act> + Send + Sync + 'static) -> Self {
        Self { reply: Some(Box::new(reply)), ..self }
    }

    /// The task of the inner chat; `None` while input of a person is pending.
    async fn task(&self, turn: &mut Turn<'_>) -> Result<Option<String>> {
        let Some(message) = self.message.text(turn).await? else { return Ok(None) };
        if message.trim().is_empty() {
            return Ok(Some(String::new()));
        }
        let carried = match &self.carry {
            None => String::new(),
            Some(carry) => match carry.text(turn).await? {
                None => return Ok(None),
                Some(carried) => carried,
            },
        };
        let items = if carried.trim().is_empty() { Vec::new() } else { vec![carried] };
        Ok(Some(with_context(&message, &items)))
    }
}

/// The layer of the chat's name: passes on when there is nothing to start with, or no summary.
impl ReplyLayer for Nested {
    fn label(&self) -> &str {
        self.chat.name().as_str()
    }

    async fn reply(&self, turn: &mut Turn<'_>) -> Result<Option<Act>> {
        let Some(task) = self.task(turn).await? else { return Ok(Some(Act::Wait)) };
        if task.is_empty() {
            return Ok(None);
        }
        let Some((reason, summary)) = closed(turn.run(&self.chat, &task).await?)? else {
            return Ok(Some(Act::Wait));
        };
        Ok(match &self.reply {
            Some(reply) => reply(&reason, &summary),
            None if summary.trim().is_empty() => None,
            None => Some(turn.say_result(summary)),
        })
    }
}
