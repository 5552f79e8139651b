//! Plain data: names, messages, calls and their results, usage, stop reasons, errors. The lowest layer.

pub(crate) mod arguments;
mod capabilities;
mod error;
mod media;
mod message;
pub(crate) mod name;
mod outcome;
mod stop_reason;
mod store_error;
mod usage;

pub use self::capabilities::{Capabilities, Capability};
pub use self::error::{Error, Failure, Fault, Result};
pub use self::message::{Audience, Call, CallOutcome, Media, Message, Part, cut, plain};
pub use self::name::{Name, NameError};
pub use self::outcome::{Outcome, OutcomeStatus};
pub use self::stop_reason::{Counted, LoopKind, ModelMistake, RunOutcome, StopReason};
pub use self::store_error::StoreError;
pub use self::usage::{
    CacheSavings, Charge, ChargeReason, Money, Price, ToolUsage, TotalUsage, UncertainUsage, Usage,
};
