//! Background tasks of a running chat, between its turns, which start, await and cancel them, and the loop that runs them.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use futures_util::future::AbortHandle;
use tokio::sync::Notify;

use crate::{
    BackgroundResult, BackgroundStatus, BackgroundTask, Error, Event, Part, StopReason, ToolResult,
    ToolStatus,
};

/// How a background task came to rest.
#[derive(Debug, Clone)]
pub(crate) enum Rest {
    /// It ended.
    Ended { status: BackgroundStatus, parts: Vec<Part>, reason: Option<StopReason> },
    /// A person must answer first.
    Waiting,
    /// It was aborted.
    Aborted,
    /// The run ends: it was cancelled, reached a limit, or failed with an error that is not of the task.
    Interrupted(Error),
}

/// A background task that is to run.
pub(crate) struct Begun {
    pub(crate) task: BackgroundTask,
    /// The task of the chat.
    pub(crate) about: Arc<str>,
    /// What is shared of tool calls and values where it was started.
    pub(crate) around: Vec<Arc<Event>>,
}

/// The background tasks of one running chat: in memory, for one run.
#[derive(Default)]
pub(crate) struct BackgroundTasks {
    state: Mutex<TasksState>,
    changed: Notify,
}

#[derive(Default)]
struct TasksState {
    /// Those that the loop has not taken yet.
    begun: Vec<Begun>,
    /// Those that run, by agent and number, and those that wait for a person.
    running: BTreeMap<Key, AbortHandle>,
    rested: BTreeMap<Key, Rest>,
    /// How many answers of people tasks have continued with.
    answers: usize,
    /// Whether the steps of the chat have begun.
    has_steps: bool,
}

/// The agent that started a task, and its number.
type Key = (Arc<str>, u64);

fn key(task: &BackgroundTask) -> Key {
    (task.who.as_str().into(), task.number)
}

impl Rest {
    pub(crate) fn failed(why: impl Into<Arc<str>>, reason: Option<StopReason>) -> Self {
        Self::Ended { status: BackgroundStatus::Failed, parts: vec![Part::text(why)], reason }
    }

    pub(crate) fn cancelled(why: &str) -> Self {
        Self::Ended { status: BackgroundStatus::Cancelled, parts: vec![Part::text(why)], reason: None }
    }

    /// The result of `task` that the chat posts; `None` if it has not ended.
    pub(crate) fn result_of(self, task: &BackgroundTask) -> Option<BackgroundResult> {
        let Self::Ended { status, parts, reason } = self else { return None };
        // As the result of any call, it has a bound.
        let parts = ToolResult::new(ToolStatus::Done, parts).truncated().parts;
        let BackgroundTask { who, id, number, turn, .. } = task;
        Some(BackgroundResult {
            who: who.clone(),
            id: Arc::clone(id),
            status,
            parts,
            reason,
            number: *number,
            awaited: false,
            turn: *turn,
        })
    }
}

impl BackgroundTasks {
    fn state(&self) -> MutexGuard<'_, TasksState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Has the loop run a task.
    pub(super) fn begin(&self, begun: Begun) {
        self.state().begun.push(begun);
    }

    /// Has the loop run a task that was aborted, unless it is to run, runs or has a result.
    pub(crate) fn begin_again(&self, begun: Begun) {
        let (mut state, key) = (self.state(), key(&begun.task));
        let is_busy =
            state.running.contains_key(&key) || state.begun.iter().any(|other| other.task == begun.task);
        let is_aborted = state.rested.get(&key).is_none_or(|rest| matches!(rest, Rest::Aborted));
        if is_aborted && !is_busy {
            state.rested.remove(&key);
            state.begun.push(begun);
        }
    }

    /// The steps of the chat begin.
    pub(crate) fn begin_steps(&self) {
        self.state().has_steps = true;
        self.changed.notify_waiters();
    }

    /// Waits until the steps of the chat have begun.
    pub(crate) async fn steps_begun(&self) {
        self.until(|tasks| tasks.state().has_steps).await;
    }

    /// The tasks to run next.
    pub(crate) fn take_begun(&self) -> Vec<Begun> {
        std::mem::take(&mut self.state().begun)
    }

    /// A task runs from now on, until `abort`.
    pub(crate) fn runs(&self, task: &BackgroundTask, abort: AbortHandle) {
        self.state().running.insert(key(task), abort);
    }

    /// A task came to rest.
    pub(crate) fn rests(&self, task: &BackgroundTask, rest: Rest) {
        let mut state = self.state();
        state.running.remove(&key(task));
        state.rested.insert(key(task), rest);
        drop(state);
        self.changed.notify_waiters();
    }

    /// A task waits for a person.
    pub(crate) fn waits(&self, task: &BackgroundTask) {
        self.state().rested.insert(key(task), Rest::Waiting);
        self.changed.notify_waiters();
    }

    /// A task that waited continues with an answer.
    pub(crate) fn continues(&self, task: &BackgroundTask) {
        let mut state = self.state();
        state.rested.remove(&key(task));
        state.answers += 1;
        drop(state);
        self.changed.notify_waiters();
    }

    /// How many answers tasks have continued with: while this stays the same, no task that waited has continued.
    pub(crate) fn answers(&self) -> usize {
        self.state().answers
    }

    /// How `task` came to rest, if it did.
    pub(crate) fn rest_of(&self, task: &BackgroundTask) -> Option<Rest> {
        self.state().rested.get(&key(task)).cloned()
    }

    /// Why the run ends, if a task came to know of it.
    pub(crate) fn interruption(&self) -> Option<Error> {
        self.state().rested.values().find_map(|rest| match rest {
            Rest::Interrupted(error) => Some(error.clone()),
            _ => None,
        })
    }

    /// Whether any task runs, and does not wait for a person, or is to run.
    pub(crate) fn is_busy(&self) -> bool {
        let state = self.state();
        !state.begun.is_empty() || state.running.keys().any(|key| !state.rested.contains_key(key))
    }

    /// Waits until `is_so`, which changes when a task comes to rest, or continues with an answer.
    pub(crate) async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        loop {
            // Subscribed before the check, so that no change is missed.
            let changed = self.changed.notified();
            if is_so(self) {
                return;
            }
            changed.await;
        }
    }

    /// Waits until all tasks have come to rest.
    pub(crate) async fn rested(&self) {
        self.until(|tasks| !tasks.is_busy()).await;
    }

    /// Aborts `task`, with its calls in flight, and waits until it has come to rest. Returns how it did.
    pub(crate) async fn abort(&self, task: &BackgroundTask, why: &str) -> Rest {
        {
            let mut state = self.state();
            state.begun.retain(|begun| begun.task != *task);
            state.running.get(&key(task)).into_iter().for_each(AbortHandle::abort);
        }
        self.until(|tasks| !tasks.state().running.contains_key(&key(task))).await;
        match self.rest_of(task) {
            Some(rest @ Rest::Ended { .. }) => rest,
            // What waits for a person or for the next run is not continued either.
            _ => Rest::cancelled(why),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;
    use crate::Name;

    #[test]
    fn a_task_that_was_aborted_runs_again_and_no_other_one() {
        let task = BackgroundTask {
            who: Name::user(),
            id: "look-1".into(),
            number: 1,
            target: "look".into(),
            task: "Look.".into(),
            turn: false,
        };
        let begun = || Begun { task: task.clone(), about: "".into(), around: Vec::new() };
        let begins_again = |tasks: &BackgroundTasks| {
            let before = tasks.state().begun.len();
            tasks.begin_again(begun());
            tasks.state().begun.len() > before
        };
        let tasks = BackgroundTasks::default();
        tasks.begin(begun());
        assert!(!begins_again(&tasks), "it is to run");
        tasks.abort(&task, "the chat ends").now_or_never().unwrap();
        assert!(begins_again(&tasks), "it did not run yet");
        tasks.take_begun();
        let handle = || AbortHandle::new_pair().0;
        tasks.runs(&task, handle());
        assert!(!begins_again(&tasks), "it runs");
        tasks.rests(&task, Rest::Aborted);
        assert!(!tasks.is_busy() && begins_again(&tasks) && tasks.is_busy());
        tasks.take_begun();
        tasks.runs(&task, handle());
        assert!(tasks.is_busy(), "that it was aborted before is forgotten");
        tasks.rests(&task, Rest::failed("no", None));
        assert!(!begins_again(&tasks), "it has a result");
    }
}
