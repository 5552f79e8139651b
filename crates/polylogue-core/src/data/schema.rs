//! What of a JSON schema is well formed. Schemas of tools are written by others, and a model server refuses a whole request
//! because of one keyword with a value that it cannot have.

use serde_json::{Value, json};

/// The types of JSON Schema.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
/// Keywords whose values are schemas.
const SCHEMAS: [&str; 5] = ["items", "additionalProperties", "not", "contains", "propertyNames"];
/// Keywords whose values are lists of schemas.
const LISTS: [&str; 4] = ["anyOf", "oneOf", "allOf", "prefixItems"];
/// Keywords whose values are schemas by name.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Returns whether `kind` is a type of JSON Schema.
///
/// ```
/// use polylogue_core::schema::is_type;
/// use serde_json::json;
///
/// assert!(is_type(&json!("string")) && !is_type(&json!("file")) && !is_type(&json!(["string"])));
/// ```
pub fn is_type(kind: &Value) -> bool {
    kind.as_str().is_some_and(|kind| TYPES.contains(&kind))
}

/// Returns whether `keyword` can have this value. Unknown keywords can have any.
///
/// ```
/// use polylogue_core::schema::can_be;
/// use serde_json::json;
///
/// assert!(can_be("maxLength", &json!(8)) && !can_be("maxLength", &json!("8")));
/// assert!(can_be("x-note", &json!("8")));
/// ```
pub fn can_be(keyword: &str, value: &Value) -> bool {
    match keyword {
        "type" => is_type(value) || is_list(value, is_type),
        "description" | "title" | "pattern" | "format" | "$ref" => value.is_string(),
        "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" => value.is_number(),
        "multipleOf" => value.as_f64().is_some_and(|number| number > 0.0),
        "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
            value.is_u64()
        }
        "uniqueItems" => value.is_boolean(),
        "enum" => is_list(value, |_| true),
        "required" => value.as_array().is_some_and(|names| names.iter().all(Value::is_string)),
        named if NAMED.contains(&named) => value.is_object(),
        list if LISTS.contains(&list) => is_list(value, |_| true),
        schema if SCHEMAS.contains(&schema) => value.is_object() || value.is_boolean(),
        _ => true,
    }
}

/// Whether `value` is a list that is not empty, of values that `holds` for.
fn is_list(value: &Value, holds: impl Fn(&Value) -> bool) -> bool {
    value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(holds))
}

/// Returns `schema` without keywords that have a value which they [cannot have](can_be), in it and in all schemas within it. A
/// schema that is none allows anything.
///
/// ```
/// use polylogue_core::schema::well_formed;
/// use serde_json::json;
///
/// let given = json!({"type": "object", "properties": {"page": {"type": "file", "title": "A page"}}, "required": "page"});
/// assert_eq!(well_formed(&given), json!({"type": "object", "properties": {"page": {"title": "A page"}}}));
/// ```
pub fn well_formed(schema: &Value) -> Value {
    match schema {
        Value::Object(keywords) => {
            let formed = keywords.iter().filter(|(keyword, value)| can_be(keyword, value));
            formed.map(|(keyword, value)| (keyword.clone(), within(keyword, value))).collect()
        }
        Value::Bool(_) => schema.clone(),
        _ => json!({}),
    }
}

/// The value of a keyword that can have it.
fn within(keyword: &str, value: &Value) -> Value {
    match value {
        Value::Object(named) if NAMED.contains(&keyword) => {
            named.iter().map(|(name, schema)| (name.clone(), well_formed(schema))).collect()
        }
        Value::Array(list) if LISTS.contains(&keyword) => list.iter().map(well_formed).collect(),
        schema if SCHEMAS.contains(&keyword) => well_formed(schema),
        value => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_well_formed_stays_in_its_order() {
        let schema = json!({
            "required": ["type"], "type": ["object", "null"], "x-note": [1], "default": {"type": "file"},
            "properties": {
                "type": {"const": "a", "description": "D"},
                "any": true,
                "list": {"type": "array", "items": {"$ref": "#/$defs/d"}, "minItems": 0},
            },
            "anyOf": [{"required": ["list"]}, false], "additionalProperties": {"type": "string", "format": "uri"},
            "$defs": {"d": {"enum": [null, 1], "multipleOf": 0.5, "exclusiveMinimum": -1}},
        });
        assert_eq!(well_formed(&schema).to_string(), schema.to_string());
    }

    #[test]
    fn what_no_keyword_can_have_is_left_out_at_any_depth() {
        for (given, formed) in [
            (json!({"type": "file"}), json!({})),
            (json!({"type": ["string", "file"]}), json!({})),
            (json!({"type": []}), json!({})),
            (json!({"required": true, "properties": []}), json!({})),
            (json!({"enum": [], "anyOf": [], "oneOf": {}}), json!({})),
            (json!({"exclusiveMinimum": true, "minLength": -1, "multipleOf": 0}), json!({})),
            (json!({"items": [{"type": "string"}]}), json!({})),
            (json!({"items": {"type": "int"}}), json!({"items": {}})),
            (
                json!({"properties": {"a": "text", "b": {"pattern": 1}}}),
                json!({"properties": {"a": {}, "b": {}}}),
            ),
            (json!({"allOf": [{"$ref": 1}]}), json!({"allOf": [{}]})),
            (json!({"$defs": {"d": {"title": null}}}), json!({"$defs": {"d": {}}})),
            (json!("string"), json!({})),
        ] {
            assert_eq!(well_formed(&given), formed, "{given}");
        }
    }
}
