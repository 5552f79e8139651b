//! Seals: what providers put on thoughts and calls, and check when these are sent back.
//!
//! A real provider signs or encrypts; this server computes a seal from what it seals, so that it recognizes its own without
//! remembering replies.

use serde_json::Value;

/// The seal of `content` by the provider `wire`: 32 hexadecimal digits, which are also valid base64.
pub(super) fn seal(wire: &str, content: &str) -> String {
    let forward = fnv(wire.bytes().chain([0]).chain(content.bytes()));
    let backward = fnv(content.bytes().rev().chain([0]).chain(wire.bytes()));
    format!("{forward:016x}{backward:016x}")
}

/// The seal of a thought that `model` of `wire` had after `before`, all that it read: marks of caches do not count.
pub(super) fn bound(wire: &str, model: &str, mut before: Value, thought: &str) -> String {
    without_marks(&mut before);
    seal(wire, &format!("{model}\0{before}\0{thought}"))
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
