//! `/api/v1/cluster`: what workers run, and what waits for them.

use std::sync::Arc;

use axum::http::StatusCode;
use polylogue_wire::Scope;

use crate::app::App;
use crate::call::{Call, Reply, json_reply};
use crate::cluster::cluster_of;
use crate::live::follower::Follower;
use crate::problem::Problem;
use crate::route::Route;
use crate::tenants::Tenant;
use crate::token::Token;

/// The most conversations of a reply, and how many it has where the request does not say.
const MOST: u64 = 10_000;
const LISTED: u64 = 100;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/cluster", Scope::Read, get)
            .about("What workers run, and what waits for them")
            .query(&["limit"]),
    ]
}

/// The tenant of a token that may see the queue of its store, if that is one.
pub(super) fn queue_for(app: &App, token: &Token) -> Result<Arc<Tenant>, Problem> {
    if token.teams.is_some() {
        return Err(Problem::forbidden("the token is limited to some teams, and workers run those of all")
            .hint("`polylogue token new` without `--team` makes one that sees them"));
    }
    let tenant = app.tenant(token)?;
    tenant.runtime.queue().map_err(|_| {
        Problem::refused("the store of this server cannot be shared by workers")
            .hint("start the server with `--store`, a SQLite file or `postgres://USER@HOST/DATABASE`")
    })?;
    Ok(tenant)
}

async fn get(call: Call) -> Reply {
    let token = call.token()?;
    let tenant = queue_for(&call.app, token)?;
    let limit = call.limit(LISTED, MOST)?;
    let watch = tenant.follower.as_ref().map(Follower::watch);
    let mut cluster = cluster_of(&tenant.runtime, watch, limit).await?;
    // Addresses are for processes that know a secret.
    cluster.workers.iter_mut().for_each(|worker| worker.address = None);
    if token.tenant != Token::LOCAL {
        // Processes are those of the people who run the server, and budgets and limits those of the command line.
        (cluster.workers, cluster.budgets, cluster.rate_limits) = (Vec::new(), Vec::new(), Vec::new());
    }
    json_reply(StatusCode::OK, &cluster)
}
