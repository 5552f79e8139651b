//! Models: what a call takes, and what is unknown of it.

use polylogue_core::{AnyModel, Bound, Model as _, Money, Params, Usage};

use super::amount::{Amount, NO_LIMIT};
use super::case::Case;

/// `number` as 64 bits; the largest number if it is larger.
fn number(number: u128) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

/// The longest reply of `model` in tokens.
pub(super) fn longest(model: &AnyModel, params: &Params, case: Case) -> u128 {
    let most = model.max_output(params).or_else(|| model.max_input());
    case.reply(most.map_or(NO_LIMIT, u128::from))
}

/// One call of `model` with a request of `context` bytes: as such a call is reserved.
pub(super) fn call_of(model: &AnyModel, params: &Params, case: Case, context: u128) -> Amount {
    let bound = Bound::of_input(model, params, number(case.tokens(context)));
    if case.is_typical() {
        let (input, output) = (u128::from(bound.input), longest(model, params, case));
        let usage = Usage { input: Some(bound.input), output: Some(number(output)), ..Usage::default() };
        let cost = model.cost(&usage).map_or(0, |cost| cost.picodollars.into());
        return Amount { calls: 1, input, output, tokens: input.saturating_add(output), cost, tools: 0 };
    }
    let input = if bound.input == u64::MAX { NO_LIMIT } else { bound.input.into() };
    let output = bound.tokens.filter(|_| input != NO_LIMIT).map(|tokens| tokens - bound.input);
    let (output, cost) = (output.map_or(NO_LIMIT, u128::from), bound.cost.filter(|_| input != NO_LIMIT));
    let unknown = || if is_unpriced(model, params) || is_free(model) { 0 } else { NO_LIMIT };
    let cost = cost.map_or_else(unknown, |cost| cost.picodollars.into());
    Amount { calls: 1, input, output, tokens: input.saturating_add(output), cost, tools: 0 }
}

fn is_free(model: &AnyModel) -> bool {
    let usage = Usage { input: Some(1_000_000), output: Some(1_000_000), ..Usage::default() };
    model.cost(&usage) == Some(Money::default())
}

/// Whether the price of requests to `model` with `params` is unknown.
pub(super) fn is_unpriced(model: &AnyModel, params: &Params) -> bool {
    let usage = Usage { input: Some(1), output: Some(1), ..Usage::default() };
    !model.has_price(params) || model.cost(&usage).is_none()
}

/// Whether the length of a request or of a reply of `model` has no limit.
pub(super) fn is_unlimited(model: &AnyModel, params: &Params) -> bool {
    longest(model, params, Case::Worst) == NO_LIMIT
}
