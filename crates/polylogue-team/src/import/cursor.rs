//! A place in a definition, which knows its path.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::draft::Draft;
use super::{ImportError, Result};

/// A value and where it is.
#[derive(Debug, Clone)]
pub(super) struct At<'a> {
    pub(super) value: &'a Value,
    pub(super) path: String,
}

impl<'a> At<'a> {
    pub(super) fn root(value: &'a Value) -> Self {
        Self { value, path: "$".into() }
    }

    pub(super) fn wrong<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(ImportError::new(&self.path, what))
    }

    pub(super) fn text(&self) -> Result<&'a str> {
        self.value.as_str().map_or_else(|| self.wrong("this has to be a text"), Ok)
    }

    pub(super) fn count(&self) -> Result<u64> {
        // Python writes some counts as 10.0.
        let whole =
            |number: f64| (number >= 0.0 && number.fract() == 0.0 && number < 1e15).then_some(number as u64);
        let count = self.value.as_u64().or_else(|| self.value.as_f64().and_then(whole));
        count.map_or_else(|| self.wrong("this has to be a whole number from 0"), Ok)
    }

    pub(super) fn number(&self) -> Result<f64> {
        self.value.as_f64().map_or_else(|| self.wrong("this has to be a number"), Ok)
    }

    pub(super) fn flag(&self) -> Result<bool> {
        self.value.as_bool().map_or_else(|| self.wrong("this has to be `true` or `false`"), Ok)
    }

    pub(super) fn items(&self) -> Result<Vec<Self>> {
        let Some(items) = self.value.as_array() else { return self.wrong("this has to be a list") };
        let item = |(index, value)| Self { value, path: format!("{}[{index}]", self.path) };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// One text, or a list of them.
    pub(super) fn texts(&self) -> Result<Vec<&'a str>> {
        match self.value {
            Value::String(text) => Ok(vec![text]),
            _ => self.items()?.iter().map(Self::text).collect(),
        }
    }

    pub(super) fn entries(&self) -> Result<Vec<(&'a str, Self)>> {
        let Some(map) = self.value.as_object() else { return self.wrong("this has to be an object") };
        Ok(map.iter().map(|(key, value)| (key.as_str(), self.at(key, value))).collect())
    }

    pub(super) fn fields(&self) -> Result<Fields<'a>> {
        match self.value.as_object() {
            Some(map) => Ok(Fields { at: self.clone(), map, taken: BTreeSet::new() }),
            None => self.wrong("this has to be an object"),
        }
    }

    fn at(&self, key: &str, value: &'a Value) -> Self {
        let is_word = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_');
        let path = if is_word { format!("{}.{key}", self.path) } else { format!("{}[{key:?}]", self.path) };
        Self { value, path }
    }
}

/// The fields of an object, each of which is asked for, or reported in the end.
#[derive(Debug, Clone)]
pub(super) struct Fields<'a> {
    pub(super) at: At<'a>,
    map: &'a Map<String, Value>,
    taken: BTreeSet<&'a str>,
}

impl<'a> Fields<'a> {
    /// A field that is there and not null.
    pub(super) fn take(&mut self, key: &str) -> Option<At<'a>> {
        let (key, value) = self.map.get_key_value(key)?;
        self.taken.insert(key);
        (!value.is_null()).then(|| self.at.at(key, value))
    }

    /// The value of a field, which is still to be asked for.
    pub(super) fn peek(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    /// The first of several fields that mean the same.
    pub(super) fn first(&mut self, keys: &[&str]) -> Option<At<'a>> {
        keys.iter().find_map(|key| self.take(key))
    }

    pub(super) fn need(&mut self, key: &str) -> Result<At<'a>> {
        self.take(key).map_or_else(|| self.at.wrong(format!("`{key}` is missing")), Ok)
    }

    /// A text that is there and not empty.
    pub(super) fn text(&mut self, key: &str) -> Result<Option<&'a str>> {
        let text = self.take(key).map(|at| at.text()).transpose()?;
        Ok(text.filter(|text| !text.trim().is_empty()))
    }

    pub(super) fn flag(&mut self, key: &str) -> Result<Option<bool>> {
        self.take(key).map(|at| at.flag()).transpose()
    }

    pub(super) fn count(&mut self, key: &str) -> Result<Option<u64>> {
        self.take(key).map(|at| at.count()).transpose()
    }

    /// Fields that have no meaning here, or none of their own.
    pub(super) fn ignore(&mut self, keys: &[&str]) {
        self.taken
            .extend(keys.iter().filter_map(|key| self.map.get_key_value(*key)).map(|(key, _)| key.as_str()));
    }

    /// A field that cannot be carried over, if it says anything.
    pub(super) fn cannot(&mut self, key: &str, why: &str, draft: &mut Draft) {
        if let Some(at) = self.take(key).filter(|at| says_something(at.value)) {
            draft.note(&at.path, why);
        }
    }

    /// The unused fields.
    pub(super) fn left(self) -> Map<String, Value> {
        let is_left =
            |(key, value): &(&String, &Value)| !self.taken.contains(key.as_str()) && says_something(value);
        self.map.iter().filter(is_left).map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Reports every unused field.
    pub(super) fn rest(self, draft: &mut Draft) {
        for (key, value) in self.map {
            if !self.taken.contains(key.as_str()) && says_something(value) {
                let at = self.at.at(key, value);
                draft.note(&at.path, "not carried over: it is not known here");
            }
        }
    }
}

/// Whether a value is more than nothing, off or empty.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}
