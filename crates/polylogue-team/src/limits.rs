//! Limits of runs, agents and chats.

use std::time::Duration;

use polylogue_config::Config;
use polylogue_core::{Allowance, Money};

use crate::duration::Time;

/// Limits of a whole run. The run ends when the first one is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Config)]
pub struct Limits {
    /// What the run can use.
    #[key(flatten)]
    pub usage: UsageLimits,
    /// Maximum depth of chats within chats.
    #[key(none = "8", range = 1..=64)]
    pub depth: Option<u32>,
}

/// Limits on usage. A model call that does not fit into what is left is not sent.
#[derive(Debug, Clone, Copy, Default, PartialEq, Config)]
pub struct UsageLimits {
    /// Maximum number of model calls.
    #[key(none = "none", range = 1..)]
    pub calls: Option<u64>,
    /// Maximum number of input and output tokens together.
    #[key(none = "none", range = 1..)]
    pub tokens: Option<u64>,
    /// Maximum cost in US dollars.
    #[key(none = "none", range = 0..=1_000_000)]
    pub cost: Option<f64>,
    /// Maximum running time, such as `10 min`. Calls in flight are aborted when it is up. The time in which people are
    /// waited for does not count.
    #[key(none = "none")]
    pub time: Option<Time>,
}

impl UsageLimits {
    /// The limits of an agent or chat; `None` if nothing is limited.
    pub(crate) fn allowance(&self) -> Option<Allowance> {
        let Self { calls, tokens, cost, .. } = *self;
        let allowance = Allowance { calls, tokens, cost: cost.map(Money::dollars), time_ms: self.time_ms() };
        (allowance != Allowance::default()).then_some(allowance)
    }

    pub(crate) fn time_ms(&self) -> Option<u64> {
        self.time.map(|time| u64::try_from(Duration::from(time).as_millis()).unwrap_or(u64::MAX))
    }

    /// The first key of which these allow less than `other`.
    pub(crate) fn first_below(&self, other: &Self) -> Option<&'static str> {
        let is_below =
            |own: Option<f64>, other: Option<f64>| own.zip(other).is_some_and(|(own, other)| own < other);
        let count = |limit: Option<u64>| limit.map(|limit| limit as f64);
        let keys = [
            ("calls", is_below(count(self.calls), count(other.calls))),
            ("tokens", is_below(count(self.tokens), count(other.tokens))),
            ("cost", is_below(self.cost, other.cost)),
            ("time", is_below(count(self.time_ms()), count(other.time_ms()))),
        ];
        keys.into_iter().find_map(|(key, is_below)| is_below.then_some(key))
    }

    /// The smaller limit of both, each.
    pub(crate) fn and(self, other: Self) -> Self {
        Self {
            calls: [self.calls, other.calls].into_iter().flatten().min(),
            tokens: [self.tokens, other.tokens].into_iter().flatten().min(),
            cost: [self.cost, other.cost].into_iter().flatten().reduce(f64::min),
            time: [self.time, other.time].into_iter().flatten().min(),
        }
    }
}
