//! `/api/v1/memory`: what the agents of a tenant remember from one conversation to the next.

use axum::http::StatusCode;
use polylogue_memory::{Fact, Memory as _, MemoryError, Query, Scope as Whose};
use polylogue_runtime::memory::open_memory;
use polylogue_store::Facts;
use polylogue_wire::Scope;
use polylogue_wire::memory as wire;
use tokio::task::spawn_blocking;

use crate::call::{Call, Reply, json_reply};
use crate::problem::Problem;
use crate::route::Route;

/// The most facts of a reply, and of each scope that is searched.
const MOST: u64 = 1_000;
const FOUND: u64 = 50;

/// How many are listed and found where the request does not say.
const LISTED: u64 = 100;
const USUALLY_FOUND: u64 = 5;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/memory", Scope::Read, facts)
            .about("What agents remember")
            .query(&["q", "scope", "limit"]),
        Route::delete("/api/v1/memory/{fact}", Scope::Edit, forget).about("Forget a fact"),
    ]
}

/// The memory of the tenant. Teams share it, so that a token of some of them does not see it.
async fn memory_of(call: &Call) -> Result<Facts, Problem> {
    let token = call.token()?;
    if token.teams.is_some() {
        return Err(Problem::forbidden("the token is limited to some teams, and teams share their memory")
            .hint("`polylogue token new` without `--team` makes one that sees it"));
    }
    let place = call.app.tenant(token)?.runtime.place().clone();
    // Another program can have the database locked: no other request waits for that.
    let opened = spawn_blocking(move || open_memory(&place).map_err(Box::new)).await;
    let opened = opened.map_err(|_| Problem::internal("a mistake in the server ended this request"))?;
    Ok(opened.map_err(|error| *error)?)
}

async fn facts(call: Call) -> Reply {
    let facts = memory_of(&call).await?;
    let scope = call
        .query("scope")
        .map(|text| Whose::new(text).map_err(|error| Problem::bad_request(format!("`scope`: {error}"))));
    let scope = scope.transpose()?;
    let found = match call.query("q") {
        None => facts.list(scope.as_ref(), call.limit(LISTED, MOST)?).await?,
        Some(text) => search(&facts, scope, text, call.limit(USUALLY_FOUND, FOUND)?).await?,
    };
    json_reply(StatusCode::OK, &wire::Facts { facts: found.into_iter().map(document).collect() })
}

/// The facts that match best, of one scope or of each.
async fn search(
    facts: &Facts,
    scope: Option<Whose>,
    text: &str,
    limit: usize,
) -> Result<Vec<Fact>, MemoryError> {
    let scopes = match scope {
        Some(scope) => vec![scope],
        None => facts.scopes().await?,
    };
    let mut found = Vec::new();
    for scope in scopes {
        found.extend(facts.recall(&Query { scope, text: text.to_owned(), limit }).await?.facts);
    }
    Ok(found)
}

async fn forget(call: Call) -> Reply {
    let facts = memory_of(&call).await?;
    let unknown = || Problem::not_found("there is no such fact").hint("`GET /api/v1/memory` lists them");
    let id: u64 = call.param("fact").parse().map_err(|_| unknown())?;
    let fact = facts.fact(id).await?.ok_or_else(unknown)?;
    facts.forget(&fact.scope, id).await?;
    json_reply(StatusCode::OK, &wire::Forgotten { forgotten: true })
}

fn document(fact: Fact) -> wire::Fact {
    let Fact { id, scope, text, by, time, source } = fact;
    let (conversation, call) = (source.conversation, source.call);
    wire::Fact { id, scope: scope.as_str().to_owned(), text, by, time_ms: time, conversation, call }
}

impl From<MemoryError> for Problem {
    fn from(error: MemoryError) -> Self {
        match error {
            MemoryError::Store(error) => error.into(),
            error => Self::bad_request(error.to_string()),
        }
    }
}
