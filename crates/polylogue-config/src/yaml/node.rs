//! The tree of a YAML file: values with their positions.

use serde_json::{Number, Value};

use crate::source::Span;

/// A value and its position. A value that came through an alias has the position of its anchor.
#[derive(Debug, Clone)]
pub struct Node {
    /// Where it is in the file.
    pub span: Span,
    /// The value.
    pub data: Data,
}

/// The value of a node.
#[derive(Debug, Clone)]
pub enum Data {
    /// Nothing, or `null`.
    Null,
    /// `true` or `false`.
    Bool(bool),
    /// A number.
    Number(Number),
    /// A text.
    Text(String),
    /// A list.
    List(Vec<Node>),
    /// A mapping, in the order of the file.
    Map(Vec<Entry>),
}

/// A key of a mapping and its value. Keys of one mapping differ.
#[derive(Debug, Clone)]
pub struct Entry {
    /// The key.
    pub key: String,
    /// Where the key is in the file.
    pub key_span: Span,
    /// The value.
    pub value: Node,
}

impl Node {
    const NOTHING: Self = Self { span: 0..0, data: Data::Null };

    /// Returns the value of `key`; a null node if this is not a mapping with that key, so that look-ups can be chained.
    pub fn get(&self, key: &str) -> &Self {
        self.entry(key).map_or(&Self::NOTHING, |entry| &entry.value)
    }

    /// Returns the entry of `key`, if this is a mapping that has it.
    pub fn entry(&self, key: &str) -> Option<&Entry> {
        self.entries().iter().find(|entry| entry.key == key)
    }

    /// Returns the entries of a mapping; none when it is not a mapping.
    pub fn entries(&self) -> &[Entry] {
        match &self.data {
            Data::Map(entries) => entries,
            _ => &[],
        }
    }

    /// Returns the items of a list; none when it is not a list.
    pub fn items(&self) -> &[Self] {
        match &self.data {
            Data::List(items) => items,
            _ => &[],
        }
    }

    /// Returns the items of a list, or the one value that stands for a list of one.
    pub fn one_or_many(&self) -> &[Self] {
        match &self.data {
            Data::List(items) => items,
            Data::Null => &[],
            _ => std::slice::from_ref(self),
        }
    }

    /// Returns the text, if this is one.
    pub fn text(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            _ => None,
        }
    }

    /// Returns the text, or the word `true` or `false`.
    pub fn word(&self) -> Option<&str> {
        match &self.data {
            Data::Text(text) => Some(text),
            Data::Bool(true) => Some("true"),
            Data::Bool(false) => Some("false"),
            _ => None,
        }
    }

    /// Returns whether nothing is there.
    pub fn is_null(&self) -> bool {
        matches!(self.data, Data::Null)
    }

    /// Returns an empty mapping at the same position.
    #[must_use]
    pub fn as_empty_map(&self) -> Self {
        Self { span: self.span.clone(), data: Data::Map(Vec::new()) }
    }

    /// Returns the value without positions.
    pub fn to_value(&self) -> Value {
        match &self.data {
            Data::Null => Value::Null,
            Data::Bool(bool) => Value::Bool(*bool),
            Data::Number(number) => Value::Number(number.clone()),
            Data::Text(text) => Value::String(text.clone()),
            Data::List(items) => items.iter().map(Self::to_value).collect(),
            Data::Map(entries) => entries.iter().map(|e| (e.key.clone(), e.value.to_value())).collect(),
        }
    }
}
