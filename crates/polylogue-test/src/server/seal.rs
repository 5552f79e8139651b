//! Seals: what providers put on thoughts and calls, and check when these are sent back.
//!
//! A real provider signs or encrypts; this server computes a seal from what it seals, so that it recognizes its own without
//! remembering replies.

use serde_json::{Value, json};

/// The seal of `content` by the provider `wire`: 32 hexadecimal digits, which are also valid base64.
pub(super) fn seal(wire: &str, content: &str) -> String {
    let forward = fnv(wire.bytes().chain([0]).chain(content.bytes()));
    let backward = fnv(content.bytes().rev().chain([0]).chain(wire.bytes()));
    format!("{forward:016x}{backward:016x}")
}

/// The seal of a thought that `model` of `wire` had after `before`, all that it read: marks of caches do not count.
fn bound(wire: &str, model: &str, mut before: Value, thought: &str) -> String {
    without_marks(&mut before);
    seal(wire, &format!("{model}\0{before}\0{thought}"))
}

/// The signature of a thought of Anthropic's Messages that a model had after `messages`.
pub(super) fn anthropic(body: &Value, messages: &[Value], thought: &str) -> String {
    let model = body.get("model").and_then(Value::as_str).unwrap_or_default();
    bound("anthropic", model, json!([body.get("system"), body.get("tools"), messages]), thought)
}

/// The signature of a thought of Bedrock that `model` had after `messages`. Claude binds its thoughts to all that came before them; other
/// models sign the thought alone.
pub(super) fn bedrock(model: &str, body: &Value, messages: &[Value], thought: &str) -> String {
    if !model.contains("claude") {
        return seal("bedrock", thought);
    }
    let tools = body.pointer("/toolConfig/tools");
    bound("bedrock", model, json!([body.get("system"), tools, messages]), thought)
}

fn without_marks(value: &mut Value) {
    match value {
        Value::Object(fields) => {
            fields.shift_remove("cache_control");
            fields.values_mut().for_each(without_marks);
        }
        Value::Array(values) => {
            values.retain(|value| value.get("cachePoint").is_none());
            values.iter_mut().for_each(without_marks);
        }
        _ => {}
    }
}

/// What continues a reply to `request`, which it names however often it is continued.
pub(super) fn token(request: &Value) -> String {
    let mut request = request.clone();
    if let Some(fields) = request.as_object_mut() {
        fields.shift_remove("continuationToken");
    }
    seal("continuation", &request.to_string())
}

/// FNV-1a, 64 bits.
fn fnv(bytes: impl Iterator<Item = u8>) -> u64 {
    const OFFSET: u64 = 0xcbf2_9ce4_8422_2325;
    const PRIME: u64 = 0x0100_0000_01b3;
    bytes.fold(OFFSET, |hash, byte| (hash ^ u64::from(byte)).wrapping_mul(PRIME))
}
