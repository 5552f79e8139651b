//! OpenRouter's `reasoning_details`: parts of reasoning in the forms of the providers behind it, which go back unchanged.

use serde_json::Value;

/// The field of a message.
pub(super) const DETAILS: &str = "reasoning_details";

/// The fields that come in pieces. The last two are those of calls that OpenRouter made itself.
const PIECES: [&str; 5] = ["text", "summary", "data", "arguments", "result"];

/// The fields by which details differ that have the same type and index.
const IDS: [&str; 2] = ["id", "tool_call_id"];

/// The details so far.
#[derive(Debug, Default)]
pub(super) struct Details(Vec<Value>);

impl Details {
    /// Adds a detail, or a piece of one: pieces have the same type and index, and no other id.
    pub(super) fn add(&mut self, piece: &Value) {
        let is_same = |name: &str, other: &Value| piece.get(name) == other.get(name);
        let has_index = piece.get("index").is_some_and(|index| !index.is_null());
        let has_other_id = |last: &Value| {
            let id = |of: &Value, name: &str| of.get(name).filter(|id| !id.is_null()).cloned();
            IDS.iter()
                .any(|name| id(piece, name).zip(id(last, name)).is_some_and(|(one, other)| one != other))
        };
        let begun = self.0.last_mut().filter(|last| {
            has_index && is_same("index", last) && is_same("type", last) && !has_other_id(last)
        });
        let (Some(Value::Object(begun)), Some(fields)) = (begun, piece.as_object()) else {
            return self.0.push(piece.clone());
        };
        for (name, value) in fields {
            match (begun.get_mut(name), value) {
                (Some(Value::String(text)), Value::String(more)) if PIECES.contains(&name.as_str()) => {
                    text.push_str(more);
                }
                (Some(Value::Null) | None, _) => drop(begun.insert(name.clone(), value.clone())),
                _ => {}
            }
        }
    }

    /// All details, if there are any.
    pub(super) fn take(&mut self) -> Option<Value> {
        let all = std::mem::take(&mut self.0);
        (!all.is_empty()).then_some(Value::Array(all))
    }
}
