//! A reply as Anthropic writes it, whole or as the events of its stream.

#![expect(clippy::indexing_slicing, reason = "objects that are made here have the fields that are named")]

use polylogue_core::Usage;
use serde_json::{Value, json};

use super::super::Quirk;
use super::super::chunks::{Chunks, pieces};
use super::super::completion::{Completion, object};
use super::super::seal::anthropic as signature;

/// The body of a reply that is not streamed.
pub(in super::super) fn body(completion: &Completion<'_>) -> Value {
    let mut body = start(completion, usage(completion));
    body["content"] = blocks(completion).into();
    body["stop_reason"] = json!(reason(completion));
    body
}

/// The events of a streamed reply, in order.
pub(in super::super) fn chunks(completion: &Completion<'_>) -> Chunks {
    let mut first = usage(completion);
    first["output_tokens"] = json!(1);
    let mut events =
        vec![json!({"type": "message_start", "message": start(completion, first)}), json!({"type": "ping"})];
    for (index, block) in blocks(completion).iter().enumerate() {
        let (begun, deltas) = taken_apart(completion, block);
        events.push(json!({"type": "content_block_start", "index": index, "content_block": begun}));
        let deltas = deltas.into_iter();
        events.extend(
            deltas.map(|delta| json!({"type": "content_block_delta", "index": index, "delta": delta})),
        );
        events.push(json!({"type": "content_block_stop", "index": index}));
    }
    let before_finish = events.len();
    let output = completion.usage.output.unwrap_or_default();
    let mut end = json!({
        "type": "message_delta", "delta": {"stop_reason": reason(completion), "stop_sequence": null},
        "usage": {"output_tokens": output},
    });
    if completion.has(&Quirk::NoUsage) {
        end["usage"] = Value::Null;
    }
    events.push(end);
    events.push(json!({"type": "message_stop"}));
    Chunks { chunks: events.iter().map(Value::to_string).collect(), before_finish }
}

/// One more event with text, for streams that never end.
pub(in super::super) fn one_more(_: &Completion<'_>, text: &str) -> String {
    json!({"type": "content_block_delta", "index": 0, "delta": {"type": "text_delta", "text": text}})
        .to_string()
}

fn start(completion: &Completion<'_>, usage: Value) -> Value {
    json!({
        "id": completion.id, "type": "message", "role": "assistant", "model": completion.model(), "content": [],
        "stop_reason": null, "stop_sequence": null,
        "usage": if completion.has(&Quirk::NoUsage) { Value::Null } else { usage },
    })
}

/// What the reply consists of: a thought, signed for this request; a text; calls, one of the server itself if it pauses.
fn blocks(completion: &Completion<'_>) -> Vec<Value> {
    let mut blocks = Vec::new();
    if !completion.thought.is_empty() {
        let body = &completion.received.body;
        let messages = body.get("messages").and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        // A paused reply that is resumed is one message with its rest.
        let others = messages.iter().rev().skip_while(|message| message["role"] == "assistant").count();
        let before = messages.get(..others).unwrap_or_default();
        let signature = signature(body, before, completion.thought);
        blocks.push(json!({"type": "thinking", "thinking": completion.thought, "signature": signature}));
    }
    if !completion.text.is_empty() {
        blocks.push(json!({"type": "text", "text": completion.text}));
    }
    for (nth, call) in completion.answer.calls.iter().enumerate() {
        let id = completion.call_id(nth, call);
        blocks.push(json!({"type": "tool_use", "id": id, "name": call.tool, "input": object(&call.args)}));
    }
    if completion.answer.finish.as_deref() == Some("pause_turn") {
        // It pauses while it executes a tool of its own.
        let id = format!("srvtoolu_{}", completion.id);
        blocks.push(
            json!({"type": "server_tool_use", "id": id, "name": "web_search", "input": {"query": "x"}}),
        );
    }
    blocks
}

/// How a block begins, and its pieces.
fn taken_apart(completion: &Completion<'_>, block: &Value) -> (Value, Vec<Value>) {
    let mut begun = block.clone();
    match block["type"].as_str() {
        Some("thinking") => {
            (begun["thinking"], begun["signature"]) = (json!(""), json!(""));
            let texts = pieces(completion.thought, None).into_iter();
            let mut deltas: Vec<Value> =
                texts.map(|text| json!({"type": "thinking_delta", "thinking": text})).collect();
            deltas.push(json!({"type": "signature_delta", "signature": block["signature"]}));
            (begun, deltas)
        }
        Some("text") => {
            begun["text"] = json!("");
            let texts = pieces(&completion.text, completion.answer.pieces).into_iter();
            (begun, texts.map(|text| json!({"type": "text_delta", "text": text})).collect())
        }
        _ => {
            begun["input"] = json!({});
            let input = block["input"].as_str().map_or_else(|| block["input"].to_string(), str::to_owned);
            // Nothing is said of arguments that are empty.
            let count = input.len().div_ceil(8);
            let parts = if input == "{}" { Vec::new() } else { pieces(&input, Some(count)) };
            let deltas =
                parts.into_iter().map(|part| json!({"type": "input_json_delta", "partial_json": part}));
            (begun, deltas.collect())
        }
    }
}

fn reason<'a>(completion: &'a Completion<'_>) -> &'a str {
    completion.stop_reason("refusal")
}

/// What was read from a cache is counted apart from the rest of the input.
fn usage(completion: &Completion<'_>) -> Value {
    let Usage { input, output, cached, .. } = completion.usage;
    let cached = cached.unwrap_or_default();
    json!({
        "input_tokens": input.unwrap_or_default().saturating_sub(cached),
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": cached,
        "output_tokens": output.unwrap_or_default(),
    })
}
