//! JSON Schemas in team files.

mod argument;
mod keywords;
mod satisfiable;

pub(crate) use self::argument::check_argument;
use self::satisfiable::TYPES;
pub(crate) use self::satisfiable::{has_variable, is_of};
use crate::diagnostic::Report;
use crate::suggest;
use crate::yaml::{Entry, Node};

/// Keywords whose values are no schemas.
const VALUES: [&str; 5] = ["enum", "const", "default", "examples", "required"];
/// Keywords whose values have schemas by names of their own.
const NAMED: [&str; 4] = ["properties", "patternProperties", "$defs", "definitions"];

/// Keywords whose schemas are not to be satisfied, or not always.
const CONDITIONS: [&str; 2] = ["not", "if"];

/// Reports types in the JSON Schema `schema` that there are not, keywords with values of the wrong form, and keywords that contradict each
/// other: no answer could satisfy it.
pub(crate) fn check_schema(schema: &Node, report: &mut Report<'_>) {
    check_bare_properties(schema, report);
    check_within(schema, schema, true, report);
}

/// Reports properties where keywords belong, as in `{title: string}`: such a schema requires nothing, and providers refuse it.
fn check_bare_properties(schema: &Node, report: &mut Report<'_>) {
    let type_of = |entry: &Entry| entry.value.text().filter(|text| TYPES.contains(text)).map(str::to_owned);
    let is_property = |entry: &Entry| {
        let is_keyword = entry.key == "type" || VALUES.contains(&&*entry.key) || keywords::is_one(&entry.key);
        let has_type = entry.value.entries().iter().any(|within| within.key == "type");
        !is_keyword && (has_type || type_of(entry).is_some())
    };
    let entries = schema.entries();
    let Some(first) = entries.first().filter(|_| entries.iter().all(is_property)) else { return };
    let of = type_of(first).map_or_else(|| "...".to_owned(), |of| format!("{{type: {of}}}"));
    report.error_with_hint(
        &first.key_span,
        format!("`{}` is not a keyword of JSON Schema", first.key),
        format!("write `{{type: object, properties: {{{}: {of}}}}}`", first.key),
    );
}

/// The same for `schema` within `root`, where it is to be satisfied or not.
fn check_within(schema: &Node, root: &Node, is_wanted: bool, report: &mut Report<'_>) {
    keywords::check(schema, root, report);
    if is_wanted {
        satisfiable::check(schema, report);
    }
    for Entry { key, value, .. } in schema.entries() {
        match key.as_str() {
            "type" => value.one_or_many().iter().for_each(|of| check_type(of, report)),
            key if VALUES.contains(&key) => {}
            key if NAMED.contains(&key) => {
                value.entries().iter().for_each(|named| check_within(&named.value, root, is_wanted, report));
            }
            key => {
                let is_wanted = is_wanted && !CONDITIONS.contains(&key);
                value.one_or_many().iter().for_each(|within| check_within(within, root, is_wanted, report));
            }
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
        None => suggest::there_are(TYPES),
    };
    report.error_with_hint(&node.span, "this is not a JSON Schema type", hint);
}
