//! Amounts of model calls, tokens and money.

use polylogue_core::{Allowance, Money};
use serde::Serialize;
use serde_json::{Value, json};

/// Stands for "no limit": sums and products saturate at it.
pub(super) const NO_LIMIT: u128 = u128::MAX;

/// Model calls, tokens and money. Arithmetic saturates.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Amount {
    pub(super) calls: u128,
    pub(super) input: u128,
    pub(super) output: u128,
    /// Of input and output together: less than both where the longest of each are not in the same call.
    pub(super) tokens: u128,
    /// Money for models.
    pub(super) cost: u128,
    /// Money that tools declare.
    pub(super) tools: u128,
}

impl Amount {
    /// Returns the number of model calls; `None` without a limit.
    pub fn calls(&self) -> Option<u64> {
        limited(self.calls)
    }

    /// Returns the input tokens; `None` without a limit.
    pub fn input(&self) -> Option<u64> {
        limited(self.input)
    }

    /// Returns the output tokens; `None` without a limit.
    pub fn output(&self) -> Option<u64> {
        limited(self.output)
    }

    /// Returns the input and output tokens; `None` without a limit.
    pub fn tokens(&self) -> Option<u64> {
        limited(self.tokens)
    }

    /// Returns the money in picodollars (10⁻¹² US dollars), for models and what tools declare; `None` without a limit.
    pub fn picodollars(&self) -> Option<u128> {
        (self.money() != NO_LIMIT).then_some(self.money())
    }

    /// Money for models and tools in picodollars.
    pub(super) fn money(&self) -> u128 {
        self.cost.saturating_add(self.tools)
    }

    /// Money for models alone in picodollars; `None` without a limit.
    pub(super) fn model_picodollars(&self) -> Option<u128> {
        (self.cost != NO_LIMIT).then_some(self.cost)
    }

    /// The same within limits of a run, which models and tools share.
    pub(super) fn within(self, tokens: Option<u64>, money: Option<Money>) -> Self {
        let tokens = tokens.map_or(NO_LIMIT, u128::from);
        let money = money.map_or(NO_LIMIT, |money| money.picodollars.into());
        let cost = self.cost.min(money);
        Self {
            calls: self.calls,
            input: self.input.min(tokens),
            output: self.output.min(tokens),
            tokens: self.tokens.min(tokens),
            cost,
            tools: self.tools.min(money.saturating_sub(cost)),
        }
    }

    /// The same within the limits of an agent. Where the length of a reply has no limit, the last one can exceed them, and the run
    /// continues.
    pub(super) fn within_own(self, own: &Allowance) -> Self {
        let is_known = self.tokens != NO_LIMIT && self.cost != NO_LIMIT;
        let rest = if is_known { self.within(own.tokens, own.cost) } else { self };
        Self { calls: self.calls.min(own.calls.map_or(NO_LIMIT, u128::from)), ..rest }
    }

    pub(super) fn plus(self, other: Self) -> Self {
        self.with(other, u128::saturating_add)
    }

    pub(super) fn max(self, other: Self) -> Self {
        self.with(other, u128::max)
    }

    pub(super) fn min(self, other: Self) -> Self {
        self.with(other, u128::min)
    }

    pub(super) fn less(self, other: Self) -> Self {
        self.with(other, u128::saturating_sub)
    }

    /// This amount `count` times.
    pub(super) fn times(self, count: u128) -> Self {
        self.with(self, |one, _| one.saturating_mul(count))
    }

    /// As much of `whole` as this is of `all`, in each measure in which that is more than the whole.
    pub(super) fn share(self, whole: Self, all: Self) -> Self {
        let of = |own: u128, whole: u128, all: u128| match whole < all {
            true => own.saturating_mul(whole) / all,
            false => own,
        };
        Self {
            calls: of(self.calls, whole.calls, all.calls),
            input: of(self.input, whole.input, all.input),
            output: of(self.output, whole.output, all.output),
            tokens: of(self.tokens, whole.tokens, all.tokens),
            cost: of(self.cost, whole.cost, all.cost),
            tools: of(self.tools, whole.tools, all.tools),
        }
    }

    fn with(self, other: Self, of: impl Fn(u128, u128) -> u128) -> Self {
        Self {
            calls: of(self.calls, other.calls),
            input: of(self.input, other.input),
            output: of(self.output, other.output),
            tokens: of(self.tokens, other.tokens),
            cost: of(self.cost, other.cost),
            tools: of(self.tools, other.tools),
        }
    }

    /// Returns the amount as JSON: `null` for what has no limit.
    pub fn to_json(&self) -> Value {
        json!({
            "calls": self.calls(),
            "input_tokens": self.input(),
            "output_tokens": self.output(),
            "tokens": self.tokens(),
            "picodollars": self.picodollars().and_then(|cost| u64::try_from(cost).ok()),
        })
    }
}

impl Serialize for Amount {
    fn serialize<S: serde::Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        self.to_json().serialize(to)
    }
}

fn limited(number: u128) -> Option<u64> {
    u64::try_from(number).ok()
}

/// A total of model calls, and the largest single call among them, in each measure.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Sum {
    pub(super) total: Amount,
    pub(super) largest: Amount,
    /// The most bytes that a request has besides the history.
    pub(super) base: u128,
    /// The most bytes that one call adds to the history of any agent.
    pub(super) growth: u128,
}

impl Sum {
    /// Adds `call`, made `count` times.
    pub(super) fn add_calls(&mut self, call: Amount, count: u128) {
        if count > 0 {
            self.total = self.total.plus(call.times(count));
            self.largest = self.largest.max(call);
        }
    }

    /// Adds money of tools that run without a model call of their own: a limit on calls says nothing about it.
    pub(super) fn add_spending(&mut self, picodollars: u128) {
        if picodollars > 0 {
            self.total.tools = self.total.tools.saturating_add(picodollars);
            self.largest.tools = NO_LIMIT;
        }
    }

    pub(super) fn add(&mut self, other: Self) {
        self.add_times(other, 1);
    }

    pub(super) fn add_times(&mut self, other: Self, count: u128) {
        if count > 0 {
            let total = self.total.plus(other.total.times(count));
            *self = Self { total, ..self.max(other) };
        }
    }

    pub(super) fn max(self, other: Self) -> Self {
        Self {
            total: self.total.max(other.total),
            largest: self.largest.max(other.largest),
            base: self.base.max(other.base),
            growth: self.growth.max(other.growth),
        }
    }

    /// The total when no more than `calls` calls are made.
    pub(super) fn within(self, calls: u128) -> Amount {
        self.total.min(Amount { calls, ..self.largest.times(calls) })
    }
}

/// What a turn takes, and what it adds to histories.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Effect {
    pub(super) sum: Sum,
    /// Bytes of the message.
    pub(super) message: u128,
    /// Bytes that only the agent's own view has of the turn.
    pub(super) kept: u128,
    /// Bytes of the message if it takes no model call.
    pub(super) free: u128,
}

impl Effect {
    pub(super) fn max(self, other: Self) -> Self {
        Self {
            sum: self.sum.max(other.sum),
            message: self.message.max(other.message),
            kept: self.kept.max(other.kept),
            free: self.free.max(other.free),
        }
    }

    /// A message without a model call.
    pub(super) fn of_text(bytes: u128) -> Self {
        Self { message: bytes, free: bytes, ..Self::default() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const CALL: Amount = Amount { calls: 1, input: 10, output: 2, tokens: 12, cost: 5, tools: 0 };

    #[test]
    fn sums_saturate_and_stay_without_a_limit() {
        let mut sum = Sum::default();
        sum.add_calls(Amount { input: NO_LIMIT, ..CALL }, 3);
        sum.add_calls(CALL, u128::MAX);
        assert_eq!(sum.total.input(), None);
        assert_eq!(sum.total.calls(), None);
        assert_eq!(sum.total.picodollars(), None);
    }

    #[test]
    fn a_limit_on_calls_counts_the_largest_ones() {
        let mut sum = Sum::default();
        sum.add_calls(CALL, 9);
        sum.add_calls(Amount { input: 100, tokens: 102, ..CALL }, 1);
        assert_eq!(sum.within(100).input, 190);
        assert_eq!(sum.within(1), Amount { input: 100, tokens: 102, ..CALL });
        assert_eq!(
            sum.within(2),
            Amount { calls: 2, input: 190, output: 4, tokens: 204, cost: 10, tools: 0 }
        );
    }

    #[test]
    fn shares_of_a_whole_that_is_less_than_all_parts_add_up_to_it() {
        let (all, whole) = (CALL.times(3), Amount { calls: 2, input: 7, ..CALL.times(3) });
        let until = |parts: u128| CALL.times(parts).share(whole, all);
        let shares = [1, 2, 3].map(|parts| until(parts).less(until(parts - 1)));
        assert_eq!(shares.map(|share| share.calls), [0, 1, 1]);
        assert_eq!(shares.map(|share| share.output), [2, 2, 2]);
        assert_eq!(shares.into_iter().fold(Amount::default(), Amount::plus), whole);
    }

    #[test]
    fn tools_that_run_without_a_call_count_in_any_number_of_calls() {
        let mut sum = Sum::default();
        sum.add_calls(Amount { tools: 7, ..CALL }, 9);
        assert_eq!((sum.within(2).tools, sum.within(2).picodollars()), (14, Some(24)));
        sum.add_spending(1_000);
        assert_eq!((sum.within(2).tools, sum.within(2).cost), (1_063, 10));
    }

    #[test]
    fn models_and_tools_share_a_limit_on_money_and_input_and_output_one_on_tokens() {
        let amount = Amount { tools: 7, ..CALL };
        let within = |picodollars| amount.within(Some(11), Some(Money { picodollars }));
        assert_eq!([3, 6, 50].map(|most| within(most).picodollars()), [Some(3), Some(6), Some(12)]);
        assert_eq!(
            (within(6).input(), within(6).output(), within(6).tokens()),
            (Some(10), Some(2), Some(11))
        );
        let own = Allowance { calls: Some(3), tokens: Some(11), ..Allowance::default() };
        let many = amount.times(5);
        assert_eq!((many.within_own(&own).calls(), many.within_own(&own).tokens()), (Some(3), Some(11)));
        let endless = Amount { output: NO_LIMIT, tokens: NO_LIMIT, cost: NO_LIMIT, ..many };
        assert_eq!((endless.within_own(&own).calls(), endless.within_own(&own).tokens()), (Some(3), None));
    }
}
