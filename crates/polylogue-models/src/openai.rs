//! The chat completions API of OpenAI and of compatible servers.

mod chunk;
mod decode;
mod message;
mod tail;

use bytes::BytesMut;
use polylogue_core::{DeltaSink, Outcome, Part, Request};

use crate::api::Api;
use crate::config::SendReasoning;
use crate::wire::draft::{DecodeError, Draft};
use crate::wire::protocol::{Own, Protocol, Style};

/// Chat completions.
#[derive(Debug, Default)]
pub(crate) struct ChatCompletions {
    /// The choice that is decoded: the first one received.
    choice: Option<u64>,
}

impl Protocol for ChatCompletions {
    const API: Api = Api::ChatCompletions;
    const REPLY: &'static str = "a chat completion";
    const CORE: &'static str = "choices";
    const NO_FIELD: &'static [&'static str] = &["thinking"];
    type Chunk<'a> = chunk::Chunk<'a>;

    fn system(out: &mut BytesMut, text: &str) {
        message::system(out, text);
    }

    fn user<'a>(out: &mut BytesMut, parts: impl IntoIterator<Item = &'a Part> + Clone) {
        message::user(out, parts);
    }

    fn sealer(style: &Style) -> Option<&'static str> {
        (style.reasoning != SendReasoning::Never).then_some("chat")
    }

    fn assistant(out: &mut BytesMut, message: &Own<'_>, style: &Style) {
        message::assistant(out, message, style);
    }

    fn tool(out: &mut BytesMut, id: &str, _: &str, outcome: &Outcome) {
        message::tool(out, id, outcome);
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
