//! How many background tasks are open.

use super::event::{Body, Event};
use crate::Path;

/// A limit on open background tasks, and what it is a limit of.
pub(crate) type Reached = (usize, &'static str);

/// The open background tasks of a run, with the `seq` of the events that started them. Rebuilt from the events of the log alone.
#[derive(Default)]
pub(crate) struct OpenTasks(Vec<(Path, u64, Path)>);

impl OpenTasks {
    pub(crate) fn add(&mut self, event: &Event) {
        let at = &event.at;
        match &event.body {
            Body::BackgroundStarted(task) => {
                self.0.push((at.clone(), event.seq, at.background(&task.who, task.number)));
            }
            // Those within a task end with it.
            Body::BackgroundEnded(result) => {
                let ended = at.background(&result.who, result.number);
                self.0.retain(|(.., task)| *task != ended && !task.is_within(&ended));
            }
            // A chat within another that is closed is not opened again.
            Body::Closed { .. } if !at.is_root() => self.0.retain(|(chat, ..)| chat != at),
            Body::RolledBack { since } => self.0.retain(|(chat, seq, _)| chat != at || seq < since),
            _ => {}
        }
    }

    /// The limit that no further one in the chat `at` may pass: that of the chat, or that of the run.
    pub(crate) fn reached(&self, at: &Path, (of_chat, of_run): (usize, usize)) -> Option<Reached> {
        let in_chat = self.0.iter().filter(|(chat, ..)| chat == at).count();
        match (in_chat >= of_chat, self.0.len() >= of_run) {
            (true, _) => Some((of_chat, "of this chat")),
            (false, true) => Some((of_run, "of this run")),
            (false, false) => None,
        }
    }
}
