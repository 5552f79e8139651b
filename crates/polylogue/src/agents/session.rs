//! Agents called directly: message in, message out, and what they remember.
//!
//! A [`Session`] is a log in which agents are called without a chat around them. Each remembers what it was told and what it
//! said in this session; another session knows nothing of it, so that one agent value serves any number of them at once.
//!
//! # Message in, message out
//! ```
//! use polylogue::{AnyModel, AnyStore, Assistant, LogId, Session};
//! # use polylogue_models::Script;
//! # use polylogue_store::Memory;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! # let script: Script = serde_json::from_str(r#"[{"poet": "A rose."}, {"poet": "Another rose."}]"#)?;
//! # let model = AnyModel::new(script.model("demo"));
//! let poet = Assistant::new("poet", model)?.system("You answer in rhymes.");
//! let session = Session::create(AnyStore::new(Memory::new()), LogId::new("first")?).await?;
//! let reply = session.call(&poet, "What is red?").await?;
//! assert_eq!(reply.plain(), "A rose.");
//! // It knows what was said before.
//! assert_eq!(session.call(&poet, "And what else?").await?.plain(), "Another rose.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # An agent made of agents, in ordinary Rust
//!
//! On its turn an agent can [ask](Turn::ask) others. They remember what it asked them, each in a room of its own below it.
//! A run that is cut anywhere goes on where it was: what was asked and answered is in the log, so `act` runs again and is
//! given the same.
//! ```
//! use polylogue::{Act, Agent, Assistant, Layer, Name, Result, Turn};
//!
//! #[derive(Clone)]
//! struct Blogger { name: Name, writer: Assistant, critic: Assistant, rounds: usize }
//!
//! impl Agent for Blogger {
//!     fn name(&self) -> &Name {
//!         &self.name
//!     }
//!     fn layers(&self) -> Vec<Layer> {
//!         vec![Layer::of(&self.writer), Layer::of(&self.critic)]
//!     }
//!     async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
//!         let mut message = turn.message();
//!         for _ in 0..self.rounds {
//!             message = turn.ask(&self.writer, message).await?;
//!             message = turn.ask(&self.critic, message).await?;
//!         }
//!         Ok(Act::Say(turn.ask(&self.writer, message).await?.parts))
//!     }
//! }
//! ```
//!
//! A session ends by no number of calls: each may make [`Limits::calls_each`](polylogue_core::Limits::calls_each) model calls, and
//! [`Limits::calls`](polylogue_core::Limits::calls), where it is set, is the limit of the whole session.
//!
//! What agents remember is read, written and forgotten by [`Session::state`], [`Session::load`] and [`Session::reset`].

mod growing;
mod memory;
mod state;

use polylogue_core::{Agent, AnyStore, Log, LogId, Message, Meta, Name, Path, Result};

pub use self::growing::{Growing, Grown, Stage};
pub use self::memory::remembered;
pub use self::state::{Forget, State};

#[cfg(doc)]
use polylogue_core::{Error, Turn};

/// A log in which agents are called directly; see the [module](self).
pub struct Session {
    log: Log,
}

impl Session {
    /// Begins a session in `store`.
    ///
    /// # Errors
    /// When there is a conversation of this `id`, or the store cannot be written.
    pub async fn create(store: AnyStore, id: LogId) -> Result<Self> {
        Ok(Self::of(Log::create(store, id, &Meta::default()).await?))
    }

    /// Goes on with a session in `store`: agents remember what they did, in whichever process.
    ///
    /// # Errors
    /// When there is none of this `id`, when another process runs it, or when it is damaged.
    pub async fn open(store: AnyStore, id: LogId) -> Result<Self> {
        Ok(Self::of(Log::open(store, id).await?))
    }

    /// The session of a log: an empty one, or one that was a session before.
    #[must_use]
    pub const fn of(log: Log) -> Self {
        Self { log }
    }

    /// The log: to watch it, to stop what is going on, to see what was spent.
    #[must_use]
    pub const fn log(&self) -> &Log {
        &self.log
    }

    /// Ends the session, and gives its log back.
    #[must_use]
    pub fn into_log(self) -> Log {
        self.log
    }

    /// Tells `agent` something, and returns what it replies; without parts when it has nothing to say. Calls in one session are
    /// made one after the other, even if they are begun at the same time.
    ///
    /// A chat is called as an agent by `AnyAgent::new(chat)`.
    ///
    /// How it is called this once - with other parameters, stop words or tools - is up to the value that is given: one of
    /// the same name remembers the same.
    ///
    /// # Errors
    /// When the call fails, the session is as if it had not been made, but for what it cost.
    /// [`Error::Waiting`], [`Error::Cancelled`] and errors of the store leave it unfinished: [`resume`](Self::resume) goes on
    /// with it, [`undo`](Self::undo) gives it up.
    pub async fn call(&self, agent: &(impl Agent + Clone), message: impl Into<Message>) -> Result<Message> {
        self.log.call(agent, message).await
    }

    /// Watches what is written from now on, as it grows: cumulative texts, and the pieces they grow by.
    pub async fn growing(&self) -> Growing {
        Growing::of(self.log.subscribe().await)
    }

    /// Goes on with a call that is not over, and returns what came of it; nothing if all are over.
    ///
    /// # Errors
    /// As [`call`](Self::call); also when it is the call of another agent.
    pub async fn resume(&self, agent: &(impl Agent + Clone)) -> Result<Option<Message>> {
        self.log.resume_call(agent).await
    }

    /// Gives up a call that is not over: nothing of it is remembered. Returns whether there was one.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn undo(&self) -> Result<bool> {
        self.log.undo_call().await
    }

    /// Answers the question that somebody asked in a call, in the chat `at`; [`Log::questions`] tells of them.
    ///
    /// # Errors
    /// When there is no such question, or the store cannot be written.
    pub async fn answer(&mut self, at: &Path, who: &Name, text: &str) -> Result<()> {
        self.log.answer(at, who, text).await
    }
}

impl std::fmt::Debug for Session {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Session").field("log", self.log.id()).finish_non_exhaustive()
    }
}
