//! Settings of all servers of a document, and the limits of each.

use std::time::Duration;

use polylogue_http::{Env, Proxies};

use crate::progress::ProgressCallback;

/// Settings of all servers of a document.
#[derive(Clone)]
pub(crate) struct Settings {
    pub(crate) limits: Limits,
    pub(crate) callback: ProgressCallback,
    pub(crate) proxies: Proxies,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            limits: Limits::default(),
            callback: ProgressCallback::NONE,
            proxies: Proxies::of(&Env::process()),
        }
    }
}

/// Timeouts and size limits of one server.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// Timeout of starting and of listing tools. Default: one minute, because `npx` and `uvx` download packages on first use.
    pub start: Duration,
    /// Timeout of a call since its last progress notification. Default: two minutes.
    pub call: Duration,
    /// Timeout of a call in total. Default: 30 minutes.
    pub call_in_all: Duration,
    /// Maximum size of a message in bytes; a longer one ends the connection. Default: 16 MiB.
    pub message_bytes: usize,
    /// Maximum total size of images and audio in one result, in bytes of base64. Default: 8 MiB.
    pub media_bytes: usize,
    /// Maximum number of tools of a server; further ones are ignored. Default: 256.
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
