//! Continuing a conversation: one that has stopped, that is paused, or that has ended.

use std::sync::Arc;

use axum::http::StatusCode;
use polylogue_core::{
    Body, Confirmation, Instruction, InstructionError, LimitOverrides, Listing, LogId, LogState, Progress,
    StopReason, Store as _,
};
use polylogue_runtime::steering::Steered;
use polylogue_runtime::{Continuation as Way, Resumed};
use polylogue_wire::Scope;
use polylogue_wire::conversation::{Continuation, Resume};

use super::conversations::replayed;
use super::steering::described;
use crate::app::App;
use crate::call::{Call, Reply, json_reply};
use crate::conversation::{describe, find, listing};
use crate::idempotency::Key;
use crate::opened::{Opened, open};
use crate::problem::Problem;
use crate::route::Route;
use crate::runs::{is_left, renew, run, run_stored};
use crate::schema::of_request;
use crate::spending::Payer;
use crate::steered::other_node;
use crate::tenants::Tenant;
use crate::token::Token;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/v1/conversations/{id}/resume", Scope::Run, resume)
            .about("Continue a conversation")
            .body(of_request::<Resume>),
        Route::get("/api/v1/conversations/{id}/continuation", Scope::Run, continuation)
            .about("How a conversation that has ended can continue")
            // Dropped half-way, it would keep the right to run the conversation.
            .completed(),
    ]
}

/// Continues a conversation that runs, or waits until it may, and was paused.
async fn unpause(tenant: &Tenant, id: &LogId, key: Option<&Key>) -> Result<(), Problem> {
    if !listing(tenant, id).await?.summary.is_paused || note(tenant, id, key).await? {
        return Ok(());
    }
    match tenant.runtime.get(id) {
        Some(open) => carried_out(id, open.instruct(Instruction::Resume)).await,
        None => accepted(tenant.runtime.steer(id, Instruction::Resume).await?),
    }
}

async fn resume(call: Call) -> Reply {
    let (token, Resume { limits }) = (call.token()?, call.json()?);
    let (app, tenant) = (&call.app, call.app.tenant(token)?);
    if app.is_stopping() {
        return Err(Problem::stopping());
    }
    let id = find(&tenant, token, call.param("id")).await?.id;
    let key = Key::of(&call, &format!("{id}/{}", call.path)).await?;
    if let Some(key) = &key
        && has_resumed(&tenant, &id, key).await?
    {
        return resumed_before(&call, &tenant).await;
    }
    // Read when no other request with the key is being carried out.
    let summary = listing(&tenant, &id).await?.summary;
    let is_over = matches!(summary.progress, Progress::Closed(_));
    let can_be_given = !is_over && (summary.is_paused || !limits.is_empty());
    // The process that has ended one only leaves it: it is waited for. Else there is nothing for it to do.
    if can_be_given
        && other_node(&tenant, &id).await?.is_some()
        && resume_elsewhere(&call, &tenant, (&id, limits, summary.events), key.as_ref()).await?
    {
        return json_reply(StatusCode::ACCEPTED, &described(&tenant, &id).await?);
    }
    // One that is paused waits for a place, however many others do.
    let slot = match tenant.runs.is_running(&id) {
        true => app.wait(token),
        false => app.join(token).await?,
    };
    if !enter_or_raise(app, &tenant, &id, (limits, token, key.as_ref())).await? {
        note(&tenant, &id, key.as_ref()).await?;
        return json_reply(StatusCode::ACCEPTED, &describe(&tenant, &listing(&tenant, &id).await?).await?);
    }
    let resumed = async {
        let opened = open(app, &tenant, &id, limits, &slot.payer).await?;
        match opened.conversation.resume(None).await? {
            Resumed::Continues => {
                let is_noted = note(&tenant, &id, key.as_ref()).await?;
                if !is_noted && opened.conversation.is_paused().await {
                    // Before it waits until it may run: a restart leaves what is paused alone.
                    opened.conversation.log_resumption().await?;
                }
                Ok(opened)
            }
            Resumed::Done(reason) => {
                Err(Problem::over(format!("it is over: {reason}")).hint("a message continues it"))
            }
            Resumed::EndsAgain(reason) => Err(Problem::over(format!("it would end again at once: {reason}"))
                .hint(hint_to_continue(&reason))),
        }
    };
    match tenant.runs.hold(&id, resumed).await {
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

/// What continues a conversation that would end again at once. `limits` and messages are of the conversation alone, not of what it shares.
const fn hint_to_continue(reason: &StopReason) -> &'static str {
    if reason.is_shared() {
        "neither `limits` nor a message raise this budget: resume it when the budget allows more"
    } else {
        "allow more with `limits`, or send a message"
    }
}

/// Has the process that runs a conversation raise its limits, and end its pause. Returns whether it has: not if it ended the conversation, after the
/// event `from`, before the limits were raised.
async fn resume_elsewhere(
    call: &Call,
    tenant: &Arc<Tenant>,
    (id, limits, from): (&LogId, LimitOverrides, u64),
    key: Option<&Key>,
) -> Result<bool, Problem> {
    raise(tenant, id, (limits, call.token()?)).await?;
    if !limits.is_empty() && has_ended_unraised(tenant, id, from).await? {
        return Ok(false);
    }
    if !note(tenant, id, key).await? && listing(tenant, id).await?.summary.is_paused {
        accepted(tenant.runtime.steer(id, Instruction::Resume).await?)?;
    }
    // It has left it meanwhile.
    if other_node(tenant, id).await?.is_none() {
        run_stored(&call.app, tenant, id, call.app.wait(call.token()?));
    }
    Ok(true)
}

/// Puts into the inbox that a request with this key continues the conversation, for the one that repeats it, at any server. Returns whether
/// it has, which ends a pause. What has not begun has no inbox, and continuing it twice begins it once.
async fn note(tenant: &Tenant, id: &LogId, key: Option<&Key>) -> Result<bool, Problem> {
    let Some(key) = key else { return Ok(false) };
    if listing(tenant, id).await?.summary.progress == Progress::New {
        return Ok(false);
    }
    accepted(tenant.runtime.steer_once(id, Instruction::Resume, key.of_instruction()).await?)?;
    Ok(true)
}

/// Takes the right to run a conversation that is to continue. If it runs, raises its limits and ends its pause instead. A run that has ended the
/// conversation does not continue it, whatever it receives: it is waited for until that has left it. Returns whether the right was taken.
async fn enter_or_raise(
    app: &App,
    tenant: &Tenant,
    id: &LogId,
    (limits, token, key): (LimitOverrides, &Token, Option<&Key>),
) -> Result<bool, Problem> {
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
        renew(app, tenant, id);
        raise(tenant, id, (limits, token)).await?;
        unpause(tenant, id, key).await?;
        if limits.is_empty() || !has_ended_unraised(tenant, id, summary.events).await? {
            return Ok(false);
        }
    }
}

/// Whether a conversation has ended since the event `from`, before its limits were raised.
async fn has_ended_unraised(tenant: &Tenant, id: &LogId, from: u64) -> Result<bool, Problem> {
    let events = tenant.runtime.store().read(id, from).await?;
    let decides = |body: &Body| matches!(body, Body::Closed { .. } | Body::LimitsChanged { .. });
    let first = events.iter().find(|event| event.chat.is_root() && decides(&event.body));
    Ok(first.is_some_and(|event| matches!(event.body, Body::Closed { .. })))
}

/// Whether an earlier request with the key has continued the conversation, or has another process continue it. One that had ended has more events
/// since: else the process was killed before it could run it.
async fn has_resumed(tenant: &Tenant, id: &LogId, key: &Key) -> Result<bool, Problem> {
    let Some(noted) = key.carried_out(tenant, id).await? else { return Ok(false) };
    let summary = listing(tenant, id).await?.summary;
    Ok(match summary.progress {
        Progress::Closed(_) => summary.events > noted.saturating_add(1),
        _ => summary.events > noted || other_node(tenant, id).await?.is_some(),
    })
}

/// The response to a repeated request. It runs, if the process was killed before it could.
async fn resumed_before(call: &Call, tenant: &Arc<Tenant>) -> Reply {
    let token = call.token()?;
    let found = find(tenant, token, call.param("id")).await?;
    let runs_here = tenant.runs.is_running(&found.id);
    if found.state() == LogState::Open && !runs_here && other_node(tenant, &found.id).await?.is_none() {
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
    let found = tenant.runs.hold(&id, find_continuation(app, &tenant, &id, reason)).await;
    if tenant.runs.leave(&id) {
        run(app, &tenant, &id, app.wait(token), None);
    }
    json_reply(StatusCode::OK, &found?)
}

async fn find_continuation(
    app: &App,
    tenant: &Tenant,
    id: &LogId,
    reason: &StopReason,
) -> Result<Continuation, Problem> {
    let Opened { conversation, prepared } =
        open(app, tenant, id, LimitOverrides::default(), &Payer::default()).await?;
    let resumes = conversation.continues().await?;
    let (limits, message) = match conversation.continuation(reason, None).await? {
        Some(Way::More(limits)) => (Some(limits), None),
        Some(Way::Message) => (None, Some(Way::MESSAGE.to_owned())),
        // A client cannot choose the model.
        Some(Way::LargerModel { .. }) | None => (None, None),
    };
    conversation.release().await?;
    drop(prepared);
    Ok(Continuation { resumes, limits, message })
}

/// Raises limits of a conversation that runs, or waits until it may, for the holder of `token`.
async fn raise(tenant: &Tenant, id: &LogId, (more, token): (LimitOverrides, &Token)) -> Result<(), Problem> {
    if more.is_empty() {
        return Ok(());
    }
    let by = Some(token.name.as_str().into());
    accepted(tenant.runtime.steer(id, Instruction::RaiseLimits { more, by }).await?)
}

fn accepted(steered: Steered) -> Result<(), Problem> {
    match steered {
        Steered::Refused(why) => Err(Problem::refused(why.to_string())),
        Steered::Done { .. } | Steered::Posted => Ok(()),
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

#[cfg(test)]
mod tests {
    use polylogue_core::AllowanceOwner;

    use super::*;

    #[test]
    fn the_hint_says_what_continues_a_conversation_and_nothing_that_does_not() {
        let own = StopReason::Calls { limit: 2 };
        let of = AllowanceOwner::Shared("shared budget `team`".into());
        let shared = StopReason::Allowance { of, limit: Box::new(own.clone()) };
        assert_eq!(hint_to_continue(&own), "allow more with `limits`, or send a message");
        assert_eq!(
            hint_to_continue(&shared),
            "neither `limits` nor a message raise this budget: resume it when the budget allows more"
        );
    }
}
