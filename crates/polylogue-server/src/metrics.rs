//! What the server counts of its requests, for monitoring.

use std::time::Duration;

use axum::http::Method;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::histogram::{Histogram, exponential_buckets};
use prometheus_client::registry::{Registry, Unit};

/// Of a request. The values are of the table of routes, so that clients cannot make new ones.
#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    route: &'static str,
    method: &'static str,
    status: u32,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RouteLabels {
    route: &'static str,
}

/// The requests since the server started.
pub(crate) struct Metrics {
    requests: Family<RequestLabels, Counter>,
    seconds: Family<RouteLabels, Histogram, fn() -> Histogram>,
    /// Event streams that fell behind, and continue with what is stored.
    pub(crate) streams_missed: Counter,
}

/// From 1 ms to 32 s.
fn seconds() -> Histogram {
    Histogram::new(exponential_buckets(0.001, 2.0, 16))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let seconds = Family::new_with_constructor(seconds as fn() -> Histogram);
        Self { requests: Family::default(), seconds, streams_missed: Counter::default() }
    }

    /// Counts a request to the path of a route, or to one that is none.
    pub(crate) fn count(&self, route: Option<&'static str>, method: &Method, status: u16, time: Duration) {
        let route = route.unwrap_or("none");
        let labels = RequestLabels { route, method: known(method), status: status.into() };
        self.requests.get_or_create(&labels).inc();
        self.seconds.get_or_create(&RouteLabels { route }).observe(time.as_secs_f64());
    }

    /// Adds the metrics to `registry`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register("http_requests", "Requests", self.requests.clone());
        let help = "Time from a request to the head of its response";
        registry.register_with_unit("http_request", help, Unit::Seconds, self.seconds.clone());
        let help = "Times that an event stream fell behind and continued with the stored events";
        registry.register("streams_missed", help, self.streams_missed.clone());
    }
}

/// The name of a method that servers know.
fn known(method: &Method) -> &'static str {
    match method.as_str() {
        "GET" => "GET",
        "HEAD" => "HEAD",
        "POST" => "POST",
        "PUT" => "PUT",
        "PATCH" => "PATCH",
        "DELETE" => "DELETE",
        "OPTIONS" => "OPTIONS",
        _ => "other",
    }
}
