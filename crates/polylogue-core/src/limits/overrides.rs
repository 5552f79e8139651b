//! Limits of one conversation that override those of its team.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Limits, OnLimit};
use crate::{Money, TotalUsage};

/// Limits of one conversation that override those of its team, such as those of command-line options. They apply in
/// every process that continues the conversation, until they are changed again. Each is the field of [`Limits`] with its name.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[schemars(deny_unknown_fields)]
pub struct LimitOverrides {
    /// Turns of agents in all chats.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub turns: Option<u64>,
    /// Model calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub calls: Option<u64>,
    /// Tokens read and written.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub tokens: Option<u64>,
    /// Money, in picodollars: a dollar has 10^12.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// Running time in milliseconds, without the time in which people are waited for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub time_ms: Option<u64>,
    /// The most tokens of one reply, below the `max_tokens` of the team. A reply that reaches it is cut off.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(range(min = 1))]
    pub reply_tokens: Option<u64>,
    /// Whether a person is asked to raise a limit. Default: that of the team.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on_limit: Option<OnLimit>,
}

impl LimitOverrides {
    /// Returns whether no limit is overridden.
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// Why they raise no limit, if they give amounts of which none is a change, as `changes` says.
    pub(crate) fn unraised(self, changes: &[Arc<str>]) -> Option<String> {
        let amounts = Self { reply_tokens: None, on_limit: None, ..self };
        (changes.is_empty() && !amounts.is_empty()).then(|| {
            "it would raise no limit: an amount counts in addition to what was used so far".to_owned()
        })
    }

    /// These limits with another amount for each: by `of`, from it and that of `other`, of money in picodollars.
    pub(super) fn each(self, other: Self, of: impl Fn(Option<u64>, Option<u64>) -> Option<u64>) -> Self {
        let picodollars = |cost: Option<Money>| cost.map(|cost| cost.picodollars);
        let cost = of(picodollars(self.cost), picodollars(other.cost));
        Self {
            turns: of(self.turns, other.turns),
            calls: of(self.calls, other.calls),
            tokens: of(self.tokens, other.tokens),
            cost: cost.map(|picodollars| Money { picodollars }),
            time_ms: of(self.time_ms, other.time_ms),
            ..self
        }
    }

    /// Returns these limits, with those of `earlier` where one is not set.
    #[must_use]
    pub fn or(self, earlier: Self) -> Self {
        let reply_tokens = self.reply_tokens.or(earlier.reply_tokens);
        let on_limit = self.on_limit.or(earlier.on_limit);
        Self { reply_tokens, on_limit, ..self.each(earlier, Option::or) }
    }

    /// The amounts of `usage`, these `turns` and this running time in milliseconds.
    fn of_usage(usage: &TotalUsage, (turns, time_ms): (u64, u64)) -> Self {
        Self {
            turns: Some(turns),
            calls: Some(usage.counted_calls()),
            tokens: Some(usage.counted_tokens()),
            cost: Some(usage.counted_cost()),
            time_ms: Some(time_ms),
            ..Self::default()
        }
    }

    /// The totals that allow this much more than `usage`, these `turns` and this running time in milliseconds.
    pub(crate) fn beyond(self, usage: &TotalUsage, turns_and_time: (u64, u64)) -> Self {
        self.plus(Self::of_usage(usage, turns_and_time))
    }

    /// What these totals leave of what they limit after `usage`, these `turns` and this running time in milliseconds.
    pub(crate) fn less(self, usage: &TotalUsage, turns_and_time: (u64, u64)) -> Self {
        self.above(Self::of_usage(usage, turns_and_time))
    }

    /// Returns `limit`, with the amounts of these limits where both are set and these are not 0.
    #[must_use]
    pub fn instead_of(self, limit: Self) -> Self {
        let amount = |own: Option<u64>, limit: Option<u64>| {
            limit.map(|limit| own.filter(|own| *own > 0).unwrap_or(limit))
        };
        Self { reply_tokens: None, on_limit: None, ..self.each(limit, amount) }
    }

    /// These, or what `needed` has of the same kind, if that is more.
    pub(crate) fn at_least(self, needed: Self) -> Self {
        self.each(needed, Ord::max)
    }

    /// Returns `limits` with these overrides.
    #[must_use]
    pub fn apply_to(self, limits: Limits) -> Limits {
        Limits {
            turns: self.turns.or(limits.turns),
            calls: self.calls.or(limits.calls),
            tokens: self.tokens.or(limits.tokens),
            cost: self.cost.or(limits.cost),
            time_ms: self.time_ms.or(limits.time_ms),
            reply_tokens: self.reply_tokens.or(limits.reply_tokens),
            on_limit: self.on_limit.unwrap_or(limits.on_limit),
            ..limits
        }
    }
}
