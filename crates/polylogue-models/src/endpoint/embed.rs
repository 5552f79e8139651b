//! Embedding models of an endpoint.

use std::borrow::Cow;
use std::sync::Arc;

use bytes::Bytes;
use polylogue_core::{Bound, FailedAttempt, ModelError, ModelErrorKind, Money, Price, Reservation, Usage};
use polylogue_http::header::ACCEPT;
use polylogue_http::{HeaderMap, HeaderValue, Method};
use polylogue_memory::{Embed, EmbedPurpose, Embedded};
use url::Url;

use super::Endpoint;
use super::exchange::{Exchanged, Outgoing};
use super::model::next_attempt;
use super::read::{Stop, read_body};
use crate::address::place;
use crate::authorizer::JSON;
use crate::azure;
use crate::embedding::{Form, Inputs, Prefixes, decode};
use crate::failure::{ErrorContext, Failure};
use crate::prices::Prices;
use crate::retry::Attempts;
use crate::timeouts::{Clock, Limit};

/// An embedding model of an endpoint. Cloning shares the endpoint.
///
/// Accepts any number of texts: they are sent in requests of as many texts as the provider takes and at most
/// [`MAX_CHARS`](Self::MAX_CHARS) characters, one after the other, each with the endpoint's
/// [`Retries`](crate::Retries). Vectors have length 1.
///
/// A model that distinguishes stored texts and queries receives the [`EmbedPurpose`], in the provider's field or as the prefix
/// that the model was trained with (`search_query: ` for `nomic-embed-text`).
///
/// ```
/// use polylogue_memory::Embed;
/// use polylogue_models::{Env, Models};
/// let models = Models::new(Env::of([("OLLAMA_HOST", "gpu")]));
/// assert_eq!(models.embedder("ollama:nomic-embed-text")?.name(), "ollama:nomic-embed-text");
/// # Ok::<(), polylogue_core::ModelError>(())
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("Embedder({:?})", self.inner.name)]
pub struct Embedder {
    inner: Arc<Inner>,
    price: Option<Price>,
    dimensions: Option<u32>,
}

struct Inner {
    endpoint: Endpoint,
    /// The model's name at the endpoint.
    model: String,
    /// `provider:model`.
    name: String,
    url: Url,
    form: &'static Form,
    /// What the model expects before a text.
    prefixes: Option<Prefixes>,
}

impl Endpoint {
    /// Returns the embedding model `name` of the endpoint.
    ///
    /// # Errors
    /// When its API has no embeddings, or none for this model.
    pub fn embedder(&self, name: &str) -> Result<Embedder, ModelError> {
        let (provider, config) = (self.provider(), &self.0.config);
        let listed = config.listed(name);
        let form = self.form(listed.unwrap_or(name))?;
        let inner = Inner {
            endpoint: self.clone(),
            model: name.to_owned(),
            name: format!("{provider}:{name}"),
            url: self.embeddings_url(form, name),
            form,
            prefixes: Prefixes::of(listed.unwrap_or(name)),
        };
        let price = self.price(name, &Prices::default());
        Ok(Embedder { inner: Arc::new(inner), price, dimensions: None })
    }

    /// The form of requests for vectors of `model`.
    fn form(&self, model: &str) -> Result<&'static Form, ModelError> {
        let refuse = |why: String, hint: String| {
            ModelError::new(ModelErrorKind::Config, self.provider(), why).hint(hint)
        };
        let api = self.0.config.embeddings.or(self.api().http().embeddings).ok_or_else(|| {
            let hint = "take a model of another provider, such as `openai:text-embedding-3-small`";
            refuse("its API has no embeddings".to_owned(), hint.to_owned())
        })?;
        Form::find(api, model).ok_or_else(|| {
            let known = Form::known(api).join("` or `");
            let hint = format!("take a model whose name has `{known}` in it");
            refuse(format!("it is unknown how `{model}` embeds texts"), hint)
        })
    }

    /// The URL of requests for vectors of `model`.
    fn embeddings_url(&self, form: &Form, model: &str) -> Url {
        let target = (form.path)(model);
        if let Some(version) = &self.0.config.api_version {
            return azure::versioned(&self.0.base, &target, Some(model), version);
        }
        let mut base = self.0.base.clone();
        let path = self.api().root(base.path()).to_owned();
        if let Some(above) = form.other_paths.iter().find_map(|end| path.strip_suffix(end)) {
            base.set_path(above);
        }
        place(self.api(), &base, &target)
    }
}

impl Embedder {
    /// The maximum number of characters in one request, unless a single text has more: providers accept about 8,000
    /// to 300,000 tokens a request.
    pub const MAX_CHARS: usize = 24_000;

    /// Sets the price; `None` makes the cost unknown.
    #[must_use]
    pub fn with_price(self, price: Option<Price>) -> Self {
        Self { price, ..self }
    }

    /// Sets the length of vectors, for models that can shorten them. Default: that of the model. A model that ignores it is an
    /// error of the call.
    #[must_use]
    pub fn with_dimensions(self, dimensions: Option<u32>) -> Self {
        Self { dimensions, ..self }
    }

    /// At the user's price, if `prices` has one today.
    pub(crate) fn priced(self, prices: &Prices) -> Self {
        let price = self.inner.endpoint.price(&self.inner.model, prices);
        self.with_price(price)
    }

    /// Returns the price, if it is known. Default: the list price.
    pub fn price(&self) -> Option<Price> {
        self.price.clone()
    }

    /// Returns why each request would fail, if the endpoint needs a key or credentials and has none.
    pub fn missing_key(&self) -> Option<ModelError> {
        let Inner { endpoint, name, .. } = &*self.inner;
        let no_key = || endpoint.context(name).no_key();
        endpoint.0.config.missing_credentials().or_else(|| endpoint.lacks_key().then(no_key))
    }

    /// One request, with the endpoint's retries. The error says how the last attempt ended.
    async fn request(
        &self,
        texts: &[String],
        purpose: EmbedPurpose,
        reserved: Option<&Reservation<'_>>,
    ) -> Result<Embedded, (ModelError, FailedAttempt)> {
        let Inner { endpoint, model, name, form, prefixes, .. } = &*self.inner;
        let context = endpoint.context(name);
        if endpoint.lacks_key() {
            return Err((context.no_key(), FailedAttempt::Unsent));
        }
        let purpose = prefixes.is_none().then_some(purpose);
        let inputs = Inputs { model, texts, purpose, dimensions: self.dimensions };
        let body = Bytes::from(form.body(&inputs).to_string());
        let mut attempts = Attempts::begin(endpoint.retries(), endpoint.jitter());
        loop {
            match self.attempt(body.clone(), texts.len(), &context).await {
                Ok(embedded) => return Ok(embedded),
                Err(failure) => {
                    // Nothing counts of what was refused: its reservation is that of the next attempt.
                    let (last, ended) = (failure.error.clone(), failure.ended);
                    let counts = reserved.filter(|_| ended == FailedAttempt::Broken);
                    counts.into_iter().for_each(|reserved| reserved.fail(ended));
                    let wait = next_attempt(failure, &mut attempts, endpoint.patience());
                    tokio::time::sleep(wait.map_err(|error| (error, ended))?).await;
                    // It may not fit into a limit.
                    if let Some(reserved) = counts
                        && !reserved.again().await
                    {
                        return Err((last, ended));
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
        let Inner { endpoint, url, .. } = &*self.inner;
        let estimate = u64::try_from(body.len() / 4).unwrap_or(u64::MAX);
        let (_pass, permit) = endpoint.admitted(None, estimate, context).await?;
        let timeouts = endpoint.0.config.timeouts;
        let clock = Clock::start(timeouts);
        let mut headers = HeaderMap::from_iter([(ACCEPT, HeaderValue::from_static(JSON))]);
        // Those of the configuration take precedence.
        endpoint.0.config.headers.iter().for_each(|(name, _)| drop(headers.remove(name)));
        let outgoing = Outgoing { method: Method::POST, url: Some(url), headers, body };
        let Exchanged { key, mut response, authorized } =
            endpoint.0.key_pool.exchange(outgoing, &permit, (&clock, Limit::Total), context).await?;
        let status = response.status();
        let counted = tokens(response.headers());
        let body = read_body(&mut response, &clock).await;
        let failed = |stop: Stop| {
            let failure = authorized.hidden(context, |context| stop.failure(context, timeouts, status));
            endpoint.0.key_pool.but_for(key, failure)
        };
        let body = body.map_err(failed)?;
        let mut embedded = decode(&body, texts).map_err(|error| failed(error.into()))?;
        endpoint.0.key_pool.succeeded(key);
        embedded.usage.input = embedded.usage.input.or(counted);
        // Vectors have no output tokens.
        permit.settle(&Usage { output: Some(0), ..embedded.usage });
        Ok(embedded)
    }
}

impl Embed for Embedder {
    fn name(&self) -> &str {
        &self.inner.name
    }

    async fn embed(&self, texts: &[String], purpose: EmbedPurpose) -> Result<Embedded, ModelError> {
        self.vectors(texts, purpose, None).await
    }

    async fn embed_reserved(
        &self,
        texts: &[String],
        purpose: EmbedPurpose,
        reserved: &Reservation<'_>,
    ) -> Result<Embedded, ModelError> {
        self.vectors(texts, purpose, Some(reserved)).await
    }

    fn batch(&self, texts: &[String], purpose: EmbedPurpose) -> usize {
        let max_texts = self.inner.form.max_texts;
        // A caller asks once for each request, with all texts that are left: only those that can be in it get their prefix.
        let first = texts.get(..texts.len().min(max_texts)).unwrap_or_default();
        first_batch(&self.prefixed(first, purpose), max_texts)
    }

    fn dimensions(&self) -> Option<usize> {
        self.dimensions.and_then(|dimensions| usize::try_from(dimensions).ok())
    }

    fn bound(&self, texts: &[String]) -> Bound {
        let longest = self.inner.prefixes.map_or(EmbedPurpose::Search, Prefixes::longest);
        let texts = self.prefixed(texts, longest);
        Bound::of_texts(&texts, |usage| self.cost(usage))
    }
}

impl Embedder {
    async fn vectors(
        &self,
        texts: &[String],
        purpose: EmbedPurpose,
        reserved: Option<&Reservation<'_>>,
    ) -> Result<Embedded, ModelError> {
        if texts.iter().any(|text| text.trim().is_empty()) {
            let why = "a text to be embedded is empty, which providers refuse";
            return Err(ModelError::new(ModelErrorKind::Config, &*self.inner.name, why));
        }
        // Vectors have no output tokens.
        let usage = Usage { input: Some(0), output: Some(0), ..Usage::default() };
        let mut all = Embedded { usage, ..Embedded::default() };
        let texts = self.prefixed(texts, purpose);
        for batch in batches(&texts, self.inner.form.max_texts) {
            let made = match self.request(batch, purpose, reserved).await {
                Ok(made) => made,
                Err((error, ended)) => return Err(self.failed(error, ended, &all.usage, reserved)),
            };
            all.vectors.extend(made.vectors);
            let both = all.usage.input.zip(made.usage.input);
            all.usage.input = both.map(|(one, other)| one.saturating_add(other));
        }
        if let Err(error) = self.check_lengths(&all.vectors) {
            return Err(self.failed(error, FailedAttempt::Refused, &all.usage, reserved));
        }
        all.cost = self.cost(&all.usage);
        Ok(all)
    }

    /// `error` of the last attempt, which `ended` so, counted together with the `used` tokens of the requests before it.
    fn failed(
        &self,
        error: ModelError,
        ended: FailedAttempt,
        used: &Usage,
        reserved: Option<&Reservation<'_>>,
    ) -> ModelError {
        if let Some(reserved) = reserved {
            if used.input != Some(0) {
                reserved.paid(used.input, self.cost(used));
            }
            reserved.fail(ended);
        }
        error
    }

    fn cost(&self, usage: &Usage) -> Option<Money> {
        self.price.as_ref()?.of(usage)
    }

    /// `texts` as the model expects them.
    fn prefixed<'a>(&self, texts: &'a [String], purpose: EmbedPurpose) -> Cow<'a, [String]> {
        self.inner.prefixes.map_or(Cow::Borrowed(texts), |prefixes| prefixes.before(texts, purpose))
    }

    /// Refuses vectors of different lengths, and of another length than was requested.
    fn check_lengths(&self, vectors: &[Vec<f32>]) -> Result<(), ModelError> {
        let refuse = |kind, why: &str| ModelError::new(kind, &*self.inner.name, why);
        let length = vectors.first().map_or(0, Vec::len);
        if vectors.iter().any(|vector| vector.len() != length) {
            let why = "the reply cannot be read: its vectors have different lengths";
            return Err(refuse(ModelErrorKind::InvalidReply, why));
        }
        match self.dimensions {
            Some(dimensions) if length > 0 && u32::try_from(length) != Ok(dimensions) => {
                let why = format!("its vectors have {length} dimensions instead of {dimensions}");
                let hint = format!("the model may not shorten vectors: leave the dimensions at {length}");
                Err(refuse(ModelErrorKind::Config, &why).hint(hint))
            }
            _ => Ok(()),
        }
    }
}

/// The tokens that Amazon Bedrock counted.
fn tokens(headers: &HeaderMap) -> Option<u64> {
    headers.get("x-amzn-bedrock-input-token-count")?.to_str().ok()?.parse().ok()
}

/// The texts in batches of at most `max_texts` for one request each, in order.
fn batches(texts: &[String], max_texts: usize) -> Vec<&[String]> {
    let (mut batches, mut rest) = (Vec::new(), texts);
    while let Some((batch, others)) = rest.split_at_checked(first_batch(rest, max_texts))
        && !batch.is_empty()
    {
        batches.push(batch);
        rest = others;
    }
    batches
}

/// How many of the first texts are one request: at least one, if there is any.
fn first_batch(texts: &[String], max_texts: usize) -> usize {
    let mut chars = 0_usize;
    let fits = |(index, text): &(usize, &String)| {
        chars = chars.saturating_add(text.chars().count());
        *index == 0 || chars <= Embedder::MAX_CHARS && *index < max_texts
    };
    texts.iter().enumerate().take_while(fits).count()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn batches_are_bounded_in_texts_and_characters_and_lose_nothing() {
        let sizes = |lengths: &[usize]| -> Vec<usize> {
            let texts: Vec<String> = lengths.iter().map(|length| "é".repeat(*length)).collect();
            let batches = batches(&texts, 64);
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
