//! Model calls within a turn.

use std::sync::Arc;

use tracing::{Instrument as _, debug_span, info, warn};

use super::calls::make_calls_legal;
use super::{ModelAttempt, ModelCall, Turn};
use crate::log::ReservationRequest;
use crate::{
    AnyModel, Body, Bound, Capability, Error, Finish, Model, ModelError, ModelErrorKind, ModelReply, Name,
    Origin, Part, Reply, Request, Result, Usage,
};

/// Without the error message, which can quote the request.
fn trace_result(model: &AnyModel, who: &Name, result: &std::result::Result<Reply, ModelError>) {
    match result {
        Ok(Reply { finish, usage: Usage { input, output, .. }, cached, .. }) => {
            info!(%who, model = model.name(), %finish, input, output, cached, "model replied");
        }
        Err(error) => warn!(%who, model = model.name(), kind = ?error.kind, "model call failed"),
    }
}

impl Turn<'_> {
    /// Calls a model. The reply is part of the agent's view from then on.
    ///
    /// The reply is in the log before the run waits for anything: it is appended together with the next event of this
    /// turn, or when the agent awaits something else, whichever is first. Effects belong in tools, which begin after that.
    ///
    /// A model whose provider cannot parse the tool call that it wrote is asked once more.
    ///
    /// # Errors
    /// When the model fails, a limit of the run is reached, the run is cancelled, or the log cannot be written.
    pub async fn ask_model(&mut self, ask: ModelCall<'_>) -> Result<Reply> {
        let reply = self.ask_once(ask).await?;
        // Whatever the second one is, the agent handles it.
        let is_nothing = reply.parts.iter().all(Part::is_blank);
        if reply.finish == Finish::Malformed && is_nothing { self.ask_once(ask).await } else { Ok(reply) }
    }

    async fn ask_once(&mut self, ask: ModelCall<'_>) -> Result<Reply> {
        self.replay_forms();
        if let Some(event) = self.past.pop_front() {
            let Body::ModelReplied(sample) = &event.body else {
                return Err(self.diverged(&event, "asks a model"));
            };
            let ModelReply { parts, finish, usage, cached, verbatim, .. } = sample.clone();
            let reply = Reply { parts, finish, usage, cached, verbatim };
            self.replay_event(event);
            return Ok(reply);
        }
        // What an earlier process found out, the model of this one may have to find out again.
        let mut refused = Vec::new();
        let mut unsealed = false;
        loop {
            let error = match self.send(ask).await {
                Err(Error::Model(error)) => error,
                result => return result,
            };
            match error.kind {
                // The request is sent again in another format, once for each.
                ModelErrorKind::Unsupported(form) if form.is_of_form() && !refused.contains(&form) => {
                    refused.push(form);
                    self.record_missing(ask.model, form, error.message).await?;
                }
                // Without its seals, once.
                ModelErrorKind::Stale if !unsealed => {
                    unsealed = true;
                    self.record_stale(ask.model, error.message).await?;
                }
                _ => return Err(error.into()),
            }
        }
    }

    /// Replays the other forms in which the request was sent before the model replied.
    fn replay_forms(&mut self) {
        while self.past.front().is_some_and(|event| event.body.is_of_form()) {
            self.past.pop_front().into_iter().for_each(|event| self.replay_event(event));
        }
    }

    /// Logs the parameters that the model is known not to accept, once for each agent and model.
    async fn note_ignored(&mut self, ask: ModelCall<'_>) -> Result<()> {
        let parameters = ask.model.ignored(ask.params);
        if parameters.is_empty() {
            return Ok(());
        }
        if ask.params.strict {
            let names: Vec<String> = parameters.iter().map(|name| format!("`{name}`")).collect();
            let message = format!("the model does not accept {}", names.join(", "));
            let error = ModelError::new(ModelErrorKind::Config, ask.model.name(), message);
            return Err(error.hint("leave them out, or set `strict: false` to have them left out").into());
        }
        let parameters: Vec<Arc<str>> = parameters.into_iter().map(Arc::from).collect();
        let body =
            Body::ParametersIgnored { who: self.me().clone(), model: ask.model.name().into(), parameters };
        let mut known = self.transcript.events().iter().chain(&self.journal);
        if known.any(|event| event.body == body) {
            return Ok(());
        }
        self.record([body]).await
    }

    async fn record_stale(&mut self, model: &AnyModel, why: String) -> Result<()> {
        let (who, model) = (self.me().clone(), model.name().into());
        self.record([Body::SealsRefused { who, model, why: why.into() }]).await
    }

    async fn record_missing(&mut self, model: &AnyModel, capability: Capability, why: String) -> Result<()> {
        let (who, model) = (self.me().clone(), model.name().into());
        self.record([Body::CapabilityMissing { who, model, capability, why: why.into() }]).await
    }

    /// Reserves a call, sends it, and logs the reply.
    async fn send(&mut self, ask: ModelCall<'_>) -> Result<Reply> {
        self.note_ignored(ask).await?;
        let (log, me, at) = (self.log, self.me(), self.transcript.at());
        let (doubt, last) = (self.in_doubt, self.last);
        let blocked = self.doubt.take();
        let view = self.view(ask.view);
        let mut request = Request {
            origin: Origin { at, who: me, nth: 0 },
            system: ask.system,
            entries: view.entries(),
            tools: ask.tools,
            params: ask.params,
            encoded: view.encoded(),
            reserved: None,
        };
        let bound = Bound::of(ask.model, &request);
        let asked = ReservationRequest { at, who: me, model: ask.model.name(), bound, calls: 1 };
        if doubt {
            log.charge_doubt(&asked, last).await?;
        }
        drop(blocked);
        let (reservation, nth) = log.reserve(asked).await?;
        request.origin.nth = nth;
        request.reserved = Some(&reservation);
        let mut deltas = log.live().deltas(at, me);
        let span = debug_span!("model_call", model = ask.model.name());
        let call = ask.model.complete(&request, &mut deltas).instrument(span);
        let result = log.unless_cancelled(call).await?;
        trace_result(ask.model, me, &result);
        let mut reply = result.map_err(|error| reservation.failed(error))?;
        let cost = ask.model.cost(&reply.usage);
        reservation.answer(&reply, cost);
        make_calls_legal(&mut reply.parts, view, ask.tools);
        let sample = ModelReply {
            who: me.clone(),
            model: ask.model.name().into(),
            request: view.digest(ask.model.name(), ask.system, ask.tools, ask.params),
            parts: reply.parts.clone(),
            finish: reply.finish.clone(),
            usage: reply.usage,
            cost,
            cached: reply.cached,
            verbatim: reply.verbatim.clone(),
        };
        self.record_with_next(Body::ModelReplied(sample)).await?;
        // The reply counts from here on: its reservation is released.
        drop(reservation);
        Ok(reply)
    }

    /// Calls a model as [`ask_model`](Self::ask_model) does, with a request that needs a capability. A missing
    /// capability is logged, so that a resumed turn takes the same path, and later turns need not try again
    /// ([`Transcript::missing_capabilities`](crate::Transcript::missing_capabilities)).
    ///
    /// # Errors
    /// As [`ask_model`](Self::ask_model).
    pub async fn try_model(&mut self, ask: ModelCall<'_>) -> Result<ModelAttempt> {
        self.replay_forms();
        if let Some(Body::CapabilityMissing { capability, .. }) = self.past.front().map(|event| &event.body) {
            let capability = *capability;
            self.past.pop_front().into_iter().for_each(|event| self.replay_event(event));
            return Ok(ModelAttempt::Unable(capability));
        }
        match self.ask_model(ask).await {
            Ok(reply) => Ok(ModelAttempt::Reply(reply)),
            Err(Error::Model(ModelError {
                kind: ModelErrorKind::Unsupported(capability), message, ..
            })) => {
                self.record_missing(ask.model, capability, message).await?;
                Ok(ModelAttempt::Unable(capability))
            }
            Err(error) => Err(error),
        }
    }
}
