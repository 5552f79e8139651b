//! When a request may be sent, and with which key.

use std::time::Duration;

use tokio::time::timeout;

use super::Endpoint;
use crate::cluster::{EndpointLimiters, Permit, SlotGuard};
use crate::failure::{ErrorContext, Failure};
use crate::limits::Pass;

/// How long a request that has a place waits for a rate.
const BRIEF: Duration = Duration::from_millis(100);

/// The longest wait for a key while others may be ready.
const SHORT: Duration = Duration::from_secs(1);

/// A request, as the limits that processes share count it.
struct Wanted<'a> {
    /// The key that it is sent with if that can be used.
    bound: Option<usize>,
    model: &'a str,
    tokens: u64,
}

/// A place among the requests in flight of this process, and among those of all.
struct Place {
    pass: Pass,
    slot: Option<SlotGuard>,
}

impl Endpoint {
    /// Waits until a request of about `tokens` tokens may be sent: until it has a place among those in flight, and by the limits that
    /// processes share, with the key `bound` if that can be used, or else another one.
    pub(super) async fn admitted(
        &self,
        bound: Option<usize>,
        tokens: u64,
        context: &ErrorContext<'_>,
    ) -> Result<(Pass, Permit), Failure> {
        let Some(limiters) = &self.0.shared_limiters else {
            return Ok((self.0.limiter.pass().await, Permit { key: bound, ..Permit::default() }));
        };
        let model = context.model.split_once(':').map_or(context.model, |(_, model)| model);
        let wanted = Wanted { bound, model, tokens };
        // In a box, because most endpoints share no limits: each call has space for what it may do.
        let admitting = Box::pin(self.admitted_by(limiters, &wanted));
        let (place, permit) = admitting.await.map_err(|wait| context.postponed(wait))?;
        self.0.limiter.begin().await;
        Ok((place.pass, Permit { _slot: place.slot, ..permit }))
    }

    /// Waits for a place and for the rates. A request that waits for a rate has no place, because one to another model could use it, and
    /// has a place before its permission, because that is void a little later.
    ///
    /// # Errors
    /// The wait, if it is longer than the patience.
    async fn admitted_by(
        &self,
        limiters: &EndpointLimiters,
        wanted: &Wanted<'_>,
    ) -> Result<(Place, Permit), Duration> {
        let patience = limiters.patience();
        let brief = patience.into_iter().chain([BRIEF]).min();
        let place = self.place_and_slot(limiters, patience).await?;
        // The rate of all requests last: one that waits for the rate of its model draws nothing of it.
        if let Ok(permit) = self.key_rate(limiters, wanted, brief).await {
            if limiters.begin(brief).await.is_ok() {
                return Ok((place, permit));
            }
            permit.unused();
        }
        drop(place);
        let permit = self.rates(limiters, wanted, patience).await?;
        if let Some(pass) = self.0.limiter.free_place()
            && let Ok(slot) = limiters.slot(Some(Duration::ZERO)).await
        {
            return Ok((Place { pass, slot }, permit));
        }
        // Neither is free: to wait for one after the other could last forever. So one request to the model keeps its place.
        permit.unused();
        let line = limiters.line(wanted.model);
        let _first = match patience {
            Some(patience) => timeout(patience, line.lock()).await.map_err(|_| patience)?,
            None => line.lock().await,
        };
        let place = self.place_and_slot(limiters, patience).await?;
        let permit = self.rates(limiters, wanted, patience).await?;
        Ok((place, permit))
    }

    async fn place_and_slot(
        &self,
        limiters: &EndpointLimiters,
        patience: Option<Duration>,
    ) -> Result<Place, Duration> {
        let pass = self.0.limiter.place().await;
        let slot = limiters.slot(patience).await?;
        Ok(Place { pass, slot })
    }

    /// Waits no longer than `patience` until the rates of all requests and of one key allow a request.
    async fn rates(
        &self,
        limiters: &EndpointLimiters,
        wanted: &Wanted<'_>,
        patience: Option<Duration>,
    ) -> Result<Permit, Duration> {
        limiters.begin(patience).await?;
        self.key_rate(limiters, wanted, patience).await
    }

    /// The same for the rate of one key alone.
    async fn key_rate(
        &self,
        limiters: &EndpointLimiters,
        wanted: &Wanted<'_>,
        patience: Option<Duration>,
    ) -> Result<Permit, Duration> {
        let Wanted { bound, model, tokens } = *wanted;
        let pool = &self.0.key_pool;
        let mut others = pool.len();
        loop {
            others = others.saturating_sub(1);
            let (key, _) = pool.next(bound);
            let patience = patience.into_iter().chain((others > 0).then_some(SHORT)).min();
            match limiters.pass(key, model, tokens, patience).await {
                Ok(limiter) => {
                    return Ok(Permit { key: Some(key), limiter: Some(limiter), tokens, _slot: None });
                }
                // Another process has met its rate limit.
                Err(wait) if others > 0 => pool.cool(key, wait),
                Err(wait) => return Err(wait),
            }
        }
    }

    /// The longest wait of a call.
    pub(super) fn patience(&self) -> Option<Duration> {
        self.0.shared_limiters.as_ref().and_then(|limiters| limiters.patience())
    }
}

#[cfg(test)]
#[path = "permit_tests.rs"]
mod tests;
