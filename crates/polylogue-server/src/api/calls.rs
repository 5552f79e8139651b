//! `/api/v1/conversations/{id}/calls` and `.../views/{agent}`: the timeline, and exactly what models were sent.

use axum::http::StatusCode;
use polylogue_core::{Event, LogId, Store as _};
use polylogue_runtime::{AgentHistory, Error, RebuiltRequest};
use polylogue_wire::Scope;
use polylogue_wire::calls::{self as wire, CallPage, Histories, View, call_rows};

use crate::call::{Call, Reply, json_reply};
use crate::conversation::find;
use crate::problem::Problem;
use crate::route::Route;
use crate::tenants::Tenant;

/// The most calls of one page.
const PAGE: u64 = 1000;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/conversations/{id}/calls", Scope::Read, calls)
            .about("Its model calls, tool calls and questions, with times and usage")
            .query(&["from", "limit"]),
        Route::get("/api/v1/conversations/{id}/views/{agent}", Scope::Read, view)
            .about("The exact request to the model of an agent in a call")
            .query(&["call"]),
        Route::get("/api/v1/conversations/{id}/histories", Scope::Read, histories)
            .about("What each agent received and said, from its own point of view"),
    ]
}

async fn calls(call: Call) -> Reply {
    let (_, _, events) = conversation(&call).await?;
    let from = call.number("from")?.unwrap_or(0);
    let limit = call.limit(PAGE, PAGE)?;
    let rows = call_rows(&events);
    let from = to_usize(from);
    let next = from.saturating_add(limit);
    let next = Some(next).filter(|next| *next < rows.len()).map(|next| next as u64);
    let calls = rows.into_iter().skip(from).take(limit).collect();
    json_reply(StatusCode::OK, &CallPage { calls, next })
}

fn to_usize(number: u64) -> usize {
    usize::try_from(number).unwrap_or(usize::MAX)
}

async fn view(call: Call) -> Reply {
    let (tenant, id, events) = conversation(&call).await?;
    let stored = tenant.runtime.stored_team(&id).await?;
    let request = RebuiltRequest::of(&stored, &events, call.param("agent"), call.number("call")?);
    let request = request.map_err(|error| match &error {
        Error::NoModelFor { .. } | Error::NoCall { .. } => {
            let problem = Problem::unknown_call(error.to_string());
            error.hint().into_iter().fold(problem, Problem::hint)
        }
        _ => error.into(),
    })?;
    let body = request.to_json();
    let RebuiltRequest { who: agent, call, calls, seq, chat: at, is_exact: exact, .. } = request;
    json_reply(StatusCode::OK, &View { agent, call, calls, seq, chat: at, exact, request: body })
}

async fn histories(call: Call) -> Reply {
    let (tenant, id, events) = conversation(&call).await?;
    let all = AgentHistory::all(&tenant.runtime.stored_team(&id).await?, &events)?;
    let of = |AgentHistory { chat: at, who: agent, system, history }| wire::AgentHistory {
        chat: at,
        agent,
        system,
        entries: history.entries,
    };
    json_reply(StatusCode::OK, &Histories { histories: all.into_iter().map(of).collect() })
}

/// The conversation of the path with its events.
async fn conversation(call: &Call) -> Result<(std::sync::Arc<Tenant>, LogId, Vec<Event>), Problem> {
    let token = call.token()?;
    let tenant = call.app.tenant(token)?;
    let id = find(&tenant, token, call.param("id")).await?.id;
    let events = tenant.runtime.store().read(&id, 0).await?;
    Ok((tenant, id, events))
}
