//! A model of an endpoint: calls with retries.

mod probe;

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{
    AnyModel, Capabilities, Capability, DeltaRef, DeltaSink, Model, ModelError, ModelErrorKind, Money,
    Params, Price, Reply, Request, Usage,
};
use serde_json::Value;

pub use probe::Probed;

use super::Endpoint;
use crate::api::Api;
use crate::failure::{ErrorContext, Failure};
use crate::learned::ModelKey;
use crate::ollama::{self, Ollama};
use crate::openai::ChatCompletions;
use crate::retry::{Attempts, RetryAdvice};
use crate::unsupported::{advised, asked_for, judged, misformed, shown};
use crate::wire::encode::encode;
use crate::wire::protocol::{Protocol, Style};

/// A model of an endpoint. Cloning shares the endpoint.
#[derive(Debug, Clone)]
pub struct EndpointModel {
    endpoint: Endpoint,
    /// The model's name at the endpoint.
    model: Arc<str>,
    /// `provider:model`.
    name: Arc<str>,
    price: Option<Price>,
    /// The maximum length of a reply in tokens, from the table.
    longest: Option<u64>,
    /// Whether it reasons, from the table.
    thinks: Option<bool>,
}

impl Endpoint {
    /// The model `name` of the endpoint, at its list price if that is known.
    #[must_use]
    pub fn model(&self, name: &str) -> EndpointModel {
        EndpointModel::new(self.clone(), name)
    }
}

impl EndpointModel {
    pub(super) fn new(endpoint: Endpoint, model: &str) -> Self {
        let provider = endpoint.provider();
        let price = crate::catalog::list_price_at(provider, &endpoint.0.config.base_url, model);
        let known = crate::catalog::KnownModel::find(provider, model);
        let longest = known.as_ref().and_then(|known| known.max_output);
        let thinks = known.as_ref().and_then(crate::catalog::KnownModel::thinks);
        Self {
            name: format!("{provider}:{model}").into(),
            model: model.into(),
            endpoint,
            price,
            longest,
            thinks,
        }
    }

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

    /// Its endpoint.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Rejects requests that are known to fail before anything is sent.
    fn check(&self, request: &Request<'_>, context: &ErrorContext<'_>) -> Result<(), ModelError> {
        let extra = &request.params.extra;
        let refuse = |message: &str| Err(ModelError::new(ModelErrorKind::Config, &*self.name, message));
        if extra.contains_key("messages") {
            return refuse("`messages` cannot be an extra field: the conversation is what is sent");
        }
        if let (Api::Ollama, Err(why)) = (self.endpoint.api(), ollama::check(extra)) {
            return refuse(why);
        }
        if self.endpoint.lacks_key() { Err(context.no_key()) } else { Ok(()) }
    }
}

impl From<EndpointModel> for AnyModel {
    fn from(model: EndpointModel) -> Self {
        Self::new(model)
    }
}

impl Model for EndpointModel {
    fn name(&self) -> &str {
        &self.name
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        match self.endpoint.api() {
            Api::ChatCompletions => self.ask::<ChatCompletions>(request, deltas).await,
            Api::Ollama => self.ask::<Ollama>(request, deltas).await,
        }
    }

    fn cost(&self, usage: &Usage) -> Option<Money> {
        self.price.as_ref()?.of(usage)
    }

    /// The limit of the request, or else the known limit of the model.
    fn max_output(&self, params: &Params) -> Option<u64> {
        let extra = |name: &str| params.extra.get(name).and_then(Value::as_u64);
        let said = ["max_completion_tokens", "max_tokens"].into_iter().filter_map(extra).max();
        let said = said.or_else(|| params.max_tokens.map(u64::from));
        let known = self.longest;
        let longest = said.into_iter().chain(known).min()?;
        // A server that is asked for several replies bills all of them.
        Some(longest.saturating_mul(extra("n").unwrap_or(1).max(1)))
    }

    fn ignored(&self, params: &Params) -> Vec<&'static str> {
        let no_field = match self.endpoint.api() {
            Api::ChatCompletions => ChatCompletions::NO_FIELD,
            Api::Ollama => Ollama::NO_FIELD,
        };
        let needs_thought = |name: &str| matches!(name, "effort" | "thinking");
        let is_ignored =
            |name: &&str| no_field.contains(name) || self.thinks == Some(false) && needs_thought(name);
        params.set().into_iter().filter(is_ignored).collect()
    }

    fn capabilities(&self) -> Capabilities {
        self.endpoint.capabilities()
    }
}

impl EndpointModel {
    async fn ask<P: Protocol>(
        &self,
        request: &Request<'_>,
        deltas: &mut dyn DeltaSink,
    ) -> Result<Reply, ModelError> {
        let context = self.endpoint.context(&self.name);
        self.check(request, &context)?;
        if let Some(error) = self.refusal(request) {
            return Err(error);
        }
        self.send::<P>(request, deltas).await
    }

    /// Calls the model, whatever is known of its capabilities.
    async fn send<P: Protocol>(
        &self,
        request: &Request<'_>,
        deltas: &mut dyn DeltaSink,
    ) -> Result<Reply, ModelError> {
        let context = self.endpoint.context(&self.name);
        let style = self.style(request);
        let ignored = self.ignored(request.params);
        let accepted = (!ignored.is_empty()).then(|| request.params.clone().without(&ignored));
        let request = &Request { params: accepted.as_ref().unwrap_or(request.params), ..*request };
        let body = encode::<P>(request, &self.model, &style);
        let mut forwarder = Forwarder { deltas, any: false };
        let mut attempts = Attempts::begin(self.endpoint.retries(), self.endpoint.jitter());
        let result = loop {
            let attempt = self.endpoint.attempt::<P>(&body, style.stream, request, &mut forwarder, &context);
            let failure = match attempt.await {
                Ok(reply) => break Ok(reply),
                Err(failure) => failure,
            };
            request.reserved.into_iter().for_each(|reserved| reserved.fail(failure.ended));
            let last = failure.error.clone();
            match next_attempt(failure, &mut attempts) {
                Ok(wait) => {
                    forwarder.restart();
                    forwarder.retry(&self.cause(&last), &attempts, wait);
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
        let advised = |error| if style.vision { advised(error, request) } else { error };
        let judge = |error| judged(misformed(advised(error), request, &style), request);
        let result = result.map_err(judge);
        self.learn(request, &result);
        result
    }

    /// Why an attempt failed, in a few words.
    fn cause(&self, error: &ModelError) -> String {
        match error.status {
            Some(status) => format!("{status} from {}", self.endpoint.provider()),
            None => error.message.clone(),
        }
    }

    /// The known refusal of `request`, if there is one.
    fn refusal(&self, request: &Request<'_>) -> Option<ModelError> {
        let said = |capability: &Capability| self.endpoint.capabilities().has(*capability) == Some(false);
        if let Some(capability) = asked_for(request).into_iter().find(said) {
            // A turn that began before this was configured continues in another way.
            let kind = ModelErrorKind::Unsupported(capability);
            return Some(ModelError::new(kind, &*self.name, "as it was set, it has no such capability"));
        }
        self.endpoint.unsupported().known(&self.name, request).or_else(|| {
            let asked = ModelKey {
                base_url: self.endpoint.shown(),
                model: &self.model,
                name: &self.name,
                capabilities: self.endpoint.capabilities(),
            };
            self.endpoint.known()?.refusal(&asked, &asked_for(request))
        })
    }

    /// Stores detected capabilities.
    fn learn(&self, request: &Request<'_>, result: &Result<Reply, ModelError>) {
        match result {
            Ok(reply) => shown(request, reply).for_each(|capability| self.note(capability, None)),
            Err(error) => {
                self.endpoint.unsupported().learn(error);
                if let ModelErrorKind::Unsupported(capability) = error.kind {
                    self.note(capability, Some(&error.message));
                }
            }
        }
    }

    fn note(&self, capability: Capability, lacks: Option<&str>) {
        if let Some(known) = self.endpoint.known() {
            known.learn(self.endpoint.shown(), &self.model, capability, lacks);
        }
    }

    fn style(&self, request: &Request<'_>) -> Style {
        let style = self.endpoint.style();
        let stream = request.params.extra.get("stream").and_then(Value::as_bool);
        let (fold, omit) =
            (self.is_unsupported(Capability::SystemRole), self.is_unsupported(Capability::NullContent));
        let bridge = self.is_unsupported(Capability::UserAfterTool);
        Style { stream: stream.unwrap_or(style.stream), fold, omit, bridge, ..style }
    }

    /// Whether the model is known to reject a format, so that another one is sent.
    fn is_unsupported(&self, form: Capability) -> bool {
        let Some(has) = self.endpoint.capabilities().has(form) else {
            let kept = self.endpoint.findings(&self.model);
            let kept = kept.get(&form).is_some_and(|finding| !finding.has && finding.is_fresh());
            return kept || self.endpoint.unsupported().has(&self.name, form);
        };
        !has
    }
}

/// The wait before the next attempt, or the error if there is none.
pub(super) fn next_attempt(failure: Failure, attempts: &mut Attempts<'_>) -> Result<Duration, ModelError> {
    match failure.again {
        RetryAdvice::No | RetryAdvice::Spent => Err(failure.error),
        RetryAdvice::Now => Ok(Duration::ZERO),
        RetryAdvice::Yes(asked) => {
            attempts.next(asked).map_err(|why| ErrorContext::give_up(failure.error, &why))
        }
    }
}

/// Forwards deltas and remembers whether there were any, so that a retry can restart.
pub(crate) struct Forwarder<'a> {
    deltas: &'a mut dyn DeltaSink,
    any: bool,
}

impl Forwarder<'_> {
    /// Reports a retry, unless it is at once because the request was sent in another form.
    fn retry(&mut self, cause: &str, attempts: &Attempts<'_>, wait: Duration) {
        let (retry, retries) = attempts.retries();
        if retry > 0 {
            self.deltas.push(DeltaRef::Retry { cause, retry, retries, wait });
        }
    }

    fn restart(&mut self) {
        if std::mem::take(&mut self.any) {
            self.deltas.push(DeltaRef::Restart);
        }
    }
}

impl DeltaSink for Forwarder<'_> {
    fn push(&mut self, delta: DeltaRef<'_>) {
        self.any = true;
        self.deltas.push(delta);
    }
}
