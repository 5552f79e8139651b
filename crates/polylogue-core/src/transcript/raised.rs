//! Limits of a chat that were raised.

use crate::{ChatLimits, LimitOverrides, Money};

/// The amounts that a chat may use since it was opened last, whatever its own limits: a resumption or a person allowed it. 0 where nothing was
/// allowed. Termination conditions and policies use the larger of their own limit and this one.
///
/// ```
/// use polylogue_core::Transcript;
/// let limit = |chat: &Transcript| chat.raised().turns.max(12);
/// assert_eq!(limit(&Transcript::default()), 12);
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct RaisedLimits {
    /// Turns, as [`Transcript::turns`](crate::Transcript::turns) counts them.
    pub turns: u64,
    /// Messages, as [`Transcript::message_count`](crate::Transcript::message_count) counts them.
    pub messages: u64,
    /// Tokens, as [`Transcript::tokens`](crate::Transcript::tokens) counts them.
    pub tokens: u64,
    /// Money, as [`Transcript::cost`](crate::Transcript::cost) counts it.
    pub cost: Money,
}

/// What was allowed beyond the limits of a chat.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Raises {
    pub(super) limits: RaisedLimits,
    /// The last event by which that was allowed while the chat was open.
    pub(super) last: Option<u64>,
}

/// These amounts as limits.
impl From<RaisedLimits> for ChatLimits {
    fn from(RaisedLimits { turns, messages, tokens, cost }: RaisedLimits) -> Self {
        Self { turns: Some(turns), messages: Some(messages), tokens: Some(tokens), cost: Some(cost) }
    }
}

impl RaisedLimits {
    /// The higher one of each.
    pub(super) fn at_least(self, other: Self) -> Self {
        Self {
            turns: self.turns.max(other.turns),
            messages: self.messages.max(other.messages),
            tokens: self.tokens.max(other.tokens),
            cost: self.cost.max(other.cost),
        }
    }

    /// Allows `more` than what is `used`. More turns are also more messages: a turn adds one.
    pub(super) fn raise(&mut self, used: &Self, more: &LimitOverrides) {
        if let Some(turns) = more.turns {
            self.turns = used.turns.saturating_add(turns);
            self.messages = used.messages.saturating_add(turns);
        }
        if let Some(tokens) = more.tokens {
            self.tokens = used.tokens.saturating_add(tokens);
        }
        if let Some(cost) = more.cost {
            self.cost = used.cost + cost;
        }
    }
}
