//! Limits of one conversation that override those of its team.

use serde::{Deserialize, Serialize};

use super::Limits;
use crate::{Money, TotalUsage};

/// Limits of one conversation that override those of its team, such as those of command-line options. They apply in
/// every process that continues the conversation, until they are changed again.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct LimitOverrides {
    /// As [`Limits::turns`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// As [`Limits::calls`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls: Option<u64>,
    /// As [`Limits::tokens`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tokens: Option<u64>,
    /// As [`Limits::cost`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<Money>,
    /// As [`Limits::time_ms`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms: Option<u64>,
}

impl LimitOverrides {
    /// Whether no limit is overridden.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These limits, with those of `earlier` where one is not set.
    #[must_use]
    pub fn or(self, earlier: Self) -> Self {
        Self {
            turns: self.turns.or(earlier.turns),
            calls: self.calls.or(earlier.calls),
            tokens: self.tokens.or(earlier.tokens),
            cost: self.cost.or(earlier.cost),
            time_ms: self.time_ms.or(earlier.time_ms),
        }
    }

    /// The totals that allow this much more than `usage`, these `turns` and this running time in milliseconds.
    pub(crate) fn beyond(self, usage: &TotalUsage, (turns, time_ms): (u64, u64)) -> Self {
        Self {
            turns: self.turns.map(|more| turns.saturating_add(more)),
            calls: self.calls.map(|more| usage.counted_calls().saturating_add(more)),
            tokens: self.tokens.map(|more| usage.counted_tokens().saturating_add(more)),
            cost: self.cost.map(|more| usage.counted_cost() + more),
            time_ms: self.time_ms.map(|more| time_ms.saturating_add(more)),
        }
    }

    /// `limits` with these overrides.
    #[must_use]
    pub fn over(self, limits: Limits) -> Limits {
        Limits {
            turns: self.turns.or(limits.turns),
            calls: self.calls.or(limits.calls),
            tokens: self.tokens.or(limits.tokens),
            cost: self.cost.or(limits.cost),
            time_ms: self.time_ms.or(limits.time_ms),
            ..limits
        }
    }
}
