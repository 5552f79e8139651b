//! `/api/v1/teams/{team}/graph` and that of conversations: who can speak after whom.

use axum::http::StatusCode;
use polylogue_wire::Scope;

use crate::api::teams::team;
use crate::call::{Call, Reply, json_reply};
use crate::conversation::find;
use crate::route::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/teams/{team}/graph", Scope::Read, of_team)
            .about("Who can speak after whom in a team"),
        Route::get("/api/v1/conversations/{id}/graph", Scope::Read, of_conversation)
            .about("Who can speak after whom in the team that is stored with a conversation"),
    ]
}

async fn of_team(call: Call) -> Reply {
    json_reply(StatusCode::OK, &team(&call).await?.team().diagram().to_json())
}

async fn of_conversation(call: Call) -> Reply {
    let token = call.token()?;
    let tenant = call.app.tenant(token)?;
    let id = find(&tenant, token, call.param("id")).await?.id;
    let stored = tenant.runtime.stored_team(&id).await?;
    json_reply(StatusCode::OK, &stored.team.diagram().to_json())
}
