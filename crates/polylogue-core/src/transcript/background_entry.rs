//! A background task in a transcript.

use std::sync::Arc;

use crate::{BackgroundStatus, BackgroundTask, Event};

/// A background task in the transcript of the chat in which it was started.
#[derive(Debug, Clone)]
pub struct BackgroundEntry {
    /// The task.
    pub task: BackgroundTask,
    /// The `seq` of the event that started it.
    pub seq: u64,
    /// How it ended; `None` while it is open.
    pub status: Option<BackgroundStatus>,
    /// Whether its result was posted, and the agent that started it has had no turn since.
    pub is_unseen: bool,
    /// What was shared when it started.
    pub(super) around: Vec<Arc<Event>>,
    /// Usage and shared events within it. They count when it ends, so that the transcript does not depend on how far it got.
    pub(super) within: Vec<Arc<Event>>,
    /// Shared events within it that were rolled back: what they used counts all the same.
    pub(super) undone: Vec<Arc<Event>>,
    /// The `seq` up to which what it used counts: its end may be rolled back, with the turn in which it was awaited.
    pub(super) counted: u64,
}

impl BackgroundEntry {
    /// The shared events that were known where it started.
    pub(crate) fn around(&self) -> &[Arc<Event>] {
        &self.around
    }

    /// The `seq` up to which its events are known here.
    pub(crate) fn known_until(&self) -> u64 {
        let last = [&self.within, &self.undone].map(|events| events.last().map_or(0, |event| event.seq));
        last.into_iter().fold(self.seq, u64::max)
    }
}
