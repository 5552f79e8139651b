//! Replies as the prompts of the program want them, at the last moment.

use polylogue_core::{Entry, Part, Request};
use serde_json::{Map, Value, json};

use super::{Adversary, Behavior};

/// What is asked for in a request.
enum Wanted {
    /// An object by this schema.
    Object(Value),
    /// The ledger of an orchestrator.
    Ledger(String),
    /// The arguments of a tool, of which the prompt shows the names and types.
    Arguments(Value),
    Decision,
    /// Numbered steps.
    Plan,
    /// Calls of this tool, for evidence.
    Evidence(String),
}

impl Adversary {
    /// Whether the reply is an object; `None` if none is asked for.
    pub(super) fn writes_object(&self, request: &Request<'_>) -> Option<bool> {
        let wanted = wanted(request).filter(|_| self.behavior == Behavior::Formal)?;
        match wanted {
            Wanted::Decision | Wanted::Plan | Wanted::Evidence(_) => None,
            _ => Some(self.formless >= self.patience(&wanted)),
        }
    }

    /// After how many replies without an object there is one: a message by a schema is repaired less often than arguments.
    fn patience(&self, wanted: &Wanted) -> u64 {
        match wanted {
            Wanted::Object(_) => self.seed.min(REPAIRS),
            _ => self.seed,
        }
    }

    /// The reply, if something is asked for in some form.
    pub(super) fn formal(&self, request: &Request<'_>, last: &str) -> Option<Vec<Part>> {
        let most = self.bytes(request.params);
        if is_rest_of_ledger(request) {
            let end = if self.is_last_piece(request, last) { LEDGER_END } else { "" };
            let text = "x".repeat(most - end.len()) + end;
            return Some(vec![Part::text(text)]);
        }
        let object = match wanted(request)? {
            Wanted::Decision => {
                let is_unclear = !last.starts_with("Answer with the one word");
                return Some(if is_unclear { self.longest(request) } else { vec![Part::text("no")] });
            }
            Wanted::Plan => {
                let steps: String = (1..=STEPS).map(|nth| format!("{nth}. Step {nth}\n")).collect();
                let text = steps + &polylogue_core::text_of(&self.longest(request));
                return Some(self.text(&text, request.params));
            }
            Wanted::Evidence(tool) => {
                let steps: String = (1..=most / 8).map(|nth| format!("#E{nth}={tool}[{nth}] ")).collect();
                return Some(self.text(&steps, request.params));
            }
            // Errors of the two kinds count apart: no JSON, and JSON that is no object.
            Wanted::Arguments(_) if (ERRORS..self.seed).contains(&self.formless) => json!([1]),
            ref wanted if self.formless < self.patience(wanted) => return Some(self.longest(request)),
            Wanted::Object(schema) => instance(&schema, most.saturating_sub(written(&instance(&schema, 0)))),
            Wanted::Ledger(name) => {
                let begin = ledger(&name).to_string();
                let begin = begin.strip_suffix(LEDGER_END)?;
                let end = if self.is_last_piece(request, last) { LEDGER_END } else { "" };
                let fill = most.saturating_sub(begin.len() + end.len());
                return Some(vec![Part::text(begin.to_owned() + &"x".repeat(fill) + end)]);
            }
            Wanted::Arguments(skeleton) => arguments(&skeleton, request.origin.nth),
        };
        let mut text = format!("{object} ");
        let filler = self.longest(request);
        text += &polylogue_core::text_of(&filler);
        Some(self.text(&text, request.params))
    }
}

/// The steps of a plan, as many as a shipped team allows.
const STEPS: usize = 4;

/// How often a selector is asked for one speaker by default.
const SELECTIONS: usize = 3;

impl Adversary {
    /// The name of a speaker that is asked for the last time: the first of those who may speak, or the last one by an odd seed.
    pub(super) fn selects(&self, request: &Request<'_>, last: &str) -> Option<String> {
        let (_, names) = last.split_once("ne of: ")?;
        let (names, _) = names.split_once(". ")?;
        let is_correction = |entry: &&Entry| {
            polylogue_core::text_of(entry.parts()).starts_with("You named ")
                && matches!(entry, Entry::User { .. })
        };
        let corrections = request.entries.iter().filter(is_correction).count();
        let named =
            if self.seed.is_multiple_of(2) { names.split(", ").next() } else { names.rsplit(", ").next() };
        named.filter(|_| corrections + 1 >= SELECTIONS).map(str::to_owned)
    }
}

/// How often a message by a schema is repaired by default.
const REPAIRS: u64 = 3;

fn written(value: &Value) -> usize {
    value.to_string().len()
}

/// The errors of one kind after which an agent gives up by default.
const ERRORS: u64 = 5;

/// What the last prompt asks for.
fn wanted(request: &Request<'_>) -> Option<Wanted> {
    request.entries.last().filter(|entry| super::is_prompt(entry))?;
    let text = polylogue_core::text_of(request.entries.last()?.parts()).into_owned();
    if text.contains("is_request_satisfied") || text.contains("That ledger") {
        return Some(Wanted::Ledger(speaker(request)?));
    }
    if let Some(schema) = &request.params.schema {
        return Some(Wanted::Object(schema.clone()));
    }
    if text.contains("<END_OF_PLAN>") {
        return Some(Wanted::Plan);
    }
    if text.contains("#E1 = tool") {
        let (_, tools) = text.split_once("Tools:\n- ")?;
        return Some(Wanted::Evidence(tools.split_once(": ")?.0.to_owned()));
    }
    if text.contains("JSON Schema") {
        return first_object(&text).map(Wanted::Object);
    }
    if text.contains("Output the arguments") || text.contains("Output the whole JSON object") {
        let shown = |entry: &Entry| first_object(&polylogue_core::text_of(entry.parts()));
        return request.entries.iter().rev().find_map(shown).map(Wanted::Arguments);
    }
    let is_decision = text.contains("`yes` or") || text.starts_with("Answer with the one word");
    is_decision.then_some(Wanted::Decision)
}

/// The first participant that the schema of a ledger names.
fn speaker(request: &Request<'_>) -> Option<String> {
    request.entries.iter().rev().find_map(|entry| {
        let text = polylogue_core::text_of(entry.parts()).into_owned();
        let (_, rest) = text.split_once("\"enum\":[\"")?;
        Some(rest.split_once('"')?.0.to_owned())
    })
}

/// The first JSON object in `text` that is not empty.
fn first_object(text: &str) -> Option<Value> {
    text.match_indices('{').take(16).find_map(|(at, _)| {
        let found = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Map<String, Value>>().next();
        found?.ok().filter(|object| !object.is_empty()).map(Value::Object)
    })
}

/// How a ledger ends, whose last text is the instruction.
const LEDGER_END: &str = "\"}}";

/// Whether the rest of a ledger is asked for.
fn is_rest_of_ledger(request: &Request<'_>) -> bool {
    let written = request.entries.iter().rev().take(2).find(|entry| matches!(entry, Entry::Assistant { .. }));
    let is_prompt = request.entries.last().is_some_and(super::is_prompt);
    !is_prompt
        && written.is_some_and(|entry| {
            polylogue_core::text_of(entry.parts()).starts_with("{\"is_request_satisfied")
        })
}

fn ledger(speaker: &str) -> Value {
    let answer = |answer: Value| json!({"answer": answer});
    json!({
        "is_request_satisfied": answer(json!(false)),
        "is_in_loop": answer(json!(false)),
        "is_progress_being_made": answer(json!(true)),
        "next_speaker": answer(json!(speaker)),
        "instruction_or_question": answer(json!("x")),
    })
}

/// Arguments by the `skeleton` of a prompt, such as `{"number": "<integer>"}`.
fn arguments(skeleton: &Value, nth: u64) -> Value {
    let value = |kind: &Value| match kind.as_str().unwrap_or_default() {
        "<integer>" | "<number>" => json!(nth % 20),
        "<boolean>" => json!(true),
        _ => json!(format!("{nth} + 1")),
    };
    let fields = skeleton.as_object().into_iter().flatten();
    Value::Object(fields.map(|(name, kind)| (name.clone(), value(kind))).collect())
}

/// A value that satisfies `schema`, with texts of `bytes` bytes in all.
fn instance(schema: &Value, bytes: usize) -> Value {
    if let Some(first) = schema.get("enum").and_then(Value::as_array).and_then(|all| all.first()) {
        return first.clone();
    }
    match schema.get("type").and_then(Value::as_str) {
        Some("string") => json!("x".repeat(bytes)),
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("null") => Value::Null,
        _ => {
            let properties = schema.get("properties").and_then(Value::as_object);
            let is_long = |inner: &&Value| {
                let kind = inner.get("type").and_then(Value::as_str);
                inner.get("enum").is_none() && matches!(kind, None | Some("string" | "object"))
            };
            let count = properties.map_or(1, |all| all.values().filter(is_long).count()).max(1);
            let each = |(name, inner): (&String, &Value)| (name.clone(), instance(inner, bytes / count));
            Value::Object(properties.into_iter().flatten().map(each).collect())
        }
    }
}
