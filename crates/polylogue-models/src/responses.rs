//! The Responses API of OpenAI and of Azure.

mod chunk;
mod decode;
mod item;
mod tail;

use bytes::BytesMut;
use polylogue_core::{CacheLifetime, Media};

pub(crate) use self::decode::Responses;
use crate::api::Api;
use crate::deviations::MediaForm;
use crate::wire::json;
use crate::wire::protocol::{Protocol, Style};

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

    fn begin(out: &mut BytesMut, model: &str, system: Option<&str>, style: &Style) {
        json::quoted(out, r#"{"model":"#, model, "");
        if let Some(system) = system.filter(|_| !style.marks_system) {
            json::quoted(out, r#","instructions":"#, system, "");
        }
        out.extend_from_slice(br#","input":["#);
        // Instructions have no place for a mark.
        if let Some(system) = system.filter(|_| style.marks_system) {
            item::marked_system(out, system, style.long_marks);
        }
    }

    fn takes(media: &Media, _: MediaForm) -> bool {
        item::takes(media)
    }
}
