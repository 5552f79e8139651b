//! Appending the steps of chats.

use std::sync::Arc;

use super::{Body, Event, Log, RunTotals, turns_taken};
use crate::{Error, Interrupt, Path, Result};

impl Log {
    /// Appends the next step of a chat, if the limits allow the turns that it takes: no speaker is selected for a turn that may not begin.
    /// Chats that run in parallel cannot exceed them together. `None` if limits of the chat itself were raised since `last_raise`, or
    /// if the conversation is paused: its policy must look again.
    pub(crate) async fn append_step(
        &self,
        at: &Path,
        last_raise: Option<u64>,
        bodies: Vec<Body>,
    ) -> Result<Option<Vec<Arc<Event>>>> {
        let mut buffer = self.ready().await?;
        // The log may have a cancellation or a pause for which this has waited.
        self.check_not_cancelled()?;
        if self.is_at_pause() || is_raised_since(&buffer.totals, at, last_raise) {
            return Ok(None);
        }
        if let Some(reason) =
            self.limits_now().too_many_turns(buffer.totals.turns.begun(), turns_taken(&bodies))
        {
            return Err(Error::Interrupt(Interrupt::Limit(reason)));
        }
        let batch = buffer.stage(at, self.now(), bodies);
        self.settle(&mut buffer).await?;
        Ok(Some(batch))
    }

    /// Whether limits of the chat `at` itself were raised since the event `last_raise`.
    pub(crate) async fn is_raised_since(&self, at: &Path, last_raise: Option<u64>) -> bool {
        is_raised_since(&self.buffer.lock().await.totals, at, last_raise)
    }

    /// How many turns have begun in all chats.
    pub(crate) async fn turns_begun(&self) -> u64 {
        self.buffer.lock().await.totals.turns.begun()
    }
}

fn is_raised_since(totals: &RunTotals, at: &Path, last_raise: Option<u64>) -> bool {
    at.is_root() && last_raise != totals.last_raise
}
