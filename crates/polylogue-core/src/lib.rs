//! The kernel of Polylogue: conversations of more than two.
//!
//! A conversation is a [`Log`] of [`Event`]s. An [`Agent`], on its turn, reads the transcript and acts. A [`Policy`] reads
//! the transcript and names the next step. A [`Chat`] is agents and a policy, and is itself an agent. Agents speak by a
//! [`Model`] and act by a [`Tool`]. What is said is a [`Message`], with an author and an audience. These eight are all
//! there is; every pattern - two agents, a group, a sequence, a chat within a chat - is made of them.
//!
//! # The log is the program counter
//!
//! Agents and policies hold no state. Everything that is not a pure function of the log - what a model replied, what a
//! tool returned, what a person answered - is appended to it before anything else happens. So persisting is appending,
//! resuming is running again, replaying is reading, and forking is copying a prefix: a log can be cut after any event,
//! and a fresh process that runs it comes to the same end without making a finished model call again.
//!
//! # No message has a role
//!
//! `user` and `assistant` are computed for the agent that reads, by its [`View`]: its own words are `assistant`, everybody
//! else's are `user`. A view is derived from the log and never stored; it only ever grows at its end, so that prompt
//! caches keep hitting and a step costs what is new.
//!
//! # The kernel does no IO
//!
//! It names no provider and needs no particular async runtime. Models, stores and tools are traits, implemented in the
//! crates around it. Read the rooms in this order: [`Message`], [`Event`], [`Transcript`], [`View`], [`Turn`], [`Chat`].

mod again;
mod agent;
mod arguments;
mod budget;
mod call;
mod cancellation;
mod capabilities;
pub mod chain;
mod chat;
mod digest;
mod embed;
mod error;
mod event;
mod event_buffer;
mod invariants;
mod limits;
mod log;
mod media;
pub mod memory;
mod message;
mod model;
mod name;
mod origins;
mod outcome;
mod overrides;
mod policy;
mod resources;
mod run;
mod stop_reason;
mod store;
mod tool;
mod transcript;
mod turn;
mod updates;
mod usage;
mod view;

pub use agent::{Act, Agent, AnyAgent, Layer};
pub use budget::{Bound, Budget, FailedAttempt, Meter, Reservation};
pub use cancellation::Cancellation;
pub use capabilities::{Capabilities, Capability};
pub use chat::{Chat, ChatBuilder, Start, Status, TaskFrom};
pub use embed::{AnyEmbed, Embed, Embedded};
pub use error::{Error, Failure, Fault, Result};
pub use event::{
    Body, Digest, Event, Finish, HistoryEntry, JoinHistory, ModelReply, Opening, Path, Question, Timestamp,
    TurnRequest,
};
pub use limits::Limits;
pub use log::{Clock, Lease, Log};
pub use message::{Audience, Call, CallOutcome, Media, Message, Part, cut, plain};
pub use model::{
    AnyModel, DeltaRef, DeltaSink, EncodeCache, Entry, Model, ModelError, ModelErrorKind, Origin, Params,
    Reply, Request,
};
pub use name::{Name, NameError};
pub use outcome::{Outcome, OutcomeStatus};
pub use overrides::LimitOverrides;
pub use policy::{Choice, Chooser, Policy, Step};
pub use resources::{ResourceKey, Resources};
pub use stop_reason::{Counted, LoopKind, ModelMistake, RunOutcome, StopReason};
pub use store::{AnyStore, Claim, Intact, LEASE, Listing, LogId, Meta, Store, StoreError};
pub use tool::{AnyTool, StateScope, Tool, ToolCx, ToolError, ToolSpec, no_such_tool};
pub use transcript::{EndedTurn, Line, Source, Transcript};
pub use turn::{AgentCall, ModelAttempt, ModelCall, Turn};
pub use updates::{Delta, Subscription, Update};
pub use usage::{
    CacheSavings, Charge, ChargeReason, Money, Price, ToolUsage, TotalUsage, UncertainUsage, Usage,
};
pub use view::{BEGIN, GO_ON, PromptRole, ShowNames, View, ViewOptions, Window};
