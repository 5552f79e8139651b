//! Keywords of JSON Schemas with values of the wrong form: providers refuse such schemas, or nothing is checked by them.

use super::satisfiable::TYPES;
use crate::diagnostic::Report;
use crate::suggest;
use crate::yaml::{Data, Entry, Node};

/// The form that the value of a keyword has.
#[derive(Clone, Copy)]
enum Form {
    Schema,
    /// One, or in older drafts a list of them.
    SchemaOrList,
    Schemas,
    NamedSchemas,
    Names,
    List,
    Count,
    Number,
    Pattern,
    Reference,
}

impl Form {
    /// That of `keyword`, if it is known.
    fn of(keyword: &str) -> Option<Self> {
        Some(match keyword {
            "additionalProperties" | "not" | "if" | "then" | "else" | "contains" | "propertyNames" => {
                Self::Schema
            }
            "items" => Self::SchemaOrList,
            "allOf" | "anyOf" | "oneOf" | "prefixItems" => Self::Schemas,
            "properties" | "patternProperties" | "$defs" | "definitions" => Self::NamedSchemas,
            "required" => Self::Names,
            "enum" => Self::List,
            "minLength" | "maxLength" | "minItems" | "maxItems" | "minProperties" | "maxProperties" => {
                Self::Count
            }
            "minimum" | "maximum" | "exclusiveMinimum" | "exclusiveMaximum" | "multipleOf" => Self::Number,
            "pattern" => Self::Pattern,
            "$ref" => Self::Reference,
            _ => return None,
        })
    }
}

/// Whether `keyword` is one whose value has a form.
pub(super) fn is_one(keyword: &str) -> bool {
    Form::of(keyword).is_some()
}

/// Reports keywords of `schema`, which is `root` or within it, whose values have the wrong form. Schemas within it are not looked at.
pub(super) fn check(schema: &Node, root: &Node, report: &mut Report<'_>) {
    for Entry { key, value, .. } in schema.entries() {
        let Some(form) = Form::of(key).filter(|_| !is_known_later(value)) else { continue };
        if report.full() {
            return;
        }
        match (form, value.text()) {
            _ if !has_form(value, form) => {
                let (what, hint) = expected(form, value);
                report.error_with_hint(&value.span, format!("`{key}` is not {what}"), hint);
            }
            (Form::NamedSchemas, _) => check_named(value, report),
            (Form::Pattern, Some(pattern)) => check_pattern(pattern, value, report),
            (Form::Reference, Some(reference)) => check_reference(reference, value, root, report),
            _ => {}
        }
    }
}

/// Whether it holds a variable.
fn is_known_later(value: &Node) -> bool {
    value.text().is_some_and(|text| text.contains("{{"))
}

fn has_form(value: &Node, form: Form) -> bool {
    match form {
        Form::Schema => is_schema(value),
        Form::SchemaOrList => is_schema(value) || is_list_of_schemas(value),
        Form::Schemas => is_list_of_schemas(value),
        Form::NamedSchemas => matches!(value.data, Data::Map(_)),
        Form::Names => is_list(value) && value.items().iter().all(|name| name.text().is_some()),
        Form::List => is_list(value),
        Form::Count => matches!(&value.data, Data::Number(number) if is_count(number.as_f64())),
        Form::Number => matches!(value.data, Data::Number(_)),
        Form::Pattern | Form::Reference => value.text().is_some(),
    }
}

fn is_schema(value: &Node) -> bool {
    matches!(value.data, Data::Map(_) | Data::Bool(_))
}

const fn is_list(value: &Node) -> bool {
    matches!(value.data, Data::List(_))
}

fn is_list_of_schemas(value: &Node) -> bool {
    let is_item = |item: &Node| is_schema(item) || is_known_later(item);
    !value.items().is_empty() && value.items().iter().all(is_item)
}

fn is_count(number: Option<f64>) -> bool {
    number.is_some_and(|number| number >= 0.0 && number.fract() == 0.0)
}

/// What a value of the form is, and what to write instead of `value`.
fn expected(form: Form, value: &Node) -> (&'static str, String) {
    let (what, example) = match form {
        Form::Schema | Form::SchemaOrList => return ("a JSON Schema", hint_for_schema(value)),
        Form::Schemas => ("a list of at least one JSON Schema", "`[{type: string}, {type: integer}]`"),
        Form::NamedSchemas => ("a mapping of names to JSON Schemas", "`{title: {type: string}}`"),
        Form::Names => ("a list of the names of properties", "`required: [title]` after `properties`"),
        Form::List => ("a list of values", "`[low, high]`"),
        Form::Count => ("a whole number, at least 0", "`1`"),
        Form::Number => ("a number", "`0.5`"),
        Form::Pattern | Form::Reference => ("a text", "`\"123\"`, in quotes"),
    };
    (what, format!("write one, such as {example}"))
}

/// What to write instead of `value`, where a schema belongs.
fn hint_for_schema(value: &Node) -> String {
    let of = value.text().filter(|text| TYPES.contains(text)).unwrap_or("string");
    format!("write a mapping, such as `{{type: {of}}}`")
}

fn check_named(named: &Node, report: &mut Report<'_>) {
    for Entry { key, value, .. } in named.entries() {
        if !is_schema(value) && !is_known_later(value) {
            let message = format!("`{key}` is not a JSON Schema");
            report.error_with_hint(&value.span, message, hint_for_schema(value));
        }
    }
}

fn check_pattern(pattern: &str, value: &Node, report: &mut Report<'_>) {
    if let Some(why) = mistake_in(pattern) {
        let message = format!("`{pattern}` is not a valid regular expression: {why}");
        report.error_with_hint(&value.span, message, "add what is missing, or `\\` before the character");
    }
}

/// What the brackets of the regular expression `pattern` lack, in any dialect.
fn mistake_in(pattern: &str) -> Option<&'static str> {
    let (mut is_in_class, mut open, mut can_repeat) = (false, 0_usize, false);
    let mut rest = pattern.chars().peekable();
    while let Some(next) = rest.next() {
        let could_repeat = std::mem::replace(&mut can_repeat, true);
        match next {
            '\\' if rest.next().is_none() => return Some("nothing follows its last `\\`"),
            '\\' => {}
            ']' => is_in_class = false,
            _ if is_in_class => {}
            '[' => is_in_class = true,
            '(' => {
                open += 1;
                // Such as `(?:` and `(?=`.
                can_repeat = rest.next_if_eq(&'?').is_some();
            }
            ')' => match open.checked_sub(1) {
                Some(fewer) => open = fewer,
                None => return Some("nothing opens a `)`"),
            },
            '|' => can_repeat = false,
            '*' | '+' if !could_repeat => return Some("nothing precedes a `*` or `+`"),
            _ => {}
        }
    }
    match (is_in_class, open) {
        (true, _) => Some("nothing closes a `[`"),
        (false, 0) => None,
        (false, _) => Some("nothing closes a `(`"),
    }
}

fn check_reference(reference: &str, value: &Node, root: &Node, report: &mut Report<'_>) {
    // Others are names and addresses.
    let Some(path) = reference.strip_prefix("#/").filter(|path| !path.contains('%')) else { return };
    if find(root, path).is_some() {
        return;
    }
    let names = |within: &'static str| {
        root.get(within).entries().iter().map(move |entry| format!("#/{within}/{}", entry.key))
    };
    let known: Vec<String> = names("$defs").chain(names("definitions")).collect();
    let hint = match known.as_slice() {
        [] => "define it, such as by `$defs: {item: {type: string}}` and `#/$defs/item`".to_owned(),
        known => suggest::hint(reference, known.iter().map(String::as_str)),
    };
    report.error_with_hint(&value.span, format!("`{reference}` is not in this schema"), hint);
}

/// The value at the end of a JSON pointer without its first `/`.
fn find<'n>(root: &'n Node, path: &str) -> Option<&'n Node> {
    path.split('/').try_fold(root, |node, name| {
        let name = name.replace("~1", "/").replace("~0", "~");
        match &node.data {
            Data::List(items) => items.get(name.parse::<usize>().ok()?),
            _ => node.entry(&name).map(|entry| &entry.value),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_no_dialect_allows_is_a_mistake_in_a_regular_expression() {
        for (pattern, expected) in [
            ("[", Some("nothing closes a `[`")),
            ("[a-z", Some("nothing closes a `[`")),
            ("(a", Some("nothing closes a `(`")),
            ("a)", Some("nothing opens a `)`")),
            ("*.txt", Some("nothing precedes a `*` or `+`")),
            ("a|+", Some("nothing precedes a `*` or `+`")),
            ("a\\", Some("nothing follows its last `\\`")),
            ("", None),
            ("^[A-Z]{2}-[0-9]+$", None),
            ("^(?=.*[0-9])(?<year>\\d{4})?(?:a|b)*$", None),
            ("[[)*]+", None),
            ("[^]]*", None),
            ("\\[\\(\\*\\+", None),
            ("größe+", None),
        ] {
            assert_eq!(mistake_in(pattern), expected, "{pattern}");
        }
    }
}
