//! Configuration types of the standard library: numbers, texts, lists, tables and values of any shape.

use std::collections::{BTreeMap, HashSet};

use indexmap::IndexMap;
use serde_json::{Map, Value};

use crate::adapter::As;
use crate::config::Config;
use crate::cx::{Cx, Label};
use crate::fields::{Fields, Keys};
use crate::types::{Kind, Limits, Text, Type, Variables};
use crate::wrong::mismatch;
use crate::yaml::{Data, Entry, Node};

/// Numbers beyond this are not exact in every JSON reader.
const EXACT: i64 = 1 << 53;

impl Config for bool {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Bool } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        if let Data::Bool(value) = node.data {
            return value;
        }
        mismatch(node, Self::ty(), cx);
        Self::hole()
    }
    fn hole() -> Self {
        false
    }
    fn write(&self) -> Value {
        Value::Bool(*self)
    }
}

macro_rules! whole_numbers {
    ($($number:ty: $least:expr, $most:expr;)*) => {$(
        impl Config for $number {
            fn ty() -> &'static Type {
                const { &Type { name: "", doc: "", kind: Kind::Whole { least: $least, most: $most } } }
            }
            fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
                let whole = whole(node, Self::ty(), $least, $most, cx);
                whole.and_then(|whole| whole.try_into().ok()).unwrap_or_else(Self::hole)
            }
            fn hole() -> Self {
                0
            }
            fn write(&self) -> Value {
                Value::from(*self)
            }
        }
    )*};
}

whole_numbers! {
    u8: 0, u8::MAX as i64;
    u16: 0, u16::MAX as i64;
    u32: 0, u32::MAX as i64;
    u64: 0, EXACT;
    usize: 0, EXACT;
    i64: -EXACT, EXACT;
}

/// A whole number between `least` and `most` and within the limits of its key.
fn whole(node: &Node, ty: &'static Type, least: i64, most: i64, cx: &mut Cx<'_, '_>) -> Option<i64> {
    let Data::Number(number) = &node.data else {
        mismatch(node, ty, cx);
        return None;
    };
    let label = cx.label();
    let value = number.as_f64().unwrap_or(f64::NAN);
    if value.fract() != 0.0 {
        cx.report.error(&node.span, format!("{label} must be a whole number"));
        return None;
    }
    #[expect(clippy::cast_precision_loss, reason = "bounds are within 2^53, where this is exact")]
    let bounds = (least as f64, most as f64);
    if !in_range(value, narrowed(bounds, cx.limits.range), node, cx) {
        return None;
    }
    #[expect(clippy::cast_possible_truncation, reason = "it is whole and within 2^53")]
    number.as_i64().or(Some(value as i64))
}

fn narrowed(bounds: (f64, f64), range: Option<(f64, f64)>) -> (f64, f64) {
    range.map_or(bounds, |(least, most)| (bounds.0.max(least), bounds.1.min(most)))
}

fn in_range(value: f64, (least, most): (f64, f64), node: &Node, cx: &mut Cx<'_, '_>) -> bool {
    let label = cx.label();
    if value < least {
        cx.report.error(&node.span, format!("{label} must be at least {least}"));
    } else if value > most {
        cx.report.error(&node.span, format!("{label} must be at most {most}"));
    }
    (least..=most).contains(&value)
}

impl Config for f64 {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Number } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let Data::Number(number) = &node.data else {
            mismatch(node, Self::ty(), cx);
            return Self::hole();
        };
        let value = number.as_f64().unwrap_or_default();
        let bounds = narrowed((Self::MIN, Self::MAX), cx.limits.range);
        if in_range(value, bounds, node, cx) { value } else { Self::hole() }
    }
    fn hole() -> Self {
        0.0
    }
    fn write(&self) -> Value {
        Value::from(*self)
    }
}

impl Config for String {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Text(Text::PLAIN) } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        text(node, Self::ty(), Variables::All, cx).unwrap_or_default()
    }
    fn hole() -> Self {
        Self::new()
    }
    fn write(&self) -> Value {
        Value::String(self.clone())
    }
}

/// Returns the text of `node` with its variables filled in; nothing if it is not a text, is empty where that is not allowed, or
/// has an unknown variable, all of which are reported.
pub fn text(node: &Node, ty: &'static Type, variables: Variables, cx: &mut Cx<'_, '_>) -> Option<String> {
    let Some(written) = node.text() else {
        mismatch(node, ty, cx);
        return None;
    };
    let text = cx.fill(written, &node.span, variables)?;
    if text.is_empty() && cx.limits.nonempty {
        let label = cx.label();
        cx.report.error(&node.span, format!("{label} is empty"));
        return None;
    }
    Some(text)
}

impl<T: Config> Config for Option<T> {
    const OPTIONAL: bool = true;
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Optional(T::ty) } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        Some(T::read(node, cx))
    }
    fn hole() -> Self {
        None
    }
    fn write(&self) -> Value {
        self.as_ref().map_or(Value::Null, T::write)
    }
}

impl<T: Keys> Keys for Box<T> {
    fn from_fields(fields: &Fields<'_>, cx: &mut Cx<'_, '_>) -> Self {
        Self::new(T::from_fields(fields, cx))
    }
    fn write_keys(&self, map: &mut Map<String, Value>) {
        T::write_keys(self, map);
    }
}

impl<T: Config> Config for Box<T> {
    const OPTIONAL: bool = T::OPTIONAL;
    fn ty() -> &'static Type {
        T::ty()
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        Self::new(T::read(node, cx))
    }
    fn hole() -> Self {
        Self::new(T::hole())
    }
    fn absent() -> Self {
        Self::new(T::absent())
    }
    fn write(&self) -> Value {
        T::write(self)
    }
}

impl<T: Config> Config for Vec<T> {
    const OPTIONAL: bool = true;
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::List(T::ty) } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        match &node.data {
            Data::List(items) => list(node, items, cx),
            _ => {
                mismatch(node, Self::ty(), cx);
                // The names that its items define are unknown: references to them are not reported.
                let _ = T::missing(cx);
                Self::new()
            }
        }
    }
    fn hole() -> Self {
        Self::new()
    }
    fn write(&self) -> Value {
        self.iter().map(T::write).collect()
    }
}

/// A text, number or `true` and `false`, kept in the notation of the file: `1.10` stays `1.10`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Verbatim(pub String);

impl Config for Verbatim {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Scalar } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        match &node.data {
            Data::Text(text) => Self(text.clone()),
            Data::Number(_) | Data::Bool(_) => Self(cx.report.source.slice(&node.span).to_owned()),
            _ => {
                mismatch(node, Self::ty(), cx);
                Self::hole()
            }
        }
    }
    fn hole() -> Self {
        Self::default()
    }
    fn write(&self) -> Value {
        Value::String(self.0.clone())
    }
}

impl As<String> for Verbatim {
    fn into_value(self) -> String {
        self.0
    }
    fn from_value(value: &String) -> Self {
        Self(value.clone())
    }
}

/// Tables whose keys are names of the user's choice; an `IndexMap` keeps the order of the file.
macro_rules! tables {
    ($($map:ident)*) => {$(
        impl<T: Config> Config for $map<String, T> {
            const OPTIONAL: bool = true;
            fn ty() -> &'static Type {
                const { &Type { name: "", doc: "", kind: Kind::Table(T::ty) } }
            }
            fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
                table(node, Self::ty(), cx).into_iter().collect()
            }
            fn hole() -> Self {
                Self::new()
            }
            fn write(&self) -> Value {
                Value::Object(self.iter().map(|(key, value)| (key.clone(), value.write())).collect())
            }
        }

        impl<T, A: As<T>> As<$map<String, T>> for $map<String, A> {
            fn into_value(self) -> $map<String, T> {
                self.into_iter().map(|(key, value)| (key, value.into_value())).collect()
            }
            fn from_value(values: &$map<String, T>) -> Self {
                values.iter().map(|(key, value)| (key.clone(), A::from_value(value))).collect()
            }
        }
    )*};
}

tables! { IndexMap BTreeMap }

/// The entries of a mapping from names of the user's choice, within the limits of its key.
fn table<T: Config>(node: &Node, ty: &'static Type, cx: &mut Cx<'_, '_>) -> Vec<(String, T)> {
    let Data::Map(entries) = &node.data else {
        mismatch(node, ty, cx);
        return Vec::new();
    };
    let label = cx.label();
    if entries.is_empty() && cx.limits.nonempty {
        cx.report.error(&node.span, format!("{label} is empty"));
    }
    let limits = Limits { range: cx.limits.range, ..Limits::NONE };
    let mut read = |one: &Entry| {
        let label = Label::Key(one.key.clone().into());
        (one.key.clone(), cx.of_key(label, limits, &one.key_span, |cx| T::read(&one.value, cx)))
    };
    entries.iter().map(&mut read).collect()
}

/// The items of a list, within the limits of its key.
pub(crate) fn list<T: Config>(node: &Node, items: &[Node], cx: &mut Cx<'_, '_>) -> Vec<T> {
    let (label, limits) = (cx.label(), cx.limits);
    if items.is_empty() && limits.nonempty {
        cx.report.error(&node.span, format!("{label} is empty"));
    }
    let mut seen = HashSet::new();
    let mut values = Vec::with_capacity(items.len());
    for item in items {
        if cx.report.full() {
            break;
        }
        let before = cx.report.attempts();
        let value =
            cx.within(label.items(), Limits { range: limits.range, ..Limits::NONE }, |cx| T::read(item, cx));
        if limits.unique && cx.report.attempts() == before && !seen.insert(value.write().to_string()) {
            let written = cx.report.source.slice(&item.span);
            cx.report.error(&item.span, format!("`{written}` is already in `{}`", label.key()));
        }
        values.push(value);
    }
    values
}

impl Config for Value {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Any } }
    }
    /// Known variables are replaced in its texts; everything else is kept.
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        match &node.data {
            Data::Text(text) => Self::String(cx.fill(text, &node.span, Variables::Known).unwrap_or_default()),
            Data::List(items) => items.iter().map(|item| Self::read(item, cx)).collect(),
            Data::Map(entries) => {
                entries.iter().map(|one| (one.key.clone(), Self::read(&one.value, cx))).collect()
            }
            _ => node.to_value(),
        }
    }
    fn hole() -> Self {
        Self::Null
    }
    fn write(&self) -> Value {
        self.clone()
    }
}

impl Config for Map<String, Value> {
    const OPTIONAL: bool = true;
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Object } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let label = cx.label();
        match Value::read(node, cx) {
            Value::Object(map) => {
                if map.is_empty() && cx.limits.nonempty {
                    cx.report.error(&node.span, format!("{label} is empty"));
                }
                map
            }
            _ => {
                mismatch(node, Self::ty(), cx);
                Self::new()
            }
        }
    }
    fn hole() -> Self {
        Self::new()
    }
    fn write(&self) -> Value {
        Value::Object(self.clone())
    }
}
