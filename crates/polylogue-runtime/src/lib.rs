//! The runtime: prepares a team once, and runs its conversations. It prints nothing and knows no terminal; the
//! command-line program and servers are front ends of it.
//!
//! | step | by |
//! |---|---|
//! | what a team may use, as the user decided | [`Access`] |
//! | models, tools, MCP servers, sandbox and memory of a team, once | [`Prepared::new`] |
//! | conversations of a store | [`Runtime`]: `begin`, `open`, `find`, `list`, `fork`, `send`, `answer`, `steer`, `waiting`, `subscribe`, `files`, `remove` |
//! | one conversation, shared by a runner and its watchers | [`Conversation`]: `run`, `resume`, `send`, `answer`, `cancellation`, `subscribe` |
//!
//! ```
//! use polylogue_core::Status;
//! use polylogue_models::Env;
//! use polylogue_runtime::{Access, ModelOptions, StoreLocation, Prepared, RunOptions, Runtime};
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! # let dir = tempfile::tempdir()?;
//! # let file = dir.path().join("hello.yaml");
//! # std::fs::write(&file, "name: hello\ntask: Say hello.\nagents: [{name: Ann, system: You are brief.}]\nchat: {participants: [Ann], pattern: sequential}\nscript: [{Ann: Hello!}]\n")?;
//! let loaded = polylogue_team::load(&file, &Default::default())?;
//! let place = StoreLocation::new(dir.path().join("conversations.db"));
//! let access = Access::new(Env::process(), loaded.digest.as_str());
//! let models = ModelOptions { offline: true, ..ModelOptions::default() };
//! let options = RunOptions { models, ..RunOptions::default() };
//! let team = Prepared::new(&place, loaded.team, loaded.digest, access, options).await?;
//!
//! let runtime = Runtime::open_at(place)?;
//! let conversation = runtime.begin(&team.run()).await?;
//! let Status::Closed { summary, .. } = conversation.run().await? else { panic!("it waits") };
//! assert_eq!(&*summary, "Hello!");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod access;
pub mod address;
mod agent_history;
mod bound;
mod budgets;
mod checked_models;
mod cluster;
mod continuation;
mod conversation;
mod error;
mod files;
mod fork;
mod inbox;
mod lease_renewal;
mod memory;
mod models;
mod moving;
mod needs;
mod new_log;
pub mod permission_text;
mod prepared;
pub mod presentation;
pub mod question_text;
mod rebuilt_request;
mod requested_permission;
mod runtime;
mod servers;
mod shared_budgets;
mod steering;
mod store_location;
mod stored;
mod transfer;
mod work_dir;
mod worker;

pub use access::Access;
pub use agent_history::AgentHistory;
pub use bound::bound_of;
pub use checked_models::check_models;
pub use continuation::Continuation;
pub use conversation::{Conversation, Resumed};
pub use error::{Error, ForkError, MODEL_HINT, Result, media_in_words};
pub use files::RunFiles;
pub use fork::{Fork, ForkPoint, ForkedFiles};
pub use memory::{memory_of_others, open_memory};
pub use models::{
    LocalModelInfo, LocalResources, ModelOptions, UnsupportedMedia, count_local, endpoint_allowed,
    local_model_info, local_resources,
};
pub use needs::offered_features;
pub use new_log::{NewLog, made_by};
pub use polylogue::runs::worker::{LeaseCheck, WorkerEvent, WorkerSlots};
pub use polylogue_postgres::{
    Address as DatabaseAddress, BudgetFigures, BudgetListing, DatabaseFigures, LivePoint, Migrated,
    PostgresWatch, RateLimitFigures, Recount, SharedAmount, WatchedLog, token_budget,
};
#[cfg(unix)]
pub use polylogue_tools::files::{NewFolder, RestoreError};
pub use prepared::{Prepared, RunOptions, TeamRun};
pub use rebuilt_request::RebuiltRequest;
pub use requested_permission::RequestedPermission;
pub use runtime::{ClaimedConversation, OpenOptions, Runtime};
pub use servers::{TeamServers, server_names};
pub use shared_budgets::SharedBudgetSource;
pub use steering::{InstructionKey, PostedInstruction, Steered, WaitingRun};
pub use store_location::{FilesPolicy, StoreLocation};
pub use stored::{
    Sealer, StoredBound, StoredDocument, StoredTeam, begun_bound, bound_summary, fresh_id, is_imported,
    limits_of, served_as,
};
pub use work_dir::refused_programs;
pub use worker::{StoredTeams, Worker, WorkerMeter, WorkerOptions};
