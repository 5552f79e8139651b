//! A tree of nodes to values, by the schema of team files.
//!
//! The reader walks the tree and the schema together. Whatever does not fit is reported where it stands, and the walk
//! goes on, so that all mistakes of a file are found at once. On the way it fills in the variables.

mod condition;
mod endpoint;
mod number;
mod shape;
mod text;
mod wrong;

use std::collections::HashSet;

use serde_json::{Map, Value};

use crate::diagnostic::Report;
use crate::source::Span;
use crate::suggest;
use crate::vars::Vars;
use crate::yaml::{Data, Entry, Node};
pub(crate) use endpoint::is_variable;
use shape::{Shape, properties};

/// Reads one file.
pub(crate) struct Reader<'a, 's> {
    pub(crate) schema: &'a Value,
    pub(crate) vars: &'a mut Vars,
    /// The tools there are.
    pub(crate) tools: &'a [String],
    pub(crate) report: &'a mut Report<'s>,
    /// How many bytes of variables were filled in.
    pub(crate) filled: usize,
}

/// What a value is called in messages.
#[derive(Clone, Copy)]
enum Label<'a> {
    Root,
    Key(&'a str),
    Item(&'a str),
}

impl std::fmt::Display for Label<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Root => f.write_str("a team"),
            Self::Key(key) => write!(f, "`{key}`"),
            Self::Item(list) => write!(f, "an item of `{list}`"),
        }
    }
}

impl Reader<'_, '_> {
    /// The file as a value that the types of a team can be made of, if the report has no error then.
    pub(crate) fn read(&mut self, root: &Node) -> Value {
        self.value(root, self.schema, Label::Root)
    }

    fn value(&mut self, node: &Node, schema: &Value, label: Label<'_>) -> Value {
        let shape = Shape::of(schema, self.schema);
        if shape.any {
            return self.anything(node);
        }
        match &node.data {
            Data::List(items) if shape.list.is_some() => self.list(node, items, shape.list, label),
            Data::Map(entries) if !shape.maps.is_empty() => self.map(node, entries, &shape, label),
            Data::Null if shape.null => Value::Null,
            Data::List(_) | Data::Map(_) => self.mismatch(node, &shape, label),
            _ => self.scalar(node, &shape, label),
        }
    }

    fn scalar(&mut self, node: &Node, shape: &Shape<'_>, label: Label<'_>) -> Value {
        if shape.format() == Some("verbatim") && !node.is_null() {
            let written = || self.report.source.slice(&node.span).to_owned();
            return Value::String(node.text().map_or_else(written, str::to_owned));
        }
        match (&node.data, shape.number) {
            (Data::Text(text), _) if shape.takes_text() => self.text(text, &node.span, shape, label),
            (Data::Bool(bool), _) if shape.boolean => Value::Bool(*bool),
            (Data::Number(number), Some(schema)) => self.number(number, &node.span, schema, label),
            _ => self.mismatch(node, shape, label),
        }
    }

    /// A value of the caller's own, such as a field for a provider. What looks like a variable and is none stays.
    fn anything(&mut self, node: &Node) -> Value {
        match &node.data {
            Data::Text(text) => Value::String(self.fill_known(text, &node.span)),
            Data::List(items) => items.iter().map(|item| self.anything(item)).collect(),
            Data::Map(entries) => entries.iter().map(|e| (e.key.clone(), self.anything(&e.value))).collect(),
            _ => node.to_value(),
        }
    }

    fn list(&mut self, node: &Node, items: &[Node], schema: Option<&Value>, label: Label<'_>) -> Value {
        let schema = schema.unwrap_or(&Value::Bool(true));
        if items.is_empty() && schema.get("minItems").is_some() {
            self.report.error(&node.span, format!("{label} is empty"));
        }
        let of = match label {
            Label::Key(name) | Label::Item(name) => name,
            Label::Root => "",
        };
        let item_schema = schema.get("items").unwrap_or(&Value::Bool(true));
        let mut values = Vec::with_capacity(items.len());
        for item in items {
            if self.report.full() {
                break;
            }
            values.push(self.value(item, item_schema, Label::Item(of)));
        }
        if schema.get("uniqueItems") == Some(&Value::Bool(true)) {
            let mut seen = HashSet::new();
            for (item, value) in items.iter().zip(&values).filter(|(_, value)| !value.is_null()) {
                if !seen.insert(value.to_string()) {
                    self.report.error(&item.span, format!("{value} is in `{of}` already"));
                }
            }
        }
        Value::Array(values)
    }

    fn map(&mut self, node: &Node, entries: &[Entry], shape: &Shape<'_>, label: Label<'_>) -> Value {
        let at = entries.first().map_or(&node.span, |entry| &entry.key_span);
        let Some(schema) = shape.map_for(entries) else {
            self.no_such_map(at, entries, shape, label);
            return Value::Null;
        };
        self.check_size(at, entries, schema, label);
        for missing in required(schema).filter(|key| !entries.iter().any(|entry| entry.key == *key)) {
            self.report.error(at, format!("{label} needs the key `{missing}`"));
        }
        let mut map = Map::new();
        for entry in entries {
            if self.report.full() {
                break;
            }
            let Some(of_value) = shape::property(schema, &entry.key) else {
                self.surplus_key(entry, entries, shape);
                continue;
            };
            map.insert(entry.key.clone(), self.value(&entry.value, of_value, Label::Key(&entry.key)));
        }
        Value::Object(map)
    }

    fn check_size(&mut self, at: &Span, entries: &[Entry], schema: &Value, label: Label<'_>) {
        let bound =
            |key: &str| schema.get(key).and_then(Value::as_u64).and_then(|bound| usize::try_from(bound).ok());
        if entries.len() < bound("minProperties").unwrap_or(0) {
            let mut keys = properties(schema).map(|(key, _)| key).peekable();
            if keys.peek().is_some() {
                let hint = format!("there is {}", suggest::listed(keys));
                self.report.error_with_hint(at, format!("{label} is empty"), hint);
            } else {
                self.report.error(at, format!("{label} is empty"));
            }
        }
        if let Some(surplus) = bound("maxProperties").and_then(|most| entries.get(most)) {
            let message = format!("{label} takes one key only, and `{}` is another", surplus.key);
            self.report.error(&surplus.key_span, message);
        }
    }
}

fn required(schema: &Value) -> impl Iterator<Item = &str> {
    schema.get("required").and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_str)
}
