//! Reservations: the right to send one model call, and how it is settled.

use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures_util::future::select;

use crate::limits::{self, Lowered, Lowering, budgets};
use crate::{
    Body, Bound, Charge, ChargeReason, CountedUsage, Error, Interrupt, Log, ModelError, ModelErrorKind,
    Money, Name, OutputLimit, Path, Reply, Result, Usage,
};

/// The index of the reservations within the bound of the run; those of agents and chats follow.
pub(super) const RUN_BOUND: usize = 0;

/// A call to be reserved.
pub(crate) struct ReservationRequest<'a> {
    pub(crate) at: &'a Path,
    pub(crate) who: &'a Name,
    pub(crate) model: &'a str,
    pub(crate) bound: Bound,
    /// Whether its reply is stored, so that its first attempt takes nothing.
    pub(crate) is_cached: bool,
    /// The number of model calls that it counts as in the run: 0 for a tool's call.
    pub(crate) calls: u64,
    /// The id of the tool call.
    pub(crate) call: Option<&'a str>,
    /// How its output limit can be lowered to what is left.
    pub(crate) lowering: Option<Lowering<'a>>,
}

/// The kind of failure of an attempt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FailedAttempt {
    /// The request did not reach the server: nothing counts.
    Unsent,
    /// The server refused it before doing anything: a call counts, no money.
    Refused,
    /// Unknown how far the server got: counts at its upper bound.
    Broken,
}

/// The reservation of one model call: the call is counted, and no other call can use its share of the limits.
///
/// A model that retries reports how the attempt before [failed](Self::fail), and reserves [another](Self::again). One that asks several
/// models says [which](Self::asks), and reports a reply that it does not [use](Self::discard).
#[derive(derive_more::Debug)]
#[debug("Reservation {{ at: {at:?}, who: {who:?}, bound: {bound:?} }}")]
pub struct Reservation<'l> {
    log: &'l Log,
    at: Path,
    who: Name,
    model: Arc<str>,
    bound: Bound,
    calls: u64,
    call: Option<Arc<str>>,
    /// The output limit with which the call is to be sent, if it was lowered.
    lowered: Option<OutputLimit>,
    state: Mutex<State>,
}

/// The tokens of a request with its reply, as far as they are known.
struct ReplyTokens {
    all: Option<u64>,
    /// Those of the reply alone.
    output: Option<u64>,
}

/// The tokens and the money of the requests of a call that have a reply, as far as they are known.
type Paid = (Option<u64>, Option<Money>);

#[derive(Default)]
struct State {
    /// The reservation of the attempt that may be in flight.
    hold: Option<AttemptReservation>,
    /// The reservations of earlier parts of its reply.
    more: Vec<AttemptReservation>,
    /// The bound of the last attempt, if that is for the rest of a reply.
    rest: Option<Bound>,
    /// The model that is asked, if there are several, and the bound of the call at its price.
    asked: Option<(Arc<str>, Bound)>,
    /// Whether that attempt got a reply.
    is_answered: bool,
    paid: Option<Paid>,
    refused: Option<Error>,
}

/// The result of an attempt to reserve a call.
pub(super) enum ReservationAttempt {
    Now(AttemptReservation),
    /// Not before another call is settled.
    Later,
    /// Pending charges must be written first.
    Again,
}

/// An attempt to be reserved.
#[derive(Clone, Copy)]
pub(super) struct Attempt<'a> {
    pub(super) at: &'a Path,
    pub(super) who: &'a Name,
    pub(super) bound: Bound,
    pub(super) calls: u64,
    pub(super) lowering: Option<Lowering<'a>>,
    /// When it was asked for.
    pub(super) since: Instant,
}

/// The reservation of one attempt.
#[derive(Clone, Default)]
pub(crate) struct AttemptReservation {
    pub(super) bound: Bound,
    /// The bound at the price of the model that is asked, if there are several: the call is reserved at the highest of their prices.
    pub(super) own: Option<Box<Bound>>,
    pub(super) run: limits::RunReservation,
    /// In the accounts of agents and chats, by index.
    pub(super) owned: Vec<(usize, limits::RunReservation)>,
    /// In the budgets that the run shares with others.
    pub(super) shared: Vec<limits::RunReservation>,
    /// The output limit, if it was lowered.
    pub(super) lowered: Option<Box<Lowered>>,
}

impl AttemptReservation {
    /// The money that it takes at most: its bound, or all that was left.
    fn most(&self) -> Option<Money> {
        let bound = &self.bound;
        let whole = self.all().map(|hold| hold.cost).filter(|amount| amount.whole);
        // A call of unknown cost reserves nothing: under a limit on money the run ends because of it.
        let most = bound.least_cost.and(bound.cost.or_else(|| whole.map(|amount| amount.most).min()));
        most.into_iter().chain(self.own.as_ref().and_then(|own| own.cost)).min()
    }

    /// The tokens that it takes at most, in the same way.
    fn most_tokens(&self) -> Option<u64> {
        let whole = self.all().map(|hold| hold.tokens).filter(|amount| amount.whole);
        let most = self.bound.tokens.or(whole.map(|amount| amount.most).min());
        most.into_iter().chain(self.own.as_ref().and_then(|own| own.tokens)).min()
    }

    /// The reservations in all accounts.
    fn all(&self) -> impl Iterator<Item = &limits::RunReservation> {
        [&self.run].into_iter().chain(self.owned.iter().map(|(_, hold)| hold)).chain(&self.shared)
    }
}

impl Log {
    /// Reserves a model call. Writes pending charges first, and waits for other calls to be settled if necessary.
    /// Returns the reservation with the number of calls of the agent that ended before.
    pub(crate) async fn reserve(&self, asked: ReservationRequest<'_>) -> Result<(Reservation<'_>, u64)> {
        let ReservationRequest { at, who, bound, calls, lowering, .. } = asked;
        let first = if asked.is_cached { Bound::STORED } else { bound };
        let since = Instant::now();
        let hold = self.hold(Attempt { at, who, bound: first, calls, lowering, since }).await;
        if let Err(Error::Interrupt(Interrupt::Cancelled)) = &hold {
            // It was not sent, so it is not in flight when the run is resumed.
            let (who, model) = (asked.who.clone(), asked.model.into());
            let (why, call) = (ChargeReason::Cancelled, asked.call.map(Arc::from));
            let unsent = Charge { call, ..Charge::of(who, model, why) };
            self.account.state().pending.push((asked.at.clone(), unsent));
        }
        let (mut hold, nth) = hold?;
        let lowered = hold.lowered.take();
        let bound = if lowered.is_some() { hold.bound } else { bound };
        let state = Mutex::new(State { hold: Some(hold), ..State::default() });
        let (at, who, model) = (asked.at.clone(), asked.who.clone(), asked.model.into());
        let call = asked.call.map(Arc::from);
        let limit = |lowered: Box<Lowered>| {
            let Lowered { tokens, of, .. } = *lowered;
            OutputLimit { who: asked.who.clone(), model: asked.model.into(), tokens, of }
        };
        let lowered = lowered.map(limit);
        Ok((Reservation { log: self, at, who, model, bound, calls, call, lowered, state }, nth))
    }

    async fn hold(&self, attempt: Attempt<'_>) -> Result<(AttemptReservation, u64)> {
        match self.hold_now(attempt).await? {
            Some(held) => Ok(held),
            None => Box::pin(self.hold_later(attempt)).await,
        }
    }

    /// A reservation, as soon as it fits together with those of other calls.
    async fn hold_later(&self, attempt: Attempt<'_>) -> Result<(AttemptReservation, u64)> {
        loop {
            // Subscribed before the check, so that no change is missed.
            let mut run = self.account.changed.subscribe();
            let mut shared = self.budgets.changes();
            if let Some(held) = self.hold_now(attempt).await? {
                return Ok(held);
            }
            let settled = async {
                let _ = select(pin!(run.changed()), pin!(budgets::changed(&mut shared))).await;
            };
            self.unless_cancelled(settled).await?;
        }
    }

    /// A reservation, if it fits together with those of other calls.
    async fn hold_now(&self, attempt: Attempt<'_>) -> Result<Option<(AttemptReservation, u64)>> {
        loop {
            self.write_pending().await?;
            let buffer = self.buffer.lock().await;
            self.check_not_cancelled_now()?;
            match self.try_hold(&buffer.totals, attempt)? {
                ReservationAttempt::Now(hold) => return Ok(Some((hold, buffer.totals.ended(attempt.who)))),
                ReservationAttempt::Again => {}
                ReservationAttempt::Later => return Ok(None),
            }
        }
    }

    /// Returns the money that is reserved for calls in flight, in all accounts of this run together; 0 between calls.
    pub fn reserved(&self) -> Money {
        self.account.state().total()
    }

    /// Releases the reservation of a call in the accounts of the run.
    pub(crate) fn free(&self, hold: &AttemptReservation) {
        self.account.state().remove(hold.run, &hold.owned);
        // A call that subscribes after this sees the removal when it checks.
        if self.account.changed.receiver_count() > 0 {
            self.account.changed.send_replace(());
        }
    }
}

/// What counts of a call, of which not all is known.
fn counted(calls: u64, tokens: Option<u64>, cost: Option<Money>) -> CountedUsage {
    CountedUsage { calls, tokens: tokens.unwrap_or_default(), cost: cost.unwrap_or_default() }
}

impl Reservation<'_> {
    /// Reserves another attempt, after one that [failed](Self::fail). Returns `false` if a limit does not allow it:
    /// the model must then return the error of the last attempt, and the run ends at that limit.
    pub async fn again(&self) -> bool {
        let (bound, own) = {
            let state = self.state();
            match state.rest {
                Some(rest) => (rest, None),
                None => (self.bound, state.asked.as_ref().map(|(_, own)| Box::new(*own))),
            }
        };
        match self.log.hold(self.attempt(bound, self.calls)).await {
            Ok((hold, _)) => {
                self.state().hold = Some(AttemptReservation { own, ..hold });
                true
            }
            Err(error) => {
                self.state().refused = Some(error);
                false
            }
        }
    }

    /// Says that `model` is asked from now on, which is one of several, and that the call takes at most `bound` at its price: its attempts
    /// count as calls of this model. To be called before its first attempt is sent, and before that is reserved if it is not the first
    /// of the call.
    pub fn asks(&self, model: &str, bound: Bound) {
        let mut state = self.state();
        (state.asked, state.rest) = (Some((model.into(), bound)), None);
        if let Some(hold) = &mut state.hold {
            hold.own = Some(Box::new(bound));
        }
    }

    /// Reserves `bound` next to what is reserved, for the rest of a reply that its provider paused. Returns `false` if a
    /// limit does not allow it now, or the log cannot be written: the reply then stays incomplete.
    pub async fn extend(&self, bound: Bound) -> bool {
        let buffer = self.log.buffer.lock().await;
        let Ok(ReservationAttempt::Now(rest)) = self.log.try_hold(&buffer.totals, self.attempt(bound, 0))
        else {
            return false;
        };
        drop(buffer);
        {
            let mut state = self.state();
            let earlier = state.hold.replace(rest);
            state.more.extend(earlier);
            state.rest = Some(bound);
        }
        self.note().await.is_ok()
    }

    /// The number of requests in which its reply came: more than one if the provider paused it.
    pub(crate) fn parts(&self) -> u64 {
        1 + self.state().more.len() as u64
    }

    /// Logs that a request is sent besides the next model call of the turn.
    pub(super) async fn note(&self) -> Result<()> {
        self.log.append(&self.at, [self.reserved()]).await?;
        Ok(())
    }

    /// The event that says so.
    pub(crate) fn reserved(&self) -> Body {
        let hold = self.state().hold.clone().unwrap_or_default();
        Body::Charged(self.charge_of(ChargeReason::Reserved, 0, hold.most_tokens(), hold.most()))
    }

    /// Settles a call of a tool that itself cost `cost`. What is reserved in the limits of the run stays so until this is dropped,
    /// when the result is in the log.
    pub(crate) fn own_cost(&self, cost: Money) {
        let nothing = Usage { input: Some(0), output: Some(0), ..Usage::default() };
        self.settled(&nothing, false, Some(cost));
    }

    /// Notes what one of the several requests of a call used, `None` where that is unknown: if another one fails, this counts
    /// nevertheless. A call that is settled counts as it says itself.
    pub fn paid(&self, tokens: Option<u64>, cost: Option<Money>) {
        let mut state = self.state();
        let (earlier, spent) = state.paid.unwrap_or((Some(0), Some(Money::default())));
        let tokens = earlier.zip(tokens).map(|(one, other)| one.saturating_add(other));
        state.paid = Some((tokens, spent.zip(cost).map(|(one, other)| one + other)));
    }

    /// Counts a failed attempt. Without this, a failed call counts as one attempt, by the kind of its error.
    pub fn fail(&self, failed: FailedAttempt) {
        let Some((hold, paid)) = self.take_attempt() else { return };
        let (tokens, cost) = match (failed, paid) {
            (FailedAttempt::Broken, _) => (hold.most_tokens(), hold.most()),
            // The requests before the one that failed have a reply. They are those of texts to be embedded, which has no output.
            (_, Some((all, cost))) => {
                return self.settle_discarded(hold, ReplyTokens { all, output: Some(0) }, cost);
            }
            (FailedAttempt::Unsent, None) => return self.settle(hold, CountedUsage::default()),
            (FailedAttempt::Refused, None) => (None, None),
        };
        self.charge(ChargeReason::Failed, self.calls, tokens, cost);
        self.settle(hold, counted(self.calls, tokens, cost));
    }

    /// Counts an attempt that got a reply of which no use is made, such as a refusal after which another model is asked. What of its usage
    /// or its `cost` is unknown counts at its upper bound.
    pub fn discard(&self, usage: &Usage, cost: Option<Money>) {
        if let Some((hold, _)) = self.take_attempt() {
            self.settle_discarded(hold, ReplyTokens { all: usage.total(), output: usage.output }, cost);
        }
    }

    /// The attempt that may be in flight, with what requests of the call cost that have a reply.
    fn take_attempt(&self) -> Option<(AttemptReservation, Option<Paid>)> {
        let mut state = self.state();
        let paid = state.paid.take();
        state.hold.take().map(|hold| (hold, paid))
    }

    /// Settles an attempt whose reply is not used.
    fn settle_discarded(&self, hold: AttemptReservation, reply: ReplyTokens, cost: Option<Money>) {
        let (most, ReplyTokens { all: tokens, output }) = (hold.most(), reply);
        // Without a price there is no bound in money either.
        let is_known = tokens.is_some() && (cost.is_some() || most.is_none());
        let why = if is_known { ChargeReason::Discarded } else { ChargeReason::Failed };
        let (tokens, cost) = (tokens.or_else(|| hold.most_tokens()), cost.or(most));
        let charge = self.charge_of(why, self.calls, tokens, cost);
        self.file(Charge { output: output.filter(|_| is_known), ..charge });
        self.settle(hold, counted(self.calls, tokens, cost));
    }

    /// Counts the last attempt by `error`, unless the model reported how it ended. Returns the error that the turn
    /// ends with.
    pub fn failed(&self, error: ModelError) -> Error {
        self.fail(match error.kind {
            ModelErrorKind::Config
            | ModelErrorKind::Script
            | ModelErrorKind::Bug
            | ModelErrorKind::Unsupported(_) => FailedAttempt::Unsent,
            ModelErrorKind::Unavailable
            | ModelErrorKind::ContentFiltered
            | ModelErrorKind::QuotaExceeded
            | ModelErrorKind::Postponed
            | ModelErrorKind::TooLong { .. }
            | ModelErrorKind::SealsRefused
            | ModelErrorKind::ParameterRefused => FailedAttempt::Refused,
            ModelErrorKind::Connection | ModelErrorKind::Timeout | ModelErrorKind::InvalidReply => {
                FailedAttempt::Broken
            }
        });
        self.state().refused.take().unwrap_or_else(|| error.into())
    }

    /// Counts a reply that costs `cost`. The reservation lasts until this is dropped, when the reply is in the log.
    pub(crate) fn answer(&self, reply: &Reply, cost: Option<Money>) {
        self.settled(&reply.usage, reply.cached, cost);
    }

    /// Counts the usage of a model that a tool called. Returns the reservation, which lasts until the result of the
    /// tool is in the log.
    pub(crate) fn used(&self, usage: &Usage, cost: Option<Money>) -> Option<AttemptReservation> {
        self.settled(usage, false, cost);
        self.state().hold.take()
    }

    fn settled(&self, usage: &Usage, cached: bool, cost: Option<Money>) {
        let mut state = self.state();
        // The rest of a paused reply failed, so that only the beginning is left.
        state.hold = state.hold.take().or_else(|| state.more.pop());
        let State { hold: Some(hold), more, is_answered, .. } = &mut *state else { return };
        let parts = || more.iter().chain([&*hold]);
        let most = parts().map(AttemptReservation::most).sum::<Option<Money>>().filter(|_| cost.is_none());
        let tokens = parts().map(AttemptReservation::most_tokens).sum::<Option<u64>>();
        let tokens = tokens.filter(|_| usage.total().is_none());
        let others: Vec<_> = more.iter_mut().map(|hold| std::mem::take(&mut hold.shared)).collect();
        let shared = std::mem::take(&mut hold.shared);
        *is_answered = true;
        drop(state);
        // Providers report any numbers.
        let read = [usage.input, usage.output, tokens].into_iter().flatten();
        let read = read.fold(0_u64, u64::saturating_add);
        let used = if cached { (0, None) } else { (read, cost.or(most)) };
        let budgets = &self.log.budgets;
        budgets.settle(shared, counted(self.calls, Some(used.0), used.1));
        others.into_iter().for_each(|other| budgets.settle(other, CountedUsage::default()));
        if !cached && self.log.is_limited() && (tokens.is_some() || most.is_some()) {
            self.charge(ChargeReason::Unreported, 0, tokens, most);
        }
    }

    /// The output limit with which the call is to be sent, if it was lowered to what is left.
    pub(crate) const fn lowered(&self) -> Option<&OutputLimit> {
        self.lowered.as_ref()
    }

    /// A further attempt, whose request is the same.
    fn attempt(&self, bound: Bound, calls: u64) -> Attempt<'_> {
        Attempt { at: &self.at, who: &self.who, bound, calls, lowering: None, since: Instant::now() }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // A panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn charge_of(&self, why: ChargeReason, calls: u64, tokens: Option<u64>, cost: Option<Money>) -> Charge {
        let asked = self.state().asked.as_ref().map(|(model, _)| Arc::clone(model));
        let model = asked.unwrap_or_else(|| Arc::clone(&self.model));
        let (who, call) = (self.who.clone(), self.call.clone());
        Charge { calls, tokens, cost, call, ..Charge::of(who, model, why) }
    }

    fn charge(&self, why: ChargeReason, calls: u64, tokens: Option<u64>, cost: Option<Money>) {
        self.file(self.charge_of(why, calls, tokens, cost));
    }

    fn file(&self, charge: Charge) {
        self.log.account.state().pending.push((self.at.clone(), charge));
    }

    /// Releases the reservation of an attempt, of which `used` is gone. Its charge is filed before.
    fn settle(&self, hold: AttemptReservation, used: CountedUsage) {
        self.log.free(&hold);
        self.log.budgets.settle(hold.shared, used);
    }
}

impl Drop for Reservation<'_> {
    /// A call that is dropped in flight was sent: it counts at its upper bound.
    fn drop(&mut self) {
        let (hold, more, is_answered) = {
            let mut state = self.state();
            (state.hold.take(), std::mem::take(&mut state.more), state.is_answered)
        };
        let calls = std::iter::once(self.calls).chain(std::iter::repeat(0));
        for (hold, calls) in hold.into_iter().chain(more).zip(calls) {
            let mut used = CountedUsage::default();
            if !is_answered {
                let (tokens, most) = (hold.most_tokens(), hold.most());
                self.charge(ChargeReason::Cancelled, calls, tokens, most);
                used = counted(calls, tokens, most);
            }
            self.settle(hold, used);
        }
    }
}
