//! `/openapi.json`: the routes, for clients.

use axum::http::{Method, StatusCode};
use polylogue_wire::Scope;

use crate::call::json_reply;
use crate::route::{Access, Route};

pub(crate) fn routes() -> Vec<Route> {
    let access = Access::Scope(Scope::Read);
    vec![Route::new(Method::GET, "/openapi.json", access, "This document", |call| {
        Box::pin(async move { json_reply(StatusCode::OK, &call.app.openapi) })
    })]
}
