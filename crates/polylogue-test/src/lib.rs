//! What tests of Polylogue, and of programs built on it, stand on.

pub mod server;
