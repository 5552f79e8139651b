//! Chats within a reply: a layer that works a reply out in a chat of its own.
//!
//! Most chats within chats need nothing of this: a [`Chat`] among the participants is an agent. [`Nested`] is for an agent
//! that has other ways to reply as well, and works only some of its replies out among others.

use std::fmt;
use std::sync::Arc;

use polylogue_core::{
    Act, Agent, Chat, Error, Line, Result, Status, Step, StopReason, Transcript, Turn, TurnRequest,
};

use crate::carryover::with_context;
use crate::order::{last_said, summed_up};
use crate::reply::Reply;

/// A layer that replies with what comes of an inner chat, often a [`sequence`](crate::order::sequence) of chats.
///
/// The inner chat begins with the last message that the agent heard, unless it is told otherwise; what comes of it, its
/// summary, is the reply. When there is nothing to begin with, or nothing came of it, the next layer is asked.
///
/// Which messages it replies to is up to [`when`](crate::reply::when): by who said them, by what they say, or both. An
/// inner chat whose participants reply by the same layer again, and so on without end, is stopped by the limit on
/// [depth](polylogue_core::Limits::depth): the run ends with [`StopReason::Depth`].
///
/// # An agent that works out what Ann asks for
/// ```
/// # fn example(research: polylogue::Chat, model: polylogue::AnyModel) -> polylogue::Result<()> {
/// use polylogue::Assistant;
/// use polylogue::nested::{Nested, Outer};
/// use polylogue::reply::{Stack, Trigger, when};
///
/// let from_ann = Trigger::from("Ann".try_into()?) & Trigger::heard(|line| line.message.plain().contains('?'));
/// let clerk = Stack::new("Clerk")?
///     .then(when(from_ann, Nested::new(research).carries(Outer::All)))
///     .then(Assistant::new("Clerk", model)?);
/// # let _ = clerk;
/// # Ok(())
/// # }
/// ```
pub struct Nested {
    chat: Chat,
    message: Outer,
    carry: Option<Outer>,
    reply: Option<Box<ReplyFn>>,
}

type ReplyFn = dyn Fn(&StopReason, &str) -> Option<Act> + Send + Sync;

/// What an inner chat is told of the conversation around it.
#[derive(Clone, Default)]
#[non_exhaustive]
pub enum Outer {
    /// The last message that the agent heard.
    #[default]
    Last,
    /// Every message that the agent sees, with the names of the speakers.
    All,
    /// What an agent makes of every message; see [`Outer::reflected`].
    Reflected(Reflection),
    /// What a function of the turn makes of it; see [`Outer::own`].
    Own(Arc<OuterFn>),
}

type OuterFn = dyn Fn(&Turn<'_>) -> String + Send + Sync;

/// An agent that sums the conversation around up, in a chat of its own.
#[derive(Clone)]
pub struct Reflection(Arc<Chat>);

impl Outer {
    /// What `agent`, asked with the words of `prompt`, makes of every message that the replying agent sees. Takes one turn
    /// of `agent`, in a chat of its own before the inner one.
    ///
    /// # Errors
    /// When the agent has a name that no agent can have.
    pub fn reflected(agent: impl Agent, prompt: impl Into<Arc<str>>) -> Result<Self> {
        let (who, prompt) = (agent.name().clone(), prompt.into());
        let ask = move |chat: &Transcript| match chat.turns() {
            0 => Step::Turn(TurnRequest {
                prompt: Some(Arc::clone(&prompt)),
                ..TurnRequest::to_all(who.clone())
            }),
            _ => Step::close(StopReason::Finished, chat),
        };
        let chat = Chat::named("reflection").participant(agent).policy(summed_up(ask, last_said)).build()?;
        Ok(Self::Reflected(Reflection(Arc::new(chat))))
    }

    /// What `text` makes of the turn: of the message that was heard, of who said it, of the whole conversation. It has to be
    /// the same for the same.
    pub fn own(text: impl Fn(&Turn<'_>) -> String + Send + Sync + 'static) -> Self {
        Self::Own(Arc::new(text))
    }

    /// The text; nothing while a person is waited for.
    async fn text(&self, turn: &mut Turn<'_>) -> Result<Option<String>> {
        Ok(Some(match self {
            Self::Last => {
                turn.last_message().map(|line| line.message.in_words().into_owned()).unwrap_or_default()
            }
            Self::All => everything(turn),
            Self::Own(text) => text(turn),
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

impl fmt::Debug for Outer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Last => "Last",
            Self::All => "All",
            Self::Reflected(_) => "Reflected",
            Self::Own(_) => "Own",
        })
    }
}

fn everything(turn: &Turn<'_>) -> String {
    let seen = |line: &&Line| line.is_seen_by(turn.me());
    let say = |line: &Line| format!("{}: {}", line.message.from, line.message.in_words());
    turn.transcript().messages().filter(seen).map(say).collect::<Vec<_>>().join("\n\n")
}

/// Why a chat was closed and what came of it; nothing while a person is waited for.
fn closed(status: Status) -> Result<Option<(StopReason, Arc<str>)>> {
    match status {
        Status::Closed { reason, summary } => Ok(Some((reason, summary))),
        Status::Waiting(_) => Ok(None),
        Status::Halted => Err(Error::Cancelled),
    }
}

impl Nested {
    /// Replies with what comes of `chat`, which begins with the last message that the agent heard.
    #[must_use]
    pub fn new(chat: Chat) -> Self {
        Self { chat, message: Outer::Last, carry: None, reply: None }
    }

    /// Sets what the inner chat begins with: it is its task.
    #[must_use]
    pub fn message(self, message: Outer) -> Self {
        Self { message, ..self }
    }

    /// Sets what the inner chat is told besides, below the word `Context:`.
    #[must_use]
    pub fn carries(self, carry: Outer) -> Self {
        Self { carry: Some(carry), ..self }
    }

    /// Sets what the reply is, given why the inner chat ended and what came of it. `None` asks the next layer.
    #[must_use]
    pub fn replies(self, reply: impl Fn(&StopReason, &str) -> Option<Act> + Send + Sync + 'static) -> Self {
        Self { reply: Some(Box::new(reply)), ..self }
    }

    /// What the inner chat begins with; nothing while a person is waited for.
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

impl fmt::Debug for Nested {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nested")
            .field("chat", &self.chat)
            .field("message", &self.message)
            .field("carry", &self.carry)
            .finish_non_exhaustive()
    }
}

/// The layer of the chat's name: passes on when there is nothing to begin with, or nothing came of it.
impl Reply for Nested {
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
            None => Some(turn.says(summary)),
        })
    }
}
