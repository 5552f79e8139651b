//! What replies that were cut off end: no further call is sent, and their chat or the run ends.

use std::time::Instant;

use super::Log;
use super::buffer::RunTotals;
use crate::limits::{CountedUsage, budgets};
use crate::{AllowanceOwner, CutReply, Interrupt, Name, OutputLimit, Path, Result, StopReason};

impl Log {
    /// The limit that does not allow a further call of `who` in the chat `at`, because it cut a reply off.
    pub(super) fn cut_off(&self, totals: &RunTotals, at: &Path, who: &Name) -> Option<StopReason> {
        let pays = |(_, limit): &&(Path, OutputLimit)| match limit.of.owned().0 {
            Some(owner @ (AllowanceOwner::Agent(_) | AllowanceOwner::Chat { .. })) => {
                totals.accounts.paying(at, who).any(|(_, account)| account.is_of(owner))
            }
            _ => true,
        };
        let mut replies = totals.cut_replies.cut.iter().filter(pays);
        replies.find_map(|(_, limit)| self.reached_by(totals, limit))
    }

    /// Ends the chat `at` in which a reply was cut off, or the run, if that is whose limit it was. The agent may have continued
    /// without a further call.
    pub(crate) async fn check_cut_off(&self, at: &Path) -> Result<()> {
        let since = Instant::now();
        loop {
            // Subscribed before the check, so that no change is missed.
            let mut changes = self.budgets.changes();
            let Some(reason) = self.reached_in(at).await else { return Ok(()) };
            if !self.budgets.lock().asks_again(&reason, since)? {
                return Err(Interrupt::Limit(reason).into());
            }
            self.unless_cancelled(budgets::changed(&mut changes)).await?;
        }
    }

    /// The limit that cut a reply off in the chat `at`, if that or the run ends because of it.
    async fn reached_in(&self, at: &Path) -> Option<StopReason> {
        let totals = &self.buffer.lock().await.totals;
        let ends = |(within, limit): &&(Path, OutputLimit)| match limit.of.owned().0 {
            Some(AllowanceOwner::Agent(_)) => within == at,
            Some(AllowanceOwner::Chat { path: chat, .. }) => at == chat || at.is_within(chat),
            _ => true,
        };
        let mut replies = totals.cut_replies.cut.iter().filter(ends);
        replies.find_map(|(_, limit)| self.reached_by(totals, limit))
    }

    /// The limit that cut a reply off, with what of it is used now; `None` if it is higher now.
    fn reached_by(&self, totals: &RunTotals, cut: &OutputLimit) -> Option<StopReason> {
        let (owner, limit) = cut.of.owned();
        let used: CountedUsage = match owner {
            None => self.limits_now().holds(limit).then(|| totals.usage.counted())?,
            Some(owner @ AllowanceOwner::Shared(_)) => {
                let budget = self.budgets.named(owner).filter(|budget| budget.still_refuses(&cut.of))?;
                budget.used()
            }
            Some(owner) => {
                let account = totals.accounts.of(owner).filter(|account| account.limits().holds(limit))?;
                account.used(0).counted
            }
        };
        let reply = CutReply { who: cut.who.clone(), tokens: cut.tokens };
        let reason = cut.of.after((used.tokens, used.cost), reply);
        owner
            .and_then(|owner| self.budgets.named(owner))
            .into_iter()
            .for_each(|budget| budget.mark_refused(&reason));
        Some(reason)
    }
}
