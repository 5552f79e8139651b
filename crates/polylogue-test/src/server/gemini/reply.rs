//! A reply as Google writes it, whole or as the objects of its events.

use polylogue_core::Usage;
use serde_json::{Map, Value, json};

use super::super::Quirk;
use super::super::chunks::{Chunks, pieces};
use super::super::completion::Completion;
use super::super::seal::{seal, token};

/// The body of a reply that is not streamed.
pub(in super::super) fn body(completion: &Completion<'_>) -> Value {
    let thought = (!completion.thought.is_empty()).then(|| thought(completion.thought));
    let text = (!completion.text.is_empty()).then(|| json!({"text": completion.text}));
    let parts = thought.into_iter().chain(text).chain(calls(completion)).chain(last(completion));
    object(completion, parts.collect(), Some(reason(completion)))
}

/// The objects of a streamed reply, in order: each has new parts.
pub(in super::super) fn chunks(completion: &Completion<'_>) -> Chunks {
    let thoughts = pieces(completion.thought, None).into_iter().map(thought);
    let texts =
        pieces(&completion.text, completion.answer.pieces).into_iter().map(|text| json!({"text": text}));
    let parts = thoughts.chain(texts).chain(calls(completion));
    let mut chunks: Vec<String> =
        parts.map(|part| object(completion, vec![part], None).to_string()).collect();
    let before_finish = chunks.len();
    chunks.push(object(completion, last(completion).collect(), Some(reason(completion))).to_string());
    Chunks { chunks, before_finish }
}

/// One more object with text, for streams that never end.
pub(in super::super) fn one_more(completion: &Completion<'_>, text: &str) -> String {
    object(completion, vec![json!({"text": text})], None).to_string()
}

fn thought(text: &str) -> Value {
    json!({"text": text, "thought": true})
}

/// The calls, each whole; the first of them is signed. There are none if the model wrote one that cannot be read.
fn calls(completion: &Completion<'_>) -> impl Iterator<Item = Value> {
    let calls = if is_malformed(completion) { &[][..] } else { &completion.answer.calls };
    calls.iter().enumerate().map(|(nth, call)| {
        let args: Value = serde_json::from_str(&call.args).unwrap_or_default();
        let mut function = Map::new();
        if let Some(id) = completion.call_id(nth, call).filter(|id| !id.is_empty()) {
            function.insert("id".into(), id.into());
        }
        function.insert("name".into(), json!(call.tool));
        function.insert("args".into(), args.clone());
        let mut part = json!({"functionCall": function});
        if let (0, Some(part)) = (nth, part.as_object_mut()) {
            part.insert("thoughtSignature".into(), seal("gemini", &format!("{}{args}", call.tool)).into());
        }
        part
    })
}

/// The part at the end of a reply that was thought about and calls nothing: nothing but a signature.
fn last(completion: &Completion<'_>) -> impl Iterator<Item = Value> {
    let is_signed = !completion.thought.is_empty() && completion.answer.calls.is_empty();
    is_signed.then(|| json!({"text": "", "thoughtSignature": seal("gemini", "")})).into_iter()
}

fn is_malformed(completion: &Completion<'_>) -> bool {
    let is_object = |args: &str| matches!(serde_json::from_str(args), Ok(Value::Object(_)));
    completion.answer.calls.iter().any(|call| !is_object(&call.args))
}

/// Why it ended: Google says `STOP` of calls, too.
fn reason<'a>(completion: &'a Completion<'_>) -> &'a str {
    match completion.answer.finish.as_deref() {
        None if is_malformed(completion) => "MALFORMED_FUNCTION_CALL",
        None | Some("stop") => "STOP",
        Some("length") => "MAX_TOKENS",
        Some("content_filter") => "SAFETY",
        Some(other) => other,
    }
}

fn object(completion: &Completion<'_>, parts: Vec<Value>, finish: Option<&str>) -> Value {
    let mut candidate = json!({"index": 0});
    if let Some(candidate) = candidate.as_object_mut() {
        if !parts.is_empty() {
            candidate.insert("content".into(), json!({"role": "model", "parts": parts}));
        }
        if finish == Some("CONTINUATION") {
            candidate.insert("continuationToken".into(), token(&completion.received.body).into());
        }
        if let Some(finish) = finish {
            candidate.insert("finishReason".into(), finish.into());
        }
    }
    let mut object = json!({
        "candidates": [candidate],
        "modelVersion": completion.model(),
        "responseId": completion.id,
    });
    if let (Some(object), false) = (object.as_object_mut(), completion.has(&Quirk::NoUsage)) {
        object.insert("usageMetadata".into(), usage(&completion.usage));
    }
    object
}

/// Thoughts are counted apart from the rest of the reply.
fn usage(usage: &Usage) -> Value {
    let (input, output) = (usage.input.unwrap_or_default(), usage.output.unwrap_or_default());
    let thoughts = usage.reasoning.unwrap_or_default();
    let mut counts = json!({
        "promptTokenCount": input,
        "candidatesTokenCount": output.saturating_sub(thoughts),
        "totalTokenCount": input.saturating_add(output),
    });
    if let Some(counts) = counts.as_object_mut() {
        let others = [("cachedContentTokenCount", usage.cached), ("thoughtsTokenCount", usage.reasoning)];
        counts.extend(others.into_iter().filter_map(|(name, count)| Some((name.to_owned(), count?.into()))));
    }
    counts
}
