//! What a server has: its models, and its version.

use bytes::Bytes;
use polylogue_core::{ModelError, ModelErrorKind};
use polylogue_http::Transport;
use serde::Deserialize;
use serde_json::Value;

use super::address::place;
use super::read::{read_body, refusal};
use super::{Api, Endpoint, headers};
use crate::failure::{ErrorContext, Failure};
use crate::timeouts::{Clock, Limit, Timeouts};
use crate::wire::decode::DecodeError;

/// A model that a server has.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServedModel {
    /// What the server calls it.
    pub name: String,
    /// What it takes on disk, in bytes, where the server says so.
    pub bytes: Option<u64>,
}

/// `/api/tags` of Ollama, `/models` of everybody else.
#[derive(Deserialize)]
struct List {
    #[serde(default)]
    models: Option<Vec<Value>>,
    #[serde(default)]
    data: Option<Vec<Value>>,
}

impl Endpoint {
    /// The models that the server has, in its order. It is asked once, and waited for as long as for a reply.
    ///
    /// # Errors
    /// When it does not answer, or with something else.
    pub async fn models(&self) -> Result<Vec<ServedModel>, ModelError> {
        let (path, id) = match self.api() {
            Api::ChatCompletions => ("/models", "id"),
            Api::Ollama => ("/api/tags", "name"),
        };
        let body = self.get(path).await?;
        let List { models, data } = self.parse(&body)?;
        let Some(all) = models.or(data) else { return Err(self.unreadable("it is no list of models")) };
        let served = |model: &Value| {
            let name = model.get(id).and_then(Value::as_str)?.to_owned();
            Some(ServedModel { name, bytes: model.get("size").and_then(Value::as_u64) })
        };
        Ok(all.iter().filter_map(served).collect())
    }

    /// The version of an Ollama server; `None` where the API knows no such question.
    ///
    /// # Errors
    /// When it does not answer, or with something else.
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

    fn parse<T: serde::de::DeserializeOwned>(&self, body: &[u8]) -> Result<T, ModelError> {
        serde_json::from_slice(body).map_err(|why| self.unreadable(&why.to_string()))
    }

    fn unreadable(&self, why: &str) -> ModelError {
        let flaw = DecodeError::Unreadable { why: why.to_owned(), excerpt: String::new() };
        self.blame(self.provider()).flawed(flaw, 200).error
    }

    /// Asks once for what is at `path`.
    async fn get(&self, path: &str) -> Result<Bytes, ModelError> {
        let config = &self.0.config;
        let refuse = |why: String| {
            ModelError::new(ModelErrorKind::Config, self.provider(), format!("the base URL {why}"))
        };
        let url = place(config.api, &config.base_url, path).map_err(refuse)?;
        let headers = headers(config, config.keys().next()).map_err(refuse)?;
        let transport =
            Transport::new(&url, headers, config.timeouts.connect, &config.proxies).map_err(refuse)?;
        let blame = self.blame(self.provider());
        let _pass = self.0.gate.pass().await;
        let got = get(&transport, &Clock::start(config.timeouts), &blame, config.timeouts).await;
        got.map_err(|failure| failure.error)
    }
}

async fn get(
    transport: &Transport,
    clock: &Clock,
    blame: &ErrorContext<'_>,
    timeouts: Timeouts,
) -> Result<Bytes, Failure> {
    let sent = clock.wait(Limit::Total, transport.get()).await;
    let sent = sent.map_err(|limit| blame.late(limit, timeouts))?;
    let mut response = sent.map_err(|why| blame.unsent(why, timeouts))?;
    let status = response.status();
    if !(200..300).contains(&status) {
        return Err(refusal(&mut response, clock, blame).await);
    }
    let body = read_body(&mut response, clock).await;
    body.map_err(|stop| stop.failure(blame, timeouts, status))
}
