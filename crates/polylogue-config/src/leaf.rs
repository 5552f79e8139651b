//! Texts with a meaning: durations, names, addresses.

use std::marker::PhantomData;

use serde_json::Value;

use crate::config::Config;
use crate::cx::Cx;
use crate::types::{Kind, Text, Type};
use crate::values::text;
use crate::yaml::Node;

/// Why a text is not legal.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Illegal {
    /// What is wrong, such as: `tomorrow` is not a duration.
    pub message: String,
    /// What to write instead.
    pub hint: Option<String>,
}

/// A type that is written as a text. [`Leaf<T>`] makes a configuration type of it.
pub trait Textual: Sized + 'static {
    /// How it is written.
    const TEXT: Text;

    /// The value of a text.
    ///
    /// # Errors
    /// When the text is not legal.
    fn parse(text: &str) -> Result<Self, Illegal>;

    /// The value as a text that [`parse`](Textual::parse) reads back.
    fn to_text(&self) -> String;

    /// Stands for a value that could not be read.
    fn hole() -> Self;
}

/// A value that is written as a text.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Leaf<T>(pub T);

impl<T: Textual> Config for Leaf<T> {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Text(T::TEXT) } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let Some(text) = text(node, Self::ty(), T::TEXT.variables, cx) else { return Self::hole() };
        Self(T::parse(&text).unwrap_or_else(|Illegal { message, hint }| {
            match hint {
                Some(hint) => cx.report.error_with_hint(&node.span, message, hint),
                None => cx.report.error(&node.span, message),
            }
            T::hole()
        }))
    }
    fn hole() -> Self {
        Self(T::hole())
    }
    fn write(&self) -> Value {
        Value::String(self.0.to_text())
    }
}

/// A kind of names, such as those of agents.
pub trait NameKind: 'static {
    /// What definitions of this kind are called, such as `agent`.
    const KIND: &'static str;
    /// The kinds that a reference of this kind can name; usually only [`KIND`](NameKind::KIND).
    const MEANS: &'static [&'static str] = &[Self::KIND];
    /// How a name is written.
    const TEXT: Text;

    /// Checks a name.
    ///
    /// # Errors
    /// When the name is not legal.
    fn check(name: &str) -> Result<(), Illegal>;
}

/// A name that is defined here.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewName<K>(pub String, PhantomData<K>);

/// A name that is defined elsewhere in the file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ref<K>(pub String, PhantomData<K>);

fn name<K: NameKind>(node: &Node, ty: &'static Type, cx: &mut Cx<'_, '_>) -> Option<String> {
    let name = text(node, ty, K::TEXT.variables, cx)?;
    match K::check(&name) {
        Ok(()) => Some(name),
        Err(Illegal { message, hint: Some(hint) }) => {
            cx.report.error_with_hint(&node.span, message, hint);
            None
        }
        Err(Illegal { message, hint: None }) => {
            cx.report.error(&node.span, message);
            None
        }
    }
}

impl<K: NameKind> Config for NewName<K> {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Text(K::TEXT) } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        match name::<K>(node, Self::ty(), cx) {
            Some(name) => {
                cx.names.define(K::KIND, &name, &node.span);
                Self(name, PhantomData)
            }
            None => {
                cx.names.broken(K::KIND);
                Self::hole()
            }
        }
    }
    fn hole() -> Self {
        Self(String::new(), PhantomData)
    }
    fn missing(cx: &mut Cx<'_, '_>) -> Self {
        cx.names.broken(K::KIND);
        Self::hole()
    }
    fn write(&self) -> Value {
        Value::String(self.0.clone())
    }
}

impl<K: NameKind> Config for Ref<K> {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Text(K::TEXT) } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let Some(name) = name::<K>(node, Self::ty(), cx) else { return Self::hole() };
        cx.names.refer(K::MEANS, &name, &node.span);
        Self(name, PhantomData)
    }
    fn hole() -> Self {
        Self(String::new(), PhantomData)
    }
    fn write(&self) -> Value {
        Value::String(self.0.clone())
    }
}
