//! Simplifies schemas, with references resolved.

use std::cell::Cell;

use polylogue_core::schema::{can_be, is_type};
use serde_json::{Map, Value, json};

use super::document::Document;

/// Maximum depth of schemas; deeper ones allow anything.
const DEEPEST: usize = 8;
/// Maximum size of a schema as JSON, in bytes. A larger one is cut at a lower depth.
const MAX_BYTES: usize = 24 * 1024;

/// Keywords that are kept unchanged.
const KEPT: [&str; 14] = [
    "description", "title", "pattern", "format", "minimum", "maximum", "multipleOf", "minLength",
    "maxLength", "minItems", "maxItems", "uniqueItems", "enum", "default",
];

/// Maximum number of schemas within one.
const MOST: usize = 2_000;

/// The remaining size.
struct RemainingSize {
    schemas: Cell<usize>,
    bytes: Cell<usize>,
}

impl RemainingSize {
    /// Whether `value` still fits; if not, nothing else does.
    fn takes(&self, value: &Value) -> bool {
        let size = value.as_str().map_or_else(|| value.to_string().len(), str::len);
        self.bytes.set(self.bytes.get().saturating_sub(size));
        self.bytes.get() > 0
    }
}

/// `schema` without references, and with what providers know only.
pub(super) fn simple(document: &Document, schema: &Value) -> Value {
    for depth in (1..=DEEPEST).rev() {
        let left = RemainingSize { schemas: Cell::new(MOST), bytes: Cell::new(MAX_BYTES) };
        let simple = at(document, schema, depth, &left);
        if left.schemas.get() > 0 && left.bytes.get() > 0 && simple.to_string().len() <= MAX_BYTES {
            return simple;
        }
    }
    json!({})
}

fn at(document: &Document, schema: &Value, depth: usize, left: &RemainingSize) -> Value {
    // Schemas that hold one another would become as many as there are stars.
    if left.schemas.get() == 0 || left.bytes.get() == 0 {
        return json!({});
    }
    left.schemas.set(left.schemas.get() - 1);
    // A schema of `true` or `false` says nothing of what it is.
    let Some(object) = document.resolved(schema).as_object() else { return json!({}) };
    let mut simple = Map::new();
    // What the reference itself says goes before what it leads to.
    let own = schema.get("description").map(|text| ("description", text));
    let kept = object.iter().map(|(key, value)| (key.as_str(), value)).chain(own);
    let kept = kept.filter(|(key, value)| is_kept(key, value));
    // What many references lead to would be copied as often: it is counted before.
    let kept = kept.filter(|(_, value)| left.takes(value));
    simple.extend(kept.map(|(key, value)| (key.to_owned(), value.clone())));
    put_type(object, &mut simple);
    if let Some(only) = object.get("const").filter(|only| left.takes(only)) {
        simple.insert("enum".into(), json!([only]));
    }
    if depth == 0 {
        return Value::Object(simple);
    }
    let deeper = |schema: &Value| at(document, schema, depth - 1, left);
    for part in object.get("allOf").and_then(Value::as_array).into_iter().flatten() {
        merge(&mut simple, deeper(part));
    }
    for several in ["oneOf", "anyOf"] {
        if let Some(choices) = object.get(several).and_then(Value::as_array) {
            put_choices(&mut simple, choices.iter().map(deeper).collect());
        }
    }
    if let Some(items) = object.get("items") {
        simple.insert("items".into(), deeper(items));
    } else if simple.get("type") == Some(&json!("array")) {
        simple.insert("items".into(), json!({}));
    }
    put_properties(document, object, &mut simple, &deeper);
    Value::Object(simple)
}

/// Whether `key` is kept unchanged, with a `value` that it can have: providers refuse schemas with others.
fn is_kept(key: &str, value: &Value) -> bool {
    KEPT.contains(&key) && can_be(key, value)
}

fn put_type(object: &Map<String, Value>, simple: &mut Map<String, Value>) {
    let kind = match object.get("type") {
        // `null` is what is left out.
        Some(Value::Array(kinds)) => {
            match kinds.iter().filter(|kind| *kind != "null").collect::<Vec<_>>().as_slice() {
                [only] if is_type(only) => Some((*only).clone()),
                _ => None,
            }
        }
        Some(kind) if is_type(kind) => Some(kind.clone()),
        // One that does not exist says nothing, either.
        _ if object.contains_key("properties") => Some(json!("object")),
        _ => None,
    };
    simple.extend(kind.map(|kind| ("type".to_owned(), kind)));
}

fn put_choices(simple: &mut Map<String, Value>, mut choices: Vec<Value>) {
    choices.retain(|choice| choice.get("type") != Some(&json!("null")));
    match choices.as_mut_slice() {
        [] => {}
        [only] => merge(simple, only.take()),
        _ => drop(simple.insert("anyOf".into(), Value::Array(choices))),
    }
}

fn put_properties(
    document: &Document,
    object: &Map<String, Value>,
    simple: &mut Map<String, Value>,
    deeper: &impl Fn(&Value) -> Value,
) {
    let mut unseen = Vec::new();
    if let Some(properties) = object.get("properties").and_then(Value::as_object) {
        let mut written = Map::new();
        for (name, schema) in properties {
            // What only an answer has is not sent.
            if document.resolved(schema).get("readOnly") == Some(&json!(true)) {
                unseen.push(name);
            } else {
                written.insert(name.clone(), deeper(schema));
            }
        }
        merge(simple, json!({"properties": written}));
    }
    if let Some(required) = object.get("required").and_then(Value::as_array) {
        let is_seen = |name: &&Value| name.is_string() && !unseen.iter().any(|unseen| **name == **unseen);
        merge(simple, json!({"required": required.iter().filter(is_seen).collect::<Vec<_>>()}));
    }
    match object.get("additionalProperties") {
        Some(Value::Bool(may)) => drop(simple.insert("additionalProperties".into(), json!(may))),
        Some(schema) => drop(simple.insert("additionalProperties".into(), deeper(schema))),
        None => {}
    }
}

/// Merges `other`; objects and lists are combined.
fn merge(simple: &mut Map<String, Value>, other: Value) {
    let Value::Object(other) = other else { return };
    for (key, value) in other {
        match (simple.get_mut(&key), value) {
            (Some(Value::Object(known)), Value::Object(more)) if key == "properties" => known.extend(more),
            (Some(Value::Array(known)), Value::Array(more)) if key == "required" => {
                more.into_iter().for_each(|one| {
                    if !known.contains(&one) {
                        known.push(one)
                    }
                });
            }
            (Some(_), _) => {}
            (None, value) => drop(simple.insert(key, value)),
        }
    }
}
