//! Carryover: results of earlier chats in a sequence, added to the task of the next.
//!
//! A sequence of chats is a chat whose participants are chats, in the order [`sequential`](crate::policies::order::sequential). Their
//! summaries are messages there, and a [`Carryover`] reads them to make the start of the next chat. Nothing is stored
//! elsewhere, so running a sequence twice gives independent runs.
//!
//! # Three chats in a sequence
//! ```
//! # fn example(ann: polylogue::kernel::agent::AnyAgent, bob: polylogue::kernel::agent::AnyAgent) -> polylogue::Result<polylogue::Chat> {
//! use polylogue::policies::carryover::Carryover;
//! use polylogue::policies::order::sequential;
//! use polylogue::stop::max_turns;
//! use polylogue::kernel::data::Interrupt;
//! use polylogue::policies::with_termination;
//! use polylogue::{Agent, Chat, round_robin};
//!
//! let pair = |name: &str, message: &str| {
//!     let chat = Chat::builder(name).participant(ann.clone()).participant(bob.clone()).policy(with_termination(round_robin(), max_turns(3)));
//!     Carryover::message(message).author(ann.name().clone()).apply_to(chat).build()
//! };
//! // `review` starts with "Review it.\nContext: \n", then the summaries of `facts` and of `draft`, a line each.
//! Chat::builder("work")
//!     .participant(pair("facts", "Collect facts.")?)
//!     .participant(pair("draft", "Write a draft.")?)
//!     .participant(pair("review", "Review it.")?)
//!     .policy(sequential())
//!     .build()
//! # }
//! ```

use std::sync::Arc;

use polylogue_core::{
    Act, Agent, Chat, ChatBuilder, Message, MessageSource, Name, OpeningContext, Part, Result, Status,
    TaskFrom, Transcript, TranscriptMessage, Turn, text_of,
};

use crate::policies::dag::Dag;

/// The task with which a chat in a sequence starts: its message, and below it the results of earlier chats.
///
/// First its own context, then the summaries of the finished chats, in the order in which they finished, since the
/// outer chat was last opened. A chat without a summary is omitted.
#[derive(Clone, derive_more::Debug)]
#[must_use]
pub struct Carryover {
    #[debug(skip)]
    message: First,
    author: Name,
    own: Vec<Arc<str>>,
    but: Vec<Name>,
    only: Option<Vec<Name>>,
    along: Option<Dag>,
}

/// The first message.
#[derive(Clone)]
enum First {
    Parts(Vec<Part>),
    Task,
    Last,
    Custom(Arc<MessageFn>),
}

type MessageFn = dyn Fn(&Transcript, &Name) -> String + Send + Sync;

impl Carryover {
    /// Starts with `text`.
    pub fn message(text: impl Into<Arc<str>>) -> Self {
        Self::parts(vec![Part::text(text)])
    }

    /// Starts with a message of several parts, such as a text and a picture. Carried results come before them.
    pub fn parts(parts: Vec<Part>) -> Self {
        Self::first(First::Parts(parts))
    }

    /// Starts with the task of the outer chat.
    pub fn task() -> Self {
        Self::first(First::Task)
    }

    /// Starts with the last message that the chat, as a participant, sees. It is not carried over a second time.
    pub fn last() -> Self {
        Self::first(First::Last)
    }

    /// Starts with the result of a pure function of the outer transcript and this chat's name there, and nothing else:
    /// the function can read the results to carry over with [`items`](Self::items).
    pub fn custom(message: impl Fn(&Transcript, &Name) -> String + Send + Sync + 'static) -> Self {
        Self::first(First::Custom(Arc::new(message)))
    }

    fn first(message: First) -> Self {
        Self { message, author: Name::user(), own: Vec::new(), but: Vec::new(), only: None, along: None }
    }

    /// Sets the sender of the first message. If it is a participant, the next one after it speaks first. Default:
    /// `user`.
    pub fn author(self, author: Name) -> Self {
        Self { author, ..self }
    }

    /// Adds a text to carry over, before the results of other chats.
    pub fn context(mut self, note: impl Into<Arc<str>>) -> Self {
        self.own.push(note.into());
        self
    }

    /// Omits the results of these chats.
    pub fn exclude(mut self, chats: impl IntoIterator<Item = Name>) -> Self {
        self.but.extend(chats);
        self
    }

    /// Carries over only the results of these chats.
    pub fn include(self, chats: impl IntoIterator<Item = Name>) -> Self {
        Self { only: Some(chats.into_iter().collect()), ..self }
    }

    /// Carries over only the results of the chat's dependencies.
    pub fn dependencies_of(self, dag: &Dag) -> Self {
        Self { along: Some(dag.clone()), ..self }
    }

    /// Makes `chat` start with this, as a participant of a sequence.
    pub fn apply_to(&self, chat: ChatBuilder) -> ChatBuilder {
        chat.task_from(self.task_from()).opening_from(self.opening())
    }

    /// Makes the task of a chat from the outer chat, for [`ChatBuilder::task_from`].
    pub fn task_from(&self) -> TaskFrom {
        let carry = self.clone();
        TaskFrom::custom(move |around, me| carry.text(around, me))
    }

    /// Makes the messages before the first turn, for [`ChatBuilder::opening_from`]. Without an outer chat it is the
    /// task of the run, or the message if there is none.
    pub fn opening(&self) -> impl Fn(&OpeningContext<'_>) -> Vec<Message> + Send + Sync + 'static {
        let carry = self.clone();
        move |start| {
            let parts = match (&carry.message, start.outer) {
                // The task has their text only.
                (First::Parts(parts), Some(around)) if !is_text(parts) => {
                    let items = carry.items(around, start.who);
                    let context = (!items.is_empty()).then(|| Part::text(with_context("", &items)));
                    context.into_iter().chain(parts.iter().cloned()).collect()
                }
                // Without an outer chat, the run has no task.
                (First::Parts(parts), None) if !is_text(parts) || start.task.trim().is_empty() => {
                    parts.clone()
                }
                _ => vec![Part::text(start.task)],
            };
            let message = Message { parts, ..Message::new(carry.author.clone(), "") };
            // A blank message of a participant counts: the next one replies to it.
            let is_nothing = message.from == Name::user() && message.parts.iter().all(Part::is_blank);
            if is_nothing { Vec::new() } else { vec![message] }
        }
    }

    /// Returns the first message as text, for the participant `me` of the outer chat. Carried results are below the message, a
    /// line each, after the line `Context:`.
    pub fn text(&self, around: &Transcript, me: &Name) -> String {
        let message = self.without_context(around, me);
        match self.message {
            First::Custom(_) => message,
            _ => with_context(&message, &self.items(around, me)),
        }
    }

    fn without_context(&self, around: &Transcript, me: &Name) -> String {
        match &self.message {
            First::Parts(parts) => text_of(parts).into_owned(),
            First::Task => around.task().to_owned(),
            First::Last => {
                last(around, me).map(|line| line.message.to_text().into_owned()).unwrap_or_default()
            }
            First::Custom(message) => message(around, me),
        }
    }

    /// Whether its message is blank, whatever is carried over.
    fn is_blank(&self, around: &Transcript, me: &Name) -> bool {
        match &self.message {
            First::Parts(parts) => parts.iter().all(Part::is_blank),
            _ => self.without_context(around, me).trim().is_empty(),
        }
    }

    /// Returns the results carried over to the participant `me` of the outer chat, in order.
    pub fn items(&self, around: &Transcript, me: &Name) -> Vec<String> {
        let said =
            matches!(self.message, First::Last).then(|| last(around, me).map(|line| line.seq)).flatten();
        let newest = usize::try_from(around.message_count()).unwrap_or(usize::MAX);
        let carried = |line: &&TranscriptMessage| {
            line.source == MessageSource::Turn
                && Some(line.seq) != said
                && line.is_seen_by(me)
                && self.carries(&line.message.from, me)
        };
        let mut results: Vec<String> = around
            .messages()
            .rev()
            .take(newest)
            .filter(carried)
            .map(|line| line.message.to_text().into())
            .collect();
        results.reverse();
        let own = self.own.iter().map(|note| note.to_string());
        own.chain(results).filter(|item| !item.trim().is_empty()).collect()
    }

    fn carries(&self, chat: &Name, me: &Name) -> bool {
        let wanted = |names: Option<&[Name]>| names.is_none_or(|names| names.contains(chat));
        let along = self.along.as_ref().map(|dag| dag.of(me));
        wanted(self.only.as_deref()) && wanted(along.as_deref()) && !self.but.contains(chat)
    }
}

fn is_text(parts: &[Part]) -> bool {
    matches!(parts, [Part::Text(_)])
}

fn last<'t>(around: &'t Transcript, me: &Name) -> Option<&'t TranscriptMessage> {
    around.messages().rev().find(|line| line.is_seen_by(me))
}

/// A message with carried results below it.
pub(crate) fn with_context(message: &str, items: &[String]) -> String {
    if items.is_empty() { message.to_owned() } else { format!("{message}\nContext: \n{}", items.join("\n")) }
}

/// A chat that is skipped when its message is blank.
///
/// As a participant of a sequence it starts with its [`Carryover`]. When the message of that is blank, it passes
/// without a run, whatever is carried over. The chat's own `task_from` is not used.
///
/// # A chat that runs only for complaints
/// ```
/// # fn example(apology: polylogue::Chat) -> impl polylogue::Agent {
/// use polylogue::policies::carryover::{Carryover, WithCarryover};
/// WithCarryover::new(apology, Carryover::custom(|around, _| match around.task().contains("complain") {
///     true => "Write an apology.".into(),
///     false => String::new(),
/// }))
/// # }
/// ```
#[derive(Debug)]
pub struct WithCarryover {
    chat: Chat,
    carry: Carryover,
}

impl WithCarryover {
    /// Wraps `chat`: it starts with `carryover`, and is skipped when that is blank.
    pub const fn new(chat: Chat, carry: Carryover) -> Self {
        Self { chat, carry }
    }
}

impl Agent for WithCarryover {
    fn name(&self) -> &Name {
        self.chat.name()
    }

    fn description(&self) -> &str {
        Agent::description(&self.chat)
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let (around, me) = (turn.transcript(), turn.me());
        if self.carry.is_blank(around, me) {
            return Ok(Act::Pass);
        }
        let task = self.carry.text(around, me);
        Ok(match turn.run(&self.chat, &task).await? {
            Status::Closed { summary, .. } => turn.say_result(summary),
            Status::Waiting(_) => Act::Wait,
            Status::Cancelled => return Err(polylogue_core::Interrupt::Cancelled.into()),
        })
    }
}
