//! What clients see of a conversation.

use std::sync::Arc;

use polylogue_core::{Listing, LogId, LogState, OpenState, Progress, StopReason, StoreError};
use polylogue_runtime::{Error, Prepared};
use polylogue_wire::conversation::{
    Conversation, ConversationState, Ended, Outcome, Parent, PendingQuestion,
};
use polylogue_wire::stream::Status;
use serde_json::Value;
use tracing::warn;

use crate::call::Call;
use crate::problem::Problem;
use crate::tenants::Tenant;
use crate::token::Token;

/// The conversation that a path names, if the token may see it.
///
/// # Errors
/// A foreign conversation is as unknown as one that there is not.
pub(crate) async fn find(tenant: &Tenant, token: &Token, id: &str) -> Result<Listing, Problem> {
    let id = LogId::new(id).map_err(|_| Problem::unknown_conversation())?;
    let listing = listing(tenant, &id).await?;
    match is_seen(tenant, token, &listing).await {
        true => Ok(listing),
        false => Err(Problem::unknown_conversation()),
    }
}

/// The team that the field `team` of a body names, if the token may see it.
pub(crate) async fn served_team(call: &Call, tenant: &Tenant, id: &str) -> Result<Arc<Prepared>, Problem> {
    let found = if call.token()?.sees(id) { tenant.team(&*call.app.source, id).await } else { None };
    Ok(found.ok_or_else(|| Problem::unknown_team(id).at("/team", "unknown team"))??)
}

/// Whether the token may see it. One that is limited to some teams sees conversations of these, and of no team that is not served.
pub(crate) async fn is_seen(tenant: &Tenant, token: &Token, listing: &Listing) -> bool {
    token.teams.is_none() || tenant.team_of(listing).await.is_some_and(|(id, _)| token.sees(&id))
}

/// The entry of the conversation in the list.
pub(crate) async fn listing(tenant: &Tenant, id: &LogId) -> Result<Listing, Problem> {
    Ok(tenant.runtime.listing(id).await?)
}

/// Whether the last response of a conversation has ended: with a result, or with a question.
pub(crate) fn is_at_rest(listing: &Listing) -> bool {
    matches!(listing.state(), LogState::Done | LogState::Ended | LogState::Waiting)
}

/// A conversation and its present state.
pub(crate) async fn describe(tenant: &Tenant, listing: &Listing) -> Result<Conversation, Problem> {
    let (changed, status) = present(tenant, listing).await?;
    let listing = changed.as_ref().unwrap_or(listing);
    let Listing { id, title: whole, created, parent, summary, .. } = listing;
    let (team, title) = tenant.team_of(listing).await.unwrap_or_else(|| (whole.clone(), ""));
    let team_name = whole.strip_suffix(title).unwrap_or(whole).trim_end().to_owned();
    Ok(Conversation {
        id: id.clone(),
        team,
        team_name,
        // The one that it was given last, or began with.
        title: Some(summary.title.as_deref().unwrap_or(title).to_owned()).filter(|title| !title.is_empty()),
        task: tenant.runtime.task(listing).await,
        state: status.state,
        created_ms: *created,
        started_ms: summary.started,
        updated_ms: if summary.events > 0 { summary.last } else { *created },
        seq: summary.events,
        turns: summary.turns,
        usage: summary.usage,
        questions: status.questions,
        paused: summary.is_paused,
        archived: listing.is_archived,
        ended: status.ended,
        halted: status.halted,
        imported: None,
        node: None,
        bound: None,
        bound_ended: None,
        parent: parent.as_ref().map(|parent| Parent {
            id: parent.id.clone(),
            seq: parent.event,
            edited: parent.edited,
        }),
    })
}

/// Its state alone, as event streams show it.
pub(crate) async fn state_of(tenant: &Tenant, id: &LogId) -> Result<Value, Problem> {
    let listing = listing(tenant, id).await?;
    let (_, status) = present(tenant, &listing).await?;
    serde_json::to_value(status).map_err(|error| Problem::internal(error.to_string()))
}

/// The present state of a conversation, and its entry in the list if that was read again: a run that has ended since `listing` was read is
/// over, and `listing` does not have its end.
async fn present(tenant: &Tenant, listing: &Listing) -> Result<(Option<Listing>, Status), Problem> {
    let before = status(tenant, listing).await?;
    if before.state != ConversationState::Halted || before.ended.is_some() {
        return Ok((None, before));
    }
    let now = match self::listing(tenant, &listing.id).await {
        Err(problem) if problem.is_not_found() => return Ok((None, before)),
        now => now?,
    };
    let status =
        if now.summary.events == listing.summary.events { before } else { status(tenant, &now).await? };
    Ok((Some(now), status))
}

async fn status(tenant: &Tenant, listing: &Listing) -> Result<Status, Problem> {
    let status = status_without_questions(tenant, listing).await?;
    match status.state {
        ConversationState::Waiting => {}
        ConversationState::Halted => {
            return Ok(Status { in_progress: rests_here(tenant, listing), ..status });
        }
        _ => return Ok(status),
    }
    match tenant.runtime.open_questions_of(listing).await {
        Ok(open) => {
            let runs_here = tenant.runs.is_running(&listing.id);
            let in_progress = runs_here && tenant.runtime.has_parallel_turns(&listing.id).await?;
            let questions = open.iter().map(PendingQuestion::from).collect();
            Ok(Status { questions, in_progress, ..status })
        }
        // The others can be listed.
        Err(error) if is_damage(&error) => {
            warn!(conversation = %listing.id, %error, "a conversation is shown as damaged");
            Ok(failed(damaged(&listing.id)))
        }
        Err(error) => Err(error.into()),
    }
}

/// Whether it is paused, and this process continues it when it is resumed: also one that waits here until it may run.
fn rests_here(tenant: &Tenant, listing: &Listing) -> bool {
    let waits = || waits_here(tenant, &listing.id);
    listing.state() == LogState::Paused && (tenant.runs.rests(&listing.id) || waits())
}

/// Whether another program has cancelled it while it waited here until it may run: it does not begin then.
fn is_withdrawn(tenant: &Tenant, listing: &Listing) -> bool {
    listing.summary.cancelled.is_some() && waits_here(tenant, &listing.id)
}

/// Whether it waits in this process until it may run, or is about to be opened.
fn waits_here(tenant: &Tenant, id: &LogId) -> bool {
    tenant.runs.is_running(id) && tenant.runtime.get(id).is_none()
}

/// Whether what is stored cannot be read, or only by another version.
const fn is_damage(error: &Error) -> bool {
    let Error::Run(polylogue_core::Error::Store(error)) = error else { return false };
    matches!(error, StoreError::Damaged { .. } | StoreError::Older { .. } | StoreError::Newer { .. })
}

fn damaged(id: &LogId) -> Ended {
    let detail = format!("what is stored of it is damaged: `polylogue verify {id}` says how");
    Ended { word: Outcome::Failed, detail }
}

async fn status_without_questions(tenant: &Tenant, listing: &Listing) -> Result<Status, Problem> {
    let runs_here = tenant.runs.is_running(&listing.id);
    Ok(match (&listing.summary.progress, listing.state()) {
        // It is closed once nothing follows: its run may write what comes after the end, or is about to reopen it.
        (Progress::Closed(_), _) if tenant.runs.has_task(&listing.id) => of_state(ConversationState::Running),
        (Progress::Closed(reason), _) => {
            Status { ended: Some(ending(reason)), ..of_state(ConversationState::Closed) }
        }
        (_, LogState::Waiting) => of_state(ConversationState::Waiting),
        _ if runs_here && !rests_here(tenant, listing) && !is_withdrawn(tenant, listing) => {
            of_state(ConversationState::Running)
        }
        (Progress::Failed(why), _) => failed(Ended { word: Outcome::Failed, detail: why.clone() }),
        (_, LogState::Damaged) => failed(damaged(&listing.id)),
        _ => match tenant.runtime.open_state(listing).await? {
            // It has begun, and another process may run it.
            Some(OpenState::Running) => of_state(ConversationState::Running),
            halted => Status { halted, ..of_state(ConversationState::Halted) },
        },
    })
}

fn failed(ended: Ended) -> Status {
    Status { ended: Some(ended), ..of_state(ConversationState::Halted) }
}

const fn of_state(state: ConversationState) -> Status {
    Status { state, ended: None, halted: None, questions: Vec::new(), in_progress: false }
}

/// Why it ended, by the words of the command line.
pub(crate) fn ending(reason: &StopReason) -> Ended {
    Ended { word: reason.outcome().into(), detail: reason.to_string() }
}
