use serde_json::json;

use super::*;

/// A closed object with one property, which is required.
fn with(property: Value) -> Value {
    json!({"type": "object", "properties": {"a": property}, "required": ["a"], "additionalProperties": false})
}

#[test]
fn only_closed_schemas_with_all_properties_required_are_strict() {
    let closed = with(json!({"type": "string"}));
    let mut optional = closed.clone();
    optional["required"] = json!([]);
    let mut open = closed.clone();
    open["additionalProperties"] = json!(true);
    let mut empty = closed.clone();
    empty.as_object_mut().unwrap().shift_remove("properties");
    for (schema, strict) in [
        (closed.clone(), true),
        (optional.clone(), false),
        (open, false),
        (empty, false),
        (with(optional), false),
        (with(closed.clone()), true),
        (with(json!({"type": "array", "items": closed})), true),
        (json!({"type": "object"}), false),
    ] {
        assert_eq!(is_strict(&schema), strict, "{schema}");
    }
}

/// OpenAI: "schema must be a JSON Schema of 'type: \"object\"'", "... at the top level".
#[test]
fn only_schemas_of_objects_without_alternatives_at_the_root_are_strict() {
    let closed = with(json!({"type": "string"}));
    let mut alternatives = closed.clone();
    alternatives["anyOf"] = json!([closed.clone(), closed]);
    for schema in [
        alternatives.clone(),
        json!({"anyOf": alternatives["anyOf"]}),
        json!({"type": "array", "items": {"type": "string"}}),
        json!({"type": "string"}),
        json!({"enum": ["a"]}),
        json!({"$ref": "#/$defs/a", "$defs": {"a": with(json!({"type": "string"}))}}),
        json!(true),
    ] {
        assert!(!is_strict(&schema), "{schema}");
    }
    assert!(is_strict(&with(json!({"anyOf": alternatives["anyOf"]}))), "below the root they are");
}

/// OpenAI: "schema must have a 'type' key", "array schema missing items", "$ref cannot have keywords", "'uri' is not a valid format",
/// "'default' is not permitted".
#[test]
fn every_value_of_a_strict_schema_has_a_type_and_keywords_that_are_known() {
    for (property, strict) in [
        (json!({}), false),
        (json!(true), false),
        (json!({"description": "Anything."}), false),
        (json!({"enum": ["a"]}), false),
        (json!({"const": "a"}), false),
        (json!({"type": "anything"}), false),
        (json!({"type": "string", "enum": ["a"]}), true),
        (json!({"type": "string", "const": "a", "description": "One.", "title": "A"}), true),
        (json!({"type": ["string", "null"]}), true),
        (json!({"anyOf": [{"type": "string"}, {"type": "null"}]}), true),
        (json!({"anyOf": [{"type": "string"}, {}]}), false),
        (json!({"type": "array"}), false),
        (json!({"type": ["array", "null"]}), false),
        (json!({"type": "array", "items": {}}), false),
        (json!({"type": "array", "items": {"type": "string"}, "minItems": 1}), true),
        (json!({"type": "array", "items": {"type": "string"}, "uniqueItems": true}), false),
        (json!({"type": "string", "format": "date-time"}), true),
        (json!({"type": "string", "format": "uri"}), false),
        (json!({"type": "integer", "format": "int64"}), false),
        (json!({"type": "string", "default": "a"}), false),
        (json!({"type": "string", "pattern": "^a"}), true),
        (json!({"type": "string", "minLength": 1}), false),
        (json!({"type": "integer", "minimum": 1, "maximum": 9}), true),
        (json!({"oneOf": [{"type": "string"}]}), false),
        (json!({"type": "string", "not": {"const": "a"}}), false),
    ] {
        let schema = with(property);
        assert_eq!(is_strict(&schema), strict, "{schema}");
    }
    let named_like_a_keyword = json!({"type": "object", "properties": {"not": {"type": "string"}},
        "required": ["not"], "additionalProperties": false});
    assert!(is_strict(&named_like_a_keyword));
}

#[test]
fn references_of_a_strict_schema_lead_into_it_and_stand_alone() {
    for (reference, strict) in [
        (json!({"$ref": "#/$defs/name"}), true),
        (json!({"$ref": "#"}), true),
        (json!({"$ref": "#/$defs/gone"}), false),
        (json!({"$ref": "https://example.com/schema"}), false),
        (json!({"$ref": "#/$defs/name", "description": "The name."}), false),
    ] {
        let mut schema = with(reference);
        schema["$defs"] = json!({"name": {"type": "string"}});
        assert_eq!(is_strict(&schema), strict, "{schema}");
    }
    let mut untyped = with(json!({"$ref": "#/$defs/name"}));
    untyped["$defs"] = json!({"name": {"description": "Anything."}});
    assert!(!is_strict(&untyped));
}

#[test]
fn a_schema_of_any_size_is_looked_through_within_bounds() {
    let deep = |levels| {
        with((0..levels).fold(json!({"type": "string"}), |inner, _| json!({"type": "array", "items": inner})))
    };
    assert!(is_strict(&deep(8)));
    assert!(!is_strict(&deep(9)) && !is_strict(&deep(100)));
    let many = |count: usize| with(json!({"type": "integer", "enum": (0..count).collect::<Vec<_>>()}));
    assert!(is_strict(&many(1000)) && !is_strict(&many(1001)));
}
