//! Gemini's own API, of Google's Gemini API and of Vertex AI: `generateContent`, and `streamGenerateContent` with events.
//!
//! <https://ai.google.dev/api/generate-content>

mod chunk;
mod decode;
mod finish;
mod message;
mod open;
mod tail;

use bytes::BytesMut;
use polylogue_core::{Capability, DeltaSink, Media, Params, Part, Request};
use serde_json::{Map, Value};

use crate::api::Api;
use crate::deviations::MediaForm;
use crate::wire::asked::AskedOutput;
use crate::wire::draft::{DecodeError, Draft};
use crate::wire::protocol::{Own, Protocol, Style, SystemWithin, ToolResult};

/// Gemini's own API.
#[derive(Debug, Default)]
pub(crate) struct Gemini {
    /// The candidate that is decoded: the first one received.
    candidate: Option<u64>,
    /// The text or thought that the next piece may continue.
    open: Option<open::Open>,
    /// Whether the reply has any content.
    has_content: bool,
}

impl Protocol for Gemini {
    const API: Api = Api::Gemini;
    const REPLY: &'static str = "a reply of Gemini";
    const CORE: &'static str = "candidates";
    const MESSAGES: &'static str = "contents";
    /// By refusals of the Gemini API, such as <https://github.com/google-gemini/gemini-cli/issues/19083>. Vertex AI documents less.
    const MAX_TOOLS: Option<usize> = Some(512);
    /// <https://ai.google.dev/api/generate-content>
    const MAX_TEMPERATURE: Option<u32> = Some(2);
    const GROUPS_RESULTS: bool = true;
    const SYSTEM_WITHIN: SystemWithin = SystemWithin::Never;
    const NO_FIELD: &'static [&'static str] = &["parallel_tool_calls"];
    type Chunk<'a> = chunk::Chunk<'a>;

    const CONTINUATION: Option<&'static str> = Some("continuationToken");

    fn joint_seal(first: Option<&Value>, length: usize, second: Option<&Value>) -> Option<Value> {
        open::joint(first, length, second)
    }

    /// Signatures of one service are not those of the other.
    fn sealer(style: &Style) -> Option<&'static str> {
        Some(if style.vertex { "vertex" } else { "gemini" })
    }

    fn can_seal(params: &Params, style: &Style) -> bool {
        tail::can_seal(params, style)
    }

    fn hides_reasoning(params: &Params, style: &Style) -> bool {
        tail::hides_reasoning(params, style)
    }

    fn target(model: &str, stream: bool) -> Option<String> {
        let model = crate::address::segment(model.strip_prefix("models/").unwrap_or(model));
        let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        Some(format!("/models/{model}:{method}"))
    }

    fn lacks(request: &Request<'_>, style: &Style) -> Option<(Capability, String)> {
        tail::lacks(request, &style.accepts)
    }

    fn check(extra: &Map<String, Value>) -> Result<(), &'static str> {
        tail::check(extra)
    }

    fn begin(out: &mut BytesMut, _: &str, system: Option<&str>, _: &Style) {
        message::begin(out, system);
    }

    fn takes(media: &Media, _: MediaForm) -> bool {
        message::takes(media)
    }

    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone, _: &Style) {
        message::user(out, parts);
    }

    fn assistant(out: &mut BytesMut, message: &Own<'_>, style: &Style) {
        message::assistant(out, message, style);
    }

    fn results<'a>(
        out: &mut BytesMut,
        results: &[ToolResult<'_>],
        words: impl IntoIterator<Item = &'a Part> + Clone,
        style: &Style,
    ) {
        message::results(out, results, words, style);
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
        self.chunk(chunk, raw, reply, deltas)
    }
}
