//! Texts with a meaning: durations, names, addresses.

use std::fmt;

use serde_json::Value;

use crate::adapter::As;
use crate::config::Config;
use crate::cx::Cx;
use crate::names::Names;
use crate::source::Span;
use crate::types::{Kind, Text, Type};
use crate::values::text;
use crate::yaml::Node;

/// Why a text is not legal.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Illegal {
    /// What is wrong, such as: `tomorrow` is not a duration.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
    /// Where in the text it is wrong, in bytes, if that is known.
    pub offset: Option<usize>,
}

impl Illegal {
    /// A text that is wrong as a whole.
    pub fn new(message: impl Into<String>) -> Self {
        Self { message: message.into(), ..Self::default() }
    }

    /// The same, with what to write instead.
    #[must_use]
    pub fn hint(self, hint: impl Into<String>) -> Self {
        Self { hint: Some(hint.into()), ..self }
    }

    fn report(self, written: &str, node: &Node, cx: &mut Cx<'_, '_>) {
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
    /// What the text stands for; `String` if it is only checked.
    type Value;

    /// How it is written.
    const TEXT: Text;

    /// The value of a text.
    ///
    /// # Errors
    /// When the text is not legal.
    fn parse(text: &str) -> Result<Self::Value, Illegal>;

    /// The value as a text that [`parse`](TextKind::parse) reads back.
    fn to_text(value: &Self::Value) -> String;

    /// Stands for a value that could not be read.
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

/// A kind of names, such as those of agents.
pub trait NameKind: 'static {
    /// The type of a name.
    type Name: Clone + fmt::Display;
    /// The kind: names of one kind must differ. Those of this kind are suggested for an unknown name.
    const KIND: &'static str;
    /// What messages call it, such as `an agent`.
    const NOUN: &'static str;
    /// The kinds that a reference can name; usually only [`KIND`](NameKind::KIND).
    const MEANS: &'static [&'static str] = &[Self::KIND];
    /// Words that a reference can be instead of a name, such as `end`.
    const WORDS: &'static [&'static str] = &[];
    /// Whether names are known only within the scope that defines them.
    const SCOPED: bool = false;
    /// How a name is written.
    const TEXT: Text;

    /// The name that is written so.
    ///
    /// # Errors
    /// When the name is not legal.
    fn parse(name: &str) -> Result<Self::Name, Illegal>;

    /// Stands for a name that could not be read.
    fn hole() -> Self::Name;

    /// The message about a reference to a name that is not defined.
    #[must_use]
    fn unknown(name: &str) -> String {
        format!("unknown {} `{name}`", Self::KIND)
    }

    /// Adds the definition of a name.
    fn define(names: &mut Names, name: &str, span: &Span)
    where
        Self: Sized,
    {
        names.define::<Self>(name, span);
    }

    /// Adds a reference to a name.
    fn refer(names: &mut Names, name: &str, span: &Span)
    where
        Self: Sized,
    {
        names.refer::<Self>(name, span);
    }
}

/// A name that is defined here.
pub struct NewName<K: NameKind>(pub K::Name);

/// A name that is defined elsewhere in the file.
pub struct Ref<K: NameKind>(pub K::Name);

fn name<K: NameKind>(node: &Node, ty: &'static Type, cx: &mut Cx<'_, '_>) -> Option<K::Name> {
    let written = text(node, ty, K::TEXT.variables, cx)?;
    match K::parse(&written) {
        Ok(name) => Some(name),
        Err(illegal) => {
            illegal.report(&written, node, cx);
            None
        }
    }
}

impl<K: NameKind> Config for NewName<K> {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Text(K::TEXT) } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let Some(name) = name::<K>(node, Self::ty(), cx) else {
            cx.names.broken::<K>();
            return Self::hole();
        };
        K::define(&mut cx.names, &name.to_string(), &node.span);
        Self(name)
    }
    fn hole() -> Self {
        Self(K::hole())
    }
    fn missing(cx: &mut Cx<'_, '_>) -> Self {
        cx.names.broken::<K>();
        Self::hole()
    }
    fn write(&self) -> Value {
        Value::String(self.0.to_string())
    }
}

impl<K: NameKind> Config for Ref<K> {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Text(K::TEXT) } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let Some(name) = name::<K>(node, Self::ty(), cx) else { return Self::hole() };
        K::refer(&mut cx.names, &name.to_string(), &node.span);
        Self(name)
    }
    fn hole() -> Self {
        Self(K::hole())
    }
    fn write(&self) -> Value {
        Value::String(self.0.to_string())
    }
}

macro_rules! names {
    ($($name:ident)*) => {$(
        impl<K: NameKind> As<K::Name> for $name<K> {
            fn into_value(self) -> K::Name {
                self.0
            }
            fn from_value(value: &K::Name) -> Self {
                Self(value.clone())
            }
        }

        impl<K: NameKind> fmt::Debug for $name<K>
        where
            K::Name: fmt::Debug,
        {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }

        impl<K: NameKind> PartialEq for $name<K>
        where
            K::Name: PartialEq,
        {
            fn eq(&self, other: &Self) -> bool {
                self.0 == other.0
            }
        }
    )*};
}

names! { NewName Ref }
