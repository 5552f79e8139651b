//! Which JSON schemas OpenAI enforces.

use serde_json::{Map, Value};

/// Maximum depth of strict schemas.
const MAX_DEPTH: usize = 10;

/// Maximum size of strict schemas, as JSON in bytes: below the limits on properties and on the length of their names.
const MAX_SIZE: usize = 60_000;

/// Maximum number of constants of strict schemas.
const MAX_CONSTANTS: usize = 1000;

/// Keywords that strict schemas cannot have.
const REFUSED: [&str; 20] = [
    "allOf",
    "oneOf",
    "not",
    "if",
    "then",
    "else",
    "dependentRequired",
    "dependentSchemas",
    "patternProperties",
    "propertyNames",
    "minProperties",
    "maxProperties",
    "unevaluatedProperties",
    "unevaluatedItems",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "prefixItems",
    "contentSchema",
];

/// Whether `schema` is one that OpenAI accepts as strict: every object closed and all its properties required.
pub(crate) fn is_strict(schema: &Value) -> bool {
    let mut constants = 0;
    is_closed_within(schema, MAX_DEPTH, &mut constants)
        && constants <= MAX_CONSTANTS
        && schema.to_string().len() <= MAX_SIZE
}

/// Checks `schema` to a depth, and counts the constants that it lists.
fn is_closed_within(schema: &Value, depth: usize, constants: &mut usize) -> bool {
    let Some(deeper) = depth.checked_sub(1) else { return false };
    match schema {
        Value::Object(fields) => {
            let open = fields.get("type").is_some_and(names_object) || fields.contains_key("properties");
            (!open || is_closed(fields))
                && fields.iter().all(|(name, value)| is_allowed(name, value, deeper, constants))
        }
        _ => true,
    }
}

fn is_allowed(name: &str, value: &Value, depth: usize, constants: &mut usize) -> bool {
    match (name, value) {
        (name, _) if REFUSED.contains(&name) => false,
        // Names of properties and constant values are not keywords.
        ("properties" | "$defs" | "definitions", value) => value
            .as_object()
            .is_some_and(|members| members.values().all(|each| is_closed_within(each, depth, constants))),
        ("enum", Value::Array(values)) => {
            *constants += values.len();
            true
        }
        ("enum" | "const" | "default" | "examples", _) => true,
        (_, Value::Array(items)) => items.iter().all(|item| is_closed_within(item, depth, constants)),
        (_, value) => is_closed_within(value, depth, constants),
    }
}

fn names_object(kind: &Value) -> bool {
    kind == "object" || kind.as_array().is_some_and(|kinds| kinds.iter().any(|kind| kind == "object"))
}

fn is_closed(fields: &Map<String, Value>) -> bool {
    let required: Vec<&str> = fields
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).collect())
        .unwrap_or_default();
    let all_required = fields
        .get("properties")
        .and_then(Value::as_object)
        .is_some_and(|properties| properties.keys().all(|name| required.contains(&name.as_str())));
    all_required && fields.get("additionalProperties") == Some(&Value::Bool(false))
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_closed_schemas_with_all_properties_required_are_strict() {
        let closed = json!({"type": "object", "properties": {"a": {"type": "string"}},
                            "required": ["a"], "additionalProperties": false});
        let mut optional = closed.clone();
        optional["required"] = json!([]);
        let mut open = closed.clone();
        open["additionalProperties"] = json!(true);
        let nested = json!({"type": "object", "properties": {"a": optional.clone()},
                            "required": ["a"], "additionalProperties": false});
        let list = json!({"type": "array", "items": closed.clone()});
        let named_like_a_keyword = json!({"type": "object", "properties": {"not": {"type": "string"}},
                            "required": ["not"], "additionalProperties": false});
        for (schema, strict) in [
            (closed, true),
            (optional, false),
            (open, false),
            (nested, false),
            (list, true),
            (named_like_a_keyword, true),
            (json!({"type": "object"}), false),
            (json!({"oneOf": [{"type": "string"}]}), false),
            (json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}), false),
            (json!({"enum": (0..1000).collect::<Vec<_>>()}), true),
            (json!({"enum": (0..1001).collect::<Vec<_>>()}), false),
        ] {
            assert_eq!(is_strict(&schema), strict, "{schema}");
        }
    }

    #[test]
    fn a_schema_of_any_depth_is_looked_through_within_bounds() {
        let deep = |levels| (0..levels).fold(json!({"type": "string"}), |inner, _| json!({"items": inner}));
        assert!(is_strict(&deep(8)));
        assert!(!is_strict(&deep(500)));
    }
}
