//! `/openapi.json`: the routes, for clients.

use axum::http::StatusCode;
use polylogue_wire::Scope;

use crate::call::json_reply;
use crate::route::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/openapi.json", Scope::Read, |call| async move {
            json_reply(StatusCode::OK, &call.app.openapi)
        })
        .about("This document"),
    ]
}
