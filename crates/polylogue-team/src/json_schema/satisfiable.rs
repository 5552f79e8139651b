//! JSON Schemas that no value satisfies.

use serde_json::Value;

use crate::diagnostic::Report;
use crate::yaml::{Data, Node};

/// What a value can be, in JSON Schema.
pub(super) const TYPES: [&str; 7] = ["string", "number", "integer", "boolean", "object", "array", "null"];

/// Keywords for a least and for a most, whether equal ones exclude each other, and the type that they apply to.
const RANGES: [(&str, &str, bool, &str); 7] = [
    ("minimum", "maximum", false, "number"),
    ("exclusiveMinimum", "maximum", true, "number"),
    ("minimum", "exclusiveMaximum", true, "number"),
    ("exclusiveMinimum", "exclusiveMaximum", true, "number"),
    ("minLength", "maxLength", false, "string"),
    ("minItems", "maxItems", false, "array"),
    ("minProperties", "maxProperties", false, "object"),
];

/// Reports keywords of `schema` that contradict each other. Schemas within it are not looked at, but for the types of `allOf`.
pub(super) fn check(schema: &Node, report: &mut Report<'_>) {
    if report.full() {
        return;
    }
    let types = types_of(schema);
    check_ranges(schema, &types, report);
    check_required(schema, &types, report);
    check_values(schema, &types, report);
    check_parts(schema, types, report);
}

/// Reports parts of `allOf` of whose types no value is that is of those before, too.
fn check_parts<'s>(schema: &'s Node, mut types: Vec<&'s str>, report: &mut Report<'_>) {
    for part in schema.get("allOf").items() {
        let others = types_of(part);
        let is_common = |of: &&str| others.iter().any(|other| overlaps(of, other));
        if types.is_empty() {
            types = others;
        } else if others.is_empty() || types.iter().any(is_common) {
            types.retain(|of| others.is_empty() || is_common(of));
        } else {
            let message = format!("nothing is both {} and {}", listed(&types), listed(&others));
            report.error_with_hint(
                &part.span,
                message,
                "all of `allOf` apply together: `anyOf` has alternatives",
            );
        }
    }
}

/// The types that `schema` allows; empty if it allows all, or if that is not known.
fn types_of(schema: &Node) -> Vec<&str> {
    let types: Vec<&str> = schema.get("type").one_or_many().iter().filter_map(Node::text).collect();
    if types.iter().all(|of| TYPES.contains(of)) { types } else { Vec::new() }
}

/// Whether a value can be of both types.
fn overlaps(one: &str, other: &str) -> bool {
    let is_number = |of: &str| matches!(of, "number" | "integer");
    one == other || is_number(one) && is_number(other)
}

/// Whether only values of the type `of` are allowed.
fn allows_only(types: &[&str], of: &str) -> bool {
    !types.is_empty() && types.iter().all(|allowed| overlaps(allowed, of))
}

fn listed(types: &[&str]) -> String {
    types.iter().map(|of| format!("`{of}`")).collect::<Vec<_>>().join(" or ")
}

pub(super) fn check_ranges(schema: &Node, types: &[&str], report: &mut Report<'_>) {
    for (least, most, is_exclusive, of) in RANGES {
        let number = |key: &str| schema.entry(key).and_then(|entry| entry.value.to_value().as_f64());
        let Some((from, to)) = number(least).zip(number(most)).filter(|_| allows_only(types, of)) else {
            continue;
        };
        if from > to || is_exclusive && from >= to {
            let hint =
                format!("`{least}` must be {} `{most}`", if is_exclusive { "below" } else { "at most" });
            let message = format!("nothing has a `{least}` of {from} and a `{most}` of {to}");
            report.error_with_hint(&schema.get(least).span, message, hint);
        } else if types.iter().all(|of| *of == "integer") && !has_integer((least, from), (most, to)) {
            let hint = format!("change `{least}` or `{most}`, or write `type: number`");
            let message = format!("no integer has a `{least}` of {from} and a `{most}` of {to}");
            report.error_with_hint(&schema.get(least).span, message, hint);
        }
    }
}

/// Whether there is an integer between the values of two keywords.
fn has_integer((least, from): (&str, f64), (most, to): (&str, f64)) -> bool {
    let is_exclusive = |key: &str| key.starts_with("exclusive");
    let first = if is_exclusive(least) { from.floor() + 1.0 } else { from.ceil() };
    let last = if is_exclusive(most) { to.ceil() - 1.0 } else { to.floor() };
    first <= last
}

/// Reports required properties that are not allowed.
fn check_required(schema: &Node, types: &[&str], report: &mut Report<'_>) {
    if !allows_only(types, "object") {
        return;
    }
    let is_closed = schema.get("additionalProperties").to_value() == Value::Bool(false)
        && schema.entry("patternProperties").is_none();
    let allowed = schema.get("properties");
    for name in schema.get("required").items() {
        let Some(text) = name.text().filter(|text| !text.contains("{{")) else { continue };
        let refused = match allowed.entry(text).map(|own| &own.value.data) {
            Some(Data::Bool(false)) => {
                Some((format!("`{text}: false`"), format!("write a schema for `{text}`")))
            }
            None if is_closed => {
                Some(("`additionalProperties: false`".to_owned(), format!("add `{text}` to `properties`")))
            }
            _ => None,
        };
        if let Some((what, advice)) = refused {
            let message = format!("`{text}` is required, and {what} does not allow it");
            let hint = format!("{advice}, or remove it from `required`");
            report.error_with_hint(&name.span, message, hint);
        }
    }
}

/// Reports lists of values of which none is of the type, or within the limits.
fn check_values(schema: &Node, types: &[&str], report: &mut Report<'_>) {
    if let Some(of) = schema.entry("enum") {
        let values = of.value.items();
        if values.is_empty() && of.value.to_value().is_array() {
            let hint = "list the values that are allowed, or remove `enum`";
            return report.error_with_hint(&of.value.span, "nothing is one of no values", hint);
        }
        check_list(values, "enum", (schema, types), report);
    }
    if let Some(of) = schema.entry("const") {
        check_list(std::slice::from_ref(&of.value), "const", (schema, types), report);
    }
    check_const(schema, report);
}

/// Reports a `const` that is not among the values of `enum`.
fn check_const(schema: &Node, report: &mut Report<'_>) {
    let Some((list, only)) = schema.entry("enum").zip(schema.entry("const")) else { return };
    let only_value = only.value.to_value();
    let values: Vec<Value> = list.value.items().iter().map(Node::to_value).collect();
    let is_open = values.is_empty() || values.iter().chain([&only_value]).any(has_variable);
    if !is_open && !values.iter().any(|value| is_equal(value, &only_value)) {
        let hint = "change `const`, or add its value to `enum`";
        report.error_with_hint(&only.value.span, "the value of `const` is not one of `enum`", hint);
    }
}

/// Whether both are one value in JSON Schema, in which `1` and `1.0` are one number.
fn is_equal(one: &Value, other: &Value) -> bool {
    let numbers = one.as_f64().zip(other.as_f64());
    one == other || numbers.is_some_and(|(one, other)| one.total_cmp(&other).is_eq())
}

/// The same for the `values` of one `key` of `schema`, which has these `types`.
fn check_list(values: &[Node], key: &str, (schema, types): (&Node, &[&str]), report: &mut Report<'_>) {
    let is_typed =
        |value: &Value| types.is_empty() || types.iter().any(|of| is_of(value, of)) || has_variable(value);
    let values: Vec<(&Node, Value)> = values.iter().map(|value| (value, value.to_value())).collect();
    let Some((first, value)) = values.first() else { return };
    if !values.iter().any(|(_, value)| is_typed(value)) {
        let message = format!("no value of `{key}` is {}", listed(types));
        let is_word = value.is_boolean() || value.is_number() || value.is_null();
        let hint = match types.contains(&"string") && is_word {
            true => "write texts such as `yes`, `no`, `null` and numbers in quotes".to_owned(),
            false => format!("change `type`, or the values of `{key}`"),
        };
        return report.error_with_hint(&first.span, message, hint);
    }
    let fits = |value: &Value| is_typed(value) && broken_limit(value, schema).is_none();
    let broken = || values.iter().find_map(|(at, value)| Some((at, broken_limit(value, schema)?)));
    if !values.iter().any(|(_, value)| fits(value))
        && let Some((at, limit)) = broken()
    {
        let hint = format!("change `{limit}`, or the values of `{key}`");
        report.error_with_hint(&at.span, format!("no value of `{key}` satisfies `{limit}`"), hint);
    }
}

/// The keyword of `schema` whose limit `value` does not satisfy.
fn broken_limit(value: &Value, schema: &Node) -> Option<&'static str> {
    let count = |count: usize| u32::try_from(count).ok().map(f64::from);
    let (size, of) = match value {
        Value::Number(number) => (number.as_f64(), "number"),
        Value::String(text) if !has_variable(value) => (count(text.chars().count()), "string"),
        Value::Array(items) => (count(items.len()), "array"),
        Value::Object(fields) => (count(fields.len()), "object"),
        _ => return None,
    };
    let (size, limit) = (size?, |key: &str| schema.entry(key)?.value.to_value().as_f64());
    RANGES.into_iter().filter(|(.., applies_to)| *applies_to == of).find_map(|(least, most, ..)| {
        let is_exclusive = |key: &str| key.starts_with("exclusive");
        let below = limit(least).is_some_and(|from| size < from || is_exclusive(least) && size <= from);
        let above = limit(most).is_some_and(|to| size > to || is_exclusive(most) && size >= to);
        below.then_some(least).or(above.then_some(most))
    })
}

/// What holds a variable is known later.
pub(crate) fn has_variable(value: &Value) -> bool {
    value.as_str().is_some_and(|text| text.contains("{{"))
}

pub(crate) fn is_of(value: &Value, of: &str) -> bool {
    match of {
        "string" => value.is_string(),
        "number" => value.is_number(),
        "integer" => value.as_f64().is_some_and(|number| number.fract() == 0.0),
        "boolean" => value.is_boolean(),
        "object" => value.is_object(),
        "array" => value.is_array(),
        _ => value.is_null(),
    }
}
