//! What a worker counts of the conversations that it runs.

use std::future::ready;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use polylogue_core::{AnyStore, Due, Status};
use polylogue_runtime::Conversation;
use polylogue_runtime::worker::{LeaseCheck, WorkerEvent, WorkerMeter};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::Registry;

use crate::meter::run_counted;
use crate::store_metrics::StoreMetrics;
use crate::totals::Meters;

/// The counts of a worker: the usage of its conversations, the times of its store, and what happens to it. Cloning shares them.
#[derive(Clone, Default, derive_more::Debug)]
#[debug("WorkerMeters {{ .. }}")]
pub struct WorkerMeters(Arc<Inner>);

#[derive(Default)]
struct Inner {
    meters: Meters,
    store_metrics: StoreMetrics,
    events: Family<EventLabels, Counter>,
    running: Gauge,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EventLabels {
    event: &'static str,
}

impl WorkerMeters {
    /// Returns the counts of its store.
    pub fn store_metrics(&self) -> &StoreMetrics {
        &self.0.store_metrics
    }

    /// Adds them to `registry`.
    pub(crate) fn register(&self, registry: &mut Registry) {
        registry.register_collector(Box::new(self.0.meters.of(|_| true)));
        self.0.store_metrics.register(registry);
        let help = "Conversations that this worker has claimed, released, failed to run, parked, left to others or lost, and failed operations of its store";
        registry.register("worker_events", help, self.0.events.clone());
        registry.register("worker_running", "Conversations that this worker runs", self.0.running.clone());
    }
}

impl WorkerMeter for WorkerMeters {
    fn run<'a>(
        &'a self,
        store: &'a AnyStore,
        team: &'a str,
        conversation: &'a Conversation,
    ) -> BoxFuture<'a, polylogue_runtime::Result<Status>> {
        let meters = &self.0.meters;
        let team = meters.name_of(team).to_owned();
        Box::pin(run_counted((meters, store), ready(team), conversation))
    }

    fn note(&self, event: &WorkerEvent) {
        let (word, running) = match event {
            WorkerEvent::Claimed(_) => ("claimed", 1),
            WorkerEvent::Released(..) => ("released", -1),
            WorkerEvent::Failed(_, Due::Never, _) => ("parked", -1),
            WorkerEvent::Failed(..) => ("failed", -1),
            WorkerEvent::LeftToOthers(..) => ("left_to_others", -1),
            WorkerEvent::Lost(_) => ("lost", -1),
            WorkerEvent::StoreFailed(_) => ("store_failed", 0),
            _ => return,
        };
        self.0.events.get_or_create(&EventLabels { event: word }).inc();
        self.0.running.inc_by(running);
    }

    fn note_lease(&self, at: LeaseCheck, left: Duration) {
        self.0.store_metrics.count_lease(at, left);
    }
}
