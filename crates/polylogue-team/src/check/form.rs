//! Forms of answers, and examples of calls: they are what they can be.

use polylogue_core::Tool as _;
use serde_json::Value;

use crate::build::known_tools;
use crate::diagnostic::Report;
use crate::suggest;
use crate::yaml::{Data, Entry, Node};

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
    report.error_with_hint(&node.span, "this is no type of JSON Schema", hint);
}

/// Reports arguments in the examples of a tool that it does not take, and those that it needs.
pub(super) fn check_examples(tool: &Node, report: &mut Report<'_>) {
    let (Some(name), examples) = (tool.get("tool").text(), tool.get("examples").items()) else { return };
    if examples.is_empty() {
        return;
    }
    let tools = known_tools();
    let Some(spec) = tools.iter().map(|tool| tool.spec()).find(|spec| spec.name == name) else { return };
    let takes: Vec<&str> = spec.parameters.get("properties").map(keys).unwrap_or_default();
    let needs = spec.parameters.get("required").and_then(Value::as_array);
    for args in examples.iter().filter_map(|example| example.entry("args")) {
        let Data::Map(given) = &args.value.data else { continue };
        for entry in given.iter().filter(|entry| !takes.contains(&entry.key.as_str())) {
            let hint = suggest::hint(&entry.key, takes.iter().copied());
            report.error_with_hint(&entry.key_span, format!("`{name}` takes no `{}`", entry.key), hint);
        }
        let missing = |key: &&str| !given.iter().any(|entry| entry.key == *key);
        for key in needs.into_iter().flatten().filter_map(Value::as_str).filter(missing) {
            report.error(&args.key_span, format!("`{name}` needs the argument `{key}`"));
        }
    }
}

fn keys(of: &Value) -> Vec<&str> {
    of.as_object().into_iter().flat_map(|of| of.keys().map(String::as_str)).collect()
}
