//! What is sealed of a thought.

use serde_json::{Value, json};

use super::super::seal::seal;

/// What is sealed of the request before a thought: all of it that the model reads, without marks of caches.
fn prefix(body: &Value, messages: &[Value]) -> String {
    let mut parts = json!([body.get("system"), body.get("tools"), messages]);
    without_marks(&mut parts);
    parts.to_string()
}

fn without_marks(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove("cache_control");
            fields.values_mut().for_each(without_marks);
        }
        Value::Array(values) => values.iter_mut().for_each(without_marks),
        _ => {}
    }
}

/// The signature of a thought that was had after `messages`.
pub(super) fn signature(body: &Value, messages: &[Value], thought: &str) -> String {
    let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
    seal("anthropic", &format!("{model}\0{}\0{thought}", prefix(body, messages)))
}
