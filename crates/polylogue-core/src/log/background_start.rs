//! The start of a background task, within the limits on open ones.

use std::sync::Arc;

use super::Log;
use super::background::Reached;
use super::event::{Body, Event};
use crate::{BackgroundTask, Path, Result};

impl Log {
    /// The limit that no further task in the chat `at` may pass now.
    pub(crate) async fn background_reached(&self, at: &Path, most: (usize, usize)) -> Option<Reached> {
        self.buffer.lock().await.totals.background.reached(at, most)
    }

    /// Appends the start of `task` in the chat `at`, unless as many are open as the chat and the run may have. Counted and appended
    /// under one lock, so that turns at the same time do not pass a limit together.
    pub(crate) async fn start_background(
        &self,
        at: &Path,
        task: BackgroundTask,
        most: (usize, usize),
    ) -> Result<std::result::Result<Vec<Arc<Event>>, Reached>> {
        let mut buffer = self.ready().await?;
        if let Some(reached) = buffer.totals.background.reached(at, most) {
            return Ok(Err(reached));
        }
        let batch = buffer.stage(at, self.now(), [Body::BackgroundStarted(task)]);
        self.settle(&mut buffer).await?;
        Ok(Ok(batch))
    }
}
