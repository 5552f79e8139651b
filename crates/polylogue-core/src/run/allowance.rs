//! Limits of a chat and of its agents: the chat ends at them, and outer chats continue, unless a person is asked.

use super::RunningChat;
use crate::log::AtLimit;
use crate::{AllowanceOwner, Chat, Error, Interrupt, Result, Status, StopReason};

impl RunningChat<'_> {
    /// Opens the account of the chat, if it has limits.
    pub(super) async fn open_account(&self, chat: &Chat) {
        if let Some(allowance) = chat.setup.allowance {
            let owner = AllowanceOwner::Chat { name: chat.name.clone(), path: self.transcript.at().clone() };
            self.log.open_chat_account(&owner, allowance).await;
        }
    }

    /// Closes the chat if `error` is that its own limit, or one of its agents, is reached, and ends it.
    ///
    /// # Errors
    /// Any other `error`. With a limit that a person is asked to raise, the run ends, and this chat and its turns stay open.
    pub(super) async fn close_at_own_limit(&mut self, chat: &Chat, error: Error) -> Result<Status> {
        let reason = match error {
            Error::Interrupt(Interrupt::Limit(reason)) if self.is_own(chat, &reason) => reason,
            error => return Err(error),
        };
        match Box::pin(self.log.at_limit(&reason)).await {
            AtLimit::Ends => {
                let ended = self.cancel_tasks().await?;
                self.close_after(ended, reason).await
            }
            AtLimit::Asks(_) | AtLimit::Raised => Err(Interrupt::Limit(reason).into()),
        }
    }

    fn is_own(&self, chat: &Chat, reason: &StopReason) -> bool {
        match reason {
            StopReason::Allowance { of: AllowanceOwner::Agent(name), .. } => chat.agent(name).is_some(),
            StopReason::Allowance { of: AllowanceOwner::Chat { path: at, .. }, .. } => {
                at == self.transcript.at()
            }
            _ => false,
        }
    }
}
