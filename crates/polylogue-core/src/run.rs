//! The run loop: open turns act, else the policy selects the next step; the results are appended.

mod again;
mod allowance;
mod ask;
mod background;
mod call;
mod chat;
mod give_up;
mod in_progress;
mod nested;
mod raise;
#[cfg(test)]
mod rest_tests;
mod result;
mod step;
mod step_turns;

use std::sync::Arc;

use futures_util::future::{BoxFuture, join_all};
use tracing::{Instrument as _, debug_span};

pub use self::ask::AgentCall;
pub use self::result::{RunResult, RunStream};
use self::step_turns::{Done, StepTurns, body_of, is_failure};
use crate::log::{Timing, UncheckedTurn};
use crate::transcript::{Extent, RestingChat, is_shared};
use crate::turn::BackgroundTasks;
use crate::{
    Act, Agent as _, Body, Chat, ConfigError, Error, Event, Failure, Instruction, Interrupt, Log, Name,
    Opening, Path, Result, RunOutcome, Status, Step, StopReason, Transcript, Turn, TurnRequest, View,
};

/// A running chat.
pub(crate) struct RunningChat<'l> {
    log: &'l Log,
    transcript: Transcript,
    /// How much of the log the transcript has, if the chat can rest after this run.
    extent: Option<Extent>,
    /// One for each agent that had a turn.
    #[expect(clippy::vec_box, reason = "each moves into a turn and back")]
    views: Vec<Box<View>>,
    /// Whether the open turns may have begun in an earlier run.
    resumed: bool,
    /// Model calls of this run, and shared events, for the outer chat.
    pub(crate) replies: Vec<Arc<Event>>,
    /// Keeps the outer turn in doubt until the turns of this chat are checked.
    pub(crate) doubt: Option<UncheckedTurn<'l>>,
    /// Its background tasks.
    tasks: Arc<BackgroundTasks>,
}

impl<'l> RunningChat<'l> {
    pub(crate) fn new(log: &'l Log, transcript: Transcript) -> Self {
        let (views, replies, tasks) = (Vec::new(), Vec::new(), Arc::default());
        Self { log, transcript, extent: None, views, resumed: true, replies, doubt: None, tasks }
    }

    /// A chat that has rested, with the views of its agents.
    pub(crate) fn of(log: &'l Log, chat: RestingChat) -> Self {
        let RestingChat { transcript, views, extent } = chat;
        let views = views.and_then(|views| views.downcast().ok()).map(|views| *views);
        Self { views: views.unwrap_or_default(), extent: Some(extent), ..Self::new(log, transcript) }
    }

    /// The outermost chat of `log`, as far as it got.
    pub(crate) async fn open(log: &'l Log) -> Result<Box<Self>> {
        let chat = log.take_chat(&Path::root()).await?;
        Ok(Box::new(Self::of(log, chat)))
    }

    /// Lets the chat rest, whose run is over or waits for people. Views of agents in the middle of their turns do not: these are replayed.
    pub(crate) async fn rest(&mut self) {
        let Some(extent) = self.extent.take() else { return };
        let (transcript, mut views) = (std::mem::take(&mut self.transcript), std::mem::take(&mut self.views));
        views.retain(|view| transcript.current_speakers().all(|who| who != view.me()));
        self.log.rest_chat(RestingChat { transcript, views: Some(Box::new(views)), extent }).await;
    }

    /// The transcript so far.
    pub(crate) const fn transcript(&self) -> &Transcript {
        &self.transcript
    }

    /// Runs the chat until it closes, waits for a person, or fails.
    pub(crate) async fn run(&mut self, chat: &Chat, opening: Opening) -> Result<Status> {
        let log = self.log;
        let (place, open) = self.task_context();
        let steps = self.steps(chat, opening);
        log.write_while(place.run_with(chat, open, steps)).await?
    }

    /// The steps of the chat, in a box, so that the futures around it stay small. Background tasks have come to rest when it ends.
    fn steps<'a>(&'a mut self, chat: &'a Chat, opening: Opening) -> BoxFuture<'a, Result<Status>> {
        let tasks = Arc::clone(&self.tasks);
        Box::pin(async move {
            // Called in here: a future that is captured has its space twice.
            let result = self.converse(chat, opening).await;
            if !matches!(result, Err(Error::Store(_) | Error::Config(_) | Error::Bug(_))) {
                tasks.rested().await;
            }
            result
        })
    }

    /// The loop.
    async fn converse(&mut self, chat: &Chat, opening: Opening) -> Result<Status> {
        if !self.transcript.is_open() {
            // Stored with the first step.
            let events = self.log.append_with_next(self.transcript.at(), [Body::Opened(opening)]).await?;
            self.take_in(events)?;
        }
        self.check_fit(chat)?;
        self.open_account(chat).await;
        if let Some((reason, _)) = self.transcript.closed()
            && self.continues_for_sent(chat, reason)
        {
            // The log ends in between.
            self.append([Body::reopened_for_sent()]).await?;
        }
        loop {
            if let Some((reason, summary)) = self.transcript.closed() {
                return Ok(Status::Closed { reason: reason.clone(), summary: Arc::clone(summary) });
            }
            if self.transcript.current_speakers().next().is_some() {
                match self.act(chat).await {
                    Ok(None) => {}
                    Ok(Some(waiting)) => return Ok(waiting),
                    Err(error) => return self.close_at_own_limit(chat, error).await,
                }
            } else {
                self.resumed = false;
                self.doubt = None;
                match self.next_step(chat).await {
                    Ok(None) => {}
                    Ok(Some(waiting)) => return Ok(waiting),
                    // The staged events are stored with the end of the outermost chat.
                    Err(error @ (Error::Interrupt(Interrupt::Limit(_)) | Error::Store(_))) => {
                        return self.close_at_own_limit(chat, error).await;
                    }
                    Err(error) => {
                        self.log.flush().await?;
                        return Err(error);
                    }
                }
            }
        }
    }

    /// Posts the messages that were sent from outside, before the policy selects the next step.
    async fn post_inbox(&mut self, chat: &Chat) -> Result<()> {
        while self.transcript.at().is_root()
            && let Some(pending) = self.log.inbox.take(&[Timing::BetweenSteps])
        {
            let body = match &pending.instruction {
                Instruction::Send(message) => Body::Sent(message.clone()),
                Instruction::NextSpeaker { who } => match self.may_be_next(chat, who) {
                    Ok(()) => Body::NextSpeaker { who: who.clone() },
                    Err(why) => {
                        self.log.refuse(pending, why).await?;
                        continue;
                    }
                },
                _ => continue,
            };
            let events = self.log.append_instructed(self.transcript.at(), pending.number, body).await?;
            self.take_in(events)?;
            pending.confirm(Ok(()));
        }
        Ok(())
    }

    /// Whether `who` can have the next turn, or why not.
    fn may_be_next(&self, chat: &Chat, who: &Name) -> std::result::Result<(), Arc<str>> {
        if !self.transcript.present().any(|name| name == who) {
            let present: Vec<String> = self.transcript.present().map(|name| format!("`{name}`")).collect();
            return Err(format!("`{who}` does not take part now; present: {}", present.join(", ")).into());
        }
        if self.transcript.ended_by().is_some() {
            return Err("a participant has ended the chat".into());
        }
        match chat.policy().next(&self.transcript) {
            Step::Close { reason, .. } => Err(format!("the chat ends: {reason}").into()),
            _ => chat.policy().takes_next_speaker(&self.transcript, who),
        }
    }

    /// Takes in what was said and chosen from outside, and appends the next step, as soon as the conversation is not paused.
    async fn next_step(&mut self, chat: &Chat) -> Result<Option<Status>> {
        if self.transcript.open_background().next().is_some() {
            Box::pin(self.post_results()).await?;
        }
        self.log.obey_waiting().await?;
        self.post_inbox(chat).await?;
        while self.log.is_at_pause() && self.log.check_not_cancelled().is_ok() {
            self.log.pause_ended(self.transcript.at()).await?;
            self.post_inbox(chat).await?;
        }
        self.step(chat).await
    }

    /// Appends the next step, if another may begin, or waits for background tasks. Returns the status of the chat if these wait for
    /// people.
    async fn step(&mut self, chat: &Chat) -> Result<Option<Status>> {
        self.log.check_not_cancelled()?;
        self.log.check_refused()?;
        self.log.check_cut_off(self.transcript.at()).await?;
        self.tasks.interruption().map_or(Ok(()), Err)?;
        // First: no task is aborted for an end that does not come.
        self.take_in_raised_limits().await?;
        let mut bodies = match self.wanted(chat)? {
            Wanted::Step(bodies) => bodies,
            Wanted::Wait => return Box::pin(self.wait_for_tasks()).await,
        };
        if !matches!(bodies.as_slice(), [Body::Closed { .. }]) {
            self.log.check_time(self.transcript.at()).await?;
        }
        self.report_passed_limit(&mut bodies).await;
        let closes = matches!(bodies.as_slice(), [Body::Closed { .. }]);
        if closes && self.transcript.open_background().next().is_some() {
            bodies.splice(0..0, Box::pin(self.cancel_tasks()).await?);
        }
        if let Some(Body::Closed { reason, .. }) = bodies.last()
            && self.continues_for_sent(chat, reason)
        {
            bodies.push(Body::reopened_for_sent());
        }
        let (at, last_raise) = (self.transcript.at(), self.transcript.last_raise());
        match self.log.append_step(at, last_raise, bodies).await? {
            Some(events) => self.take_in(events)?,
            None => {
                // What aborted tasks left to the next write is read where they continue.
                self.log.flush().await?;
                self.take_in_raised_limits().await?;
                self.run_aborted_tasks();
            }
        }
        Ok(None)
    }

    /// Takes in limits of the chat itself that were raised meanwhile.
    async fn take_in_raised_limits(&mut self) -> Result<()> {
        if self.log.is_raised_since(self.transcript.at(), self.transcript.last_raise()).await {
            let now = Box::pin(self.log.transcript()).await?;
            self.transcript.take_raised(&now);
        }
        Ok(())
    }

    /// Replaces the stop reason of a run that exceeded a limit.
    async fn report_passed_limit(&self, bodies: &mut [Body]) {
        if let [Body::Closed { reason, .. }] = bodies
            && self.transcript.at().is_root()
            && reason.outcome() == RunOutcome::Done
            && let Some(passed) = self.log.passed().await
        {
            *reason = passed;
        }
    }

    /// Lets all participants with an open turn act, until each of these turns is over or waits for a person.
    async fn take_turns(&mut self, chat: &Chat) -> Result<Vec<Done>> {
        let mut views = std::mem::take(&mut self.views);
        let resumed = std::mem::take(&mut self.resumed);
        let began = if resumed { self.began().await? } else { None };
        let transcript = began.as_deref().unwrap_or(&self.transcript);
        let count = self.transcript.open_turns().len();
        let step = StepTurns::new(self.log, chat, transcript, &self.tasks, count);
        let mut turns = self.transcript.open_turns().iter().map(|open| {
            let view =
                views.iter().position(|view| *view.me() == open.request.who).map(|at| views.swap_remove(at));
            let span = debug_span!("turn", at = %transcript.at(), who = %open.request.who);
            let turn = Turn::new(self.log, chat, transcript, open, view, resumed, &self.tasks);
            step.take(open, turn).instrument(span)
        });
        let done = if count == 1
            && let Some(turn) = turns.next()
        {
            // Nearly always: it needs no list of futures.
            self.doubt = None;
            vec![turn.await]
        } else {
            let turns = join_all(turns);
            self.doubt = None;
            turns.await
        };
        self.views = views;
        Ok(done)
    }

    /// Lets all participants with an open turn act. Their messages are logged in the order of the requests: up to the
    /// first turn that is not done.
    async fn act(&mut self, chat: &Chat) -> Result<Option<Status>> {
        let answers = self.tasks.answers();
        let turns = self.take_turns(chat).await?;
        // Sized exactly: space for more would be that of several large events.
        let mut end = StepEnd { bodies: Vec::with_capacity(turns.len()), ..StepEnd::default() };
        for Done { request, act, trace } in turns {
            end.add(&request, act, trace.failed_within);
            self.views.extend(trace.view);
            self.replies.extend(trace.within.iter().cloned());
            self.take_in(trace.appended.into_iter().chain(trace.within))?;
        }
        match end.error {
            None if !end.waiting => {
                // They are stored with the next step, which is known at once.
                let events = self.log.stage(self.transcript.at(), end.bodies).await?;
                self.take_in(events)?;
                Ok(None)
            }
            error => {
                if end.bodies.is_empty() {
                    self.log.flush().await?;
                } else {
                    self.append(end.bodies).await?;
                }
                error.map_or(Ok(()), Err)?;
                Box::pin(self.rest_with_tasks(answers)).await
            }
        }
    }

    /// The transcript when the open turns began, if there was more by now: messages of other turns that began in parallel, which they do not
    /// see, or the end of the chat at a limit, and what reopened it.
    async fn began(&self) -> Result<Option<Box<Transcript>>> {
        let events = self.transcript.events();
        let started = events.iter().rposition(|event| matches!(event.body, Body::TurnStarted { .. }));
        let Some((started, after)) = started.and_then(|at| events.get(at..)?.split_first()) else {
            return Ok(None);
        };
        if after.is_empty() {
            return Ok(None);
        }
        let mut before = self.log.events().await;
        before.retain(|event| event.seq <= started.seq);
        let mut transcript =
            Transcript::from_events(self.transcript.at(), &before).map_err(|flaw| self.log.invalid(&flaw))?;
        transcript.inherit_from(&self.transcript);
        Ok(Some(Box::new(transcript)))
    }

    async fn append(&mut self, bodies: impl IntoIterator<Item = Body>) -> Result<()> {
        let events = self.log.append(self.transcript.at(), bodies).await?;
        self.take_in(events)
    }

    fn take_in(&mut self, events: impl IntoIterator<Item = Arc<Event>>) -> Result<()> {
        for event in events {
            let counts = matches!(event.body, Body::ModelReplied(_)) || is_shared(&event.body);
            if counts && event.chat == *self.transcript.at() {
                self.replies.push(Arc::clone(&event));
            }
            self.extent.iter_mut().for_each(|extent| extent.added += 1);
            self.transcript.apply(event).map_err(|flaw| self.log.invalid(&flaw))?;
        }
        Ok(())
    }

    /// Closes the outermost chat because a limit of the whole run was reached in it or in a chat within it.
    pub(crate) async fn close_at_limit(&mut self, reason: StopReason) -> Result<Status> {
        self.close_after(Vec::new(), reason).await
    }

    /// Closes the chat because a limit was reached, after what `bodies` say.
    async fn close_after(&mut self, mut bodies: Vec<Body>, reason: StopReason) -> Result<Status> {
        let summary = self.transcript.summary();
        bodies.push(Body::Closed { reason: reason.clone(), summary: Arc::clone(&summary) });
        self.append(bodies).await?;
        Ok(Status::Closed { reason, summary })
    }

    /// Whether the log belongs to this chat.
    fn check_fit(&self, chat: &Chat) -> Result<()> {
        let missing = self.transcript.participants().iter().find(|name| chat.agent(name).is_none());
        match missing {
            None => Ok(()),
            Some(unknown) => {
                let (chat, unknown) = (chat.name().clone(), unknown.clone());
                Err(ConfigError::OtherChat { chat, unknown }.into())
            }
        }
    }
}

/// What comes next in a chat.
pub(crate) enum Wanted {
    /// A step, as events.
    Step(Vec<Body>),
    /// Nothing, until a background task has ended.
    Wait,
}

/// The results of one step.
#[derive(Default)]
struct StepEnd {
    bodies: Vec<Body>,
    waiting: bool,
    error: Option<Error>,
}

impl StepEnd {
    fn add(&mut self, request: &TurnRequest, act: Result<Act>, failed_within: bool) {
        let is_blocked = self.waiting || self.error.is_some();
        match act {
            Ok(Act::Wait) => self.waiting = true,
            // It acts again when the chat is resumed, with the same result: its calls are in the log.
            Ok(_) if is_blocked => {}
            Ok(act) => self.bodies.extend(body_of(act, request)),
            // An agent that it called ended its chat, and it did not handle that.
            Err(Error::Interrupt(Interrupt::Ended { .. })) if is_blocked => {}
            Err(Error::Interrupt(Interrupt::Ended { reason, .. })) => {
                self.bodies.extend(body_of(Act::Stop(reason), request))
            }
            Err(error) => {
                if !failed_within && is_failure(&error) {
                    self.bodies.push(Body::Failed { who: request.who.clone(), error: Failure::from(&error) });
                }
                self.error.get_or_insert(error);
            }
        }
    }
}
