//! The table of routes, from which the router, the scopes, the log lines and the sweeps of the tests are made.

use std::sync::{Arc, LazyLock};

use axum::Router;
use axum::body::Body;
use axum::http::{Method, Request};
use axum::routing::{MethodFilter, on};

use crate::api;
use crate::app::App;
use crate::dispatch::handle;
use crate::mcp;
use crate::openai;
use crate::page;
use crate::route::Route;

/// All routes. A protocol adds its own here.
pub(crate) static ROUTES: LazyLock<Vec<Route>> = LazyLock::new(|| {
    let mut routes = api::health::routes();
    routes.extend(api::metrics::routes());
    routes.extend(api::teams::routes());
    routes.extend(api::check::routes());
    routes.extend(api::conversations::routes());
    routes.extend(api::steering::routes());
    routes.extend(api::resuming::routes());
    routes.extend(api::raising::routes());
    routes.extend(api::forking::routes());
    routes.extend(api::transfer::routes());
    routes.extend(api::files::routes());
    routes.extend(api::calls::routes());
    routes.extend(api::graph::routes());
    routes.extend(api::compare::routes());
    routes.extend(api::feed::routes());
    routes.extend(api::verify::routes());
    routes.extend(api::memory::routes());
    routes.extend(api::cluster::routes());
    routes.extend(api::tokens::routes());
    routes.extend(api::openapi::routes());
    routes.extend(api::session::routes());
    routes.extend(page::routes());
    routes.extend(openai::routes());
    routes.extend(mcp::routes());
    routes
});

/// The route of a request whose path was matched.
pub(crate) fn find(method: &Method, path: &str) -> Option<&'static Route> {
    // `HEAD` is `GET` without the body.
    let method = if method == Method::HEAD { &Method::GET } else { method };
    ROUTES.iter().find(|route| route.method == *method && route.path == path)
}

/// The router of all routes.
pub(crate) fn router(app: &Arc<App>) -> Router {
    ROUTES.iter().fold(Router::new(), |router, route| {
        let Ok(filter) = MethodFilter::try_from(route.method.clone()) else { return router };
        let app = Arc::clone(app);
        let handler = move |request: Request<Body>| handle(Arc::clone(&app), route, request);
        router.route(route.path, on(filter, handler))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_route_says_what_it_does() {
        let silent: Vec<&str> =
            ROUTES.iter().filter(|route| route.about.is_empty()).map(|route| route.path).collect();
        assert!(silent.is_empty(), "{silent:?}");
    }
}
