//! Decodes replies and the events of their streams.

use polylogue_core::{DeltaSink, FinishReason};
use serde_json::json;

use super::chunk::{Chunk, Content, Reasoning, ToolUse};
use crate::wire::calls::Piece;
use crate::wire::draft::{DecodeResult, Draft};
use crate::wire::protocol::ReadReply;
use crate::wire::think::Kind;

/// Bedrock's Converse.
#[derive(Debug, Default)]
pub(crate) struct Converse {
    /// The block of text or reasoning that was begun last.
    block: Option<(u64, Kind)>,
    /// Its signature so far.
    signature: String,
}

impl ReadReply for Converse {
    type Chunk<'a> = Chunk<'a>;

    fn is_error(chunk: &Chunk<'_>) -> bool {
        chunk.is_error()
    }

    fn take(&mut self, chunk: &Chunk<'_>, reply: &mut Draft, deltas: &mut dyn DeltaSink) -> DecodeResult {
        reply.said |= chunk.message_start.is_some() || chunk.output.is_some();
        if let Some(start) = &chunk.content_block_start {
            self.content(start.content_block_index.0, start.start.as_ref(), reply, deltas)?;
        }
        if let Some(delta) = &chunk.content_block_delta {
            self.content(delta.content_block_index.0, delta.delta.as_ref(), reply, deltas)?;
        }
        if let Some(stop) = &chunk.message_stop {
            reply.stop_with(finish(stop.stop_reason.get()));
        }
        if let Some(metadata) = &chunk.metadata {
            reply.meter(metadata.usage.0.as_ref().map(super::chunk::Tokens::usage).unwrap_or_default());
            reply.ended = reply.is_finished();
        }
        self.whole(chunk, reply, deltas)
    }
}

impl Converse {
    fn whole(&mut self, chunk: &Chunk<'_>, reply: &mut Draft, deltas: &mut dyn DeltaSink) -> DecodeResult {
        let Some(output) = &chunk.output else { return Ok(()) };
        let content = output.message.iter().flat_map(|message| &message.content);
        for (index, content) in (0..).zip(content) {
            self.content(Some(index), Some(content), reply, deltas)?;
        }
        reply.stop_with(finish(chunk.stop_reason.get()));
        reply.ended = true;
        reply.meter(chunk.usage.0.as_ref().map(super::chunk::Tokens::usage).unwrap_or_default());
        Ok(())
    }

    /// Adds a block, or a piece of one.
    fn content(
        &mut self,
        index: Option<u64>,
        content: Option<&Content<'_>>,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        let Some(content) = content else { return Ok(()) };
        let index = index.unwrap_or_default();
        reply.said = true;
        if let Some(text) = content.text.get() {
            self.open((index, Kind::Text), reply);
            reply.write(text, deltas)?;
        }
        if let Some(call) = &content.tool_use {
            self.block = None;
            reply.call(&piece(index, call), deltas)?;
        }
        match &content.reasoning_content {
            Some(reasoning) => self.reasoning(index, reasoning, reply, deltas),
            None => Ok(()),
        }
    }

    fn reasoning(
        &mut self,
        index: u64,
        reasoning: &Reasoning<'_>,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        if let Some(data) = reasoning.redacted_content.get() {
            self.block = None;
            reply.open(Kind::Thought);
            reply.seal(json!({"redacted": data}));
        }
        let whole = reasoning.reasoning_text.as_ref();
        let texts = [reasoning.text.get(), whole.and_then(|text| text.text.get())];
        let signatures = [reasoning.signature.get(), whole.and_then(|text| text.signature.get())];
        for text in texts.into_iter().flatten() {
            self.open((index, Kind::Thought), reply);
            reply.write(text, deltas)?;
        }
        for piece in signatures.into_iter().flatten() {
            self.open((index, Kind::Thought), reply);
            self.signature.push_str(piece);
            reply.seal(json!({"signature": self.signature}));
        }
        Ok(())
    }

    /// Begins a part, unless the piece belongs to the one that was begun last.
    fn open(&mut self, block: (u64, Kind), reply: &mut Draft) {
        if self.block != Some(block) {
            self.block = Some(block);
            self.signature.clear();
            reply.open(block.1);
        }
    }
}

fn piece<'a>(index: u64, call: &'a ToolUse<'_>) -> Piece<'a> {
    Piece {
        index: Some(index),
        id: call.tool_use_id.get().unwrap_or_default(),
        tool: call.name.get().unwrap_or_default(),
        args: call.input.0.get().unwrap_or_default(),
        whole: false,
    }
}

fn finish(reason: Option<&str>) -> FinishReason {
    match reason.unwrap_or_default() {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::Calls,
        "max_tokens" => FinishReason::Length,
        "content_filtered" | "guardrail_intervened" => FinishReason::Filter,
        "refusal" => FinishReason::REFUSED,
        "model_context_window_exceeded" => FinishReason::ContextFull,
        "malformed_model_output" | "malformed_tool_use" => FinishReason::Malformed,
        _ => FinishReason::Unknown,
    }
}
