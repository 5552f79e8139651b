//! Plain data: names, messages, tool calls and their results, requests and replies of models, usage, stop reasons, errors.
//!
//! | about | look at |
//! |---|---|
//! | messages | [`Message`], [`Audience`], [`Part`], [`Media`], [`MediaUrl`], [`text_of`] |
//! | names and places | [`Name`], [`Path`], [`LogId`], [`UnknownName`] |
//! | tool calls | [`ToolSpec`], [`ToolCall`], [`ToolResult`], [`StoredResult`], [`BlobId`], [`schema`] |
//! | model calls | [`Params`], [`Capabilities`], [`Reply`], [`Delta`], [`ModelReply`], [`Seal`], [`RawArguments`] |
//! | prompt caches and summaries of the history | [`RequestPrefix`], [`PrefixChange`], [`HistorySummary`] |
//! | usage and cost | [`Usage`], [`TotalUsage`], [`ToolUsage`], [`Charge`], [`Money`], [`Price`] |
//! | background tasks | [`BackgroundTask`], [`BackgroundResult`] |
//! | the end of a chat | [`StopReason`], [`OtherReason`], [`RunOutcome`] |
//! | errors | [`Error`], [`Failure`], [`Interrupt`], [`ModelError`], [`StoreError`], [`ConfigError`]; whose fault it is: [`Fault`] |
//! | files of a conversation | [`FileTree`], [`StoredFiles`] |
//! | shorter texts, and lists in prose | [`text`] |

pub(crate) mod arguments;
mod background;
mod blob_id;
mod capabilities;
mod config_error;
mod digest;
mod error;
mod fault;
mod file_tree;
mod history_summary;
mod media;
mod media_url;
mod message;
mod model_error;
mod money;
pub(crate) mod name;
mod output_limit;
mod part;
mod path;
mod pattern_error;
mod pdf;
mod prefix;
mod price;
mod reply;
mod request;
pub mod schema;
mod stop_reason;
mod store_error;
mod stored_result;
pub mod text;
mod tool_result;
mod unknown_name;
mod usage;
mod verbatim;
mod written;

pub use self::background::{BackgroundResult, BackgroundStatus, BackgroundTask};
pub use self::blob_id::BlobId;
pub use self::capabilities::{Capabilities, Capability};
pub use self::config_error::{ConfigError, ImpossibleStep};
pub use self::digest::{Digest, RequestPrefix};
pub use self::error::{Error, Failure, Interrupt, Result};
pub use self::fault::Fault;
pub use self::file_tree::{FileEntry, FileKind, FilePath, FileTree, SkipReason, SkippedEntry, StoredFiles};
pub use self::history_summary::{CallPurpose, Compacted, HistorySummary};
pub use self::media_url::MediaUrl;
pub use self::message::{Audience, Message};
pub use self::model_error::{ModelError, ModelErrorKind};
pub use self::money::Money;
pub use self::name::{Name, NameError};
pub use self::output_limit::OutputLimit;
pub use self::part::{
    ExecutedCall, FinishReason, Media, Part, ToolCall, ToolResult, ToolStatus, cut, text_of,
};
pub use self::path::{LabelError, Path};
pub use self::pattern_error::PatternError;
pub use self::prefix::{PrefixChange, PrefixChanges};
pub use self::price::{Price, PriceTier};
pub(crate) use self::reply::joined;
pub use self::reply::{AnsweredBy, Delta, DeltaRef, DeltaSink, ModelReply, Reply, push_parts};
pub use self::request::{CacheLifetime, Effort, Params, Thinking, ToolChoice, ToolSpec};
pub(crate) use self::stop_reason::in_units;
pub use self::stop_reason::{AllowanceOwner, CutReply, OtherReason, RunOutcome, StopReason};
pub use self::store_error::{LogId, StoreError};
pub use self::stored_result::StoredResult;
pub use self::unknown_name::UnknownName;
pub use self::usage::{
    CacheSavings, CallCost, Charge, ChargeBound, ChargeReason, PromptCache, ToolUsage, TotalUsage,
    UncertainUsage, Usage,
};
pub use self::verbatim::{RawArguments, Seal, Seals, Verbatim};
pub(crate) use self::written::written;
