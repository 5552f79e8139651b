//! Arguments of commands and HTTP calls that no value satisfies.

use serde_json::Value;

use super::satisfiable::{check_ranges, check_types, has_variable, is_of, listed};
use crate::diagnostic::Report;
use crate::yaml::Node;

/// Reports keys of the argument `declared` that contradict each other: no call could satisfy them, or none could omit the argument.
pub(crate) fn check_argument(declared: &Node, report: &mut Report<'_>) {
    let Some(of) = declared.get("type").text() else { return };
    let (own, item) = if of == "strings" { ("array", "string") } else { (of, of) };
    check_ranges(declared, &[own], report);
    let choices = declared.get("choices").items();
    check_types(choices, "choices", &[item], report);
    check_choices_in_range(declared, choices, report);
    let Some(default) = declared.entry("default").filter(|entry| !has_variable(&entry.value.to_value()))
    else {
        return;
    };
    let value = default.value.to_value();
    let given = value.as_array().map_or_else(|| vec![value.clone()], Clone::clone);
    let is_choice = |value: &Value| choices.iter().any(|choice| choice.to_value() == *value);
    let message = if !is_of(&value, own) || !given.iter().all(|value| is_of(value, item)) && own == "array" {
        format!("the default is not {}", listed(&[of]))
    } else if !is_in_range(declared, &value) {
        "the default is not between `minimum` and `maximum`".to_owned()
    } else if !choices.is_empty() && !given.iter().all(is_choice) {
        "the default is not one of `choices`".to_owned()
    } else {
        return;
    };
    report.error_with_hint(&default.value.span, message, "change `default`, or what the argument allows");
}

/// Reports choices of which none is within the limits of the number.
fn check_choices_in_range(declared: &Node, choices: &[Node], report: &mut Report<'_>) {
    let is_allowed = |choice: &Node| is_in_range(declared, &choice.to_value());
    if let Some(first) = choices.first().filter(|_| !choices.iter().any(is_allowed)) {
        let hint = "change `choices`, or the limits";
        report.error_with_hint(&first.span, "no choice is between `minimum` and `maximum`", hint);
    }
}

fn is_in_range(declared: &Node, value: &Value) -> bool {
    let limit = |key: &str| declared.entry(key).and_then(|entry| entry.value.to_value().as_f64());
    let Some(number) = value.as_f64() else { return true };
    limit("minimum").is_none_or(|least| number >= least) && limit("maximum").is_none_or(|most| number <= most)
}
