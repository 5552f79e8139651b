//! Embeddings: `/embeddings` of OpenAI, `/api/embed` of Ollama.

use std::sync::Arc;

use bytes::Bytes;
use polylogue_core::{Bound, ModelError, ModelErrorKind, Price, Reservation, Usage};
use polylogue_http::Transport;
use polylogue_memory::{Embed, Embedded};
use serde::Deserialize;
use serde_json::json;

use super::key_pool::KeyPool;
use super::model::next_attempt;
use super::read::{read_body, refusal};
use super::{Endpoint, headers};
use crate::address::place;
use crate::api::Api;
use crate::catalog::list_price_at;
use crate::failure::{ErrorContext, Failure};
use crate::retry::Attempts;
use crate::timeouts::{Clock, Limit};
use crate::wire::draft::DecodeError;

/// An embedding model of an endpoint. Cloning shares the endpoint.
///
/// Accepts any number of texts: they are sent in requests of at most [`MAX_TEXTS`](Self::MAX_TEXTS) texts and
/// [`MAX_CHARS`](Self::MAX_CHARS) characters, one after the other, each with the endpoint's
/// [`Retries`](crate::Retries).
///
/// ```
/// use polylogue_memory::Embed;
/// use polylogue_models::{Env, Models};
/// let models = Models::new(Env::of([("OLLAMA_HOST", "gpu")]));
/// assert_eq!(models.embedder("ollama:nomic-embed-text")?.name(), "ollama:nomic-embed-text");
/// # Ok::<(), polylogue_core::ModelError>(())
/// ```
#[derive(Clone)]
pub struct Embedder {
    inner: Arc<Inner>,
    price: Option<Price>,
}

struct Inner {
    endpoint: Endpoint,
    /// The model's name at the endpoint.
    model: String,
    /// `provider:model`.
    name: String,
    transports: KeyPool,
}

impl std::fmt::Debug for Embedder {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Embedder").field(&self.inner.name).finish()
    }
}

impl Endpoint {
    /// The embedding model `name` of the endpoint.
    ///
    /// # Errors
    /// When its address cannot be used.
    pub fn embedder(&self, name: &str) -> Result<Embedder, ModelError> {
        let config = &self.0.config;
        let refuse = |why: String| {
            ModelError::new(ModelErrorKind::Config, self.provider(), format!("the base URL {why}"))
        };
        let path = match config.api {
            Api::ChatCompletions => "/embeddings",
            Api::Ollama => "/api/embed",
        };
        let url = place(config.api, &config.base_url, path).map_err(refuse)?;
        let mut keys: Vec<_> = config.keys().map(Some).collect();
        if keys.is_empty() {
            keys.push(None);
        }
        let transport = |key| {
            let headers = headers(config, key).map_err(refuse)?;
            Transport::new(&url, headers, config.timeouts.connect, &config.proxies).map_err(refuse)
        };
        let transports = KeyPool::new(keys.into_iter().map(transport).collect::<Result<_, _>>()?);
        let price = list_price_at(self.provider(), &config.base_url, name);
        let (model, name) = (name.to_owned(), format!("{}:{name}", self.provider()));
        let inner = Arc::new(Inner { endpoint: self.clone(), model, name, transports });
        Ok(Embedder { inner, price })
    }
}

impl Embedder {
    /// The maximum number of texts in one request.
    pub const MAX_TEXTS: usize = 64;

    /// The maximum number of characters in one request, unless a single text has more: providers accept about 8,000
    /// to 300,000 tokens a request.
    pub const MAX_CHARS: usize = 24_000;

    /// Sets the price; `None` makes the cost unknown.
    #[must_use]
    pub fn with_price(self, price: Option<Price>) -> Self {
        Self { price, ..self }
    }

    /// The price, if it is known. Default: the list price.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        self.price.clone()
    }

    /// One request, with the endpoint's retries.
    async fn request(
        &self,
        texts: &[String],
        reserved: Option<&Reservation<'_>>,
    ) -> Result<Embedded, ModelError> {
        let Inner { endpoint, model, name, .. } = &*self.inner;
        let context = endpoint.context(name);
        if endpoint.lacks_key() {
            return Err(context.no_key());
        }
        let body = Bytes::from(json!({"model": model, "input": texts}).to_string());
        let mut attempts = Attempts::begin(endpoint.retries(), endpoint.jitter());
        loop {
            match self.attempt(body.clone(), texts.len(), &context).await {
                Ok(embedded) => return Ok(embedded),
                Err(failure) => {
                    reserved.into_iter().for_each(|reserved| reserved.fail(failure.ended));
                    let last = failure.error.clone();
                    tokio::time::sleep(next_attempt(failure, &mut attempts)?).await;
                    // Every attempt counts, and may not fit into a limit.
                    if let Some(reserved) = reserved
                        && !reserved.again().await
                    {
                        return Err(last);
                    }
                }
            }
        }
    }

    async fn attempt(
        &self,
        body: Bytes,
        texts: usize,
        context: &ErrorContext<'_>,
    ) -> Result<Embedded, Failure> {
        let Inner { endpoint, transports, .. } = &*self.inner;
        let _pass = endpoint.0.limiter.pass().await;
        let timeouts = endpoint.0.config.timeouts;
        let clock = Clock::start(timeouts);
        let (key, transport) = transports.next(None).ok_or_else(|| context.no_credit(transports.len()))?;
        let sent = clock.wait(Limit::Total, transport.post(body)).await;
        let sent = sent.map_err(|limit| context.late(limit, timeouts))?;
        let mut response = sent.map_err(|why| context.unsent(why, timeouts))?;
        let status = response.status();
        if !(200..300).contains(&status) {
            return Err(transports.but_for(key, refusal(&mut response, &clock, context).await));
        }
        let body = read_body(&mut response, &clock).await;
        let body = body.map_err(|stop| stop.failure(context, timeouts, status))?;
        decode(&body, texts).map_err(|error| transports.but_for(key, context.flawed(error, status)))
    }
}

impl Embed for Embedder {
    fn name(&self) -> &str {
        &self.inner.name
    }

    async fn embed(&self, texts: &[String]) -> Result<Embedded, ModelError> {
        self.vectors(texts, None).await
    }

    async fn embed_reserved(
        &self,
        texts: &[String],
        reserved: &Reservation<'_>,
    ) -> Result<Embedded, ModelError> {
        self.vectors(texts, Some(reserved)).await
    }

    fn bound(&self, texts: &[String]) -> Bound {
        Bound::of_texts(texts, |usage| self.price.as_ref().and_then(|price| price.of(usage)))
    }
}

impl Embedder {
    async fn vectors(
        &self,
        texts: &[String],
        reserved: Option<&Reservation<'_>>,
    ) -> Result<Embedded, ModelError> {
        if texts.iter().any(|text| text.trim().is_empty()) {
            let why = "a text to be embedded is empty, which providers refuse";
            return Err(ModelError::new(ModelErrorKind::Config, &*self.inner.name, why));
        }
        // Vectors have no output tokens.
        let usage = Usage { input: Some(0), output: Some(0), ..Usage::default() };
        let mut all = Embedded { usage, ..Embedded::default() };
        for batch in batches(texts) {
            let Embedded { vectors, usage, .. } = self.request(batch, reserved).await?;
            all.vectors.extend(vectors);
            all.usage.input = all.usage.input.zip(usage.input).map(|(one, other)| one.saturating_add(other));
        }
        let length = all.vectors.first().map_or(0, Vec::len);
        if all.vectors.iter().any(|vector| vector.len() != length) {
            let why = "the reply cannot be read: its vectors have different lengths";
            return Err(ModelError::new(ModelErrorKind::Protocol, &*self.inner.name, why));
        }
        all.cost = self.price.as_ref().and_then(|price| price.of(&all.usage));
        Ok(all)
    }
}

/// The texts in batches for one request each, in order.
fn batches(texts: &[String]) -> Vec<&[String]> {
    let mut batches = Vec::new();
    let (mut from, mut chars) = (0, 0);
    for (index, text) in texts.iter().enumerate() {
        let length = text.chars().count();
        if index > from && (chars + length > Embedder::MAX_CHARS || index - from == Embedder::MAX_TEXTS) {
            batches.extend(texts.get(from..index));
            (from, chars) = (index, 0);
        }
        chars += length;
    }
    batches.extend(texts.get(from..).filter(|rest| !rest.is_empty()));
    batches
}

/// A reply of either API.
#[derive(Deserialize)]
struct Answer {
    /// OpenAI's.
    #[serde(default)]
    data: Option<Vec<Row>>,
    #[serde(default)]
    usage: Option<Tokens>,
    /// Ollama's.
    #[serde(default)]
    embeddings: Option<Vec<Vec<f32>>>,
    #[serde(default)]
    prompt_eval_count: Option<u64>,
    /// Some servers report errors with a success status.
    #[serde(default)]
    error: Option<serde_json::Value>,
}

#[derive(Deserialize)]
struct Row {
    #[serde(default)]
    index: Option<usize>,
    embedding: Vec<f32>,
}

#[derive(Deserialize)]
struct Tokens {
    #[serde(default)]
    prompt_tokens: Option<u64>,
    #[serde(default)]
    total_tokens: Option<u64>,
}

fn decode(body: &[u8], texts: usize) -> Result<Embedded, DecodeError> {
    let excerpt =
        || String::from_utf8_lossy(body.get(..body.len().min(500)).unwrap_or_default()).into_owned();
    let unreadable = |why: String| DecodeError::Unreadable { why, excerpt: excerpt() };
    if body.iter().all(u8::is_ascii_whitespace) {
        return Err(DecodeError::Empty);
    }
    let answer: Answer = serde_json::from_slice(body).map_err(|why| unreadable(why.to_string()))?;
    if answer.error.is_some() {
        return Err(DecodeError::Error(String::from_utf8_lossy(body).into_owned()));
    }
    let input = answer.usage.and_then(|usage| usage.prompt_tokens.or(usage.total_tokens));
    let usage = Usage { input: input.or(answer.prompt_eval_count), ..Usage::default() };
    let vectors = match (answer.data, answer.embeddings) {
        (Some(rows), _) => in_order(rows).map_err(|why| unreadable(why.to_owned()))?,
        (None, Some(vectors)) => vectors,
        (None, None) => return Err(unreadable("it has neither `data` nor `embeddings`".to_owned())),
    };
    let sound = |vector: &Vec<f32>| !vector.is_empty() && vector.iter().all(|number| number.is_finite());
    if vectors.len() != texts {
        return Err(unreadable(format!("it has {} vectors for {texts} texts", vectors.len())));
    }
    match vectors.iter().all(sound) {
        true => Ok(Embedded { vectors, usage, cost: None }),
        false => Err(unreadable("one of its vectors is empty, or has a number that is none".to_owned())),
    }
}

/// The vectors in the order of the texts, by their indices if they have any.
fn in_order(mut rows: Vec<Row>) -> Result<Vec<Vec<f32>>, &'static str> {
    if rows.iter().any(|row| row.index.is_some()) {
        rows.sort_by_key(|row| row.index);
        if !rows.iter().enumerate().all(|(place, row)| row.index == Some(place)) {
            return Err("its vectors are not numbered from 0 on");
        }
    }
    Ok(rows.into_iter().map(|row| row.embedding).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_in_texts_and_characters_and_lose_nothing() {
        let sizes = |lengths: &[usize]| -> Vec<usize> {
            let texts: Vec<String> = lengths.iter().map(|length| "é".repeat(*length)).collect();
            let batches = batches(&texts);
            assert_eq!(batches.concat(), texts);
            batches.iter().map(|batch| batch.len()).collect()
        };
        assert_eq!(sizes(&[]), [0; 0]);
        assert_eq!(sizes(&[1; 130]), [64, 64, 2]);
        assert_eq!(sizes(&[10_000, 10_000, 10_000]), [2, 1]);
        assert_eq!(sizes(&[100_000, 1, 24_000, 1]), [1, 1, 1, 1]);
        assert_eq!(sizes(&[23_999, 1, 1]), [2, 1]);
    }
}
