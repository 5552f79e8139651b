//! What goes over the wire, as far as all protocols have it in common; what differs between them is a [`Protocol`].

pub(crate) mod calls;
pub(crate) mod decode;
pub(crate) mod draft;
pub(crate) mod encode;
pub(crate) mod fields;
pub(crate) mod json;
pub(crate) mod lenient;
pub(crate) mod pictures;
pub(crate) mod sent;
pub(crate) mod sse;
pub(crate) mod think;
pub(crate) mod words;

use bytes::BytesMut;
use polylogue_core::{DeltaSink, Outcome, Part, Request};
use serde::Deserialize;

use crate::endpoint::Api;
use decode::DecodeError;
use draft::Draft;
use encode::Style;

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
