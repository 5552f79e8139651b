//! What a server may consume.

use std::time::Duration;

/// What is waited for, and taken, of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// How long a server may take to start and to list its tools. A minute: `npx` and `uvx` fetch packages when first run.
    pub start: Duration,
    /// How long a call may go on without a sign of life: a server that says how far it has come may take longer. Two
    /// minutes.
    pub call: Duration,
    /// How long a call may take in all. Half an hour.
    pub call_in_all: Duration,
    /// How many bytes one message of the server may have; the connection ends with one that is longer. 16 MiB.
    pub message_bytes: usize,
    /// How many bytes the pictures and sounds of one result may have altogether, as base64. 8 MiB.
    pub media_bytes: usize,
    /// How many tools are taken of a server; those behind them are left out. 256, more than any model chooses from well.
    pub tools: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            start: Duration::from_secs(60),
            call: Duration::from_secs(120),
            call_in_all: Duration::from_secs(30 * 60),
            message_bytes: 16 * 1024 * 1024,
            media_bytes: 8 * 1024 * 1024,
            tools: 256,
        }
    }
}
