//! Values of a definition with their paths.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::draft::Draft;
use crate::report::{ImportError, Result};

/// How long a list of a definition can be. What is made of two lists can be as large as their product, such as the models of each agent.
const MOST_ITEMS: usize = 1_000;

/// A value and its path.
#[derive(Debug, Clone)]
pub(crate) struct At<'a> {
    pub(crate) value: &'a Value,
    pub(crate) path: String,
}

impl<'a> At<'a> {
    pub(crate) fn root(value: &'a Value) -> Self {
        Self { value, path: "$".into() }
    }

    pub(crate) fn wrong<T>(&self, what: impl Into<String>) -> Result<T> {
        Err(ImportError::new(&self.path, what))
    }

    pub(crate) fn text(&self) -> Result<&'a str> {
        self.value.as_str().map_or_else(|| self.wrong("must be a text"), Ok)
    }

    pub(crate) fn count(&self) -> Result<u64> {
        // Python writes some counts as 10.0.
        let whole =
            |number: f64| (number >= 0.0 && number.fract() == 0.0 && number < 1e15).then_some(number as u64);
        let count = self.value.as_u64().or_else(|| self.value.as_f64().and_then(whole));
        count.map_or_else(|| self.wrong("must be a whole number from 0"), Ok)
    }

    pub(crate) fn number(&self) -> Result<f64> {
        self.value.as_f64().map_or_else(|| self.wrong("must be a number"), Ok)
    }

    pub(crate) fn flag(&self) -> Result<bool> {
        self.value.as_bool().map_or_else(|| self.wrong("must be `true` or `false`"), Ok)
    }

    pub(crate) fn items(&self) -> Result<Vec<Self>> {
        let Some(items) = self.value.as_array() else { return self.wrong("must be a list") };
        if items.len() > MOST_ITEMS {
            return self.wrong(format!("has more than {MOST_ITEMS} items"));
        }
        let item = |(index, value)| Self { value, path: format!("{}[{index}]", self.path) };
        Ok(items.iter().enumerate().map(item).collect())
    }

    /// One text, or a list of them.
    pub(crate) fn texts(&self) -> Result<Vec<&'a str>> {
        match self.value {
            Value::String(text) => Ok(vec![text]),
            _ => self.items()?.iter().map(Self::text).collect(),
        }
    }

    pub(crate) fn entries(&self) -> Result<Vec<(&'a str, Self)>> {
        let Some(map) = self.value.as_object() else { return self.wrong("must be an object") };
        Ok(map.iter().map(|(key, value)| (key.as_str(), self.at(key, value))).collect())
    }

    pub(crate) fn fields(&self) -> Result<Fields<'a>> {
        match self.value.as_object() {
            Some(map) => Ok(Fields { at: self.clone(), map, taken: BTreeSet::new() }),
            None => self.wrong("must be an object"),
        }
    }

    fn at(&self, key: &str, value: &'a Value) -> Self {
        let is_word = !key.is_empty() && key.chars().all(|c| c.is_alphanumeric() || c == '_');
        let path = if is_word { format!("{}.{key}", self.path) } else { format!("{}[{key:?}]", self.path) };
        Self { value, path }
    }
}

/// The fields of an object. Fields that were not taken are reported at the end.
#[derive(Debug, Clone)]
pub(crate) struct Fields<'a> {
    pub(crate) at: At<'a>,
    map: &'a Map<String, Value>,
    taken: BTreeSet<&'a str>,
}

impl<'a> Fields<'a> {
    /// Takes a field that is present and not null.
    pub(crate) fn take(&mut self, key: &str) -> Option<At<'a>> {
        let (key, value) = self.map.get_key_value(key)?;
        self.taken.insert(key);
        (!value.is_null()).then(|| self.at.at(key, value))
    }

    /// The class of a component: the last part of its `provider`. The type, the versions and the texts of an editor mean nothing.
    pub(crate) fn class(&mut self) -> Result<String> {
        let provider = self.need("provider")?.text()?;
        self.ignore(&["component_type", "version", "component_version", "label", "description"]);
        Ok(provider.rsplit('.').next().unwrap_or(provider).to_owned())
    }

    /// The value of a field, without taking it.
    pub(crate) fn peek(&self, key: &str) -> Option<&'a Value> {
        self.map.get(key)
    }

    /// Takes the first of several fields with the same meaning.
    pub(crate) fn first(&mut self, keys: &[&str]) -> Option<At<'a>> {
        keys.iter().find_map(|key| self.take(key))
    }

    pub(crate) fn need(&mut self, key: &str) -> Result<At<'a>> {
        self.take(key).map_or_else(|| self.at.wrong(format!("`{key}` is missing")), Ok)
    }

    /// Takes a text that is present and not empty.
    pub(crate) fn text(&mut self, key: &str) -> Result<Option<&'a str>> {
        let text = self.take(key).map(|at| at.text()).transpose()?;
        Ok(text.filter(|text| !text.trim().is_empty()))
    }

    pub(crate) fn flag(&mut self, key: &str) -> Result<Option<bool>> {
        self.take(key).map(|at| at.flag()).transpose()
    }

    pub(crate) fn count(&mut self, key: &str) -> Result<Option<u64>> {
        self.take(key).map(|at| at.count()).transpose()
    }

    /// Takes fields that are not needed.
    pub(crate) fn ignore(&mut self, keys: &[&str]) {
        self.taken
            .extend(keys.iter().filter_map(|key| self.map.get_key_value(*key)).map(|(key, _)| key.as_str()));
    }

    /// Takes a field that cannot be converted, with a note unless it is empty or off.
    pub(crate) fn cannot(&mut self, key: &str, why: &str, draft: &mut Draft) {
        if let Some(at) = self.take(key).filter(|at| says_something(at.value)) {
            draft.note(&at.path, why);
        }
    }

    /// The same for a field that AutoGen sets to `usual` by default: that is no note either.
    pub(crate) fn unusual(&mut self, key: &str, usual: impl Into<Value>, why: &str, draft: &mut Draft) {
        let is_given = |at: &At<'_>| at.value.is_boolean() || says_something(at.value);
        let usual = usual.into();
        if let Some(at) = self.take(key).filter(|at| is_given(at) && *at.value != usual) {
            draft.note(&at.path, why);
        }
    }

    /// The fields that were not taken.
    pub(crate) fn left(self) -> Map<String, Value> {
        let is_left =
            |(key, value): &(&String, &Value)| !self.taken.contains(key.as_str()) && says_something(value);
        self.map.iter().filter(is_left).map(|(key, value)| (key.clone(), value.clone())).collect()
    }

    /// Adds a note for every field that was not taken.
    pub(crate) fn rest(self, draft: &mut Draft) {
        for (key, value) in self.map {
            if !self.taken.contains(key.as_str()) && says_something(value) {
                let at = self.at.at(key, value);
                draft.note(&at.path, "not converted: unknown key");
            }
        }
    }
}

/// Whether a value is neither null, off nor empty.
fn says_something(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => false,
        Value::Array(items) => !items.is_empty(),
        Value::Object(map) => !map.is_empty(),
        Value::String(text) => !text.is_empty(),
        _ => true,
    }
}
