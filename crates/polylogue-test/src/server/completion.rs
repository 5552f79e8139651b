//! A reply as OpenAI's server would write it: the body that is not streamed, and what both forms share.

use polylogue_core::Usage;
use serde_json::{Map, Value, json};

use super::answer::ScriptedCall;
use super::quirk::Field;
use super::seal::seal;
use super::{Answer, Quirk, Received};

/// When every reply was made: a fixed second, so that the same request gets the same bytes.
pub(super) const CREATED: u64 = 1_700_000_000;

/// The field with parts of reasoning in the forms of the providers behind OpenRouter.
pub(super) const DETAILS: &str = "reasoning_details";

/// The field with the signature of reasoning that is a part of the content.
pub(super) const SIGNATURE: &str = "signature";

/// An answer to a request, worked out as far as both forms need it.
pub(super) struct Completion<'a> {
    pub(super) answer: &'a Answer,
    pub(super) received: &'a Received,
    pub(super) id: String,
    pub(super) text: String,
    pub(super) thought: &'a str,
    pub(super) usage: Usage,
}

impl<'a> Completion<'a> {
    pub(super) fn new(answer: &'a Answer, received: &'a Received) -> Self {
        let id = format!("chatcmpl-{:016x}", received.fingerprint());
        let tagged = answer.has(&Quirk::ThinkTags) && !answer.thought.is_empty();
        let (text, thought) = if tagged {
            (format!("<think>\n{}\n</think>\n\n{}", answer.thought, answer.text), "")
        } else {
            (answer.text.clone(), answer.thought.as_str())
        };
        let usage = answer.usage.unwrap_or_else(|| estimate(answer, received));
        Self { answer, received, id, text, thought, usage }
    }

    /// The model that was asked for.
    pub(super) fn model(&self) -> &str {
        self.received.model()
    }

    /// Why it ended, in the words of Anthropic, which Amazon uses, too; `filtered` stands for a filtered reply.
    pub(super) fn stop_reason<'b>(&'b self, filtered: &'b str) -> &'b str {
        match self.answer.finish.as_deref() {
            None if self.answer.calls.is_empty() => "end_turn",
            None | Some("tool_calls") => "tool_use",
            Some("stop") => "end_turn",
            Some("length") => "max_tokens",
            Some("content_filter") => filtered,
            Some(other) => other,
        }
    }

    pub(super) fn has(&self, quirk: &Quirk) -> bool {
        self.answer.has(quirk)
    }

    pub(super) fn lacks(&self, field: Field) -> bool {
        self.answer.has(&Quirk::Missing(field))
    }

    /// The field that reasoning is written to; `thinking` is in the content, except in Ollama's messages.
    pub(super) fn thought_field(&self) -> &'static str {
        match () {
            () if self.received.is_ollama() || self.has(&Quirk::ThinkingParts) => "thinking",
            () if self.has(&Quirk::ReasoningDetails) => DETAILS,
            () if self.has(&Quirk::ReasoningField) => "reasoning",
            () => "reasoning_content",
        }
    }

    /// What it reasons and says, in order.
    pub(super) fn rounds(&self) -> Vec<(&str, &str)> {
        let earlier = self.answer.earlier.iter().map(|(thought, text)| (thought.as_str(), text.as_str()));
        earlier.chain([(self.thought, self.text.as_str())]).collect()
    }

    /// All that it reasons.
    pub(super) fn thoughts(&self) -> String {
        self.rounds().into_iter().map(|(thought, _)| thought).collect()
    }

    /// All that it says.
    fn texts(&self) -> String {
        self.rounds().into_iter().map(|(_, text)| text).collect()
    }

    /// A piece of reasoning in the format of a message or delta. The last piece has the signature of `all` that is reasoned there.
    pub(super) fn reasoning(&self, piece: &str, all: Option<&str>) -> Map<String, Value> {
        let fields = match self.thought_field() {
            "thinking" => json!({"content": [self.thinking(piece, all)]}),
            DETAILS => json!({"reasoning": piece, DETAILS: [self.detail(piece, all.is_some())]}),
            field => json!({ field: piece }),
        };
        fields.as_object().cloned().unwrap_or_default()
    }

    /// A piece of reasoning as a part of the content, in which Mistral has it. The last piece has the signature of `all` of them.
    fn thinking(&self, piece: &str, all: Option<&str>) -> Value {
        let mut part = json!({"type": "thinking", "thinking": [{"type": "text", "text": piece}]});
        let signature = all.map(|all| seal("mistral", &format!("{}\0{all}", self.model())));
        let signature = signature.map(|signature| (SIGNATURE.to_owned(), signature.into()));
        part.as_object_mut().into_iter().for_each(|part| part.extend(signature.clone()));
        part
    }

    /// The content as a list in the order in which it is reasoned and said.
    pub(super) fn chunks(&self) -> Vec<Value> {
        let chunks = self.rounds().into_iter().flat_map(|(thought, text)| {
            let thinking = (!thought.is_empty()).then(|| self.thinking(thought, Some(thought)));
            let text = (!text.trim().is_empty()).then(|| json!({"type": "text", "text": text}));
            [thinking, text]
        });
        chunks.flatten().collect()
    }

    /// A piece of reasoning as a detail.
    pub(super) fn detail(&self, piece: &str, is_last: bool) -> Value {
        let all = || format!("{}\0{}", self.model(), self.thoughts());
        let signature = is_last.then(|| seal("openrouter", &all()));
        json!({"type": "reasoning.text", "index": 0, "format": "unknown", "text": piece, "signature": signature})
    }

    /// Content in the format of a message or delta.
    pub(super) fn content(&self, text: &str) -> Value {
        if self.has(&Quirk::ContentParts) {
            json!([{"type": "text", "text": text}])
        } else {
            Value::String(text.to_owned())
        }
    }

    /// The id of the `nth` call, unless the answer has none.
    pub(super) fn call_id(&self, nth: usize, call: &ScriptedCall) -> Option<String> {
        if self.has(&Quirk::NoCallId) {
            return None;
        }
        if self.has(&Quirk::EmptyCallId) {
            return Some(String::new());
        }
        let nth = if self.has(&Quirk::SameCallId) { 0 } else { nth };
        if self.has(&Quirk::ShortCallId) {
            let number = self.received.fingerprint().wrapping_add(nth as u64) & 0xf_ffff_ffff;
            return Some(call.id.clone().unwrap_or_else(|| format!("{number:09x}")));
        }
        Some(call.id.clone().unwrap_or_else(|| format!("call_{:016x}_{nth}", self.received.fingerprint())))
    }

    /// The body of a reply that is not streamed.
    pub(super) fn body(&self) -> Value {
        let mut choice = Map::new();
        self.put(&mut choice, Field::Index, "index", json!(0));
        choice.insert("message".into(), Value::Object(self.message()));
        self.put(&mut choice, Field::FinishReason, "finish_reason", json!(self.answer.finish_reason()));
        let choices = if self.has(&Quirk::EmptyChoices) { json!([]) } else { json!([choice]) };
        let mut body = Map::new();
        self.put(&mut body, Field::Id, "id", json!(self.id));
        self.put(&mut body, Field::Object, "object", json!("chat.completion"));
        self.put(&mut body, Field::Created, "created", json!(CREATED));
        self.put(&mut body, Field::Model, "model", json!(self.received.model()));
        body.insert("choices".into(), choices);
        if !self.has(&Quirk::NoUsage) {
            body.insert("usage".into(), usage_json(&self.usage));
        }
        Value::Object(body)
    }

    fn message(&self) -> Map<String, Value> {
        let mut message = Map::new();
        self.put(&mut message, Field::Role, "role", json!("assistant"));
        let (thoughts, texts) = (self.thoughts(), self.texts());
        let silent = texts.is_empty() && !self.answer.calls.is_empty();
        message.insert("content".into(), if silent { Value::Null } else { self.content(&texts) });
        if !thoughts.is_empty() && self.has(&Quirk::ThinkingParts) {
            message.insert("content".into(), self.chunks().into());
        } else if !thoughts.is_empty() {
            message.extend(self.reasoning(&thoughts, Some(&thoughts)));
        }
        if !self.answer.calls.is_empty() {
            let calls = self.answer.calls.iter().enumerate();
            message.insert("tool_calls".into(), calls.map(|(nth, call)| self.call(nth, call)).collect());
        }
        if self.has(&Quirk::NullFields) {
            for field in ["reasoning_content", "tool_calls", "function_call", "refusal", "audio"] {
                message.entry(field).or_insert(Value::Null);
            }
        }
        message
    }

    fn call(&self, nth: usize, call: &ScriptedCall) -> Value {
        let mut fields = Map::new();
        if let Some(id) = self.call_id(nth, call) {
            fields.insert("id".into(), json!(id));
        }
        self.put(&mut fields, Field::CallType, "type", json!("function"));
        let args = if self.has(&Quirk::ArgumentObject) { object(&call.args) } else { json!(call.args) };
        fields.insert("function".into(), json!({"name": call.tool, "arguments": args}));
        Value::Object(fields)
    }

    /// Puts a field, unless it is to be missing.
    pub(super) fn put(&self, map: &mut Map<String, Value>, field: Field, name: &str, value: Value) {
        if !self.lacks(field) {
            map.insert(name.to_owned(), value);
        }
    }
}

/// Arguments as an object, or as they are when they are none.
pub(super) fn object(args: &str) -> Value {
    serde_json::from_str(args).unwrap_or_else(|_| json!(args))
}

/// A token for every four bytes: OpenAI's rule of thumb for English.
fn estimate(answer: &Answer, received: &Received) -> Usage {
    let calls: usize = answer.calls.iter().map(|call| call.tool.len() + call.args.len()).sum();
    let tokens = |bytes: usize| Some(bytes.div_ceil(4) as u64);
    Usage {
        input: tokens(received.bytes.len()),
        output: tokens(answer.text.len() + answer.thought.len() + calls),
        ..Usage::default()
    }
}

/// Usage as OpenAI writes it; details only where they are known.
pub(super) fn usage_json(usage: &Usage) -> Value {
    let mut json = Map::new();
    for (name, count) in [("prompt_tokens", usage.input), ("completion_tokens", usage.output)] {
        if let Some(count) = count {
            json.insert(name.into(), count.into());
        }
    }
    if let (Some(input), Some(output)) = (usage.input, usage.output) {
        json.insert("total_tokens".into(), input.saturating_add(output).into());
    }
    if let Some(cached) = usage.cached {
        json.insert("prompt_tokens_details".into(), json!({"cached_tokens": cached}));
    }
    if let Some(reasoning) = usage.reasoning {
        json.insert("completion_tokens_details".into(), json!({"reasoning_tokens": reasoning}));
    }
    Value::Object(json)
}
