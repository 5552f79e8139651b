//! The chat completions API of OpenAI and of compatible servers.

mod chunk;
mod decode;
mod details;
mod message;
mod said;
mod strict;
mod tail;

use bytes::BytesMut;
use polylogue_core::{CacheLifetime, Media};

use crate::api::Api;
use crate::deviations::MediaForm;
use crate::wire::json;
use crate::wire::protocol::{Protocol, Style};

pub(crate) use decode::ChatCompletions;
pub(crate) use message::CACHE_MARK;
pub(crate) use strict::{is_strict, unenforced};
pub(crate) use tail::prefix_name;

impl Protocol for ChatCompletions {
    const API: Api = Api::ChatCompletions;
    const REPLY: &'static str = "a chat completion";
    const CORE: &'static str = "choices";
    const NO_FIELD: &'static [&'static str] = &["thinking"];
    const CACHE_LIFETIMES: &'static [CacheLifetime] = &[CacheLifetime::Day];

    fn begin(out: &mut BytesMut, model: &str, system: Option<&str>, style: &Style) {
        json::quoted(out, r#"{"model":"#, model, r#","messages":["#);
        match system {
            Some(text) if style.marks_system => message::marked_system(out, text),
            Some(text) => message::system(out, text),
            None => {}
        }
    }

    fn takes(media: &Media, form: MediaForm) -> bool {
        message::takes(media, form)
    }
}

#[cfg(test)]
#[path = "openai/round_trip_tests.rs"]
mod tests;
