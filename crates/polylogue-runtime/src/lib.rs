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
//! The root has the names of these steps. All others are in modules named by what they are for:
//!
//! | you want | look at |
//! |---|---|
//! | to run conversations of a store that many processes share | [`worker`], [`database`] |
//! | to show a conversation, or what it asks people | [`presentation`], [`question_text`] |
//! | to fork a conversation, to send instructions to one, or to list the questions that wait for people | [`fork`], [`steering`], [`waiting`] |
//! | the files of a conversation | [`files`] |
//! | what is stored with a conversation | [`stored`] |
//! | models of files and of endpoints, and what media they read | [`models`], [`address`] |
//! | long-term memory, MCP servers | [`memory`], [`servers`] |
//! | what a team asks for, as text | [`permission_text`] |
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
pub mod database;
mod error;
pub mod files;
pub mod fork;
mod inbox;
mod lease_renewal;
pub mod memory;
pub mod models;
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
pub mod servers;
mod shared_budgets;
pub mod steering;
mod store_location;
pub mod stored;
mod transfer;
pub mod waiting;
mod work_dir;
pub mod worker;

pub use access::Access;
pub use agent_history::AgentHistory;
pub use bound::bound_of;
pub use checked_models::check_models;
pub use continuation::Continuation;
pub use conversation::{Conversation, Resumed};
pub use error::{Error, Result};
pub use models::ModelOptions;
pub use prepared::{Prepared, RunOptions, TeamRun};
pub use rebuilt_request::RebuiltRequest;
pub use requested_permission::RequestedPermission;
pub use runtime::{ClaimedConversation, OpenOptions, Runtime};
pub use store_location::{FilesPolicy, StoreLocation};
pub use work_dir::refused_programs;
