//! Amazon Bedrock's Converse API.
//!
//! <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html>

mod chunk;
mod decode;
mod media;
mod message;
mod reasoning;
mod tail;

use bytes::BytesMut;
use polylogue_core::{CacheLifetime, Capability, DeltaSink, Media, Params, Part, Request};
use serde_json::{Map, Value};

use crate::accepts::Accepts;
use crate::address::strict_segment;
use crate::api::Api;
use crate::deviations::MediaForm;
use crate::wire::asked::AskedOutput;
use crate::wire::draft::{DecodeError, Draft};
use crate::wire::json;
use crate::wire::marks::CacheMark;
use crate::wire::protocol::{Own, Protocol, Style, SystemWithin, ToolResult};
use crate::wire::think::Kind;

/// Bedrock's Converse.
#[derive(Debug, Default)]
pub(crate) struct Converse {
    /// The block of text or reasoning that was begun last.
    block: Option<(u64, Kind)>,
    /// Its signature so far.
    signature: String,
}

/// The mark at the end of a list up to which the provider caches the prompt.
const MARK: &[u8] = br#",{"cachePoint":{"type":"default"}}"#;

/// The mark after what is the same in every request, if the prompt is cached for an hour.
const LONG_MARK: &[u8] = br#",{"cachePoint":{"type":"default","ttl":"1h"}}"#;

impl Protocol for Converse {
    const API: Api = Api::Converse;
    const REPLY: &'static str = "a reply of Amazon Bedrock";
    const CORE: &'static str = "output";
    /// <https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_InferenceConfiguration.html>
    const MAX_TEMPERATURE: Option<u32> = Some(1);
    const GROUPS_RESULTS: bool = true;
    const SYSTEM_WITHIN: SystemWithin = SystemWithin::Never;
    const FRAMES: bool = true;
    const CACHE_MARK: Option<CacheMark> =
        Some(CacheMark { bytes: MARK, long: LONG_MARK, back: "]}".len(), only_known: true });
    const NO_FIELD: &'static [&'static str] = &["top_k", "seed", "parallel_tool_calls"];
    const CACHE_LIFETIMES: &'static [CacheLifetime] = &[CacheLifetime::FiveMinutes, CacheLifetime::Hour];
    type Chunk<'a> = chunk::Chunk<'a>;

    fn sealer(_: &Style) -> Option<&'static str> {
        Some("bedrock")
    }

    fn can_seal(params: &Params, style: &Style) -> bool {
        tail::can_seal(params, &style.accepts)
    }

    fn hides_reasoning(params: &Params, style: &Style) -> bool {
        reasoning::is_hidden(params, &style.accepts)
    }

    fn ignored(params: &Params, accepts: &Accepts) -> Vec<&'static str> {
        tail::ignored(params, accepts)
    }

    fn least_to_reason(params: &Params, accepts: &Accepts) -> Option<u64> {
        reasoning::least_to_reason(params, accepts)
    }

    fn lacks(request: &Request<'_>, style: &Style) -> Option<(Capability, String)> {
        style.accepts.unenforced(request.params)
    }

    fn target(model: &str, stream: bool) -> Option<String> {
        let model = strict_segment(model);
        Some(format!("/model/{model}/{}", if stream { "converse-stream" } else { "converse" }))
    }

    fn check(extra: &Map<String, Value>) -> Result<(), &'static str> {
        tail::check(extra)
    }

    fn begin(out: &mut BytesMut, _: &str, system: Option<&str>, style: &Style) {
        out.extend_from_slice(b"{");
        if let Some(text) = system {
            out.extend_from_slice(br#""system":[{"text":"#);
            json::string(out, text);
            out.extend_from_slice(b"}");
            if style.marks {
                out.extend_from_slice(if style.long_marks { LONG_MARK } else { MARK });
            }
            out.extend_from_slice(b"],");
        }
        out.extend_from_slice(br#""messages":["#);
    }

    fn takes(media: &Media, _: MediaForm) -> bool {
        media::takes(media)
    }

    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone, style: &Style) {
        message::user(out, parts, style.media);
    }

    fn assistant(out: &mut BytesMut, message: &Own<'_>, _: &Style) {
        message::assistant(out, message);
    }

    fn results<'a>(
        out: &mut BytesMut,
        results: &[ToolResult<'_>],
        words: impl IntoIterator<Item = &'a Part> + Clone,
        style: &Style,
    ) {
        message::results(out, results, words, style.media);
    }

    fn asked_output(params: &Params, style: &Style) -> AskedOutput {
        tail::asked_output(params, &style.accepts)
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
#[path = "bedrock/tests.rs"]
mod tests;
