//! Fields of other types than the configuration types by which they are written.

use std::collections::BTreeMap;
use std::fmt;

use serde_json::{Map, Value};

use crate::config::Config;
use crate::cx::{Cx, Label};
use crate::leaf::{NameKind, Ref};
use crate::types::{Kind, Limits, Type};
use crate::wrap::{At, OneOrMany};
use crate::wrong::mismatch;
use crate::yaml::{Data, Node};

/// A configuration type by which values of another type are written. A field names it with `as`, and keeps the type that
/// the rest of the program works with:
///
/// ```
/// use polylogue_config::types::{Text, Variables};
/// use polylogue_config::{Config, Illegal, Leaf, TextKind};
///
/// struct Port;
/// impl TextKind for Port {
///     type Value = u16;
///     const TEXT: Text =
///         Text { format: "port", pattern: "^:[0-9]+$", examples: &[":80"], variables: Variables::None };
///     fn parse(text: &str) -> Result<u16, Illegal> {
///         let port = text.strip_prefix(':').and_then(|digits| digits.parse().ok());
///         port.ok_or_else(|| Illegal::new(format!("`{text}` is not a port")))
///     }
///     fn to_text(port: &u16) -> String {
///         format!(":{port}")
///     }
///     fn hole() -> u16 {
///         0
///     }
/// }
///
/// /// A server.
/// #[derive(Config)]
/// struct Server {
///     /// The ports it listens on.
///     #[key(as = Vec<Leaf<Port>>)]
///     ports: Vec<u16>,
/// }
/// assert_eq!(Server { ports: vec![80] }.write(), serde_json::json!({"ports": [":80"]}));
/// ```
pub trait As<T>: Config {
    /// The value that was read.
    fn into_value(self) -> T;

    /// The value in the notation of the file.
    fn from_value(value: &T) -> Self;
}

impl<T, A: As<T>> As<Vec<T>> for Vec<A> {
    fn into_value(self) -> Vec<T> {
        self.into_iter().map(A::into_value).collect()
    }
    fn from_value(values: &Vec<T>) -> Self {
        values.iter().map(A::from_value).collect()
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

impl<T, A: As<T>> As<Option<T>> for Option<A> {
    fn into_value(self) -> Option<T> {
        self.map(A::into_value)
    }
    fn from_value(value: &Option<T>) -> Self {
        value.as_ref().map(A::from_value)
    }
}

impl<T, A: As<T>> As<BTreeMap<String, T>> for BTreeMap<String, A> {
    fn into_value(self) -> BTreeMap<String, T> {
        self.into_iter().map(|(key, value)| (key, value.into_value())).collect()
    }
    fn from_value(values: &BTreeMap<String, T>) -> Self {
        values.iter().map(|(key, value)| (key.clone(), A::from_value(value))).collect()
    }
}

/// A configuration type as itself, where an adapter is needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Same<T>(pub T);

impl<T: Config> Config for Same<T> {
    const OPTIONAL: bool = T::OPTIONAL;
    fn ty() -> &'static Type {
        T::ty()
    }
    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        Self(T::read(node, cx))
    }
    fn hole() -> Self {
        Self(T::hole())
    }
    fn absent() -> Self {
        Self(T::absent())
    }
    fn write(&self) -> Value {
        self.0.write()
    }
}

impl<T: Config + Clone> As<T> for Same<T> {
    fn into_value(self) -> T {
        self.0
    }
    fn from_value(value: &T) -> Self {
        Self(value.clone())
    }
}

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
