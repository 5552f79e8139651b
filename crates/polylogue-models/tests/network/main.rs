//! The ways to an endpoint: over encrypted connections, and through proxies.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]
#![allow(clippy::print_stdout, reason = "a child process reports to its parent what it received")]

#[path = "../common/mod.rs"]
mod common;

mod child;
mod proxied;
mod proxy;
mod secure;
mod tls;
