//! What tests of Polylogue, and of programs built on it, stand on.

pub mod cut;
pub mod invariants;
pub mod print;
pub mod server;
pub mod store;
