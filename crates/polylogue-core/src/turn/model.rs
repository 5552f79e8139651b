//! Asking models within a turn.

use super::calls::make_calls_legal;
use super::{ModelAttempt, ModelCall, Turn};
use crate::budget::Asked;
use crate::{
    AnyModel, Body, Bound, Capability, Error, Model, ModelError, ModelErrorKind, ModelReply, Origin, Reply,
    Request, Result,
};

impl Turn<'_> {
    /// Asks a model how to go on. The reply is in the log when this returns, and what it says is part of the agent's
    /// view from then on.
    ///
    /// # Errors
    /// When the model gives no reply, a limit of the run is met, the run is stopped, or the log cannot be written.
    pub async fn ask_model(&mut self, ask: ModelCall<'_>) -> Result<Reply> {
        self.replay_forms();
        if let Some(event) = self.past.pop_front() {
            let Body::ModelReplied(sample) = &event.body else {
                return Err(self.diverged(&event, "asks a model"));
            };
            let ModelReply { parts, finish, usage, cached, .. } = sample;
            let reply = Reply { parts: parts.clone(), finish: *finish, usage: *usage, cached: *cached };
            self.give_back(event);
            return Ok(reply);
        }
        // What an earlier process found out, this one's model may have to find out again.
        let mut refused = Vec::new();
        loop {
            let error = match self.send(ask).await {
                Err(Error::Model(error)) => error,
                result => return result,
            };
            match error.kind {
                // It is sent again in another form, once for each form.
                ModelErrorKind::Unsupported(form) if form.is_of_form() && !refused.contains(&form) => {
                    refused.push(form);
                    self.note_unable(ask.model, form, error.message).await?;
                }
                _ => return Err(error.into()),
            }
        }
    }

    /// Returns from the log what a model turned out not to take before it replied.
    fn replay_forms(&mut self) {
        while matches!(self.past.front().map(|event| &event.body), Some(Body::CapabilityMissing { capability, .. }) if capability.is_of_form())
        {
            self.past.pop_front().into_iter().for_each(|event| self.give_back(event));
        }
    }

    async fn note_unable(&mut self, model: &AnyModel, lacks: Capability, why: String) -> Result<()> {
        let (who, model) = (self.me().clone(), model.name().into());
        self.record([Body::CapabilityMissing { who, model, capability: lacks, why: why.into() }]).await
    }

    /// Reserves a call, sends it, and records the reply.
    async fn send(&mut self, ask: ModelCall<'_>) -> Result<Reply> {
        let (log, me, at) = (self.log, self.me(), self.transcript.at());
        let (doubt, last) = (self.in_doubt, self.last);
        let held_back = self.doubt.take();
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
        let asked = Asked { at, who: me, model: ask.model.name(), bound, calls: 1 };
        if doubt {
            log.charge_doubt(&asked, last).await?;
        }
        drop(held_back);
        let (reservation, nth) = log.reserve(asked).await?;
        request.origin.nth = nth;
        request.reserved = Some(&reservation);
        let mut deltas = log.live().deltas(at, me);
        let result = log.unless_halted(ask.model.complete(&request, &mut deltas)).await?;
        let mut reply = result.map_err(|error| reservation.failed(error))?;
        let cost = ask.model.cost(&reply.usage);
        reservation.answer(&reply, cost);
        make_calls_legal(&mut reply.parts, view, ask.tools);
        let sample = ModelReply {
            who: me.clone(),
            model: ask.model.name().into(),
            request: view.digest(ask.model.name(), ask.system, ask.tools, ask.params),
            parts: reply.parts.clone(),
            finish: reply.finish,
            usage: reply.usage,
            cost,
            cached: reply.cached,
        };
        self.record([Body::ModelReplied(sample)]).await?;
        // It is in the log: what was reserved for it is free.
        drop(reservation);
        Ok(reply)
    }

    /// Asks a model as [`ask_model`](Self::ask_model) does, for something that it may be unable to do. That it is unable is in the
    /// log, so that a resumed turn takes the same path, and later turns need not try again ([`Transcript::missing_capabilities`](crate::Transcript::missing_capabilities)).
    ///
    /// # Errors
    /// As [`ask_model`](Self::ask_model).
    pub async fn try_model(&mut self, ask: ModelCall<'_>) -> Result<ModelAttempt> {
        self.replay_forms();
        if let Some(Body::CapabilityMissing { capability: lacks, .. }) =
            self.past.front().map(|event| &event.body)
        {
            let lacks = *lacks;
            self.past.pop_front().into_iter().for_each(|event| self.give_back(event));
            return Ok(ModelAttempt::Unable(lacks));
        }
        match self.ask_model(ask).await {
            Ok(reply) => Ok(ModelAttempt::Reply(reply)),
            Err(Error::Model(ModelError { kind: ModelErrorKind::Unsupported(lacks), message, .. })) => {
                self.note_unable(ask.model, lacks, message).await?;
                Ok(ModelAttempt::Unable(lacks))
            }
            Err(error) => Err(error),
        }
    }
}
