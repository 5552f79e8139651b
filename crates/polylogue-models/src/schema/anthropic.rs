//! Schemas that Anthropic enforces: all objects closed, no recursion, no limits of values.
//!
//! <https://docs.claude.com/en/docs/build-with-claude/structured-outputs#json-schema-limitations>

use serde_json::Value;

use super::{Object, Unfit, check_references, each_inner, move_to_description, strings};

/// The most optional properties in a whole schema.
const MAX_OPTIONAL: usize = 24;

/// The most properties with alternatives in a whole schema.
const MAX_UNIONS: usize = 16;

/// Keywords that are enforced.
const KEYWORDS: [&str; 15] = [
    "type", "enum", "const", "anyOf", "allOf", "$ref", "$defs", "definitions", "properties", "required",
    "items", "additionalProperties", "title", "description", "default",
];

/// Formats of texts that are enforced.
const FORMATS: [&str; 10] =
    ["date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid"];

/// `schema` in the form that is enforced.
///
/// # Errors
/// When it cannot be enforced, so that JSON has to be asked for in words.
pub(crate) fn enforced(schema: &Value) -> Result<Value, Unfit> {
    check_references(schema, false)?;
    let mut fit = schema.clone();
    let mut counts = Counts::default();
    rewrite(&mut fit, &mut counts)?;
    match counts {
        Counts { optional, .. } if optional > MAX_OPTIONAL => Err(Unfit::Optional(MAX_OPTIONAL)),
        Counts { unions, .. } if unions > MAX_UNIONS => Err(Unfit::Unions(MAX_UNIONS)),
        _ => Ok(fit),
    }
}

#[derive(Default)]
struct Counts {
    optional: usize,
    unions: usize,
}

fn rewrite(schema: &mut Value, counts: &mut Counts) -> Result<(), Unfit> {
    let Value::Object(object) = schema else { return Err(Unfit::Untyped) };
    if let Some(alternatives) = object.shift_remove("oneOf") {
        object.entry("anyOf").or_insert(alternatives);
    }
    counts.unions +=
        usize::from(object.contains_key("anyOf") || object.get("type").is_some_and(Value::is_array));
    if object.contains_key("properties") || is_object(object) {
        close(object, counts)?;
    }
    move_to_description(object, |keyword, value| match keyword {
        "format" => value.as_str().is_some_and(|format| FORMATS.contains(&format)),
        // One element or none can be required.
        "minItems" => value.as_u64().is_some_and(|least| least <= 1),
        _ => KEYWORDS.contains(&keyword),
    });
    each_inner(object, |keyword, inner| match keyword {
        "additionalProperties" => Ok(()),
        _ => rewrite(inner, counts),
    })
}

fn is_object(schema: &Object) -> bool {
    match schema.get("type") {
        Some(Value::String(kind)) => kind == "object",
        Some(kinds) => strings(Some(kinds)).any(|kind| kind == "object"),
        None => false,
    }
}

/// Forbids properties that are not listed, unless the schema wants some.
fn close(schema: &mut Object, counts: &mut Counts) -> Result<(), Unfit> {
    let listed = schema.get("properties").and_then(Value::as_object);
    let names: Vec<&String> = listed.into_iter().flat_map(serde_json::Map::keys).collect();
    let is_open = match schema.get("additionalProperties") {
        // An object of which nothing is said can hold anything.
        None => names.is_empty(),
        Some(others) => others != &Value::Bool(false),
    };
    if is_open || schema.contains_key("patternProperties") {
        return Err(Unfit::Open);
    }
    let required: Vec<&str> = strings(schema.get("required")).collect();
    counts.optional += names.iter().filter(|name| !required.contains(&name.as_str())).count();
    schema.insert("additionalProperties".into(), Value::Bool(false));
    Ok(())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn objects_are_closed_and_limits_move_into_descriptions() {
        let schema = json!({
            "$schema": "https://json-schema.org/draft/2020-12/schema",
            "type": "object",
            "properties": {
                "name": {"type": "string", "minLength": 2, "pattern": "^a", "description": "A name."},
                "when": {"type": "string", "format": "date"},
                "card": {"type": "string", "format": "card-number"},
                "tags": {"type": "array", "items": {"type": "integer", "maximum": 9}, "minItems": 1},
                "rest": {"type": "array", "items": {"type": "string"}, "minItems": 2},
                "kind": {"oneOf": [{"const": "a"}, {"type": "null"}]},
            },
            "required": ["name"],
        });
        assert_eq!(
            enforced(&schema).unwrap(),
            json!({
                "type": "object",
                "properties": {
                    "name": {"type": "string", "description": "A name. (minLength: 2, pattern: \"^a\")"},
                    "when": {"type": "string", "format": "date"},
                    "card": {"type": "string", "description": "(format: \"card-number\")"},
                    "tags": {
                        "type": "array",
                        "items": {"type": "integer", "description": "(maximum: 9)"},
                        "minItems": 1,
                    },
                    "rest": {"type": "array", "items": {"type": "string"}, "description": "(minItems: 2)"},
                    "kind": {"anyOf": [{"const": "a"}, {"type": "null"}]},
                },
                "required": ["name"],
                "additionalProperties": false,
            })
        );
    }

    #[test]
    fn what_cannot_be_enforced_is_unfit() {
        let node = json!({"$ref": "#/$defs/Node"});
        let recursive = json!({
            "$ref": "#/$defs/Node",
            "$defs": {"Node": {"type": "object", "properties": {"next": node}}},
        });
        let optional: Object =
            (0..25).map(|index| (format!("p{index}"), json!({"type": "string"}))).collect();
        let unions: Object =
            (0..17).map(|index| (format!("p{index}"), json!({"type": ["string", "null"]}))).collect();
        let names: Vec<_> = unions.keys().cloned().collect();
        for (schema, why) in [
            (recursive, Unfit::Recursive),
            (json!({"type": "object", "properties": {"a": {"$ref": "#"}}}), Unfit::Recursive),
            (json!({"type": "object"}), Unfit::Open),
            (json!({"type": "object", "properties": {}, "additionalProperties": true}), Unfit::Open),
            (json!({"type": "object", "additionalProperties": {"type": "string"}}), Unfit::Open),
            (json!({"type": "object", "properties": optional}), Unfit::Optional(24)),
            (json!({"type": "object", "properties": unions, "required": names}), Unfit::Unions(16)),
            (json!({"$ref": "https://example.com/schema"}), Unfit::Reference),
            (json!({"$ref": "#/$defs/Gone"}), Unfit::Reference),
            (json!({"type": "array", "items": {"anyOf": [true]}}), Unfit::Untyped),
        ] {
            assert_eq!(enforced(&schema), Err(why), "{schema}");
        }
    }

    #[test]
    fn a_shared_definition_is_no_recursion() {
        let schema = json!({
            "type": "object",
            "properties": {"a": {"$ref": "#/$defs/T"}, "b": {"$ref": "#/$defs/T"}},
            "required": ["a", "b"],
            "$defs": {"T": {"type": "string", "maxLength": 3}},
        });
        let fit = enforced(&schema).unwrap();
        assert_eq!(fit["$defs"]["T"], json!({"type": "string", "description": "(maxLength: 3)"}));
    }

    #[test]
    fn references_that_fork_at_every_step_are_followed_once_each() {
        let definitions: Object = (0..60)
            .map(|index| {
                let next = json!({"$ref": format!("#/$defs/D{}", index + 1)});
                let fork =
                    json!({"type": "object", "properties": {"a": next, "b": next}, "required": ["a", "b"]});
                (format!("D{index}"), if index < 59 { fork } else { json!({"type": "string"}) })
            })
            .collect();
        let schema = json!({"$ref": "#/$defs/D0", "$defs": definitions});
        assert!(matches!(enforced(&schema), Ok(_) | Err(Unfit::Deep)));
    }

    #[test]
    fn a_schema_of_any_depth_is_unfit() {
        let mut schema = json!({"type": "string"});
        for _ in 0..100 {
            schema = json!({"type": "array", "items": schema});
        }
        assert_eq!(enforced(&schema), Err(Unfit::Deep));
    }
}
