//! Schemas that Gemini enforces: `const` as `enum`, nothing next to `$ref`, recursion only through optional properties.
//!
//! <https://ai.google.dev/gemini-api/docs/structured-output#json_schema_support>

use serde_json::Value;

use super::{Object, Unfit, check_references, const_to_enum, each_inner, move_to_description};

/// Keywords that are enforced.
const KEYWORDS: [&str; 22] = [
    "$defs", "definitions", "$ref", "$anchor", "type", "format", "title", "description", "enum", "items",
    "prefixItems", "minItems", "maxItems", "minimum", "maximum", "anyOf", "oneOf", "properties",
    "additionalProperties", "required", "propertyOrdering", "nullable",
];

/// `schema` in the form that is enforced.
///
/// # Errors
/// When it cannot be enforced, so that JSON has to be asked for in words.
pub(crate) fn enforced(schema: &Value) -> Result<Value, Unfit> {
    check_references(schema, true)?;
    let mut fit = schema.clone();
    rewrite(&mut fit)?;
    Ok(fit)
}

fn rewrite(schema: &mut Value) -> Result<(), Unfit> {
    let Value::Object(object) = schema else { return Err(Unfit::Untyped) };
    if let Some(reference) = object.get("$ref").cloned() {
        // Definitions are needed; what else stands next to a reference is refused.
        object.retain(|keyword, _| matches!(keyword.as_str(), "$defs" | "definitions"));
        object.insert("$ref".into(), reference);
    }
    inline_single(object);
    const_to_enum(object);
    let is_listable = |value: &Value| value.is_string() || value.is_number();
    move_to_description(object, |keyword, value| match keyword {
        "enum" => value.as_array().is_some_and(|values| values.iter().all(is_listable)),
        _ => KEYWORDS.contains(&keyword),
    });
    each_inner(object, |_, inner| rewrite(inner))
}

/// Replaces an `allOf` with one schema by that schema, as generators write it to describe a reference.
fn inline_single(schema: &mut Object) {
    let Some(Value::Array(all)) = schema.get("allOf") else { return };
    let [Value::Object(single)] = all.as_slice() else { return };
    let single = single.clone();
    schema.shift_remove("allOf");
    if single.contains_key("$ref") {
        schema.retain(|keyword, _| matches!(keyword.as_str(), "$defs" | "definitions"));
    }
    for (keyword, value) in single {
        schema.entry(keyword).or_insert(value);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn unsupported_keywords_are_rewritten() {
        let schema = json!({
            "$schema": "x",
            "type": "object",
            "properties": {
                "kind": {"const": "cat"},
                "flag": {"type": "boolean", "const": true},
                "name": {"type": "string", "pattern": "^a", "maxLength": 4},
                "age": {"type": "integer", "minimum": 0, "exclusiveMaximum": 9},
                "color": {"$ref": "#/$defs/Color", "description": "Its color."},
                "other": {"allOf": [{"$ref": "#/$defs/Color"}], "description": "Another."},
                "both": {"allOf": [{"type": "string"}, {"minLength": 1}]},
                "one": {"oneOf": [{"type": "string"}, {"type": "null"}]},
            },
            "additionalProperties": false,
            "$defs": {"Color": {"enum": ["red", "blue"]}},
        });
        assert_eq!(
            enforced(&schema).unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "kind": {"enum": ["cat"]},
                    "flag": {"type": "boolean", "description": "(enum: [true])"},
                    "name": {"type": "string", "description": "(pattern: \"^a\", maxLength: 4)"},
                    "age": {"type": "integer", "minimum": 0, "description": "(exclusiveMaximum: 9)"},
                    "color": {"$ref": "#/$defs/Color"},
                    "other": {"$ref": "#/$defs/Color"},
                    "both": {"description": "(allOf: [{\"type\":\"string\"},{\"minLength\":1}])"},
                    "one": {"oneOf": [{"type": "string"}, {"type": "null"}]},
                },
                "additionalProperties": false,
                "$defs": {"Color": {"enum": ["red", "blue"]}},
            })
        );
    }

    #[test]
    fn recursion_is_allowed_through_optional_properties_only() {
        let list = |required: Value| {
            json!({
                "$ref": "#/$defs/Node",
                "$defs": {"Node": {
                    "type": "object",
                    "properties": {"next": {"$ref": "#/$defs/Node"}},
                    "required": required,
                }},
            })
        };
        assert_eq!(enforced(&list(json!([]))), Ok(list(json!([]))));
        assert_eq!(enforced(&list(json!(["next"]))), Err(Unfit::Recursive));
        assert_eq!(enforced(&json!({"$ref": "#/$defs/Gone"})), Err(Unfit::Reference));
    }
}
