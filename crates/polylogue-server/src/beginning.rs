//! How a conversation begins, whichever protocol asks for it.

use std::sync::Arc;

use polylogue_core::{LimitOverrides, Limits, Listing, LogId, Part, StoreError};
use polylogue_runtime::stored::{NewLog, fresh_id};
use polylogue_runtime::{Conversation, Error, Prepared, TeamRun};
use polylogue_wire::conversation::NewConversation;
use tracing::warn;

use crate::app::App;
use crate::conversation::listing;
use crate::idempotency::Key;
use crate::opened::Opened;
use crate::problem::Problem;
use crate::runs::{self, StartOptions, is_held, promise, run_stored, take_back};
use crate::spending::Payer;
use crate::tenants::Tenant;
use crate::token::Token;

/// The conversation that an earlier request with this key has made. One that was made and has not run, because the process was killed
/// in between, runs now.
pub(crate) async fn made_before(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    token: &Token,
    key: Option<&Key>,
) -> Result<Option<Listing>, Problem> {
    let Some(key) = key else { return Ok(None) };
    let made = key.made(tenant).await?;
    let has_run = |listing: &&Listing| listing.summary.events > 1 || tenant.runs.is_running(&listing.id);
    if let Some(listing) = made.as_ref().filter(|listing| !has_run(listing))
        && !is_held(tenant, &listing.id).await
    {
        run_stored(app, tenant, &listing.id, app.wait(token));
    }
    Ok(made)
}

/// Whether there is a conversation with the id already: an earlier one by chance, or one that another process has made for the same key.
pub(crate) const fn is_taken(error: &Error) -> bool {
    matches!(error, Error::Run(polylogue_core::Error::Store(StoreError::Exists { .. })))
}

/// Takes back what was [promised](promise) for a conversation that was not made because of `error`. If there [is](is_taken) one with its id,
/// what another process has promised for that stays.
pub(crate) fn take_back_unmade(app: &App, tenant: &Tenant, id: &LogId, error: &Error) {
    if !is_taken(error) {
        return take_back(app, tenant, id);
    }
    if let Err(error) = app.promised.remove_own(&tenant.name, id) {
        warn!(conversation = %id, %error, "a restart may look at a conversation of another process");
    }
}

/// Makes a conversation, begins it, and takes the right to run it: what is sent to it from now on comes after its opening, however long it
/// waits until it may run. The opening has the parts `attached`, which nothing else has.
pub(crate) async fn make(
    (app, tenant): (&App, &Tenant),
    run: TeamRun<'_>,
    (new, title): (&NewLog, Option<&str>),
    (payer, attached): (&Payer, Vec<Part>),
) -> Result<Conversation, Error> {
    let id = &new.id;
    let run = run.with_budgets(payer.budgets()).with_daily(payer.daily()).with_attached(attached);
    // Both before it is made: a process that is killed in between leaves none that never runs, and no message runs it besides.
    promise(app, tenant, id, payer);
    let is_new = tenant.runs.enter(id);
    let making = async {
        let conversation = tenant.runtime.begin_as(&run, new.clone(), title).await?;
        conversation.begin().await?;
        Ok::<_, Error>(conversation)
    };
    let made = match is_new {
        true => tenant.runs.hold(id, making).await,
        false => making.await,
    };
    if let (Err(error), true) = (&made, is_new) {
        take_back_unmade(app, tenant, id, error);
        while tenant.runs.leave(id) {}
    }
    made
}

/// Begins a conversation and runs it. Returns also whether another process has made it meanwhile, for a request with the same key.
pub(crate) async fn begin(
    app: &Arc<App>,
    tenant: &Arc<Tenant>,
    token: &Token,
    (prepared, wanted, options): (Arc<Prepared>, &NewConversation, StartOptions),
    key: Option<&Key>,
) -> Result<(Listing, bool), Problem> {
    let mut run_of_team = prepare_run(&prepared, wanted).await?;
    let slot = app.join(token).await?;
    let title = wanted.title.as_deref().map(str::trim).filter(|title| !title.is_empty());
    loop {
        let new = key.map_or_else(|| Ok(fresh_id().into()), Key::new_log)?;
        match make((app, tenant), run_of_team, (&new, title), (&slot.payer, Vec::new())).await {
            Ok(conversation) => {
                let opened = Opened { conversation, prepared };
                runs::spawn(app, tenant, &new.id, slot, (Some(opened), options));
                return Ok((listing(tenant, &new.id).await?, false));
            }
            Err(error) if is_taken(&error) => match key {
                Some(key) => return Ok((key.made(tenant).await?.ok_or(error)?, true)),
                None => run_of_team = prepare_run(&prepared, wanted).await?,
            },
            Err(error) => return Err(error.into()),
        }
    }
}

/// The team with what the caller gave.
async fn prepare_run<'p>(prepared: &'p Prepared, wanted: &NewConversation) -> Result<TeamRun<'p>, Problem> {
    check_limits(&wanted.limits, &prepared.limits())?;
    prepared.reread_memory().await?;
    let mut run = match wanted.inputs.is_empty() {
        true => prepared.run(),
        false => prepared.run_with(wanted.inputs.clone())?,
    };
    if let Some(message) = &wanted.message {
        run = run.with_task(message.as_str());
    }
    if run.task().trim().is_empty() {
        let (what, at) = match wanted.message {
            Some(_) => ("the message is empty", "empty"),
            None => ("the team has no task of its own, and there is no `message`", "required for this team"),
        };
        return Err(Problem::bad_request(what).at("/message", at));
    }
    Ok(run.with_limits(wanted.limits))
}

/// Refuses limits above those of the team.
fn check_limits(wanted: &LimitOverrides, team: &Limits) -> Result<(), Problem> {
    fn is_above<T: PartialOrd>(wanted: Option<T>, own: Option<T>) -> bool {
        wanted.zip(own).is_some_and(|(wanted, own)| wanted > own)
    }
    let above = [
        ("turns", is_above(wanted.turns, team.turns)),
        ("calls", is_above(wanted.calls, team.calls)),
        ("tokens", is_above(wanted.tokens, team.tokens)),
        ("cost", is_above(wanted.cost, team.cost)),
        ("time_ms", is_above(wanted.time_ms, team.time_ms)),
    ];
    match above.into_iter().find(|(_, is_above)| *is_above) {
        None => Ok(()),
        Some((name, _)) => {
            Err(Problem::bad_request(format!("`limits.{name}` is above the limit of the team"))
                .at(format!("/limits/{name}"), "above the limit of the team")
                .hint("`GET /api/v1/teams/{team}` shows its limits"))
        }
    }
}
