//! Limits of one conversation that override those of its team.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Body, Event, Limits, Log, Money, Path, Result};

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
            ..limits
        }
    }

    /// The overrides that were logged last in `events`. `None` if the limits were never changed.
    #[must_use]
    pub fn last_of(events: &[Arc<Event>]) -> Option<Self> {
        events.iter().rev().find_map(|event| match &event.body {
            Body::LimitsChanged(limits) => Some(*limits),
            _ => None,
        })
    }
}

impl Log {
    /// Logs that `limits` apply from now on, for this process and for those that continue the conversation later:
    /// each reads them by [`LimitOverrides::last_of`] and sets them by [`limits`](Self::limits).
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn change_limits(&mut self, limits: LimitOverrides) -> Result<()> {
        self.append(&Path::root(), [Body::LimitsChanged(limits)]).await?;
        Ok(())
    }

    /// Whether its conversation has begun.
    ///
    /// # Errors
    /// When the log is not a valid conversation.
    pub async fn has_begun(&self) -> Result<bool> {
        Ok(self.transcript().await?.is_open())
    }
}
