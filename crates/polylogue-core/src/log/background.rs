//! How many background tasks are open.

use super::event::{Body, Event};
use crate::Path;

/// A limit on open background tasks, and what it is a limit of.
pub(crate) type Reached = (usize, &'static str);

/// The background tasks of a run. Rebuilt from the events of the log alone.
#[derive(Default)]
pub(crate) struct OpenTasks(Vec<StartedTask>);

/// A background task that was started.
struct StartedTask {
    /// The chat in which it was started, and the `seq` of the event.
    chat: Path,
    started: u64,
    /// Where it works.
    at: Path,
    /// The event that ended it, unless that is rolled back: its chat, and its `seq`.
    ended: Option<(Path, u64)>,
}

impl OpenTasks {
    pub(crate) fn add(&mut self, event: &Event) {
        let at = &event.chat;
        match &event.body {
            Body::BackgroundStarted(task) => self.0.push(StartedTask {
                chat: at.clone(),
                started: event.seq,
                at: at.background(&task.who, task.number),
                ended: None,
            }),
            // Those within a task end with it.
            Body::BackgroundEnded(result) => {
                let ended = at.background(&result.who, result.number);
                self.end(event, |task| task.at == ended || task.at.is_within(&ended));
            }
            // A chat within another that is closed is not opened again.
            Body::Closed { .. } if !at.is_root() => self.end(event, |task| task.chat == *at),
            Body::RolledBack { since } => {
                self.0.retain(|task| task.chat != *at || task.started < *since);
                let is_undone = |(chat, seq): &mut (Path, u64)| chat == at && *seq >= *since;
                self.0.iter_mut().for_each(|task| drop(task.ended.take_if(is_undone)));
            }
            _ => {}
        }
    }

    fn end(&mut self, event: &Event, ends: impl Fn(&StartedTask) -> bool) {
        for task in self.0.iter_mut().filter(|task| task.ended.is_none() && ends(task)) {
            task.ended = Some((event.chat.clone(), event.seq));
        }
    }

    /// The limit that no further one in the chat `at` may pass: that of the chat, or that of the run.
    pub(crate) fn reached(&self, at: &Path, (of_chat, of_run): (usize, usize)) -> Option<Reached> {
        let open: Vec<&StartedTask> = self.0.iter().filter(|task| task.ended.is_none()).collect();
        let in_chat = open.iter().filter(|task| task.chat == *at).count();
        match (in_chat >= of_chat, open.len() >= of_run) {
            (true, _) => Some((of_chat, "of this chat")),
            (false, true) => Some((of_run, "of this run")),
            (false, false) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{BackgroundResult, BackgroundStatus, BackgroundTask, Name, Timestamp};

    #[test]
    fn a_task_is_open_again_when_its_end_is_rolled_back_and_none_when_its_start_is() {
        let (who, id) = (Name::user(), "look-1".into());
        let (target, task) = ("look".into(), "Look.".into());
        let task = BackgroundTask { who: who.clone(), id, number: 1, target, task, turn: false };
        let (id, status, parts) = (Arc::clone(&task.id), BackgroundStatus::Completed, Vec::new());
        let result =
            BackgroundResult { who, id, status, parts, reason: None, number: 1, awaited: true, turn: false };
        let bodies = [
            Body::BackgroundStarted(task),
            Body::BackgroundEnded(result),
            Body::RolledBack { since: 1 },
            Body::RolledBack { since: 0 },
        ];
        let mut tasks = OpenTasks::default();
        let is_open = (0..).zip(bodies).map(|(seq, body)| {
            let (at, time) = (Path::root(), Timestamp(0));
            tasks.add(&Event { seq, chat: at, time, ran_ms: 0, inbox: None, body });
            tasks.reached(&Path::root(), (1, 1)).is_some()
        });
        assert_eq!(is_open.collect::<Vec<_>>(), [true, false, true, false]);
    }
}
