//! Rate limits and slots of model servers that many processes share.

use std::pin::Pin;
use std::time::Duration;

use crate::StoreError;

/// The scope of a shared limit: the calls of one model with one key.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct LimitScope {
    /// The name of the provider.
    pub provider: String,
    /// A digest of the address and the key. The key itself leaves the process only toward the provider.
    pub account: [u8; 32],
    /// The model's name at the provider; empty for all models of the account.
    pub model: String,
}

/// A rate: so many requests or tokens in each period.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Rate {
    /// The number in a period.
    pub count: u64,
    /// The period.
    pub period: Duration,
    /// The number at once, at least 1. Any time `t` has at most `burst + t * count / period` of them.
    pub burst: f64,
}

impl Rate {
    /// Returns the number per second.
    #[expect(clippy::cast_precision_loss, reason = "no rate needs 52 bits")]
    pub fn per_second(&self) -> f64 {
        (self.count.max(1) as f64) / self.period.as_secs_f64().max(0.001)
    }
}

/// A rate limit of a provider, as reported by a response.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct LearnedRate {
    /// The rate.
    pub rate: Rate,
    /// The number left now; `None` if unknown.
    pub remaining: Option<u64>,
}

/// The rate limits of a provider, as far as a response reports them.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct LearnedRates {
    /// The rate of requests.
    pub requests: Option<LearnedRate>,
    /// The rate of tokens, read and written.
    pub tokens: Option<LearnedRate>,
}

/// A demand for permissions to begin calls.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateDemand {
    /// The number of requests, at least one.
    pub requests: u32,
    /// The number of tokens of all of them; negative if earlier calls took fewer than they drew.
    pub tokens: i64,
    /// Nothing is drawn if the first call would have to wait longer. `None`: any wait.
    pub patience: Option<Duration>,
}

/// The times at which calls may begin, counted from the draw.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
pub struct RateGrant {
    /// Whether permissions were drawn. Otherwise the wait of the first call is longer than the patience.
    pub is_drawn: bool,
    /// The times at which requests may begin.
    pub requests: RateTimes,
    /// The times at which tokens may be sent.
    pub tokens: RateTimes,
    /// How long the provider has asked all callers to wait.
    pub blocked: Duration,
}

/// The times of drawn requests or tokens; all zero without a known rate.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RateTimes {
    /// The wait of the first one.
    pub wait: Duration,
    /// For how long the first one could have begun already: so others follow at once.
    pub overdue: Duration,
    /// The time between two.
    pub interval: Duration,
}

impl RateTimes {
    /// Creates times, one after the other from `start` on, in seconds from now, which can be negative.
    pub fn from(start: f64, interval: f64) -> Self {
        let duration = |seconds: f64| Duration::try_from_secs_f64(seconds).unwrap_or_default();
        Self {
            wait: duration(start.max(0.0)),
            overdue: duration((-start).max(0.0)),
            interval: duration(interval),
        }
    }

    fn after(&self, before: u64) -> Duration {
        let before = u32::try_from(before).unwrap_or(u32::MAX);
        self.wait.saturating_add(self.interval.saturating_mul(before)).saturating_sub(self.overdue)
    }
}

impl RateGrant {
    /// Returns the wait of a call before which `requests` requests with `tokens` tokens were drawn.
    pub fn wait(&self, requests: u32, tokens: u64) -> Duration {
        self.requests.after(requests.into()).max(self.tokens.after(tokens)).max(self.blocked)
    }
}

/// A slot of a server that serves few calls at once.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slot {
    /// The server.
    pub scope: LimitScope,
    /// The number of the slot, from 0 on.
    pub number: u32,
    /// Tells it from the same slot taken at another time.
    pub ticket: i64,
}

/// The result of an operation on shared limits.
pub type LimitsFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, StoreError>> + Send + 'a>>;

/// Rate limits and slots of model servers that all processes share which use the same store.
pub trait SharedLimits: Send + Sync + 'static {
    /// Draws permissions to begin calls. Without a known rate any number is granted at once, unless callers were asked
    /// to wait.
    fn draw<'a>(&'a self, scope: &'a LimitScope, demand: RateDemand) -> LimitsFuture<'a, RateGrant>;

    /// Notes the rates of a provider. What is unknown stays as it was.
    fn learn<'a>(&'a self, scope: &'a LimitScope, rates: LearnedRates) -> LimitsFuture<'a, ()>;

    /// Lets no process begin a call for so long, because the provider has asked for it.
    fn block<'a>(&'a self, scope: &'a LimitScope, wait: Duration) -> LimitsFuture<'a, ()>;

    /// Returns how long no process may begin a call.
    fn blocked<'a>(&'a self, scope: &'a LimitScope) -> LimitsFuture<'a, Duration>;

    /// Takes one of `slots` slots, if one is free. It is kept until it is [freed](Self::free), or for the length of a lease if
    /// this process dies.
    fn take_slot<'a>(&'a self, scope: &'a LimitScope, slots: u32) -> LimitsFuture<'a, Option<Slot>>;

    /// Frees a slot, soon.
    fn free(&self, slot: Slot);
}
