//! A reply as OpenAI writes it in its responses API, whole or as the objects of its events.

#![expect(clippy::indexing_slicing, reason = "objects that are made here have the fields that are named")]

use polylogue_core::Usage;
use serde_json::{Map, Value, json};

use super::super::Quirk;
use super::super::chunks::{Chunks, pieces};
use super::super::completion::{CREATED, Completion};
use super::super::seal::seal;

/// The body of a reply that is not streamed.
pub(in super::super) fn body(completion: &Completion<'_>) -> Value {
    response(completion, &status(completion), items(completion))
}

/// The objects of a streamed reply, in order; the last one has the whole reply again.
pub(in super::super) fn chunks(completion: &Completion<'_>) -> Chunks {
    let mut events = Events::default();
    for kind in ["response.created", "response.in_progress"] {
        events.push(kind, json!({"response": response(completion, "in_progress", Vec::new())}));
    }
    for (index, item) in items(completion).into_iter().enumerate() {
        events.item(completion, index, &item);
    }
    let before_finish = events.chunks.len();
    let kind = format!("response.{}", status(completion));
    events.push(&kind, json!({"response": body(completion)}));
    Chunks { chunks: events.chunks, before_finish }
}

/// One more object with text, for streams that never end.
pub(in super::super) fn one_more(_: &Completion<'_>, text: &str) -> String {
    let mut events = Events::default();
    events.push(
        "response.output_text.delta",
        json!({"item_id": "msg", "output_index": 0, "content_index": 0, "delta": text}),
    );
    events.chunks.concat()
}

fn status(completion: &Completion<'_>) -> String {
    match completion.answer.finish.as_deref() {
        None | Some("stop" | "tool_calls") => "completed".into(),
        Some(_) => "incomplete".into(),
    }
}

fn response(completion: &Completion<'_>, status: &str, output: Vec<Value>) -> Value {
    let why = match completion.answer.finish.as_deref() {
        Some("length") => json!({"reason": "max_output_tokens"}),
        Some(reason) if status == "incomplete" => json!({"reason": reason}),
        _ => Value::Null,
    };
    let is_over = status != "in_progress";
    let has_usage = is_over && !completion.has(&Quirk::NoUsage);
    json!({
        "id": completion.id,
        "object": "response",
        "created_at": CREATED,
        "model": completion.model(),
        "status": status,
        "error": null,
        "incomplete_details": if is_over { why } else { Value::Null },
        "output": output,
        "usage": if has_usage { usage(&completion.usage) } else { Value::Null },
    })
}

/// What the reply consists of: reasoning, a message, calls.
fn items(completion: &Completion<'_>) -> Vec<Value> {
    let id = |kind: &str, nth: usize| format!("{kind}_{}_{nth}", completion.id);
    let mut items = Vec::new();
    if !completion.thought.is_empty() {
        let id = id("rs", 0);
        let sealed = seal("responses", &format!("{}{id}", completion.model()));
        let summary = json!([{"type": "summary_text", "text": completion.thought}]);
        items.push(json!({"type": "reasoning", "id": id, "summary": summary, "encrypted_content": sealed}));
    }
    if !completion.text.is_empty() {
        let refused = completion.answer.finish.as_deref() == Some("refusal");
        let content = match refused {
            true => json!({"type": "refusal", "refusal": completion.text}),
            false => json!({"type": "output_text", "text": completion.text, "annotations": []}),
        };
        let mut message = json!({
            "type": "message", "id": id("msg", 0), "status": "completed", "role": "assistant", "content": [content],
        });
        if has_phases(completion.model()) {
            let is_last = completion.answer.calls.is_empty();
            message["phase"] = if is_last { "final_answer" } else { "commentary" }.into();
        }
        items.push(message);
    }
    for (nth, call) in completion.answer.calls.iter().enumerate() {
        items.push(json!({
            "type": "function_call", "id": id("fc", nth), "status": "completed",
            "call_id": completion.call_id(nth, call), "name": call.tool, "arguments": call.args,
        }));
    }
    items
}

/// Whether a model says if a message is its last: newer ones do.
fn has_phases(model: &str) -> bool {
    model.starts_with("gpt-5")
}

/// Events, numbered.
#[derive(Default)]
struct Events {
    chunks: Vec<String>,
}

impl Events {
    fn push(&mut self, kind: &str, fields: Value) {
        let mut event = Map::from_iter([
            ("type".to_owned(), json!(kind)),
            ("sequence_number".to_owned(), json!(self.chunks.len())),
        ]);
        if let Value::Object(fields) = fields {
            event.extend(fields);
        }
        self.chunks.push(Value::Object(event).to_string());
    }

    /// Everything about one item: that it begins, its pieces, and the whole item at the end.
    fn item(&mut self, completion: &Completion<'_>, index: usize, item: &Value) {
        let mut begun = item.clone();
        if let Some(fields) = begun.as_object_mut() {
            for (name, empty) in [("content", json!([])), ("summary", json!([])), ("arguments", json!(""))] {
                fields.entry(name).and_modify(|value| *value = empty);
            }
            // The final content is only told at the end.
            fields.entry("encrypted_content").and_modify(|value| *value = json!("incomplete"));
        }
        self.push("response.output_item.added", json!({"output_index": index, "item": begun}));
        let place = json!({"item_id": item["id"], "output_index": index});
        match item["type"].as_str() {
            Some("reasoning") => self.summary(&place, completion.thought),
            Some("message") => self.content(completion, &place, &item["content"][0]),
            _ => self.arguments(completion, &place, item["arguments"].as_str().unwrap_or_default()),
        }
        self.push("response.output_item.done", json!({"output_index": index, "item": item}));
    }

    fn at(&mut self, kind: &str, place: &Value, fields: Value) {
        let mut all = place.clone();
        if let (Some(all), Value::Object(fields)) = (all.as_object_mut(), fields) {
            all.extend(fields);
        }
        self.push(kind, all);
    }

    fn summary(&mut self, place: &Value, text: &str) {
        self.at(
            "response.reasoning_summary_part.added",
            place,
            json!({"summary_index": 0, "part": {"type": "summary_text", "text": ""}}),
        );
        for piece in pieces(text, None) {
            self.at(
                "response.reasoning_summary_text.delta",
                place,
                json!({"summary_index": 0, "delta": piece}),
            );
        }
        self.at("response.reasoning_summary_text.done", place, json!({"summary_index": 0, "text": text}));
    }

    fn content(&mut self, completion: &Completion<'_>, place: &Value, content: &Value) {
        let kind = content["type"].as_str().unwrap_or_default();
        let (field, name) = if kind == "refusal" { ("refusal", "refusal") } else { ("text", "output_text") };
        let mut begun = content.clone();
        begun[field] = json!("");
        self.at("response.content_part.added", place, json!({"content_index": 0, "part": begun}));
        for piece in pieces(&completion.text, completion.answer.pieces) {
            self.at(&format!("response.{name}.delta"), place, json!({"content_index": 0, "delta": piece}));
        }
        self.at(&format!("response.{name}.done"), place, json!({"content_index": 0, field: completion.text}));
        self.at("response.content_part.done", place, json!({"content_index": 0, "part": content}));
    }

    fn arguments(&mut self, completion: &Completion<'_>, place: &Value, args: &str) {
        if !completion.has(&Quirk::CallWhole) {
            for piece in pieces(args, Some(args.len().div_ceil(8))) {
                self.at("response.function_call_arguments.delta", place, json!({"delta": piece}));
            }
        }
        self.at("response.function_call_arguments.done", place, json!({"arguments": args}));
    }
}

fn usage(usage: &Usage) -> Value {
    let (input, output) = (usage.input.unwrap_or_default(), usage.output.unwrap_or_default());
    json!({
        "input_tokens": input,
        "input_tokens_details": {"cached_tokens": usage.cached.unwrap_or_default()},
        "output_tokens": output,
        "output_tokens_details": {"reasoning_tokens": usage.reasoning.unwrap_or_default()},
        "total_tokens": input.saturating_add(output),
    })
}
