//! JSON Schemas in team files.

use crate::diagnostic::Report;
use crate::suggest;
use crate::yaml::{Entry, Node};

/// What a value can be, in JSON Schema.
const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];
/// Keywords whose values are no schemas.
const VALUES: [&str; 5] = ["enum", "const", "default", "examples", "required"];
/// Keywords whose values have schemas by names of their own.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Reports types in the JSON Schema `schema` that there are not: no answer could satisfy it.
pub(crate) fn check_schema(schema: &Node, report: &mut Report<'_>) {
    for Entry { key, value, .. } in schema.entries() {
        match key.as_str() {
            "type" => value.one_or_many().iter().for_each(|of| check_type(of, report)),
            key if VALUES.contains(&key) => {}
            key if NAMED.contains(&key) => {
                value.entries().iter().for_each(|named| check_schema(&named.value, report));
            }
            _ => value.one_or_many().iter().for_each(|within| check_schema(within, report)),
        }
    }
}

fn check_type(node: &Node, report: &mut Report<'_>) {
    let known = node.text().is_some_and(|text| TYPES.contains(&text));
    // What holds a variable is known later.
    if known || node.text().is_some_and(|text| text.contains("{{")) || report.full() {
        return;
    }
    let hint = match node.text() {
        Some(text) => suggest::hint(text, TYPES),
        None if node.is_null() => "the type of nothing is `\"null\"`, in quotes".to_owned(),
        None => format!("there is {}", suggest::listed(TYPES)),
    };
    report.error_with_hint(&node.span, "this is not a JSON Schema type", hint);
}
