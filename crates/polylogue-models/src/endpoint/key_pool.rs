//! The keys of one endpoint, which share its requests by their weights, and what is known of their failures.

mod health;

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use polylogue_core::ModelError;
use polylogue_http::Transport;
use tokio::time::Instant;
use tracing::warn;
use url::Url;

use self::health::Circuit;
pub(super) use self::health::KeyState;
use crate::authorizer::Authorizer;
use crate::cluster::Permit;
use crate::failure::Failure;
use crate::retry::RetryAdvice;

/// The keys of an endpoint, each with its transport.
///
/// A key that meets a rate limit is not used until that is over, and one that fails repeatedly, is refused or has no credit left for a
/// while, if others can be used. Failures of the endpoint, whatever the key, open its [`Circuit`].
pub(super) struct KeyPool {
    first: Transport,
    further: Vec<Transport>,
    state: Mutex<State>,
    /// For requests that are not authorized by a key.
    pub(super) authorizer: Authorizer,
    /// Where the transports send requests, unless these say otherwise.
    pub(super) url: Url,
}

struct State {
    keys: Vec<KeyState>,
    circuit: Circuit,
}

impl KeyPool {
    /// A pool of transports to `url`, each with the weight of its key.
    pub(super) fn new(
        first: (Transport, u32),
        further: Vec<(Transport, u32)>,
        url: Url,
        authorizer: Authorizer,
    ) -> Self {
        let (first, weight) = first;
        let (further, weights): (Vec<_>, Vec<_>) = further.into_iter().unzip();
        let keys = std::iter::once(weight).chain(weights).map(KeyState::new).collect();
        Self {
            first,
            further,
            state: Mutex::new(State { keys, circuit: Circuit::default() }),
            authorizer,
            url,
        }
    }

    /// The transport of the key `nth`.
    fn transport(&self, nth: usize) -> &Transport {
        nth.checked_sub(1).and_then(|nth| self.further.get(nth)).unwrap_or(&self.first)
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The transport of the key `bound` if that can be used, because a conversation is bound to it; or else the next
    /// one, or the one that can be used first. With its index.
    pub(super) fn next(&self, bound: Option<usize>) -> (usize, &Transport) {
        let nth = self.state().next(bound, Instant::now());
        (nth, self.transport(nth))
    }

    /// The failure of a call with the key `nth`, noted; retried with another key if it is because of this one.
    pub(super) fn but_for(&self, nth: usize, failure: Failure) -> Failure {
        self.state().failed(nth, failure, Instant::now())
    }

    /// Notes that other processes wait with the key `nth` for so long.
    pub(super) fn cool(&self, nth: usize, wait: Duration) {
        self.state().keys.get_mut(nth).into_iter().for_each(|key| key.cool(Some(wait), Instant::now()));
    }

    /// The transport of a permit's key, with its index. Where no limits are shared, the key is only the one that is preferred.
    pub(super) fn chosen(&self, permit: &Permit) -> (usize, &Transport) {
        match (permit.key, &permit.limiter) {
            (Some(nth), Some(_)) => (nth, self.transport(nth)),
            (preferred, _) => self.next(preferred),
        }
    }

    /// Notes that the endpoint works with the key `nth`.
    pub(super) fn succeeded(&self, nth: usize) {
        let mut state = self.state();
        state.circuit.close();
        state.keys.get_mut(nth).into_iter().for_each(KeyState::succeed);
    }

    /// How long the endpoint is not to be used if something else can be. If it is not ready yet to be used but to be
    /// tried, the caller is the one who tries it.
    pub(super) fn unavailable_for(&self) -> Option<Duration> {
        let (mut state, now) = (self.state(), Instant::now());
        state.waiting_for(now).or_else(|| state.circuit.open_for(now))
    }

    /// The number of keys.
    pub(super) const fn len(&self) -> usize {
        self.further.len() + 1
    }

    /// Any transport: all have the same address.
    pub(super) const fn any(&self) -> &Transport {
        &self.first
    }
}

impl State {
    /// The key for the next request.
    fn next(&mut self, bound: Option<usize>, now: Instant) -> usize {
        let nth = self.chosen(bound, now).unwrap_or_default();
        self.keys.get_mut(nth).into_iter().for_each(|key| key.circuit.try_now(now));
        nth
    }

    /// The key `bound`, or the next one, or the one that can be used first.
    fn chosen(&mut self, bound: Option<usize>, now: Instant) -> Option<usize> {
        let is_ready = |nth: &usize| self.keys.get(*nth).is_some_and(|key| key.is_ready(now));
        if let Some(bound) = bound.filter(is_ready) {
            return Some(bound);
        }
        let ready: Vec<usize> = (0..self.keys.len()).filter(is_ready).collect();
        if ready.is_empty() {
            return self
                .keys
                .iter()
                .enumerate()
                .min_by_key(|(_, key)| key.waits_for(now))
                .map(|(nth, _)| nth);
        }
        KeyState::choose(&mut self.keys, &ready)
    }

    fn failed(&mut self, nth: usize, failure: Failure, now: Instant) -> Failure {
        self.circuit.note(&failure.error, now);
        let Some(key) = self.keys.get_mut(nth) else { return failure };
        key.circuit.note(&failure.error, now);
        let again = match failure.again {
            RetryAdvice::Spent => {
                key.spend(now);
                let is_left = |key: &KeyState| key.spent_for(now).is_zero();
                self.keys.iter().any(is_left).then_some(RetryAdvice::Now)
            }
            RetryAdvice::Yes(asked) if matches!(failure.error.status, Some(402 | 429)) => {
                key.cool(asked, now);
                let is_cooling = !key.is_ready(now);
                let other = is_cooling && self.keys.iter().any(|key| key.is_ready(now));
                other.then_some(RetryAdvice::OtherKey)
            }
            RetryAdvice::KeyRefused => self.leave_out(nth, &failure.error, now),
            _ => None,
        };
        Failure { again: again.unwrap_or(failure.again), ..failure }
    }

    /// Notes that a provider refuses the key `nth`, such as one that was revoked: another one is used, if there is one. The last one is
    /// tried with every call, because its error says what to do.
    fn leave_out(&mut self, nth: usize, error: &ModelError, now: Instant) -> Option<RetryAdvice> {
        let is_other = |(other, key): (usize, &KeyState)| other != nth && key.spent_for(now).is_zero();
        if !self.keys.iter().enumerate().any(is_other) {
            return None;
        }
        self.keys.get_mut(nth)?.spend(now);
        warn!(model = %error.model, key = nth + 1, "the provider refuses a key, which is not used for ten minutes");
        // An attempt that counts: where a gateway refuses a key for one model only, calls of others make it ready again.
        Some(RetryAdvice::OtherKey)
    }

    /// How long all keys wait for their rate limits, for credit, or after failures.
    fn waiting_for(&self, now: Instant) -> Option<Duration> {
        self.keys.iter().map(|key| key.waits_for(now)).min().filter(|wait| !wait.is_zero())
    }
}

#[cfg(test)]
mod tests;
