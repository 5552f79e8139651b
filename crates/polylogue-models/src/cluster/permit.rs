//! The right to send one request.

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{SharedLimits, Slot, Usage};
use polylogue_http::HeaderMap;

use super::limiter::SharedLimiter;
use crate::rate_headers::rates;

/// The right to send one request with a key. What the response tells of limits is shared.
#[derive(Default)]
pub(crate) struct Permit {
    /// The index of the key; `None` is the next one.
    pub(crate) key: Option<usize>,
    pub(crate) limiter: Option<Arc<SharedLimiter>>,
    /// What was drawn.
    pub(crate) tokens: u64,
    /// Kept until the reply is read.
    pub(crate) _slot: Option<SlotGuard>,
}

impl Permit {
    /// Notes the rates that a response tells.
    pub(crate) fn note(&self, headers: &HeaderMap) {
        if let Some(limiter) = &self.limiter {
            limiter.learn(rates(headers));
        }
    }

    /// Lets no process begin a call with this key for so long.
    pub(crate) async fn block(&self, wait: Duration) {
        if let Some(limiter) = &self.limiter {
            limiter.block(wait).await;
        }
    }

    /// Returns the tokens that were drawn: the request is not sent with this.
    pub(crate) fn unused(&self) {
        if let Some(limiter) = &self.limiter {
            limiter.settle(self.tokens, 0);
        }
    }

    /// Counts the tokens that were used instead of those that were drawn.
    pub(crate) fn settle(&self, usage: &Usage) {
        if let (Some(limiter), Some(input), Some(output)) = (&self.limiter, usage.input, usage.output) {
            limiter.settle(self.tokens, input.saturating_add(output));
        }
    }
}

/// A slot, freed when this is dropped.
pub(crate) struct SlotGuard {
    slot: Slot,
    limits: Arc<dyn SharedLimits>,
}

impl SlotGuard {
    pub(super) fn new(slot: Slot, limits: Arc<dyn SharedLimits>) -> Self {
        Self { slot, limits }
    }
}

impl Drop for SlotGuard {
    fn drop(&mut self) {
        self.limits.free(self.slot.clone());
    }
}
