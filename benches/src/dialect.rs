//! The APIs, as providers have them.

use std::error::Error;

use polylogue::AnyModel;
use polylogue_models::{Api, Auth, Aws, Config, Endpoint, Env, Key, Provider};
use serde::{Deserialize, Serialize};

/// An API, as a provider has it.
#[derive(Debug, Clone, Copy, Serialize, Deserialize)]
pub(crate) enum Dialect {
    ChatCompletions,
    Responses,
    Messages,
    Gemini,
    /// Bedrock with a key.
    Converse,
    /// Bedrock with signed requests.
    SignedConverse,
    Mistral,
    Ollama,
}

impl Dialect {
    /// The first is the one that the others are compared with.
    pub(crate) const ALL: [Self; 8] = [
        Self::ChatCompletions,
        Self::Responses,
        Self::Messages,
        Self::Gemini,
        Self::Converse,
        Self::SignedConverse,
        Self::Mistral,
        Self::Ollama,
    ];

    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::ChatCompletions => "OpenAI chat completions",
            Self::Responses => "OpenAI Responses",
            Self::Messages => "Anthropic Messages",
            Self::Gemini => "Gemini",
            Self::Converse => "Bedrock Converse, with a key",
            Self::SignedConverse => "Bedrock Converse, signed",
            Self::Mistral => "Mistral",
            Self::Ollama => "Ollama",
        }
    }

    /// The provider, the path of its API at the server, and a model.
    const fn place(self) -> (&'static str, &'static str, &'static str) {
        match self {
            Self::ChatCompletions | Self::Responses => ("openai", "/v1", "gpt-4o-mini"),
            Self::Messages => ("anthropic", "", "claude-haiku-4-5"),
            Self::Gemini => ("gemini", "/v1beta", "gemini-2.0-flash"),
            Self::Converse | Self::SignedConverse => ("bedrock", "", "amazon.nova-lite-v1:0"),
            Self::Mistral => ("mistral", "/v1", "mistral-small-latest"),
            Self::Ollama => ("ollama", "", "llama3.2"),
        }
    }

    /// A model by this API at the server with this address.
    pub(crate) fn model(
        self,
        root_url: &str,
        stream: bool,
    ) -> Result<AnyModel, Box<dyn Error + Send + Sync>> {
        let (provider, path, model) = self.place();
        let provider = Provider::find(provider).ok_or("a provider is unknown")?;
        let mut config = Config { stream, ..provider.config_at(&format!("{root_url}{path}")) };
        match self {
            Self::SignedConverse => config.auth = Auth::Aws(Aws::of(&credentials())?),
            Self::Ollama => {}
            _ => config.key = Key::new("none"),
        }
        if matches!(self, Self::Responses) {
            config.api = Api::Responses;
        }
        Ok(AnyModel::new(Endpoint::new(config)?.model(model)))
    }
}

fn credentials() -> Env {
    Env::of([
        ("AWS_REGION", "eu-west-1"),
        ("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE"),
        ("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY"),
    ])
}
