//! Ends of a conversation from outside.

use super::Conversation;
use crate::Result;

impl Conversation {
    /// Closes the conversation from outside, for the reason that `by` stopped it. Waits while it runs.
    ///
    /// # Errors
    /// When it has not begun, or the log cannot be written.
    pub async fn close(&self, by: &str) -> Result<()> {
        let mut log = self.0.log.lock().await;
        let log = log.as_mut().ok_or_else(|| self.gone())?;
        Ok(self.0.chat.close(log, by).await?)
    }

    /// Gives up the turns that are open after a cancellation or an error, and closes the conversation, so that a message that
    /// is [sent](Self::send) begins new ones. Does nothing if it is closed. Waits while it runs.
    ///
    /// # Errors
    /// When it has not begun, or the log cannot be written.
    pub async fn give_up(&self, by: &str) -> Result<()> {
        let mut log = self.0.log.lock().await;
        let log = log.as_mut().ok_or_else(|| self.gone())?;
        if log.transcript().await?.closed().is_none() {
            self.0.chat.end_open_turns(log).await?;
        }
        Ok(self.0.chat.close(log, by).await?)
    }
}
