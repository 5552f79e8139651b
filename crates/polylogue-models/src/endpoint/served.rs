//! The models and the version of a server.

use bytes::Bytes;
use polylogue_core::{ModelError, ModelErrorKind};
use polylogue_http::{HeaderMap, Method};
use serde::Deserialize;
use serde_json::Value;
use url::Url;

use super::Endpoint;
use super::exchange::Outgoing;
use super::read::read_body;
use crate::api::Api;
use crate::cluster::Permit;
use crate::failure::{ErrorContext, Failure};
use crate::timeouts::{Clock, Limit};
use crate::wire::draft::DecodeError;

/// A model of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedModel {
    /// The name of the model at the server.
    pub name: String,
    /// Its size on disk in bytes, if the server reports it.
    pub bytes: Option<u64>,
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
        let body = self.get(path).await?;
        let List { models, data } = self.parse(&body)?;
        let Some(all) = models.or(data) else { return Err(self.unreadable("it is not a list of models")) };
        let served = |model: &Value| {
            let name = model.get(id).and_then(Value::as_str)?;
            let name = name.strip_prefix("models/").unwrap_or(name).to_owned();
            Some(ServedModel { name, bytes: model.get("size").and_then(Value::as_u64) })
        };
        Ok(all.iter().filter_map(served).collect())
    }

    /// The version of an Ollama server; `None` for other APIs.
    ///
    /// # Errors
    /// When the server does not answer, or the answer is not a version.
    pub async fn version(&self) -> Result<Option<String>, ModelError> {
        if self.api() != Api::Ollama {
            return Ok(None);
        }
        let answer: Value = self.parse(&self.get("/api/version").await?)?;
        match answer.get("version").and_then(Value::as_str) {
            Some(version) => Ok(Some(version.to_owned())),
            None => Err(self.unreadable("it has no `version`")),
        }
    }

    pub(super) fn parse<T: serde::de::DeserializeOwned>(&self, body: &[u8]) -> Result<T, ModelError> {
        serde_json::from_slice(body).map_err(|why| self.unreadable(&why.to_string()))
    }

    fn unreadable(&self, why: &str) -> ModelError {
        let error = DecodeError::Unreadable { why: why.to_owned(), excerpt: String::new() };
        self.context(self.provider()).flawed(error, 200).error
    }

    /// Sends one request for `path`.
    pub(super) async fn get(&self, path: &str) -> Result<Bytes, ModelError> {
        let context = self.context(self.provider());
        let _pass = self.0.limiter.pass().await;
        let url = self.place(path);
        self.read(&url, &context).await.map_err(|failure| failure.error)
    }

    async fn read(&self, url: &Url, context: &ErrorContext<'_>) -> Result<Bytes, Failure> {
        let timeouts = self.0.config.timeouts;
        let clock = Clock::start(timeouts);
        let (url, headers) = (Some(url), HeaderMap::new());
        let outgoing = Outgoing { method: Method::GET, url, headers, body: Bytes::new() };
        let (_, mut response) =
            self.0.key_pool.exchange(outgoing, &Permit::default(), (&clock, Limit::Total), context).await?;
        let body = read_body(&mut response, &clock).await;
        body.map_err(|stop| stop.failure(context, timeouts, response.status()))
    }
}
