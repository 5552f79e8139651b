//! Schemas of tools without the words that describe them.

use rmcp::model::JsonObject;
use serde_json::Value;

/// Keywords whose values are schemas.
const OF_SCHEMAS: [&str; 6] = ["items", "prefixItems", "additionalProperties", "anyOf", "oneOf", "allOf"];
/// Keywords whose values are schemas by name.
const OF_NAMED: [&str; 3] = ["properties", "$defs", "definitions"];
/// Other keywords that say which arguments are valid.
const OF_VALUES: [&str; 16] = [
    "type", "required", "enum", "const", "$ref", "format", "pattern", "minimum", "maximum",
    "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems", "minLength", "maxLength",
];

/// What of `schema` says which arguments are valid: no descriptions, titles, examples, comments and unknown keywords.
pub(crate) fn structure(schema: &JsonObject) -> Value {
    let keep = |(keyword, value): (&String, &Value)| {
        let is = |keywords: &[&str]| keywords.contains(&keyword.as_str());
        let kept = match value {
            Value::Object(named) if is(&OF_NAMED) => {
                named.iter().map(|(name, schema)| (name.clone(), of_value(schema))).collect()
            }
            value if is(&OF_SCHEMAS) => of_value(value),
            value if is(&OF_VALUES) => value.clone(),
            _ => return None,
        };
        Some((keyword.clone(), kept))
    };
    schema.iter().filter_map(keep).collect()
}

/// A schema, a list of schemas, or a word about what is valid.
fn of_value(value: &Value) -> Value {
    match value {
        Value::Object(schema) => structure(schema),
        Value::Array(schemas) => schemas.iter().map(of_value).collect(),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_valid_stays_and_words_do_not() {
        let schema = json!({
            "type": "object", "title": "T", "description": "D", "$comment": "C", "x-note": "N", "required": ["description"],
            "properties": {
                "description": {"type": "string", "description": "D", "enum": ["a", "b"], "default": "a"},
                "of": {"anyOf": [{"type": "integer", "title": "T"}, {"$ref": "#/$defs/d"}], "examples": ["E"]},
                "any": true,
            },
            "$defs": {"d": {"type": "array", "items": {"type": "number", "minimum": 0, "description": "D"}}},
            "additionalProperties": false,
        });
        let expected = json!({
            "type": "object", "required": ["description"],
            "properties": {
                "description": {"type": "string", "enum": ["a", "b"]},
                "of": {"anyOf": [{"type": "integer"}, {"$ref": "#/$defs/d"}]},
                "any": true,
            },
            "$defs": {"d": {"type": "array", "items": {"type": "number", "minimum": 0}}},
            "additionalProperties": false,
        });
        assert_eq!(structure(schema.as_object().unwrap()), expected);
    }
}
