//! Limits of runs, agents and chats.

use polylogue_config::{At, Config};
use polylogue_core::{Allowance, Money};

use crate::duration::Time;

/// Limits of a whole run. The run ends when the first one is reached. Without `calls`, it ends after 1,000 model calls.
#[derive(Debug, Clone, Default, PartialEq, Config)]
pub struct Limits {
    /// What the run can use.
    #[key(flatten)]
    pub usage: UsageLimits,
    /// Maximum depth of chats within chats.
    #[key(none = "8", range = 1..=64)]
    pub depth: Option<u32>,
    /// Maximum number of background tasks that are open at the same time in all chats. A further one is refused.
    #[key(none = "16", range = 1..=1_000)]
    pub background_tasks: Option<usize>,
    /// What happens when a limit of the run, of an agent or of a chat is reached. `--on-limit` replaces it.
    #[key(default = OnLimit::Stop)]
    pub on_limit: OnLimit,
    /// Totals above which no answer raises a limit. At them the run, or the chat, ends without a question.
    pub ceiling: At<UsageLimits>,
    /// Time after which no answer counts as no, such as `10 min`. It passes also while no process runs the conversation.
    #[key(none = "the run waits for the answer")]
    pub answer_timeout: Option<Time>,
}

/// What happens when a limit of the run, of an agent or of a chat is reached.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Config)]
pub enum OnLimit {
    /// The run ends, or the chat whose limit it is, or in which the agent has its turn.
    #[default]
    Stop,
    /// A person is asked to raise the limit, as at any other question. `yes` allows as much again, an amount such as `20`, `$0.50`
    /// or `5 min` that much more, and with every other answer the run or the chat ends.
    Ask,
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
    /// Returns the limits of an agent or chat; `None` if nothing is limited.
    pub fn allowance(&self) -> Option<Allowance> {
        let Self { calls, tokens, cost, .. } = *self;
        let allowance = Allowance { calls, tokens, cost: cost.map(Money::dollars), time_ms: self.time_ms() };
        (allowance != Allowance::default()).then_some(allowance)
    }

    pub(crate) fn time_ms(&self) -> Option<u64> {
        self.time.map(Time::ms)
    }

    /// The first key of which these allow less than `other`.
    pub(crate) fn first_below(&self, other: &Self) -> Option<&'static str> {
        self.first_where(other, |own, other| own < other)
    }

    /// The first key of which these allow at least as much as `other`.
    pub(crate) fn first_not_below(&self, other: &Self) -> Option<&'static str> {
        self.first_where(other, |own, other| own >= other)
    }

    fn first_where(&self, other: &Self, is: impl Fn(f64, f64) -> bool) -> Option<&'static str> {
        let both =
            |own: Option<f64>, other: Option<f64>| own.zip(other).is_some_and(|(own, other)| is(own, other));
        let count = |limit: Option<u64>| limit.map(|limit| limit as f64);
        let keys = [
            ("calls", both(count(self.calls), count(other.calls))),
            ("tokens", both(count(self.tokens), count(other.tokens))),
            ("cost", both(self.cost, other.cost)),
            ("time", both(count(self.time_ms()), count(other.time_ms()))),
        ];
        keys.into_iter().find_map(|(key, is)| is.then_some(key))
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
