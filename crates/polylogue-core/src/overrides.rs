//! Limits that are set for one conversation, over those of its team.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::{Body, Event, Limits, Log, Money, Path, Result};

/// Limits that are set for one conversation, over those of its team: by options of a command line, for instance. They hold in
/// every process that continues the conversation, until another value is set.
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
    /// Whether no limit is set.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }

    /// These limits; where one is not set, that of `earlier`.
    #[must_use]
    pub fn or(self, earlier: Self) -> Self {
        Self {
            turns: self.turns.or(earlier.turns),
            calls: self.calls.or(earlier.calls),
            tokens: self.tokens.or(earlier.tokens),
            cost: self.cost.or(earlier.cost),
        }
    }

    /// The limits of a run whose own are `limits`.
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

    /// The limits that were set last in the log with these `events`. `None` when they are those it began with.
    #[must_use]
    pub fn last_of(events: &[Arc<Event>]) -> Option<Self> {
        events.iter().rev().find_map(|event| match &event.body {
            Body::LimitsChanged(limits) => Some(*limits),
            _ => None,
        })
    }
}

impl Log {
    /// Writes that `limits` hold from now on, for this process and those that continue the conversation later: each reads them by
    /// [`LimitOverrides::last_of`] and sets them by [`limits`](Self::limits).
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
    /// When the log is no valid conversation.
    pub async fn has_begun(&self) -> Result<bool> {
        Ok(self.transcript().await?.is_open())
    }
}
