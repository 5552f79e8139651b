//! Definitions of names and references to them.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::adapter::As;
use crate::config::Config;
use crate::cx::{Cx, Label};
use crate::names::NameKind;
use crate::types::{Kind, Limits, Type};
use crate::values::text;
use crate::wrap::At;
use crate::wrong::mismatch;
use crate::yaml::{Data, Node};

/// A configuration type of a name that is defined here.
pub struct NewName<K: NameKind>(pub K::Name);

/// A configuration type of a reference to a name that is defined elsewhere in the file.
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

/// A mapping whose keys are names that are defined elsewhere in the file, in the order of the file.
pub struct ByName<K: NameKind, V>(pub Vec<(At<K::Name>, V)>);

impl<K: NameKind, V: Config> Config for ByName<K, V> {
    const OPTIONAL: bool = true;
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::Table(V::ty) } }
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let Data::Map(entries) = &node.data else {
            mismatch(node, Self::ty(), cx);
            return Self::hole();
        };
        let label = cx.label();
        if entries.is_empty() && cx.limits.nonempty {
            cx.report.error(&node.span, format!("{label} is empty"));
        }
        let limits = Limits { range: cx.limits.range, ..Limits::NONE };
        let mut found = Vec::with_capacity(entries.len());
        for entry in entries {
            let key = Node { span: entry.key_span.clone(), data: Data::Text(entry.key.clone()) };
            let key = cx.of_key(label.clone(), Limits::NONE, &entry.key_span, |cx| {
                At::<Ref<K>>::read(&key, cx).into_value()
            });
            let of_entry = Label::Key(entry.key.clone().into());
            let value = cx.of_key(of_entry, limits, &entry.key_span, |cx| V::read(&entry.value, cx));
            found.push((key, value));
        }
        Self(found)
    }
    fn hole() -> Self {
        Self(Vec::new())
    }
    fn write(&self) -> Value {
        let entries = self.0.iter().map(|(key, value)| (key.to_string(), value.write()));
        Value::Object(entries.collect::<Map<_, _>>())
    }
}

/// Names that could not be read are left out.
impl<K: NameKind, T, A: As<T>> As<BTreeMap<At<K::Name>, T>> for ByName<K, A>
where
    K::Name: Ord,
{
    fn into_value(self) -> BTreeMap<At<K::Name>, T> {
        let sound = self.0.into_iter().filter(|(key, _)| key.ok);
        sound.map(|(key, value)| (key, value.into_value())).collect()
    }
    fn from_value(values: &BTreeMap<At<K::Name>, T>) -> Self {
        Self(values.iter().map(|(key, value)| (key.clone(), A::from_value(value))).collect())
    }
}

impl<K: NameKind, V: fmt::Debug> fmt::Debug for ByName<K, V>
where
    K::Name: fmt::Debug,
{
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map().entries(self.0.iter().map(|(key, value)| (key, value))).finish()
    }
}
