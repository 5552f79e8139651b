//! Tools that come with Polylogue.
//!
//! Tools are stateless: they read earlier calls from the conversation in which they are called. One value serves any number of
//! conversations, and each of these can be stopped and resumed anywhere.
//!
//! | tool | what it does |
//! |---|---|
//! | [`Calculator`] | evaluates an expression |
//! | [`Chess`] | a game of chess, with legal moves only |
//! | [`HighLow`] | compares two numbers |
//! | [`code`] | runs Python, shell and JavaScript in a sandbox |
//! | [`command`] | runs a command that is declared as data |
//! | [`PythonSession`] | runs Python in one interpreter that keeps its variables |
//! | [`http`] | calls over HTTP that are declared as data |
//! | [`openapi`] | makes tools of the operations of an OpenAPI document |
//! | [`web`] | searches for pages, fetches and reads them; reaches nothing private |
//! | [`LimitedTool`] | any tool, with limits on time and output |
//! | [`files`] | reads, lists, searches, writes and edits the files of one directory |
//!
//! ```
//! use polylogue_core::{AnyTool, Tool as _};
//! let tools = [AnyTool::new(polylogue_tools::Calculator::default()), AnyTool::new(polylogue_tools::Chess::default())];
//! assert_eq!(tools.map(|tool| tool.spec().name.clone()), ["calculator", "chess"]);
//! ```

pub mod code;
pub mod command;
#[cfg(unix)]
pub mod files;
pub mod http;
pub mod openapi;
pub mod web;

mod blocking;
mod bounded;
mod calculator;
mod chess;
mod exchange;
mod high_low;
mod in_order;
#[cfg(unix)]
pub mod python_session;

pub use bounded::LimitedTool;
pub use calculator::Calculator;
pub use chess::Chess;
pub use high_low::HighLow;
pub use in_order::Queue;
#[cfg(unix)]
pub use python_session::PythonSession;
