//! The models and the version of a server.

use bytes::Bytes;
use polylogue_core::{ModelError, ModelErrorKind};
use polylogue_http::{HeaderMap, Method};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use url::Url;

use super::Endpoint;
use super::exchange::{Exchanged, Outgoing};
use super::read::{Stop, read_body};
use crate::api::Api;
use crate::cluster::Permit;
use crate::failure::{ErrorContext, Failure};
use crate::timeouts::{Clock, Limit};
use crate::wire::draft::DecodeError;

/// A model of a server.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServedModel {
    /// The name of the model at the server.
    pub name: String,
    /// The size on disk in bytes, if the server reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    /// The context window in tokens, if the server reports it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_input: Option<u64>,
    /// The most tokens of a reply, if the server reports them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_output: Option<u64>,
}

/// Where servers report the context window of a model: vLLM and SGLang; OpenRouter and Together; Groq; Mistral and LM Studio;
/// Anthropic; Gemini; llama.cpp, which tells the window of the training and, in newer versions, its own.
const MAX_INPUT: [&str; 8] = [
    "/max_model_len",
    "/context_length",
    "/context_window",
    "/max_context_length",
    "/max_input_tokens",
    "/inputTokenLimit",
    "/meta/n_ctx",
    "/meta/n_ctx_train",
];

/// Where servers report the most tokens of a reply: Groq; OpenRouter; Anthropic; Gemini.
const MAX_OUTPUT: [&str; 4] =
    ["/max_completion_tokens", "/top_provider/max_completion_tokens", "/max_tokens", "/outputTokenLimit"];

impl ServedModel {
    /// The model of a list, whose name is the value of `id`.
    fn read(model: &Value, id: &str) -> Option<Self> {
        let name = model.get(id).and_then(Value::as_str)?;
        let first = |places: &[&str]| {
            let mut told = places.iter().filter_map(|place| model.pointer(place)?.as_u64());
            told.find(|tokens| *tokens > 0)
        };
        Some(Self {
            name: name.strip_prefix("models/").unwrap_or(name).to_owned(),
            bytes: model.get("size").and_then(Value::as_u64),
            max_input: first(&MAX_INPUT),
            max_output: first(&MAX_OUTPUT),
        })
    }
}

/// The reply of `/api/tags` of Ollama, or `/models` of others.
#[derive(Deserialize)]
struct List {
    #[serde(default)]
    models: Option<Vec<Value>>,
    #[serde(default)]
    data: Option<Vec<Value>>,
}

impl Endpoint {
    /// Lists the models of the server, in its order. One request, without retries, with the timeouts of a reply.
    ///
    /// # Errors
    /// When the server does not answer, or the answer is not a list of models.
    pub async fn models(&self) -> Result<Vec<ServedModel>, ModelError> {
        if self.api() == Api::Converse {
            return self.models_of_bedrock().await;
        }
        let (path, id) = self.api().http().models;
        if path.is_empty() {
            let why = "its API does not list models";
            return Err(ModelError::new(ModelErrorKind::Config, self.provider(), why));
        }
        let List { models, data } = self.get(path).await?;
        let Some(all) = models.or(data) else { return Err(self.unreadable("it is not a list of models")) };
        Ok(all.iter().filter_map(|model| ServedModel::read(model, id)).collect())
    }

    /// Asks for the version of an Ollama server; `None` for other APIs.
    ///
    /// # Errors
    /// When the server does not answer, or the answer is not a version.
    pub async fn version(&self) -> Result<Option<String>, ModelError> {
        if self.api() != Api::Ollama {
            return Ok(None);
        }
        let answer: Value = self.get("/api/version").await?;
        match answer.get("version").and_then(Value::as_str) {
            Some(version) => Ok(Some(version.to_owned())),
            None => Err(self.unreadable("it has no `version`")),
        }
    }

    fn unreadable(&self, why: &str) -> ModelError {
        self.context(self.provider()).flawed(unreadable(why), 200).error
    }

    /// Sends one request for `path`, and reads the JSON of its reply.
    pub(super) async fn get<T: DeserializeOwned>(&self, path: &str) -> Result<T, ModelError> {
        let context = self.context(self.provider());
        let _pass = self.0.limiter.pass().await;
        let url = self.place(path);
        self.read(&url, &context).await.map_err(|failure| failure.error)
    }

    async fn read<T: DeserializeOwned>(&self, url: &Url, context: &ErrorContext<'_>) -> Result<T, Failure> {
        let timeouts = self.0.config.timeouts;
        let clock = Clock::start(timeouts);
        let (url, headers) = (Some(url), HeaderMap::new());
        let outgoing = Outgoing { method: Method::GET, url, headers, body: Bytes::new() };
        let Exchanged { mut response, authorized, .. } =
            self.0.key_pool.exchange(outgoing, &Permit::default(), (&clock, Limit::Total), context).await?;
        let body = read_body(&mut response, &clock).await;
        let parsed = body.and_then(|body| {
            serde_json::from_slice(&body).map_err(|why| Stop::from(unreadable(&why.to_string())))
        });
        let status = response.status();
        parsed.map_err(|stop| authorized.hidden(context, |context| stop.failure(context, timeouts, status)))
    }
}

fn unreadable(why: &str) -> DecodeError {
    DecodeError::Unreadable { why: why.to_owned(), excerpt: String::new() }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn limits_are_read_where_servers_report_them() {
        for (model, limits) in [
            (json!({"id": "m", "max_model_len": 32_768}), (Some(32_768), None)),
            (
                json!({"id": "m", "context_length": 131_072, "top_provider": {"max_completion_tokens": 16_384}}),
                (Some(131_072), Some(16_384)),
            ),
            (json!({"id": "m", "context_length": 131_072, "top_provider": null}), (Some(131_072), None)),
            (
                json!({"id": "m", "context_window": 8_192, "max_completion_tokens": 4_096}),
                (Some(8_192), Some(4_096)),
            ),
            (json!({"id": "m", "max_context_length": 4_096}), (Some(4_096), None)),
            (
                json!({"id": "m", "max_input_tokens": 200_000, "max_tokens": 64_000}),
                (Some(200_000), Some(64_000)),
            ),
            (
                json!({"id": "m", "inputTokenLimit": 1_048_576, "outputTokenLimit": 65_536}),
                (Some(1_048_576), Some(65_536)),
            ),
            (json!({"id": "m", "meta": {"n_ctx_train": 32_768}}), (Some(32_768), None)),
            (json!({"id": "m", "meta": {"n_ctx": 4_096, "n_ctx_train": 32_768}}), (Some(4_096), None)),
            // What is not a number of tokens says nothing.
            (json!({"id": "m", "context_length": "long", "max_tokens": -1, "meta": [1]}), (None, None)),
            (json!({"id": "m", "max_model_len": 0, "context_length": 8}), (Some(8), None)),
        ] {
            let read = ServedModel::read(&model, "id").unwrap();
            assert_eq!((read.max_input, read.max_output), limits, "{model}");
        }
        assert_eq!(ServedModel::read(&json!({"name": "models/g"}), "name").unwrap().name, "g");
        assert_eq!(ServedModel::read(&json!({"max_model_len": 8}), "id"), None);
    }
}
