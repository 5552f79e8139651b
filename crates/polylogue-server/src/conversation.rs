//! What clients see of a conversation.

use std::sync::Arc;

use polylogue_core::{ListQuery, Listing, LogId, LogState, OpenQuestion, Progress, StopReason};
use polylogue_runtime::Prepared;
use serde_json::{Value, json};

use crate::call::Call;
use crate::problem::Problem;
use crate::tenants::Tenant;
use crate::token::Token;
use crate::totals::outcome_word;

/// The conversation that a path names, if the token may see it.
///
/// # Errors
/// A foreign conversation is as unknown as one that there is not.
pub(crate) async fn find(tenant: &Tenant, token: &Token, id: &str) -> Result<Listing, Problem> {
    let id = LogId::new(id).map_err(|_| Problem::unknown_conversation())?;
    let listing = listing(tenant, &id).await?;
    match is_seen(tenant, token, &listing) {
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
pub(crate) fn is_seen(tenant: &Tenant, token: &Token, listing: &Listing) -> bool {
    let team = tenant.team_of_title(&listing.title);
    token.teams.is_none() || team.is_some_and(|(id, _)| token.sees(&id))
}

/// The entry of the conversation in the list.
pub(crate) async fn listing(tenant: &Tenant, id: &LogId) -> Result<Listing, Problem> {
    let query = ListQuery { id: Some(id.to_string()), ..ListQuery::default() };
    let found = tenant.runtime.list(&query).await?.logs;
    found.into_iter().find(|listing| listing.id == *id).ok_or_else(Problem::unknown_conversation)
}

/// The id of its team, or the name where the team is not served; and its own title: the one that it was given last, or began with.
fn team_and_title<'l>(tenant: &Tenant, listing: &'l Listing) -> (String, Option<&'l str>) {
    let (team, title) = tenant.team_of_title(&listing.title).unwrap_or_else(|| (listing.title.clone(), ""));
    let title = listing.summary.title.as_deref().unwrap_or(title);
    (team, Some(title).filter(|title| !title.is_empty()))
}

/// A conversation and its present state.
pub(crate) async fn describe(tenant: &Tenant, listing: &Listing) -> Result<Value, Problem> {
    let (state, ended) = state(tenant, listing).await?;
    let asked = match state {
        "waiting" => asked(&tenant.runtime.open_questions(&listing.id).await?),
        _ => Vec::new(),
    };
    Ok(document(tenant, listing, (state, ended), asked))
}

/// A conversation, as it was when it had just begun: the same however often it is asked for.
pub(crate) fn describe_begun(tenant: &Tenant, listing: &Listing) -> Value {
    let begun = Listing { summary: Default::default(), ..listing.clone() };
    document(tenant, &begun, ("running", None), Vec::new())
}

fn document(
    tenant: &Tenant,
    listing: &Listing,
    (state, ended): (&str, Option<Value>),
    asked: Vec<Value>,
) -> Value {
    let Listing { id, created, parent, summary, .. } = listing;
    let (team, title) = team_and_title(tenant, listing);
    let mut document = json!({
        "id": id,
        "team": team,
        "title": title,
        "state": state,
        "created_ms": created,
        "updated_ms": if summary.events > 0 { summary.last } else { *created },
        "seq": summary.events,
        "turns": summary.turns,
        "spent": summary.usage,
        "asked": asked,
    });
    if let Some(document) = document.as_object_mut() {
        if let Some(ended) = ended {
            document.insert("ended".into(), ended);
        }
        if let Some(parent) = parent {
            document.insert("parent".into(), json!({"id": parent.id, "seq": parent.event}));
        }
    }
    document
}

/// Its state alone, as event streams show it.
pub(crate) async fn state_of(tenant: &Tenant, id: &LogId) -> Result<Value, Problem> {
    let listing = listing(tenant, id).await?;
    let (state, ended) = state(tenant, &listing).await?;
    let asked = match state {
        "waiting" => asked(&tenant.runtime.open_questions(id).await?),
        _ => Vec::new(),
    };
    Ok(json!({"state": state, "ended": ended, "asked": asked}))
}

/// Its state, and how it ended.
async fn state(tenant: &Tenant, listing: &Listing) -> Result<(&'static str, Option<Value>), Problem> {
    let runs_here = tenant.runs.is_running(&listing.id);
    Ok(match (&listing.summary.progress, listing.state()) {
        (Progress::Closed(reason), _) => ("closed", Some(ending(reason))),
        (_, LogState::Waiting) => ("waiting", None),
        _ if runs_here => ("running", None),
        (Progress::Failed(why), _) => ("halted", Some(json!({"word": "failed", "detail": why}))),
        (_, LogState::Paused | LogState::Damaged) => ("halted", None),
        // It has begun, and another process may run it.
        _ if tenant.runtime.is_claimed(&listing.id).await? => ("running", None),
        _ => ("halted", None),
    })
}

/// Why it ended, by the words of the command line.
fn ending(reason: &StopReason) -> Value {
    json!({"word": outcome_word(reason.outcome()), "detail": reason.to_string()})
}

fn asked(questions: &[OpenQuestion]) -> Vec<Value> {
    let asked = |open: &OpenQuestion| {
        json!({
            "question": open.seq,
            "at": open.at,
            "who": open.question.who,
            "text": open.question.text,
            "call": open.question.call,
            "limit": open.question.limit.as_ref().map(|limit| json!({
                "reached": limit.reached.to_string(),
                "more": limit.more,
            })),
            "asked_ms": open.asked,
            "until_ms": open.until(),
        })
    };
    questions.iter().map(asked).collect()
}
