//! Amounts of money.

use std::fmt;
use std::iter::Sum;
use std::ops::{Add, AddAssign};

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// An amount of money in US dollars, exact to 10⁻¹² of a dollar: the price of one token at $0.000001 a million.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
pub struct Money {
    /// The amount in 10⁻¹² dollars.
    pub picodollars: u64,
}

impl Money {
    const PER_DOLLAR: f64 = 1e12;

    /// Creates an amount in dollars; negative numbers and NaN count as 0.
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "float casts saturate")]
    pub fn dollars(amount: f64) -> Self {
        Self { picodollars: (amount * Self::PER_DOLLAR).round() as u64 }
    }

    /// Returns the amount in dollars.
    #[must_use]
    #[expect(clippy::cast_precision_loss, reason = "for display; exact up to 9,000 dollars")]
    pub fn as_dollars(self) -> f64 {
        self.picodollars as f64 / Self::PER_DOLLAR
    }

    /// Returns the difference; 0 if `other` is more.
    #[must_use]
    pub const fn saturating_sub(self, other: Self) -> Self {
        Self { picodollars: self.picodollars.saturating_sub(other.picodollars) }
    }
}

impl fmt::Display for Money {
    /// Two decimals from a dollar on, and of whole cents; four below; two digits of what is less than $0.0001, so that it is not
    /// shown as nothing.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let dollars = self.as_dollars();
        if dollars >= 1.0 {
            return write!(f, "${dollars:.2}");
        }
        if dollars >= 0.0001 || self.picodollars == 0 {
            let shown = format!("{dollars:.4}");
            return write!(f, "${}", shown.strip_suffix("00").unwrap_or(&shown));
        }
        let digits = (5..12_u8).find(|digits| dollars * 10_f64.powi((*digits).into()) >= 10.0).unwrap_or(12);
        let shown = format!("{dollars:.0$}", usize::from(digits));
        write!(f, "${}", shown.trim_end_matches('0'))
    }
}

impl Add for Money {
    type Output = Self;
    fn add(self, other: Self) -> Self {
        Self { picodollars: self.picodollars.saturating_add(other.picodollars) }
    }
}

impl AddAssign for Money {
    fn add_assign(&mut self, other: Self) {
        *self = *self + other;
    }
}

impl Sum for Money {
    fn sum<I: Iterator<Item = Self>>(amounts: I) -> Self {
        amounts.fold(Self::default(), Add::add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn money_is_shown_with_the_digits_that_matter() {
        assert_eq!(Money::dollars(12.345).to_string(), "$12.35");
        assert_eq!(Money::dollars(0.00123).to_string(), "$0.0012");
        assert_eq!(Money::dollars(0.5).to_string(), "$0.50");
        assert_eq!(Money::dollars(0.4987).to_string(), "$0.4987");
        assert_eq!(Money::dollars(-1.0), Money::default());
        for (picodollars, shown) in [
            (0, "$0.00"),
            (1, "$0.000000000001"),
            (4_500_000, "$0.0000045"),
            (30_000_000, "$0.00003"),
            (99_999_999, "$0.0001"),
            (100_000_000, "$0.0001"),
        ] {
            assert_eq!(Money { picodollars }.to_string(), shown);
        }
    }
}
