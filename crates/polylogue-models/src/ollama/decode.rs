//! Decodes lines of Ollama's replies, and whole replies.

use polylogue_core::DeltaSink;

use super::chunk::{Chunk, ToolCall};
use crate::wire::calls::Piece;
use crate::wire::draft::{DecodeResult, Draft};
use crate::wire::protocol::ReadReply;

/// Ollama's own API.
#[derive(Debug, Default)]
pub(crate) struct Ollama;

impl ReadReply for Ollama {
    type Chunk<'a> = Chunk<'a>;

    fn is_error(chunk: &Chunk<'_>) -> bool {
        chunk.error.is_some()
    }

    fn take(&mut self, chunk: &Chunk<'_>, reply: &mut Draft, deltas: &mut dyn DeltaSink) -> DecodeResult {
        if let Some(message) = &chunk.message {
            reply.said = true;
            if let Some(piece) = message.thinking.get() {
                reply.think(piece, deltas)?;
                reply.seal_thought("thinking".into());
            }
            if let Some(piece) = message.content.get() {
                reply.speak(piece, deltas)?;
            }
            // Calls are never split into pieces.
            message.tool_calls.iter().flatten().try_for_each(|call| reply.call(&whole(call), deltas))?;
        }
        reply.meter(chunk.usage());
        reply.is_unfinished = chunk.done == Some(false);
        if chunk.done == Some(true) {
            reply.stop(chunk.done_reason.get().unwrap_or_default());
            reply.ended = true;
        }
        Ok(())
    }
}

fn whole<'a>(call: &'a ToolCall<'_>) -> Piece<'a> {
    let (tool, args) = match &call.function {
        Some(function) => (function.name.get(), function.arguments.0.get()),
        None => (None, None),
    };
    Piece {
        index: None,
        id: call.id.get().unwrap_or_default(),
        tool: tool.unwrap_or_default(),
        args: args.unwrap_or_default(),
        whole: true,
    }
}
