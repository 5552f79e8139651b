//! What continues a conversation that has ended.

use polylogue_core::{LimitOverrides, Message, Name, StopReason};

use super::Conversation;
use crate::Result;
use crate::continuation::{Continuation, is_after_a_call, is_of_window, limits_of};

impl Conversation {
    /// Returns how the conversation can be continued after it ended for `reason`, or with `message` after that was refused for `reason`: more
    /// of what its limit counts if that is known to be enough for the next call, else another message, or another model if a context
    /// window was full. `None` if none of these does, such as under a budget with a model of unknown price or after a participant left.
    ///
    /// # Errors
    /// When the log is not a valid conversation. Waits while it runs.
    pub async fn continuation(
        &self,
        reason: &StopReason,
        message: Option<&Message>,
    ) -> Result<Option<Continuation>> {
        let events = self.events().await;
        let mut refused = reason.clone();
        // As much as it was last allowed, else as much as the limit; if that is too little, as much as the next step needs.
        for _ in 0..2 {
            let Some(limit) =
                limits_of(&refused).next().filter(|_| !is_after_a_call(&refused, self.limits()))
            else {
                break;
            };
            for more in [LimitOverrides::last_allowed(&events).instead_of(limit), limit] {
                match self.refused_for(more, message).await? {
                    None => return Ok(Some(Continuation::More(more))),
                    Some(reason) => refused = reason,
                }
            }
        }
        let (none, is_of_window) = (LimitOverrides::default(), is_of_window(reason));
        // With the same model it would be full again.
        if is_of_window && self.refused_for(none, message).await?.is_none() {
            return Ok(Some(Continuation::LargerModel { message: false }));
        }
        let another = Message::new(Name::user(), Continuation::MESSAGE);
        let refused = self.refused_for(none, Some(&another)).await?;
        let way = match is_of_window {
            true => Continuation::LargerModel { message: true },
            false => Continuation::Message,
        };
        Ok(refused.is_none().then_some(way))
    }

    /// Returns whether the conversation is closed and would continue if it were resumed under the limits that it has, such as after it was
    /// stopped.
    ///
    /// # Errors
    /// When the log is not a valid conversation. Waits while it runs.
    pub async fn continues(&self) -> Result<bool> {
        Ok(self.is_closed().await? && self.refused_for(LimitOverrides::default(), None).await?.is_none())
    }

    /// Why it would end again if it were opened for `more` and resumed, with `message` if there is one.
    async fn refused_for(
        &self,
        more: LimitOverrides,
        message: Option<&Message>,
    ) -> Result<Option<StopReason>> {
        let log = self.0.log.lock().await;
        let log = log.as_ref().ok_or_else(|| self.gone())?;
        let limits = log.limits_beyond(more).await.apply_to(*self.limits());
        Ok(match message {
            Some(message) => self.0.chat.ends_again_after_message(log, &limits, message).await?,
            None => self.raised(log, &limits, more).await?.err(),
        })
    }
}
