//! What is sealed of a thought.

use serde_json::{Value, json};

use super::super::seal::bound;

/// The signature of a thought that was had after `messages`.
pub(super) fn signature(body: &Value, messages: &[Value], thought: &str) -> String {
    let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
    bound("anthropic", model, json!([body.get("system"), body.get("tools"), messages]), thought)
}
