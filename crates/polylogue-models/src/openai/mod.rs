//! Models behind OpenAI-compatible chat-completions endpoints.

mod calls;
mod chunk;
pub(crate) mod decode;
mod encode;
mod endpoint;
mod json;
mod message;
mod tail;
mod think;

use std::sync::Arc;

use polylogue_core::{
    Delta, Deltas, Model, ModelError, ModelErrorKind, Money, Price, Reply, Request, Skills, Usage,
};
use serde_json::Value;

pub use endpoint::{Config, Endpoint};

use crate::failure::{Again, Blame, Failure};
use crate::retry::Attempts;
use crate::unsupported::judged;
use tail::Style;

/// A model of an endpoint. Cloning shares the endpoint.
#[derive(Debug, Clone)]
pub struct OpenAi {
    endpoint: Endpoint,
    /// What the endpoint calls it.
    model: Arc<str>,
    /// `provider:model`.
    name: Arc<str>,
    price: Option<Price>,
}

impl OpenAi {
    pub(crate) fn new(endpoint: Endpoint, model: &str) -> Self {
        let provider = endpoint.provider();
        let price = crate::price::list_price(provider, model);
        Self { name: format!("{provider}:{model}").into(), model: model.into(), endpoint, price }
    }

    /// The same model at another price; `None` makes its cost unknown.
    #[must_use]
    pub fn with_price(self, price: Option<Price>) -> Self {
        Self { price, ..self }
    }

    /// What it costs, if that is known: the list price unless another was given.
    #[must_use]
    pub fn price(&self) -> Option<Price> {
        self.price
    }

    /// The endpoint it is at.
    #[must_use]
    pub fn endpoint(&self) -> &Endpoint {
        &self.endpoint
    }

    /// Refuses what can be known to fail before anything is sent.
    fn check(&self, request: &Request<'_>, blame: &Blame<'_>) -> Result<(), ModelError> {
        if request.params.extra.contains_key("messages") {
            let message = "`messages` cannot be an extra field: the conversation is what is sent";
            return Err(ModelError::new(ModelErrorKind::Config, &*self.name, message));
        }
        if self.endpoint.lacks_key() { Err(blame.no_key()) } else { Ok(()) }
    }
}

impl Model for OpenAi {
    fn name(&self) -> &str {
        &self.name
    }

    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn Deltas) -> Result<Reply, ModelError> {
        let blame = self.endpoint.blame(&self.name);
        self.check(request, &blame)?;
        if let Some(error) = self.endpoint.lacks().known(&self.name, request) {
            return Err(error);
        }
        let style = self.style(request);
        let body = encode::encode(request, &self.model, &style);
        let mut heard = Heard { deltas, any: false };
        let mut attempts = Attempts::begin(self.endpoint.retries(), self.endpoint.jitter());
        let result = loop {
            let attempt = self.endpoint.attempt(body.bytes(), style.stream, request, &mut heard, &blame);
            let failure = match attempt.await {
                Ok(reply) => break Ok(reply),
                Err(failure) => failure,
            };
            match next_attempt(failure, &mut attempts) {
                Ok(wait) => {
                    heard.restart();
                    tokio::time::sleep(wait).await;
                }
                Err(error) => break Err(error),
            }
        };
        body.give_back(request);
        result.map_err(|error| {
            let error = judged(error, request);
            self.endpoint.lacks().learn(&error);
            error
        })
    }

    fn cost(&self, usage: &Usage) -> Option<Money> {
        self.price?.of(usage)
    }

    fn skills(&self) -> Skills {
        self.endpoint.skills()
    }
}

impl OpenAi {
    fn style(&self, request: &Request<'_>) -> Style {
        let style = self.endpoint.style();
        let stream = request.params.extra.get("stream").and_then(Value::as_bool);
        Style { stream: stream.unwrap_or(style.stream), ..style }
    }
}

/// How long to wait before the next attempt, or the error if there is none.
fn next_attempt(failure: Failure, attempts: &mut Attempts<'_>) -> Result<std::time::Duration, ModelError> {
    match failure.again {
        Again::No => Err(failure.error),
        Again::Yes(asked) => attempts.next(asked).map_err(|why| Blame::give_up(failure.error, &why)),
    }
}

/// Passes pieces on and remembers that there were any, so that a retry can take them back.
pub(crate) struct Heard<'a> {
    deltas: &'a mut dyn Deltas,
    any: bool,
}

impl Heard<'_> {
    fn restart(&mut self) {
        if std::mem::take(&mut self.any) {
            self.deltas.push(Delta::Restart);
        }
    }
}

impl Deltas for Heard<'_> {
    fn push(&mut self, delta: Delta<'_>) {
        self.any = true;
        self.deltas.push(delta);
    }
}
