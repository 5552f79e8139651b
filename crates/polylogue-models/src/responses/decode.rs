//! Decodes events of the Responses API, and whole responses.

use polylogue_core::{DeltaSink, FinishReason};
use serde_json::{Map, Value, json};

use super::chunk::{Chunk, Incomplete, Tokens};
use crate::wire::calls::Piece;
use crate::wire::draft::{DecodeError, DecodeResult, Draft};
use crate::wire::protocol::ReadReply;
use crate::wire::think::Kind;

/// The names of a call that stands for several calls, which models sometimes write though no such tool is declared.
const WRAPPERS: [&str; 2] = ["multi_tool_use.parallel", "parallel"];

/// The types of events that are read.
pub(super) const EVENTS: &[&str] = &[
    "error",
    "response.output_item.added",
    "response.output_item.done",
    "response.reasoning_summary_text.delta",
    "response.reasoning_text.delta",
    "response.output_text.delta",
    "response.output_text.done",
    "response.refusal.delta",
    "response.refusal.done",
    "response.function_call_arguments.delta",
    "response.function_call_arguments.done",
    "response.completed",
    "response.incomplete",
    "response.failed",
    "response.cancelled",
];

/// The Responses API. Nothing is kept on the server: every request has the whole conversation, with the encrypted
/// reasoning of earlier replies.
#[derive(Debug, Default)]
pub(crate) struct Responses {
    /// The items that were begun and are not complete: usually one, but pieces of several can alternate.
    open: Vec<Item>,
    /// How many items are complete.
    done: u64,
    /// Whether the model refused to reply.
    is_refused: bool,
    has_calls: bool,
    /// Whether there was reasoning that is sent back. The items after it are refused without their ids then.
    is_sealed: bool,
    /// Whether there was reasoning that cannot be sent back. The items after it cannot have their ids then, either.
    is_unsealed: bool,
}

/// The most items that are incomplete at a time.
const MAX_OPEN: usize = 1_024;

/// An item that is incomplete.
#[derive(Debug)]
struct Item {
    index: u64,
    of: Of,
    /// The index of its part of the reply.
    part: usize,
    /// How many bytes of its text or arguments came.
    written: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    /// Reasoning, and the summary whose pieces came last.
    Reasoning(u64),
    Message,
    Call,
    /// A call that stands for several, whose pieces are not shown.
    Wrapper,
}

/// How a response ended.
struct End<'a> {
    status: Option<&'a str>,
    output: &'a [Value],
    usage: Option<&'a Tokens>,
    incomplete: Option<&'a Incomplete>,
    error: Option<&'a Value>,
}

impl ReadReply for Responses {
    type Chunk<'a> = Chunk<'a>;

    fn is_error(chunk: &Chunk<'_>) -> bool {
        let says = chunk.error.is_some() || chunk.message.is_some() || chunk.detail.is_some();
        chunk.kind.get().map_or(is_odd(chunk) && says, |kind| kind == "error")
    }

    fn take(&mut self, chunk: &Chunk<'_>, reply: &mut Draft, deltas: &mut dyn DeltaSink) -> DecodeResult {
        reply.needs_end = true;
        let index = chunk.output_index.0.unwrap_or(self.done);
        let Some(kind) = chunk.kind.get() else { return self.whole(chunk, reply, deltas) };
        match kind {
            "response.output_item.added" => {
                chunk.item.iter().try_for_each(|item| self.begin(index, item, reply, deltas))
            }
            "response.reasoning_summary_text.delta" => {
                self.summary(index, chunk.summary_index.0.unwrap_or(0), piece(chunk), reply, deltas)
            }
            "response.reasoning_text.delta" => self.write(index, piece(chunk), reply, deltas),
            "response.output_text.delta" => self.write(index, piece(chunk), reply, deltas),
            "response.refusal.delta" => self.write(index, piece(chunk), reply, deltas),
            "response.function_call_arguments.delta" => self.arguments(index, piece(chunk), reply, deltas),
            // Some servers send texts and arguments in one piece, at their end.
            "response.output_text.done" if self.is_unwritten(index) => {
                self.write(index, chunk.text.get().unwrap_or_default(), reply, deltas)
            }
            "response.refusal.done" if self.is_unwritten(index) => {
                self.write(index, chunk.refusal.get().unwrap_or_default(), reply, deltas)
            }
            "response.function_call_arguments.done" if self.is_unwritten(index) => {
                self.arguments(index, chunk.arguments.0.get().unwrap_or_default(), reply, deltas)
            }
            "response.output_item.done" => {
                chunk.item.iter().try_for_each(|item| self.complete(index, item, reply, deltas))
            }
            "response.completed" | "response.incomplete" | "response.failed" | "response.cancelled" => {
                let response = chunk.response.as_deref();
                let end = End {
                    status: response.and_then(|response| response.status.as_deref()),
                    output: response.and_then(|response| response.output.as_deref()).unwrap_or_default(),
                    usage: response.and_then(|response| response.usage.0.as_deref()),
                    incomplete: response.and_then(|response| response.incomplete_details.as_ref()),
                    error: response.and_then(|response| response.error.as_ref()),
                };
                let status = kind.strip_prefix("response.");
                self.end(&End { status: end.status.or(status), ..end }, reply, deltas)
            }
            _ => Ok(()),
        }
    }
}

/// Whether `chunk` is neither an event nor a response.
fn is_odd(chunk: &Chunk<'_>) -> bool {
    chunk.output.is_none() && chunk.object.get() != Some("response")
}

impl Responses {
    /// Takes a response that is not streamed.
    fn whole(&mut self, chunk: &Chunk<'_>, reply: &mut Draft, deltas: &mut dyn DeltaSink) -> DecodeResult {
        if is_odd(chunk) {
            return Ok(());
        }
        let end = End {
            status: chunk.status.as_deref(),
            output: chunk.output.as_deref().unwrap_or_default(),
            usage: chunk.usage.0.as_deref(),
            incomplete: chunk.incomplete_details.as_ref(),
            error: chunk.error.as_ref(),
        };
        self.end(&end, reply, deltas)
    }

    /// Begins an item.
    fn begin(
        &mut self,
        index: u64,
        item: &Value,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        let Some(of) = kind_of(item) else { return Ok(()) };
        let part = match of {
            Of::Reasoning(_) => reply.open(Kind::Thought),
            Of::Message => reply.open(Kind::Text),
            Of::Call => reply.call_part(&call(index, item, ""), deltas)?,
            Of::Wrapper => 0,
        };
        self.open.retain(|open| open.index != index);
        if self.open.len() >= MAX_OPEN {
            return Err(DecodeError::TooLong("the reply begins too many items"));
        }
        self.open.push(Item { index, of, part, written: 0 });
        Ok(())
    }

    /// The item `index`, if it was begun and is not complete.
    fn item(&mut self, index: u64) -> Option<&mut Item> {
        self.open.iter_mut().find(|open| open.index == index)
    }

    /// Whether nothing of the item `index` came yet, which was begun.
    fn is_unwritten(&self, index: u64) -> bool {
        self.open.iter().any(|open| open.index == index && open.written == 0)
    }

    /// Writes a piece of the text of the item `index`. Pieces of an item that was not begun are not shown: they are in the whole item.
    fn write(
        &mut self,
        index: u64,
        piece: &str,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        match self.item(index) {
            Some(Item { of: Of::Reasoning(_) | Of::Message, part, written, .. }) => {
                *written += piece.len();
                reply.write_to(*part, piece, deltas)
            }
            _ => Ok(()),
        }
    }

    /// Writes a piece of the summary `nth` of reasoning.
    fn summary(
        &mut self,
        index: u64,
        nth: u64,
        piece: &str,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        if let Some(Item { of: Of::Reasoning(last), written, .. }) = self.item(index)
            && std::mem::replace(last, nth) != nth
            && *written > 0
        {
            self.write(index, BETWEEN, reply, deltas)?;
        }
        self.write(index, piece, reply, deltas)
    }

    /// Adds a piece of the arguments of the call `index`.
    fn arguments(
        &mut self,
        index: u64,
        piece: &str,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        match self.item(index) {
            Some(Item { of: Of::Call, written, .. }) => {
                *written += piece.len();
                reply.call(&Piece { index: Some(index), args: piece, ..Piece::default() }, deltas)
            }
            _ => Ok(()),
        }
    }

    /// Takes the whole item `index`: what of it did not come in pieces, and its seal.
    fn complete(
        &mut self,
        index: u64,
        item: &Value,
        reply: &mut Draft,
        deltas: &mut dyn DeltaSink,
    ) -> DecodeResult {
        reply.said = true;
        self.done = self.done.saturating_add(1);
        if self.item(index).is_none() {
            self.begin(index, item, reply, deltas)?;
        }
        let at = self.open.iter().position(|open| open.index == index);
        let Some(Item { of, part, written, .. }) = at.map(|at| self.open.remove(at)) else { return Ok(()) };
        match of {
            Of::Reasoning(_) => {
                reply.write_to(part, rest(&thought(item), written), deltas)?;
                self.seal_reasoning(item, part, reply);
            }
            Of::Message => {
                let (text, is_refusal) = words(item);
                reply.write_to(part, rest(&text, written), deltas)?;
                self.is_refused |= is_refusal;
                if !text.trim().is_empty() {
                    self.seal(item, &["id", "phase"], part, reply);
                }
            }
            Of::Call => {
                let args = arguments(item);
                reply.call(&call(index, item, rest(&args, written)), deltas)?;
                self.has_calls = true;
                self.seal(item, &["id"], part, reply);
            }
            Of::Wrapper => {
                self.has_calls = true;
                unwrap_calls(index, item, reply, deltas)?;
            }
        }
        Ok(())
    }

    fn seal_reasoning(&mut self, item: &Value, part: usize, reply: &mut Draft) {
        let is_encrypted =
            item.get("encrypted_content").and_then(Value::as_str).is_some_and(|e| !e.is_empty());
        if is_encrypted && !self.is_unsealed {
            reply.seal_part(part, pick(item, &["type", "id", "summary", "content", "encrypted_content"]));
            self.is_sealed = true;
        }
        self.is_unsealed |= !is_encrypted;
    }

    /// Seals the part of an item with those of its fields that have to come back with it: a phase always, an id only after reasoning.
    /// An id alone would cost space in the log and time in each later request, and the API does not ask for it.
    fn seal(&self, item: &Value, names: &[&str], part: usize, reply: &mut Draft) {
        let is_needed = self.is_sealed || item.get("phase").is_some_and(|phase| !phase.is_null());
        if self.is_unsealed || !is_needed {
            return;
        }
        let seal = pick(item, names);
        if seal.get("id").is_some() {
            reply.seal_part(part, seal);
        }
    }

    /// Takes the end of a response.
    fn end(&mut self, end: &End<'_>, reply: &mut Draft, deltas: &mut dyn DeltaSink) -> DecodeResult {
        if let Some(tokens) = end.usage {
            reply.meter(tokens.usage());
        }
        let status = end.status.unwrap_or("completed");
        if matches!(status, "failed" | "cancelled") {
            let unknown = json!({"message": format!("the response is {status}")});
            let error = end.error.filter(|error| !error.is_null()).unwrap_or(&unknown);
            return Err(DecodeError::Error(json!({ "error": error }).to_string()));
        }
        reply.said = true;
        // Some servers send items at the end only.
        for (index, item) in (0..).zip(end.output).skip(usize::try_from(self.done).unwrap_or(usize::MAX)) {
            self.complete(index, item, reply, deltas)?;
        }
        let is_over = matches!(status, "completed" | "incomplete");
        reply.is_unfinished = !is_over;
        if is_over {
            reply.stop_with(self.finish(status, end.incomplete));
            reply.ended = true;
        }
        Ok(())
    }

    fn finish(&self, status: &str, incomplete: Option<&Incomplete>) -> FinishReason {
        match (status, incomplete.and_then(|why| why.reason.as_deref())) {
            _ if self.is_refused && !self.has_calls => FinishReason::REFUSED,
            ("completed", _) => FinishReason::Stop,
            (_, Some("max_output_tokens")) => FinishReason::Length,
            (_, Some("content_filter")) => FinishReason::Filter,
            _ => FinishReason::Unknown,
        }
    }
}

/// Between two summaries of the same reasoning.
const BETWEEN: &str = "\n\n";

fn piece<'a>(chunk: &'a Chunk<'_>) -> &'a str {
    chunk.delta.get().unwrap_or_default()
}

fn kind_of(item: &Value) -> Option<Of> {
    Some(match item.get("type")?.as_str()? {
        "reasoning" => Of::Reasoning(0),
        "message" => Of::Message,
        "function_call" if WRAPPERS.contains(&field(item, "name")) => Of::Wrapper,
        "function_call" => Of::Call,
        _ => return None,
    })
}

fn field<'a>(item: &'a Value, name: &str) -> &'a str {
    item.get(name).and_then(Value::as_str).unwrap_or_default()
}

/// The arguments of a call: a text, or the object itself from servers that do not write it as text.
fn arguments(item: &Value) -> String {
    match item.get("arguments") {
        Some(Value::String(text)) => text.clone(),
        Some(object @ Value::Object(_)) => object.to_string(),
        _ => String::new(),
    }
}

fn call<'a>(index: u64, item: &'a Value, args: &'a str) -> Piece<'a> {
    let (id, tool) = (field(item, "call_id"), field(item, "name"));
    Piece { index: Some(index), id, tool, args, whole: false }
}

/// The calls that a call stands for; the call itself, if it is another one than it seems.
fn unwrap_calls(index: u64, item: &Value, reply: &mut Draft, deltas: &mut dyn DeltaSink) -> DecodeResult {
    let args = arguments(item);
    let inner: Option<Vec<(String, String)>> = serde_json::from_str::<Value>(&args).ok().and_then(|args| {
        let uses = args.get("tool_uses")?.as_array()?.iter();
        let inner = |each: &Value| {
            let tool = each.get("recipient_name")?.as_str()?.strip_prefix("functions.")?;
            Some((tool.to_owned(), each.get("parameters")?.to_string()))
        };
        uses.map(inner).collect()
    });
    let Some(inner) = inner.filter(|inner| !inner.is_empty()) else {
        return reply.call(&call(index, item, &args), deltas);
    };
    inner.iter().enumerate().try_for_each(|(nth, (tool, args))| {
        let id = format!("{}_{nth}", field(item, "call_id"));
        reply.call(&Piece { index: None, id: &id, tool, args, whole: true }, deltas)
    })
}

/// What of `text` did not come in pieces of `written` bytes.
fn rest(text: &str, written: usize) -> &str {
    text.get(written..).unwrap_or_default()
}

/// The text of reasoning: its summaries, or else the reasoning itself.
fn thought(item: &Value) -> String {
    let texts = |name: &str| -> Vec<&str> {
        item.get(name)
            .and_then(Value::as_array)
            .into_iter()
            .flatten()
            .map(|part| field(part, "text"))
            .collect()
    };
    match texts("summary") {
        summaries if !summaries.is_empty() => summaries.join(BETWEEN),
        _ => texts("content").concat(),
    }
}

/// The text of a message, and whether it is a refusal.
fn words(item: &Value) -> (String, bool) {
    let parts = || item.get("content").and_then(Value::as_array).into_iter().flatten();
    let text = parts().flat_map(|part| [field(part, "text"), field(part, "refusal")]).collect();
    (text, parts().any(|part| !field(part, "refusal").is_empty()))
}

/// The object of those fields of `item` that have a value.
fn pick(item: &Value, names: &[&str]) -> Value {
    let fields = names.iter().filter_map(|name| Some(((*name).to_owned(), item.get(name)?.clone())));
    Value::Object(fields.filter(|(_, value)| !value.is_null()).collect::<Map<_, _>>())
}

#[cfg(test)]
#[path = "decode_tests.rs"]
mod tests;
