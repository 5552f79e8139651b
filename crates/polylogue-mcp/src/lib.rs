//! An MCP client and server: tools of MCP servers for agents, and agents as tools for other programs.
//!
//! [`Servers`] reads the usual `mcpServers` document, with programs and addresses, and starts nothing. [`Servers::tools`] starts
//! servers, and returns their tools for agents:
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
//!     .tools([("files", Allowed::include(["read_file", "list_directory"])), ("tickets", Allowed::exclude(["delete"]))])
//!     .await?;
//! // tools[0] is `files_read_file`
//! # Ok(())
//! # }
//! ```
//!
//! A server with resources gets two more tools, `list_resources` and `read_resource`, unless it has tools with these names.
//!
//! # When servers fail
//!
//! When a server hangs, dies, writes endless output, responds incorrectly or has changed its tools, one call fails, with a text for
//! the model; the run continues. A broken server is terminated, and restarted for the next call. A call that takes longer than
//! [`Limits::call`] without [`Progress`], or whose run is cancelled, is aborted, and the server receives a cancellation.
//!
//! A tool whose schema has changed is not called with arguments for the old one: the model receives the new schema and can call it
//! again.
//!
//! # Environment of servers
//!
//! Servers inherit only environment variables that programs commonly need (`PATH`, `HOME`, language, time zone and similar), and no
//! keys, unless the declaration passes them by `${NAME}`. Passed values are redacted from error texts, and those that are
//! keys by their names from results, too.
//!
//! Servers do not run in a sandbox: they have all rights of the user. All of their processes end with the connection, and with this
//! process, however it ends.
//!
//! # An MCP server
//!
//! [`serve`] offers tools to other programs.
//!
//! # Limitations
//!
//! Not supported: requests of servers (sampling, roots, elicitation), prompts, logs, authorization of remote servers other than by
//! `headers`, and the older HTTP transport (`type: sse`). Servers must support a protocol version up to 2025-11-25.

mod address;
mod allowed;
mod catalog;
mod connection;
mod declaration;
mod expand;
mod names;
mod outcome;
mod output;
mod process;
mod progress;
mod resources;
mod schema;
pub mod serve;
mod server;
mod servers;
mod settings;
mod tool;

pub use allowed::Allowed;
pub use catalog::{Catalog, ToolDescription};
pub use progress::Progress;
pub use servers::Servers;
pub use settings::Limits;
