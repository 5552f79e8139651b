//! `/api/v1/conversations/{id}/calls` and `.../views/{agent}`: the timeline, and exactly what models were sent.

use axum::http::{Method, StatusCode};
use polylogue_core::{Event, LogId, Store as _};
use polylogue_runtime::{Error, RebuiltRequest, call_rows};
use serde_json::json;

use crate::call::{Call, Reply, json_reply};
use crate::conversation::find;
use crate::problem::Problem;
use crate::route::{Access, Route};
use crate::scope::Scope;
use crate::tenants::Tenant;

const READ: Access = Access::Scope(Scope::Read);

/// The most calls of one page.
const PAGE: u64 = 1000;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::new(
            Method::GET,
            "/api/v1/conversations/{id}/calls",
            READ,
            "Its calls of models and tools and its questions, with times and usage",
            |call| Box::pin(calls(call)),
        )
        .query(&["from", "limit"]),
        Route::new(
            Method::GET,
            "/api/v1/conversations/{id}/views/{agent}",
            READ,
            "Exactly what the model of an agent was sent in a call",
            |call| Box::pin(view(call)),
        )
        .query(&["call"]),
    ]
}

async fn calls(call: Call) -> Reply {
    let (_, _, events) = conversation(&call).await?;
    let from = call.number("from")?.unwrap_or(0);
    let limit = call.number("limit")?.unwrap_or(PAGE).clamp(1, PAGE);
    let rows = call_rows(&events);
    let (from, limit) = (to_usize(from), to_usize(limit));
    let next = from.saturating_add(limit);
    let next = Some(next).filter(|next| *next < rows.len());
    let page: Vec<_> = rows.into_iter().skip(from).take(limit).collect();
    json_reply(StatusCode::OK, &json!({"calls": page, "next": next}))
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
    let body = json!({
        "agent": request.who,
        "call": request.call,
        "calls": request.calls,
        "seq": request.seq,
        "at": request.at,
        "exact": request.is_exact,
        "request": request.to_json(),
    });
    json_reply(StatusCode::OK, &body)
}

/// The conversation of the path with its events.
async fn conversation(call: &Call) -> Result<(std::sync::Arc<Tenant>, LogId, Vec<Event>), Problem> {
    let token = call.token()?;
    let tenant = call.app.tenant(token)?;
    let id = find(&tenant, token, call.param("id")).await?.id;
    let events = tenant.runtime.store().read(&id, 0).await?;
    Ok((tenant, id, events))
}
