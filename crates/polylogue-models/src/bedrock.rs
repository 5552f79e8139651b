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
use polylogue_core::{CacheLifetime, Media};

pub(crate) use self::decode::Converse;
use crate::address::strict_segment;
use crate::api::Api;
use crate::deviations::MediaForm;
use crate::wire::json;
use crate::wire::marks::CacheMark;
use crate::wire::protocol::{Protocol, Style, SystemWithin};

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

    fn target(model: &str, stream: bool) -> Option<String> {
        let model = strict_segment(model);
        Some(format!("/model/{model}/{}", if stream { "converse-stream" } else { "converse" }))
    }

    fn begin(out: &mut BytesMut, _: &str, system: Option<&str>, style: &Style) {
        out.extend_from_slice(b"{");
        if let Some(text) = system {
            json::quoted(out, r#""system":[{"text":"#, text, "}");
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
}

#[cfg(test)]
#[path = "bedrock/tests.rs"]
mod tests;
