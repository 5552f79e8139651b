//! The kernel of Polylogue.

mod error;
mod event;
mod invariants;
mod live;
mod message;
mod model;
mod name;
mod reason;
mod store;
mod tool;
mod transcript;
mod usage;

pub use error::{Error, Failure, Fault, Result};
pub use event::{
    Body, Cue, Digest, Event, Finish, Opening, Path, Question, Sample, Timestamp,
};
pub use live::{Piece, Signal, Watch};
pub use message::{Audience, Call, Media, Message, Outcome, OutcomeStatus, Part, plain};
pub use model::{
    AnyModel, Delta, Deltas, Entry, Model, ModelError, ModelErrorKind, Origin, Params, Reply, Request, Wire,
};
pub use name::{Name, NameError};
pub use reason::{Circle, Ending, Reason};
pub use store::{AnyStore, Claim, Listing, LogId, Meta, Store, StoreError};
pub use tool::{AnyTool, Tool, ToolCx, ToolError, ToolSpec};
pub use transcript::Transcript;
pub use usage::{Money, Price, Spent, Usage};
