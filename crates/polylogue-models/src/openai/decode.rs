//! Decodes pieces of chat completions.

use polylogue_core::DeltaSink;
use serde_json::{Value, json};

use super::chunk::{Choice, Chunk, Content, Fragment, Function, REASONING};
use super::details::Details;
use super::said::{SaidPart, chunk};
use crate::wire::calls::Piece;
use crate::wire::draft::{DecodeError, DecodeResult, Draft};
use crate::wire::protocol::ReadReply;
use crate::wire::think::Kind;

/// Chat completions.
#[derive(Debug, Default)]
pub(crate) struct ChatCompletions {
    /// The parts of reasoning so far that go back unchanged.
    details: Details,
    /// Whether the last part of reasoning in a content is signed, so that no other belongs to it.
    is_signed: bool,
}

impl ReadReply for ChatCompletions {
    type Chunk<'a> = Chunk<'a>;

    fn is_error(chunk: &Chunk<'_>) -> bool {
        let odd = chunk.choices.is_none() && chunk.usage.0.is_none();
        let says = chunk.message.is_some() || chunk.detail.is_some() || chunk.object.get() == Some("error");
        chunk.error.is_some() || (odd && says)
    }

    fn take(&mut self, chunk: &Chunk<'_>, reply: &mut Draft, deltas: &mut dyn DeltaSink) -> DecodeResult {
        let groq = chunk.x_groq.0.as_ref().and_then(|groq| groq.usage.0.as_ref());
        if let Some(tokens) = chunk.usage.0.as_ref().or(groq) {
            reply.metered |= reply.began && chunk.choices.as_ref().is_none_or(Vec::is_empty);
            reply.meter(tokens.usage());
        }
        if reply.model.is_none() {
            reply.model = chunk.model.get().map(Into::into);
        }
        chunk.choices.iter().flatten().try_for_each(|choice| self.choice(choice, reply, deltas))
    }
}

impl ChatCompletions {
    fn choice(&mut self, choice: &Choice<'_>, reply: &mut Draft, deltas: &mut dyn DeltaSink) -> DecodeResult {
        if !reply.takes_choice(choice.index.0) {
            return Ok(());
        }
        let reason = choice.finish_reason.get();
        if let Some(why) = broken(choice.error.as_ref(), reason) {
            return Err(DecodeError::Error(why.to_string()));
        }
        reply.said = true;
        let whole = choice.message.is_some();
        if let Some(said) = choice.delta.as_ref().or(choice.message.as_deref()) {
            said.reasoning_details.iter().flatten().for_each(|detail| self.details.add(detail));
            self.content(said, whole, reply, deltas)?;
        }
        if whole || reason.is_some() {
            self.details.take().into_iter().for_each(|details| reply.seal_all_thoughts(details));
        }
        if let Some(reason) = reason {
            reply.stop(reason);
        }
        reply.ended |= whole;
        Ok(())
    }

    fn content(
        &mut self,
        content: &Content<'_>,
        whole: bool,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        for (name, field) in [(REASONING, &content.reasoning_content), ("reasoning", &content.reasoning)] {
            if let Some(piece) = field.get() {
                reply.think(piece, deltas)?;
                reply.seal_thought(name.into());
                break;
            }
        }
        content.content.parts.iter().try_for_each(|part| self.part(part, reply, deltas))?;
        if let Some(piece) = content.content.text.get() {
            reply.speak(piece, deltas)?;
        }
        if let Some(piece) = content.refusal.get() {
            reply.refuse(piece, deltas)?;
        }
        for fragment in content.tool_calls.iter().flatten() {
            reply.call(&of_fragment(fragment, whole), deltas)?;
        }
        // The older format of a single call.
        let only =
            content.function_call.as_ref().map(|function| Piece { index: Some(0), ..of_function(function) });
        only.map_or(Ok(()), |piece| reply.call(&piece, deltas))
    }

    /// Adds a part of a content. Reasoning continues what was reasoned before it, up to its signature.
    fn part(&mut self, part: &SaidPart, reply: &mut Draft, deltas: &mut dyn DeltaSink) -> DecodeResult {
        let (text, signature) = match part {
            SaidPart::Text(text) => return reply.speak(text, deltas),
            SaidPart::Thought { text, signature } => (text, signature.as_ref()),
        };
        if self.is_signed || !reply.ends_with(Kind::Thought) {
            reply.open(Kind::Thought);
        }
        reply.write(text, deltas)?;
        reply.seal(chunk(signature));
        self.is_signed = signature.is_some();
        Ok(())
    }
}

/// The error that ended a choice, if one did.
fn broken(error: Option<&Value>, reason: Option<&str>) -> Option<Value> {
    let code = reason.filter(|reason| matches!(*reason, "error" | "insufficient_system_resource"));
    match (error.filter(|error| !error.is_null()), code) {
        (Some(error), _) => Some(json!({ "error": error })),
        (None, Some(code)) => {
            Some(json!({"error": {"code": code, "message": format!("the reply ended with `{code}`")}}))
        }
        (None, None) => None,
    }
}

fn of_fragment<'a>(fragment: &'a Fragment<'_>, whole: bool) -> Piece<'a> {
    let piece = fragment.function.as_ref().map(of_function).unwrap_or_default();
    Piece { index: fragment.index.0, id: fragment.id.get().unwrap_or_default(), whole, ..piece }
}

fn of_function<'a>(function: &'a Function<'_>) -> Piece<'a> {
    let tool = function.name.get().unwrap_or_default();
    let args = function.arguments.0.get().unwrap_or_default();
    Piece { tool, args, ..Piece::default() }
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
