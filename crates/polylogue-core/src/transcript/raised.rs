//! Limits of a chat that a resumption raised.

use crate::{LimitOverrides, Money};

/// What a chat may use since it was opened last, whatever its own limits: a resumption allowed it. 0 where it allowed
/// nothing. Termination conditions and policies use the larger of their own limit and this one.
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

impl RaisedLimits {
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
