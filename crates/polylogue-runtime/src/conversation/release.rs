//! How a conversation is closed from outside, how a process ends with it, and who continues it.

use std::sync::atomic::Ordering;

use polylogue::runs::worker::{Release, is_refused, is_stopped};
use polylogue_core::{Due, Instruction};

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

    /// Lets workers continue the conversation if this process dies while it runs it. Writes nothing if they do so already.
    ///
    /// # Errors
    /// When the store cannot be written, or is no queue.
    pub async fn continue_if_lost(&self) -> Result<()> {
        if self.0.opened.is_continued {
            return Ok(());
        }
        let log = self.0.log.lock().await;
        Ok(log.as_ref().ok_or_else(|| self.gone())?.continue_if_lost().await?)
    }

    /// Logs what [`resume`](Self::resume) leaves to the next run - its message, and that it continues though a person has stopped it, or it
    /// failed permanently - for a process that hands it over: workers run it, then.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn log_resumption(&self) -> Result<()> {
        let mut log = self.0.log.lock().await;
        let log = log.as_mut().ok_or_else(|| self.gone())?;
        let events = log.events().await;
        if is_stopped(&events) || is_refused(&events) {
            drop(self.instruct(Instruction::Resume));
        }
        log.post_inbox().await?;
        Ok(())
    }

    /// Releases as [`release`](Self::release) a conversation that workers [continue if it is lost](Self::continue_if_lost): if
    /// it is not at rest, they continue it at `due`.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn release_until(&self, due: Due) -> Result<()> {
        let Some(log) = self.0.log.lock().await.take() else { return Ok(()) };
        let events = log.events().await;
        let waits = self.0.waits_at.load(Ordering::Relaxed) == events.len();
        Ok(log.release_at_rest(Release::of_log(&events, due, waits)).await?)
    }

    /// Releases the conversation, so that another process can open it. Workers that had to look at it leave it alone while it
    /// waits for a person, has ended or is paused. Other handles can no longer run it. Dropping the last handle does so, too,
    /// but cannot report errors.
    ///
    /// # Errors
    /// When the store cannot be written.
    pub async fn release(&self) -> Result<()> {
        self.release_until(Due::Now).await
    }

    /// As [`release`](Self::release) of one that was changed and not run: workers look at it when they had to before, and one that is parked
    /// stays so.
    pub(crate) async fn release_as_before(&self) -> Result<()> {
        let Some(log) = self.0.log.lock().await.take() else { return Ok(()) };
        Ok(log.release().await?)
    }

    /// Whether it was released, though there are handles of it.
    pub(crate) fn is_released(&self) -> bool {
        // While it runs, it is locked.
        self.0.log.try_lock().is_ok_and(|log| log.is_none())
    }
}
