//! Whether a call fits into a limit on money or tokens, together with the calls in flight.

use crate::Money;

/// What is limited: money or tokens.
pub(crate) trait Quantity: Copy + Default + PartialEq + PartialOrd {
    /// The sum, saturating.
    fn plus(self, other: Self) -> Self;
    /// The difference, 0 if `other` is more.
    fn saturating_sub(self, other: Self) -> Self;
}

impl Quantity for Money {
    fn plus(self, other: Self) -> Self {
        self + other
    }
    fn saturating_sub(self, other: Self) -> Self {
        Self::saturating_sub(self, other)
    }
}

impl Quantity for u64 {
    fn plus(self, other: Self) -> Self {
        self.saturating_add(other)
    }
    fn saturating_sub(self, other: Self) -> Self {
        self.saturating_sub(other)
    }
}

/// Whether a call fits into a limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit<Q> {
    /// It fits, and reserves this amount.
    Now(Amount<Q>),
    /// Not together with the other reservations.
    Later,
    /// Not even alone.
    Never,
}

/// The reservation of one call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amount<Q> {
    pub(crate) most: Q,
    /// All that was left, because there is no upper bound: no other call is sent meanwhile.
    pub(crate) whole: bool,
}

/// The reservations of the calls in flight.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ReservedAmount<Q> {
    most: Q,
    /// How many calls have a reservation.
    calls: usize,
    whole: bool,
}

impl<Q: Copy> ReservedAmount<Q> {
    /// The sum.
    pub(crate) const fn most(&self) -> Q {
        self.most
    }
}

impl<Q: Quantity> ReservedAmount<Q> {
    /// Whether a call that uses at least `least`, and at most `most` if that is known, fits into `limit`, of which
    /// `spent` is gone.
    pub(crate) fn fit(&self, limit: Q, spent: Q, (most, least): (Option<Q>, Q)) -> Fit<Q> {
        if spent >= limit || spent.plus(least) > limit {
            return Fit::Never;
        }
        match most {
            Some(most) if most == Q::default() => Fit::Now(Amount::default()),
            Some(most) if !self.whole && spent.plus(self.most).plus(most) <= limit => {
                Fit::Now(Amount { most, whole: false })
            }
            None if self.calls == 0 => Fit::Now(Amount { most: limit.saturating_sub(spent), whole: true }),
            _ => Fit::Later,
        }
    }

    pub(crate) fn add(&mut self, amount: Amount<Q>) {
        if amount != Amount::default() {
            self.most = self.most.plus(amount.most);
            self.calls += 1;
            self.whole |= amount.whole;
        }
    }

    pub(crate) fn remove(&mut self, amount: Amount<Q>) {
        if amount != Amount::default() {
            self.most = self.most.saturating_sub(amount.most);
            self.calls = self.calls.saturating_sub(1);
            self.whole &= !amount.whole;
        }
    }
}
