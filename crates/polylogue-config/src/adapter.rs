//! Fields of other types than the configuration types by which they are written.

use serde_json::Value;

use crate::config::Config;
use crate::cx::Cx;
use crate::types::Type;
use crate::yaml::Node;

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
    /// Converts the value that was read.
    fn into_value(self) -> T;

    /// Converts the value into the notation of the file.
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

impl<T, A: As<T>> As<Option<T>> for Option<A> {
    fn into_value(self) -> Option<T> {
        self.map(A::into_value)
    }
    fn from_value(value: &Option<T>) -> Self {
        value.as_ref().map(A::from_value)
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
