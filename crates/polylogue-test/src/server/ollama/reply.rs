//! A reply as Ollama writes it, whole or as the objects of its lines.

use serde_json::{Map, Value, json};

use super::super::answer::ScriptedCall;
use super::super::chunks::{Chunks, pieces};
use super::super::completion::{Completion, object};
use super::super::quirk::Field;
use super::super::{Answer, Quirk};

/// When every reply was made.
pub(super) const CREATED_AT: &str = "2023-11-14T22:13:20.000000Z";

/// How long everything takes, in nanoseconds.
const DURATION: u64 = 1_000_000;

/// The body of a reply that is not streamed.
pub(in super::super) fn body(completion: &Completion<'_>) -> Value {
    let calls: Vec<Value> = calls(completion).collect();
    let mut message = message(completion, &completion.text, completion.thought);
    if !calls.is_empty() {
        message.insert("tool_calls".into(), calls.into());
    }
    last(completion, message)
}

/// The objects of a streamed reply, in order.
pub(in super::super) fn chunks(completion: &Completion<'_>) -> Chunks {
    let thoughts = pieces(completion.thought, None).into_iter().map(|piece| message(completion, "", piece));
    let texts = pieces(&completion.text, completion.answer.pieces);
    let texts = texts.into_iter().map(|piece| message(completion, piece, ""));
    let calls = calls(completion).map(|call| {
        let mut message = message(completion, "", "");
        message.insert("tool_calls".into(), json!([call]));
        message
    });
    let pieces = thoughts.chain(texts).chain(calls).map(|message| piece(completion, message).to_string());
    let mut chunks: Vec<String> = pieces.collect();
    let before_finish = chunks.len();
    chunks.push(last(completion, message(completion, "", "")).to_string());
    Chunks { chunks, before_finish }
}

/// One more object with text, for streams that never end.
pub(in super::super) fn one_more(completion: &Completion<'_>, text: &str) -> String {
    piece(completion, message(completion, text, "")).to_string()
}

fn message(completion: &Completion<'_>, text: &str, thought: &str) -> Map<String, Value> {
    let mut message = Map::new();
    completion.put(&mut message, Field::Role, "role", json!("assistant"));
    message.insert("content".into(), json!(text));
    if !thought.is_empty() {
        message.insert("thinking".into(), json!(thought));
    }
    if completion.has(&Quirk::NullFields) {
        for field in ["thinking", "tool_calls", "images"] {
            message.entry(field).or_insert(Value::Null);
        }
    }
    message
}

/// All calls, each whole: Ollama never tells one in pieces.
fn calls(completion: &Completion<'_>) -> impl Iterator<Item = Value> {
    completion.answer.calls.iter().enumerate().map(|(nth, call)| self::call(completion, nth, call))
}

fn call(completion: &Completion<'_>, nth: usize, call: &ScriptedCall) -> Value {
    let mut fields = Map::new();
    if let Some(id) = completion.call_id(nth, call) {
        fields.insert("id".into(), json!(id));
    }
    let mut function =
        Map::from_iter([("name".to_owned(), json!(call.tool)), ("arguments".to_owned(), object(&call.args))]);
    if !completion.has(&Quirk::NoCallIndex) {
        function.insert("index".into(), json!(nth));
    }
    fields.insert("function".into(), function.into());
    Value::Object(fields)
}

fn piece(completion: &Completion<'_>, message: Map<String, Value>) -> Value {
    let mut chunk = Map::new();
    completion.put(&mut chunk, Field::Model, "model", json!(completion.received.model()));
    completion.put(&mut chunk, Field::Created, "created_at", json!(CREATED_AT));
    chunk.insert("message".into(), message.into());
    chunk.insert("done".into(), false.into());
    Value::Object(chunk)
}

/// The object that ends a reply, with what was counted.
fn last(completion: &Completion<'_>, message: Map<String, Value>) -> Value {
    let mut chunk = piece(completion, message);
    let Some(fields) = chunk.as_object_mut() else { return chunk };
    fields.insert("done".into(), true.into());
    completion.put(fields, Field::FinishReason, "done_reason", json!(reason(completion.answer)));
    for name in ["total_duration", "load_duration", "prompt_eval_duration", "eval_duration"] {
        fields.insert(name.into(), DURATION.into());
    }
    let usage = &completion.usage;
    let counts = [
        ("prompt_eval_count", usage.input),
        ("eval_count", usage.output),
        ("prompt_eval_cached_count", usage.cached),
    ];
    // Ollama leaves out a count of nothing.
    let known =
        counts.into_iter().filter_map(|(name, count)| Some((name, count.filter(|count| *count > 0)?)));
    for (name, count) in known.filter(|_| !completion.has(&Quirk::NoUsage)) {
        fields.insert(name.into(), count.into());
    }
    chunk
}

/// Why it ended: Ollama says `stop` of calls, too.
fn reason(answer: &Answer) -> &str {
    answer.finish.as_deref().unwrap_or("stop")
}
