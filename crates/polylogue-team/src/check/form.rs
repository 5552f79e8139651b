//! Forms of answers, and examples of calls: they are what they can be.

use indexmap::IndexMap;
use polylogue_config::At;
use polylogue_core::Tool as _;
use serde_json::Value;

use crate::build::known_tools;
use crate::diagnostic::Report;
use crate::remote::GivenTool;
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
    report.error_with_hint(&node.span, "this is no type of JSON Schema", hint);
}

/// Reports arguments in the examples of tools that these do not take, and those that they need.
pub(super) fn check_examples(tools: &[At<GivenTool>], report: &mut Report<'_>) {
    for own in tools.iter().filter_map(|given| given.own()).filter(|own| !own.examples.is_empty()) {
        let known = known_tools();
        let found = known.iter().map(|tool| tool.spec()).find(|spec| spec.name == **own.tool);
        if let Some(spec) = found {
            own.examples
                .iter()
                .for_each(|example| check_args(&example.args, &spec.name, &spec.parameters, report));
        }
    }
}

fn check_args(
    args: &At<IndexMap<String, At<Value>>>,
    name: &str,
    parameters: &Value,
    report: &mut Report<'_>,
) {
    if !args.ok {
        return;
    }
    let takes: Vec<&str> = parameters.get("properties").map(keys).unwrap_or_default();
    for (key, value) in args.iter().filter(|(key, _)| !takes.contains(&key.as_str())) {
        let hint = suggest::hint(key, takes.iter().copied());
        report.error_with_hint(value.key(), format!("`{name}` takes no `{key}`"), hint);
    }
    let needs = parameters.get("required").and_then(Value::as_array).into_iter().flatten();
    for key in needs.filter_map(Value::as_str).filter(|key| !args.contains_key(*key)) {
        report.error(args.key(), format!("`{name}` needs the argument `{key}`"));
    }
}

fn keys(of: &Value) -> Vec<&str> {
    of.as_object().into_iter().flat_map(|of| of.keys().map(String::as_str)).collect()
}
