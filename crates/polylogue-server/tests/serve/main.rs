//! A server on a real socket, with scripted teams. Tests are named after the items of the conformance list.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

mod browser;
mod calls;
mod client;
mod conversations;
mod editing;
mod errors;
mod feed;
mod generated;
mod isolation;
mod issuer;
mod limits;
mod live;
mod mcp;
mod mcp_client;
mod mcp_sessions;
mod mcp_tasks;
mod memory;
mod metrics;
mod openai;
mod openai_content;
mod openai_streams;
mod page;
mod page_browser;
mod page_editing;
mod page_live;
mod page_views;
mod restarts;
mod shared;
mod spending;
mod steering;
mod tails;
mod tokens;
mod transfer;
mod typed;
mod world;
