//! What a schema takes, seen from the kinds of nodes.
//!
//! The schemas here are those that the types of a team make: a small part of JSON Schema, in which the alternatives
//! of a union differ in kind. A test holds the schema to the keywords that are understood here.

use serde_json::Value;

use crate::yaml::Entry;

/// What can stand in a place.
#[derive(Default)]
pub(super) struct Shape<'s> {
    /// The schema of texts that are not words of a choice.
    pub(super) text: Option<&'s Value>,
    /// The words of a choice.
    pub(super) words: Vec<&'s str>,
    /// The schema of numbers.
    pub(super) number: Option<&'s Value>,
    pub(super) boolean: bool,
    pub(super) null: bool,
    /// The schema of lists.
    pub(super) list: Option<&'s Value>,
    /// The schemas of mappings.
    pub(super) maps: Vec<&'s Value>,
    /// Anything at all.
    pub(super) any: bool,
}

impl<'s> Shape<'s> {
    /// The shape of `schema`, which is a part of `root`.
    pub(super) fn of(schema: &'s Value, root: &'s Value) -> Self {
        let mut shape = Self::default();
        shape.add(schema, root);
        shape
    }

    fn add(&mut self, schema: &'s Value, root: &'s Value) {
        if let Some(reference) = schema.get("$ref").and_then(Value::as_str) {
            return root
                .pointer(reference.trim_start_matches('#'))
                .into_iter()
                .for_each(|of| self.add(of, root));
        }
        if let Some(alternatives) =
            schema.get("anyOf").or_else(|| schema.get("oneOf")).and_then(Value::as_array)
        {
            return alternatives.iter().for_each(|of| self.add(of, root));
        }
        if let Some(word) = schema.get("const").and_then(Value::as_str) {
            return self.words.push(word);
        }
        match schema.get("type") {
            None => self.any = true,
            Some(Value::Array(types)) => {
                types.iter().filter_map(Value::as_str).for_each(|t| self.add_type(t, schema))
            }
            Some(one) => one.as_str().into_iter().for_each(|t| self.add_type(t, schema)),
        }
    }

    fn add_type(&mut self, name: &str, schema: &'s Value) {
        match name {
            "string" => self.text = Some(schema),
            "number" | "integer" => self.number = Some(schema),
            "boolean" => self.boolean = true,
            "null" => self.null = true,
            "array" => self.list = Some(schema),
            "object" => self.maps.push(schema),
            _ => {}
        }
    }

    pub(super) fn takes_text(&self) -> bool {
        self.text.is_some() || !self.words.is_empty()
    }

    /// How texts are read.
    pub(super) fn format(&self) -> Option<&'s str> {
        self.text?.get("format")?.as_str()
    }

    /// The schema of the mapping that `entries` are meant to be: the one that knows any of the keys.
    pub(super) fn map_for(&self, entries: &[Entry]) -> Option<&'s Value> {
        if let [only] = self.maps.as_slice() {
            return Some(only);
        }
        let knows = |map: &&&Value| entries.iter().any(|entry| property(map, &entry.key).is_some());
        self.maps.iter().find(knows).copied()
    }

    /// In words.
    pub(super) fn expected(&self) -> String {
        let mut kinds: Vec<String> = self.words.iter().map(|word| format!("`{word}`")).collect();
        let whole = self.number.is_some_and(is_whole);
        for (is, kind) in [
            (self.text.is_some(), "a text"),
            (self.number.is_some() && !whole, "a number"),
            (whole, "a whole number"),
            (self.boolean, "`true` or `false`"),
            (!self.maps.is_empty(), "a mapping"),
            (self.list.is_some(), "a list"),
        ] {
            if is {
                kinds.push(kind.to_owned());
            }
        }
        match kinds.split_last() {
            Some((last, [])) => last.clone(),
            Some((last, others)) => format!("{} or {last}", others.join(", ")),
            None => "nothing".to_owned(),
        }
    }
}

/// Whether numbers have to be whole.
pub(super) fn is_whole(schema: &Value) -> bool {
    match schema.get("type") {
        Some(Value::Array(types)) => types.iter().any(|name| name == "integer"),
        name => name.is_some_and(|name| name == "integer"),
    }
}

/// The keys that a mapping can have, with their schemas.
pub(super) fn properties(map: &Value) -> impl Iterator<Item = (&str, &Value)> {
    map.get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(key, schema)| (key.as_str(), schema))
}

/// The schema of a key's value; nothing when the mapping cannot have the key.
pub(super) fn property<'s>(map: &'s Value, key: &str) -> Option<&'s Value> {
    let named = map.get("properties").and_then(|properties| properties.get(key));
    named.or_else(|| map.get("additionalProperties").filter(|schema| **schema != Value::Bool(false)))
}
