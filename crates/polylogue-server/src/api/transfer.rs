//! `/api/v1/conversations/{id}/export` and `/api/v1/imports`: conversations as files. What is imported is data from elsewhere: it is
//! checked, belongs to the tenant of the token, and never runs.

use std::sync::Arc;

use axum::body::Body;
use axum::http::Response;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use polylogue_core::Listing;
use polylogue_runtime::Prepared;
use polylogue_runtime::stored::{NewLog, fresh_id};
use polylogue_wire::Scope;
use polylogue_wire::conversation::Import;
use serde_json::Value;

use super::conversations::created;
use crate::beginning::is_taken;
use crate::call::{Call, Reply};
use crate::conversation::{find, served_team};
use crate::idempotency::Key;
use crate::problem::Problem;
use crate::route::Route;
use crate::schema::of_request;
use crate::tenants::Tenant;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/conversations/{id}/export", Scope::Read, export)
            .about("The conversation as a file: its title, and its events with their checksums"),
        Route::post("/api/v1/imports", Scope::Run, import)
            .about("Import an exported conversation, to read it")
            .body(of_request::<Import>)
            .large(),
    ]
}

async fn export(call: Call) -> Reply {
    let token = call.token()?;
    let tenant = call.app.tenant(token)?;
    let Listing { id, .. } = find(&tenant, token, call.param("id")).await?;
    let text = tenant.runtime.export(&id).await?;
    let response = Response::builder()
        .header(CONTENT_TYPE, "application/jsonl")
        .header(CONTENT_DISPOSITION, format!("attachment; filename=\"{id}.jsonl\""));
    response.body(Body::from(text)).map_err(|error| Problem::internal(error.to_string()))
}

async fn import(call: Call) -> Reply {
    let (token, Import { log, team }) = (call.token()?, call.json()?);
    let tenant = call.app.tenant(token)?;
    let key = Key::of(&call, "imports").await?;
    if let Some(key) = &key
        && let Some(listing) = key.made(&tenant).await?
    {
        if listing.summary.events > 0 {
            return created(&tenant, &listing.id, true).await;
        }
        // The process was killed before its events were stored.
        tenant.remove(&listing.id).await?;
    }
    loop {
        let new = key.as_ref().map_or_else(|| Ok(fresh_id().into()), Key::new_log)?;
        if store(&call, &tenant, (&new, &log), team.as_deref()).await? {
            tenant.runs.note_change(&new.id);
            return created(&tenant, &new.id, false).await;
        }
        if let Some(key) = &key {
            // Another process has made it for the same key.
            key.made(&tenant).await?;
            return created(&tenant, &new.id, true).await;
        }
    }
}

/// Stores the conversation in `log` under an id, unless there is one with that id already. Returns whether it has stored it.
async fn store(
    call: &Call,
    tenant: &Tenant,
    (new, log): (&NewLog, &str),
    team: Option<&str>,
) -> Result<bool, Problem> {
    let import = async |team: Option<&Prepared>| {
        let imported = tenant.runtime.import(log.as_bytes(), new.clone(), team).await;
        match imported {
            Ok(()) => Ok(true),
            Err(error) if is_taken(&error) => Ok(false),
            Err(error) => Err(Problem::from(error)),
        }
    };
    if let Some(team) = team {
        let team = served_team(call, tenant, team).await?;
        return import(Some(&team)).await;
    }
    if let Some(team) = named_team(call, tenant, log).await
        && let Ok(is_stored) = import(Some(&team)).await
    {
        return Ok(is_stored);
    }
    // A token that sees some teams sees no conversation of none.
    if call.token()?.teams.is_some() {
        let why = "the token sees only some teams, and none of them is that of the file";
        return Err(Problem::bad_request(why).at("/team", "required for this token"));
    }
    import(None).await
}

/// The served team whose name the title of a log begins with.
async fn named_team(call: &Call, tenant: &Tenant, log: &str) -> Option<Arc<Prepared>> {
    let first: Value = serde_json::from_str(log.lines().next()?).ok()?;
    let name = first.get("title")?.as_str()?.split(' ').next()?;
    for id in call.app.source.ids() {
        // Those of another tenant may not be prepared yet.
        if let Ok(team) = served_team(call, tenant, &id).await
            && team.team().name.as_str() == name
        {
            return Some(team);
        }
    }
    None
}
