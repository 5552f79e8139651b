//! Raising limits that were reached: of the run, of an agent, or of a chat.

use super::accounts::OwnedAccount;
use crate::{
    Body, LimitOverrides, LimitRaise, Limits, Log, OnLimit, OpenQuestion, Path, Question, Responder, Result,
    StopReason,
};

/// The answer that is logged for a person who raised the limit in another way.
const RAISED: &str = "raised";

/// The answer that is logged when limits end the run or the chat since the question was asked, instead of asking a person.
const STOP: &str = "stop";

/// What follows when a limit is reached.
pub(crate) enum AtLimit {
    /// The run or the chat ends, or a background task fails.
    Ends,
    /// A person is asked to raise it.
    Asks(LimitRaise),
    /// It was raised meanwhile: the run continues.
    Raised,
}

impl Log {
    /// What follows at the limit `reached`.
    pub(crate) async fn at_limit(&self, reached: &StopReason) -> AtLimit {
        if self.is_raised(reached).await {
            return AtLimit::Raised;
        }
        let limits = self.limits_now();
        let more = match reached.owned() {
            _ if limits.on_limit != OnLimit::Ask => None,
            (None, _) => self.asks_for(reached).await,
            (Some(owner), limit) => {
                let buffer = self.buffer.lock().await;
                let account = buffer.totals.accounts.of(owner);
                account.and_then(|account| account.asks_for(limit, limits.raise.ceiling))
            }
        };
        match more {
            Some(more) => AtLimit::Asks(LimitRaise { reached: reached.clone(), more }),
            None => AtLimit::Ends,
        }
    }

    /// By how much a person is asked to raise the limit `reached` of the run. `None` if that would raise nothing: a budget that is
    /// shared with other runs, or the bound, is not raised with the limits of this run.
    async fn asks_for(&self, reached: &StopReason) -> Option<LimitOverrides> {
        let limits = self.limits_now();
        let last = self.look(LimitOverrides::last_allowed).await;
        let needed = self.limits_beyond(reached.next_needs()).await;
        limits.asked_raise(reached, last, needed, limits.raise.ceiling)
    }

    /// Whether the limit `reached` is higher now.
    pub(crate) async fn is_raised(&self, reached: &StopReason) -> bool {
        let (owner, limit) = reached.owned();
        let now = match owner {
            None => Some(self.limits_now()),
            // That of a chat is open while the chat is.
            Some(owner) => self.buffer.lock().await.totals.accounts.of(owner).map(OwnedAccount::limits),
        };
        // Nothing else that ends a run, such as its bound, can be raised.
        !limit.as_limit().is_empty() && now.is_some_and(|now| !now.holds(limit))
    }

    /// Raises the limit `reached` by `more`, as a person has answered, however much of it was used: up to the ceiling, and to no less than
    /// before.
    pub(crate) async fn raise(&self, reached: &StopReason, more: LimitOverrides) -> Result<()> {
        let (now, ran) = (self.limits_now(), self.now().1);
        let (owner, limit) = reached.owned();
        let totals = limit.limit().plus(more).at_most(now.raise.ceiling.into());
        let Some(owner) = owner else {
            return self.override_limits(totals.not_below(&now)).await;
        };
        let mut buffer = self.buffer.lock().await;
        if buffer.totals.accounts.of(owner).is_none() {
            // Its chat has not begun to run in this process. It will set its limits itself.
            buffer.open_account(owner, Limits::only(limit));
        }
        let since = buffer.totals.time.counted_since(ran);
        let account = buffer.totals.accounts.of(owner);
        let more = account.map_or(more, |account| account.left_of(totals, since));
        let changes = account.map(|account| account.changes_by(more, since)).unwrap_or_default();
        drop(buffer);
        let body = Body::OwnLimitsRaised { of: owner.clone(), more, changes, by: None };
        self.append(&Path::root(), [body]).await?;
        Ok(())
    }

    /// Logs that the totals `limits` apply from now on, in this process and in those that continue the conversation later. Limits that
    /// they do not name stay as they are.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn override_limits(&self, limits: LimitOverrides) -> Result<()> {
        let limits = limits.or(self.look(LimitOverrides::last_of).await.unwrap_or_default());
        let (more, changes) = (LimitOverrides::default(), self.limits_now().changes_by(limits));
        let body = Body::LimitsChanged { limits, more, changes, by: None };
        self.append(&Path::root(), [body]).await?;
        self.set_limits(limits);
        Ok(())
    }

    /// Answers the question about a limit that was raised since it was asked, and, with [`OnLimit::Stop`] `now`, also about one that was
    /// not.
    pub(crate) async fn answer_about_limit(&self, now: OnLimit) -> Result<()> {
        for OpenQuestion { chat: at, question, .. } in self.open_questions().await {
            let Question { who: to, limit: Some(raise), .. } = question else { continue };
            let text = match self.is_raised(&raise.reached).await {
                true => RAISED,
                false if now == OnLimit::Stop => STOP,
                false => continue,
            };
            let body = Body::InputProvided { to, text: text.into(), by: Responder::Unnamed };
            self.append(&at, [body]).await?;
        }
        Ok(())
    }
}
