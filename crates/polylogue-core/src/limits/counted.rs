//! What counts against limits.

use std::ops::{Add, AddAssign};

use crate::{Money, TotalUsage};

/// The usage that counts against limits: what was used, calls of unknown usage at their upper bound.
///
/// ```
/// use polylogue_core::{CountedUsage, Money};
/// let used = CountedUsage { calls: 2, tokens: 900, cost: Money::dollars(0.02) } + Money::dollars(0.01).into();
/// assert_eq!(used, CountedUsage { calls: 2, tokens: 900, cost: Money::dollars(0.03) });
/// ```
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CountedUsage {
    /// Model calls.
    pub calls: u64,
    /// Tokens read and written.
    pub tokens: u64,
    /// Money.
    pub cost: Money,
}

impl From<Money> for CountedUsage {
    fn from(cost: Money) -> Self {
        Self { cost, ..Self::default() }
    }
}

impl Add for CountedUsage {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self {
            calls: self.calls.saturating_add(other.calls),
            tokens: self.tokens.saturating_add(other.tokens),
            cost: self.cost + other.cost,
        }
    }
}

impl CountedUsage {
    /// Returns what is left of it without `used`: 0 where that is more.
    #[must_use]
    pub const fn less(self, used: Self) -> Self {
        Self {
            calls: self.calls.saturating_sub(used.calls),
            tokens: self.tokens.saturating_sub(used.tokens),
            cost: self.cost.saturating_sub(used.cost),
        }
    }
}

impl AddAssign for CountedUsage {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl TotalUsage {
    /// Returns the part of the usage that counts against limits.
    pub fn counted(&self) -> CountedUsage {
        let (calls, tokens) = (self.counted_calls(), self.counted_tokens());
        CountedUsage { calls, tokens, cost: self.counted_cost() }
    }
}
