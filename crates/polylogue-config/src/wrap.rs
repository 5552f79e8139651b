//! Types around other types: a marked value, one or many, a switch.

use std::borrow::Borrow;
use std::cmp::Ordering;
use std::fmt;
use std::ops::Deref;

use serde_json::Value;

use crate::adapter::As;
use crate::config::Config;
use crate::cx::{Cx, Label};
use crate::source::Span;
use crate::types::{Kind, Limits, Type};
use crate::values;
use crate::wrong::{fits, mismatch};
use crate::yaml::{Data, Node};

/// A value with its position, for checks across keys. It compares by its value alone.
#[derive(Debug, Clone)]
pub struct At<T> {
    /// The value; a hole if it was wrong.
    pub value: T,
    /// Where it is in the file; empty for a value that is not there.
    pub span: Span,
    /// Where its key is in the file, if it is the value of a key.
    pub key_span: Option<Span>,
    /// Whether nothing was wrong with it. A check skips values that are not `ok`, so that a mistake is reported once.
    pub ok: bool,
}

impl<T> At<T> {
    /// Returns where its key is, if the file gives it.
    pub const fn given(&self) -> Option<&Span> {
        self.key_span.as_ref()
    }

    /// Returns where to point for its key; where the value is if it has no key.
    pub fn key(&self) -> &Span {
        self.key_span.as_ref().unwrap_or(&self.span)
    }

    /// Returns the value, if nothing was wrong with it.
    pub fn sound(&self) -> Option<&T> {
        self.ok.then_some(&self.value)
    }
}

/// A value that is in no file.
impl<T> From<T> for At<T> {
    fn from(value: T) -> Self {
        Self { value, span: 0..0, key_span: None, ok: true }
    }
}

impl<T: Default> Default for At<T> {
    fn default() -> Self {
        T::default().into()
    }
}

impl<T> Deref for At<T> {
    type Target = T;
    fn deref(&self) -> &T {
        &self.value
    }
}

impl<'t, T> IntoIterator for &'t At<Vec<T>> {
    type Item = &'t T;
    type IntoIter = std::slice::Iter<'t, T>;
    fn into_iter(self) -> Self::IntoIter {
        self.value.iter()
    }
}

impl<T: fmt::Display> fmt::Display for At<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.value.fmt(f)
    }
}

impl<T: PartialEq> PartialEq for At<T> {
    fn eq(&self, other: &Self) -> bool {
        self.value == other.value
    }
}

impl<T: PartialEq> PartialEq<T> for At<T> {
    fn eq(&self, other: &T) -> bool {
        self.value == *other
    }
}

impl<T: Eq> Eq for At<T> {}

impl<T: Ord> PartialOrd for At<T> {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl<T: Ord> Ord for At<T> {
    fn cmp(&self, other: &Self) -> Ordering {
        self.value.cmp(&other.value)
    }
}

/// It is found in maps by its value.
impl<T> Borrow<T> for At<T> {
    fn borrow(&self) -> &T {
        &self.value
    }
}

impl<T: Config> Config for At<T> {
    const OPTIONAL: bool = T::OPTIONAL;
    fn ty() -> &'static Type {
        T::ty()
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let (before, key_span) = (cx.report.attempts(), cx.key_span.clone());
        let value = T::read(node, cx);
        Self { value, span: node.span.clone(), key_span, ok: cx.report.attempts() == before }
    }
    fn hole() -> Self {
        Self { ok: false, ..T::hole().into() }
    }
    fn absent() -> Self {
        T::absent().into()
    }
    fn missing(cx: &mut Cx<'_, '_>) -> Self {
        Self { ok: false, ..T::missing(cx).into() }
    }
    fn write(&self) -> Value {
        self.value.write()
    }
}

impl<T, A: As<T>> As<At<T>> for At<A> {
    fn into_value(self) -> At<T> {
        let Self { value, span, key_span, ok } = self;
        At { value: value.into_value(), span, key_span, ok }
    }
    fn from_value(value: &At<T>) -> Self {
        A::from_value(value).into()
    }
}

/// One value, or a list of them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OneOrMany<T>(pub Vec<T>);

impl<T: Config> Config for OneOrMany<T> {
    const OPTIONAL: bool = true;
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::OneOrMany(T::ty) } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        match &node.data {
            Data::List(items) => Self(values::list(node, items, cx)),
            Data::Null => {
                mismatch(node, Self::ty(), cx);
                Self::hole()
            }
            _ => Self(vec![T::read(node, cx)]),
        }
    }
    fn hole() -> Self {
        Self(Vec::new())
    }
    fn write(&self) -> Value {
        match self.0.as_slice() {
            [one] => one.write(),
            many => many.iter().map(T::write).collect(),
        }
    }
}

impl<T, A: As<T>> As<Vec<T>> for OneOrMany<A> {
    fn into_value(self) -> Vec<T> {
        self.0.into_value()
    }
    fn from_value(values: &Vec<T>) -> Self {
        Self(Vec::from_value(values))
    }
}

impl As<Vec<String>> for OneOrMany<String> {
    fn into_value(self) -> Vec<String> {
        self.0
    }
    fn from_value(values: &Vec<String>) -> Self {
        Self(values.clone())
    }
}

/// A mapping with one key of the user's choice. Nothing if it could not be read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pair<T>(pub Option<(String, T)>);

impl<T: Config> Config for Pair<T> {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Pair(T::ty) } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let Data::Map(entries) = &node.data else {
            mismatch(node, Self::ty(), cx);
            return Self(None);
        };
        let label = cx.label();
        let Some(entry) = entries.first() else {
            cx.report.error(&node.span, format!("{label} is empty"));
            return Self(None);
        };
        if let Some(surplus) = entries.get(1) {
            let message = format!("{label} takes one key only, and `{}` is another", surplus.key);
            cx.report.error(&surplus.key_span, message);
        }
        let of_entry = Label::Key(entry.key.clone().into());
        let value = cx.of_key(of_entry, Limits::NONE, &entry.key_span, |cx| T::read(&entry.value, cx));
        Self(Some((entry.key.clone(), value)))
    }
    fn hole() -> Self {
        Self(None)
    }
    fn write(&self) -> Value {
        let entry = self.0.iter().map(|(key, value)| (key.clone(), value.write()));
        Value::Object(entry.collect())
    }
}

/// `true`, `false`, or the settings of what is switched on. `true` stands for settings without any key.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Switch<T> {
    /// Off.
    #[default]
    Off,
    /// On, with these settings.
    On(T),
}

impl<T> Switch<T> {
    /// Returns the settings, if it is on.
    pub const fn on(&self) -> Option<&T> {
        match self {
            Self::Off => None,
            Self::On(settings) => Some(settings),
        }
    }
}

impl<T: Config> Config for Switch<T> {
    const OPTIONAL: bool = true;
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Switch(T::ty) } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        match &node.data {
            Data::Bool(false) => Self::Off,
            Data::Bool(true) => Self::On(T::read(&node.as_empty_map(), cx)),
            Data::Null => {
                mismatch(node, Self::ty(), cx);
                Self::Off
            }
            _ if fits(node, T::ty()) => Self::On(T::read(node, cx)),
            _ => {
                mismatch(node, Self::ty(), cx);
                Self::Off
            }
        }
    }
    fn hole() -> Self {
        Self::Off
    }
    fn write(&self) -> Value {
        match self {
            Self::Off => Value::Bool(false),
            Self::On(settings) => match settings.write() {
                Value::Object(map) if map.is_empty() => Value::Bool(true),
                written => written,
            },
        }
    }
}
