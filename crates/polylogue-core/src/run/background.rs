//! Background tasks: run next to the steps of the chat in which they were started, and posted between two of them.

use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll};

use futures_util::future::{BoxFuture, Either, abortable, select};
use futures_util::stream::{FuturesUnordered, StreamExt as _};

use super::RunningChat;
use super::call::{Begun as BegunCall, Invocation, Invoked, received_from};
use super::step::is_end_of_talk;
use crate::limits::CancelMode;
use crate::log::{Answer, AtLimit, Timing, UncheckedTurn};
use crate::turn::{BackgroundTasks, Begun, Rest};
use crate::{
    Agent as _, AllowanceOwner, BackgroundEntry, BackgroundStatus, BackgroundTask, Body, Chat, Choice,
    Chooser, Error, Interrupt, Log, Message, Name, OpenBackground, OpenQuestion, Part, Path, Result, Status,
    Step, StopReason, TurnRequest,
};

/// Why open tasks are cancelled.
const CHAT_ENDED: &str = "the chat of the agent that started it ended";

/// Where the tasks of a chat run.
pub(super) struct TaskContext<'l> {
    log: &'l Log,
    at: Path,
    tasks: Arc<BackgroundTasks>,
}

impl<'l> RunningChat<'l> {
    /// Where its tasks run, with those that an earlier run left open.
    pub(super) fn task_context(&self) -> (TaskContext<'l>, Vec<(Begun, UncheckedTurn<'l>)>) {
        let transcript = &self.transcript;
        let context =
            TaskContext { log: self.log, at: transcript.at().clone(), tasks: Arc::clone(&self.tasks) };
        let open = transcript.open_background().filter(|_| transcript.closed().is_none());
        let begun = |entry: &BackgroundEntry| {
            let (around, about) = (entry.around().to_vec(), transcript.task().into());
            let begun = Begun { task: entry.task.clone(), about, around };
            // No call is sent before the turns of all tasks are checked.
            (begun, UncheckedTurn::new(self.log))
        };
        (context, open.map(begun).collect())
    }

    /// Posts the results that are there.
    pub(super) async fn post_results(&mut self) -> Result<()> {
        let open: Vec<BackgroundTask> =
            self.transcript.open_background().map(|entry| entry.task.clone()).collect();
        for task in open {
            let Some(result) = self.tasks.rest_of(&task).and_then(|rest| rest.result_of(&task)) else {
                continue;
            };
            self.take_in_within(&task).await?;
            self.append([Body::BackgroundEnded(result)]).await?;
        }
        Ok(())
    }

    /// Takes in what happened within a task.
    async fn take_in_within(&mut self, task: &BackgroundTask) -> Result<()> {
        let known = self.transcript.open_background().find(|entry| entry.task == *task);
        let since = known.map_or(0, BackgroundEntry::known_until);
        let events = self.log.events_within(&self.transcript.path_of_background(task), since).await;
        self.replies.extend(events.iter().cloned());
        self.take_in(events)
    }

    /// Whether the chat, which would end for `reason`, continues for the sake of its background tasks.
    pub(super) fn waits_at(&self, chat: &Chat, reason: &StopReason) -> bool {
        let is_over = self.transcript.ended_by().is_some();
        is_end_of_talk(reason) && !is_over && chat.setup.open_background == OpenBackground::Wait
    }

    /// The turn of a participant for the result of its turn that ended as a background task.
    pub(super) fn result_turn(&self) -> Option<Step> {
        self.transcript.unsaid_results().next().map(for_result)
    }

    /// A turn for an agent that has not seen the result of a task yet, if the policy takes it.
    pub(super) fn follow_up(&self, chat: &Chat) -> Option<Step> {
        let takes = |who: &&Name| {
            self.transcript.follow_ups_of(who) < chat.setup.max_follow_ups
                && chat.policy().takes_follow_up(&self.transcript, who)
        };
        self.transcript.unseen_results().find(takes).map(for_result)
    }

    /// Waits for open tasks: until one has come to rest, or something is to be done between two steps. Returns the status of the chat
    /// if all of them wait for people.
    pub(super) async fn wait_for_tasks(&mut self) -> Result<Option<Status>> {
        // Nothing is left unwritten for that long.
        self.log.flush().await?;
        let tasks = Arc::clone(&self.tasks);
        let open: Vec<BackgroundTask> =
            self.transcript.open_background().map(|entry| entry.task.clone()).collect();
        let has_ended = |tasks: &BackgroundTasks| {
            open.iter().any(|task| matches!(tasks.rest_of(task), Some(Rest::Ended { .. })))
        };
        let is_over =
            tasks.until(|tasks| has_ended(tasks) || tasks.interruption().is_some() || !tasks.is_busy());
        let cancelled = self.log.cancelled(CancelMode::AfterStep);
        let instructed = async {
            match self.transcript.at().is_root() {
                true => self.log.inbox.changed(&[Timing::BetweenSteps]).await,
                false => std::future::pending().await,
            }
        };
        let is_over = match select(pin!(is_over), select(pin!(cancelled), pin!(instructed))).await {
            Either::Left(_) => true,
            Either::Right(_) => false,
        };
        self.log.check_not_cancelled()?;
        if let Some(error) = tasks.interruption() {
            return Err(error);
        }
        match is_over && !has_ended(&tasks) {
            true => self.waiting(tasks.answers()).await,
            false => Ok(None),
        }
    }

    /// Waits for tasks while turns wait for people, until all of them have come to rest. Returns the status of the chat. `None` if the turns
    /// act again, as in a new run: one of them was answered meanwhile, or may have awaited a task that has continued with an answer since
    /// there were `answers`.
    pub(super) async fn rest_with_tasks(&mut self, answers: usize) -> Result<Option<Status>> {
        let tasks = Arc::clone(&self.tasks);
        let answer = {
            let rests = pin!(tasks.until(|tasks| !tasks.is_busy() || tasks.answers() != answers));
            match select(rests, pin!(self.answer())).await {
                Either::Left(_) => None,
                Either::Right((answer, _)) => Some(answer),
            }
        };
        let waiting = match answer {
            Some(answer) => {
                let answered = self.log.provide(answer).await?;
                let at = self.transcript.at().clone();
                // What is within a turn is read with its chat.
                self.take_in(answered.into_iter().filter(|event| event.chat == at))?;
                None
            }
            None => {
                tasks.interruption().map_or(Ok(()), Err)?;
                self.waiting(answers).await?
            }
        };
        if waiting.is_none() {
            self.resumed = true;
            // They have seen the events of these turns, which are replayed.
            self.views.clear();
        }
        Ok(waiting)
    }

    /// The first answer to a turn that waits for a person, also in chats within it.
    async fn answer(&self) -> Answer {
        let at = self.transcript.at();
        let is_of_turn = |open: &OpenQuestion| {
            let asks =
                |who: &Name| open.chat == *at && open.question.who == *who || open.chat.is_run_by(at, who);
            self.transcript.current_speakers().any(asks)
        };
        let mut asked = self.log.open_questions().await;
        asked.retain(is_of_turn);
        self.log.answer_to(&asked).await
    }

    /// The status of a chat that waits for people. `None` if a task has continued with an answer since there were `answers`, also while this
    /// waits for the log.
    async fn waiting(&self, answers: usize) -> Result<Option<Status>> {
        let questions = self.log.questions().await?;
        Ok((self.tasks.answers() == answers).then_some(Status::Waiting(questions)))
    }

    /// Cancels open tasks. Returns their results, which precede the end of the chat in the log.
    pub(super) async fn cancel_tasks(&mut self) -> Result<Vec<Body>> {
        let open: Vec<BackgroundTask> =
            self.transcript.open_background().map(|entry| entry.task.clone()).collect();
        // What an earlier process lost of them is charged first.
        let log = self.log;
        let _no_calls = if open.is_empty() { None } else { log.all_checked().await };
        let mut bodies = Vec::new();
        for task in open {
            let rest = self.tasks.abort(&task, CHAT_ENDED).await;
            self.take_in_within(&task).await?;
            bodies.extend(rest.result_of(&task).map(Body::BackgroundEnded));
        }
        Ok(bodies)
    }

    /// Has those tasks continue that were [cancelled](Self::cancel_tasks) for an end of the chat that did not come.
    pub(super) fn run_aborted_tasks(&self) {
        for entry in self.transcript.open_background() {
            let (about, around) = (self.transcript.task().into(), entry.around().to_vec());
            self.tasks.begin_again(Begun { task: entry.task.clone(), about, around });
        }
    }
}

impl Log {
    /// The end of open tasks of the outermost chat, which is closed from outside.
    pub(crate) fn cancelled_tasks(open: &[BackgroundEntry]) -> Vec<Body> {
        let open = open.iter().filter(|entry| entry.status.is_none());
        let ended = open.filter_map(|entry| Rest::cancelled(CHAT_ENDED).result_of(&entry.task));
        ended.map(Body::BackgroundEnded).collect()
    }
}

impl<'l> TaskContext<'l> {
    /// Does `steps`, the steps of the chat, and runs its tasks next to them until they are over.
    pub(super) fn run_with<'f, T>(
        self,
        chat: &'f Chat,
        open: Vec<(Begun, UncheckedTurn<'l>)>,
        steps: BoxFuture<'f, T>,
    ) -> StepsAndTasks<'f, 'l, T> {
        let begun = open.into_iter().map(|(begun, doubt)| (begun, Some(doubt))).collect();
        StepsAndTasks { context: self, chat, begun, running: None, steps }
    }

    /// Runs a task until it comes to rest.
    fn work<'f>(&self, chat: &'f Chat, begun: Begun, doubt: Option<UncheckedTurn<'l>>) -> BoxFuture<'f, Rest>
    where
        'l: 'f,
    {
        let Begun { task, about, around } = begun;
        let (log, tasks) = (self.log, Arc::clone(&self.tasks));
        let at = self.at.background(&task.who, task.number);
        let agent = chat.agent(&task.who).and_then(|agent| agent.background_agent(&task.target));
        let Some(agent) = agent else {
            let why =
                format!("`{}` has no `{}` any more that could work in the background", task.who, task.target);
            return Box::pin(std::future::ready(Rest::failed(why, None)));
        };
        let max_equal_calls = chat.max_equal_calls_of_agents();
        let called = Chat::for_calls(agent, max_equal_calls);
        let message = Message::new(task.who.clone(), Arc::clone(&task.task));
        Box::pin(async move {
            let chat = match called {
                Ok(chat) => chat,
                Err(error) => return Rest::Interrupted(error),
            };
            let message = received_from(message, &chat.name, &Name::user());
            let (after, nth) = (None, 0);
            let (chat, message) = (chat.into(), Some(message));
            let invocation = Invocation { chat, at, task: about, message, after, nth, around };
            let again = invocation.clone();
            let invoked = match invocation.begin(log).await {
                BegunCall::Open(call) => {
                    if doubt.is_some() {
                        tasks.steps_begun().await;
                    }
                    call.run(log, doubt).await
                }
                BegunCall::Over(invoked) => invoked,
            };
            let mut rest = Box::pin(rest_of(log, invoked)).await;
            while matches!(rest, Rest::Waiting) {
                // In a box, as that is seldom.
                rest = Box::pin(continued(log, &again, &task, &tasks)).await;
            }
            rest
        })
    }
}

/// Continues the call `again` of `task`, which waits for a person, with the answer, while the steps of the chat continue. When they rest,
/// this is dropped: the answer is for the next run. Returns how the task came to rest.
async fn continued(log: &Log, again: &Invocation, task: &BackgroundTask, tasks: &BackgroundTasks) -> Rest {
    let mut asked = log.open_questions().await;
    asked.retain(|open| open.chat == again.at || open.chat.is_within(&again.at));
    tasks.waits(task);
    let answer = log.answer_outside_pauses(&asked).await;
    // Before it is written: meanwhile the steps may come to rest.
    tasks.continues(task);
    match log.provide(answer).await {
        // As in a new run: what was done before is in the log.
        Ok(_) => rest_of(log, again.clone().make(log).await).await,
        Err(error) => Rest::Interrupted(error),
    }
}

/// The steps of a chat, and its tasks next to them.
pub(super) struct StepsAndTasks<'f, 'l, T> {
    context: TaskContext<'l>,
    chat: &'f Chat,
    /// Tasks that begin with the next poll.
    begun: Vec<(Begun, Option<UncheckedTurn<'l>>)>,
    /// Nearly always there are none.
    running: Option<FuturesUnordered<BoxFuture<'f, (BackgroundTask, Rest)>>>,
    steps: BoxFuture<'f, T>,
}

impl<'f, 'l: 'f, T> StepsAndTasks<'f, 'l, T> {
    /// Begins tasks. Returns whether there were any.
    fn begin(&mut self) -> bool {
        self.begun.extend(self.context.tasks.take_begun().into_iter().map(|begun| (begun, None)));
        let is_any = !self.begun.is_empty();
        for (begun, doubt) in std::mem::take(&mut self.begun) {
            let task = begun.task.clone();
            let (work, abort) = abortable(self.context.work(self.chat, begun, doubt));
            self.context.tasks.runs(&task, abort);
            let work = async move {
                let rest = work.await;
                (task, rest.unwrap_or(Rest::Aborted))
            };
            self.running.get_or_insert_default().push(Box::pin(work));
        }
        is_any
    }

    /// Runs tasks. Returns whether any came to rest.
    fn work(&mut self, cx: &mut Context<'_>) -> bool {
        let mut is_any = false;
        let Some(running) = &mut self.running else { return is_any };
        while let Poll::Ready(Some((task, rest))) = running.poll_next_unpin(cx) {
            self.context.tasks.rests(&task, rest);
            is_any = true;
        }
        is_any
    }
}

impl<'f, 'l: 'f, T> Future for StepsAndTasks<'f, 'l, T> {
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        if self.begin() {
            // Of an earlier run: what has ended by the log, such as while a person was asked, is posted before the next turn.
            self.work(cx);
            self.context.tasks.begin_steps();
        }
        loop {
            if let Poll::Ready(done) = self.steps.as_mut().poll(cx) {
                return Poll::Ready(done);
            }
            let (begun, rested) = (self.begin(), self.work(cx));
            if !begun && !rested {
                return Poll::Pending;
            }
        }
    }
}

/// A turn of `who` for the result of a background task.
fn for_result(who: &Name) -> Step {
    let choice = Choice { of: vec![who.clone()], by: Chooser::Background, reply: None };
    Step::Turn(TurnRequest::to_all(who.clone()).with_choice(choice))
}

/// How a call in the background came to rest.
async fn rest_of(log: &Log, invoked: Invoked) -> Rest {
    let nothing = |reason| Rest::failed("it ended without a result", reason);
    match invoked.result {
        Ok(reply) if reply.parts.iter().all(Part::is_blank) => nothing(None),
        Ok(reply) => Rest::Ended { status: BackgroundStatus::Completed, parts: reply.parts, reason: None },
        Err(Error::Interrupt(Interrupt::Ended { reason, .. })) => {
            Rest::failed(format!("it ended without a result: {reason}"), Some(reason))
        }
        Err(Error::Interrupt(Interrupt::Waiting)) => Rest::Waiting,
        // Limits of an agent or a chat; those of the run, of budgets that it shares, and those that a person is asked to raise, end the run
        // and leave the task open.
        Err(Error::Interrupt(Interrupt::Limit(reason))) if fails_task(&reason) => {
            match log.at_limit(&reason).await {
                AtLimit::Ends => Rest::failed(reason.to_string(), Some(reason)),
                AtLimit::Asks(_) | AtLimit::Raised => Rest::Interrupted(Interrupt::Limit(reason).into()),
            }
        }
        Err(error) if error.ends_run() => Rest::Interrupted(error),
        Err(error) => Rest::failed(error.to_string(), None),
    }
}

/// Whether a task that reaches this limit has failed, instead of being continued with the run.
const fn fails_task(reason: &StopReason) -> bool {
    match reason {
        StopReason::Allowance { of, .. } => !matches!(of, AllowanceOwner::Shared(_)),
        StopReason::Depth { .. } => true,
        _ => false,
    }
}
