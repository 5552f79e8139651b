//! The kernel of Polylogue.

mod agent;
mod chat;
mod error;
mod event;
mod invariants;
mod live;
mod log;
mod message;
mod model;
mod name;
mod policy;
mod reason;
mod run;
mod store;
mod tool;
mod transcript;
mod turn;
mod usage;
mod view;

pub use agent::{Act, Agent, AnyAgent};
pub use chat::{Brief, Chat, ChatBuilder, Status};
pub use error::{Error, Failure, Fault, Result};
pub use event::{Body, Cue, Digest, Event, Finish, Opening, Path, Question, Sample, Timestamp};
pub use live::{Piece, Signal, Watch};
pub use log::{Clock, Halt, Limits, Log};
pub use message::{Audience, Call, Media, Message, Outcome, OutcomeStatus, Part, plain};
pub use model::{
    AnyModel, Delta, Deltas, Entry, Model, ModelError, ModelErrorKind, Origin, Params, Reply, Request, Wire,
};
pub use name::{Name, NameError};
pub use policy::{Policy, Step};
pub use reason::{Circle, Ending, Reason};
pub use store::{AnyStore, Claim, Listing, LogId, Meta, Store, StoreError};
pub use tool::{AnyTool, Tool, ToolCx, ToolError, ToolSpec};
pub use transcript::{EndedTurn, Line, Source, Transcript};
pub use turn::{Ask, Turn};
pub use usage::{Money, Price, Spent, Usage};
pub use view::{Lens, ShowNames, View, Window};
