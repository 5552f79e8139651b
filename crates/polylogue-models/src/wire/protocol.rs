//! What differs between protocols, and the styles in which endpoints want their requests.

use bytes::BytesMut;
use polylogue_core::{DeltaSink, Outcome, Part, Request};
use serde::Deserialize;

use super::draft::{DecodeError, Draft};
use crate::api::Api;

/// What the agent says, where a provider needs it, between the results of tools and the words of others.
pub(super) const NOTED: &str = "Noted.";

/// In what way an endpoint wants its requests.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Style {
    /// Whether consecutive entries of one side become one message.
    pub(crate) merge: bool,
    /// Whether the reply is to be streamed.
    pub(crate) stream: bool,
    /// Whether token usage is asked for when streaming.
    pub(crate) stream_usage: bool,
    /// What the field is called that limits the reply.
    pub(crate) max_tokens: &'static str,
    /// Whether models see what tools return: pictures follow the results they are in.
    pub(crate) vision: bool,
    /// Whether the system text is part of the first message of the user.
    pub(crate) fold: bool,
    /// Whether a message that only calls tools has no content at all, not even `null`.
    pub(crate) omit: bool,
    /// Whether an assistant message stands between the result of a tool and the words of others.
    pub(crate) bridge: bool,
}

/// How models are asked: how a request is written, and what the pieces of a reply say. A value of it reads one reply.
pub(crate) trait Protocol: Default + Send {
    /// Its name in the settings of an endpoint.
    const API: Api;

    /// What its replies are called in errors.
    const REPLY: &'static str;

    /// The field without which an object is no reply.
    const CORE: &'static str;

    /// One JSON object of a reply, whole or a piece.
    type Chunk<'a>: Deserialize<'a>;

    /// Writes the message with the system text.
    fn system(out: &mut BytesMut, text: &str);

    /// Writes what others said as one message.
    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone);

    /// Writes what the agent said itself.
    fn assistant(out: &mut BytesMut, parts: &[Part], style: &Style);

    /// Writes the result of the call `id` of `tool`.
    fn tool(out: &mut BytesMut, id: &str, tool: &str, outcome: &Outcome);

    /// Writes everything after the messages, the closing brace included.
    fn tail(out: &mut BytesMut, request: &Request<'_>, style: &Style);

    /// Takes a piece, whose bytes are `raw`, into the reply.
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
