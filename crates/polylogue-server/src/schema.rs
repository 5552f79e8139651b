//! JSON Schemas of what requests and replies say, by the types of the API.

use polylogue_wire::conversation::PendingQuestion;
use schemars::generate::SchemaSettings;
use schemars::transform::RecursiveTransform;
use schemars::{JsonSchema, Schema};
use serde_json::Value;

/// The schema of a `T` in a request: an optional field is left out, and not null.
pub(crate) fn of_request<T: JsonSchema>() -> Value {
    inline::<T>(SchemaSettings::draft2020_12().with_transform(RecursiveTransform(without_null)))
}

/// The schema of a `T` in a reply.
pub(crate) fn of_reply<T: JsonSchema>() -> Value {
    inline::<T>(SchemaSettings::draft2020_12().for_serialize())
}

/// Returns the JSON Schema of an open question as data: what the native API and MCP have in `questions`.
///
/// ```
/// let schema = polylogue_server::asked_schema();
/// assert_eq!(schema["properties"]["kind"]["enum"][1], "turn");
/// ```
pub fn asked_schema() -> Value {
    of_reply::<PendingQuestion>()
}

fn inline<T: JsonSchema>(settings: SchemaSettings) -> Value {
    let settings = settings.with_transform(RecursiveTransform(list_words)).with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>();
    schema.ensure_object().shift_remove("title");
    schema.to_value()
}

fn without_null(schema: &mut Schema) {
    let Some(fields) = schema.as_object_mut() else { return };
    let kinds = fields.get("type").and_then(Value::as_array);
    if let Some(kind) = kinds.and_then(|kinds| kinds.iter().find(|kind| **kind != "null")).cloned() {
        fields.insert("type".into(), kind);
    }
    let either = fields.get("anyOf").and_then(Value::as_array).map(Vec::as_slice);
    if let Some([Value::Object(one), null]) = either
        && null.get("type").is_some_and(|kind| kind == "null")
    {
        for (name, value) in one.clone() {
            fields.entry(name).or_insert(value);
        }
        fields.shift_remove("anyOf");
    }
}

/// Lists the words of an enum, without what each of them means.
fn list_words(schema: &mut Schema) {
    let Some(fields) = schema.as_object_mut() else { return };
    let kinds = fields.get("oneOf").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default();
    let words: Option<Vec<Value>> = kinds.iter().map(|kind| kind.get("const").cloned()).collect();
    if let Some(words) = words.filter(|words| !words.is_empty()) {
        fields.shift_remove("oneOf");
        fields.insert("enum".into(), words.into());
    }
}

#[cfg(test)]
mod tests {
    use polylogue_wire::conversation::{Fork, NewConversation, Stop};
    use serde_json::json;

    use super::*;

    /// `schema` without descriptions and formats.
    fn bare(mut schema: Value) -> Value {
        match &mut schema {
            Value::Object(fields) => {
                fields
                    .retain(|name, value| name != "format" && !(name == "description" && value.is_string()));
                fields.values_mut().for_each(|value| *value = bare(value.take()));
            }
            Value::Array(items) => items.iter_mut().for_each(|item| *item = bare(item.take())),
            _ => {}
        }
        schema
    }

    #[test]
    fn optional_fields_of_requests_are_left_out_and_not_null() {
        let count = json!({"type": "integer", "minimum": 0});
        assert_eq!(
            bare(of_request::<Fork>()),
            json!({
                "type": "object",
                "properties": {
                    "seq": count,
                    "text": {"type": "string"},
                    "team": {"type": "string"},
                    "run": {"type": "boolean", "default": false},
                },
            })
        );
        let when = json!({"enum": ["after_step", "now"], "default": "after_step"});
        assert_eq!(bare(of_request::<Stop>())["properties"]["when"], when);
        let new = bare(of_request::<NewConversation>());
        assert_eq!(new["required"], json!(["team"]));
        let limits = &new["properties"]["limits"];
        assert_eq!(limits["properties"]["on_limit"], json!({"enum": ["stop", "ask"]}));
        assert_eq!(limits["properties"]["calls"], json!({"type": "integer", "minimum": 1}));
        assert_eq!(limits["additionalProperties"], json!(false));
    }

    #[test]
    fn fields_that_replies_leave_out_are_optional_and_others_are_null() {
        let asked = bare(of_reply::<PendingQuestion>());
        let required = ["question", "chat", "who", "text", "kind", "choices", "call", "asked_ms", "until_ms"];
        assert_eq!(asked["required"], json!(required));
        assert_eq!(asked["properties"]["until_ms"], json!({"type": ["integer", "null"], "minimum": 0}));
        assert_eq!(asked["properties"]["kind"]["enum"][1], "turn");
    }
}
