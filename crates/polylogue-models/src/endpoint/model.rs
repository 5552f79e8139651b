//! A model of an endpoint: calls with retries.

mod expected;
mod forwarder;
mod joint;
mod learning;
mod media;
mod named;
mod paused;
mod priced;
mod probe;
mod style;
mod summary;

use std::borrow::Cow;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use polylogue_core::{
    AnyModel, Bound, CacheLifetime, Capabilities, DeltaSink, Effort, FinishReason, Limits, Model, ModelError,
    ModelErrorKind, Money, Params, Part, Price, Reply, Request, Usage,
};
use url::Url;

pub(super) use forwarder::Forwarder;
pub use probe::Probed;

use super::{Answer, Endpoint};
use crate::accepts::Accepts;
use crate::address::segment;
use crate::api::Api;
use crate::auth::Auth;
use crate::azure;
use crate::catalog::KnownModel;
use crate::config::Config;
use crate::failure::{ErrorContext, Failure, cause};
use crate::google;
use crate::media_limits::MediaLimits;
use crate::pages::page_tokens;
use crate::prices::Prices;
use crate::protocols::with_protocol;
use crate::refused_parameters::refused;
use crate::retry::{Attempts, RetryAdvice};
use crate::unsupported::{Unsupported, advised, judged, misformed};
use crate::wire::encode::{encode, model_of};
use crate::wire::protocol::{Protocol, Style, WriteTail};

/// The fewest tokens with which the reply of a model that reasons is useful: the least that Anthropic's and Bedrock's models reason
/// with (1,024), and as much for the reply.
const USEFUL_REASONED_OUTPUT: u64 = 2_048;

/// A model of an endpoint. Cloning shares the endpoint.
#[derive(Clone, derive_more::Debug)]
pub struct EndpointModel {
    endpoint: Endpoint,
    /// The model's name at the endpoint.
    model: Arc<str>,
    /// `provider:model`.
    name: Arc<str>,
    price: Option<Price>,
    /// The user's prices of all models: the provider may choose another one than is asked for.
    prices: Arc<Prices>,
    /// What it accepts, from the table.
    accepts: Accepts,
    page_tokens: u64,
    /// What its provider takes of pictures and documents.
    media_limits: &'static MediaLimits,
    capabilities: Capabilities,
    /// What the logs of its conversations say that it lacks.
    #[debug(skip)]
    logged: Arc<Unsupported>,
    /// The API that it is called by.
    api: Api,
    /// The URLs of its requests, once there was one: for whole replies, and for streams.
    #[debug(skip)]
    urls: Arc<[OnceLock<Option<Url>>; 2]>,
}

/// The answer of a model that wrote a tool call which its provider cannot parse, and answers with an error: with what it `wrote`, as far
/// as that is known.
fn malformed(wrote: &str) -> Answer {
    let (finish, usage) = (FinishReason::Malformed, Usage::default());
    let parts = if wrote.trim().is_empty() { Vec::new() } else { vec![Part::unparsed(wrote)] };
    let reply = Reply { parts, finish, usage, cached: false, verbatim: None, answered_by: None };
    Answer { reply, continuation: None, model: None }
}

impl Endpoint {
    /// Returns the model `name` of the endpoint, at its list price if that is known.
    pub fn model(&self, name: &str) -> EndpointModel {
        EndpointModel::new(self.clone(), name)
    }
}

impl EndpointModel {
    pub(super) fn new(endpoint: Endpoint, model: &str) -> Self {
        let (provider, config) = (endpoint.provider(), &endpoint.0.config);
        let listed = config.listed(model);
        let price = endpoint.price(model, &Prices::default());
        let known = listed.and_then(|listed| KnownModel::find(provider, listed));
        let accepts = known.as_ref().map_or(Accepts::UNKNOWN, Accepts::of);
        let page_tokens = listed.map_or(Bound::PAGE_TOKENS, |listed| page_tokens(provider, listed));
        let of_model = known.as_ref().map(KnownModel::capabilities).unwrap_or_default();
        let capabilities = config.capabilities.or(of_model);
        let has_responses = config.api_version.as_deref().is_none_or(azure::has_responses);
        let reasons = accepts.thinks == Some(true) && has_responses;
        let api = config.reasoning_api.filter(|_| reasons).unwrap_or(config.api);
        let is_claude = config.auth.is_vertex() && google::is_claude(model);
        let api = if is_claude { Api::Messages } else { api };
        let media_limits = MediaLimits::of(provider, listed.unwrap_or(model), accepts.max_input, api);
        Self {
            name: format!("{provider}:{model}").into(),
            model: model.into(),
            endpoint,
            price,
            prices: Arc::default(),
            accepts,
            page_tokens,
            media_limits,
            capabilities,
            logged: Arc::default(),
            api,
            urls: Arc::default(),
        }
    }

    pub(crate) fn with_logged(self, logged: &Arc<Unsupported>) -> Self {
        Self { logged: Arc::clone(logged), ..self }
    }

    /// Returns the API that it is called by.
    pub fn api(&self) -> Api {
        self.api
    }

    /// Returns the most tools that a request can have; `None` if that is not documented.
    pub fn max_tools(&self) -> Option<usize> {
        let of_api = with_protocol!(self.api, P => P::MAX_TOOLS);
        // What is documented of a provider is of these APIs, and not of others that it has.
        let counts = matches!(self.api, Api::ChatCompletions | Api::Gemini);
        self.endpoint.0.config.deviations.max_tools.filter(|_| counts).or(of_api)
    }

    /// Returns the highest temperature that its provider takes; `None` if that is not documented.
    ///
    /// ```
    /// use polylogue_models::{Env, Models};
    /// let highest = |model| Models::new(Env::default()).model(model).map(|model| model.max_temperature());
    /// assert_eq!(highest("openai:gpt-4o")?, Some(2));
    /// assert_eq!(highest("anthropic:claude-sonnet-4-5")?, Some(1));
    /// assert_eq!(highest("ollama:llama3.2")?, None);
    /// # Ok::<(), polylogue_core::ModelError>(())
    /// ```
    pub fn max_temperature(&self) -> Option<u32> {
        let of_api = with_protocol!(self.api, P => P::MAX_TEMPERATURE);
        let is_chat = self.api == Api::ChatCompletions;
        of_api.or(self.endpoint.0.config.deviations.max_temperature.filter(|_| is_chat))
    }

    /// Returns whether requests have the stop sequences of [`Params`]. Replies of all models are cut at these; one that does not take them
    /// writes on, and what it writes after them is paid.
    ///
    /// ```
    /// use polylogue_models::{Env, Models};
    /// let takes = |model| Models::new(Env::default()).model(model).map(|model| model.takes_stop());
    /// assert_eq!((takes("openai:gpt-4o")?, takes("openai:o3")?), (true, false));
    /// # Ok::<(), polylogue_core::ModelError>(())
    /// ```
    pub fn takes_stop(&self) -> bool {
        with_protocol!(self.api, P => P::sends_stop(&self.accepts, &self.endpoint.0.config.deviations))
    }

    /// Returns the endpoint.
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Rejects requests that are known to fail before anything is sent.
    fn check<P: Protocol>(
        &self,
        request: &Request<'_>,
        context: &ErrorContext<'_>,
    ) -> Result<(), ModelError> {
        self.check_fields::<P>(request.params)?;
        let refuse = |message: &str| ModelError::new(ModelErrorKind::Config, &*self.name, message);
        let count = request.tools.len();
        if let Some(most) = self.max_tools().filter(|most| count > *most) {
            let error = refuse(&format!("a request can have at most {most} tools, and this one has {count}"));
            return Err(error.hint("give the agent fewer tools, or let it search them (`tool_search`)"));
        }
        self.check_media::<P>(request)?;
        if P::API == Api::Messages && self.endpoint.0.config.auth == Auth::GoogleKey {
            let hint = "unset `GOOGLE_VERTEX_API_KEY` and use a service account, or name the model of another provider";
            return Err(refuse("Vertex AI takes no API key for models of Anthropic").hint(hint));
        }
        if self.endpoint.lacks_key() { Err(context.no_key()) } else { Ok(()) }
    }

    /// Rejects extra fields that cannot be sent.
    fn check_fields<P: Protocol>(&self, params: &Params) -> Result<(), ModelError> {
        let refuse = |message: &str| ModelError::new(ModelErrorKind::Config, &*self.name, message);
        let hint = "remove it from `extra`";
        if params.extra.contains_key(P::MESSAGES) {
            let list = P::MESSAGES;
            let message = format!("`{list}` cannot be an extra field: the conversation is what is sent");
            return Err(refuse(&message).hint(hint));
        }
        P::check(&params.extra).map_err(|message| refuse(message).hint(hint))?;
        if P::asked_output(params, &self.own_style()).replies.is_none() {
            let error = refuse("the number of replies that an extra field asks for cannot be read");
            return Err(error.hint("write a whole number from 1 on"));
        }
        Ok(())
    }
}

impl From<EndpointModel> for AnyModel {
    fn from(model: EndpointModel) -> Self {
        Self::new(model)
    }
}

impl EndpointModel {
    /// Whether the endpoint takes such a lifetime of its cache: a day, models at OpenAI itself that do not pay for writing; half a day,
    /// those that do, up to a mark.
    fn keeps_cache_for(&self, lifetime: CacheLifetime) -> bool {
        let Config { deviations, cache_marks, .. } = &self.endpoint.0.config;
        let Accepts { paid_cache, cache_long, .. } = self.accepts;
        match lifetime {
            CacheLifetime::FiveMinutes | CacheLifetime::Hour => true,
            CacheLifetime::HalfDay => deviations.prompt_cache_key && *cache_marks && paid_cache && cache_long,
            CacheLifetime::Day => deviations.prompt_cache_key && !paid_cache,
        }
    }
}

impl Model for EndpointModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        with_protocol!(self.api, P => self.ask::<P>(request, deltas).await)
    }

    fn cost(&self, usage: &Usage) -> Option<Money> {
        self.price.as_ref()?.of(usage)
    }

    /// The limit of the request, or else the known limit of the model.
    fn max_output(&self, params: &Params) -> Option<u64> {
        let style = self.own_style();
        let asked = with_protocol!(self.api, P => P::asked_output(params, &style));
        let longest = asked.most.into_iter().chain(self.accepts.max_output).min()?;
        Some(longest.saturating_mul(asked.replies?))
    }

    fn has_price(&self, params: &Params) -> bool {
        self.is_priced_for(params)
    }

    /// Reasoning counts as output, and comes first.
    fn min_useful_output(&self, params: &Params) -> u64 {
        let reasons =
            params.effort.map_or(self.accepts.thinks == Some(true) || params.thinking.is_some(), |effort| {
                effort != Effort::None && self.accepts.thinks != Some(false)
            });
        if reasons { USEFUL_REASONED_OUTPUT } else { Limits::USEFUL_OUTPUT }
    }

    /// The known limit of the model.
    fn context_window(&self) -> Option<u64> {
        self.accepts.max_input
    }

    /// As its provider publishes it.
    fn page_tokens(&self) -> u64 {
        self.page_tokens
    }

    fn ignored(&self, params: &Params) -> Vec<&'static str> {
        let names = params.names();
        if names.is_empty() {
            return names;
        }
        let (no_field, by_reasoning, others, lifetimes) = with_protocol!(self.api, P => {
            (P::NO_FIELD, P::REFUSED_BY_REASONING, P::ignored(params, &self.accepts), P::CACHE_LIFETIMES)
        });
        let is_kept = |lifetime| lifetimes.contains(&lifetime) && self.keeps_cache_for(lifetime);
        let refused = self.accepts.refused(params);
        let reasons = self.accepts.reasons(params);
        let Config { deviations, drop_parameters, .. } = &self.endpoint.0.config;
        let found = self.endpoint.0.refused_parameters.of(&self.name);
        let is_ignored = |name: &&str| {
            no_field.contains(name)
                || drop_parameters.contains(name)
                || found.contains(*name)
                || **name == *"prompt_cache" && !params.prompt_cache.is_some_and(is_kept)
                || deviations.refuses.contains(name)
                || deviations.own_refuses.contains(name)
                || others.contains(name)
                || refused.contains(name)
                || reasons
                    && (by_reasoning.contains(name) || deviations.refuses_while_reasoning.contains(name))
        };
        names.into_iter().filter(is_ignored).collect()
    }

    fn least_to_reason(&self, params: &Params) -> Option<u64> {
        with_protocol!(self.api, P => P::least_to_reason(params, &self.accepts))
    }

    fn check_params(&self, params: &Params) -> Result<(), ModelError> {
        with_protocol!(self.api, P => self.check_fields::<P>(params))
    }

    fn unavailable_for(&self) -> Option<Duration> {
        self.endpoint.0.key_pool.unavailable_for()
    }

    /// Those of the endpoint, and whether the model sees, if the table of models tells that and the endpoint does not.
    fn capabilities(&self) -> Capabilities {
        self.capabilities
    }

    fn expected_capabilities(&self, params: &Params) -> Capabilities {
        self.expected(params)
    }

    fn returns_seals(&self, params: &Params) -> bool {
        self.can_seal(params)
    }
}

impl EndpointModel {
    async fn ask<P: Protocol>(
        &self,
        request: &Request<'_>,
        deltas: &mut dyn DeltaSink,
    ) -> Result<Reply, ModelError> {
        let context = self.endpoint.context(&self.name);
        self.check::<P>(request, &context)?;
        if let Some(error) = self.refusal(request) {
            return Err(error);
        }
        if let Some((capability, why)) = P::lacks(request, &self.own_style()) {
            return Err(ModelError::new(ModelErrorKind::Unsupported(capability), &*self.name, why));
        }
        self.send::<P>(request, deltas).await
    }

    /// Calls the model, whatever is known of its capabilities.
    async fn send<P: Protocol>(
        &self,
        request: &Request<'_>,
        deltas: &mut dyn DeltaSink,
    ) -> Result<Reply, ModelError> {
        let ignored = self.ignored(request.params);
        let accepted = (!ignored.is_empty()).then(|| request.params.clone().without(&ignored));
        let request = &Request { params: accepted.as_ref().unwrap_or(request.params), ..*request };
        let style = self.style::<P>(request);
        let mut forwarder = Forwarder::new(deltas);
        let result = self.reply::<P>(request, &style, &mut forwarder).await;
        let result = result.map(|reply| self.at_known_price(reply, request.params));
        let advised = |error| if style.vision { advised(error, request) } else { error };
        let judge = |error| match self.is_without(&error, request.params) {
            true => ModelError { kind: ModelErrorKind::ParameterRefused, hint: None, ..error },
            false => judged(misformed(advised(error), request, &style), request),
        };
        let result = result.map_err(judge);
        self.learn(request, &result);
        result
    }

    /// Whether `error` refuses some of `params`. They are left out from then on.
    fn is_without(&self, error: &ModelError, params: &Params) -> bool {
        let refused = refused(error, params);
        let is_any = !refused.is_empty();
        if is_any {
            self.endpoint.0.refused_parameters.learn(&self.name, refused);
        }
        is_any
    }

    /// Sends one request, with retries.
    async fn exchange<P: Protocol>(
        &self,
        request: &Request<'_>,
        style: &Style,
        forwarder: &mut Forwarder<'_>,
    ) -> Result<Answer, ModelError> {
        let context = self.endpoint.context(&self.name);
        let url = self.url::<P>(model_of(request, &self.model), style.stream);
        let body = encode::<P>(request, &self.model, style);
        if let Err(error) = self.check_length(body.bytes().len()) {
            body.give_back(request);
            return Err(error);
        }
        let mut attempts = Attempts::begin(self.endpoint.retries(), self.endpoint.jitter());
        let result = loop {
            let attempt =
                self.endpoint.attempt::<P>(&body, url.as_deref(), style, request, forwarder, &context);
            let failure = match attempt.await {
                Ok(answer) => break Ok(self.named(answer, model_of(request, &self.model))),
                Err(Failure { unparsed: Some(wrote), .. }) => {
                    forwarder.restart();
                    break Ok(malformed(&wrote));
                }
                Err(failure) => failure,
            };
            request.reserved.into_iter().for_each(|reserved| reserved.fail(failure.ended));
            let last = failure.error.clone();
            match next_attempt(failure, &mut attempts, self.endpoint.patience()) {
                Ok(wait) => {
                    forwarder.restart();
                    forwarder.retry(&cause(&last, self.endpoint.provider()), &attempts, wait);
                    tokio::time::sleep(wait).await;
                }
                Err(error) => break Err(error),
            }
            // Every attempt counts, and may not fit into a limit.
            if let Some(reserved) = request.reserved
                && !reserved.again().await
            {
                break Err(last);
            }
        };
        body.give_back(request);
        result
    }

    /// The URL of requests to `model`, unless it is that of all requests of the endpoint.
    fn url<P: Protocol>(&self, model: &str, stream: bool) -> Option<Cow<'_, Url>> {
        if *model != *self.model {
            return self.url_of::<P>(model, stream).map(Cow::Owned);
        }
        let [whole, streamed] = &*self.urls;
        let url = if stream { streamed } else { whole };
        url.get_or_init(|| self.url_of::<P>(model, stream)).as_ref().map(Cow::Borrowed)
    }

    fn url_of<P: Protocol>(&self, model: &str, stream: bool) -> Option<Url> {
        if let Some(version) = &self.endpoint.0.config.api_version {
            let deployment = (P::API == Api::ChatCompletions).then_some(model);
            return Some(azure::versioned(&self.endpoint.0.base, P::API.http().chat, deployment, version));
        }
        if P::API == Api::Messages && self.endpoint.0.config.auth.is_vertex() {
            return Some(google::claude_url(&self.endpoint.0.base, &segment(model), stream));
        }
        let other = || (P::API != self.endpoint.api()).then(|| P::API.http().chat.to_owned());
        P::target(model, stream).or_else(other).map(|target| self.endpoint.place(&target))
    }
}

/// The wait before the next attempt, or the error if there is none: also if a provider asks for a longer wait than `patience`.
pub(super) fn next_attempt(
    failure: Failure,
    attempts: &mut Attempts<'_>,
    patience: Option<Duration>,
) -> Result<Duration, ModelError> {
    match failure.again {
        RetryAdvice::Yes(Some(wait)) if patience.is_some_and(|patience| wait > patience) => {
            Err(failure.error.postponed_for(wait))
        }
        RetryAdvice::No | RetryAdvice::Spent | RetryAdvice::KeyRefused => Err(failure.error),
        RetryAdvice::Now => Ok(Duration::ZERO),
        RetryAdvice::OtherKey => attempts.at_once().map_err(|why| ErrorContext::give_up(failure.error, &why)),
        RetryAdvice::Yes(asked) => {
            attempts.next(asked).map_err(|why| ErrorContext::give_up(failure.error, &why))
        }
    }
}
