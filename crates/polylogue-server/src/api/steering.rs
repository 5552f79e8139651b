//! What changes a conversation: messages, answers, stopping, pausing. A process that runs it carries them out, whichever that is: they are
//! stored in its inbox.

use std::sync::Arc;

use axum::http::StatusCode;
use polylogue_core::{Body, Instruction, Listing, LogId, Message, Progress, Store as _};
use polylogue_runtime::steering::{InstructionKey, Steered};
use polylogue_wire::Scope;
use polylogue_wire::conversation::{
    Accepted, Answer, Conversation, NewMessage, NextSpeaker, Pause, Stop, Stopped, When,
};

use super::conversations::replayed;
use super::participants::{author, participant};
use crate::app::App;
use crate::call::{Call, Reply, json_reply};
use crate::conversation::{describe, find, listing};
use crate::default_answers::is_up;
use crate::idempotency::Key;
use crate::problem::Problem;
use crate::route::Route;
use crate::runs::{self, StartOptions};
use crate::schema::of_request;
use crate::steered::{self, other_node};
use crate::tenants::Tenant;
use crate::token::Token;
use crate::waiting::noted;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/v1/conversations/{id}/messages", Scope::Run, send)
            .about("Send a message into a conversation, running or closed")
            .body(of_request::<NewMessage>),
        Route::post("/api/v1/conversations/{id}/answers", Scope::Answer, provide_answer)
            .about("Answer a question")
            .body(of_request::<Answer>),
        Route::post("/api/v1/conversations/{id}/stop", Scope::Run, stop)
            .about("Stop a conversation")
            .body(of_request::<Stop>),
        Route::post("/api/v1/conversations/{id}/pause", Scope::Run, pause)
            .about("Pause a conversation between two turns")
            .body(of_request::<Pause>),
        Route::post("/api/v1/conversations/{id}/next", Scope::Run, next)
            .about("Choose who speaks next in its outermost chat")
            .body(of_request::<NextSpeaker>),
    ]
}

async fn send(call: Call) -> Reply {
    let (token, NewMessage { text, from }) = (call.token()?, call.json()?);
    if text.trim().is_empty() {
        return Err(Problem::bad_request("the message is empty").at("/text", "empty"));
    }
    let tenant = call.app.tenant(token)?;
    let about = find(&tenant, token, call.param("id")).await?;
    let key = Key::of(&call, about.id.as_str()).await?;
    let author = author(&tenant, token, &about.id, from.as_deref()).await?;
    let message = Instruction::Send(Message::new(author, text));
    steer(&call, &tenant, &about, message, key).await
}

async fn provide_answer(call: Call) -> Reply {
    let (token, Answer { question, text }) = (call.token()?, call.json()?);
    let tenant = call.app.tenant(token)?;
    let about = find(&tenant, token, call.param("id")).await?;
    let key = Key::of(&call, about.id.as_str()).await?;
    let by = Some(token.name.as_str().into());
    steer(&call, &tenant, &about, Instruction::Answer { question, text: text.into(), by }, key).await
}

/// Refuses an answer to what is not asked, or was answered, by a person or by default.
async fn check_open(tenant: &Tenant, id: &LogId, question: u64) -> Result<(), Problem> {
    match tenant.runtime.open_question(id, question).await? {
        Some(open) if is_up(&open) => {
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
            .hint("`questions` of the conversation lists those that are open"),
    })
}

fn answered(question: u64) -> Problem {
    Problem::answered(format!("question {question} was answered before"))
}

/// Gives an instruction once for each key, and continues the conversation.
async fn steer(
    call: &Call,
    tenant: &Arc<Tenant>,
    about: &Listing,
    instruction: Instruction,
    key: Option<Key>,
) -> Reply {
    let (seq, was_posted) =
        instruct(&call.app, tenant, (call.token()?, about), instruction, key.as_ref()).await?;
    let node = other_node(tenant, &about.id).await?;
    let response = json_reply(StatusCode::ACCEPTED, &Accepted { seq, node })?;
    Ok(replayed(response, was_posted))
}

/// Gives the conversation of `about` an instruction once for each key, and continues it. Returns the number of the event that carries it
/// out, and whether an earlier request with the key has given it.
pub(crate) async fn instruct(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    (token, about): (&Token, &Listing),
    instruction: Instruction,
    key: Option<&Key>,
) -> Result<(Option<u64>, bool), Problem> {
    let id = &about.id;
    let was_posted = match key {
        Some(key) => key.was_posted(tenant, id).await?,
        None => false,
    };
    let question = match instruction {
        Instruction::Answer { question, .. } => Some(question),
        _ => None,
    };
    if let Some(question) = question.filter(|_| !was_posted) {
        check_open(tenant, id, question).await?;
    }
    let is_elsewhere = other_node(tenant, id).await?.is_some();
    noted(app, Some(id)).await;
    let is_running = is_elsewhere || tenant.runs.is_running(id);
    if app.is_stopping() && !is_running {
        return Err(Problem::stopping());
    }
    // What runs already needs no further place.
    let slot = match was_posted || is_running {
        true => app.wait(token),
        false => app.join(token).await?,
    };
    let given = (instruction, key.map_or_else(InstructionKey::fresh, Key::of_instruction));
    let run = (slot, StartOptions::default());
    let steered = steered::steer(app, tenant, (about, is_elsewhere), given, run).await?;
    match steered {
        Steered::Done { seq } => Ok((Some(seq), was_posted)),
        // It waits for the end of a step.
        Steered::Posted => Ok((None, was_posted)),
        Steered::Refused(why) => Err(question.map_or_else(|| Problem::refused(why.to_string()), answered)),
    }
}

/// A conversation after an instruction, with the process that carries it out if that is another one.
pub(super) async fn described(tenant: &Tenant, id: &LogId) -> Result<Conversation, Problem> {
    let document = describe(tenant, &listing(tenant, id).await?).await?;
    Ok(Conversation { node: other_node(tenant, id).await?, ..document })
}

async fn stop(call: Call) -> Reply {
    let (token, Stop { when }) = (call.token()?, call.json()?);
    let tenant = call.app.tenant(token)?;
    let Listing { id, summary, .. } = find(&tenant, token, call.param("id")).await?;
    // A run that has ended it may not have left it yet.
    let is_over = matches!(summary.progress, Progress::Closed(_));
    let stopped = stop_run(&call.app, &tenant, &id, when == When::Now).await? && !is_over;
    let conversation = described(&tenant, &id).await?;
    json_reply(StatusCode::ACCEPTED, &Stopped { stopped, conversation })
}

/// Stops a conversation. One that does not run is stopped, also for workers: it does not continue with a default answer either. Returns
/// whether there was anything to stop.
pub(crate) async fn stop_run(app: &App, tenant: &Tenant, id: &LogId, now: bool) -> Result<bool, Problem> {
    let was_promised = app.promised.payer(&tenant.name, id).is_some();
    runs::take_back(app, tenant, id);
    if other_node(tenant, id).await?.is_some() {
        return stop_elsewhere(tenant, id, now).await;
    }
    // Workers would continue what does not run here.
    let is_stopped = runs::stop(tenant, id, now).await || tenant.runtime.cancel_queued(id, now).await?;
    Ok(is_stopped || was_promised)
}

/// Has the process that runs a conversation stop it. Returns whether there was anything to stop.
async fn stop_elsewhere(tenant: &Tenant, id: &LogId, now: bool) -> Result<bool, Problem> {
    if matches!(listing(tenant, id).await?.summary.progress, Progress::Closed(_)) {
        // It is just leaving it.
        return Ok(false);
    }
    match tenant.runtime.steer(id, Instruction::Cancel { now }).await? {
        Steered::Refused(why) => Err(Problem::refused(why.to_string())),
        Steered::Done { .. } | Steered::Posted => Ok(true),
    }
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
    let given = key.as_ref().map_or_else(InstructionKey::fresh, Key::of_instruction);
    let steered = tenant.runtime.steer_once(id, instruction, given).await?;
    if let Some(key) = key.as_ref().filter(|_| !was_posted) {
        key.was_posted(tenant, id).await?;
    }
    if let Steered::Refused(why) = steered {
        return Err(Problem::refused(why.to_string()));
    }
    runs::renew(&call.app, tenant, id);
    tenant.runs.note_change(id);
    let document = described(tenant, id).await?;
    Ok(replayed(json_reply(StatusCode::ACCEPTED, &document)?, was_posted))
}
