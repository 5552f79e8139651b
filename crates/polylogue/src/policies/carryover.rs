//! Carryover: what a chat in a sequence is told of the chats before it.
//!
//! A sequence of chats is a chat whose members are chats, in the order [`sequence`](crate::order::sequence). What came of
//! each is a message there, so its transcript is all the carryover there is: a [`Carryover`] makes of it what the next chat
//! begins with. Nothing is written into a definition, so that running it twice is running it twice.
//!
//! # Three chats in a sequence
//! ```
//! # fn example(ann: polylogue::AnyAgent, bob: polylogue::AnyAgent) -> polylogue::Result<polylogue::Chat> {
//! use polylogue::carry::Carry;
//! use polylogue::order::sequence;
//! use polylogue::stop::max_turns;
//! use polylogue::{Agent, Chat, in_turn, until};
//!
//! let pair = |name: &str, message: &str| {
//!     let chat = Chat::named(name).with(ann.clone()).with(bob.clone()).policy(until(max_turns(3), in_turn()));
//!     Carry::message(message).said_by(ann.name().clone()).begins(chat).build()
//! };
//! // `review` begins with "Review it.\nContext: \n", and below that what came of `facts` and of `draft`, a line each.
//! Chat::named("work")
//!     .with(pair("facts", "Collect facts.")?)
//!     .with(pair("draft", "Write a draft.")?)
//!     .with(pair("review", "Review it.")?)
//!     .policy(sequence())
//!     .build()
//! # }
//! ```

use std::fmt;
use std::sync::Arc;

use polylogue_core::{
    Act, Agent, Chat, ChatBuilder, Line, Message, Name, Part, Result, Source, Start, Status, TaskFrom,
    Transcript, Turn, plain,
};

use crate::dag::Dag;

/// What a chat in a sequence begins with: its message, and below that what is carried over.
///
/// Carried over are first the notes of its own, then what came of the chats that are finished, in the order in which they
/// finished, since the chat around was opened last. What came of a chat is what it said there: a chat without a summary
/// carries nothing.
#[derive(Clone)]
pub struct Carryover {
    message: First,
    author: Name,
    own: Vec<Arc<str>>,
    but: Vec<Name>,
    only: Option<Vec<Name>>,
    along: Option<Dag>,
}

/// What is said first.
#[derive(Clone)]
enum First {
    Parts(Vec<Part>),
    Task,
    Last,
    Own(Arc<MessageFn>),
}

type MessageFn = dyn Fn(&Transcript, &Name) -> String + Send + Sync;

impl Carryover {
    /// Begins with `text`.
    #[must_use]
    pub fn message(text: impl Into<Arc<str>>) -> Self {
        Self::parts(vec![Part::text(text)])
    }

    /// Begins with a message of several parts, such as a text and a picture. What is carried over stands before them.
    #[must_use]
    pub fn parts(parts: Vec<Part>) -> Self {
        Self::first(First::Parts(parts))
    }

    /// Begins with the task of the chat around it.
    #[must_use]
    pub fn task() -> Self {
        Self::first(First::Task)
    }

    /// Begins with the last message that the chat, as a participant, sees. It is not carried over a second time.
    #[must_use]
    pub fn last() -> Self {
        Self::first(First::Last)
    }

    /// Begins with what a pure function makes of the transcript of the chat around and of this chat's name there, and with
    /// nothing else: what is carried over it can read with [`items`](Self::items).
    pub fn custom(message: impl Fn(&Transcript, &Name) -> String + Send + Sync + 'static) -> Self {
        Self::first(First::Own(Arc::new(message)))
    }

    fn first(message: First) -> Self {
        Self { message, author: Name::user(), own: Vec::new(), but: Vec::new(), only: None, along: None }
    }

    /// Sets who says the first message. If it is a member, the next one after it speaks first. The default: the `user`.
    #[must_use]
    pub fn said_by(self, author: Name) -> Self {
        Self { author, ..self }
    }

    /// Carries this, too, before what came of other chats.
    #[must_use]
    pub fn context(mut self, note: impl Into<Arc<str>>) -> Self {
        self.own.push(note.into());
        self
    }

    /// Carries nothing of these chats.
    #[must_use]
    pub fn exclude(mut self, chats: impl IntoIterator<Item = Name>) -> Self {
        self.but.extend(chats);
        self
    }

    /// Carries only what came of these chats.
    #[must_use]
    pub fn include(self, chats: impl IntoIterator<Item = Name>) -> Self {
        Self { only: Some(chats.into_iter().collect()), ..self }
    }

    /// Carries only what came of the chat's own prerequisites.
    #[must_use]
    pub fn dependencies_of(self, prerequisites: &Dag) -> Self {
        Self { along: Some(prerequisites.clone()), ..self }
    }

    /// `chat`, which as a member of a sequence begins with this.
    #[must_use]
    pub fn begin(&self, chat: ChatBuilder) -> ChatBuilder {
        chat.task_from(self.task_from()).opening_from(self.opening())
    }

    /// How the task of a chat is made of the chat around it: for [`ChatBuilder::task_from`].
    #[must_use]
    pub fn task_from(&self) -> TaskFrom {
        let carry = self.clone();
        TaskFrom::custom(move |around, me| carry.text(around, me))
    }

    /// What is said in a chat before its first turn: for [`ChatBuilder::opening_from`]. Outside of any other chat it is the
    /// task of the run, or the message if there is none.
    pub fn opening(&self) -> impl Fn(&Start<'_>) -> Vec<Message> + Send + Sync + 'static {
        let carry = self.clone();
        move |start| {
            let parts = match (&carry.message, start.around) {
                // The task has their text alone.
                (First::Parts(parts), Some(around)) if !is_text(parts) => {
                    let items = carry.items(around, start.who);
                    let context = (!items.is_empty()).then(|| Part::text(with_context("", &items)));
                    context.into_iter().chain(parts.iter().cloned()).collect()
                }
                // Outside of any other chat nobody asked for the brief.
                (First::Parts(parts), None) if !is_text(parts) || start.task.trim().is_empty() => {
                    parts.clone()
                }
                _ => vec![Part::text(start.task)],
            };
            let message = Message { parts, ..Message::text(carry.author.clone(), "") };
            // A blank message of a participant is one all the same: the next one replies to it.
            let is_nothing = message.from == Name::user() && message.parts.iter().all(Part::is_blank);
            if is_nothing { Vec::new() } else { vec![message] }
        }
    }

    /// The first message as text, for the participant `me` of the chat `around`. What is carried over stands below the
    /// message, a line each, under the word `Context:`.
    #[must_use]
    pub fn text(&self, around: &Transcript, me: &Name) -> String {
        let message = self.without_context(around, me);
        match self.message {
            First::Own(_) => message,
            _ => with_context(&message, &self.items(around, me)),
        }
    }

    fn without_context(&self, around: &Transcript, me: &Name) -> String {
        match &self.message {
            First::Parts(parts) => plain(parts).into_owned(),
            First::Task => around.task().to_owned(),
            First::Last => {
                last(around, me).map(|line| line.message.in_words().into_owned()).unwrap_or_default()
            }
            First::Own(message) => message(around, me),
        }
    }

    /// Whether it says nothing of its own, whatever is carried over.
    fn is_blank(&self, around: &Transcript, me: &Name) -> bool {
        match &self.message {
            First::Parts(parts) => parts.iter().all(Part::is_blank),
            _ => self.without_context(around, me).trim().is_empty(),
        }
    }

    /// What is carried over to the participant `me` of the chat `around`, in order.
    #[must_use]
    pub fn items(&self, around: &Transcript, me: &Name) -> Vec<String> {
        let said =
            matches!(self.message, First::Last).then(|| last(around, me).map(|line| line.seq)).flatten();
        let newest = usize::try_from(around.message_count()).unwrap_or(usize::MAX);
        let carried = |line: &&Line| {
            line.source == Source::Turn
                && Some(line.seq) != said
                && line.is_seen_by(me)
                && self.carries(&line.message.from, me)
        };
        let mut results: Vec<String> = around
            .messages()
            .rev()
            .take(newest)
            .filter(carried)
            .map(|line| line.message.in_words().into())
            .collect();
        results.reverse();
        let own = self.own.iter().map(|note| note.to_string());
        own.chain(results).filter(|item| !item.trim().is_empty()).collect()
    }

    fn carries(&self, chat: &Name, me: &Name) -> bool {
        let wanted = |names: Option<&[Name]>| names.is_none_or(|names| names.contains(chat));
        let along = self.along.as_ref().map(|prerequisites| prerequisites.of(me));
        wanted(self.only.as_deref()) && wanted(along) && !self.but.contains(chat)
    }
}

impl fmt::Debug for Carryover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Carry").field("own", &self.own).field("but", &self.but).finish_non_exhaustive()
    }
}

fn is_text(parts: &[Part]) -> bool {
    matches!(parts, [Part::Text(_)])
}

fn last<'t>(around: &'t Transcript, me: &Name) -> Option<&'t Line> {
    around.messages().rev().find(|line| line.is_seen_by(me))
}

/// A message, and below it what is carried over.
pub(crate) fn with_context(message: &str, items: &[String]) -> String {
    if items.is_empty() { message.to_owned() } else { format!("{message}\nContext: \n{}", items.join("\n")) }
}

/// A chat that is passed over when there is nothing to begin it with.
///
/// As a member of a sequence it begins with what its [`Carryover`] says, and says nothing, without a run, when the message of
/// that is blank, whatever is carried over. The chat's own brief is not asked.
///
/// # A chat that only runs when there is a complaint
/// ```
/// # fn example(apology: polylogue::Chat) -> impl polylogue::Agent {
/// use polylogue::carry::{Briefed, Carry};
/// Briefed::new(apology, Carry::own(|around, _| match around.task().contains("complain") {
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
    /// `chat`, which begins with what `carry` says, if that is anything.
    #[must_use]
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
            Status::Closed { summary, .. } => turn.says(summary),
            Status::Waiting(_) => Act::Wait,
            Status::Halted => return Err(polylogue_core::Error::Cancelled),
        })
    }
}
