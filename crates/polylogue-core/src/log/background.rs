//! How many background tasks are open.

use super::event::{Body, Event};
use crate::Path;

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

    /// Those that were started in the chat `at`.
    pub(crate) fn in_chat(&self, at: &Path) -> usize {
        self.0.iter().filter(|(chat, ..)| chat == at).count()
    }

    /// All of them.
    pub(crate) const fn in_run(&self) -> usize {
        self.0.len()
    }
}
