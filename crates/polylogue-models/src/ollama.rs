//! Ollama's own API: `/api/chat`, a whole reply or one JSON object per line.

mod advice;
mod chunk;
mod message;
mod tail;

use bytes::BytesMut;
use polylogue_core::{DeltaSink, Media, Params, Part, Request};
use serde_json::{Map, Value};

use crate::api::Api;
use crate::deviations::MediaForm;
use crate::wire::asked::AskedOutput;
use crate::wire::calls::Piece;
use crate::wire::draft::{DecodeError, Draft};
use crate::wire::protocol::{Own, Protocol, Style, ToolResult};

pub(crate) use advice::{Advice, NOT_RUNNING, advice};

/// Ollama's own API.
#[derive(Debug, Default)]
pub(crate) struct Ollama;

impl Protocol for Ollama {
    const API: Api = Api::Ollama;
    const REPLY: &'static str = "a reply of Ollama";
    const CORE: &'static str = "message";
    const NO_FIELD: &'static [&'static str] = &["thinking", "tool_choice", "parallel_tool_calls"];
    type Chunk<'a> = chunk::Chunk<'a>;

    fn system(out: &mut BytesMut, text: &str, _: &Style) {
        message::system(out, text);
    }

    fn takes(media: &Media, _: MediaForm) -> bool {
        message::takes(media)
    }

    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone, _: &Style) {
        message::user(out, parts);
    }

    /// Templates of models that think expect their thoughts back with the results of tools, and others ignore them.
    fn sealer(_: &Style) -> Option<&'static str> {
        Some("ollama")
    }

    fn assistant(out: &mut BytesMut, message: &Own<'_>, _: &Style) {
        message::assistant(out, message);
    }

    fn results<'a>(
        out: &mut BytesMut,
        results: &[ToolResult<'_>],
        _: impl IntoIterator<Item = &'a Part> + Clone,
        _: &Style,
    ) {
        results.iter().for_each(|result| message::tool(out, result));
    }

    fn check(extra: &Map<String, Value>) -> Result<(), &'static str> {
        tail::check(extra)
    }

    fn asked_output(params: &Params, _: &Style) -> AskedOutput {
        tail::asked_output(params)
    }

    fn tail(out: &mut BytesMut, request: &Request<'_>, style: &Style) {
        tail::write_tail(out, request, style);
    }

    fn take(
        &mut self,
        chunk: &Self::Chunk<'_>,
        raw: &[u8],
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> Result<(), DecodeError> {
        if chunk.error.is_some() {
            return Err(DecodeError::Error(String::from_utf8_lossy(raw).into_owned()));
        }
        if let Some(message) = &chunk.message {
            reply.said = true;
            if let Some(piece) = message.thinking.get() {
                reply.think(piece, deltas)?;
                reply.seal_thought("thinking".into());
            }
            if let Some(piece) = message.content.get() {
                reply.speak(piece, deltas)?;
            }
            // Calls are never split into pieces.
            message.tool_calls.iter().flatten().try_for_each(|call| reply.call(&whole(call), deltas))?;
        }
        reply.meter(chunk.usage());
        reply.is_unfinished = chunk.done == Some(false);
        if chunk.done == Some(true) {
            reply.stop(chunk.done_reason.get().unwrap_or_default());
            reply.ended = true;
        }
        Ok(())
    }
}

fn whole<'a>(call: &'a chunk::ToolCall<'_>) -> Piece<'a> {
    let (tool, args) = match &call.function {
        Some(function) => (function.name.get(), function.arguments.0.get()),
        None => (None, None),
    };
    Piece {
        index: None,
        id: call.id.get().unwrap_or_default(),
        tool: tool.unwrap_or_default(),
        args: args.unwrap_or_default(),
        whole: true,
    }
}

#[cfg(test)]
#[path = "ollama/tests.rs"]
mod tests;
