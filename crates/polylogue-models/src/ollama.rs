//! Ollama's own API: `/api/chat`, a whole reply or one JSON object per line.

mod advice;
mod chunk;
mod decode;
mod message;
mod tail;

use polylogue_core::Media;

use crate::api::Api;
use crate::deviations::MediaForm;
use crate::wire::protocol::Protocol;

pub(crate) use advice::{Advice, NOT_RUNNING, advice};
pub(crate) use decode::Ollama;

impl Protocol for Ollama {
    const API: Api = Api::Ollama;
    const REPLY: &'static str = "a reply of Ollama";
    const CORE: &'static str = "message";
    const NO_FIELD: &'static [&'static str] = &["thinking", "tool_choice", "parallel_tool_calls"];

    fn takes(media: &Media, _: MediaForm) -> bool {
        message::takes(media)
    }
}

#[cfg(test)]
#[path = "ollama/tests.rs"]
mod tests;
