//! Which keys can be used, and whether an endpoint works.

use std::time::Duration;

use polylogue_core::ModelError;
use tokio::time::Instant;

use crate::fallback::FailureClass;

/// What is known of a key.
#[derive(Debug)]
pub(in crate::endpoint) struct KeyState {
    /// Its share of the requests, at least 1.
    weight: i64,
    /// How far it is ahead of its share, if negative, or behind.
    credit: i64,
    /// Its account had no credit left, or met a quota, or the provider refused it: it is not tried until then.
    spent_until: Option<Instant>,
    /// It met a rate limit, which lasts until then.
    pub(super) cools_until: Option<Instant>,
    /// Its own failures: they may be those of an account, a project or a region, while other keys work.
    pub(super) circuit: Circuit,
}

impl KeyState {
    /// The wait after a rate limit, if the provider does not say.
    const USUAL: Duration = Duration::from_secs(5);
    /// The longest wait that a provider can ask for.
    const LONGEST: Duration = Duration::from_secs(600);
    /// So long a key is not tried that is refused or without credit: its account may be topped up, or its quota begin again.
    const SPENT: Duration = Duration::from_secs(600);
    /// Shorter waits do not keep a key from being used.
    const SHORTEST: Duration = Duration::from_secs(1);

    pub(super) fn new(weight: u32) -> Self {
        let (weight, circuit) = (i64::from(weight.max(1)), Circuit::default());
        Self { weight, credit: 0, spent_until: None, cools_until: None, circuit }
    }

    /// Whether it has credit left, meets no rate limit, and did not fail too often.
    pub(super) fn is_ready(&self, now: Instant) -> bool {
        self.waits_for(now).is_zero()
    }

    /// How long its rate limit lasts, it is without credit, or its circuit is open.
    pub(super) fn waits_for(&self, now: Instant) -> Duration {
        self.cools_for(now).max(self.spent_for(now)).max(self.circuit.is_open_for(now))
    }

    /// How long it is not tried because it had no credit left.
    pub(super) fn spent_for(&self, now: Instant) -> Duration {
        self.spent_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// Notes that its account has no credit left, or that the provider refuses it.
    pub(super) fn spend(&mut self, now: Instant) {
        self.spent_until = Some(now + Self::SPENT);
    }

    /// Notes that a request with it succeeded.
    pub(super) fn succeed(&mut self) {
        self.circuit.close();
        self.spent_until = None;
    }

    /// How long its rate limit lasts.
    pub(super) fn cools_for(&self, now: Instant) -> Duration {
        self.cools_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// The wait after a rate limit for which the provider asks for `asked`.
    pub(in crate::endpoint) fn wait(asked: Option<Duration>) -> Duration {
        asked.unwrap_or(Self::USUAL).min(Self::LONGEST)
    }

    /// Notes a rate limit with the wait that the provider asks for.
    pub(super) fn cool(&mut self, asked: Option<Duration>, now: Instant) {
        let wait = Self::wait(asked);
        if wait >= Self::SHORTEST {
            // A response that names no wait, or a short one, does not end a longer one.
            self.cools_until = self.cools_until.max(Some(now + wait));
        }
    }

    /// Chooses one of the keys `ready` by weight. Requests of a key are spread evenly: weights 2 and 1 give a, b, a, a, b, a
    /// (smooth weighted round robin, as in nginx).
    pub(super) fn choose(keys: &mut [Self], ready: &[usize]) -> Option<usize> {
        let (mut total, mut best) = (0, None);
        for nth in ready {
            let Some(key) = keys.get_mut(*nth) else { continue };
            key.credit += key.weight;
            total += key.weight;
            if best.is_none_or(|(_, credit)| key.credit > credit) {
                best = Some((*nth, key.credit));
            }
        }
        let (nth, _) = best?;
        keys.get_mut(nth)?.credit -= total;
        Some(nth)
    }
}

/// The circuit breaker of an endpoint, or of one of its keys: open after several failures in a row.
///
/// While that of a key is open, requests use other keys; while that of the endpoint is, or no key can be used, models with a
/// fallback skip the endpoint. Then one call tries it: a reply closes the circuit, another failure keeps it open. Calls
/// without another key and a fallback are sent in any case.
#[derive(Debug, Default)]
pub(super) struct Circuit {
    /// Failures in a row.
    failures: u32,
    open_until: Option<Instant>,
}

impl Circuit {
    /// So many failures in a row open it.
    const FAILURES: u32 = 5;
    /// So long it is open.
    const OPEN: Duration = Duration::from_secs(30);

    /// Counts a failure of the endpoint. Refusals of a request or a key are none.
    pub(super) fn note(&mut self, error: &ModelError, now: Instant) {
        let is_of_endpoint = matches!(
            FailureClass::of(error),
            Some(
                FailureClass::Overload
                    | FailureClass::Server
                    | FailureClass::Timeout
                    | FailureClass::Connection
            )
        );
        if is_of_endpoint {
            self.failures = self.failures.saturating_add(1);
            if self.failures >= Self::FAILURES {
                self.open_until = Some(now + Self::OPEN);
            }
        }
    }

    pub(super) fn close(&mut self) {
        *self = Self::default();
    }

    /// How long it is open.
    pub(super) fn is_open_for(&self, now: Instant) -> Duration {
        self.open_until.map_or(Duration::ZERO, |until| until.saturating_duration_since(now))
    }

    /// Notes that a call tries what was open until now: meanwhile it stays open for others.
    pub(super) fn try_now(&mut self, now: Instant) {
        if self.is_open_for(now).is_zero() {
            self.open_until = self.open_until.map(|_| now + Self::OPEN);
        }
    }

    /// How long it is open. When that is over, the first caller gets `None` and tries the endpoint; for others it stays
    /// open meanwhile.
    pub(super) fn open_for(&mut self, now: Instant) -> Option<Duration> {
        self.open_until?;
        let left = self.is_open_for(now);
        if left.is_zero() {
            self.try_now(now);
            return None;
        }
        Some(left)
    }
}
