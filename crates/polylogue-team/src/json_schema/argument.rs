//! Arguments of commands and HTTP calls that no value satisfies.

use polylogue_tools::command::{Argument, Kind};

use super::satisfiable::{check_ranges, has_variable};
use crate::diagnostic::Report;
use crate::yaml::Node;

/// Reports keys of the `argument`, which is `declared` there, that contradict each other: no call could satisfy them, or none could omit the
/// argument.
pub(crate) fn check_argument(declared: &Node, argument: &Argument, report: &mut Report<'_>) {
    let Some(of) = declared.get("type").text().filter(|_| !report.has_error_at(&declared.get("type").span))
    else {
        return;
    };
    check_ranges(declared, &[of], report);
    check_choices(declared, argument, report);
    let default = declared.entry("default").map(|entry| (&entry.value.span, entry.value.to_value()));
    let Some((span, value)) = default.filter(|(_, value)| !has_variable(value)) else { return };
    if let Err(why) = argument.accept("default", &value) {
        report.error_with_hint(span, why, "change `default`, or what the argument allows");
    }
}

/// Reports choices of which none is of the type and within the range of the argument.
fn check_choices(declared: &Node, argument: &Argument, report: &mut Report<'_>) {
    let kind = if argument.kind == Kind::Strings { Kind::String } else { argument.kind };
    let one = Argument { kind, choices: Vec::new(), ..argument.clone() };
    let check = |choice: &Node| {
        let value = choice.to_value();
        if has_variable(&value) { Ok(()) } else { one.accept("choices", &value) }
    };
    let choices = declared.get("choices").items();
    if let Some(first) = choices.first()
        && choices.iter().all(|choice| check(choice).is_err())
        && let Err(why) = check(first)
    {
        let hint = match kind {
            Kind::String => "write texts such as `yes`, `no`, `null` and numbers in quotes",
            _ => "change `choices`, or the limits",
        };
        report.error_with_hint(&first.span, why, hint);
    }
}
