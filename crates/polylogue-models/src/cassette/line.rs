//! The lines of a cassette.

use std::borrow::Cow;

use polylogue_core::chain::Link;
use polylogue_core::{
    Capability, Delta, DeltaRef, Entry, ModelError, ModelErrorKind, Money, Name, Params, Path, Reply,
    ToolSpec,
};
use serde::{Deserialize, Serialize};

/// The first line.
pub(super) struct Header;

impl Header {
    /// The key of the version of the format.
    pub(super) const KEY: &str = "polylogue_cassette";
    /// The format version that is written, and the last supported one.
    pub(super) const KNOWN: u64 = 2;

    /// The link before the first line.
    pub(super) fn link() -> Link {
        Link::first(&[Self::KEY.as_bytes()])
    }
}

impl Serialize for Header {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map([(Self::KEY, Self::KNOWN)])
    }
}

/// A finished model call. Borrowed when written, owned when read.
#[derive(Serialize, Deserialize)]
pub(super) struct Line<'a> {
    #[serde(default, skip_serializing_if = "at_root")]
    pub(super) chat: Cow<'a, Path>,
    pub(super) who: Cow<'a, Name>,
    pub(super) nth: u64,
    pub(super) model: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) system: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub(super) tools: Cow<'a, [ToolSpec]>,
    #[serde(default)]
    pub(super) params: Cow<'a, Params>,
    /// How many of the first entries are the same as in the previous line of this agent in this chat. Views grow at
    /// their end, so a recording grows linearly with the conversation.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(super) kept: usize,
    /// The entries after those.
    pub(super) entries: Cow<'a, [Entry]>,
    /// The streamed pieces of the reply.
    #[serde(default, skip_serializing_if = "<[_]>::is_empty")]
    pub(super) pieces: Cow<'a, [RecordedDelta]>,
    pub(super) result: Answer<'a>,
    /// The cost of the call, at the prices of the day; omitted if unknown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cost: Option<Money>,
    /// What it would have cost without the provider's prompt cache; omitted if that was not used.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) uncached: Option<Money>,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
fn is_zero(number: &usize) -> bool {
    *number == 0
}

#[expect(clippy::ptr_arg, reason = "serde passes a reference")]
fn at_root(path: &Cow<'_, Path>) -> bool {
    path.is_root()
}

/// The result of a call.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Answer<'a> {
    Reply(Cow<'a, Reply>),
    Error(RecordedError),
}

/// A [`Delta`](polylogue_core::Delta), as written.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum RecordedDelta {
    Text(String),
    Thought(String),
    Call {
        index: usize,
        #[serde(default, skip_serializing_if = "Option::is_none")]
        tool: Option<String>,
        args: String,
    },
    Restart,
}

impl RecordedDelta {
    /// `None` for a kind of delta that this format does not have.
    pub(super) fn of(delta: DeltaRef<'_>) -> Option<Self> {
        Some(match Delta::from(delta) {
            Delta::Text(text) => Self::Text(text),
            Delta::Thought(text) => Self::Thought(text),
            Delta::Call { index, tool, args } => Self::Call { index, tool, args },
            Delta::Restart => Self::Restart,
            _ => return None,
        })
    }

    pub(super) fn delta(&self) -> DeltaRef<'_> {
        match self {
            Self::Text(text) => DeltaRef::Text(text),
            Self::Thought(text) => DeltaRef::Thought(text),
            Self::Call { index, tool, args } => DeltaRef::Call { index: *index, tool: tool.as_deref(), args },
            Self::Restart => DeltaRef::Restart,
        }
    }
}

/// A [`ModelError`], as written.
#[derive(Serialize, Deserialize)]
pub(super) struct RecordedError {
    kind: Cow<'static, str>,
    model: String,
    message: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    body: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    hint: Option<String>,
    /// The numbers of an error of the kind `too_long`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    tokens: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    limit: Option<u32>,
}

/// The name of the kind that has numbers.
const TOO_LONG: &str = "too_long";

const KINDS: [(ModelErrorKind, &str); 19] = [
    (ModelErrorKind::Config, "config"),
    (ModelErrorKind::Connection, "connection"),
    (ModelErrorKind::Timeout, "timeout"),
    (ModelErrorKind::Unavailable, "unavailable"),
    (ModelErrorKind::ContentFiltered, "content_filtered"),
    (ModelErrorKind::QuotaExceeded, "quota_exceeded"),
    (ModelErrorKind::Postponed, "postponed"),
    (ModelErrorKind::InvalidReply, "invalid_reply"),
    (ModelErrorKind::Script, "script"),
    (ModelErrorKind::Bug, "bug"),
    (ModelErrorKind::SealsRefused, "seals_refused"),
    (ModelErrorKind::ParameterRefused, "parameter_refused"),
    (ModelErrorKind::Unsupported(Capability::Tools), "no_tools"),
    (ModelErrorKind::Unsupported(Capability::Schema), "no_schema"),
    (ModelErrorKind::Unsupported(Capability::Json), "no_json"),
    (ModelErrorKind::Unsupported(Capability::Vision), "no_vision"),
    (ModelErrorKind::Unsupported(Capability::SystemRole), "no_system_role"),
    (ModelErrorKind::Unsupported(Capability::NullContent), "no_null_content"),
    (ModelErrorKind::Unsupported(Capability::UserAfterTool), "no_user_after_tool"),
];

impl From<&ModelError> for RecordedError {
    fn from(error: &ModelError) -> Self {
        let ModelError { kind, model, message, status, body, hint, .. } = error.clone();
        let named = KINDS.iter().find(|known| known.0 == kind).map_or("other", |known| known.1);
        let (named, tokens, limit) = match kind {
            ModelErrorKind::TooLong { tokens, limit } => (TOO_LONG, tokens, limit),
            _ => (named, None, None),
        };
        Self { kind: named.into(), model, message, status, body, hint, tokens, limit }
    }
}

impl From<&RecordedError> for ModelError {
    fn from(error: &RecordedError) -> Self {
        // A kind without a name in this format counts, like most, as the provider's fault.
        let known = KINDS.iter().find(|known| known.1 == error.kind);
        let RecordedError { kind, model, message, status, body, hint, tokens, limit } = error;
        let kind = match known {
            _ if kind == TOO_LONG => ModelErrorKind::TooLong { tokens: *tokens, limit: *limit },
            Some((kind, _)) => *kind,
            None => ModelErrorKind::Unavailable,
        };
        let (model, message) = (model.clone(), message.clone());
        Self { status: *status, body: body.clone(), hint: hint.clone(), ..Self::new(kind, model, message) }
    }
}
