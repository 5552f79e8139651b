//! What changes a conversation: messages, answers, stopping, resuming.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use polylogue_core::{
    Body, Confirmation, InboxMessage, Instruction, InstructionError, LimitOverrides, Listing, LogId,
    LogState, Message, Progress, StopReason, Store as _, StoreError,
};
use polylogue_runtime::{Continuation as Way, Resumed, Steered, fresh_id};
use polylogue_wire::Scope;
use polylogue_wire::conversation::{
    Accepted, Answer, Continuation, NewMessage, NextSpeaker, Pause, Resume, Stop, Stopped, When,
};
use serde_json::{Value, json};

use super::conversations::{limits_schema, replayed};
use super::participants::{author, participant};
use crate::app::App;
use crate::attendance::{Begun, Earlier};
use crate::call::{Call, Reply, json_reply};
use crate::conversation::{describe, find, listing};
use crate::default_answers::is_up;
use crate::idempotency::{Key, mismatch};
use crate::problem::Problem;
use crate::route::{Access, Route};
use crate::runs::{self, Opened, is_left, open, run, run_stored};
use crate::spending::Payer;
use crate::tenants::Tenant;
use crate::token::Token;

pub(crate) fn routes() -> Vec<Route> {
    let (run, answer) = (Access::Scope(Scope::Run), Access::Scope(Scope::Answer));
    vec![
        Route::new(
            Method::POST,
            "/api/v1/conversations/{id}/messages",
            run,
            "Send a message into a conversation, running or closed",
            |call| Box::pin(send(call)),
        )
        .body(message_schema),
        Route::new(Method::POST, "/api/v1/conversations/{id}/answers", answer, "Answer a question", |call| {
            Box::pin(provide_answer(call))
        })
        .body(answer_schema),
        Route::new(Method::POST, "/api/v1/conversations/{id}/stop", run, "Stop a conversation", |call| {
            Box::pin(stop(call))
        })
        .body(stop_schema),
        Route::new(
            Method::POST,
            "/api/v1/conversations/{id}/pause",
            run,
            "Pause a conversation between two turns",
            |call| Box::pin(pause(call)),
        )
        .body(|| json!({"type": "object", "properties": {}})),
        Route::new(
            Method::POST,
            "/api/v1/conversations/{id}/next",
            run,
            "Choose who speaks next in its outermost chat",
            |call| Box::pin(next(call)),
        )
        .body(next_schema),
        Route::new(Method::POST, "/api/v1/conversations/{id}/resume", run, "Continue it", |call| {
            Box::pin(resume(call))
        })
        .body(resume_schema),
        Route::new(
            Method::GET,
            "/api/v1/conversations/{id}/continuation",
            run,
            "What continues a conversation that has ended",
            |call| Box::pin(continuation(call)),
        ),
    ]
}

fn message_schema() -> Value {
    let about = "Its author: a participant of the outermost chat, or `system`. Default: user";
    json!({
        "type": "object",
        "required": ["text"],
        "properties": {
            "text": {"type": "string", "minLength": 1},
            "from": {"type": "string", "minLength": 1, "description": about},
        },
    })
}

fn answer_schema() -> Value {
    let about = "The `question` of the conversation's `asked`";
    let text = "The answer. In the turn of a person, an empty one passes, and `exit` leaves the chat";
    json!({
        "type": "object",
        "required": ["question", "text"],
        "properties": {
            "text": {"type": "string", "description": text},
            "question": {"type": "integer", "minimum": 0, "description": about},
        },
    })
}

fn stop_schema() -> Value {
    let about = "Default: after_step";
    json!({
        "type": "object",
        "properties": {"when": {"enum": ["after_step", "now"], "description": about}},
    })
}

fn next_schema() -> Value {
    let about = "A participant of the outermost chat";
    json!({
        "type": "object",
        "required": ["who"],
        "properties": {"who": {"type": "string", "minLength": 1, "description": about}},
    })
}

fn resume_schema() -> Value {
    let about = "How much more it may use than it has used so far";
    json!({"type": "object", "properties": {"limits": limits_schema(about)}})
}

async fn send(call: Call) -> Reply {
    let (token, NewMessage { text, from }) = (call.token()?, call.json()?);
    if text.trim().is_empty() {
        return Err(Problem::bad_request("the message is empty").at("/text", "empty"));
    }
    let tenant = call.app.tenant(token)?;
    let Listing { id, .. } = find(&tenant, token, call.param("id")).await?;
    let key = Key::of(&call, id.as_str()).await?;
    let author = author(&tenant, token, &id, from.as_deref()).await?;
    let message = Instruction::Send(Message::text(author, text));
    steer(&call, &tenant, &id, message, key).await
}

async fn provide_answer(call: Call) -> Reply {
    let (token, Answer { question, text }) = (call.token()?, call.json()?);
    let tenant = call.app.tenant(token)?;
    let Listing { id, .. } = find(&tenant, token, call.param("id")).await?;
    let key = Key::of(&call, id.as_str()).await?;
    let by = Some(token.name.as_str().into());
    steer(&call, &tenant, &id, Instruction::Answer { question, text: text.into(), by }, key).await
}

/// Refuses an answer to what is not asked, or was answered, by a person or by default.
async fn check_open(tenant: &Tenant, id: &LogId, question: u64) -> Result<(), Problem> {
    match tenant.runtime.open_questions(id).await?.iter().find(|open| open.seq == question) {
        Some(open) if is_up(open) => {
            let why =
                format!("the time for an answer to question {question} is up: its default answer counts");
            return Err(
                Problem::answered(why).hint("`POST /resume` continues what does not continue by itself")
            );
        }
        Some(_) => return Ok(()),
        None => {}
    }
    let events = tenant.runtime.store().read_range(id, question..question.saturating_add(1)).await?;
    let asked = events.first().filter(|event| event.seq == question);
    Err(match asked.map(|event| &event.body) {
        Some(Body::InputRequired(_)) => answered(question),
        _ => Problem::not_found(format!("there is no question {question}"))
            .hint("`asked` of the conversation lists those that are open"),
    })
}

fn answered(question: u64) -> Problem {
    Problem::answered(format!("question {question} was answered before"))
}

/// Gives an instruction once for each key, and continues the conversation.
async fn steer(
    call: &Call,
    tenant: &Arc<Tenant>,
    id: &LogId,
    instruction: Instruction,
    key: Option<Key>,
) -> Reply {
    let (seq, was_posted) =
        instruct(&call.app, tenant, (call.token()?, id), instruction, key.as_ref()).await?;
    let response = json_reply(StatusCode::ACCEPTED, &Accepted { seq })?;
    Ok(replayed(response, was_posted))
}

/// The same. Returns the number of the event that carries it out, and whether an earlier request with the key has given it.
pub(crate) async fn instruct(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    (token, id): (&Token, &LogId),
    instruction: Instruction,
    key: Option<&Key>,
) -> Result<(Option<u64>, bool), Problem> {
    let was_posted = match key {
        Some(key) => key.was_posted(tenant, id).await?,
        None => false,
    };
    if !was_posted {
        if let Instruction::Answer { question, .. } = &instruction {
            check_open(tenant, id, *question).await?;
        }
        check_free(tenant, id).await?;
    }
    // What runs already needs no further place.
    let slot = match was_posted || tenant.runs.is_running(id) {
        true => app.wait(token),
        false => app.join(token).await?,
    };
    let inbox_key = key.map_or_else(|| fresh_id().to_string(), Key::inbox_key);
    let steered = tenant.runtime.steer_once(id, instruction.clone(), &inbox_key).await?;
    if let Steered::Refused(why) = steered {
        return Err(match instruction {
            Instruction::Answer { question, .. } => answered(question),
            _ => Problem::refused(why.to_string()),
        });
    }
    // What a person has paused does not continue by that.
    if !listing(tenant, id).await?.summary.is_paused {
        run_stored(app, tenant, id, slot);
    }
    Ok((seq_of(tenant, id, instruction, &inbox_key).await?, was_posted))
}

/// The number of the event that carries an instruction out; `None` while it waits for the end of a step.
async fn seq_of(
    tenant: &Tenant,
    id: &LogId,
    instruction: Instruction,
    key: &str,
) -> Result<Option<u64>, Problem> {
    // Posting it again returns its number.
    let message = InboxMessage { key: key.into(), posted: Default::default(), instruction };
    let store = tenant.runtime.store();
    let number = store.post(id, &message).await?;
    let events = store.read(id, 0).await?;
    Ok(events.iter().rev().find(|event| event.inbox == Some(number)).map(|event| event.seq))
}

/// Refuses to change a conversation that another process runs.
async fn check_free(tenant: &Tenant, id: &LogId) -> Result<(), Problem> {
    if tenant.runs.is_running(id) || tenant.runtime.get(id).is_some() {
        return Ok(());
    }
    match tenant.runtime.store().holder(id).await? {
        Some(holder) => Err(StoreError::Busy { id: id.clone(), holder }.into()),
        None => Ok(()),
    }
}

async fn stop(call: Call) -> Reply {
    let (token, Stop { when }) = (call.token()?, call.json()?);
    let tenant = call.app.tenant(token)?;
    let Listing { id, summary, .. } = find(&tenant, token, call.param("id")).await?;
    // A run that has ended it may not have left it yet.
    let is_over = matches!(summary.progress, Progress::Closed(_));
    let stopped = stop_run(&call.app, &tenant, &id, when == When::Now).await? && !is_over;
    let conversation = describe(&tenant, &listing(&tenant, &id).await?).await?;
    json_reply(StatusCode::ACCEPTED, &Stopped { stopped, conversation })
}

/// Stops a conversation. One that does not run is stopped, also for workers: it does not continue with a default answer either. Returns
/// whether there was anything to stop.
pub(crate) async fn stop_run(app: &App, tenant: &Tenant, id: &LogId, now: bool) -> Result<bool, Problem> {
    check_free(tenant, id).await?;
    let was_promised = app.promised.payer(&tenant.name, id).is_some();
    runs::take_back(app, tenant, id);
    // Workers would continue what does not run here.
    let is_stopped = runs::stop(tenant, id, now).await || tenant.runtime.cancel_queued(id, now).await?;
    Ok(is_stopped || was_promised)
}

async fn pause(call: Call) -> Reply {
    let (token, Pause {}) = (call.token()?, call.json()?);
    let tenant = call.app.tenant(token)?;
    let Listing { id, summary, .. } = find(&tenant, token, call.param("id")).await?;
    if matches!(summary.progress, Progress::Closed(_)) {
        return Err(Problem::over(format!("`{id}` has ended"))
            .hint("only what is not over is paused; a message continues it: `POST /messages`"));
    }
    let reply = note(&call, &tenant, &id, Instruction::Pause).await?;
    // One that waits for its turn to run does not wait any longer.
    runs::pause(&tenant, &id);
    Ok(reply)
}

async fn next(call: Call) -> Reply {
    let (token, NextSpeaker { who }) = (call.token()?, call.json()?);
    let tenant = call.app.tenant(token)?;
    let Listing { id, .. } = find(&tenant, token, call.param("id")).await?;
    let who = participant(&tenant, &id, ("/who", &who)).await?;
    note(&call, &tenant, &id, Instruction::NextSpeaker { who }).await
}

/// Gives an instruction once for each key. It does not continue a conversation that does not run.
pub(super) async fn note(call: &Call, tenant: &Arc<Tenant>, id: &LogId, instruction: Instruction) -> Reply {
    let key = Key::of(call, &format!("{id}/{}", call.path)).await?;
    let was_posted = match &key {
        Some(key) => key.was_posted(tenant, id).await?,
        None => false,
    };
    if !was_posted {
        check_free(tenant, id).await?;
    }
    let inbox_key = key.as_ref().map_or_else(|| fresh_id().to_string(), Key::inbox_key);
    if let Steered::Refused(why) = tenant.runtime.steer_once(id, instruction, &inbox_key).await? {
        return Err(Problem::refused(why.to_string()));
    }
    tenant.runs.renew(id);
    tenant.runs.note_change(id);
    let document = describe(tenant, &listing(tenant, id).await?).await?;
    Ok(replayed(json_reply(StatusCode::ACCEPTED, &document)?, was_posted))
}

/// Continues a conversation that runs and was paused.
async fn unpause(tenant: &Tenant, id: &LogId) -> Result<(), Problem> {
    let Some(open) = tenant.runtime.get(id) else { return Ok(()) };
    if listing(tenant, id).await?.summary.is_paused {
        carried_out(id, open.instruct(Instruction::Resume)).await?;
    }
    Ok(())
}

async fn resume(call: Call) -> Reply {
    let (token, Resume { limits }) = (call.token()?, call.json()?);
    let (app, tenant) = (&call.app, call.app.tenant(token)?);
    if app.is_stopping() {
        return Err(Problem::stopping());
    }
    let found = find(&tenant, token, call.param("id")).await?;
    let key = Key::of(&call, &format!("{}/{}", found.id, call.path)).await?;
    let id = match once(&call, found, key.as_ref())? {
        Some(id) => id,
        None => return resumed_before(&call, &tenant).await,
    };
    // One that is paused waits for a place, however many others do.
    let slot = match tenant.runs.is_running(&id) {
        true => app.wait(token),
        false => app.join(token).await?,
    };
    if !enter_or_raise(&tenant, &id, limits).await? {
        return json_reply(StatusCode::ACCEPTED, &describe(&tenant, &listing(&tenant, &id).await?).await?);
    }
    let resumed = async {
        let opened = open(app, &tenant, &id, limits, &slot.payer).await?;
        match opened.conversation.resume(None).await? {
            Resumed::Continues => Ok(opened),
            Resumed::Done(reason) => {
                Err(Problem::over(format!("it is over: {reason}")).hint("a message continues it"))
            }
            Resumed::EndsAgain(reason) => Err(Problem::over(format!("it would end again at once: {reason}"))
                .hint("allow more with `limits`, or send a message")),
        }
    };
    match resumed.await {
        Ok(opened) => run(app, &tenant, &id, slot, Some(opened)),
        Err(problem) => {
            if tenant.runs.leave(&id) {
                run(app, &tenant, &id, slot, None);
            }
            return Err(problem);
        }
    }
    json_reply(StatusCode::ACCEPTED, &describe(&tenant, &listing(&tenant, &id).await?).await?)
}

/// Takes the right to run a conversation that is to continue. If it runs, raises its limits and ends its pause instead. A run that has ended the
/// conversation does not continue it, whatever it receives: it is waited for until that has left it. Returns whether the right was taken.
async fn enter_or_raise(tenant: &Tenant, id: &LogId, limits: LimitOverrides) -> Result<bool, Problem> {
    loop {
        let summary = listing(tenant, id).await?.summary;
        let is_over = matches!(summary.progress, Progress::Closed(_));
        if is_over && !is_left(tenant, id).await {
            return Err(about_to_stop(id));
        }
        if tenant.runs.enter(id) {
            return Ok(true);
        }
        if is_over {
            // Another request was faster.
            continue;
        }
        tenant.runs.renew(id);
        raise(tenant, id, limits).await?;
        unpause(tenant, id).await?;
        if limits.is_empty() || !has_ended_unraised(tenant, id, summary.events).await? {
            return Ok(false);
        }
    }
}

/// Whether a conversation has ended since the event `from`, before its limits were raised.
async fn has_ended_unraised(tenant: &Tenant, id: &LogId, from: u64) -> Result<bool, Problem> {
    let events = tenant.runtime.store().read(id, from).await?;
    let decides = |body: &Body| matches!(body, Body::Closed { .. } | Body::LimitsChanged { .. });
    let first = events.iter().find(|event| event.at.is_root() && decides(&event.body));
    Ok(first.is_some_and(|event| matches!(event.body, Body::Closed { .. })))
}

/// The conversation, if no earlier request with the key has continued it. The events that do so cannot name the key: it is noted how many
/// there were before, and the log has more since.
fn once(
    call: &Call,
    Listing { id, summary, .. }: Listing,
    key: Option<&Key>,
) -> Result<Option<LogId>, Problem> {
    let Some(key) = key else { return Ok(Some(id)) };
    let attendance = &call.app.attendance;
    match attendance.find(&key.digest()) {
        Earlier::OtherBody => return Err(mismatch()),
        Earlier::Lost(before, _) if summary.events > before.from => return Ok(None),
        Earlier::Lost(before, _) => attendance.forget(&before),
        Earlier::Nothing | Earlier::Attended => {}
    }
    let message = Some(key.inbox_key());
    let _ = attendance.note(&key.digest(), &Begun { id: id.clone(), from: summary.events, message });
    Ok(Some(id))
}

/// The response to a repeated request. It runs, if the process was killed before it could.
async fn resumed_before(call: &Call, tenant: &Arc<Tenant>) -> Reply {
    let token = call.token()?;
    let found = find(tenant, token, call.param("id")).await?;
    if found.state() == LogState::Open && !tenant.runs.is_running(&found.id) {
        check_free(tenant, &found.id).await?;
        run_stored(&call.app, tenant, &found.id, call.app.wait(token));
    }
    Ok(replayed(json_reply(StatusCode::ACCEPTED, &describe(tenant, &found).await?)?, true))
}

/// What continues a conversation that has ended. It is opened for that, so that one that another process runs is busy.
async fn continuation(call: Call) -> Reply {
    let token = call.token()?;
    let (app, tenant) = (&call.app, call.app.tenant(token)?);
    let Listing { id, summary, .. } = find(&tenant, token, call.param("id")).await?;
    let Progress::Closed(reason) = &summary.progress else {
        let resumes = !tenant.runs.is_running(&id);
        return json_reply(StatusCode::OK, &Continuation { resumes, ..Continuation::default() });
    };
    // Nothing else opens it meanwhile, with other limits.
    if !is_left(&tenant, &id).await || !tenant.runs.enter(&id) {
        return json_reply(StatusCode::OK, &Continuation::default());
    }
    let found = ways(app, &tenant, &id, reason).await;
    if tenant.runs.leave(&id) {
        run(app, &tenant, &id, app.wait(token), None);
    }
    json_reply(StatusCode::OK, &found?)
}

async fn ways(app: &App, tenant: &Tenant, id: &LogId, reason: &StopReason) -> Result<Continuation, Problem> {
    let Opened { conversation, prepared } =
        open(app, tenant, id, LimitOverrides::default(), &Payer::default()).await?;
    let resumes = conversation.continues().await?;
    let (limits, message) = match conversation.continuation(reason, None).await? {
        Some(Way::More(limits)) => (Some(limits), None),
        Some(Way::Message) => (None, Some(Way::MESSAGE.to_owned())),
        None => (None, None),
    };
    conversation.release().await?;
    drop(prepared);
    Ok(Continuation { resumes, limits, message })
}

/// Raises limits of a conversation that runs, or waits until it may.
async fn raise(tenant: &Tenant, id: &LogId, more: LimitOverrides) -> Result<(), Problem> {
    if more.is_empty() {
        return Ok(());
    }
    let key = fresh_id();
    match tenant.runtime.steer_once(id, Instruction::RaiseLimits(more), key.as_str()).await? {
        Steered::Refused(why) => Err(Problem::refused(why.to_string())),
        Steered::Done | Steered::Posted => Ok(()),
    }
}

/// Waits until the run of a conversation has carried an instruction out.
async fn carried_out(id: &LogId, confirmation: Confirmation) -> Result<(), Problem> {
    confirmation.confirmed().await.map_err(|error| match error {
        InstructionError::Refused(why) => Problem::refused(why.to_string()),
        _ => about_to_stop(id),
    })
}

fn about_to_stop(id: &LogId) -> Problem {
    Problem::busy(format!("`{id}` is about to stop")).hint("try again when it has stopped")
}
