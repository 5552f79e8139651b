//! Tools of MCP servers, for agents; and tools for other programs.
//!
//! [`Servers`] reads the usual `mcpServers` document unchanged, with programs and addresses, and starts nothing. When the tools of a server are
//! [asked for](Servers::tools), it is started, and its tools become tools of an agent:
//!
//! ```no_run
//! # async fn example() -> polylogue_core::Result<()> {
//! use polylogue_mcp::{Allowed, Servers};
//!
//! let servers = Servers::from_json(r#"{"mcpServers": {
//!     "files": {"command": "npx", "args": ["-y", "@modelcontextprotocol/server-filesystem", "/srv/papers"]},
//!     "tickets": {"command": "tickets-mcp", "env": {"TICKETS_KEY": "${TICKETS_KEY}"}}
//! }}"#)?;
//! let tools = servers
//!     .tools([("files", Allowed::only(["read_file", "list_directory"])), ("tickets", Allowed::but(["delete"]))])
//!     .await?;
//! // tools[0] is `files_read_file`
//! # Ok(())
//! # }
//! ```
//!
//! A server that has resources gets two tools more, `list_resources` and `read_resource`, unless it has such tools itself.
//!
//! # When servers fail
//!
//! A server that hangs, dies, writes without end, answers something else, or has other tools now costs a failed call, whose
//! text a model can read, and never the run. One that is of no more use is ended, and started again for the next call. A call
//! that takes longer than [`Limits::call`] without a word on its [`Progress`], or whose run is cancelled, is aborted, and
//! the server receives a cancellation.
//!
//! A tool that a server changed is not called with the arguments that were right before: the model receives the new schema,
//! and calls it again.
//!
//! # What servers get
//!
//! Of this process's environment only what programs need to find themselves (`PATH`, `HOME`, language, time zone and the
//! like); no keys, unless the declaration hands them over by `${NAME}`. Values handed over are taken out of error texts.
//!
//! Servers are not enclosed in a sandbox: what they may do on this machine is what they do. Their processes, with all that
//! those start, end with the connection, and with this process, however it ends.
//!
//! # Being a server
//!
//! What a program can do it can offer to others as tools: [`serve`].
//!
//! # What is left out
//!
//! What servers ask of their host (a model, files, questions to the user); their prompts and their logs; signing in to servers
//! with a `url` otherwise than by `headers`, and those of the older kind, whose `type` is `sse`. Servers must know a version of the protocol up to 2025-11-25, as all of today do.

mod address;
mod allowed;
mod catalog;
mod connection;
mod declaration;
mod expand;
mod limits;
mod names;
mod outcome;
mod output;
mod process;
mod progress;
mod resources;
pub mod serve;
mod server;
mod servers;
mod settings;
mod tool;

pub use allowed::Allowed;
pub use catalog::{Catalog, Described};
pub use limits::Limits;
pub use progress::Progress;
pub use servers::Servers;
