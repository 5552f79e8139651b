//! What is said of keys and values that do not fit.

use serde_json::Value;

use super::shape::{Shape, properties, property};
use super::{Label, Reader, required};
use crate::duration::Time;
use crate::source::Span;
use crate::suggest;
use crate::yaml::{Data, Entry, Node};

impl Reader<'_, '_> {
    /// A mapping that is none of several.
    pub(super) fn no_such_map(&mut self, at: &Span, entries: &[Entry], shape: &Shape<'_>, label: Label<'_>) {
        if entries.is_empty() {
            let keys = suggest::listed(shape.maps.iter().flat_map(|map| required(map)));
            self.report.error(at, format!("{label} needs one of the keys {keys}"));
        }
        for entry in entries {
            if self.report.full() {
                return;
            }
            self.unknown_key(entry, shape);
        }
    }

    /// A key that the mapping cannot have: of a mapping that it could be instead, or of none.
    pub(super) fn surplus_key(&mut self, entry: &Entry, entries: &[Entry], shape: &Shape<'_>) {
        let of_another = shape.maps.iter().any(|map| property(map, &entry.key).is_some());
        match entries.first() {
            Some(first) if of_another => {
                let message = format!("`{}` and `{}` cannot both be given", first.key, entry.key);
                self.report.error(&entry.key_span, message);
            }
            _ => self.unknown_key(entry, shape),
        }
    }

    fn unknown_key(&mut self, entry: &Entry, shape: &Shape<'_>) {
        let known = || shape.maps.iter().flat_map(|map| properties(map));
        let inside = |(_, schema): &(&str, &Value)| {
            let within = Shape::of(schema, self.schema);
            within.maps.iter().any(|map| properties(map).any(|(key, _)| key == entry.key))
        };
        let names: Vec<&str> = known().map(|(key, _)| key).collect();
        let hint = match known().find(inside) {
            Some((key, _)) => format!("it goes into `{key}`"),
            None => suggest::hint(&entry.key, names.iter().copied()),
        };
        self.report.error_with_hint(&entry.key_span, format!("unknown key `{}`", entry.key), hint);
    }

    /// A value of a kind that cannot stand there.
    pub(super) fn mismatch(&mut self, node: &Node, shape: &Shape<'_>, label: Label<'_>) -> Value {
        let written = self.report.source.slice(&node.span);
        if written.starts_with("{{") && matches!(node.data, Data::Map(_)) {
            // A variable without quotes was reported when the tree was built.
            return Value::Null;
        }
        let expected = shape.expected();
        let (kind, hint) = match &node.data {
            Data::Null => {
                let hint = format!("give it {expected}, or leave it out");
                self.report.error_with_hint(&node.span, format!("{label} is empty"), hint);
                return Value::Null;
            }
            Data::Number(_) => ("a number".to_owned(), instead(shape).or_else(|| quote(written, shape))),
            Data::Bool(_) => (format!("`{written}`"), quote(written, shape)),
            Data::Text(text) => ("a text".to_owned(), unquote(text, shape)),
            Data::List(_) => ("a list".to_owned(), None),
            Data::Map(_) => ("a mapping".to_owned(), None),
        };
        let message = format!("{label} has to be {expected}, not {kind}");
        match hint {
            Some(hint) => self.report.error_with_hint(&node.span, message, hint),
            None => self.report.error(&node.span, message),
        }
        Value::Null
    }
}

/// How to write what no number can say.
fn instead(shape: &Shape<'_>) -> Option<String> {
    match shape.format()? {
        "duration" => Some(Time::HINT.to_owned()),
        "variable" => Some("write the name of an environment variable, such as `HOUSE_API_KEY`".to_owned()),
        _ => None,
    }
}

fn quote(written: &str, shape: &Shape<'_>) -> Option<String> {
    shape.text.is_some().then(|| format!("put it in quotes: \"{written}\""))
}

fn unquote(text: &str, shape: &Shape<'_>) -> Option<String> {
    let number = shape.number.is_some() && text.parse::<f64>().is_ok_and(f64::is_finite);
    let boolean = shape.boolean && matches!(text, "true" | "false");
    (number || boolean).then(|| "leave out the quotation marks".to_owned())
}
