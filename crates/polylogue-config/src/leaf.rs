//! Texts with a meaning, such as durations and addresses.

use std::fmt;

use serde_json::Value;

use crate::adapter::As;
use crate::config::Config;
use crate::cx::Cx;
use crate::types::{Illegal, Kind, Text, Type};
use crate::values::text;
use crate::yaml::Node;

impl Illegal {
    pub(crate) fn report(self, written: &str, node: &Node, cx: &mut Cx<'_, '_>) {
        // The position is known only if the text has no escapes and folded lines.
        let start = || Some(node.span.start + cx.report.source.slice(&node.span).find(written)?);
        let span = self.offset.and_then(|offset| start().map(|start| start + offset..start + offset + 1));
        let span = span.unwrap_or_else(|| node.span.clone());
        match self.hint {
            Some(hint) => cx.report.error_with_hint(&span, self.message, hint),
            None => cx.report.error(&span, self.message),
        }
    }
}

/// A kind of text with a meaning. [`Leaf<Self>`](Leaf) is its configuration type.
pub trait TextKind: 'static {
    /// The type of the parsed value; `String` if it is only checked.
    type Value;

    /// How it is written.
    const TEXT: Text;

    /// Parses a text.
    ///
    /// # Errors
    /// When the text is not legal.
    fn parse(text: &str) -> Result<Self::Value, Illegal>;

    /// Writes the value as a text that [`parse`](TextKind::parse) reads back.
    fn to_text(value: &Self::Value) -> String;

    /// Returns a placeholder for a value that could not be read.
    fn hole() -> Self::Value;
}

/// A value that is written as a text.
pub struct Leaf<K: TextKind>(pub K::Value);

impl<K: TextKind> fmt::Debug for Leaf<K>
where
    K::Value: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<K: TextKind> PartialEq for Leaf<K>
where
    K::Value: PartialEq,
{
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<K: TextKind> Config for Leaf<K> {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Text(K::TEXT) } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let Some(text) = text(node, Self::ty(), K::TEXT.variables, cx) else { return Self::hole() };
        Self(K::parse(&text).unwrap_or_else(|illegal| {
            illegal.report(&text, node, cx);
            K::hole()
        }))
    }
    fn hole() -> Self {
        Self(K::hole())
    }
    fn write(&self) -> Value {
        Value::String(K::to_text(&self.0))
    }
}

impl<K: TextKind> As<K::Value> for Leaf<K>
where
    K::Value: Clone,
{
    fn into_value(self) -> K::Value {
        self.0
    }
    fn from_value(value: &K::Value) -> Self {
        Self(value.clone())
    }
}
