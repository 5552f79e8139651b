//! The limits of agents and chats within a run, and what of them was reached.

use std::sync::Arc;

use super::Log;
use super::accounts::{Accounts, OwnedAccount};
use super::buffer::{EventBuffer, RunTotals};
use crate::{
    Allowance, AllowanceOwner, Body, BoundException, Error, Interrupt, LimitOverrides, Limits, Name,
    OpenQuestion, Result, RunBound, StopReason,
};

impl Log {
    /// Sets what the run takes at most, as computed before it began. No call is sent that could exceed it.
    #[must_use]
    pub fn bound(mut self, bound: RunBound) -> Self {
        self.bound = Some(bound);
        self
    }

    /// Returns why the bound of the run does not apply any more; `None` if it does, or if there is none.
    pub async fn bound_exception(&self) -> Option<BoundException> {
        self.handle().bound_exception().await
    }

    /// Sets limits of agents, over all chats and turns of the conversation: what an agent calls within its turns counts,
    /// too. When one is reached, the chat in which the agent has its turn ends.
    #[must_use]
    pub fn agent_limits(mut self, limits: impl IntoIterator<Item = (Name, Allowance)>) -> Self {
        self.allowances.extend(limits);
        self
    }

    /// Sets limits of chats that the log has, so that [they can be raised](crate::Instruction::RaiseChatLimits) before the chats run in
    /// this process: a chat that runs sets its own.
    #[must_use]
    pub fn chat_limits(mut self, limits: impl IntoIterator<Item = (AllowanceOwner, Allowance)>) -> Self {
        self.chat_allowances.extend(limits);
        self
    }

    /// Opens the accounts of agents with limits.
    pub(super) fn open_agent_accounts(&self, buffer: &mut EventBuffer) {
        for (name, allowance) in &self.allowances {
            self.open_account(buffer, &AllowanceOwner::Agent(name.clone()), *allowance);
        }
    }

    /// Opens the account of a chat with limits.
    pub(crate) async fn open_chat_account(&self, owner: &AllowanceOwner, allowance: Allowance) {
        self.open_account(&mut *self.buffer.lock().await, owner, allowance);
    }

    fn open_account(&self, buffer: &mut EventBuffer, owner: &AllowanceOwner, allowance: Allowance) {
        let limits = allowance.limits();
        {
            let mut account = self.account.state();
            account.need_bounds |= limits.need_bounds();
            account.is_timed |= limits.time_ms.is_some();
        }
        buffer.open_account(owner, limits);
    }

    /// The limits of an agent; `None` if it has none.
    pub(crate) fn limits_of_agent(&self, name: &Name) -> Option<Limits> {
        self.allowances.iter().rfind(|(who, _)| who == name).map(|(_, allowance)| allowance.limits())
    }

    /// The event that allows the agent `who` `more` than it has used; else why that raises no limit.
    pub(crate) async fn agent_raised_by(
        &self,
        who: &Name,
        more: LimitOverrides,
        by: Option<Arc<str>>,
    ) -> std::result::Result<Body, String> {
        if more.reply_tokens.is_some() || more.on_limit.is_some() {
            return Err("an agent has limits on calls, tokens, money and time only".into());
        }
        let own = self.limits_of_agent(who).ok_or_else(|| self.not_limited(who))?;
        let (owner, ran) = (AllowanceOwner::Agent(who.clone()), self.now().1);
        let mut buffer = self.buffer.lock().await;
        // No run may have begun since the log was opened.
        buffer.open_account(&owner, own);
        match buffer.totals.accounts.of(&owner) {
            Some(account) => raised(&buffer.totals, account, (more, by), ran),
            None => Err(self.not_limited(who)),
        }
    }

    /// The event that allows the open chat that `chat` names, or whose path it is, `more` than it has used; else why that raises no limit.
    pub(crate) async fn chat_raised_by(
        &self,
        chat: &str,
        more: LimitOverrides,
        by: Option<Arc<str>>,
    ) -> std::result::Result<Body, String> {
        if more.turns.is_some() || more.reply_tokens.is_some() || more.on_limit.is_some() {
            return Err("`limits` of a chat are on calls, tokens, money and time only".into());
        }
        let ran = self.now().1;
        let mut buffer = self.buffer.lock().await;
        let limits = self.limits_of_chats(&buffer);
        buffer.open_accounts(limits);
        let accounts = &buffer.totals.accounts;
        let named: Vec<&OwnedAccount> =
            accounts.of_open_chats().filter(|account| is_chat(account.owner(), chat)).collect();
        match named.as_slice() {
            [account] => raised(&buffer.totals, account, (more, by), ran),
            [] => Err(not_open(accounts, chat)),
            several => {
                let paths: Vec<String> = several.iter().filter_map(|account| path_of(account)).collect();
                Err(format!("several chats `{chat}` are open; name one by its path: {}", paths.join(", ")))
            }
        }
    }

    /// The limits of chats that may not have run since the log was opened. One about whose limit a person is asked has at least this one.
    fn limits_of_chats(&self, buffer: &EventBuffer) -> Vec<(AllowanceOwner, Limits)> {
        let known = self.chat_allowances.iter().map(|(owner, allowance)| (owner.clone(), allowance.limits()));
        let asked = OpenQuestion::of(&buffer.events).into_iter().filter_map(|open| {
            let raise = open.question.limit?;
            let (owner, limit) = raise.reached.owned();
            Some((owner?.clone(), Limits::only(limit)))
        });
        known.chain(asked).collect()
    }

    /// Says that `who` has no limits of its own, and which agents have.
    fn not_limited(&self, who: &Name) -> String {
        let mut names: Vec<String> = self.allowances.iter().map(|(name, _)| format!("`{name}`")).collect();
        names.sort();
        names.dedup();
        match names.as_slice() {
            [] => format!("`{who}` has no limits of its own, and neither has any other agent"),
            names => format!("`{who}` has no limits of its own; agents with limits: {}", names.join(", ")),
        }
    }

    /// The limits of the agent or chat `owner` if the conversation is reopened for `more`: its `own`, unless resumptions have
    /// raised them.
    pub(crate) async fn limits_of_owner(
        &self,
        owner: &AllowanceOwner,
        own: Limits,
        more: LimitOverrides,
    ) -> Limits {
        self.buffer.lock().await.limits_of_account(owner, own, more)
    }

    /// Whether upper bounds of calls are needed.
    pub(crate) fn is_limited(&self) -> bool {
        let by_bound = self.bound.as_ref().is_some_and(RunBound::needs_bounds);
        by_bound
            || self.limits_now().need_bounds()
            || !self.budgets.is_empty()
            || self.account.state().need_bounds
    }

    /// Ends a run in which a limit refused a call, however its agent handled the error.
    pub(crate) fn check_refused(&self) -> Result<()> {
        self.account.refused().map_or(Ok(()), |reason| Err(Error::Interrupt(Interrupt::Limit(reason))))
    }

    /// The limit that the run exceeded, if it did.
    pub(crate) async fn passed(&self) -> Option<StopReason> {
        self.limits_now().passed(self.buffer.lock().await.totals.usage.counted(), self.account.before())
    }
}

/// The event that allows the owner of `account` `more` than it has used, as the person `by` wants; else why that raises no limit. The run has `ran` so far.
fn raised(
    totals: &RunTotals,
    account: &OwnedAccount,
    (more, by): (LimitOverrides, Option<Arc<str>>),
    ran: u64,
) -> std::result::Result<Body, String> {
    let since = totals.time.counted_since(ran);
    let changes = account.changes_by(more, since);
    match account.refuses(more, since).or_else(|| more.unraised(&changes)) {
        Some(why) => Err(why),
        None => Ok(Body::OwnLimitsRaised { of: account.owner().clone(), more, changes, by }),
    }
}

/// Whether `owner` is a chat that `text` names, or whose path it is.
fn is_chat(owner: &AllowanceOwner, text: &str) -> bool {
    matches!(owner, AllowanceOwner::Chat { name, path: at } if name.as_str() == text || at.as_str() == text)
}

fn path_of(account: &OwnedAccount) -> Option<String> {
    if let AllowanceOwner::Chat { path: at, .. } = account.owner() { Some(format!("`{at}`")) } else { None }
}

/// Says that no chat `chat` with limits of its own is open, and which others are.
fn not_open(accounts: &Accounts, chat: &str) -> String {
    let name = |account: &OwnedAccount| match account.owner() {
        AllowanceOwner::Chat { name, .. } => Some(format!("`{name}`")),
        _ => None,
    };
    let mut names: Vec<String> = accounts.of_open_chats().filter_map(name).collect();
    names.sort();
    names.dedup();
    match names.as_slice() {
        [] => format!("no chat `{chat}` with limits of its own is open, and no other one is"),
        names => format!("no chat `{chat}` with limits of its own is open; open are: {}", names.join(", ")),
    }
}
