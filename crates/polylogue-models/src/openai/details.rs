//! OpenRouter's `reasoning_details`: parts of reasoning in the forms of the providers behind it, which go back unchanged.

use serde_json::Value;

/// The field of a message.
pub(super) const DETAILS: &str = "reasoning_details";

/// The fields that come in pieces.
const PIECES: [&str; 3] = ["text", "summary", "data"];

/// The details so far.
#[derive(Debug, Default)]
pub(super) struct Details(Vec<Value>);

impl Details {
    /// Adds a detail, or a piece of one: pieces have the same type and index.
    pub(super) fn add(&mut self, piece: &Value) {
        let is_same = |name: &str, other: &Value| piece.get(name) == other.get(name);
        let has_index = piece.get("index").is_some_and(|index| !index.is_null());
        let begun =
            self.0.last_mut().filter(|last| has_index && is_same("index", last) && is_same("type", last));
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
