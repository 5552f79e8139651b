//! The budgets that pay for one run together: a call is reserved in all of them at once, or in none.

use std::sync::{Arc, MutexGuard};
use std::time::Instant;

use futures_util::future::select_all;
use tokio::sync::watch;

use super::budget::Balance;
use super::{Admission, Bound, RunReservation, Standing};
use crate::{AllowanceOwner, Budget, CountedUsage, Interrupt, Money, Result, StopReason};

/// The budgets of one run, each once, in the order in which they were made: that is the order in which they are locked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Budgets(Vec<Budget>);

impl Budgets {
    /// Adds a budget. One that is there already counts once.
    pub(crate) fn add(&mut self, budget: Budget) {
        if let Err(at) = self.0.binary_search_by_key(&budget.number(), Budget::number) {
            self.0.insert(at, budget);
        }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Whether one of them limits time.
    pub(crate) fn is_timed(&self) -> bool {
        self.0.iter().any(|budget| budget.limits().time_ms.is_some())
    }

    /// The first limit on time that is reached.
    pub(crate) fn time_reached(&self) -> Option<StopReason> {
        self.0.iter().find_map(Budget::time_reached)
    }

    /// Their limits on time with what of them is used, in milliseconds.
    pub(crate) fn times(&self) -> impl Iterator<Item = (Option<u64>, u64)> {
        self.0.iter().map(|budget| (budget.limits().time_ms, budget.used_ms()))
    }

    /// Whether one of them still refuses what was refused for `reason`.
    pub(crate) fn holds(&self, reason: &StopReason) -> bool {
        self.0.iter().any(|budget| budget.still_refuses(reason))
    }

    /// All of them, locked at once.
    pub(crate) fn lock(&self) -> LockedBudgets<'_> {
        LockedBudgets { of: &self.0, balances: self.0.iter().map(Budget::balance).collect() }
    }

    /// That of `owner`.
    pub(crate) fn named(&self, owner: &AllowanceOwner) -> Option<&Budget> {
        self.0.iter().find(|budget| budget.owner() == owner)
    }

    /// Ends a reservation, of which `used` was used.
    pub(crate) fn settle(&self, reserved: Vec<RunReservation>, used: CountedUsage) {
        self.0.iter().zip(reserved).for_each(|(budget, hold)| budget.settle(hold, used));
    }

    /// Adds what was used without a reservation.
    pub(crate) fn spend(&self, used: CountedUsage) {
        self.0.iter().for_each(|budget| budget.spend(used));
    }

    /// Adds what calls in flight used at most when a process died.
    pub(crate) fn doubt(&self, most: CountedUsage) {
        self.0.iter().for_each(|budget| budget.doubt(most));
    }

    /// The money and the tokens that a lost call can have used, by what is left in all of them, where they are limited.
    pub(crate) fn left(&self) -> (Option<Money>, Option<u64>) {
        let left = || self.0.iter().map(Budget::left);
        (left().filter_map(|left| left.0).min(), left().filter_map(|left| left.1).min())
    }

    /// What [`changed`] waits with. Subscribe before you check whether a call fits, so that no change is missed.
    pub(crate) fn changes(&self) -> Vec<watch::Receiver<()>> {
        self.0.iter().map(Budget::changes).collect()
    }
}

/// The budgets of a run, locked: what is left in them stays so until a call is reserved.
pub(crate) struct LockedBudgets<'a> {
    of: &'a [Budget],
    balances: Vec<MutexGuard<'a, Balance>>,
}

impl LockedBudgets<'_> {
    /// The limits of all of them, with what is used.
    pub(crate) fn standings(&self) -> impl Iterator<Item = Standing<'_>> {
        self.of.iter().zip(&self.balances).map(|(budget, balance)| budget.standing(balance))
    }

    /// Whether `reason` is a limit of a budget that other processes share, and its store was not asked since `since`: others may have raised
    /// it meanwhile. Then the store is asked again, and the budget changes when it has answered.
    ///
    /// # Errors
    /// Why the store cannot be reached.
    pub(crate) fn asks_again(&mut self, reason: &StopReason, since: Instant) -> Result<bool> {
        for (budget, balance) in self.of.iter().zip(&mut self.balances) {
            let is_of = reason.owned().0 == Some(budget.owner());
            if is_of && balance.piece.as_mut().is_some_and(|piece| piece.asks_again(since)) {
                Budget::failure(balance).map_or(Ok(()), Err)?;
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Reserves a call in all of them; `None` if another call must be settled before, or the store of a budget is asked whether its limits were
    /// raised `since` the call was to be reserved.
    ///
    /// # Errors
    /// The limit that can never cover the call, with the name of its budget; why a budget that other processes share cannot be reached.
    pub(crate) fn reserve(
        &mut self,
        call: (&Bound, u64),
        allow_unknown_price: bool,
        unpriced: Option<&Arc<str>>,
        since: Instant,
    ) -> Result<Option<Vec<RunReservation>>> {
        let mut held = Vec::with_capacity(self.of.len());
        // All locks at once: a reservation that is taken back would wake calls that wait for it, this one among them.
        for (budget, balance) in self.of.iter().zip(&mut self.balances) {
            match budget.admit(balance, call, allow_unknown_price, unpriced, since) {
                Admission::Now(hold) => held.push(hold),
                Admission::Later => Budget::failure(balance).map_or(Ok(()), Err)?,
                Admission::Never(reason) => return Err(Interrupt::Limit(reason).into()),
            }
        }
        if held.len() < self.of.len() {
            return Ok(None);
        }
        self.balances.iter_mut().zip(&held).for_each(|(balance, hold)| balance.reserved.add(*hold));
        Ok(Some(held))
    }
}

/// Waits until one of the budgets has changed; without budgets forever.
pub(crate) async fn changed(changes: &mut [watch::Receiver<()>]) {
    let all: Vec<_> = changes.iter_mut().map(|change| Box::pin(change.changed())).collect();
    if all.is_empty() {
        return std::future::pending().await;
    }
    // The senders live as long as the budgets.
    let _ = select_all(all).await;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{AllowanceOwner, Error, TotalUsage, UncertainUsage};

    fn call(dollars: f64) -> Bound {
        let cost = Some(Money::dollars(dollars));
        Bound { input: 1, tokens: Some(1), cost, least_cost: cost }
    }

    fn list(budgets: &[Budget]) -> Budgets {
        let mut all = Budgets::default();
        budgets.iter().for_each(|budget| all.add(budget.clone()));
        all
    }

    #[test]
    fn all_are_charged_and_the_one_that_refuses_is_named() {
        let (process, token) =
            (Budget::new("process", Money::dollars(1.0)), Budget::new("token", Money::dollars(0.5)));
        // In any order, and twice.
        let all = list(&[token.clone(), process.clone(), token.clone()]);
        let held = all.lock().reserve((&call(0.4), 1), false, None, Instant::now()).unwrap().unwrap();
        assert_eq!((process.reserved(), token.reserved()), (Money::dollars(0.4), Money::dollars(0.4)));
        // It fits into one of them now, and into both later: nothing of it is reserved.
        assert!(all.lock().reserve((&call(0.3), 1), false, None, Instant::now()).unwrap().is_none());
        assert_eq!((process.reserved(), token.reserved()), (Money::dollars(0.4), Money::dollars(0.4)));
        all.settle(held, CountedUsage { calls: 1, tokens: 1, cost: Money::dollars(0.2) });
        assert_eq!((process.used().cost, token.used().cost), (Money::dollars(0.2), Money::dollars(0.2)));
        assert_eq!((process.reserved(), token.reserved()), (Money::default(), Money::default()));
        assert_eq!(all.left().0, Some(Money::dollars(0.3)));
        let refused = all.lock().reserve((&call(0.4), 1), false, None, Instant::now());
        let Err(Error::Interrupt(Interrupt::Limit(StopReason::Allowance { of, .. }))) = refused else {
            panic!("it does not fit into the budget of the token")
        };
        assert_eq!(of, AllowanceOwner::Shared("token".into()));
        assert!(token.is_exhausted() && !process.is_exhausted());
    }

    #[test]
    fn what_was_in_flight_at_a_death_counts_no_more_than_is_left_whenever_it_is_counted() {
        let budget = Budget::new("batch", Money::dollars(1.0));
        budget.spend(Money::dollars(0.3));
        budget.doubt(Money::dollars(0.9).into());
        // Of another log.
        budget.spend(Money::dollars(0.4));
        assert_eq!((budget.used().cost, budget.left().0), (Money::dollars(1.0), Some(Money::default())));
        assert!(budget.is_exhausted());
        budget.spend(Money::dollars(0.4));
        assert_eq!(budget.used().cost, Money::dollars(1.1), "what is certain counts in any case");
    }

    #[test]
    fn calls_of_unknown_usage_of_runs_that_have_ended_count_no_more_than_is_left() {
        let budget = Budget::new("token", Money::dollars(1.0));
        let uncertain = UncertainUsage { calls: 1, cost: Money::dollars(0.8), ..UncertainUsage::default() };
        let usage = TotalUsage { calls: 2, cost: Money::dollars(0.4), uncertain, ..TotalUsage::default() };
        budget.count_usage(&usage);
        assert_eq!((budget.used().calls, budget.used().cost), (3, Money::dollars(1.0)));
        budget.count_usage(&TotalUsage { cost: Money::dollars(0.5), ..TotalUsage::default() });
        assert_eq!(budget.used().cost, Money::dollars(1.0), "it may be what was left");
    }

    #[test]
    fn a_budget_that_begins_with_a_process_neither_counts_nor_bounds_lost_calls() {
        let budget = Budget::new("process", Money::dollars(1.0));
        let all = list(&[budget.without_lost_calls()]);
        all.doubt(Money::dollars(0.9).into());
        assert_eq!((budget.used().cost, all.left()), (Money::default(), (None, None)));
        all.spend(Money::dollars(0.3).into());
        assert_eq!(budget.used().cost, Money::dollars(0.3), "what is sent from now on counts");
        let batch = list(&[budget.without_lost_calls(), Budget::new("batch", Money::dollars(0.5))]);
        assert_eq!(batch.left().0, Some(Money::dollars(0.5)));
    }

    #[tokio::test]
    async fn a_change_of_any_of_them_is_noticed() {
        let (one, two) = (Budget::new("a", Money::dollars(1.0)), Budget::new("b", Money::dollars(1.0)));
        let mut changes = list(&[one, two.clone()]).changes();
        two.spend(Money::dollars(0.1));
        changed(&mut changes).await;
    }
}
