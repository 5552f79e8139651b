//! Continues a truncated reply.

use super::{ModelCall, Turn};
use crate::view::CONTINUE_CUT_OFF;
use crate::{Body, Error, Reply, Result};

impl Turn<'_> {
    /// Asks a model for the rest of its last reply, which was [truncated](crate::FinishReason::Length): it is prompted to
    /// continue, and the agent's view has both as one. `None` if that is not possible, for instance because the
    /// context is full, or because [`reply_tokens`](crate::Limits::reply_tokens) chose its length: then the reply stays unchanged.
    ///
    /// # Errors
    /// As [`ask_model`](Self::ask_model), except failures of the model.
    pub async fn continue_reply(&mut self, ask: ModelCall<'_>) -> Result<Option<Reply>> {
        if self.stays_cut(ask) {
            return Ok(None);
        }
        self.prompt(CONTINUE_CUT_OFF).await?;
        self.replay_forms();
        if self.replay_failure() {
            return Ok(None);
        }
        match self.ask_model(ask).await {
            Ok(rest) => Ok(Some(rest)),
            Err(Error::Model(error)) => {
                if !self.replay_failure() {
                    let (who, why) = (self.me().clone(), error.message.into());
                    self.record([Body::ContinuationFailed { who, why }]).await?;
                }
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    fn replay_failure(&mut self) -> bool {
        self.replay_if(|body| matches!(body, Body::ContinuationFailed { .. }))
    }

    /// Whether a limit on replies ends it here. One that was, or was not, continued under another limit stays so.
    fn stays_cut(&self, ask: ModelCall<'_>) -> bool {
        match self.next_logged() {
            Some(Body::Prompted { text, .. }) => **text != *CONTINUE_CUT_OFF,
            Some(_) => true,
            None => self.limited(ask).is_some(),
        }
    }
}
