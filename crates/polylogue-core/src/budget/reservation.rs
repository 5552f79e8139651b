//! Reservations: the right to send one model call, and what becomes of it.

use std::fmt;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::select;
use tokio::sync::watch;

use super::{Amount, Bound, Fit};
use crate::event_buffer::Tally;
use crate::limits::{self, Admission, Reserved};
use crate::{
    Body, Charge, ChargeReason, Error, Log, ModelError, ModelErrorKind, Money, Name, Path, Reply, Result,
    StopReason, Usage,
};

/// What the calls of one run have reserved, and what is to be charged with the next write.
pub(crate) struct Account {
    book: Mutex<Book>,
    changed: watch::Sender<()>,
}

#[derive(Default)]
struct Book {
    reserved: Reserved,
    /// Charges that are not in the log yet.
    pending: Vec<(Path, Body)>,
    /// The limit that refused a call of this run.
    refused: Option<StopReason>,
    /// How many open turns may have had a call in flight when an earlier process died, and are not looked at yet.
    doubts: usize,
    /// The model calls of the log before the outermost call of an agent began.
    before: u64,
}

impl Default for Account {
    fn default() -> Self {
        Self { book: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

impl Account {
    fn book(&self) -> MutexGuard<'_, Book> {
        // Nothing is left half done by a panic elsewhere.
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes out the charges that are to be written.
    pub(crate) fn take_pending(&self) -> Vec<(Path, Body)> {
        std::mem::take(&mut self.book().pending)
    }

    /// Whether there are charges that are not in the log yet.
    pub(crate) fn has_pending(&self) -> bool {
        !self.book().pending.is_empty()
    }

    /// Begins a run: what was refused before may fit now, and all model calls of the log are its own.
    pub(crate) fn begin(&self) {
        let mut book = self.book();
        book.refused = None;
        book.before = 0;
    }

    /// Begins the outermost call of an agent, after `before` model calls of others.
    pub(crate) fn begin_call(&self, before: u64) {
        self.book().before = before;
    }

    /// The model calls that are none of the outermost call of an agent.
    pub(crate) fn before(&self) -> u64 {
        self.book().before
    }

    /// The limit that refused a call of this run: the run ends, whatever the agent made of it.
    pub(crate) fn refused(&self) -> Option<StopReason> {
        self.book().refused.clone()
    }
}

/// A turn that may have had a call in flight when an earlier process died. No call is sent until all such turns are looked at:
/// else one could spend what another's call has spent.
pub(crate) struct Doubt<'l>(&'l Log);

impl Drop for Doubt<'_> {
    fn drop(&mut self) {
        let mut book = self.0.account.book();
        book.doubts = book.doubts.saturating_sub(1);
        drop(book);
        self.0.account.changed.send_replace(());
    }
}

/// Which call is to be reserved.
pub(crate) struct Asked<'a> {
    pub(crate) at: &'a Path,
    pub(crate) who: &'a Name,
    pub(crate) model: &'a str,
    pub(crate) bound: Bound,
    /// As how many model calls of the run it counts: none where a tool asks.
    pub(crate) calls: u64,
}

/// How an attempt ended that brought no reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedAttempt {
    /// It did not reach the server: nothing counts.
    Unsent,
    /// The server refused it before it did anything: a call counts, and no money.
    Refused,
    /// It is unknown how far the server got: it counts at its upper bound.
    Broken,
}

/// What is reserved for one model call: it is counted, and nobody else can spend it.
///
/// A model that sends a request again says how the attempt before [failed](Self::fail), and reserves [another](Self::again).
pub struct Reservation<'l> {
    log: &'l Log,
    at: Path,
    who: Name,
    model: Arc<str>,
    bound: Bound,
    calls: u64,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What the attempt holds that may be in flight.
    held: Option<Hold>,
    /// Whether the attempt that is held got a reply.
    is_answered: bool,
    refused: Option<Error>,
}

/// Whether a call was reserved.
enum Held {
    Now(Hold),
    /// Not before another call is settled.
    Later,
    /// Charges have to be written first.
    Again,
}

/// What one attempt holds.
#[derive(Clone, Copy, Default)]
struct Hold {
    run: limits::Hold,
    shared: Amount<Money>,
}

impl Hold {
    /// The money that it takes at most: its bound, or all that was left.
    fn most(&self, bound: &Bound) -> Option<Money> {
        let whole = [self.run.cost, self.shared].into_iter().filter(|amount| amount.whole);
        // What costs nobody knows how much takes nothing: a run on a limit ends because of it.
        bound.least_cost.and(bound.cost.or_else(|| whole.map(|amount| amount.most).min()))
    }

    /// The tokens that it takes at most, in the same way.
    fn most_tokens(&self, bound: &Bound) -> Option<u64> {
        bound.tokens.or_else(|| self.run.tokens.whole.then_some(self.run.tokens.most))
    }
}

impl Log {
    /// Reserves a model call, waiting for others to be settled if need be. Charges that are not written yet are written
    /// first. Returns it with how many calls of the agent came to an end before.
    pub(crate) async fn reserve(&self, asked: Asked<'_>) -> Result<(Reservation<'_>, u64)> {
        let held = self.hold(&asked.bound, asked.who, asked.calls).await;
        if let Err(Error::Cancelled) = &held {
            // It was not sent, and is not in flight when the run is resumed.
            let (who, model) = (asked.who.clone(), asked.model.into());
            let unsent =
                Charge { who, model, why: ChargeReason::Cancelled, calls: 0, tokens: None, cost: None };
            self.account.book().pending.push((asked.at.clone(), Body::Charged(unsent)));
        }
        let (held, nth) = held?;
        let state = Mutex::new(State { held: Some(held), ..State::default() });
        let (at, who, model) = (asked.at.clone(), asked.who.clone(), asked.model.into());
        let Asked { bound, calls, .. } = asked;
        Ok((Reservation { log: self, at, who, model, bound, calls, state }, nth))
    }

    async fn hold(&self, bound: &Bound, who: &Name, calls: u64) -> Result<(Hold, u64)> {
        loop {
            // From before the look, so that no change falls between.
            let mut run = self.account.changed.subscribe();
            let mut shared = self.budget.as_ref().map(super::Budget::changes);
            self.write_pending().await?;
            {
                let kept = self.kept.lock().await;
                self.check_halt_now()?;
                match self.try_hold(&kept.tally, bound, calls)? {
                    Held::Now(hold) => return Ok((hold, kept.tally.ended(who))),
                    Held::Again => continue,
                    Held::Later => {}
                }
            }
            let settled = async {
                let shared = async {
                    match &mut shared {
                        // The sender lives as long as the budget.
                        Some(shared) => shared.changed().await.unwrap_or_default(),
                        None => std::future::pending().await,
                    }
                };
                let _ = select(pin!(run.changed()), pin!(shared)).await;
            };
            self.unless_halted(settled).await?;
        }
    }

    /// Ends what a call holds of the run.
    pub(crate) fn free(&self, hold: limits::Hold) {
        self.account.book().reserved.remove(hold);
        self.account.changed.send_replace(());
    }

    /// Reserves a call in the run and in the budget that it shares, if it fits.
    fn try_hold(&self, tally: &Tally, bound: &Bound, calls: u64) -> Result<Held> {
        let mut book = self.account.book();
        if !book.pending.is_empty() {
            return Ok(Held::Again);
        }
        if book.doubts > 0 {
            return Ok(Held::Later);
        }
        let run = match self.limits.admit(tally, &book.reserved, book.before, (bound, calls)) {
            Admission::Now(amount) => amount,
            Admission::Later => return Ok(Held::Later),
            Admission::Never(reason) => {
                book.refused = Some(reason.clone());
                return Err(Error::Limit(reason));
            }
        };
        let shared = match self.budget.as_ref().map(|budget| budget.reserve(bound)) {
            None => Amount::default(),
            Some(Fit::Now(amount)) => amount,
            Some(Fit::Later) => return Ok(Held::Later),
            // The run is halted with all others that share the budget.
            Some(Fit::Never) => return Err(Error::Cancelled),
        };
        book.reserved.add(run);
        Ok(Held::Now(Hold { run, shared }))
    }

    /// A turn in doubt, if it is: `last` is its last event, and `settled` whether that says that no call was in flight.
    pub(crate) fn in_doubt(&self, last: u64, settled: bool) -> Option<Doubt<'_>> {
        let is_doubtful = last < self.inherited && !settled;
        is_doubtful.then(|| {
            self.account.book().doubts += 1;
            Doubt(self)
        })
    }

    /// Charges a call that follows the event `last` of its turn and may have been in flight when an earlier process died. That
    /// it is sent once more is in the log before it is: each further death charges it again.
    pub(crate) async fn charge_doubt(&self, asked: &Asked<'_>, last: (u64, bool)) -> Result<()> {
        let Some(why) = self.doubt(last.0, last.1).await else { return Ok(()) };
        if why == ChargeReason::Crashed {
            return self.charge_lost(asked).await;
        }
        let (who, model) = (asked.who.clone(), asked.model.into());
        let charge = Charge { who, model, why, calls: 0, tokens: None, cost: None };
        self.append(asked.at, [Body::Charged(charge)]).await?;
        Ok(())
    }

    /// Charges a call that may have been in flight when an earlier process died.
    pub(crate) async fn charge_lost(&self, asked: &Asked<'_>) -> Result<()> {
        let (cost, tokens) = self.most(&asked.bound).await;
        let (who, model) = (asked.who.clone(), asked.model.into());
        let charge = Charge { who, model, why: ChargeReason::Crashed, calls: asked.calls, tokens, cost };
        self.append(asked.at, [Body::Charged(charge)]).await?;
        if let Some(budget) = &self.budget {
            budget.spend(cost.unwrap_or_default());
        }
        Ok(())
    }

    /// What a call took at most that nobody knows the reservation of: its bound, or all that is left of what was set. Where
    /// nothing was set, nothing is known.
    async fn most(&self, bound: &Bound) -> (Option<Money>, Option<u64>) {
        let spent = self.usage().await;
        let run = self.limits.cost.map(|limit| limit.less(spent.counted_cost()));
        let shared = self.budget.as_ref().map(super::Budget::left);
        let cost = bound.least_cost.and(bound.cost.or_else(|| run.into_iter().chain(shared).min()));
        let left = self.limits.tokens.map(|limit| limit.saturating_sub(spent.counted_tokens()));
        (cost, bound.tokens.or(left))
    }
}

impl Reservation<'_> {
    /// Reserves another attempt, after one that [failed](Self::fail). Returns `false` when a limit does not allow it: the model
    /// then returns the error of the last attempt, and the run ends at that limit.
    pub async fn again(&self) -> bool {
        match self.log.hold(&self.bound, &self.who, self.calls).await {
            Ok((held, _)) => {
                self.state().held = Some(held);
                true
            }
            Err(error) => {
                self.state().refused = Some(error);
                false
            }
        }
    }

    /// Counts an attempt, which failed. Without this, a call that fails counts as one attempt, by the kind of its error.
    pub fn fail(&self, failed: FailedAttempt) {
        let Some(hold) = self.state().held.take() else { return };
        let (tokens, cost) = match failed {
            FailedAttempt::Broken => (hold.most_tokens(&self.bound), hold.most(&self.bound)),
            FailedAttempt::Unsent | FailedAttempt::Refused => (None, None),
        };
        if failed != FailedAttempt::Unsent {
            self.charge(ChargeReason::Failed, self.calls, tokens, cost);
        }
        self.settle(hold, cost.unwrap_or_default());
    }

    /// Counts the last attempt by `error`, if the model did not say how it ended; the error that the turn ends with.
    pub fn failed(&self, error: ModelError) -> Error {
        self.fail(match error.kind {
            ModelErrorKind::Config
            | ModelErrorKind::Script
            | ModelErrorKind::Bug
            | ModelErrorKind::Unsupported(_) => FailedAttempt::Unsent,
            ModelErrorKind::Refused => FailedAttempt::Refused,
            ModelErrorKind::Connection | ModelErrorKind::Timeout | ModelErrorKind::Protocol => {
                FailedAttempt::Broken
            }
        });
        self.state().refused.take().unwrap_or_else(|| error.into())
    }

    /// Counts a reply that costs `cost`. What the call holds of the run is held until the reply is in the log, which is when
    /// this is dropped.
    pub(crate) fn answer(&self, reply: &Reply, cost: Option<Money>) {
        self.settled(&reply.usage, reply.cached, cost);
    }

    /// Counts what a model used that a tool asked. What the call holds of the run is returned, to be held until the outcome of the
    /// tool is in the log.
    pub(crate) fn used(&self, usage: &Usage, cost: Option<Money>) -> Option<limits::Hold> {
        self.settled(usage, false, cost);
        self.state().held.take().map(|hold| hold.run)
    }

    fn settled(&self, usage: &Usage, cached: bool, cost: Option<Money>) {
        let mut state = self.state();
        let Some(hold) = state.held.as_mut() else { return };
        let most = hold.most(&self.bound).filter(|_| cost.is_none());
        let tokens = hold.most_tokens(&self.bound).filter(|_| usage.total().is_none());
        let shared = std::mem::take(&mut hold.shared);
        state.is_answered = true;
        drop(state);
        let paid = if cached { None } else { cost.or(most) };
        if let Some(budget) = &self.log.budget {
            budget.settle(shared, paid.unwrap_or_default());
        }
        if !cached && self.log.is_limited() && (tokens.is_some() || most.is_some()) {
            self.charge(ChargeReason::Unreported, 0, tokens, most);
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Nothing is left half done by a panic elsewhere.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn charge(&self, why: ChargeReason, calls: u64, tokens: Option<u64>, cost: Option<Money>) {
        let (who, model) = (self.who.clone(), Arc::clone(&self.model));
        let body = Body::Charged(Charge { who, model, why, calls, tokens, cost });
        self.log.account.book().pending.push((self.at.clone(), body));
    }

    /// Releases the reservation of an attempt, of which `spent` is gone. What is charged for it is filed before.
    fn settle(&self, hold: Hold, spent: Money) {
        if let Some(budget) = &self.log.budget {
            budget.settle(hold.shared, spent);
        }
        self.log.free(hold.run);
    }
}

impl Drop for Reservation<'_> {
    /// A call that is dropped in flight was sent: it counts at its upper bound.
    fn drop(&mut self) {
        let (hold, is_answered) = {
            let mut state = self.state();
            (state.held.take(), state.is_answered)
        };
        let Some(hold) = hold else { return };
        let most = hold.most(&self.bound).filter(|_| !is_answered);
        if !is_answered {
            self.charge(ChargeReason::Cancelled, self.calls, hold.most_tokens(&self.bound), most);
        }
        self.settle(hold, most.unwrap_or_default());
    }
}

impl fmt::Debug for Reservation<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Reservation");
        shown.field("at", &self.at).field("who", &self.who).field("bound", &self.bound).finish()
    }
}
