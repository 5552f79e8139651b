//! Which key a request is sent with, and when it may be sent.

use std::time::Duration;

use super::Endpoint;
use crate::cluster::Permit;
use crate::failure::{ErrorContext, Failure};

impl Endpoint {
    /// Waits until a request of about `tokens` tokens may be sent, by the limits that processes share: with the key `bound` if that
    /// can be used, or else another one.
    pub(super) async fn permit(
        &self,
        bound: Option<usize>,
        tokens: u64,
        context: &ErrorContext<'_>,
    ) -> Result<Permit, Failure> {
        let (pool, Some(limiters)) = (&self.0.key_pool, &self.0.shared_limiters) else {
            return Ok(Permit { key: bound, ..Permit::default() });
        };
        let slot = limiters.enter().await.map_err(|wait| context.postponed(wait))?;
        let model = context.model.split_once(':').map_or(context.model, |(_, model)| model);
        let mut others = pool.len();
        loop {
            others = others.saturating_sub(1);
            let (key, _) = pool.next(bound);
            match limiters.pass(key, model, tokens, others > 0).await {
                Ok(limiter) => {
                    return Ok(Permit { key: Some(key), limiter: Some(limiter), tokens, _slot: slot });
                }
                // Another process has met its rate limit.
                Err(wait) if others > 0 => pool.cool(key, wait),
                Err(wait) => return Err(context.postponed(wait)),
            }
        }
    }

    /// The longest wait of a call.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.0.shared_limiters.as_ref().and_then(|limiters| limiters.patience())
    }
}
