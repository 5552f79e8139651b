//! The kernel of Polylogue: multi-agent conversations.
//!
//! A conversation is a [`Log`] of [`Event`]s. An [`Agent`], on its turn, reads the transcript and acts. A [`Policy`]
//! reads the transcript and selects the next step. A [`Chat`] is agents and a policy, and is itself an agent. Agents
//! speak by a [`Model`] and act by a [`Tool`]. They say [`Message`]s, each with an author and an audience. Every
//! pattern - two agents, a group, a sequence, a nested chat - is made of these eight.
//!
//! # The log is the program counter
//!
//! Agents and policies hold no state. Everything that is not a pure function of the log - model replies, tool
//! results, answers of people - is appended to it before anything else happens. So persisting is appending, resuming
//! is running again, replaying is reading, and forking is copying a prefix: a log can be cut after any event, and a
//! new process that runs it reaches the same end without repeating a finished model call.
//!
//! # No message has a role
//!
//! `user` and `assistant` are computed for each agent by its [`View`]: its own messages are `assistant`, those of all
//! others are `user`. A view is derived from the log and never stored. It only grows at its end, so that prompt
//! caches keep hitting and a step costs only what is new.
//!
//! # The kernel does no IO
//!
//! It names no provider and needs no particular async runtime. Models, stores and tools are traits, implemented in
//! other crates. Read the types in this order: [`Message`], [`Event`], [`Transcript`], [`View`], [`Turn`], [`Chat`].

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
