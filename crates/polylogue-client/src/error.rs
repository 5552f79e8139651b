//! Why a request has no result.

use std::error::Error;

use polylogue_http::{ReadError, SendError};
use polylogue_wire::problem::Problem;

/// The reason why a request has no result. No token is in it.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
pub struct ClientError(#[from] Box<Kind>);

#[derive(Debug, thiserror::Error)]
pub(crate) enum Kind {
    /// The address cannot be used.
    #[error("`{url}` {why}")]
    Address { url: String, why: String },
    /// The request cannot be made, on this side.
    #[error("the request cannot be made: {0}")]
    Unmade(String),
    /// The key of a request cannot be sent.
    #[error("{0:?} cannot be the key of a request")]
    Key(String),
    /// The server cannot be reached, or the connection broke.
    #[error("the server at `{url}` cannot be reached: {why}")]
    Unreachable { url: String, why: String, was_sent: bool },
    /// The server refused the request.
    #[error("{}", .0.detail)]
    Refused(Problem),
    /// What responds is not a server of Polylogue, or a newer one.
    #[error("`{url}` does not respond as a server of Polylogue: {why}")]
    NotPolylogue { url: String, why: String },
    /// No conversation has this id.
    #[error("there is no conversation `{0}`")]
    NoConversation(String),
    /// Several conversations have ids that begin so.
    #[error("several conversations begin with `{text}`: {ids}")]
    Ambiguous { text: String, ids: String },
}

impl ClientError {
    pub(crate) fn new(kind: Kind) -> Self {
        Self(Box::new(kind))
    }

    /// Returns the server's problem report, if it refused the request.
    pub fn problem(&self) -> Option<&Problem> {
        match &*self.0 {
            Kind::Refused(problem) => Some(problem),
            _ => None,
        }
    }

    /// Returns whether the server could not be reached, or the connection broke.
    pub fn is_unreachable(&self) -> bool {
        matches!(*self.0, Kind::Unreachable { .. })
    }

    /// Returns whether the request may have reached the server, though there is no response.
    pub fn may_have_effect(&self) -> bool {
        matches!(*self.0, Kind::Unreachable { was_sent: true, .. })
    }

    /// Returns whether the caller is wrong: what it names does not exist, or what it asks for is not allowed.
    pub fn is_usage(&self) -> bool {
        match &*self.0 {
            Kind::Address { .. } | Kind::Key(_) | Kind::NoConversation(_) | Kind::Ambiguous { .. } => true,
            Kind::Refused(problem) => (400..500).contains(&problem.status) && !self.is_temporary(),
            Kind::Unmade(_) | Kind::Unreachable { .. } | Kind::NotPolylogue { .. } => false,
        }
    }

    /// Whether the server says that what the request names does not exist.
    pub(crate) fn is_missing(&self) -> bool {
        self.problem().is_some_and(|problem| problem.status == 404)
    }

    /// Returns whether the same request may succeed later.
    pub fn is_temporary(&self) -> bool {
        match &*self.0 {
            Kind::Unreachable { .. } => true,
            Kind::Refused(problem) => matches!(problem.status, 408 | 429 | 503),
            _ => false,
        }
    }

    /// Returns how to fix it.
    pub fn hint(&self) -> Option<String> {
        match &*self.0 {
            Kind::Address { .. } => Some("write it as `http://127.0.0.1:8787`".into()),
            Kind::Unmade(_) => None,
            Kind::Key(_) => Some("keys have 1 to 255 printable ASCII characters".into()),
            Kind::Unreachable { .. } => Some("see whether `polylogue serve` runs there".into()),
            Kind::Refused(problem) => problem.hint.clone(),
            Kind::NotPolylogue { .. } => {
                Some("check the address, and that both have the same version".into())
            }
            Kind::NoConversation(_) => Some("`polylogue runs` lists them".into()),
            Kind::Ambiguous { .. } => Some("write more of the id".into()),
        }
    }
}

/// Why the event `seq` cannot come where the event `expected` is next.
pub(crate) fn out_of_order(seq: u64, expected: u64) -> String {
    format!("event {seq} comes where event {expected} is next")
}

/// The error and its innermost cause, in one line.
pub(crate) fn in_words(error: &dyn Error) -> String {
    let mut innermost = error;
    while let Some(source) = innermost.source() {
        innermost = source;
    }
    match (error.to_string(), innermost.to_string()) {
        (whole, why) if whole == why => whole,
        (whole, why) => format!("{whole}: {why}"),
    }
}

pub(crate) fn unsent(url: &str, error: &SendError) -> ClientError {
    let was_sent = matches!(error, SendError::Broken(_));
    ClientError::new(Kind::Unreachable { url: url.into(), why: in_words(error), was_sent })
}

pub(crate) fn unread(url: &str, error: &ReadError) -> ClientError {
    ClientError::new(match error {
        ReadError::TooLong => Kind::NotPolylogue { url: url.into(), why: error.to_string() },
        ReadError::Broken(_) => Kind::Unreachable { url: url.into(), why: in_words(error), was_sent: true },
    })
}
