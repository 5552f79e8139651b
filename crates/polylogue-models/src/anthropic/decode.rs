//! Decodes events and whole messages of Anthropic.

use std::sync::Arc;

use polylogue_core::{DeltaSink, FinishReason};
use serde_json::{Value, json};

use super::event::{Begun, Delta, Event, Tokens};
use crate::wire::calls::Piece;
use crate::wire::draft::{DecodeResult, Draft};
use crate::wire::object::Object;
use crate::wire::protocol::ReadReply;
use crate::wire::think::Kind;

/// The fields of seals.
pub(super) const SIGNATURE: &str = "signature";
pub(super) const REDACTED: &str = "redacted";
pub(super) const CITATIONS: &str = "citations";
pub(super) const BLOCK: &str = "block";

/// The Messages API.
#[derive(Debug, Default)]
pub(crate) struct Messages {
    usage: Tokens,
    /// The block that is not complete, and its index.
    block: Block,
    index: Option<u64>,
}

/// A block of content, as far as it came.
#[derive(Debug, Default)]
enum Block {
    #[default]
    None,
    Text {
        citations: Vec<Value>,
    },
    Thought {
        signature: String,
    },
    Call {
        /// The arguments at the start of the block, which count if no others follow.
        input: Option<String>,
    },
    /// A block that goes back to the provider as it came: of a tool that the provider executes itself, or an unknown one.
    Other {
        block: Value,
        input: String,
    },
}

impl ReadReply for Messages {
    type Chunk<'a> = Event<'a>;

    fn is_error(event: &Event<'_>) -> bool {
        event.error.is_some()
    }

    fn take(&mut self, event: &Event<'_>, reply: &mut Draft, deltas: &mut dyn DeltaSink) -> DecodeResult {
        match event.kind.get() {
            Some("message_start") => {
                (reply.said, reply.needs_end) = (true, true);
                if let Some(Begun::Message { usage: Object(Some(usage)) }) = event.message.as_deref() {
                    self.meter(&usage.at_start(), reply);
                }
                Ok(())
            }
            Some("content_block_start") => match &event.content_block {
                Some(block) => self.open(event.index.0, block, reply, deltas),
                None => Ok(()),
            },
            Some("content_block_delta") => match &event.delta {
                Some(delta) => self.delta(event.index.0, delta, reply, deltas),
                None => Ok(()),
            },
            Some("content_block_stop") if self.is_open(event.index.0) => self.close(reply, deltas),
            Some("message_delta") => {
                event.usage.0.iter().for_each(|usage| self.meter(usage, reply));
                if let Some(delta) = &event.delta {
                    self.stop(delta.stop_reason.get(), delta.stop_details.as_deref(), reply, deltas);
                }
                Ok(())
            }
            Some("message_stop") => {
                reply.ended = true;
                self.close(reply, deltas)
            }
            Some("message") | None => {
                event.content.as_ref().map_or(Ok(()), |content| self.whole(event, content, reply, deltas))
            }
            _ => Ok(()),
        }
    }
}

impl Messages {
    /// A message that is not streamed.
    fn whole(
        &mut self,
        event: &Event<'_>,
        content: &[Value],
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        reply.said = true;
        event.usage.0.iter().for_each(|usage| self.meter(usage, reply));
        for (index, block) in (0..).zip(content) {
            self.open(Some(index), block, reply, deltas)?;
            self.close(reply, deltas)?;
        }
        self.stop(event.stop_reason.get(), event.stop_details.as_deref(), reply, deltas);
        reply.ended = true;
        Ok(())
    }

    fn meter(&mut self, usage: &Tokens, reply: &mut Draft) {
        self.usage = self.usage.then(usage);
        reply.meter(self.usage.usage());
    }

    /// Whether an event with this index is about the block that is not complete.
    fn is_open(&self, index: Option<u64>) -> bool {
        index.is_none_or(|index| self.index == Some(index))
    }

    fn open(
        &mut self,
        index: Option<u64>,
        block: &Value,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        self.close(reply, deltas)?;
        self.index = index;
        let text = |name: &str| block.get(name).and_then(Value::as_str).unwrap_or_default();
        self.block = match text("type") {
            "text" => {
                reply.open(Kind::Text);
                reply.write(text("text"), deltas)?;
                let citations = block.get("citations").and_then(Value::as_array);
                Block::Text { citations: citations.cloned().unwrap_or_default() }
            }
            "thinking" => {
                reply.open(Kind::Thought);
                reply.write(text("thinking"), deltas)?;
                Block::Thought { signature: text("signature").to_owned() }
            }
            "redacted_thinking" => {
                reply.open(Kind::Thought);
                reply.seal(json!({REDACTED: text("data")}));
                Block::None
            }
            "tool_use" => {
                let piece = Piece { index, id: text("id"), tool: text("name"), ..Piece::default() };
                reply.call(&piece, deltas)?;
                let input =
                    block.get("input").filter(|input| input.as_object().is_some_and(|of| !of.is_empty()));
                Block::Call { input: input.map(Value::to_string) }
            }
            _ => {
                reply.open(Kind::Text);
                Block::Other { block: block.clone(), input: String::new() }
            }
        };
        Ok(())
    }

    fn delta(
        &mut self,
        index: Option<u64>,
        delta: &Delta<'_>,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        if !self.is_open(index) {
            return self.delta_without_start(index, delta, reply, deltas);
        }
        match (&mut self.block, delta.kind.get()) {
            (Block::Text { .. }, Some("text_delta")) => reply.write(piece(&delta.text), deltas),
            (Block::Text { citations }, Some("citations_delta")) => {
                citations.extend(delta.citation.as_deref().cloned());
                Ok(())
            }
            (Block::Thought { .. }, Some("thinking_delta")) => reply.write(piece(&delta.thinking), deltas),
            (Block::Thought { signature }, Some("signature_delta")) => {
                let more = piece(&delta.signature);
                signature.push_str(more);
                reply.grow(more)
            }
            (Block::Call { input }, Some("input_json_delta")) => {
                let args = piece(&delta.partial_json);
                if !args.is_empty() {
                    *input = None;
                }
                reply.call(&Piece { index: self.index, args, ..Piece::default() }, deltas)
            }
            (Block::Other { input, .. }, Some("input_json_delta")) => {
                let more = piece(&delta.partial_json);
                input.push_str(more);
                reply.grow(more)
            }
            (Block::Other { .. }, _) => Ok(()),
            _ => self.delta_without_start(index, delta, reply, deltas),
        }
    }

    /// Takes a piece that does not belong to the block that is not complete: gateways leave out where blocks begin, or mix them. Words
    /// begin a block, and arguments belong to the call with the same index.
    fn delta_without_start(
        &mut self,
        index: Option<u64>,
        delta: &Delta<'_>,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        let block = match delta.kind.get() {
            Some("text_delta") if delta.text.get().is_some() => "text",
            Some("thinking_delta") if delta.thinking.get().is_some() => "thinking",
            Some("input_json_delta") if index.is_some() && delta.partial_json.get().is_some() => {
                let args = piece(&delta.partial_json);
                return reply.call(&Piece { index, args, ..Piece::default() }, deltas);
            }
            _ => return Ok(()),
        };
        self.open(index, &json!({"type": block}), reply, deltas)?;
        self.delta(index, delta, reply, deltas)
    }

    /// Completes the block, if there is one.
    fn close(&mut self, reply: &mut Draft, deltas: &mut dyn DeltaSink) -> DecodeResult {
        match std::mem::take(&mut self.block) {
            Block::Thought { signature } if !signature.is_empty() => {
                reply.seal(json!({SIGNATURE: signature}))
            }
            Block::Text { citations } if !citations.is_empty() => reply.seal(json!({CITATIONS: citations})),
            Block::Call { input: Some(input) } => {
                return reply.call(&Piece { index: self.index, args: &input, ..Piece::default() }, deltas);
            }
            Block::Other { mut block, input } => {
                if let (Some(fields), Ok(input)) = (block.as_object_mut(), serde_json::from_str(&input)) {
                    fields.insert("input".into(), input);
                }
                reply.seal(json!({BLOCK: block}));
            }
            _ => {}
        }
        Ok(())
    }

    /// Sets the finish reason. The text of a refusal is not a reply: it is discarded.
    fn stop(
        &mut self,
        reason: Option<&str>,
        details: Option<&Value>,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) {
        let detail = |name: &str| details?.get(name)?.as_str().map(Arc::from);
        match reason {
            Some("refusal") => {
                self.block = Block::None;
                reply.discard(deltas);
                let (category, explanation) = (detail("category"), detail("explanation"));
                reply.stop_with(FinishReason::Refused { category, explanation });
            }
            Some("pause_turn") => reply.stop_with(FinishReason::Paused),
            Some("model_context_window_exceeded") => reply.stop_with(FinishReason::ContextFull),
            Some(reason) => reply.stop(reason),
            None => {}
        }
    }
}

fn piece<'a>(text: &'a crate::wire::lenient::Text<'_>) -> &'a str {
    text.get().unwrap_or_default()
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
