//! Budgets: what model calls may take is reserved before they are sent, and settled by what they took.
//!
//! Calls that run at the same time cannot pass a limit together: each is sent only when its upper bound fits beside what
//! was spent and what the others have reserved. One that does not fit yet waits until another is settled; one that cannot
//! fit at all is refused.

mod bound;
mod reservation;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub use bound::Bound;
pub(crate) use reservation::{Account, Asked, Doubt};
pub use reservation::{FailedAttempt, Reservation};

use crate::{Halt, Money};

/// Money that several runs share, such as those of a batch. Cloning shares it.
///
/// A run draws on it by [`Log::budget`](crate::Log::budget). When it cannot cover the next call, that run is halted, and so
/// are all that were given to [`halts`](Self::halts): they can be resumed with more.
///
/// ```
/// use polylogue_core::{Budget, Money};
/// let budget = Budget::new(Money::dollars(20.0));
/// budget.spend(Money::dollars(0.25));
/// assert_eq!(budget.spent(), Money::dollars(0.25));
/// assert!(!budget.is_exhausted());
/// ```
#[derive(Clone)]
pub struct Budget(Arc<Shared>);

struct Shared {
    size: Money,
    balance: Mutex<Balance>,
    changed: watch::Sender<()>,
}

#[derive(Debug, Default)]
struct Balance {
    spent: Money,
    held: Holdings,
    /// What a call that was refused could have cost.
    refused: Option<Money>,
    halts: Vec<Halt>,
}

impl Budget {
    /// A budget of `size`.
    #[must_use]
    pub fn new(size: Money) -> Self {
        Self(Arc::new(Shared { size, balance: Mutex::default(), changed: watch::Sender::new(()) }))
    }

    /// Its size.
    #[must_use]
    pub fn size(&self) -> Money {
        self.0.size
    }

    /// What was spent, calls of unknown usage at their reservation.
    #[must_use]
    pub fn spent(&self) -> Money {
        self.balance().spent
    }

    /// Counts money that was spent without a reservation, such as in an earlier run.
    pub fn spend(&self, money: Money) {
        let mut balance = self.balance();
        balance.spent += money;
        if balance.spent >= self.size() {
            balance.halts.iter().for_each(Halt::after_step);
        }
        drop(balance);
        self.0.changed.send_replace(());
    }

    /// Whether it is spent, or could not cover a call.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        let balance = self.balance();
        balance.spent >= self.size() || balance.refused.is_some()
    }

    /// What the call could have cost that the budget did not cover.
    #[must_use]
    pub fn refused(&self) -> Option<Money> {
        self.balance().refused
    }

    /// Halts other runs, too, when it is exhausted.
    pub fn halts(&self, halt: Halt) {
        if self.is_exhausted() {
            halt.after_step();
        }
        self.balance().halts.push(halt);
    }

    fn balance(&self) -> MutexGuard<'_, Balance> {
        // Nothing is left half done by a panic elsewhere.
        self.0.balance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for changes after this call.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    /// Reserves money for one call.
    pub(crate) fn reserve(&self, bound: &Bound) -> Fit {
        let mut balance = self.balance();
        let fit = balance.held.fit(self.size(), balance.spent, bound);
        match fit {
            Fit::Now(amount) => balance.held.add(amount),
            Fit::Never => {
                balance.refused = Some(bound.least());
                balance.halts.iter().for_each(Halt::after_step);
            }
            Fit::Later => {}
        }
        fit
    }

    /// Ends a reservation: `spent` of it was spent.
    pub(crate) fn settle(&self, held: Amount, spent: Money) {
        self.balance().held.remove(held);
        self.spend(spent);
    }

    /// What is left, of which nothing is reserved.
    pub(crate) fn left(&self) -> Money {
        self.size().less(self.balance().spent)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("size", &self.size()).field("spent", &self.spent()).finish()
    }
}

/// Whether a call fits into a limit on money.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fit {
    /// It does, and reserves this.
    Now(Amount),
    /// Not beside what is reserved.
    Later,
    /// Not even alone.
    Never,
}

/// The money that one call has reserved.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Amount {
    pub(crate) cost: Money,
    /// All that was left, because there is no upper bound: no other call is sent meanwhile.
    pub(crate) whole: bool,
}

/// The money that calls in flight have reserved.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Holdings {
    cost: Money,
    /// How many calls hold some.
    calls: usize,
    whole: bool,
}

impl Holdings {
    /// Whether a call bounded by `bound` fits into `limit`, of which `spent` is gone.
    pub(crate) fn fit(&self, limit: Money, spent: Money, bound: &Bound) -> Fit {
        if spent >= limit || spent + bound.least() > limit {
            return Fit::Never;
        }
        match bound.cost {
            Some(cost) if cost == Money::default() => Fit::Now(Amount::default()),
            Some(cost) if !self.whole && spent + self.cost + cost <= limit => {
                Fit::Now(Amount { cost, whole: false })
            }
            None if self.calls == 0 => Fit::Now(Amount { cost: limit.less(spent), whole: true }),
            _ => Fit::Later,
        }
    }

    pub(crate) fn add(&mut self, amount: Amount) {
        if amount != Amount::default() {
            self.cost += amount.cost;
            self.calls += 1;
            self.whole |= amount.whole;
        }
    }

    pub(crate) fn remove(&mut self, amount: Amount) {
        if amount != Amount::default() {
            self.cost = self.cost.less(amount.cost);
            self.calls = self.calls.saturating_sub(1);
            self.whole &= !amount.whole;
        }
    }
}
