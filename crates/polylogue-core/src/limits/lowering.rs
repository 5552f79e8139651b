//! Output limits that are lowered to what is left, where the longest reply does not fit.

use super::{Bound, CountedUsage, Limits};
use crate::{AllowanceOwner, StopReason};

/// How the output limit of a call can be lowered.
#[derive(Clone, Copy)]
pub(crate) struct Lowering<'a> {
    /// The highest limit that is worth sending: that of the request, or one that any server accepts.
    pub(crate) most: u64,
    /// The fewest tokens with which a reply is useful.
    pub(crate) least: u64,
    /// The upper bound of the call with this output limit; `None` if it cannot be lowered to that.
    pub(crate) bound: &'a (dyn Fn(u64) -> Option<Bound> + Sync),
}

/// A call with a lowered output limit.
#[derive(Debug, Clone)]
pub(crate) struct Lowered {
    pub(crate) bound: Bound,
    /// The most tokens of the reply.
    pub(crate) tokens: u64,
    /// The limit that leaves no more.
    pub(crate) of: StopReason,
}

/// The limits of an account with what of them is used, without calls in flight.
#[derive(Clone, Copy)]
pub(crate) struct Standing<'a> {
    /// Whose limits; `None`: those of the run.
    pub(crate) of: Option<&'a AllowanceOwner>,
    pub(crate) limits: Limits,
    pub(crate) used: CountedUsage,
}

impl Standing<'_> {
    /// Whether any reply could be too long.
    const fn is_limited(&self) -> bool {
        self.limits.tokens.is_some() || self.limits.cost.is_some()
    }

    fn fits_tokens(&self, call: &Bound) -> bool {
        let fits = |limit| call.tokens.is_some_and(|most| self.used.tokens.saturating_add(most) <= limit);
        self.limits.tokens.is_none_or(fits)
    }

    /// A call of unknown price fits, or is refused, whatever its length.
    fn fits_cost(&self, call: &Bound) -> bool {
        let fits = |limit| call.cost.is_some_and(|most| self.used.cost + most <= limit);
        call.least_cost.is_none() || self.limits.cost.is_none_or(fits)
    }

    /// Whether a call fits if no other is in flight.
    fn fits(&self, call: &Bound) -> bool {
        self.fits_tokens(call) && self.fits_cost(call)
    }

    /// The limit into which `above` does not fit, for a call that could have taken `full`.
    fn limit(&self, full: &Bound, above: &Bound) -> Option<StopReason> {
        let (Limits { tokens, cost, .. }, used) = (self.limits, self.used);
        let reached = match (tokens.filter(|_| !self.fits_tokens(above)), cost) {
            (Some(limit), _) => StopReason::Tokens { limit, used: used.tokens, next: full.tokens, cut: None },
            (None, Some(limit)) => StopReason::Cost { limit, spent: used.cost, next: full.cost, cut: None },
            (None, None) => return None,
        };
        Some(match self.of {
            Some(of) => StopReason::Allowance { of: of.clone(), limit: Box::new(reached) },
            None => reached,
        })
    }
}

impl Lowering<'_> {
    /// The call with the highest output limit with which it fits into all accounts, once no other call is in flight. `None` if its
    /// longest reply, with which it takes `full`, fits, or if no useful reply does.
    pub(crate) fn of<'s>(
        &self,
        full: &Bound,
        standings: impl IntoIterator<Item = Standing<'s>>,
    ) -> Option<Lowered> {
        let mut standings = standings.into_iter().filter(Standing::is_limited).peekable();
        standings.peek()?;
        // Where the longest reply is unknown, the call is sent without a limit as long as much is left.
        let usual = if full.tokens.is_some() { *full } else { (self.bound)(self.most)? };
        let mut lowest: Option<Lowered> = None;
        for standing in standings.filter(|standing| !standing.fits(&usual)) {
            let (tokens, bound) = self.highest(&standing)?;
            if lowest.as_ref().is_none_or(|lowest| tokens < lowest.tokens) {
                let above = (self.bound)(tokens.saturating_add(1)).unwrap_or(usual);
                let of = standing.limit(full, &above).or_else(|| standing.limit(full, &usual))?;
                lowest = Some(Lowered { bound, tokens, of });
            }
        }
        lowest
    }

    /// The highest useful output limit with which the call fits into one account.
    fn highest(&self, standing: &Standing<'_>) -> Option<(u64, Bound)> {
        let fitting = |tokens| (self.bound)(tokens).filter(|bound| standing.fits(bound));
        let mut found = (self.least, fitting(self.least)?);
        let mut above = self.most.saturating_add(1);
        while found.0.saturating_add(1) < above {
            let middle = found.0.midpoint(above);
            match fitting(middle) {
                Some(bound) => found = (middle, bound),
                None => above = middle,
            }
        }
        Some(found)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Money, Name};

    const INPUT: u64 = 100;

    /// A token costs a microdollar.
    fn call(output: u64) -> Bound {
        let cost = |tokens: u64| Some(Money { picodollars: tokens * 1_000_000 });
        Bound {
            tokens: Some(INPUT + output),
            input: INPUT,
            cost: cost(INPUT + output),
            least_cost: cost(INPUT),
        }
    }

    fn lowering(bound: &(dyn Fn(u64) -> Option<Bound> + Sync)) -> Lowering<'_> {
        Lowering { most: 4_000, least: 256, bound }
    }

    fn tokens(limit: u64, tokens: u64) -> Standing<'static> {
        let limits = Limits { tokens: Some(limit), ..Limits::none() };
        Standing { of: None, limits, used: CountedUsage { tokens, ..CountedUsage::default() } }
    }

    fn microdollars(limit: u64, of: Option<&AllowanceOwner>) -> Standing<'_> {
        let limits = Limits { cost: Some(Money { picodollars: limit * 1_000_000 }), ..Limits::none() };
        Standing { of, limits, used: CountedUsage::default() }
    }

    #[test]
    fn the_highest_fitting_limit_of_the_tightest_account_is_taken() {
        let of_model = |most| Some(call(most));
        let lowering = lowering(&of_model);
        let ann = AllowanceOwner::Agent(Name::new("Ann").unwrap());
        let all = [tokens(10_000, 9_000), microdollars(700, Some(&ann)), tokens(5_000, 0)];
        let lowered = lowering.of(&call(4_000), all).unwrap();
        assert_eq!((lowered.tokens, lowered.bound), (600, call(600)));
        assert_eq!(lowered.of.owned().0, Some(&ann));
        let lowered = lowering.of(&call(4_000), [tokens(10_000, 9_000)]).unwrap();
        let of = StopReason::Tokens { limit: 10_000, used: 9_000, next: Some(4_100), cut: None };
        assert_eq!((lowered.tokens, lowered.of), (900, of));
    }

    #[test]
    fn nothing_is_lowered_that_fits_or_would_be_useless() {
        let of_model = |most| Some(call(most));
        let lowering = lowering(&of_model);
        assert!(lowering.of(&call(4_000), [tokens(4_100, 0)]).is_none(), "it fits");
        assert!(lowering.of(&call(4_000), [tokens(355, 0)]).is_none(), "256 tokens do not fit");
        assert_eq!(lowering.of(&call(4_000), [tokens(356, 0)]).unwrap().tokens, 256);
        assert!(lowering.of(&call(4_000), [microdollars(50, None)]).is_none(), "not even the request fits");
    }

    #[test]
    fn a_request_whose_limit_is_fixed_is_not_lowered() {
        // Such as one with the limit in an extra field.
        let fixed = |_| Some(call(4_000));
        assert!(lowering(&fixed).of(&call(4_000), [tokens(2_000, 0)]).is_none());
        let refused = |_| None;
        assert!(lowering(&refused).of(&call(4_000), [tokens(2_000, 0)]).is_none());
    }

    #[test]
    fn a_reply_of_unknown_length_is_limited_once_little_is_left() {
        let unknown = Bound { tokens: None, cost: None, ..call(0) };
        let of_model = |most| Some(call(most));
        let lowering = lowering(&of_model);
        assert!(lowering.of(&unknown, [tokens(4_100, 0)]).is_none());
        assert_eq!(lowering.of(&unknown, [tokens(4_099, 0)]).unwrap().tokens, 3_999);
    }

    #[test]
    fn a_call_of_unknown_price_is_not_lowered_for_money() {
        let unpriced = |most| Some(Bound { cost: None, least_cost: None, ..call(most) });
        let full = unpriced(4_000).unwrap();
        assert!(lowering(&unpriced).of(&full, [microdollars(50, None)]).is_none());
    }
}
