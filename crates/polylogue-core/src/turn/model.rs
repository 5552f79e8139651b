//! Model calls within a turn.

use std::sync::Arc;

use tracing::{Instrument as _, debug_span, info, warn};

use super::calls::make_calls_legal;
use super::{ModelAttempt, ModelCall, Turn};
use crate::limits::Lowering;
use crate::log::ReservationRequest;
use crate::view::{start, write_again};
use crate::{
    AnsweredBy, AnyModel, Body, Bound, CallPurpose, Capability, Digest, EarlierReplies, EncodeCache, Error,
    InputTokens, Limits, Model, ModelError, ModelErrorKind, ModelReply, Name, Origin, OutputLimit, Params,
    Reply, Request, RequestPrefix, Reservation, Result, Usage, View,
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

/// What the request begins with, if the provider reports the use of its prompt cache.
fn prefix_of(ask: ModelCall<'_>, usage: &Usage) -> Option<RequestPrefix> {
    let is_reported = ask.compaction.is_none() && (usage.cached.is_some() || usage.written.is_some());
    is_reported.then(|| RequestPrefix { system: start(ask.system, &[]), tools: start(None, ask.tools) })
}

/// The model that replied, the cost of the reply, and why it was asked.
fn answered(ask: ModelCall<'_>, reply: &mut Reply) -> AnsweredBy {
    match reply.answered_by.take() {
        Some(by) => Arc::unwrap_or_clone(by),
        None => {
            let cost = ask.model.call_cost(&reply.usage);
            AnsweredBy { model: ask.model.name().into(), cost, because: None }
        }
    }
}

fn digest_of(view: &View, ask: ModelCall<'_>, request: &Request<'_>, model: &str) -> Digest {
    match ask.compaction {
        Some(_) => request.digest(model),
        None => view.digest(model, ask.system, ask.tools, ask.params),
    }
}

/// The output limit of a request whose reply has more output, when it was sent in `parts` requests.
fn passed_limit(ask: ModelCall<'_>, reply: &Reply, parts: u64) -> Option<u64> {
    let limit = ask.model.max_output(ask.params)?;
    let is_passed = reply.usage.output? > limit.saturating_mul(parts);
    (is_passed && !reply.cached).then_some(limit)
}

const fn purpose_of(ask: ModelCall<'_>) -> CallPurpose {
    if ask.compaction.is_some() { CallPurpose::Compaction } else { CallPurpose::Turn }
}

/// The request of a call, before it is reserved.
fn request_of<'r>(
    ask: ModelCall<'r>,
    origin: Origin<'r>,
    view: &'r View,
    apart: &'r EncodeCache,
) -> Request<'r> {
    let (entries, encoded) = match ask.compaction {
        Some(entries) => (entries, apart),
        None => (view.entries(), view.encoded()),
    };
    let ModelCall { system, tools, params, .. } = ask;
    Request { origin, system, entries, tools, params, encoded, reserved: None }
}

impl<'a> Turn<'a> {
    /// Calls a model. The reply is part of the agent's view from then on.
    ///
    /// The reply is in the log before the run waits for anything: it is appended together with the next event of this
    /// turn, or when the agent awaits something else, whichever is first. Effects belong in tools, which begin after that.
    ///
    /// A model whose provider cannot parse the tool call that it wrote is asked once more, and then prompted with what it wrote. Text before
    /// such a call is no reply.
    ///
    /// # Errors
    /// When the model fails, a limit of the run is reached, the run is cancelled, or the log cannot be written.
    pub async fn ask_model(&mut self, ask: ModelCall<'_>) -> Result<Reply> {
        let mut reply = self.ask_once(ask).await?;
        if reply.is_unparsed() {
            reply = self.ask_again(ask).await?;
        }
        // A compaction has entries of its own, which no prompt would be among.
        if reply.is_unparsed() && ask.compaction.is_none() {
            // In a box, as that is seldom.
            return Box::pin(self.ask_corrected(ask, &reply)).await;
        }
        Ok(reply)
    }

    /// Prompts the model for another reply than `reply`, which its provider could not parse. Whatever that one is, the agent handles it.
    async fn ask_corrected(&mut self, ask: ModelCall<'_>, reply: &Reply) -> Result<Reply> {
        self.prompt(write_again(&reply.parts)).await?;
        self.ask_again(ask).await
    }

    /// Asks after a reply that the provider could not parse. Callers look for the events of failures that they handle before the first request;
    /// that of a later one is found here, and is left to the caller.
    async fn ask_again(&mut self, ask: ModelCall<'_>) -> Result<Reply> {
        match self.logged_failure() {
            Some(error) => Err(error.into()),
            None => self.ask_once(ask).await,
        }
    }

    /// The failure of the next request, if its event is next.
    fn logged_failure(&mut self) -> Option<ModelError> {
        self.replay_forms();
        let (kind, model, why) = match &self.past.front()?.body {
            Body::TooLong { model, tokens, limit, why, .. } => {
                (ModelErrorKind::TooLong { tokens: *tokens, limit: *limit }, &**model, why)
            }
            Body::CapabilityMissing { model, capability, why, .. } => {
                (ModelErrorKind::Unsupported(*capability), &**model, why)
            }
            // The event does not say of what kind it was.
            Body::ContinuationFailed { why, .. } => (ModelErrorKind::Unavailable, "", why),
            _ => return None,
        };
        Some(ModelError::new(kind, model, &**why))
    }

    async fn ask_once(&mut self, ask: ModelCall<'_>) -> Result<Reply> {
        self.replay_forms();
        if let Some(event) = self.past.pop_front() {
            let Body::ModelReplied(logged) = &event.body else {
                return Err(self.diverged(&event, "asks a model"));
            };
            if logged.purpose != purpose_of(ask) {
                return Err(self.diverged(&event, "asks a model"));
            }
            let ModelReply { parts, finish, usage, cached, verbatim, .. } = logged.clone();
            let reply = Reply { parts, finish, usage, cached, verbatim, answered_by: None };
            self.replay_event(event);
            return Ok(reply);
        }
        let limited = self.limited(ask);
        let ask = ModelCall { params: limited.as_ref().unwrap_or(ask.params), ..ask };
        // What an earlier process found out, the model of this one may have to find out again.
        let mut refused = Vec::new();
        let (mut unsealed, mut without) = (false, 0);
        loop {
            let error = match self.send(ask).await {
                Err(Error::Model(error)) => error,
                result => return result,
            };
            match error.kind {
                // The request is sent again in another format, once for each.
                ModelErrorKind::Unsupported(form) if form.is_of_form() && !refused.contains(&form) => {
                    refused.push(form);
                    // In boxes, as all that is seldom: a turn has space for what it may do, and waits with it.
                    Box::pin(self.record_missing(error, form)).await?;
                }
                // Without its seals, once.
                ModelErrorKind::SealsRefused if !unsealed => {
                    unsealed = true;
                    Box::pin(self.record_refused_seals(error)).await?;
                }
                // Without one parameter more, at most all of them: the model leaves it out, which is logged before the call.
                ModelErrorKind::ParameterRefused if without < ask.params.names().len() => without += 1,
                _ => return Err(error.into()),
            }
        }
    }

    /// Replays the other forms in which the request was sent before the model replied.
    pub(super) fn replay_forms(&mut self) {
        while self.replay_if(Body::is_of_form) {}
    }

    async fn record_refused_seals(&mut self, error: ModelError) -> Result<()> {
        let (who, model, why) = (self.me().clone(), error.model.into(), error.message.into());
        self.record([Body::SealsRefused { who, model, why }]).await
    }

    async fn record_missing(&mut self, error: ModelError, capability: Capability) -> Result<()> {
        if self.replay_if(|body| matches!(body, Body::CapabilityMissing { .. })) {
            return Ok(());
        }
        let (who, model, why) = (self.me().clone(), error.model.into(), error.message.into());
        self.record([Body::CapabilityMissing { who, model, capability, why }]).await
    }

    /// The model that replied last in this turn.
    fn last_model(&self) -> Option<Arc<str>> {
        self.journal.iter().rev().find_map(|event| match &event.body {
            Body::ModelReplied(reply) if reply.who == *self.me() => Some(Arc::clone(&reply.model)),
            _ => None,
        })
    }

    /// The parameters with the limit on the output of a reply, where that is lower than the agent's own.
    pub(super) fn limited(&self, ask: ModelCall<'_>) -> Option<Params> {
        let is_of_result =
            ask.compaction.is_none() && self.transcript.at().is_root() && !self.request().to.is_private();
        let most = self.log.limits_now().reply_tokens.filter(|_| is_of_result)?;
        ask.params.with_reply_limit(most)
    }

    /// Reserves a call, and charges the one that may have been in flight when an earlier process died.
    async fn reserve(&mut self, ask: ModelCall<'_>) -> Result<(Reservation<'a>, u64)> {
        let (log, me, at) = (self.log, self.me(), self.transcript.at());
        let (doubt, last, lost) = (self.in_doubt, self.last, std::mem::take(&mut self.lost));
        let (blocked, lost_limit) = (self.doubt.take(), self.lost_limit.take());
        let (last_model, transcript) = (self.last_model(), self.transcript);
        let (view, apart) = (self.view(ask.view), EncodeCache::default());
        let earlier = EarlierReplies::new(transcript.events(), log.time_now());
        let origin = Origin { chat: at, who: me, nth: 0, last_model: last_model.as_deref(), earlier };
        let request = request_of(ask, origin, view, &apart);
        let input = match ask.compaction {
            Some(_) => InputTokens::of(&request),
            None => InputTokens::of_entries(&request, view.most_tokens()),
        };
        let bound = Bound::of_input(ask.model, ask.params, input);
        let is_cached = ask.model.is_cached(&request);
        let at_most = |tokens| {
            let params = ask.params.with_reply_limit(tokens)?;
            Some(Bound::of_input(ask.model, &params, input))
        };
        let longest = ask.model.max_output(ask.params).unwrap_or(Limits::SAFE_OUTPUT);
        let least = ask.model.min_useful_output(ask.params).min(longest);
        let lowering = Lowering { most: longest, least, bound: &at_most };
        let (model, lowering) = (ask.model.name(), (!is_cached).then_some(lowering));
        let asked =
            ReservationRequest { at, who: me, model, bound, is_cached, calls: 1, call: None, lowering };
        if doubt {
            let bound = lost_limit.and_then(at_most).unwrap_or(bound);
            let asked = ReservationRequest { bound, ..asked };
            Box::pin(log.charge_doubt(&asked, last, &lost)).await?;
        }
        drop(blocked);
        let reserved = log.reserve(asked).await?;
        log.confirm_claim().await?;
        Ok(reserved)
    }

    /// Charges the call that may have been in flight when an earlier process died, of a turn that fails before it comes to that call, because
    /// its agent has changed since.
    pub(crate) async fn charge_unknown(&mut self) -> Result<()> {
        // Other turns send nothing until it is charged.
        let Some(_blocked) = self.doubt.take() else { return Ok(()) };
        let model = self.last_model().unwrap_or_else(|| "unknown".into());
        let lost = std::mem::take(&mut self.lost);
        let (at, who, model, bound) = (self.transcript.at(), self.me(), &*model, Bound::UNKNOWN);
        let (is_cached, call, lowering) = (false, None, None);
        let asked = ReservationRequest { at, who, model, bound, is_cached, calls: 1, call, lowering };
        self.log.charge_doubt(&asked, self.last, &lost).await
    }

    /// Logs that the output limit of the call was lowered. Returns its parameters.
    async fn lower(&mut self, ask: ModelCall<'_>, limit: OutputLimit) -> Result<Option<Params>> {
        info!(who = %limit.who, model = %limit.model, "the output limit is lowered to {limit}");
        let params = ask.params.with_reply_limit(limit.tokens);
        self.record([Body::OutputLimited(limit)]).await?;
        Ok(params)
    }

    /// Reserves a call, sends it, and logs the reply.
    async fn send(&mut self, ask: ModelCall<'_>) -> Result<Reply> {
        let notes = self.left_out(ask)?;
        if !notes.is_empty() {
            Box::pin(self.record(notes)).await?;
        }
        let (reservation, nth) = self.reserve(ask).await?;
        let lowered = match reservation.lowered() {
            Some(limit) => Box::pin(self.lower(ask, limit.clone())).await?,
            None => None,
        };
        let ask = ModelCall { params: lowered.as_ref().unwrap_or(ask.params), ..ask };
        let (log, me, at) = (self.log, self.me(), self.transcript.at());
        let (last_model, transcript) = (self.last_model(), self.transcript);
        let (view, apart) = (self.view(ask.view), EncodeCache::default());
        let earlier = EarlierReplies::new(transcript.events(), log.time_now());
        let origin = Origin { chat: at, who: me, nth, last_model: last_model.as_deref(), earlier };
        let request = Request { reserved: Some(&reservation), ..request_of(ask, origin, view, &apart) };
        let mut deltas = log.live().deltas(at, me, ask.compaction.is_none());
        let span = debug_span!("model_call", model = ask.model.name());
        let call = ask.model.complete(&request, &mut deltas).instrument(span);
        let result = match log.within_time(at, me, call).await {
            Ok(result) => result,
            Err(cancelled) if ask.compaction.is_some() => return Err(cancelled),
            Err(cancelled) => {
                let (who, model) = (me.clone(), ask.model.name().into());
                let text = deltas.into_text();
                Box::pin(self.record_interrupted(Body::ReplyInterrupted { who, model, text })).await?;
                return Err(cancelled);
            }
        };
        if result.as_ref().is_ok_and(Reply::is_unparsed) {
            deltas.discard();
        }
        // Its event follows.
        drop(deltas);
        trace_result(ask.model, me, &result);
        let mut reply = result.map_err(|error| reservation.failed(error))?;
        let asked: Arc<str> = ask.model.name().into();
        let AnsweredBy { model, cost, because } = answered(ask, &mut reply);
        reservation.answer(&reply, cost.map(|cost| cost.cost));
        make_calls_legal(&mut reply.parts, view, ask.tools);
        let logged = ModelReply {
            who: me.clone(),
            request: digest_of(view, ask, &request, &model),
            prefix: prefix_of(ask, &reply.usage),
            requested_model: (asked != model).then_some(asked),
            because,
            model,
            parts: reply.parts.clone(),
            finish: reply.finish.clone(),
            usage: reply.usage,
            cost: cost.map(|cost| cost.cost),
            uncached_cost: cost.and_then(|cost| cost.uncached),
            cached: reply.cached,
            verbatim: reply.verbatim.clone(),
            output_limit: passed_limit(ask, &reply, reservation.parts()),
            purpose: purpose_of(ask),
        };
        if let Some(change) = view.prefix_change(at, &logged) {
            warn!(who = %logged.who, model = %logged.model, "{change}");
        }
        for note in self.left_out_by(&logged.model, ask) {
            Box::pin(self.record_with_next(note)).await?;
        }
        self.record_with_next(Body::ModelReplied(logged)).await?;
        // The reply counts from here on: its reservation is released.
        drop(reservation);
        Ok(reply)
    }

    /// Logs the text that had arrived of a reply when its call was aborted, if there is any.
    async fn record_interrupted(&mut self, body: Body) -> Result<()> {
        match &body {
            Body::ReplyInterrupted { text, .. } if !text.trim().is_empty() => self.record([body]).await,
            _ => Ok(()),
        }
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
            self.replay_if(|_| true);
            return Ok(ModelAttempt::Unsupported(capability));
        }
        let error = match self.ask_model(ask).await {
            Err(Error::Model(error)) => error,
            result => return result.map(ModelAttempt::Reply),
        };
        let ModelErrorKind::Unsupported(capability) = error.kind else { return Err(error.into()) };
        Box::pin(self.record_missing(error, capability)).await?;
        Ok(ModelAttempt::Unsupported(capability))
    }
}
