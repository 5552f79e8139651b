//! Budgets: what model calls may take is reserved before they are sent, and settled by what they took.
//!
//! Calls that run at the same time cannot pass a limit together: each is sent only when its upper bound fits beside what
//! was spent and what the others have reserved. One that does not fit yet waits until another is settled; one that cannot
//! fit at all is refused.

mod bound;
mod fit;
mod meter;
mod reservation;

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

pub use bound::Bound;
pub(crate) use fit::{Amount, Fit, Holdings};
pub use meter::Meter;
pub(crate) use reservation::{Account, Asked, Doubt};
pub use reservation::{FailedAttempt, Reservation};

use crate::{Cancellation, Money};

/// Money that several runs share, such as those of a batch. Cloning shares it.
///
/// A run draws on it by [`Log::budget`](crate::Log::budget). When it cannot cover the next call, that run is halted, and so
/// are all that were given to [`halts`](Self::cancels): they can be resumed with more.
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
    held: Holdings<Money>,
    /// What a call that was refused could have cost.
    refused: Option<Money>,
    halts: Vec<Cancellation>,
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
            balance.halts.iter().for_each(Cancellation::after_step);
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
    pub fn cancels(&self, halt: Cancellation) {
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
    pub(crate) fn reserve(&self, bound: &Bound) -> Fit<Money> {
        let mut balance = self.balance();
        let fit = balance.held.fit(self.size(), balance.spent, (bound.cost, bound.least()));
        match fit {
            Fit::Now(amount) => balance.held.add(amount),
            Fit::Never => {
                balance.refused = Some(bound.least());
                balance.halts.iter().for_each(Cancellation::after_step);
            }
            Fit::Later => {}
        }
        fit
    }

    /// Ends a reservation: `spent` of it was spent.
    pub(crate) fn settle(&self, held: Amount<Money>, spent: Money) {
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
