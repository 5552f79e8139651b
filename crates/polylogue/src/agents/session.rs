//! Sessions: agents called directly, without a chat, and their memory.
//!
//! A [`Session`] is a log in which agents are called without a chat. Each remembers what it received and said in this
//! session and nothing of others, so one agent value serves any number of sessions at once.
//!
//! # Message in, message out
//! ```
//! use polylogue::{Assistant, Session};
//! # use polylogue_models::Script;
//!
//! # tokio::runtime::Builder::new_current_thread().build()?.block_on(async {
//! # let script: Script = serde_json::from_str(r#"[{"poet": "A rose."}, {"poet": "Another rose."}]"#)?;
//! # let model = script.model("demo");
//! let poet = Assistant::new("poet", model)?.system("You answer in rhymes.");
//! let session = Session::in_memory();
//! let reply = session.call(&poet, "What is red?").await?;
//! assert_eq!(reply.text(), "A rose.");
//! // It remembers its earlier replies.
//! assert_eq!(session.call(&poet, "And what else?").await?.text(), "Another rose.");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # An agent made of agents, in ordinary Rust
//!
//! In its turn an agent can [ask](Turn::ask) others. Each remembers what it was asked, in its own inner chat. An
//! interrupted run continues at the same step: requests and replies are in the log, so `act` runs again and gets the
//! same replies.
//! ```
//! use polylogue::kernel::agent::SubAgent;
//! use polylogue::{Act, Agent, Assistant, Name, Result, Turn};
//!
//! #[derive(Clone)]
//! struct Blogger { name: Name, writer: Assistant, critic: Assistant, rounds: usize }
//!
//! impl Agent for Blogger {
//!     fn name(&self) -> &Name {
//!         &self.name
//!     }
//!     fn sub_agents(&self) -> Vec<SubAgent> {
//!         vec![SubAgent::of(&self.writer), SubAgent::of(&self.critic)]
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
//! A session has no limit on calls over its life: each call can make
//! [`Limits::calls_per_run`](polylogue_core::Limits::calls_per_run) model calls, and
//! [`Limits::calls`](polylogue_core::Limits::calls), if set, limits the whole session.
//!
//! The memory of agents is read, replaced and cleared by [`Session::state`], [`Session::load`] and [`Session::reset`].

mod memory;
mod reply_stream;
mod state;

use polylogue_core::{Agent, AnyStore, Log, LogId, Message, Name, Path, Result, StoreError};

pub use self::memory::remembered;
pub use self::reply_stream::{ReplyStream, ReplyUpdate, Stage};
pub use self::state::{Forget, State};

#[cfg(doc)]
use polylogue_core::{Error, Turn};

/// A log in which agents are called directly; see the [module](self).
#[derive(derive_more::Debug)]
#[debug("Session {{ log: {:?}, .. }}", self.log.id())]
pub struct Session {
    log: Log,
}

impl Session {
    /// Creates a session in memory only, gone when it is dropped.
    pub fn in_memory() -> Self {
        Self::from_log(Log::in_memory())
    }

    /// Creates a session in `store`.
    ///
    /// # Errors
    /// When the `id` is illegal or in use, or the store cannot be written.
    pub async fn create<I: TryInto<LogId>>(store: impl Into<AnyStore>, id: I) -> Result<Self>
    where
        StoreError: From<I::Error>,
    {
        Ok(Self::from_log(Log::create(store, id).await?))
    }

    /// Opens an existing session in `store`; agents keep their memory, also from other processes.
    ///
    /// # Errors
    /// When the `id` is unknown, when another process runs the session, or when it is damaged.
    pub async fn open<I: TryInto<LogId>>(store: impl Into<AnyStore>, id: I) -> Result<Self>
    where
        StoreError: From<I::Error>,
    {
        Ok(Self::from_log(Log::open(store, id).await?))
    }

    /// Creates a session on a log: a new one, or one that was a session before.
    pub const fn from_log(log: Log) -> Self {
        Self { log }
    }

    /// Returns the log, to subscribe, to cancel, and to read the usage.
    pub const fn log(&self) -> &Log {
        &self.log
    }

    /// Ends the session and returns its log, to release it or to continue with other limits.
    #[must_use]
    pub fn into_log(self) -> Log {
        self.log
    }

    /// Sends `agent` a message and returns its reply, which has no parts when the agent passes. Calls in one session
    /// run one after the other, even if they are started at the same time.
    ///
    /// A chat is called as an agent by `AnyAgent::new(chat)`.
    ///
    /// Parameters, stop words and tools are those of the value passed in this call: values of the same name share one
    /// memory.
    ///
    /// # Errors
    /// A failed call leaves no trace in the session, except for its usage. When a person must answer, after a
    /// cancellation ([`Interrupt`](polylogue_core::Interrupt)) and an error of the store the call stays open:
    /// [`resume`](Self::resume) continues it, [`roll_back`](Self::roll_back) rolls it back.
    pub async fn call(&self, agent: &(impl Agent + Clone), message: impl Into<Message>) -> Result<Message> {
        self.log.call(agent, message).await
    }

    /// Streams new text from now on: the cumulative text and each delta.
    pub async fn reply_stream(&self) -> ReplyStream {
        ReplyStream::of(self.log.subscribe().await)
    }

    /// Continues an open call and returns its reply; `None` if there is none. A question whose time is up gets its
    /// [default answer](crate::layers::AnswerTimeout) first.
    ///
    /// # Errors
    /// As [`call`](Self::call); also when the open call is of another agent.
    pub async fn resume(&self, agent: &(impl Agent + Clone)) -> Result<Option<Message>> {
        self.log.resume_call(agent).await
    }

    /// Rolls back an open call of `agent`: agents remember nothing of it. Returns whether there was one. Its usage counts, also that of a model
    /// call that was lost with an earlier process.
    ///
    /// # Errors
    /// When the open call is of another agent, or the log cannot be written.
    pub async fn roll_back(&self, agent: &(impl Agent + Clone)) -> Result<bool> {
        self.log.roll_back_call(agent).await
    }

    /// Answers a question asked in a call, in the chat `at`; [`Log::questions`] lists the open questions.
    ///
    /// # Errors
    /// When there is no such question, or the store cannot be written.
    pub async fn answer(&mut self, at: &Path, who: &Name, text: &str) -> Result<()> {
        self.log.answer(at, who, text).await
    }
}
