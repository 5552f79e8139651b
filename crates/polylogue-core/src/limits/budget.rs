//! Budgets: the cost of a model call is reserved before it is sent, and settled by its real usage.
//!
//! Concurrent calls cannot exceed a limit together: each is sent only when its upper bound fits together with the money
//! spent and the other reservations. A call that does not fit yet waits until another one is settled; a call that can
//! never fit is refused.

use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::bound::Bound;
use super::cancellation::Cancellation;
use super::fit::{Amount, Fit, ReservedAmount};
use crate::Money;

/// A limit on money that several runs share, such as those of a batch. Cloning shares it.
///
/// A run uses it by [`Log::budget`](crate::Log::budget). When it cannot cover the next call, that run is cancelled,
/// and so are all runs given to [`cancels`](Self::cancels). They can be resumed with a larger budget.
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
    reservations: ReservedAmount<Money>,
    /// What a refused call could have cost.
    refused: Option<Money>,
    cancellations: Vec<Cancellation>,
}

impl Budget {
    /// A budget of `size`.
    #[must_use]
    pub fn new(size: Money) -> Self {
        Self(Arc::new(Shared { size, balance: Mutex::default(), changed: watch::Sender::new(()) }))
    }

    /// The size of the budget.
    #[must_use]
    pub fn size(&self) -> Money {
        self.0.size
    }

    /// The money spent. Calls of unknown usage count with their reservation.
    #[must_use]
    pub fn spent(&self) -> Money {
        self.balance().spent
    }

    /// The money that is reserved for calls in flight.
    #[must_use]
    pub fn reserved(&self) -> Money {
        self.balance().reservations.most()
    }

    /// Adds money that was spent without a reservation, such as in an earlier run.
    pub fn spend(&self, money: Money) {
        let mut balance = self.balance();
        balance.spent += money;
        if balance.spent >= self.size() {
            balance.cancellations.iter().for_each(Cancellation::after_step);
        }
        drop(balance);
        self.0.changed.send_replace(());
    }

    /// Whether all of it is spent, or it could not cover a call.
    #[must_use]
    pub fn is_exhausted(&self) -> bool {
        let balance = self.balance();
        balance.spent >= self.size() || balance.refused.is_some()
    }

    /// What the refused call could have cost, if a call was refused.
    #[must_use]
    pub fn refused(&self) -> Option<Money> {
        self.balance().refused
    }

    /// Cancels another run, too, when the budget is exhausted.
    pub fn cancels(&self, cancellation: Cancellation) {
        if self.is_exhausted() {
            cancellation.after_step();
        }
        self.balance().cancellations.push(cancellation);
    }

    fn balance(&self) -> MutexGuard<'_, Balance> {
        // A panic elsewhere leaves nothing half done.
        self.0.balance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for changes after this call.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.0.changed.subscribe()
    }

    /// Reserves money for one call. One of unknown price is free if that is allowed.
    pub(crate) fn reserve(&self, bound: &Bound, unknown_price: bool) -> Fit<Money> {
        if unknown_price && bound.least_cost.is_none() {
            return Fit::Now(Amount::default());
        }
        let mut balance = self.balance();
        let fit = balance.reservations.fit(self.size(), balance.spent, (bound.cost, bound.least()));
        match fit {
            Fit::Now(amount) => balance.reservations.add(amount),
            Fit::Never => {
                balance.refused = Some(bound.least());
                balance.cancellations.iter().for_each(Cancellation::after_step);
            }
            Fit::Later => {}
        }
        fit
    }

    /// Ends a reservation, of which `spent` was spent.
    pub(crate) fn settle(&self, reserved: Amount<Money>, spent: Money) {
        self.balance().reservations.remove(reserved);
        self.spend(spent);
    }

    /// What is left, reservations included.
    pub(crate) fn left(&self) -> Money {
        self.size().less(self.balance().spent)
    }
}

impl fmt::Debug for Budget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Budget").field("size", &self.size()).field("spent", &self.spent()).finish()
    }
}
