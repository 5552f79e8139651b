//! The trait of protocols, and the request formats of endpoints.

use std::borrow::Cow;

use bytes::BytesMut;
use polylogue_core::{Call, DeltaSink, Outcome, Part, Request, Verbatim};
use serde::Deserialize;
use serde_json::Value;

use super::draft::{DecodeError, Draft};
use super::ids::CallIds;
use super::words;
use crate::api::Api;
use crate::config::SendReasoning;

/// The assistant message between tool results and messages of others, for providers that require one.
pub(super) const NOTED: &str = "Noted.";

/// The request format of an endpoint.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Whether consecutive entries with the same role are merged into one message.
    pub(crate) merge: bool,
    /// Whether the reply is streamed.
    pub(crate) stream: bool,
    /// Whether token usage is requested when streaming.
    pub(crate) stream_usage: bool,
    /// The name of the field that limits the reply.
    pub(crate) max_tokens: &'static str,
    /// Whether the model has vision: pictures follow the results that contain them.
    pub(crate) vision: bool,
    /// Whether the system message is part of the first user message.
    pub(crate) fold: bool,
    /// Whether a message that only calls tools has no content at all, not even `null`.
    pub(crate) omit: bool,
    /// Whether an assistant message separates the result of a tool from messages of others.
    pub(crate) bridge: bool,
    /// Which reasoning is sent back to the model that wrote it.
    pub(crate) reasoning: SendReasoning,
    /// The exact length of the ids of calls, if the API requires one.
    pub(crate) call_id_length: Option<usize>,
}

/// An assistant message to be encoded.
#[derive(Clone, Copy)]
pub(crate) struct Own<'a> {
    pub(crate) parts: &'a [Part],
    verbatim: Option<&'a Verbatim>,
    /// Whether its seals are sent.
    sealed: bool,
    ids: Option<&'a CallIds>,
}

impl<'a> Own<'a> {
    pub(crate) const fn new(
        parts: &'a [Part],
        verbatim: Option<&'a Verbatim>,
        sealed: bool,
        ids: Option<&'a CallIds>,
    ) -> Self {
        Self { parts, verbatim, sealed, ids }
    }

    /// A message that is not a reply of the model.
    pub(crate) const fn of(parts: &'a [Part]) -> Self {
        Self::new(parts, None, false, None)
    }

    /// The seal of `part` at `index`, if it is sent.
    pub(crate) fn seal(&self, index: usize, part: &Part) -> Option<&'a Value> {
        self.verbatim.filter(|_| self.sealed)?.seal(index, part)
    }

    /// The id of `call` in the form that the API accepts.
    pub(crate) fn id<'b>(&'b self, call: &'b Call) -> &'b str {
        self.ids.map_or(call.id.as_str(), |ids| ids.get(&call.id))
    }

    /// The arguments of `call` at `index` as the JSON of an object: as the model wrote them, unless they were changed.
    pub(crate) fn arguments(&self, index: usize, call: &Call) -> Cow<'a, str> {
        match self.verbatim.and_then(|verbatim| verbatim.arguments(index, call)) {
            Some(raw) => Cow::Borrowed(raw),
            None => Cow::Owned(words::arguments(call).to_string()),
        }
    }
}

/// A wire protocol: encodes requests, and decodes pieces of replies. A value decodes one reply.
pub(crate) trait Protocol: Default + Send {
    /// Its API in the settings of an endpoint.
    const API: Api;

    /// The name of its replies in errors.
    const REPLY: &'static str;

    /// The field that every reply must have.
    const CORE: &'static str;

    /// One JSON object of a reply, whole or a piece.
    type Chunk<'a>: Deserialize<'a>;

    /// The parameters that it has no field for.
    const NO_FIELD: &'static [&'static str];

    /// The name of this wire in the tags of its seals; `None` if it sends none.
    fn sealer(style: &Style) -> Option<&'static str> {
        let _ = style;
        None
    }

    /// Writes the message with the system text.
    fn system(out: &mut BytesMut, text: &str);

    /// Writes a user message.
    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone);

    /// Writes an assistant message.
    fn assistant(out: &mut BytesMut, message: &Own<'_>, style: &Style);

    /// Writes the result of the call `id` of `tool`.
    fn tool(out: &mut BytesMut, id: &str, tool: &str, outcome: &Outcome);

    /// Writes everything after the messages, the closing brace included.
    fn tail(out: &mut BytesMut, request: &Request<'_>, style: &Style);

    /// Adds a piece, whose bytes are `raw`, to the reply.
    ///
    /// # Errors
    /// When it cannot be part of a reply.
    fn take(
        &mut self,
        chunk: &Self::Chunk<'_>,
        raw: &[u8],
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> Result<(), DecodeError>;
}
