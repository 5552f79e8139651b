//! Continuing a reply that was cut off.

use super::{ModelCall, Turn};
use crate::view::CONTINUE;
use crate::{Body, Error, Reply, Result};

impl Turn<'_> {
    /// Asks a model for the rest of its last reply, which was [cut off](crate::Finish::Length): it is told to continue, and the
    /// agent's view has both as one. None when it cannot be asked for more, as when the context is full: then there is only what there
    /// is.
    ///
    /// # Errors
    /// As [`ask_model`](Self::ask_model), failures of the model excepted.
    pub async fn continued(&mut self, ask: ModelCall<'_>) -> Result<Option<Reply>> {
        self.prompt(CONTINUE).await?;
        if let Some(Body::ContinuationFailed { .. }) = self.next_logged() {
            self.past.pop_front().into_iter().for_each(|event| self.give_back(event));
            return Ok(None);
        }
        match self.ask_model(ask).await {
            Ok(rest) => Ok(Some(rest)),
            Err(Error::Model(error)) => {
                let (who, why) = (self.me().clone(), error.message.into());
                self.record([Body::ContinuationFailed { who, why }]).await?;
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}
