//! What OpenAI asks of JSON schemas, of those of replies and of those of arguments. Others ask a part of it.

use serde_json::Value;

use super::rules::{Checked, Object, object};

/// Keywords that a schema cannot have at its root.
const NOT_AT_ROOT: [&str; 6] = ["oneOf", "anyOf", "allOf", "enum", "const", "not"];

/// Keywords that a schema which is enforced can have.
const STRICT: [&str; 22] = [
    "$schema", "$defs", "definitions", "type", "title", "description", "enum", "const", "anyOf", "format",
    "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "items",
    "minItems", "maxItems", "properties", "required", "additionalProperties",
];

/// Formats of texts in a schema which is enforced.
const FORMATS: [&str; 9] =
    ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"];

/// Checks that a schema is that of an object, without alternatives at its root.
pub(super) fn of_object(schema: &Value) -> Checked {
    let fields = object(schema, "schema")?;
    let kind = fields.get("type");
    if kind.and_then(Value::as_str) != Some("object") {
        let kind = kind.map_or_else(|| "null".to_owned(), Value::to_string);
        return invalid(&format!("schema must be a JSON Schema of 'type: \"object\"', got 'type: {kind}'."));
    }
    match NOT_AT_ROOT.iter().any(|name| fields.contains_key(*name)) {
        true => invalid(
            "schema must have type 'object' and not have 'oneOf'/'anyOf'/'allOf'/'enum'/'const'/'not' at the top level.",
        ),
        false => Ok(()),
    }
}

/// Checks the schema of arguments that is not enforced: that of an object with its properties, in which a list says what its
/// elements are.
pub(super) fn arguments(schema: &Value) -> Checked {
    of_object(schema)?;
    match schema.get("properties") {
        Some(Value::Object(_)) => with_items(schema),
        _ => invalid("object schema missing properties."),
    }
}

fn with_items(schema: &Value) -> Checked {
    let Some(fields) = schema.as_object() else { return Ok(()) };
    if is_of(fields, "array") && !fields.contains_key("items") {
        return invalid("array schema missing items.");
    }
    inner(fields).try_for_each(with_items)
}

/// Checks a schema that is to be enforced.
pub(super) fn strict(schema: &Value) -> Checked {
    of_object(schema)?;
    enforced(schema, 0)
}

fn invalid(why: &str) -> Checked {
    Err(format!("Invalid schema: {why}"))
}

/// Checks that every value has a type, all objects are closed and all properties required, and that nothing unsupported is used.
fn enforced(schema: &Value, depth: usize) -> Checked {
    let Some(fields) = schema.as_object() else { return invalid("schema must have a 'type' key.") };
    if depth > 10 {
        return invalid("nested deeper than 10 levels.");
    }
    if fields.contains_key("$ref") {
        return match fields.keys().find(|name| *name != "$ref") {
            Some(name) => invalid(&format!("$ref cannot have keywords {{'{name}'}}.")),
            None => Ok(()),
        };
    }
    if !fields.contains_key("type") && !fields.contains_key("anyOf") {
        return invalid("schema must have a 'type' key.");
    }
    if let Some(name) = fields.keys().find(|name| !STRICT.contains(&name.as_str())) {
        return invalid(&format!("'{name}' is not permitted."));
    }
    let format = fields.get("format").map(|format| format.as_str().unwrap_or_default());
    if let Some(format) = format.filter(|format| !FORMATS.contains(format)) {
        return invalid(&format!("'{format}' is not a valid format."));
    }
    closed(fields)?;
    inner(fields).try_for_each(|schema| enforced(schema, depth + 1))
}

/// Checks that an object has only the properties that are listed, and all of them; and that a list has a schema of its elements.
fn closed(fields: &Object) -> Checked {
    if is_of(fields, "array") && !fields.contains_key("items") {
        return invalid("array schema missing items.");
    }
    if !is_of(fields, "object") && !fields.contains_key("properties") {
        return Ok(());
    }
    let Some(properties) = fields.get("properties").and_then(Value::as_object) else {
        return invalid("object schema missing properties.");
    };
    if fields.get("additionalProperties") != Some(&Value::Bool(false)) {
        return invalid("'additionalProperties' is required to be supplied and to be false.");
    }
    let required = fields.get("required").and_then(Value::as_array).into_iter().flatten();
    let required: Vec<&str> = required.filter_map(Value::as_str).collect();
    match properties.keys().find(|name| !required.contains(&name.as_str())) {
        Some(name) => invalid(&format!(
            "'required' is required to be supplied and to be an array including every key in properties. Missing '{name}'."
        )),
        None => Ok(()),
    }
}

/// Whether the type is `kind`, or can be.
fn is_of(fields: &Object, kind: &str) -> bool {
    match fields.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|one| one == kind),
        Some(one) => one == kind,
        None => false,
    }
}

/// The schemas directly within one.
pub(super) fn inner(fields: &Object) -> impl Iterator<Item = &Value> {
    let named = ["properties", "$defs", "definitions"].into_iter();
    let named = named.filter_map(move |name| fields.get(name)?.as_object());
    let listed = ["anyOf", "oneOf", "allOf", "prefixItems"].into_iter();
    let listed = listed.filter_map(move |name| fields.get(name)?.as_array());
    named.flat_map(|schemas| schemas.values()).chain(listed.flatten()).chain(fields.get("items"))
}
