//! A streamed reply: the JSON of its chunks.

use polylogue_core::Usage;
use serde_json::{Map, Value, json};

use super::Quirk;
use super::answer::ScriptedCall;
use super::completion::{CREATED, Completion, object, usage_json};
use super::quirk::Field;

/// The chunks of a reply, and how many of them come before the one that finishes it.
pub(super) struct Chunks {
    pub(super) chunks: Vec<String>,
    pub(super) before_finish: usize,
}

/// The chunks of a reply, in order.
pub(super) fn chunks(completion: &Completion<'_>) -> Chunks {
    let envelope = Envelope::new(completion);
    let deltas = deltas(completion);
    let count = deltas.len();
    let mut chunks = Vec::with_capacity(count + 3);
    if completion.has(&Quirk::EmptyChoices) {
        chunks.push(envelope.without_choices(None));
    }
    for (nth, delta) in deltas.iter().enumerate() {
        let usage = completion.has(&Quirk::UsageEverywhere).then(|| so_far(&completion.usage, nth, count));
        chunks.push(envelope.chunk(delta, None, usage.as_ref()));
    }
    let before_finish = chunks.len();
    let delta = if completion.has(&Quirk::NullDelta) { "null" } else { "{}" };
    let has_usage = completion.has(&Quirk::UsageWithFinish) || completion.has(&Quirk::UsageEverywhere);
    let reason = completion.answer.finish_reason();
    chunks.push(envelope.chunk(delta, Some(reason), has_usage.then_some(&completion.usage)));
    if ends_with_usage(completion) {
        chunks.push(envelope.without_choices(Some(&completion.usage)));
    }
    Chunks { chunks, before_finish }
}

/// One more chunk of text, for streams that never end.
pub(super) fn one_more(completion: &Completion<'_>, text: &str) -> String {
    Envelope::new(completion).chunk(&text_delta(completion, text), None, None)
}

/// Whether a last chunk without choices has the usage.
fn ends_with_usage(completion: &Completion<'_>) -> bool {
    let asked = completion.received.wants_usage() && !completion.has(&Quirk::UsageWithFinish);
    !completion.has(&Quirk::NoUsage) && (asked || completion.has(&Quirk::UsageUnasked))
}

/// The usage that a running count shows after chunk `nth` of `count`.
fn so_far(usage: &Usage, nth: usize, count: usize) -> Usage {
    let output = usage.output.map(|output| output * nth as u64 / count.max(1) as u64);
    Usage { output, ..*usage }
}

/// What stands around the delta: rendered once a reply, because a reply may have thousands of chunks.
struct Envelope {
    /// Up to the choices.
    head: String,
    /// From the choices' bracket to the delta.
    choice: String,
    finish: bool,
    /// What stands at the end of a chunk that does not tell the usage.
    no_usage: &'static str,
}

impl Envelope {
    fn new(completion: &Completion<'_>) -> Self {
        let mut fields = Map::new();
        completion.put(&mut fields, Field::Id, "id", json!(completion.id));
        completion.put(&mut fields, Field::Object, "object", json!("chat.completion.chunk"));
        completion.put(&mut fields, Field::Created, "created", json!(CREATED));
        completion.put(&mut fields, Field::Model, "model", json!(completion.received.model()));
        let fields = Value::Object(fields).to_string();
        let fields = fields.strip_suffix("}").unwrap_or(&fields);
        let comma = if fields.len() > 1 { "," } else { "" };
        let index = if completion.lacks(Field::Index) { "" } else { r#""index":0,"# };
        let nulls = completion.received.wants_usage() || completion.has(&Quirk::NullFields);
        Self {
            head: format!("{fields}{comma}"),
            choice: format!(r#""choices":[{{{index}"delta":"#),
            finish: !completion.lacks(Field::FinishReason),
            no_usage: if nulls && !completion.has(&Quirk::NoUsage) { r#","usage":null"# } else { "" },
        }
    }

    fn chunk(&self, delta: &str, finish: Option<&str>, usage: Option<&Usage>) -> String {
        let finish = match finish {
            _ if !self.finish => String::new(),
            None => r#","finish_reason":null"#.to_owned(),
            Some(reason) => format!(r#","finish_reason":{}"#, json!(reason)),
        };
        let usage = self.usage(usage);
        [&self.head, &self.choice, delta, &finish, "}]", &usage, "}"].concat()
    }

    fn without_choices(&self, usage: Option<&Usage>) -> String {
        [&self.head, r#""choices":[]"#, &self.usage(usage), "}"].concat()
    }

    fn usage(&self, usage: Option<&Usage>) -> String {
        match usage {
            Some(usage) => format!(r#","usage":{}"#, usage_json(usage)),
            None => self.no_usage.to_owned(),
        }
    }
}

/// The deltas of a reply: role, reasoning, text, calls.
fn deltas(completion: &Completion<'_>) -> Vec<String> {
    let mut deltas = Vec::new();
    deltas.push(role_delta(completion));
    if completion.has(&Quirk::NullDelta) {
        deltas.push("null".into());
    }
    for (thought, text) in completion.rounds() {
        let thoughts = pieces(thought, None);
        let last = thoughts.len().saturating_sub(1);
        let reasoning =
            |(nth, piece): (usize, &&str)| completion.reasoning(piece, (nth == last).then_some(thought));
        deltas.extend(thoughts.iter().enumerate().map(|piece| delta(completion, reasoning(piece))));
        let texts = pieces(text, completion.answer.pieces);
        deltas.extend(texts.iter().map(|piece| text_delta(completion, piece)));
    }
    deltas.extend(call_deltas(completion));
    deltas
}

fn role_delta(completion: &Completion<'_>) -> String {
    let mut delta = Map::new();
    completion.put(&mut delta, Field::Role, "role", json!("assistant"));
    let content = if completion.has(&Quirk::NullFields) { Value::Null } else { completion.content("") };
    delta.insert("content".into(), content);
    Value::Object(delta).to_string()
}

fn text_delta(completion: &Completion<'_>, piece: &str) -> String {
    let value = completion.content(piece);
    if !completion.has(&Quirk::NullFields) {
        return [r#"{"content":"#, &value.to_string(), "}"].concat();
    }
    delta(completion, Map::from_iter([("content".to_owned(), value)]))
}

fn delta(completion: &Completion<'_>, fields: Map<String, Value>) -> String {
    if !completion.has(&Quirk::NullFields) {
        return Value::Object(fields).to_string();
    }
    let mut delta = json!({"role": null, "content": null, "tool_calls": null, "refusal": null});
    if let Some(delta) = delta.as_object_mut() {
        delta.extend(fields);
    }
    delta.to_string()
}

/// The fragments of all calls: one call after the other, or in turns.
fn call_deltas(completion: &Completion<'_>) -> Vec<String> {
    let calls = completion.answer.calls.iter().enumerate();
    let mut rows: Vec<_> =
        calls.map(|(nth, call)| fragments(completion, nth, call).into_iter().peekable()).collect();
    let mut deltas = Vec::new();
    if completion.has(&Quirk::CallsInterleaved) {
        while rows.iter_mut().any(|row| row.peek().is_some()) {
            deltas.extend(rows.iter_mut().filter_map(Iterator::next));
        }
    } else {
        deltas.extend(rows.into_iter().flatten());
    }
    deltas.into_iter().map(|fragment| wrap(completion, fragment).to_string()).collect()
}

fn wrap(completion: &Completion<'_>, fragment: Map<String, Value>) -> Value {
    if completion.has(&Quirk::NullFields) {
        json!({"role": null, "content": null, "tool_calls": [fragment]})
    } else {
        json!({"tool_calls": [fragment]})
    }
}

/// One call: a fragment that names it, then its arguments.
fn fragments(completion: &Completion<'_>, nth: usize, call: &ScriptedCall) -> Vec<Map<String, Value>> {
    let object_wanted = completion.has(&Quirk::ArgumentObject);
    let whole = object_wanted || completion.has(&Quirk::CallWhole);
    let args = if object_wanted { object(&call.args) } else { json!(call.args) };
    let mut first = indexed(completion, nth);
    if let Some(id) = completion.call_id(nth, call) {
        first.insert("id".into(), json!(id));
    }
    completion.put(&mut first, Field::CallType, "type", json!("function"));
    let begin = if whole { args } else { json!("") };
    first.insert("function".into(), json!({"name": call.tool, "arguments": begin}));
    let mut fragments = vec![first];
    if !whole {
        let count = argument_pieces(completion, &call.args);
        fragments.extend(pieces(&call.args, Some(count)).iter().map(|piece| more(completion, nth, piece)));
    }
    fragments
}

/// How many fragments the arguments come in: of about eight characters, as tokens do, or of one.
fn argument_pieces(completion: &Completion<'_>, args: &str) -> usize {
    if completion.has(&Quirk::ArgumentFragments) { args.len() } else { args.len().div_ceil(8) }
}

fn more(completion: &Completion<'_>, nth: usize, piece: &str) -> Map<String, Value> {
    let mut fragment = indexed(completion, nth);
    let mut function = json!({"arguments": piece});
    if completion.has(&Quirk::NullFields) {
        fragment.insert("id".into(), Value::Null);
        fragment.insert("type".into(), Value::Null);
        function = json!({"name": null, "arguments": piece});
    }
    fragment.insert("function".into(), function);
    fragment
}

fn indexed(completion: &Completion<'_>, nth: usize) -> Map<String, Value> {
    let mut fragment = Map::new();
    if !completion.has(&Quirk::NoCallIndex) {
        let index = if completion.has(&Quirk::CallGaps) { 3 * nth + 1 } else { nth };
        fragment.insert("index".into(), json!(index));
    }
    fragment
}

/// Cuts `text` into `count` pieces of nearly equal length, at most one a character; or, without a count, into words.
pub(super) fn pieces(text: &str, count: Option<usize>) -> Vec<&str> {
    let Some(count) = count else { return text.split_inclusive(' ').collect() };
    let mut starts: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
    let chars = starts.len();
    let count = count.clamp(1, chars.max(1));
    starts.push(text.len());
    let edge = |nth: usize| starts.get(nth * chars / count).copied().unwrap_or_default();
    (0..count)
        .filter_map(|nth| text.get(edge(nth)..edge(nth + 1)))
        .filter(|piece| !piece.is_empty())
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_make_up_the_text_and_break_no_character() {
        for text in ["", "a", "Grüße, 翻译! and words", "  two  blanks  "] {
            for count in [None, Some(1), Some(2), Some(3), Some(usize::MAX / 64)] {
                let pieces = pieces(text, count);
                assert_eq!(pieces.concat(), text);
                assert!(pieces.iter().all(|piece| !piece.is_empty()));
            }
        }
        assert_eq!(pieces("abcdef", Some(3)), ["ab", "cd", "ef"]);
        assert_eq!(pieces(&"x".repeat(5000), Some(2000)).len(), 2000);
        assert_eq!(pieces("a b c", None), ["a ", "b ", "c"]);
    }
}
