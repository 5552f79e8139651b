//! `/metrics`: what monitoring reads.

use axum::body::Body;
use axum::http::Response;
use axum::http::header::CONTENT_TYPE;
use polylogue_core::StoreError;
use polylogue_wire::Scope;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::call::{Call, Reply};
use crate::database_metrics;
use crate::live::follower::Follower;
use crate::problem::Problem;
use crate::queue_metrics::{self, OPENMETRICS};
use crate::route::Route;
use crate::token::Token;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/metrics", Scope::Metrics, metrics)
            .about("What the server counts, in the text format of OpenMetrics, which Prometheus reads"),
    ]
}

/// A token reads what its tenant and its teams have taken. What all tenants share is for the tenant of the command line.
async fn metrics(call: Call) -> Reply {
    let (token, app) = (call.token()?, &call.app);
    let tenant = app.tenant(token)?;
    let mut registry = queue_metrics::registry();
    let readings = tenant.meters.of(|team| token.sees(team));
    registry.register_collector(Box::new(readings));
    if token.teams.is_none() {
        let help = "Conversations that run, or wait until they may";
        gauge(&mut registry, ("conversations_running", help), tenant.runs.count());
        let watch = tenant.follower.as_ref().map(Follower::watch);
        queue_metrics::register(&mut registry, &tenant.runtime, watch).await.map_err(unread)?;
        if let Some(watch) = watch.filter(|_| token.tenant == Token::LOCAL) {
            database_metrics::register(&mut registry, watch).await.map_err(unread)?;
        }
        if let Some((followed, live)) = tenant.follower.as_ref().map(Follower::count) {
            let help = "Conversations that clients follow";
            gauge(&mut registry, ("followed", help), followed);
            let help = "Those of them whose live text comes from another process";
            gauge(&mut registry, ("followed_live", help), live);
        }
    }
    if token.teams.is_none() && token.tenant == Token::LOCAL {
        app.metrics.register(&mut registry);
        app.tenants.store_metrics.register(&mut registry);
        let help = "New conversations of all tenants that wait until they may run";
        gauge(&mut registry, ("queue", help), app.slots.queued());
        gauge(&mut registry, ("streams", "Event streams that are open"), app.open_streams());
    }
    let mut text = String::new();
    encode(&mut text, &registry).map_err(|error| Problem::internal(error.to_string()))?;
    let response = Response::builder().header(CONTENT_TYPE, OPENMETRICS).body(Body::from(text));
    response.map_err(|error| Problem::internal(error.to_string()))
}

fn unread(error: StoreError) -> Problem {
    Problem::from(Box::new(polylogue_runtime::Error::from(error)))
}

fn gauge(registry: &mut Registry, (name, help): (&str, &str), count: usize) {
    let gauge = Gauge::<i64>::default();
    gauge.set(i64::try_from(count).unwrap_or(i64::MAX));
    registry.register(name, help, gauge);
}
