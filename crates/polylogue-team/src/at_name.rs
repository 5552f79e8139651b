//! Declarations of tools, with the positions of their names.

use polylogue_config::types::Type;
use polylogue_config::yaml::Node;
use polylogue_config::{As, At, Config, Cx};
use serde_json::Value;

/// A mapping whose position is that of its key `name`, to which mistakes point.
pub(crate) struct AtName<K>(At<K>);

impl<K: Config> Config for AtName<K> {
    fn ty() -> &'static Type {
        K::ty()
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let read = At::<K>::read(node, cx);
        let span = node.entry("name").map_or(&node.span, |name| &name.value.span).clone();
        Self(At { span, ..read })
    }

    fn hole() -> Self {
        Self(At::hole())
    }

    fn write(&self) -> Value {
        self.0.write()
    }
}

impl<T, K: As<T>> As<At<T>> for AtName<K> {
    fn into_value(self) -> At<T> {
        self.0.into_value()
    }

    fn from_value(value: &At<T>) -> Self {
        Self(At::from_value(value))
    }
}
