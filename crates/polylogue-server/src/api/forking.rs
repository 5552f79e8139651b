//! Forks of conversations.

use polylogue_core::{Body, Instruction, Listing, LogId, Name, Store as _};
use polylogue_runtime::Prepared;
use polylogue_runtime::fork::ForkPoint;
use polylogue_runtime::stored::fresh_id;
use polylogue_wire::Scope;
use polylogue_wire::conversation::Fork;

use super::conversations::created;
use crate::app::App;
use crate::beginning::{is_taken, take_back_unmade};
use crate::call::{Call, Reply};
use crate::conversation::{find, listing, served_team};
use crate::idempotency::Key;
use crate::problem::Problem;
use crate::route::Route;
use crate::runs::{promise, run_stored};
use crate::schema::of_request;
use crate::spending::Payer;
use crate::tenants::Tenant;
use crate::token::Token;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::post("/api/v1/conversations/{id}/fork", Scope::Run, fork)
            .about("Fork a conversation")
            .body(of_request::<Fork>),
    ]
}

async fn fork(call: Call) -> Reply {
    let (token, Fork { seq, text, team, run }) = (call.token()?, call.json()?);
    let (app, tenant) = (&call.app, call.app.tenant(token)?);
    let Listing { id, .. } = find(&tenant, token, call.param("id")).await?;
    let key = Key::of(&call, &format!("{id}/fork")).await?;
    if let Some(key) = &key
        && let Some(listing) = key.made(&tenant).await?
    {
        if listing.summary.events > 0 {
            return created(&tenant, &listing.id, true).await;
        }
        // The process was killed before its events were stored.
        tenant.remove(&listing.id).await?;
    }
    if let Some(text) = &text {
        check_text(token, text, replaced(&tenant, &id, seq).await?)?;
    }
    let slot = if run { Some(app.join(token).await?) } else { None };
    let team = match &team {
        Some(team) => Some(served_team(&call, &tenant, team).await?),
        None => None,
    };
    let point = ForkPoint { event: seq, text, ..ForkPoint::default() };
    let payer = slot.as_ref().map(|slot| &slot.payer);
    let (fork, is_replayed) =
        make((app, &tenant), (&id, &point), team.as_deref(), (key.as_ref(), payer)).await?;
    if is_replayed {
        return created(&tenant, &fork, true).await;
    }
    if let Some(slot) = slot {
        if listing(&tenant, &fork).await?.summary.is_paused {
            // The pause was copied.
            tenant.runtime.steer(&fork, Instruction::Resume).await?;
        }
        run_stored(app, &tenant, &fork, slot);
    }
    created(&tenant, &fork, false).await
}

/// Makes the fork, which is to run if someone pays for it. Returns its id, and whether another process has made it meanwhile, for a request with
/// the same key.
async fn make(
    (app, tenant): (&App, &Tenant),
    (id, point): (&LogId, &ForkPoint),
    team: Option<&Prepared>,
    (key, payer): (Option<&Key>, Option<&Payer>),
) -> Result<(LogId, bool), Problem> {
    loop {
        let log = key.map_or_else(|| Ok(fresh_id().into()), Key::new_log)?;
        let new = log.id.clone();
        if let Some(payer) = payer {
            // Before it is made: a process that is killed in between leaves none that never runs.
            promise(app, tenant, &new, payer);
        }
        let error = match tenant.runtime.fork_as(id, point, log, team).await {
            Ok(fork) => return Ok((fork.id, false)),
            Err(error) => error,
        };
        if payer.is_some() {
            take_back_unmade(app, tenant, &new, &error);
        }
        let exists = is_taken(&error);
        match key {
            Some(key) if exists => {
                // Not if it was for another fork.
                key.made(tenant).await?;
                return Ok((new, true));
            }
            None if exists => {}
            _ => return Err(error.into()),
        }
    }
}

/// What a text of a fork replaces.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Replaced {
    /// An answer to a question.
    Answer,
    /// A message of a participant.
    OfParticipant,
    /// The task, a message of the user or of the system, or nothing.
    Other,
}

/// Whether a token may fork with this text. What a participant says is as good as an answer. Only an answer can be empty.
fn check_text(token: &Token, text: &str, replaced: Replaced) -> Result<(), Problem> {
    if replaced != Replaced::Other && !token.has(Scope::Answer) {
        return Err(Problem::may_not_answer());
    }
    if replaced != Replaced::Answer && text.trim().is_empty() {
        return Err(Problem::bad_request("the text is empty").at("/text", "empty"));
    }
    Ok(())
}

/// What another text of the event `seq` replaces.
async fn replaced(tenant: &Tenant, id: &LogId, seq: Option<u64>) -> Result<Replaced, Problem> {
    let Some(seq) = seq else { return Ok(Replaced::Other) };
    let events = tenant.runtime.store().read_range(id, seq..seq.saturating_add(1)).await?;
    let author = match events.first().map(|event| &event.body) {
        Some(Body::InputProvided { .. }) => return Ok(Replaced::Answer),
        Some(Body::Message(said) | Body::Posted(said) | Body::Sent(said)) => Some(&said.from),
        Some(Body::Reopened { message: Some(said), .. }) => Some(&said.from),
        _ => None,
    };
    let is_participant = |author: &Name| ![Name::user(), Name::system()].contains(author);
    Ok(if author.is_some_and(is_participant) { Replaced::OfParticipant } else { Replaced::Other })
}
