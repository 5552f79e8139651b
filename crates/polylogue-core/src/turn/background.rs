//! Starts, awaits and cancels background tasks within a turn.

use std::sync::Arc;

use super::Turn;
use super::background_tasks::{Begun, Rest};
use crate::transcript::counts_at_end;
use crate::{BackgroundResult, BackgroundStatus, BackgroundTask, Body, Event, Interrupt, Result};

/// What a background task does.
#[derive(Clone, Copy)]
enum TaskKind {
    /// An agent or a chat is called.
    Call,
    /// The turn that starts it continues there.
    Turn,
}

/// How an agent has a background task end.
#[derive(Clone, Copy)]
enum TaskEnd {
    /// It waits for the end.
    Awaited,
    /// It cancels the task.
    Cancelled,
}

/// The result of starting a background task.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum BackgroundStart {
    /// It was started, and has this id.
    Started(Arc<str>),
    /// It was refused, for this reason.
    Refused(Arc<str>),
}

/// A background task that the agent whose turn it is started, and its state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BackgroundTaskState {
    /// The task.
    pub task: BackgroundTask,
    /// How it ended; `None` while it is open.
    pub status: Option<BackgroundStatus>,
}

impl Turn<'_> {
    /// Starts a background task: the agent that [`Agent::background_agent`](crate::Agent::background_agent) returns for
    /// `target` receives the message `task`. The turn continues at once. The result is posted in this chat when the task
    /// ends, unless this agent [waits](Self::wait_for_background) for it.
    ///
    /// It is refused when there is no such agent, or when too many tasks are open: `max` of this agent in this chat, or the
    /// limit of the chat ([`max_background`](crate::ChatBuilder::max_background)) or of the run
    /// ([`Limits::background`](crate::Limits::background)).
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn start_background(
        &mut self,
        target: &str,
        task: impl Into<Arc<str>>,
        max: usize,
    ) -> Result<BackgroundStart> {
        self.begin_background(target, task.into(), max, TaskKind::Call).await
    }

    /// Moves the work of this turn to a background task: the agent that
    /// [`Agent::background_agent`](crate::Agent::background_agent) returns for this agent's own name receives the message
    /// `task`. End the turn without a message then. When the task ends, the chat gives this agent a turn between two steps, in
    /// which it says the [result](crate::Transcript::result_of_turn).
    ///
    /// It is refused when such a task is open, and for the reasons of [`start_background`](Self::start_background).
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn move_to_background(&mut self, task: impl Into<Arc<str>>) -> Result<BackgroundStart> {
        let me = self.me().clone();
        let is_open = |own: &BackgroundTaskState| own.task.turn && own.status.is_none();
        let max = if self.background_tasks().iter().any(is_open) { 0 } else { usize::MAX };
        self.begin_background(me.as_str(), task.into(), max, TaskKind::Turn).await
    }

    async fn begin_background(
        &mut self,
        target: &str,
        task: Arc<str>,
        max: usize,
        kind: TaskKind,
    ) -> Result<BackgroundStart> {
        if let Some(event) = self.past.pop_front_if(|event| is_start_of(event, target)) {
            let Body::BackgroundStarted(started) = &event.body else {
                return Err(self.diverged(&event, "starts a task"));
            };
            let id = Arc::clone(&started.id);
            self.replay_event(event);
            return Ok(BackgroundStart::Started(id));
        }
        let number = self.next_background();
        let id: Arc<str> = format!("{target}-{number}").into();
        let (who, target) = (self.me().clone(), target.into());
        let turn = matches!(kind, TaskKind::Turn);
        let task = BackgroundTask { who, id: Arc::clone(&id), number, target, task, turn };
        // Where the turn continued in another way, it was refused then, even if there is room by now.
        let was_refused = || Arc::from("too many background tasks were open");
        let refused = self.refuses_background(&task, max).await;
        if let Some(why) = refused.or_else(|| (!self.past.is_empty()).then(was_refused)) {
            return Ok(BackgroundStart::Refused(why));
        }
        let (around, about) = (self.shared(&[]), self.transcript.task().into());
        if let Some(why) = self.record_start(&task).await? {
            return Ok(BackgroundStart::Refused(why));
        }
        self.background.begin(Begun { task, about, around });
        Ok(BackgroundStart::Started(id))
    }

    /// Waits until the background task `id` of this agent ends, and returns its result, which is then not posted. `None` if there is no
    /// open task of that id.
    ///
    /// # Errors
    /// [`Interrupt::Waiting`] when a person must answer in it first. When a limit of the run is reached, the run is cancelled, or
    /// the log cannot be written.
    pub async fn wait_for_background(&mut self, id: &str) -> Result<Option<BackgroundResult>> {
        self.end_background(id, TaskEnd::Awaited).await
    }

    /// Cancels the background task `id` of this agent: calls in flight are aborted. Returns its result, which has come if it ended
    /// before. `None` if there is no open task of that id.
    ///
    /// # Errors
    /// When the log cannot be written.
    pub async fn cancel_background(&mut self, id: &str) -> Result<Option<BackgroundResult>> {
        self.end_background(id, TaskEnd::Cancelled).await
    }

    /// Returns the background tasks that this agent started in this chat, in order.
    pub fn background_tasks(&self) -> Vec<BackgroundTaskState> {
        // What a resumed turn has not replayed yet has not happened.
        let next = self.past.front().map_or(u64::MAX, |event| event.seq);
        let ends_later = |id: &str| {
            let mut later = self.past.iter().chain(self.ends.iter().filter(|end| end.seq > next));
            later.any(|event| matches!(&event.body, Body::BackgroundEnded(end) if *end.id == *id))
        };
        // Those of this turn are in the journal, also after a resumption.
        let is_of_turn = |seq: u64| self.journal.iter().chain(&self.past).any(|event| event.seq == seq);
        let known = self.transcript.background_tasks().iter();
        let known = known.filter(|entry| entry.task.who == *self.me() && !is_of_turn(entry.seq));
        let mut own: Vec<BackgroundTaskState> = known
            .map(|entry| BackgroundTaskState {
                task: entry.task.clone(),
                status: entry.status.filter(|_| !ends_later(&entry.task.id)),
            })
            .collect();
        for event in self.journal.iter().chain(self.ends.iter().filter(|end| end.seq < next)) {
            match &event.body {
                Body::BackgroundStarted(task) => {
                    own.push(BackgroundTaskState { task: task.clone(), status: None });
                }
                Body::BackgroundEnded(result) => {
                    let ended = own.iter_mut().filter(|own| own.task.id == result.id);
                    ended.for_each(|own| own.status = Some(result.status));
                }
                _ => {}
            }
        }
        own
    }

    async fn end_background(&mut self, id: &str, how: TaskEnd) -> Result<Option<BackgroundResult>> {
        let is_end =
            |event: &mut Arc<Event>| matches!(&event.body, Body::BackgroundEnded(end) if *end.id == *id);
        if let Some(event) = self.past.pop_front_if(is_end) {
            let Body::BackgroundEnded(result) = &event.body else {
                return Err(self.diverged(&event, "ends a task"));
            };
            let result = result.clone();
            self.replay_event(event);
            return Ok(Some(result));
        }
        let open =
            self.background_tasks().into_iter().find(|own| *own.task.id == *id && own.status.is_none());
        let Some(BackgroundTaskState { task, .. }) = open.filter(|_| self.past.is_empty()) else {
            return Ok(None);
        };
        // This turn has no call in flight: it would have the next event.
        self.doubt = None;
        let rest = match how {
            TaskEnd::Awaited => self.awaited(&task).await?,
            TaskEnd::Cancelled => {
                // What an earlier process lost of it is charged first.
                let _no_calls = self.log.all_checked().await;
                self.background.abort(&task, "the agent that started it cancelled it").await
            }
        };
        let Some(result) = rest.result_of(&task) else { return Err(Interrupt::Waiting.into()) };
        let result = BackgroundResult { awaited: true, ..result };
        let known = self.transcript.background_tasks().iter().find(|entry| entry.task == task);
        let since = known.map_or(0, crate::BackgroundEntry::known_until);
        let path = self.transcript.path_of_background(&task);
        self.within.extend(self.log.events_within(&path, since).await);
        self.record([Body::BackgroundEnded(result.clone())]).await?;
        Ok(Some(result))
    }

    /// Waits for the end of `task`.
    async fn awaited(&self, task: &BackgroundTask) -> Result<Rest> {
        let background = &self.background;
        background.until(|tasks| tasks.rest_of(task).is_some() || tasks.interruption().is_some()).await;
        match (background.rest_of(task), background.interruption()) {
            (Some(rest @ Rest::Ended { .. }), _) => Ok(rest),
            (_, Some(error)) => Err(error),
            _ => Err(Interrupt::Waiting.into()),
        }
    }

    fn next_background(&self) -> u64 {
        let in_turn = self.journal.iter().rev().find_map(|event| match &event.body {
            Body::BackgroundStarted(task) => Some(task.number + 1),
            _ => None,
        });
        in_turn.unwrap_or(0).max(self.transcript.next_background(self.me()))
    }

    /// Appends the start of `task`, unless another turn has started one since [`refuses_background`](Self::refuses_background): then why
    /// not. Without an event, the turn stays in doubt.
    async fn record_start(&mut self, task: &BackgroundTask) -> Result<Option<Arc<str>>> {
        let (in_doubt, doubt) = (self.in_doubt, self.doubt.take());
        self.before_record().await?;
        match self.log.start_background(self.transcript.at(), task.clone(), self.most_background()).await? {
            Ok(events) => {
                events.into_iter().for_each(|event| self.enter(event));
                Ok(None)
            }
            Err((limit, of)) => {
                (self.in_doubt, self.doubt) = (in_doubt, doubt);
                Ok(Some(too_many(limit, of)))
            }
        }
    }

    /// The limits on open background tasks of the chat and of the run.
    fn most_background(&self) -> (usize, usize) {
        (self.chat.max_background(), self.log.limits_now().background)
    }

    /// Why the task is not started.
    async fn refuses_background(&self, task: &BackgroundTask, max: usize) -> Option<Arc<str>> {
        if !self.chat.has_background(self.me(), &task.target) {
            return Some(format!("`{}` cannot work in the background here", task.target).into());
        }
        let depth = self.transcript.path_of_background(task).depth();
        if depth > self.log.depth() {
            return Some(format!("chats are nested at most {} deep", self.log.depth()).into());
        }
        let open = self.background_tasks().iter().filter(|own| own.status.is_none()).count();
        if open >= max {
            return Some(too_many(max, "of this agent"));
        }
        let reached = self.log.background_reached(self.transcript.at(), self.most_background()).await;
        reached.map(|(limit, of)| too_many(limit, of))
    }
}

fn too_many(limit: usize, of: &str) -> Arc<str> {
    let s = if limit == 1 { " is" } else { "s are" };
    format!("{limit} background task{s} open, the limit {of}: wait for one, or cancel one").into()
}

fn is_start_of(event: &Event, target: &str) -> bool {
    matches!(&event.body, Body::BackgroundStarted(task) if *task.target == *target)
}

impl crate::Log {
    /// The events of the chat `at` and of those within it after the event `since` that count for the chat around it.
    pub(crate) async fn events_within(&self, at: &crate::Path, since: u64) -> Vec<Arc<Event>> {
        let counts = |event: &&Arc<Event>| {
            (event.chat == *at || event.chat.is_within(at)) && counts_at_end(&event.body)
        };
        self.buffer.lock().await.since(since + 1).iter().filter(counts).cloned().collect()
    }
}
