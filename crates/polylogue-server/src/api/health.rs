//! `/healthz` and `/readyz`.

use axum::http::StatusCode;
use serde_json::json;

use crate::call::{Call, Reply, json_reply};
use crate::problem::Problem;
use crate::route::{Access, Route};
use crate::token::Token;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/healthz", Access::Open, |_| async {
            json_reply(StatusCode::OK, &json!({"status": "ok"}))
        })
        .about("Whether the process is alive"),
        Route::get("/readyz", Access::Open, ready)
            .about("Whether the server takes work: 503 while it stops or the store cannot be written"),
    ]
}

async fn ready(call: Call) -> Reply {
    if call.app.is_stopping() {
        return Err(Problem::unavailable("the server is stopping"));
    }
    let local = call.app.tenants.get(Token::LOCAL)?;
    if !call.app.readiness.is_ready(&local.runtime).await {
        return Err(Problem::unavailable("the store cannot be read and written")
            .hint("the log of the server says why"));
    }
    json_reply(StatusCode::OK, &json!({"status": "ready"}))
}
