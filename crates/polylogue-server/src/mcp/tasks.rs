//! Tasks: calls whose result a client reads later. A task is a stretch of a conversation, named by the conversation and its first event: the
//! log is all that is stored, so that a task survives restarts.

use std::sync::Arc;

use polylogue_core::{Body, Event, Instruction, Listing, LogId, OpenQuestion, RunOutcome, Store as _};
use polylogue_mcp::serve::{FormAnswer, InvalidParams, TaskProgress, TaskReport, progress_line};
use polylogue_wire::conversation::PendingQuestion;
use serde_json::{Value, json};

use super::questions::{answer_all, open_questions};
use super::result::CallResult;
use super::visitor::{Visitor, plain};
use crate::conversation::{find, state_of};
use crate::problem::Problem;
use crate::runs::{stop, take_back};
use crate::stretch::Stretch;

/// The id of the task that begins with the event `from` of a conversation.
pub(super) fn id(conversation: &LogId, from: u64) -> String {
    format!("{conversation}.{from}")
}

/// The events of a task, folded.
#[derive(Debug, Default)]
struct TaskLog {
    stretch: Stretch,
    first_ms: Option<u64>,
    last_ms: Option<u64>,
    message: Option<String>,
    /// Whether a question was asked, and whether it was answered.
    asked: (bool, bool),
    /// Questions and answers.
    questions: Vec<Arc<Event>>,
}

impl TaskLog {
    /// Of events from the first one on. It ends when the conversation is closed or cancelled, and, if the client cannot ask its user, with the
    /// first question: what follows belongs to later calls.
    fn of(events: &[Event], asks: bool) -> Self {
        let mut log = Self::default();
        for event in events {
            if matches!(event.body, Body::InputProvided { .. }) {
                log.asked.1 = log.asked.0;
                if !asks && log.asked.0 {
                    break;
                }
            }
            log.add(event);
            if log.has_ended() {
                break;
            }
        }
        log
    }

    fn has_ended(&self) -> bool {
        self.stretch.closed.is_some() || self.stretch.is_cancelled
    }

    fn add(&mut self, event: &Event) {
        self.stretch.add(event);
        self.first_ms.get_or_insert(event.time.0);
        self.last_ms = Some(event.time.0);
        self.asked.0 |= matches!(event.body, Body::InputRequired(_));
        if matches!(event.body, Body::InputRequired(_) | Body::InputProvided { .. }) {
            self.questions.push(Arc::new(event.clone()));
        }
        let is_for_some = matches!(&event.body, Body::Message(message) if !message.to.is_all());
        if let Some(line) = progress_line(event).filter(|_| !is_for_some) {
            self.message = Some(line);
        }
    }
}

/// The conversation and the first event of the task `id`.
async fn of(visitor: &Visitor, id: &str) -> Result<(Listing, u64), InvalidParams> {
    let unknown = || InvalidParams(format!("there is no task `{}`", plain(id)));
    let (conversation, from) = id.rsplit_once('.').ok_or_else(unknown)?;
    let from = from.parse::<u64>().map_err(|_| unknown())?;
    let listing = find(&visitor.tenant, &visitor.token, conversation).await.map_err(|_| unknown())?;
    let team = visitor.tenant.team_of(&listing).await.map(|(team, _)| team);
    let is_of_path = visitor.team.as_deref().is_none_or(|only| team.as_deref() == Some(only));
    // A message that waits for the end of a step has no event yet.
    if !is_of_path || from > listing.summary.events {
        return Err(unknown());
    }
    Ok((listing, from))
}

fn invalid(problem: impl Into<Problem>) -> InvalidParams {
    InvalidParams(problem.into().line())
}

/// The state of a task. `asks`: whether the client can ask its user.
pub(super) async fn report(visitor: &Visitor, id: &str, asks: bool) -> Result<TaskReport, InvalidParams> {
    let (listing, from) = of(visitor, id).await?;
    let asks = asks && visitor.answers();
    let conversation = &listing.id;
    // The state first: the question for which a conversation waits is among the events that are read then.
    let mut state = state_of(&visitor.tenant, conversation).await.map_err(invalid)?;
    let events = visitor.tenant.runtime.store().read(conversation, from).await.map_err(invalid)?;
    let log = TaskLog::of(&events, asks);
    if log.has_ended() {
        state = state_of(&visitor.tenant, conversation).await.map_err(invalid)?;
    }
    let progress = match progress(&log, conversation, &state, asks) {
        Some(progress) => progress,
        None => TaskProgress::Asks(open_questions(visitor, conversation).await.map_err(invalid)?),
    };
    Ok(TaskReport {
        id: id.to_owned(),
        created_ms: log.first_ms.unwrap_or(listing.created.0),
        updated_ms: log.last_ms.unwrap_or(listing.created.0),
        message: log.message,
        progress,
    })
}

/// How far the task is; `None` if its client is to be asked.
fn progress(log: &TaskLog, conversation: &LogId, state: &Value, asks: bool) -> Option<TaskProgress> {
    let now = state.get("state").and_then(Value::as_str).unwrap_or_default();
    let stretch = &log.stretch;
    let ended =
        |state: &Value| TaskProgress::Ended(CallResult::of(stretch, conversation.as_str(), state).into());
    Some(match &stretch.closed {
        Some((reason, _)) if reason.outcome() == RunOutcome::Stopped => TaskProgress::Cancelled,
        Some(_) => ended(state),
        None if stretch.is_cancelled => TaskProgress::Cancelled,
        None if !asks && log.asked.0 && (now == "waiting" || log.asked.1) => {
            let known = state.get("questions").filter(|asked| now == "waiting" && !asked.is_null()).cloned();
            let asked = known.unwrap_or_else(|| {
                OpenQuestion::of(&log.questions)
                    .iter()
                    .map(|open| json!(PendingQuestion::from(open)))
                    .collect()
            });
            ended(&json!({"state": "waiting", "questions": asked}))
        }
        None => match now {
            "waiting" => return None,
            "halted" if stretch.failure.is_some() => ended(state),
            // It is paused, and continues when it is resumed.
            "halted" if state.get("in_progress").and_then(Value::as_bool) == Some(true) => {
                TaskProgress::Working
            }
            "halted" => TaskProgress::Cancelled,
            _ => TaskProgress::Working,
        },
    })
}

/// Gives a task the answers to its questions.
pub(super) async fn answer(visitor: &Visitor, id: &str, answers: &[FormAnswer]) -> Result<(), InvalidParams> {
    let (listing, _) = of(visitor, id).await?;
    answer_all(visitor, &listing.id, answers).await.map_err(invalid)
}

/// Stops the run of a task, unless the task has ended. `asks`: whether the client can ask its user.
pub(super) async fn cancel(visitor: &Visitor, id: &str, asks: bool) -> Result<(), InvalidParams> {
    let (listing, _) = of(visitor, id).await?;
    if let TaskProgress::Ended(_) | TaskProgress::Cancelled = report(visitor, id, asks).await?.progress {
        return Ok(());
    }
    let Visitor { app, tenant, .. } = visitor;
    let (app, tenant, conversation) = (Arc::clone(app), Arc::clone(tenant), listing.id);
    // Not given up half-way when the client goes away.
    let stopping = tokio::spawn(async move {
        take_back(&app, &tenant, &conversation);
        if tenant.runs.is_running(&conversation) && stop(&tenant, &conversation, true).await {
            return Ok(());
        }
        // One that waits is cancelled in its log, and does not continue with a default answer.
        let cancel = Instruction::Cancel { now: true };
        tenant.runtime.steer(&conversation, cancel).await.map(drop)
    });
    let stopped = stopping.await;
    let stopped =
        stopped.map_err(|_| invalid(Problem::internal("a mistake in the server ended this call")))?;
    stopped.map_err(invalid)
}
