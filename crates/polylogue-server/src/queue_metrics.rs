//! What waits for workers and what they run, for monitoring: on the server, and on a worker by itself.

use std::net::SocketAddr;
use std::sync::Arc;

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::header::CONTENT_TYPE;
use axum::http::{Response, StatusCode};
use axum::response::IntoResponse;
use axum::routing::get;
use polylogue_core::{Queue as _, QueueState, SeenWorker, StoreError};
use polylogue_runtime::Runtime;
use polylogue_runtime::database::PostgresWatch;
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::info::Info;
use prometheus_client::registry::Registry;
use tokio::net::TcpListener;
use tokio::sync::watch;

use crate::database_metrics::{self, number};
use crate::limits::ServerLimits;
use crate::listen::listen;
use crate::live::LiveError;
use crate::worker_meters::WorkerMeters;

/// The form of `/metrics`.
pub(crate) const OPENMETRICS: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct StateLabels {
    state: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NeedsLabels {
    needs: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct VersionLabels {
    version: String,
}

/// A registry that has the version of the program.
pub(crate) fn registry() -> Registry {
    let mut registry = Registry::with_prefix("polylogue");
    registry.register("build", "The program", Info::new([("version", env!("CARGO_PKG_VERSION"))]));
    registry
}

/// Adds the figures of the queue to `registry`, if the store is one.
pub(crate) async fn register(
    registry: &mut Registry,
    runtime: &Runtime,
    watch: Option<&PostgresWatch>,
) -> Result<(), StoreError> {
    let overview = match (watch, runtime.queue()) {
        (Some(watch), _) => watch.counts().await?,
        (None, Ok(queue)) => queue.overview(0).await?,
        (None, Err(_)) => return Ok(()),
    };
    let figures = &overview.figures;
    let help = "Conversations that are not idle, on all workers";
    registry.register("cluster_conversations", help, by_state(|state| figures.count(state)));
    let help = "Those of them that the last worker could not run, or left to others";
    registry.register("cluster_failing", help, by_state(|state| figures.count_failing(state)));
    register_workers(registry, &overview.workers);
    let overdue = Gauge::<f64, std::sync::atomic::AtomicU64>::default();
    let (takeovers, lost) = (Gauge::<i64>::default(), Gauge::<i64>::default());
    overdue.set(figures.overdue_seconds);
    takeovers.set(number(figures.takeovers));
    lost.set(number(figures.lost_events));
    let help = "The longest time that a conversation now waits for a worker";
    registry.register("cluster_overdue_seconds", help, overdue);
    let help = "How often conversations that are not idle were taken over from workers that were lost";
    registry.register("cluster_takeovers", help, takeovers);
    let help = "Acknowledged events that were lost because the database failed over to a copy without them";
    registry.register("cluster_lost_events", help, lost);
    let unserved = Family::<NeedsLabels, Gauge>::default();
    for (needs, count) in overview.unserved() {
        unserved.get_or_create(&NeedsLabels { needs: needs.to_string() }).set(number(count));
    }
    let help = "Conversations that wait for a worker, though none offers what they need";
    registry.register("cluster_unserved", help, unserved);
    Ok(())
}

/// A count for each state: for all, so that none is absent because there is no conversation in it.
fn by_state(count: impl Fn(QueueState) -> u64) -> Family<StateLabels, Gauge> {
    let states = Family::<StateLabels, Gauge>::default();
    for state in QueueState::ALL {
        states.get_or_create(&StateLabels { state: state.as_str() }).set(number(count(state)));
    }
    states
}

fn register_workers(registry: &mut Registry, workers: &[SeenWorker]) {
    let of_version = Family::<VersionLabels, Gauge>::default();
    let (places, taken) = (Gauge::<i64>::default(), Gauge::<i64>::default());
    // Not absent because there is no worker.
    of_version.get_or_create(&VersionLabels { version: env!("CARGO_PKG_VERSION").into() }).set(0);
    for SeenWorker { version, info, held, .. } in workers {
        of_version.get_or_create(&VersionLabels { version: version.clone() }).inc();
        places.inc_by(number(info.at_once));
        taken.inc_by(number(*held));
    }
    registry.register("cluster_workers", "Workers that were active in the last minute", of_version);
    let help = "Conversations that these workers can run at the same time";
    registry.register("cluster_places", help, places);
    registry.register("cluster_places_taken", "Conversations that these workers run", taken);
}

/// The metrics of a worker, `/metrics`, at an address of its own: what it counts, and figures of the queue. It has numbers
/// only, and asks for no token.
pub struct WorkerMetrics {
    listener: TcpListener,
    address: SocketAddr,
    read: Arc<Read>,
}

struct Read {
    runtime: Runtime,
    watch: Option<PostgresWatch>,
    meters: WorkerMeters,
}

impl WorkerMetrics {
    /// Binds an address for requests about the store of `runtime`, and what `meters` has counted.
    ///
    /// # Errors
    /// [`LiveError::Listen`].
    pub async fn bind(listen: SocketAddr, runtime: Runtime, meters: WorkerMeters) -> Result<Self, LiveError> {
        let bound = async { TcpListener::bind(listen).await.and_then(|l| Ok((l.local_addr()?, l))) };
        let (address, listener) = bound.await.map_err(|why| LiveError::Listen { address: listen, why })?;
        let watch = runtime.place().watch();
        Ok(Self { listener, address, read: Arc::new(Read { runtime, watch, meters }) })
    }

    /// Returns the address that it listens on, with its real port.
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves until it is dropped.
    pub async fn run(self) {
        let router = Router::new()
            .route("/metrics", get(metrics))
            .route("/healthz", get(async || "ok\n"))
            .with_state(self.read);
        let (_stop, stopping) = watch::channel(false);
        listen(self.listener, router, (&ServerLimits::default(), Arc::default()), stopping).await;
    }
}

async fn metrics(State(read): State<Arc<Read>>) -> Response<Body> {
    let mut registry = registry();
    read.meters.register(&mut registry);
    let mut text = String::new();
    let registered = async {
        register(&mut registry, &read.runtime, read.watch.as_ref()).await?;
        match &read.watch {
            Some(watch) => database_metrics::register(&mut registry, watch).await,
            None => Ok(()),
        }
    };
    let registered = registered.await;
    match registered.is_ok() && encode(&mut text, &registry).is_ok() {
        true => ([(CONTENT_TYPE, OPENMETRICS)], text).into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, "the store cannot be read\n").into_response(),
    }
}
