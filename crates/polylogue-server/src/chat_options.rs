//! How chat completions are answered, as the one who starts the server decides.

use std::str::FromStr;

use polylogue_http::is_secret_header;

/// The options of chat completions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ChatOptions {
    /// Names of request headers whose value is the client's own id of its chat. Each chat of a client has one conversation with a team.
    pub conversation_headers: Vec<String>,
    /// What a client sees that does not say what it wants.
    pub show: ChatShow,
    /// Whether requests that user interfaces send on their own, such as for titles, are answered without the team.
    pub answers_chores: bool,
}

impl Default for ChatOptions {
    fn default() -> Self {
        Self { conversation_headers: Vec::new(), show: ChatShow::Result, answers_chores: true }
    }
}

/// Names of headers with a meaning of their own: those of requests, and what those of browsers, proxies and this server begin with.
const RESERVED: [&str; 13] = [
    "host", "connection", "content-type", "content-length", "transfer-encoding", "user-agent", "origin",
    "referer", "forwarded", "last-event-id", "idempotency-key", "x-request-id", "mcp-session-id",
];
const RESERVED_BEGINNINGS: [&str; 4] = ["accept", "sec-", "x-forwarded-", "x-polylogue-"];

/// Whether a header of this name, in lower case, says something else than the id of a chat, or is a secret.
pub(crate) fn is_reserved(name: &str) -> bool {
    is_secret_header(name)
        || RESERVED.contains(&name)
        || RESERVED_BEGINNINGS.iter().any(|beginning| name.starts_with(beginning))
}

/// The part of a conversation that a client sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChatShow {
    /// The result, and what participants say as reasoning.
    Result,
    /// All that participants say, as the content.
    Transcript,
    /// The result alone.
    None,
}

impl ChatShow {
    const ALL: [Self; 3] = [Self::Result, Self::Transcript, Self::None];

    /// Returns the name in options and headers.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Result => "result",
            Self::Transcript => "transcript",
            Self::None => "none",
        }
    }
}

impl FromStr for ChatShow {
    type Err = String;

    /// # Errors
    /// When `text` is no [`word`](Self::word).
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|show| show.word() == text);
        found.ok_or_else(|| format!("expected one of {}", Self::ALL.map(Self::word).join(", ")))
    }
}
