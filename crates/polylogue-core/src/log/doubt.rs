//! Calls in doubt: those that may have been in flight when an earlier process died. They are charged before anything is sent.

use super::ReservationRequest;
use crate::{
    Allowance, Body, Bound, Charge, ChargeReason, Limits, Log, Money, Name, Parent, Path, Result, TotalUsage,
};

/// The last event of an open turn: what a process that resumes it knows of calls that were in flight when an earlier one died.
#[derive(Debug, Clone, Copy)]
pub(crate) struct LastEvent {
    pub(crate) seq: u64,
    /// Whether it proves that no model call of the turn was in flight any more.
    pub(crate) proves_no_call: bool,
}

/// A turn that may have had a call in flight when an earlier process died. No call is sent until all such turns are
/// checked: otherwise a call could spend money that a lost call has already spent.
pub(crate) struct UncheckedTurn<'l>(&'l Log);

impl<'l> UncheckedTurn<'l> {
    /// The same doubt for one of several chats within the turn.
    pub(crate) fn another(&self) -> Self {
        Self::new(self.0)
    }

    /// Counts a turn as unchecked until this is dropped.
    pub(crate) fn new(log: &'l Log) -> Self {
        log.account.state().unchecked_turns += 1;
        Self(log)
    }
}

impl Drop for UncheckedTurn<'_> {
    fn drop(&mut self) {
        let mut account = self.0.account.state();
        account.unchecked_turns = account.unchecked_turns.saturating_sub(1);
        drop(account);
        self.0.account.changed.send_replace(());
    }
}

/// No call is sent while it exists: those of background tasks that are to be aborted would be sent in vain.
pub(crate) struct NoCalls<'l>(&'l Log);

impl Drop for NoCalls<'_> {
    fn drop(&mut self) {
        self.0.account.state().to_abort -= 1;
        self.0.account.changed.send_replace(());
    }
}

/// While it exists, open turns act only up to their next calls, which are charged and not sent.
pub(crate) struct OnlyCharges<'l>(&'l Log);

impl Drop for OnlyCharges<'_> {
    fn drop(&mut self) {
        self.0.account.state().only_charges = false;
    }
}

/// What a logged reservation can have used at most.
fn bound_of(charge: &Charge) -> Bound {
    let Charge { tokens, cost, .. } = *charge;
    Bound { tokens, input: tokens.unwrap_or_default(), cost, least_cost: Some(cost.unwrap_or_default()) }
}

impl Log {
    /// Sets where the log was [forked](crate::Meta::parent), if it was: no call was in flight there. What the process of the other conversation lost
    /// counts in that one.
    #[must_use]
    pub fn forked_from(mut self, parent: Option<&Parent>) -> Self {
        self.copied = parent.map_or(0, Parent::copied);
        self
    }

    /// Sets the limits that an earlier process had. Calls that were in flight when it died fitted into them together, and count no more
    /// than was left of them, also if the limits are lower now. Default: the present limits.
    #[must_use]
    pub fn lost_calls_under(mut self, limits: Limits) -> Self {
        self.lost_under = Some(limits);
        self
    }

    /// Whether a call of the turn whose last event is `last`, or one in a chat within that turn, may have been in flight when an earlier
    /// process died.
    pub(crate) const fn may_have_lost_call(&self, last: LastEvent) -> bool {
        let LastEvent { seq, proves_no_call } = last;
        seq < self.inherited && self.copied < self.inherited && !proves_no_call
    }

    /// Counts the turn whose last event is `last` as unchecked, if it is in doubt.
    pub(crate) fn in_doubt(&self, last: LastEvent) -> Option<UncheckedTurn<'_>> {
        self.may_have_lost_call(last).then(|| UncheckedTurn::new(self))
    }

    /// Waits until all turns in doubt are checked, before background tasks are aborted: a call of theirs that was lost would not be charged
    /// any more. Returns what keeps them from sending another call until they are aborted.
    pub(crate) async fn all_checked(&self) -> Option<NoCalls<'_>> {
        // Subscribed before the check, so that no change is missed.
        let mut changed = self.account.changed.subscribe();
        if self.account.state().unchecked_turns == 0 {
            return None;
        }
        self.account.state().to_abort += 1;
        let no_calls = NoCalls(self);
        while self.account.state().unchecked_turns > 0 {
            // Its sender lives as long as the log.
            let _ = changed.changed().await;
        }
        Some(no_calls)
    }

    /// From now on until the result is dropped, open turns act only up to their next calls, which are charged and not sent.
    pub(crate) fn only_charges(&self) -> OnlyCharges<'_> {
        self.account.state().only_charges = true;
        OnlyCharges(self)
    }

    /// Those of `reserved` that may have been in flight when an earlier process died.
    pub(crate) fn lost(&self, reserved: &[(u64, Charge)]) -> Vec<Charge> {
        let own = reserved.iter().filter(|(seq, _)| (self.copied..self.inherited).contains(seq));
        own.map(|(_, charge)| charge.clone()).collect()
    }

    /// Charges a call that follows the event `last` of its turn and may have been in flight when an earlier process
    /// died, with the requests for the rest of its reply, `more`. The event is written before the call is sent again,
    /// so that each further crash charges it again.
    pub(crate) async fn charge_doubt(
        &self,
        asked: &ReservationRequest<'_>,
        last: LastEvent,
        more: &[Charge],
    ) -> Result<()> {
        let Some(why) = self.doubt(last).await else { return Ok(()) };
        if self.cut_off(&self.buffer.lock().await.totals, asked.at, asked.who).is_some() {
            // No call was sent after a reply that a limit cut off.
            return Ok(());
        }
        let (who, model) = (asked.who.clone(), asked.model.into());
        let mut charge = Charge::of(who, model, why);
        if why == ChargeReason::Crashed {
            let bound = more.iter().map(bound_of).fold(asked.bound, Bound::and);
            (charge.cost, charge.tokens) = self.most(&bound, asked.at, asked.who).await;
            charge.calls = asked.calls;
        }
        self.charge_now(asked.at, [charge]).await
    }

    /// Charges what tools had reserved when an earlier process died.
    pub(crate) async fn charge_lost_by_tools(&self, at: &Path, reserved: Vec<Charge>) -> Result<()> {
        let mut lost = Vec::with_capacity(reserved.len());
        for charge in reserved {
            let (cost, tokens) = self.most(&bound_of(&charge), at, &charge.who).await;
            lost.push(Charge { why: ChargeReason::Crashed, tokens, cost, ..charge });
        }
        if lost.is_empty() { Ok(()) } else { self.charge_now(at, lost).await }
    }

    /// Writes charges, and counts them in the budgets. Calls in flight at the same time fitted into the limits of the run together, so they
    /// count no more than is left of these, whichever of them were sent.
    async fn charge_now(&self, at: &Path, charges: impl IntoIterator<Item = Charge>) -> Result<()> {
        let (limits, before) = (self.limits_of_lost(), self.account.before());
        let mut counted = TotalUsage::default();
        let mut buffer = self.ready().await?;
        for charge in charges {
            let Allowance { calls, tokens, cost, .. } = limits.left(buffer.totals.usage.counted(), before);
            let charge = charge.within(calls, tokens, cost);
            counted.charge(&charge);
            buffer.stage(at, self.now(), [Body::Charged(charge)]);
        }
        self.settle(&mut buffer).await?;
        drop(buffer);
        self.budgets.doubt(counted.counted());
        Ok(())
    }

    /// The most that a call with an unknown reservation used: its bound, or all that is left of the limits. Without
    /// limits, unknown.
    async fn most(&self, bound: &Bound, at: &Path, who: &Name) -> (Option<Money>, Option<u64>) {
        let buffer = self.buffer.lock().await;
        let run = self.limits_of_lost().left(buffer.totals.usage.counted(), 0);
        let owned = buffer.totals.accounts.paying(at, who).map(|(_, of)| of.left());
        let left: Vec<Allowance> = owned.chain([run]).collect();
        let (shared, shared_tokens) = self.budgets.left();
        let money = left.iter().filter_map(|left| left.cost).chain(shared);
        let tokens = left.iter().filter_map(|left| left.tokens).chain(shared_tokens);
        let cost = bound.least_cost.and(bound.cost.or_else(|| money.min()));
        (cost, bound.tokens.or_else(|| tokens.min()))
    }

    /// The limits into which calls fitted that were in flight when an earlier process died.
    fn limits_of_lost(&self) -> Limits {
        self.lost_under.unwrap_or_else(|| self.limits_now())
    }

    /// Why a call that follows the event `last` of its turn is charged, if it is.
    async fn doubt(&self, last: LastEvent) -> Option<ChargeReason> {
        let closed = self.buffer.lock().await.totals.closed.is_some_and(|closed| closed > last.seq);
        // One that another conversation made counts in that one. Before it is sent here, this is logged.
        let is_of_other = last.seq < self.copied;
        if last.proves_no_call || closed || is_of_other {
            Some(ChargeReason::Repeated)
        } else if last.seq < self.inherited {
            Some(ChargeReason::Crashed)
        } else {
            None
        }
    }
}
