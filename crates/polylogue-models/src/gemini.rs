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
use polylogue_core::Media;
use serde_json::Value;

pub(crate) use self::decode::Gemini;
use crate::api::Api;
use crate::deviations::MediaForm;
use crate::wire::protocol::{Protocol, Style, SystemWithin};

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

    const CONTINUATION: Option<&'static str> = Some("continuationToken");

    fn joint_seal(first: Option<&Value>, length: usize, second: Option<&Value>) -> Option<Value> {
        open::joint(first, length, second)
    }

    fn target(model: &str, stream: bool) -> Option<String> {
        let model = crate::address::segment(model.strip_prefix("models/").unwrap_or(model));
        let method = if stream { "streamGenerateContent?alt=sse" } else { "generateContent" };
        Some(format!("/models/{model}:{method}"))
    }

    fn begin(out: &mut BytesMut, _: &str, system: Option<&str>, _: &Style) {
        message::begin(out, system);
    }

    fn takes(media: &Media, _: MediaForm) -> bool {
        message::takes(media)
    }
}
