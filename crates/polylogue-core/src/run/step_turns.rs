//! The turns of a step: each acts until it is over, or until it waits for a person and no other one is in progress.

use std::sync::Arc;

use tracing::warn;

use super::in_progress::InProgress;
use crate::transcript::OpenTurn;
use crate::turn::{BackgroundTasks, Trace};
use crate::{
    Act, Agent as _, Body, Chat, ConfigError, Error, Interrupt, Log, Message, Name, OpenQuestion, Result,
    Transcript, Turn, TurnRequest,
};

/// The turns of a step.
pub(super) struct StepTurns<'s> {
    log: &'s Log,
    chat: &'s Chat,
    /// As it was when they began.
    transcript: &'s Transcript,
    tasks: &'s Arc<BackgroundTasks>,
    in_progress: InProgress,
}

/// A turn that is over, or waits for a person.
pub(super) struct Done {
    pub(super) request: TurnRequest,
    /// [`Act::Wait`] if it waits: what it asks is in the log.
    pub(super) act: Result<Act>,
    pub(super) trace: Trace,
}

impl<'s> StepTurns<'s> {
    /// A step of `count` turns.
    pub(super) fn new(
        log: &'s Log,
        chat: &'s Chat,
        transcript: &'s Transcript,
        tasks: &'s Arc<BackgroundTasks>,
        count: usize,
    ) -> Self {
        Self { log, chat, transcript, tasks, in_progress: InProgress::new(count) }
    }

    /// Lets the agent of a turn act. What it asks is in the log at once, and where a person answers while others are in progress, it acts
    /// again.
    pub(super) async fn take(&self, open: &OpenTurn, mut turn: Turn<'_>) -> Done {
        let act = self.act(open, &mut turn).await;
        let mut done = Done { request: open.request.clone(), act, trace: turn.into_trace() };
        if done.waits() {
            // In a box, as all that is seldom: a turn has space for what it may do, and waits with it.
            Box::pin(self.wait(&mut done)).await;
        }
        if !done.waits() {
            self.in_progress.ends_one();
        }
        done
    }

    async fn act(&self, open: &OpenTurn, turn: &mut Turn<'_>) -> Result<Act> {
        let who = &open.request.who;
        let act = match self.chat.agent(who) {
            // Nothing can happen before the answer comes.
            _ if open.asked.is_some() => Ok(Act::Wait),
            Some(agent) => agent.act(turn).await,
            None => {
                let (who, chat) = (who.clone(), self.chat.name().clone());
                Err(ConfigError::UnknownParticipant { who, chat }.into())
            }
        };
        if let Err(error) = &act
            && is_failure(error)
        {
            // The message can quote what was said.
            warn!(%who, fault = %error.fault(), "turn failed");
            if is_changed(error) && !has_tools_in_flight(open) {
                Box::pin(turn.charge_unknown()).await?;
            }
        }
        act
    }

    /// Waits for the person whom a turn asks, and continues the turn after each answer, until no turn is in progress.
    async fn wait(&self, done: &mut Done) {
        while done.waits() {
            match self.answered(done).await {
                Ok(Some(open)) => {
                    // As in a new run: what was done before is in the log.
                    let mut turn =
                        Turn::new(self.log, self.chat, self.transcript, &open, None, true, self.tasks);
                    let act = self.act(&open, &mut turn).await;
                    done.continued(act, turn.into_trace());
                }
                Ok(None) => return,
                Err(error) => done.act = Err(error),
            }
        }
    }

    /// Logs what a turn asks, and waits for an answer. Returns the turn with the answer in it; `None` if no turn is in progress any
    /// more: the answer is for the next run.
    async fn answered(&self, done: &mut Done) -> Result<Option<OpenTurn>> {
        let (log, at) = (self.log, self.transcript.at());
        if let Ok(act) = std::mem::replace(&mut done.act, Ok(Act::Wait))
            && let Some(question) = body_of(act, &done.request)
        {
            let asked = log.append(at, [question]).await?;
            done.trace.appended.extend(asked);
        }
        let asked = self.questions_of(&done.request.who).await;
        let Some(events) = self.in_progress.answered(log, &asked).await? else { return Ok(None) };
        done.trace.appended.extend(events.into_iter().filter(|event| event.chat == *at));
        let transcript = log.transcript_of(at).await?;
        let open = transcript.open_turns().iter().find(|open| open.request.who == done.request.who);
        match open {
            Some(open) => Ok(Some(open.clone())),
            None => Err(log.invalid("a turn that waits for an answer is not open")),
        }
    }

    /// The questions for which the turn of `who` waits, also in chats within it.
    async fn questions_of(&self, who: &Name) -> Vec<OpenQuestion> {
        let at = self.transcript.at();
        let mut open = self.log.open_questions().await;
        open.retain(|open| (open.chat == *at && open.question.who == *who) || open.chat.is_run_by(at, who));
        open
    }
}

impl Done {
    /// Whether a person must answer before the turn continues.
    fn waits(&self) -> bool {
        match &self.act {
            Ok(act) => matches!(act, Act::Wait | Act::Ask(_)),
            Err(error) => matches!(error, Error::Interrupt(Interrupt::Waiting)),
        }
    }

    /// The turn has acted again.
    fn continued(&mut self, act: Result<Act>, trace: Trace) {
        self.act = act;
        self.trace.view = trace.view;
        self.trace.appended.extend(trace.appended);
        self.trace.within.extend(trace.within);
        self.trace.failed_within = trace.failed_within;
    }
}

/// Whether the error is logged: not for cancellations, limits, and logs that cannot be written.
pub(super) const fn is_failure(error: &Error) -> bool {
    !matches!(error, Error::Interrupt(Interrupt::Cancelled | Interrupt::Limit(_)) | Error::Store(_))
}

/// Whether the turn failed because its agent does something else than in the log.
fn is_changed(error: &Error) -> bool {
    match error {
        Error::Config(error) => {
            matches!(error, ConfigError::TurnDiverged { .. } | ConfigError::CallDiverged { .. })
        }
        Error::Within { error, .. } => is_changed(error),
        _ => false,
    }
}

/// Whether calls of tools had begun and not returned when the turn was interrupted: then none of its model calls was in flight.
fn has_tools_in_flight(open: &OpenTurn) -> bool {
    let count = |is: fn(&Body) -> bool| open.events.iter().filter(|event| is(&event.body)).count();
    let begun = count(|body| matches!(body, Body::ToolCalled { .. }));
    begun > count(|body| matches!(body, Body::ToolReturned { .. }))
}

/// The event of an act.
pub(super) fn body_of(act: Act, request: &TurnRequest) -> Option<Body> {
    let who = request.who.clone();
    Some(match act {
        Act::Say(parts) if parts.is_empty() => Body::Passed { who },
        Act::Say(parts) => {
            Body::Message(Message { from: who, to: request.to.clone(), parts, outside: Vec::new() })
        }
        Act::Ask(input) => Body::InputRequired(input.of(who)),
        Act::Leave(why) => Body::Left { who, why },
        Act::Stop(reason) => Body::Stopped { who, reason },
        Act::Pass => Body::Passed { who },
        Act::Wait => return None,
    })
}
