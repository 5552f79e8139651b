//! The models that a key names: one, or several for fallback.

use polylogue_config::types::{Kind, Text, Type, Variables};
use polylogue_config::yaml::Node;
use polylogue_config::{As, Config, Cx, Illegal, Leaf, OneOrMany, TextKind};
use polylogue_models::{FailureClass, FallbackReturn, model_names};
use serde_json::Value;

use crate::duration::Time;
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
    /// A timeout of the endpoint, or one that the provider reports (`408`, `504`).
    Timeout,
    /// The provider cannot be reached, or the connection broke.
    Connection,
    /// The conversation is longer than the context window. A model whose window is known to be no larger is skipped.
    TooLong,
    /// The provider filtered the request or the reply, or the model refused to reply.
    Refusal,
}

/// When the first model of a list is asked again.
pub(crate) struct ReturnWord;

pub(crate) type ReturnText = Leaf<ReturnWord>;

impl TextKind for ReturnWord {
    type Value = FallbackReturn;
    const TEXT: Text = Text {
        format: "word or duration",
        pattern: "^(turn|never| *[0-9]*\\.?[0-9]* *(ms|s|min|h) *)$",
        examples: &["turn", "never", "10 min"],
        variables: Variables::All,
    };

    fn parse(text: &str) -> Result<FallbackReturn, Illegal> {
        match text {
            "turn" => Ok(FallbackReturn::Turn),
            "never" => Ok(FallbackReturn::Never),
            _ => match <Time as TextKind>::parse(text) {
                Ok(time) => Ok(FallbackReturn::After(time.into())),
                Err(_) => Err(Illegal::new(format!("`{text}` is neither `turn` nor `never` nor a time"))
                    .hint("write `turn`, `never`, or a number and its unit such as `10 min`")),
            },
        }
    }

    fn to_text(value: &FallbackReturn) -> String {
        match value {
            FallbackReturn::Turn => "turn".to_owned(),
            FallbackReturn::Never => "never".to_owned(),
            FallbackReturn::After(time) => format!("{} ms", time.as_millis()),
        }
    }

    fn hole() -> FallbackReturn {
        FallbackReturn::Turn
    }
}
