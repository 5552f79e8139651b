//! `/api/v1/teams`: what is served.

use axum::http::{Method, StatusCode};
use polylogue_runtime::Prepared;
use serde_json::{Value, json};

use crate::call::{Call, Reply, json_reply};
use crate::problem::Problem;
use crate::route::{Access, Route};
use crate::scope::Scope;

const READ: Access = Access::Scope(Scope::Read);

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(Method::GET, "/api/v1/teams", READ, "The teams", |call| Box::pin(list(call))),
        Route::new(Method::GET, "/api/v1/teams/{team}", READ, "One team", |call| Box::pin(get(call))),
    ]
}

async fn list(call: Call) -> Reply {
    let (token, app) = (call.token()?, &call.app);
    let tenant = app.tenant(token)?;
    let mut teams = Vec::new();
    for id in app.source.ids().into_iter().filter(|id| token.sees(id)) {
        teams.push(match tenant.team(&*app.source, &id).await {
            Some(Ok(team)) => describe(&id, team),
            Some(Err(error)) => json!({"id": id, "error": error.what, "hint": error.hint}),
            None => continue,
        });
    }
    json_reply(StatusCode::OK, &json!({"teams": teams}))
}

async fn get(call: Call) -> Reply {
    let (token, app, id) = (call.token()?, &call.app, call.param("team"));
    let tenant = app.tenant(token)?;
    let found = if token.sees(id) { tenant.team(&*app.source, id).await } else { None };
    let team = found.ok_or_else(|| Problem::unknown_team(id))??;
    json_reply(StatusCode::OK, &describe(id, team))
}

/// What clients see of a team.
fn describe(id: &str, prepared: &Prepared) -> Value {
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
    })
}
