//! Budgets that many processes share: each process draws pieces of one, from which its calls are paid.
//!
//! A budget knows what this process has drawn, and says what it needs; a store of budgets, such as that of Postgres, draws and
//! reports for it. What was drawn counts as used for all others, so that no number of processes exceeds the limits together.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::budget::Balance;
use super::piece::{BudgetDemand, BudgetStanding, Piece};
use super::{Allowance, CountedUsage};
use crate::{Budget, LogId, StoreError};

impl Budget {
    /// Creates a budget that many processes share, as its store has it. Its maker must [report](Self::demand) what this process
    /// needs and uses; until then no call is covered.
    pub fn pooled(name: impl Into<Arc<str>>, standing: BudgetStanding) -> Self {
        let piece = Piece {
            standing: BudgetStanding { drawn: CountedUsage::default(), ..standing },
            confirmed: Instant::now(),
            unreported: CountedUsage::default(),
            logs: BTreeMap::new(),
            wants: None,
            is_doubtful: false,
            asked: watch::Sender::new(()),
            failure: None,
        };
        let balance = Balance::of_piece(standing.spent, piece);
        Self::with_balance(name, standing.limits, || Duration::ZERO, balance)
    }

    /// Returns the same budget, for the calls of one log. What they use is reported when the store [knows](Self::knows) the log.
    #[must_use]
    pub fn for_log(&self, id: &LogId) -> Self {
        let mut balance = self.balance();
        let log = balance.piece.as_mut().map(|piece| {
            let known = piece.logs.get(id).and_then(|part| part.handle.upgrade());
            known.unwrap_or_else(|| {
                let log = Arc::new(id.clone());
                let part = piece.logs.entry(id.clone()).or_default();
                (part.handle, part.is_known) = (Arc::downgrade(&log), false);
                log
            })
        });
        drop(balance);
        Self { shared: Arc::clone(&self.shared), log, skips_lost: self.skips_lost }
    }

    /// Says that the store has counted all that the log of this budget had used before, and that this process runs it. The budget had these
    /// `limits` then, and `spent` was used of it: others may have changed its limits while this process had nothing to report.
    pub fn knows(&self, limits: Allowance, spent: CountedUsage) {
        let mut balance = self.balance();
        let Balance { used, piece, refused, .. } = &mut *balance;
        let Some(piece) = piece else { return };
        if let Some(part) = self.log.as_ref().and_then(|log| piece.logs.get_mut(&**log)) {
            let counted = std::mem::take(&mut part.unreported);
            piece.unreported = piece.unreported.less(counted);
            part.is_known = true;
        }
        if piece.standing.limits != limits {
            *refused = None;
        }
        (piece.standing.limits, piece.standing.spent) = (limits, spent);
        *used = spent + piece.unreported;
    }

    /// Returns what this process reports and wants now; `None` if that is nothing. With `renews`, also if it only has
    /// something. What it wanted is forgotten: a call that is not covered afterwards asks again. Until it is
    /// [settled](Self::settled), only what is reserved is drawn.
    pub fn demand(&self, renews: bool) -> Option<BudgetDemand> {
        let mut balance = self.balance();
        let reserved = balance.reserved.counted();
        let piece = balance.piece.as_mut()?;
        let has_any = !piece.logs.is_empty() || piece.standing.drawn != CountedUsage::default();
        if piece.is_idle(reserved) && !(renews && has_any) {
            return None;
        }
        let mut used = Vec::new();
        piece.logs.retain(|log, part| {
            let is_over = part.handle.strong_count() == 0;
            if part.is_known && (is_over || part.unreported != CountedUsage::default()) {
                used.push((log.clone(), std::mem::take(&mut part.unreported), is_over));
            }
            !is_over
        });
        let unknown = piece.logs.values().map(|part| part.unreported);
        piece.unreported = unknown.fold(CountedUsage::default(), |sum, used| sum + used);
        (piece.standing.drawn, piece.is_doubtful) = (reserved, false);
        Some(BudgetDemand { used, reserved, wants: piece.wants.take() })
    }

    /// Takes in what the store has after a [demand](Self::demand) that was made at `sent`. Calls that wait look again.
    pub fn settled(&self, standing: BudgetStanding, sent: Instant) {
        let mut balance = self.balance();
        let Balance { used, piece, refused, .. } = &mut *balance;
        let Some(piece) = piece else { return };
        if piece.standing.limits != standing.limits {
            *refused = None;
        }
        (piece.standing, piece.confirmed, piece.failure) = (standing, sent, None);
        *used = standing.spent + piece.unreported;
        drop(balance);
        self.shared.changed.send_replace(());
    }

    /// Returns whether the budget pays for a log of this process, or has drawn anything.
    pub fn is_in_use(&self) -> bool {
        self.balance()
            .piece
            .as_ref()
            .is_some_and(|piece| !piece.logs.is_empty() || piece.standing.drawn != CountedUsage::default())
    }

    /// Says why the store does not answer: calls that wait for it fail.
    pub fn failed(&self, error: StoreError) {
        self.balance().piece.iter_mut().for_each(|piece| piece.failure = Some(error.clone()));
        self.shared.changed.send_replace(());
    }

    /// Changes when a call is not covered by what is drawn.
    pub fn asked(&self) -> Option<watch::Receiver<()>> {
        self.balance().piece.as_ref().map(|piece| piece.asked.subscribe())
    }
}

#[cfg(test)]
mod tests {
    use super::super::Bound;
    use super::super::budgets::Budgets;
    use super::*;
    use crate::{Money, StopReason};

    fn dollars(amount: f64) -> CountedUsage {
        Money::dollars(amount).into()
    }

    fn standing(spent: f64, drawn: f64) -> BudgetStanding {
        let limits = Money::dollars(1.0).into();
        BudgetStanding {
            limits,
            spent: dollars(spent),
            drawn: dollars(drawn),
            others: CountedUsage::default(),
        }
    }

    fn bound(amount: f64) -> Bound {
        let cost = Some(Money::dollars(amount));
        Bound { input: 1, tokens: Some(1), cost, least_cost: cost }
    }

    #[test]
    fn calls_are_paid_from_what_is_drawn_and_ask_for_more() {
        let begun = Instant::now();
        let budget = Budget::pooled("house", standing(0.0, 0.0));
        let log = LogId::new("a").unwrap();
        let mut all = Budgets::default();
        let of_log = budget.for_log(&log);
        all.add(of_log.clone());
        of_log.knows(Money::dollars(1.0).into(), dollars(0.0));
        let reserve = |amount| all.lock().reserve((&bound(amount), 1), false, None, begun);
        assert!(reserve(0.2).unwrap().is_none(), "nothing is drawn");
        let demand = budget.demand(false).unwrap();
        assert_eq!(demand.wants.unwrap().least.cost, Money::dollars(0.2));
        budget.settled(standing(0.0, 0.3), Instant::now());
        let held = reserve(0.2).unwrap().unwrap();
        assert!(reserve(0.2).unwrap().is_none(), "the rest is too small");
        assert!(reserve(1.1).is_err(), "no draw covers it");
        all.settle(held, CountedUsage { calls: 1, tokens: 5, cost: Money::dollars(0.1) });
        // What was used is no longer drawn, whether it is reported or not.
        assert!(reserve(0.25).unwrap().is_none());
        let demand = budget.demand(false).unwrap();
        assert_eq!(
            demand.used,
            [(log, CountedUsage { calls: 1, tokens: 5, cost: Money::dollars(0.1) }, false)]
        );
        assert_eq!(demand.reserved, CountedUsage::default());
        // Until the store has answered, nothing can be reserved.
        assert!(reserve(0.01).unwrap().is_none());
        budget.settled(standing(0.1, 0.9), Instant::now());
        assert!(reserve(0.9).unwrap().is_some());
        assert_eq!(budget.used().cost, Money::dollars(0.1));
    }

    #[test]
    fn a_log_that_is_closed_is_reported_once() {
        let budget = Budget::pooled("house", standing(0.0, 0.0));
        let of_log = budget.for_log(&LogId::new("a").unwrap());
        assert!(budget.demand(false).is_none() && budget.demand(true).is_some());
        of_log.spend(Money::dollars(0.1));
        of_log.knows(Money::dollars(1.0).into(), dollars(0.1));
        assert_eq!(budget.used().cost, Money::dollars(0.1), "the store has counted it");
        of_log.spend(Money::dollars(0.2));
        drop(of_log);
        let demand = budget.demand(false).unwrap();
        assert_eq!(
            demand.used.iter().map(|(_, used, over)| (used.cost, *over)).collect::<Vec<_>>(),
            [(Money::dollars(0.2), true)]
        );
        budget.settled(standing(0.3, 0.0), Instant::now());
        assert!(budget.demand(true).is_none(), "there is nothing left to renew");
    }

    #[test]
    fn a_log_that_is_opened_has_the_limits_that_others_have_raised() {
        let begun = Instant::now();
        let budget = Budget::pooled("house", standing(0.9, 0.0));
        let of_log = budget.for_log(&LogId::new("a").unwrap());
        let mut all = Budgets::default();
        all.add(of_log.clone());
        let reserve = || all.lock().reserve((&bound(0.2), 1), false, None, begun);
        assert!(reserve().is_err() && budget.is_exhausted(), "too little is left");
        of_log.knows(Money::dollars(2.0).into(), dollars(0.9));
        assert!(!budget.is_exhausted(), "the refusal was of the lower limit");
        assert!(reserve().unwrap().is_none(), "it is to be drawn");
        assert!(budget.demand(false).unwrap().wants.is_some());
    }

    #[test]
    fn a_limit_that_others_may_have_raised_is_read_again_before_it_refuses_a_call() {
        let budget = Budget::pooled("house", standing(0.9, 0.0));
        let (of_log, asked) = (budget.for_log(&LogId::new("a").unwrap()), budget.asked().unwrap());
        of_log.knows(Money::dollars(1.0).into(), dollars(0.9));
        let mut all = Budgets::default();
        all.add(of_log);
        let seconds = |seconds| Instant::now() + Duration::from_secs(seconds);
        let (first, second, third) = (seconds(10), seconds(20), seconds(30));
        let reserve = |since| all.lock().reserve((&bound(0.2), 1), false, None, since);
        assert!(reserve(first).unwrap().is_none() && asked.has_changed().unwrap(), "it is asked");
        assert!(!budget.is_exhausted(), "it is not refused yet");
        assert!(budget.demand(false).is_some_and(|demand| demand.wants.is_none()));
        assert!(budget.demand(false).is_none(), "it is asked once");
        // What was asked before this call says nothing.
        budget.settled(standing(0.9, 0.0), first);
        assert!(reserve(second).unwrap().is_none());
        assert!(reserve(first).is_err() && budget.is_exhausted());
        let raised = BudgetStanding { limits: Money::dollars(2.0).into(), ..standing(0.9, 0.0) };
        budget.settled(raised, second);
        assert!(reserve(second).unwrap().is_none(), "it is to be drawn");
        assert!(budget.demand(false).unwrap().wants.is_some());
        // A reply is shortened by no limit that is not read again either.
        let limit = Box::new(StopReason::Calls { limit: 1 });
        let reason = StopReason::Allowance { of: budget.owner().clone(), limit };
        assert!(!all.lock().asks_again(&reason, second).unwrap());
        assert!(all.lock().asks_again(&reason, third).unwrap());
        budget.failed(StoreError::Io { place: "the database".into(), why: "it is gone".into() });
        assert!(all.lock().asks_again(&reason, third).is_err());
    }
}
