//! Budgets: limits that several runs share. A model call is reserved before it is sent, and settled by its real usage.
//!
//! Concurrent calls cannot exceed a limit together: each is sent only when its upper bound fits together with what was
//! used and the other reservations. A call that does not fit yet waits until another one is settled; a call that can
//! never fit is refused.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::bound::Bound;
use super::busy_time::BusyTime;
use super::fit::Quantity;
use super::piece::Piece;
use super::{Admission, Allowance, CountedUsage, Limits, Reserved, RunReservation, RunUsage, Standing};
use crate::{AllowanceOwner, LogId, Money, StopReason, StoreError, TotalUsage};

/// Limits on calls, tokens, money and time that several runs share, such as those of a batch or a process. Cloning shares
/// it.
///
/// A run uses it by [`Log::budget`](crate::Log::budget), and can have several: each call is reserved in all of them at
/// once. When one cannot cover the next call of a run, that run ends with [`StopReason::Allowance`], which has the name of
/// that budget. It continues under a larger budget once it is [reopened](crate::Log::reopen).
///
/// ```
/// use polylogue_core::{Allowance, Budget, Money};
/// let budget = Budget::new("batch", Money::dollars(20.0));
/// budget.spend(Money::dollars(0.25));
/// assert_eq!(budget.used().cost, Money::dollars(0.25));
/// assert!(!budget.is_exhausted());
/// let calls = Budget::new("process", Allowance { calls: Some(1_000), ..Allowance::default() });
/// assert_eq!(calls.limits().calls, Some(1_000));
/// ```
#[derive(Clone, derive_more::Debug)]
#[debug("Budget {{ of: {:?}, limits: {:?}, used: {:?} }}", self.owner(), self.limits(), self.used())]
pub struct Budget {
    pub(super) shared: Arc<Shared>,
    /// The log whose calls it pays for, if that is counted.
    pub(super) log: Option<Arc<LogId>>,
    /// Whether it does not count calls of earlier processes.
    pub(super) skips_lost: bool,
}

pub(super) struct Shared {
    /// Budgets are locked in the order of their numbers.
    number: u64,
    owner: AllowanceOwner,
    allowance: Allowance,
    elapsed: Box<dyn Fn() -> Duration + Send + Sync>,
    balance: Mutex<Balance>,
    pub(super) changed: watch::Sender<()>,
}

#[derive(Default)]
pub(super) struct Balance {
    pub(super) used: CountedUsage,
    /// What calls used at most that were in flight when processes died.
    doubt: CountedUsage,
    /// In earlier processes.
    busy: BusyTime,
    pub(super) reserved: Reserved,
    /// Why a call was refused, with whose limit it is.
    pub(super) refused: Option<StopReason>,
    /// What this process has of a budget that others share.
    pub(super) piece: Option<Piece>,
}

impl Balance {
    /// Of a budget of which this process has a piece.
    pub(super) fn of_piece(used: CountedUsage, piece: Piece) -> Self {
        Self { used, piece: Some(piece), ..Self::default() }
    }

    /// What counts toward `limits`. Calls in flight at the same time fitted into these together: they count no more than is left.
    fn counted(&self, limits: &Allowance) -> CountedUsage {
        let Self { used, doubt, .. } = self;
        CountedUsage {
            calls: with_doubt(used.calls, doubt.calls, limits.calls),
            tokens: with_doubt(used.tokens, doubt.tokens, limits.tokens),
            cost: with_doubt(used.cost, doubt.cost, limits.cost),
        }
    }

    /// Counts what was used by a log.
    fn count(&mut self, log: Option<&Arc<LogId>>, used: CountedUsage) {
        self.used += used;
        self.piece.iter_mut().for_each(|piece| piece.count(log, used));
    }
}

impl Budget {
    /// Creates a budget of the runs that are called `name` together, such as `batch`. Its time begins now.
    pub fn new(name: impl Into<Arc<str>>, most: impl Into<Allowance>) -> Self {
        let since = Instant::now();
        Self::timed(name, most, move || since.elapsed())
    }

    /// Creates a budget like [`new`](Self::new), with another clock, which returns the time since its beginning. For tests.
    pub fn timed(
        name: impl Into<Arc<str>>,
        most: impl Into<Allowance>,
        elapsed: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Self {
        Self::with_balance(name, most, elapsed, Balance::default())
    }

    pub(super) fn with_balance(
        name: impl Into<Arc<str>>,
        most: impl Into<Allowance>,
        elapsed: impl Fn() -> Duration + Send + Sync + 'static,
        balance: Balance,
    ) -> Self {
        static MADE: AtomicU64 = AtomicU64::new(0);
        let shared = Arc::new(Shared {
            number: MADE.fetch_add(1, Ordering::Relaxed),
            owner: AllowanceOwner::Shared(name.into()),
            allowance: most.into(),
            elapsed: Box::new(elapsed),
            balance: Mutex::new(balance),
            changed: watch::Sender::new(()),
        });
        Self { shared, log: None, skips_lost: false }
    }

    /// Returns the same budget, for runs that earlier processes may have begun, which it has not paid for: calls that may have been in
    /// flight when these died do not count. For a budget that begins with the process.
    #[must_use]
    pub fn without_lost_calls(&self) -> Self {
        Self { skips_lost: true, ..self.clone() }
    }

    /// Returns the owner of the limits, as in [`StopReason::Allowance`].
    pub fn owner(&self) -> &AllowanceOwner {
        &self.shared.owner
    }

    /// Returns the limits of the budget.
    pub fn limits(&self) -> Allowance {
        self.allowance(&self.balance())
    }

    fn allowance(&self, balance: &Balance) -> Allowance {
        balance.piece.as_ref().map_or(self.shared.allowance, Piece::limits)
    }

    /// Returns the usage so far. Calls of unknown usage count with their reservation.
    pub fn used(&self) -> CountedUsage {
        let balance = self.balance();
        balance.counted(&self.allowance(&balance))
    }

    /// Returns the time that counts, in milliseconds: the time since the budget was created, and the time in earlier
    /// processes during which a [counted](Self::count_events) run was under way.
    pub fn used_ms(&self) -> u64 {
        self.time_of(&self.balance())
    }

    fn time_of(&self, balance: &Balance) -> u64 {
        let elapsed = u64::try_from((self.shared.elapsed)().as_millis()).unwrap_or(u64::MAX);
        balance.busy.total_ms().saturating_add(elapsed)
    }

    /// Returns the money that is reserved for calls in flight.
    pub fn reserved(&self) -> Money {
        self.balance().reserved.money()
    }

    /// Adds what was used without a reservation, such as in an earlier run.
    pub fn spend(&self, used: impl Into<CountedUsage>) {
        self.balance().count(self.log.as_ref(), used.into());
        self.shared.changed.send_replace(());
    }

    /// Adds what a run used that has ended, such as in an earlier process. Calls whose usage is not known fitted into the limits together: they
    /// count no more than is left.
    pub fn count_usage(&self, usage: &TotalUsage) {
        let uncertain = TotalUsage { uncertain: usage.uncertain, ..TotalUsage::default() }.counted();
        self.spend(usage.counted().less(uncertain));
        self.doubt(uncertain);
    }

    /// Adds what calls used at most that were in flight when a process died. Where processes share the budget, its store replaces that by
    /// what it counts of the log.
    pub(crate) fn doubt(&self, most: CountedUsage) {
        if self.skips_lost {
            return;
        }
        let mut balance = self.balance();
        if balance.piece.is_some() {
            balance.count(self.log.as_ref(), most);
        } else {
            balance.doubt += most;
        }
        drop(balance);
        self.shared.changed.send_replace(());
    }

    /// Adds a time of the day, in milliseconds, in which a run was under way in an earlier process.
    pub(crate) fn was_busy(&self, from: u64, to: u64) {
        self.balance().busy.add(from, to);
    }

    /// Returns whether nothing of a limit is left, or the budget refused a call.
    pub fn is_exhausted(&self) -> bool {
        self.reached().is_some()
    }

    /// Returns the limit that is reached: the one that refused a call, or one of which nothing is left.
    pub fn reached(&self) -> Option<StopReason> {
        let balance = self.balance();
        balance.refused.clone().or_else(|| self.exhausted(&balance))
    }

    fn exhausted(&self, balance: &Balance) -> Option<StopReason> {
        let limits = self.allowance(balance).limits();
        let used = balance.counted(&self.allowance(balance));
        let calls = limits.calls.filter(|limit| used.calls >= *limit);
        let calls = calls.map(|limit| StopReason::Calls { limit });
        calls.or_else(|| limits.met(self.usage(balance, None))).map(|reason| self.refusal(reason))
    }

    /// The limit on time, if it is reached.
    pub(crate) fn time_reached(&self) -> Option<StopReason> {
        let reason = self.limits().limits().time_reached(self.used_ms())?;
        Some(self.refusal(reason))
    }

    /// Returns whether the budget still refuses a call that was refused for `reason`. It does not if its limit is higher
    /// by now or less of it is used, such as after the daily renewal. `false` if `reason` is the limit of another owner.
    pub fn still_refuses(&self, reason: &StopReason) -> bool {
        let StopReason::Allowance { of, limit } = reason else { return false };
        let used = self.used();
        let is_used = match &**limit {
            StopReason::Cost { spent, .. } => used.cost >= *spent,
            StopReason::Tokens { used: before, .. } => used.tokens >= *before,
            StopReason::Calls { limit } => used.calls >= *limit,
            StopReason::Time { limit_ms, .. } => self.used_ms() >= *limit_ms,
            _ => true,
        };
        *of == self.shared.owner && self.limits().limits().holds(limit) && is_used
    }

    /// Records that a call was refused for `reason`, such as in an earlier process under the same limits, so that
    /// [`reached`](Self::reached) returns it.
    pub fn mark_refused(&self, reason: &StopReason) {
        self.balance().refused.get_or_insert_with(|| reason.clone());
    }

    fn refusal(&self, reason: StopReason) -> StopReason {
        StopReason::Allowance { of: self.shared.owner.clone(), limit: Box::new(reason) }
    }

    fn usage<'a>(&self, balance: &Balance, unpriced: Option<&'a Arc<str>>) -> RunUsage<'a> {
        let counted = balance.counted(&self.allowance(balance));
        RunUsage { counted, time_ms: self.time_of(balance), unpriced }
    }

    pub(super) fn number(&self) -> u64 {
        self.shared.number
    }

    pub(super) fn balance(&self) -> MutexGuard<'_, Balance> {
        // A panic elsewhere leaves nothing half done.
        self.shared.balance.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for changes after this call.
    pub(crate) fn changes(&self) -> watch::Receiver<()> {
        self.shared.changed.subscribe()
    }

    /// Whether a call fits. One of unknown price is free if that is allowed; `unpriced` is a model that the run has used at an
    /// unknown price. What other processes may have changed `since` the call was to be reserved is read again before it is refused.
    pub(super) fn admit(
        &self,
        balance: &mut Balance,
        call: (&Bound, u64),
        allow_unknown_price: bool,
        unpriced: Option<&Arc<str>>,
        since: Instant,
    ) -> Admission {
        let limits = Limits { allow_unknown_price, ..self.allowance(balance).limits() };
        match limits.admit(self.usage(balance, unpriced), &balance.reserved, 0, call) {
            Admission::Never(_) if balance.piece.as_mut().is_some_and(|piece| piece.asks_again(since)) => {
                Admission::Later
            }
            Admission::Never(reason) => {
                let reason = self.refusal(reason);
                balance.refused.get_or_insert_with(|| reason.clone());
                Admission::Never(reason)
            }
            Admission::Now(hold) => {
                let (piece, reserved) = (balance.piece.as_mut(), &balance.reserved);
                let is_covered = piece.is_none_or(|piece| piece.covers(reserved, hold));
                if is_covered { Admission::Now(hold) } else { Admission::Later }
            }
            Admission::Later => Admission::Later,
        }
    }

    /// Its limits with what is used.
    pub(super) fn standing(&self, balance: &Balance) -> Standing<'_> {
        let (of, allowance) = (Some(self.owner()), self.allowance(balance));
        Standing { of, limits: allowance.limits(), used: balance.counted(&allowance) }
    }

    /// Why nothing can be drawn of a budget that other processes share.
    pub(super) fn failure(balance: &Balance) -> Option<StoreError> {
        balance.piece.as_ref().and_then(|piece| piece.failure.clone())
    }

    /// Ends a reservation, of which `used` was used.
    pub(crate) fn settle(&self, reserved: RunReservation, used: CountedUsage) {
        let mut balance = self.balance();
        // Together: between the two, another run could reserve what was just used.
        balance.reserved.remove(reserved);
        balance.count(self.log.as_ref(), used);
        drop(balance);
        self.shared.changed.send_replace(());
    }

    /// The money and the tokens that a lost call can have used: all that is left, reservations included, where they are limited and it was
    /// paid from here.
    pub(crate) fn left(&self) -> (Option<Money>, Option<u64>) {
        if self.skips_lost {
            return (None, None);
        }
        let (Allowance { cost, tokens, .. }, used) = (self.limits(), self.used());
        (
            cost.map(|limit| limit.saturating_sub(used.cost)),
            tokens.map(|limit| limit.saturating_sub(used.tokens)),
        )
    }
}

/// `used` with what is in `doubt`, which counts up to `limit`.
fn with_doubt<Q: Quantity>(used: Q, doubt: Q, limit: Option<Q>) -> Q {
    let all = used.plus(doubt);
    match limit {
        Some(limit) if all > limit && used > limit => used,
        Some(limit) if all > limit => limit,
        _ => all,
    }
}
