//! Whether a call can be reserved: in the run, in the accounts of its agents and chats, and in the budgets that the run shares.

use std::iter::once;

use super::Log;
use super::buffer::RunTotals;
use super::reservation::{Attempt, AttemptReservation, RUN_BOUND, ReservationAttempt};
use crate::limits::{AccountState, Admission, Reserved, RunReservation, Standing};
use crate::{Allowance, AllowanceOwner, Error, Interrupt, Limits, OnLimit, Result, StopReason};

/// The reservations in the accounts of agents and chats, by index; `None` if other calls must be settled before.
type OwnedHolds = Option<Vec<(usize, RunReservation)>>;

impl Log {
    /// Reserves a call in all accounts that pay for it, if it fits into all of them.
    pub(super) fn try_hold(&self, totals: &RunTotals, attempt: Attempt<'_>) -> Result<ReservationAttempt> {
        let ran = self.now().1;
        let mut account = self.account.state();
        if !account.pending.is_empty() {
            return Ok(ReservationAttempt::Again);
        }
        if account.unchecked_turns > 0 || account.to_abort > 0 {
            return Ok(ReservationAttempt::Later);
        }
        let Attempt { at, who, calls, since, .. } = attempt;
        if let Some(reason) = self.cut_off(totals, at, who).filter(|_| calls > 0) {
            if self.budgets.lock().asks_again(&reason, since)? {
                return Ok(ReservationAttempt::Later);
            }
            return Err(refused(&mut account, reason));
        }
        let mut shared = self.budgets.lock();
        let lowered = attempt.lowering.and_then(|lowering| {
            let ceiling = self.asks_below();
            let owned = totals.accounts.paying(at, who).map(|(_, of)| of.standing(ceiling));
            lowering.of(&attempt.bound, owned.chain(once(self.standing(totals))).chain(shared.standings()))
        });
        // What is left may be more by now than enough for a short reply.
        if let Some(lowered) = &lowered
            && shared.asks_again(&lowered.of, since)?
        {
            return Ok(ReservationAttempt::Later);
        }
        let bound = lowered.as_ref().map_or(attempt.bound, |lowered| lowered.bound);
        let attempt = Attempt { bound, ..attempt };
        // First, so that a resumption raises them together with the limits of the run.
        let Some(mut owned) = self.hold_owned(totals, &account, attempt, ran)? else {
            return Ok(ReservationAttempt::Later);
        };
        let (reserved, before) = (account.reserved, account.before);
        let fits = self.limits_now().admit(totals.used(ran), &reserved, before, (&bound, calls));
        let Some(run) = admitted(&mut account, fits)? else { return Ok(ReservationAttempt::Later) };
        if let Some(most) = self.bound.filter(|_| calls > 0) {
            let fits = totals.bound.admit(most, &account.owned(RUN_BOUND), &bound);
            let Some(hold) = admitted(&mut account, fits)? else { return Ok(ReservationAttempt::Later) };
            owned.push((RUN_BOUND, hold));
        }
        let allow_unknown_price = self.limits_now().allow_unknown_price;
        let unpriced = totals.unpriced.as_ref();
        let shared = match shared.reserve((&bound, calls), allow_unknown_price, unpriced, since) {
            Ok(Some(holds)) => holds,
            Ok(None) => return Ok(ReservationAttempt::Later),
            Err(Error::Interrupt(Interrupt::Limit(reason))) => return Err(refused(&mut account, reason)),
            Err(error) => return Err(error),
        };
        account.add(run, &owned);
        let lowered = lowered.map(Box::new);
        Ok(ReservationAttempt::Now(AttemptReservation { bound, own: None, run, owned, shared, lowered }))
    }

    /// The limits of the run, with what of them is used. A limit that a person can be asked to raise lowers nothing: the person is
    /// asked before a reply is shortened.
    fn standing(&self, totals: &RunTotals) -> Standing<'_> {
        let limits = self.limits_now();
        let limits = self.asks_below().map_or(limits, |ceiling| limits.at_ceiling(ceiling));
        Standing { of: None, limits, used: totals.usage.counted() }
    }

    /// The totals below which people are asked to raise limits; `None` if they are not asked.
    fn asks_below(&self) -> Option<Allowance> {
        let limits = self.limits_now();
        (limits.on_limit == OnLimit::Ask).then_some(limits.raise.ceiling)
    }

    /// Reserves a call in the accounts of agents and chats.
    fn hold_owned(
        &self,
        totals: &RunTotals,
        account: &AccountState,
        attempt: Attempt<'_>,
        ran: u64,
    ) -> Result<OwnedHolds> {
        let Attempt { at, who, bound, calls, .. } = attempt;
        let (allow_unknown_price, since) =
            (self.limits_now().allow_unknown_price, totals.time.since_last(ran));
        let mut owned = Vec::new();
        for (index, of) in totals.accounts.paying(at, who).map(|(index, of)| (index + 1, of)) {
            let limits = Limits { allow_unknown_price, ..of.limits() };
            let reserved: Reserved = account.owned(index);
            match limits.admit(of.used(since), &reserved, 0, (&bound, calls)) {
                Admission::Now(hold) => owned.push((index, hold)),
                Admission::Later => return Ok(None),
                Admission::Never(reason) => return Err(Interrupt::Limit(of.refusal(reason)).into()),
            }
        }
        Ok(Some(owned))
    }
}

/// What is reserved; `None` if other calls must be settled before. A refusal ends the run.
fn admitted(account: &mut AccountState, admission: Admission) -> Result<Option<RunReservation>> {
    match admission {
        Admission::Now(hold) => Ok(Some(hold)),
        Admission::Later => Ok(None),
        Admission::Never(reason) => Err(refused(account, reason)),
    }
}

/// The error of a refused call. Unless the limit is that of an agent or chat, the run ends, however the agent handles it.
fn refused(account: &mut AccountState, reason: StopReason) -> Error {
    let owner = reason.owned().0;
    if !matches!(owner, Some(AllowanceOwner::Agent(_) | AllowanceOwner::Chat { .. })) {
        account.refused = Some(reason.clone());
    }
    Interrupt::Limit(reason).into()
}
