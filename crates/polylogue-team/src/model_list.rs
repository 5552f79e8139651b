//! The models that a key names: one, or several for fallback.

use polylogue_config::types::{Kind, Type};
use polylogue_config::yaml::Node;
use polylogue_config::{As, Config, Cx, Leaf, OneOrMany};
use polylogue_models::{FailureClass, model_names};
use serde_json::Value;

use crate::text::ModelText;

/// One model, or several in the order in which they are asked. Its value is their names with commas between them.
pub(crate) struct ModelList(String);

impl Config for ModelList {
    fn ty() -> &'static Type {
        const { &Type { name: "", doc: "", kind: Kind::OneOrMany(ModelText::ty) } }
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        let OneOrMany(models) = OneOrMany::<ModelText>::read(node, cx);
        Self(models.into_iter().map(|model| model.0).collect::<Vec<_>>().join(","))
    }

    fn hole() -> Self {
        Self(String::new())
    }

    fn write(&self) -> Value {
        OneOrMany::<ModelText>(model_names(&self.0).map(|name| Leaf(name.to_owned())).collect()).write()
    }
}

impl As<String> for ModelList {
    fn into_value(self) -> String {
        self.0
    }

    fn from_value(value: &String) -> Self {
        Self(value.clone())
    }
}

/// Class of failures of a model call.
#[derive(Config)]
#[config(name = "FailureClass", for = FailureClass)]
pub(crate) enum FailureKey {
    /// A rate limit, or an account without credit.
    Rate,
    /// The provider is overloaded.
    Overload,
    /// An error of the provider, or a reply that cannot be parsed.
    Server,
    /// A timeout.
    Timeout,
    /// The provider cannot be reached, or the connection broke.
    Connection,
    /// The conversation is longer than the context window. A model whose window is known to be no larger is skipped.
    TooLong,
    /// The provider filtered the reply, or the model refused to reply.
    Refusal,
}
