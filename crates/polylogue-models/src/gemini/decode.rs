//! Decodes pieces of Gemini's replies: each has new parts.

use polylogue_core::{DeltaSink, FinishReason};

use super::chunk::{Candidate, Chunk, Feedback, FunctionCall, Part};
use super::finish::{End, end};
use super::open::Open;
use crate::wire::calls::Piece;
use crate::wire::draft::{DecodeError, DecodeResult, Draft};
use crate::wire::protocol::ReadReply;
use crate::wire::think::Kind;

/// Gemini's own API.
#[derive(Debug, Default)]
pub(crate) struct Gemini {
    /// The text or thought that the next piece may continue.
    open: Option<Open>,
    /// Whether the reply has any content.
    has_content: bool,
}

impl ReadReply for Gemini {
    type Chunk<'a> = Chunk<'a>;

    fn is_error(chunk: &Chunk<'_>) -> bool {
        chunk.error.is_some()
    }

    fn take(&mut self, chunk: &Chunk<'_>, reply: &mut Draft, deltas: &mut dyn DeltaSink) -> DecodeResult {
        if let Some(tokens) = &chunk.usage_metadata.0 {
            reply.meter(tokens.usage());
        }
        if let Some(feedback) = &chunk.prompt_feedback {
            blocked(feedback, reply);
        }
        chunk.candidates.iter().flatten().try_for_each(|candidate| self.candidate(candidate, reply, deltas))
    }
}

impl Gemini {
    fn candidate(
        &mut self,
        candidate: &Candidate<'_>,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        if !reply.takes_choice(candidate.index.0) {
            return Ok(());
        }
        reply.said = true;
        for part in candidate.content.iter().filter_map(|content| content.parts.as_ref()).flatten() {
            self.part(part, reply, deltas)?;
        }
        if let Some(token) = candidate.continuation_token.get() {
            reply.continuation = Some(token.to_owned());
        }
        let Some(reason) = candidate.finish_reason.get() else { return Ok(()) };
        match end(reason, candidate.finish_message.get(), self.has_content) {
            // What has no token is not continued.
            End::With(FinishReason::Paused) if reply.continuation.is_none() => {
                reply.stop_with(FinishReason::Length)
            }
            End::With(FinishReason::Malformed) => {
                reply.unparsed = candidate.finish_message.get().map(str::to_owned);
                reply.stop_with(FinishReason::Malformed);
            }
            End::With(finish) => reply.stop_with(finish),
            End::Error(error) => return Err(DecodeError::Error(error.to_string())),
            End::Not => {}
        }
        Ok(())
    }

    fn part(&mut self, part: &Part<'_>, reply: &mut Draft, deltas: &mut dyn DeltaSink) -> DecodeResult {
        let signature = part.thought_signature.get();
        if let Some(call) = &part.function_call {
            return self.call(call, signature, reply, deltas);
        }
        let kind = if part.thought == Some(true) { Kind::Thought } else { Kind::Text };
        match &part.text.0 {
            Some(text) => self.words(kind, text, signature, reply, deltas),
            None => Ok(()),
        }
    }

    /// Calls are never split into pieces.
    fn call(
        &mut self,
        call: &FunctionCall<'_>,
        signature: Option<&str>,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        (self.open, self.has_content) = (None, true);
        let piece = Piece {
            index: None,
            id: call.id.get().unwrap_or_default(),
            tool: call.name.get().unwrap_or_default(),
            args: call.args.0.get().unwrap_or_default(),
            whole: true,
        };
        reply.call(&piece, deltas)?;
        signature.into_iter().for_each(|signature| reply.seal(signature.into()));
        Ok(())
    }

    /// Adds a piece of a text or thought. Pieces of one kind in a row are one part; which of them are signed is in its
    /// seal, because a signature is sent back on exactly its piece.
    fn words(
        &mut self,
        kind: Kind,
        text: &str,
        signature: Option<&str>,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        if text.is_empty() && signature.is_none() {
            return Ok(());
        }
        if self.open.as_ref().is_none_or(|open| !open.takes(kind)) {
            reply.open(kind);
            self.open = Some(Open::new(kind));
        }
        reply.write(text, deltas)?;
        self.has_content |= !text.is_empty();
        let signatures = self.open.as_mut().and_then(|open| open.push(text, signature));
        signatures.into_iter().for_each(|signatures| reply.seal(signatures));
        Ok(())
    }
}

/// Ends a reply that Gemini refused to begin: it has no candidates.
fn blocked(feedback: &Feedback<'_>, reply: &mut Draft) {
    let Some(reason) = feedback.block_reason.get().filter(|reason| !reason.ends_with("_UNSPECIFIED")) else {
        return;
    };
    reply.said = true;
    reply.stop_with(FinishReason::Refused {
        category: Some(reason.to_ascii_lowercase().into()),
        explanation: feedback.block_reason_message.get().map(Into::into),
    });
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
