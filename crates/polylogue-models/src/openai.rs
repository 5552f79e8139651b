//! The chat completions API of OpenAI and of compatible servers.

mod chunk;
mod decode;
mod details;
mod message;
mod said;
mod strict;
mod tail;

use bytes::BytesMut;
use polylogue_core::{CacheLifetime, Capability, DeltaSink, Media, Params, Part, Request};

use crate::accepts::Accepts;
use crate::api::Api;
use crate::deviations::{Deviations, MediaForm, SendReasoning};
use crate::wire::asked::AskedOutput;
use crate::wire::draft::{DecodeError, Draft};
use crate::wire::json;
use crate::wire::protocol::{Own, Protocol, Style, ToolResult};

pub(crate) use message::CACHE_MARK;
pub(crate) use strict::{is_strict, unenforced};
pub(crate) use tail::prefix_name;

/// Chat completions.
#[derive(Debug, Default)]
pub(crate) struct ChatCompletions {
    /// The choice that is decoded: the first one received.
    choice: Option<u64>,
    /// The parts of reasoning so far that go back unchanged.
    details: details::Details,
    /// Whether the last part of reasoning in a content is signed, so that no other belongs to it.
    is_signed: bool,
}

impl Protocol for ChatCompletions {
    const API: Api = Api::ChatCompletions;
    const REPLY: &'static str = "a chat completion";
    const CORE: &'static str = "choices";
    const NO_FIELD: &'static [&'static str] = &["thinking"];
    const CACHE_LIFETIMES: &'static [CacheLifetime] = &[CacheLifetime::Day];
    type Chunk<'a> = chunk::Chunk<'a>;

    fn begin(out: &mut BytesMut, model: &str, system: Option<&str>, style: &Style) {
        out.extend_from_slice(br#"{"model":"#);
        json::string(out, model);
        out.extend_from_slice(br#","messages":["#);
        match system {
            Some(text) if style.marks_system => message::marked_system(out, text),
            Some(text) => message::system(out, text),
            None => {}
        }
    }

    fn system(out: &mut BytesMut, text: &str, _: &Style) {
        message::system(out, text);
    }

    fn takes(media: &Media, form: MediaForm) -> bool {
        message::takes(media, form)
    }

    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone, style: &Style) {
        message::user(out, parts, style.deviations.media);
    }

    fn sealer(style: &Style) -> Option<&'static str> {
        (style.reasoning != SendReasoning::Never).then_some("chat")
    }

    fn sends_stop(accepts: &Accepts, deviations: &Deviations) -> bool {
        tail::sends_stop(accepts, deviations)
    }

    fn lacks(request: &Request<'_>, style: &Style) -> Option<(Capability, String)> {
        unenforced(request.params).filter(|_| style.deviations.schemas_of_objects)
    }

    /// An extra field can ask for reasoning that the effort ends.
    fn can_seal(params: &Params, style: &Style) -> bool {
        let is_asked = ["reasoning", "reasoning_effort"].iter().any(|name| params.extra.contains_key(*name));
        Self::sealer(style).is_some() && (is_asked || style.accepts.can_reason(params))
    }

    fn assistant(out: &mut BytesMut, message: &Own<'_>, style: &Style) {
        message::assistant(out, message, style);
    }

    fn results<'a>(
        out: &mut BytesMut,
        results: &[ToolResult<'_>],
        _: impl IntoIterator<Item = &'a Part> + Clone,
        _: &Style,
    ) {
        results.iter().for_each(|result| message::tool(out, result));
    }

    fn asked_output(params: &Params, style: &Style) -> AskedOutput {
        tail::asked_output(params, style)
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
        self.chunk(chunk, raw, reply, deltas)
    }
}

#[cfg(test)]
#[path = "openai/round_trip_tests.rs"]
mod tests;
