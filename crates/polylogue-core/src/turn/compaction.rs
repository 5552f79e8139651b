//! The journal of compactions, by which an agent replaces the older part of its history with a summary.

use serde_json::Value;

use super::{ModelCall, Turn};
use crate::{Body, Capability, Compacted, ModelError, ModelErrorKind, Result};

impl Turn<'_> {
    /// Estimates the tokens of the request that `ask` would send now.
    pub fn context_tokens(&mut self, ask: ModelCall<'_>) -> u64 {
        let text = |length: usize| (length as u64).div_ceil(4);
        let tool = |parameters: &Value| text(parameters.to_string().len());
        let others = || {
            let tools = ask.tools.iter().map(|spec| text(spec.description.len()) + tool(&spec.parameters));
            text(ask.system.map_or(0, str::len)) + tools.sum::<u64>()
        };
        self.view(ask.view).tokens(others)
    }

    /// Replays the next compaction, if the log has all of it: the calls that summarize and the event.
    pub fn replay_compaction(&mut self) -> bool {
        let is_part = |body: &Body| {
            is_of_summary(body) || matches!(body, Body::ModelReplied(reply) if !reply.purpose.is_turn())
        };
        let bodies = self.past.iter().map(|event| &event.body);
        let calls = bodies.take_while(|body| is_part(body)).count();
        if !self.past.get(calls).is_some_and(|event| matches!(event.body, Body::Compacted(_))) {
            return false;
        }
        for event in self.past.drain(..=calls).collect::<Vec<_>>() {
            self.replay_event(event);
        }
        true
    }

    /// Returns whether the log has a compaction next, before a model call; `None` if the log does not say what is next.
    pub fn compacts_next(&self) -> Option<bool> {
        let mut next = self.past.iter().map(|event| &event.body).skip_while(|body| is_of_summary(body));
        next.next().map(|body| body.is_of_compaction() && !matches!(body, Body::TooLong { .. }))
    }

    /// Replaces the older part of the agent's history with a summary, from here on.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn compact(&mut self, compacted: Compacted) -> Result<()> {
        self.replay_or_record(Body::Compacted(compacted), "compacts its history").await
    }

    /// Returns the limit that a provider named when it refused the next request as too long, if the log says that it did. The
    /// agent then compacts its history, as it did before the turn was resumed.
    pub fn replay_too_long(&mut self) -> Option<Option<u64>> {
        self.replay_forms();
        let Some(Body::TooLong { limit, .. }) = self.past.front().map(|event| &event.body) else {
            return None;
        };
        let limit = limit.map(u64::from);
        self.replay_if(|_| true);
        Some(limit)
    }

    /// Logs that a provider refused a request as too long, with its `error`. Returns the limit that the provider named.
    ///
    /// # Errors
    /// When the log cannot be written, and `error` itself, if it is another one.
    pub async fn record_too_long(&mut self, error: ModelError) -> Result<Option<u64>> {
        let ModelErrorKind::TooLong { tokens, limit } = error.kind else { return Err(error.into()) };
        if !self.replay_if(|body| matches!(body, Body::TooLong { .. })) {
            let (who, model, why) = (self.me().clone(), error.model.into(), error.message.into());
            self.record([Body::TooLong { who, model, tokens, limit, why }]).await?;
        }
        Ok(limit.map(u64::from))
    }

    /// Logs that the context window of `model` was full before its last reply was complete: the reply is discarded.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn discard_reply(&mut self, model: &str) -> Result<()> {
        let why = "the context window was full before the reply was complete";
        let (who, model, why) = (self.me().clone(), model.into(), why.into());
        self.record([Body::TooLong { who, model, tokens: None, limit: None, why }]).await
    }
}

/// Whether the event can precede the reply of a call that summarizes.
fn is_of_summary(body: &Body) -> bool {
    let is_form = |capability: &Capability| matches!(capability, Capability::Schema | Capability::Json);
    body.is_of_form() || matches!(body, Body::CapabilityMissing { capability, .. } if is_form(capability))
}
