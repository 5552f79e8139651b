//! The Responses API of OpenAI and of Azure.

mod chunk;
mod decode;
mod item;
mod tail;

use bytes::BytesMut;
use polylogue_core::{CacheLifetime, Capability, DeltaSink, Media, Params, Part, Request};
use serde_json::{Map, Value};

use crate::accepts::Accepts;
use crate::api::Api;
use crate::deviations::{Deviations, MediaForm};
use crate::openai::unenforced;
use crate::wire::asked::AskedOutput;
use crate::wire::draft::{DecodeError, Draft};
use crate::wire::json;
use crate::wire::protocol::{Own, Protocol, Style, ToolResult};

/// The Responses API. Nothing is kept on the server: every request has the whole conversation, with the encrypted
/// reasoning of earlier replies.
#[derive(Debug, Default)]
pub(crate) struct Responses(decode::Output);

impl Protocol for Responses {
    const API: Api = Api::Responses;
    const REPLY: &'static str = "a response";
    const CORE: &'static str = "output";
    const MESSAGES: &'static str = "input";
    /// <https://platform.openai.com/docs/api-reference/responses/create>
    const MAX_TEMPERATURE: Option<u32> = Some(2);
    const PICTURES_IN_RESULTS: bool = true;
    const NO_FIELD: &'static [&'static str] = &["top_k", "seed"];
    const CACHE_LIFETIMES: &'static [CacheLifetime] = &[CacheLifetime::HalfDay, CacheLifetime::Day];
    const REFUSED_BY_REASONING: &'static [&'static str] = &["temperature", "top_p"];
    const EVENTS: &'static [&'static str] = decode::EVENTS;
    type Chunk<'a> = chunk::Chunk<'a>;

    fn sealer(_: &Style) -> Option<&'static str> {
        Some("responses")
    }

    fn can_seal(params: &Params, style: &Style) -> bool {
        style.accepts.thinks != Some(false) && !tail::ends_reasoning(params, &style.accepts)
    }

    fn hides_reasoning(params: &Params, style: &Style) -> bool {
        style.accepts.thinks == Some(true) && !tail::ends_reasoning(params, &style.accepts)
    }

    /// It has no field for them.
    fn sends_stop(_: &Accepts, _: &Deviations) -> bool {
        false
    }

    fn lacks(request: &Request<'_>, _: &Style) -> Option<(Capability, String)> {
        unenforced(request.params)
    }

    fn check(extra: &Map<String, Value>) -> Result<(), &'static str> {
        tail::check(extra)
    }

    fn begin(out: &mut BytesMut, model: &str, system: Option<&str>, style: &Style) {
        out.extend_from_slice(br#"{"model":"#);
        json::string(out, model);
        if let Some(system) = system.filter(|_| !style.marks_system) {
            out.extend_from_slice(br#","instructions":"#);
            json::string(out, system);
        }
        out.extend_from_slice(br#","input":["#);
        // Instructions have no place for a mark.
        if let Some(system) = system.filter(|_| style.marks_system) {
            item::marked_system(out, system, style.long_marks);
        }
    }

    fn system(out: &mut BytesMut, text: &str, _: &Style) {
        item::system(out, text);
    }

    fn takes(media: &Media, _: MediaForm) -> bool {
        item::takes(media)
    }

    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone, _: &Style) {
        item::user(out, parts);
    }

    fn assistant(out: &mut BytesMut, message: &Own<'_>, _: &Style) {
        item::assistant(out, message);
    }

    fn results<'a>(
        out: &mut BytesMut,
        results: &[ToolResult<'_>],
        _: impl IntoIterator<Item = &'a Part> + Clone,
        style: &Style,
    ) {
        results.iter().for_each(|result| item::output(out, result, style.vision));
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
        self.0.take(chunk, raw, reply, deltas)
    }
}
