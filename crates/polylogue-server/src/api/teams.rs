//! `/api/v1/teams`: what is served.

use std::sync::Arc;

use axum::http::{Method, StatusCode};
use polylogue_runtime::Prepared;
use serde_json::{Value, json};

use crate::call::{Call, Reply, json_reply};
use crate::problem::Problem;
use crate::route::{Access, Route};
use crate::scope::Scope;
use crate::source::SourceError;

const READ: Access = Access::Scope(Scope::Read);

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/api/v1/teams", READ, "The teams", |call| Box::pin(list(call))),
        Route::new(Method::GET, "/api/v1/teams/{team}", READ, "One team", |call| Box::pin(get(call))),
        Route::new(
            Method::GET,
            "/api/v1/teams/{team}/source",
            Access::Scope(Scope::Edit),
            "The text of its team file, as it was read last",
            |call| Box::pin(source(call)),
        ),
    ]
}

async fn list(call: Call) -> Reply {
    let (token, app) = (call.token()?, &call.app);
    let tenant = app.tenant(token)?;
    let mut teams = Vec::new();
    for id in app.source.ids().into_iter().filter(|id| token.sees(id)) {
        teams.push(match tenant.team(&*app.source, &id).await {
            Some(Ok(team)) => describe(&id, &team, tenant.refused(&id)),
            Some(Err(error)) => json!({"id": id, "error": error.what, "hint": error.hint}),
            None => continue,
        });
    }
    json_reply(StatusCode::OK, &json!({"teams": teams}))
}

async fn get(call: Call) -> Reply {
    let (team, id) = (team(&call).await?, call.param("team"));
    let refused = call.app.tenant(call.token()?)?.refused(id);
    json_reply(StatusCode::OK, &describe(id, &team, refused))
}

async fn source(call: Call) -> Reply {
    let team = team(&call).await?;
    let text = team.team().text().ok_or_else(|| Problem::unavailable("the team was not read from a file"))?;
    json_reply(StatusCode::OK, &json!({"id": call.param("team"), "text": text}))
}

/// The team of the path, if the token may see it.
pub(crate) async fn team(call: &Call) -> Result<Arc<Prepared>, Problem> {
    let (token, app, id) = (call.token()?, &call.app, call.param("team"));
    let tenant = app.tenant(token)?;
    let found = if token.sees(id) { tenant.team(&*app.source, id).await } else { None };
    Ok(found.ok_or_else(|| Problem::unknown_team(id))??)
}

/// What clients see of a team, and why its file is not used if it is that of an earlier content.
fn describe(id: &str, prepared: &Prepared, refused: Option<SourceError>) -> Value {
    let (team, limits) = (prepared.team(), prepared.limits());
    let inputs: Vec<Value> =
        team.vars.iter().map(|(name, variable)| json!({"name": name, "default": variable.value})).collect();
    json!({
        "id": id,
        "name": team.name,
        "description": team.description,
        "task": team.task,
        "inputs": inputs,
        "models": team.models(),
        "scripted": prepared.is_scripted(),
        "limits": {
            "turns": limits.turns,
            "calls": limits.calls,
            "tokens": limits.tokens,
            "cost": limits.cost,
        },
        "changed": refused.map(|error| json!({"error": error.what, "hint": error.hint})),
    })
}
