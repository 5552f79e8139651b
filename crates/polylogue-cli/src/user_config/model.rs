//! The name of a model as a setting.

use polylogue_config::types::{Text, Variables};
use polylogue_config::{Illegal, Leaf, TextKind, suggest};
use polylogue_models::{Provider, known_provider};

/// A model as `provider:model`, of a provider that every team knows.
pub(super) type ModelText = Leaf<ModelName>;

pub(super) struct ModelName;

impl TextKind for ModelName {
    type Value = String;

    const TEXT: Text = Text {
        format: "model",
        pattern: "",
        examples: &["openai:gpt-4o-mini", "ollama:llama3.2"],
        variables: Variables::None,
    };

    fn parse(text: &str) -> Result<String, Illegal> {
        let (provider, model) = text.split_once([':', '/']).unwrap_or((text, ""));
        if provider.is_empty() || model.is_empty() || text.contains(char::is_whitespace) {
            let hint = match known_provider(text) {
                Some(provider) => format!("write `{provider}:{text}`"),
                None => "write `provider:model`, such as `openai:gpt-4o-mini`".to_owned(),
            };
            return Err(Illegal::new(format!("`{text}` is not a model")).hint(hint));
        }
        if Provider::find(provider).is_none() {
            let known = Provider::all().iter().map(Provider::name);
            let hint = suggest::hint(provider, known);
            return Err(Illegal::new(format!("there is no provider `{provider}`")).hint(hint));
        }
        Ok(text.to_owned())
    }

    fn to_text(value: &String) -> String {
        value.clone()
    }

    fn hole() -> String {
        String::new()
    }
}
