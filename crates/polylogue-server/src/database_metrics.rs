//! What all processes with a database share, for monitoring: budgets, limits of model servers, and the sizes of tables.

use std::sync::atomic::AtomicU64;

use polylogue_core::StoreError;
use polylogue_runtime::database::{BudgetFigures, PostgresWatch, RateLimitFigures};
use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::registry::{Registry, Unit};

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct BudgetLabels {
    budget: String,
    of: &'static str,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct NameLabels {
    budget: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LimitLabels {
    provider: String,
    model: String,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, EncodeLabelSet)]
struct TableLabels {
    table: &'static str,
}

type Amounts<L> = Family<L, Gauge<f64, AtomicU64>>;

/// Adds the figures of the database that `watch` follows to `registry`.
pub(crate) async fn register(registry: &mut Registry, watch: &PostgresWatch) -> Result<(), StoreError> {
    let figures = watch.figures().await?;
    register_budgets(registry, &figures.budgets);
    register_limits(registry, &figures.limits);
    let bytes = Family::<TableLabels, Gauge>::default();
    for (table, size) in figures.bytes {
        bytes.get_or_create(&TableLabels { table }).set(number(size));
    }
    let help = "Bytes that tables of the database take, with their indexes; `blobs` are large results and stored files";
    registry.register("database_bytes", help, bytes);
    Ok(())
}

/// A count as the value of a gauge.
pub(crate) fn number(count: u64) -> i64 {
    i64::try_from(count).unwrap_or(i64::MAX)
}

fn register_budgets(registry: &mut Registry, budgets: &[BudgetFigures]) {
    let [most, used, drawn] = [(); 3].map(|()| Amounts::<BudgetLabels>::default());
    let [by, of_all] = [(); 2].map(|()| Family::<NameLabels, Gauge>::default());
    for BudgetFigures { name, dollars, tokens, calls, processes, conversations } in budgets {
        let labels = NameLabels { budget: name.clone() };
        by.get_or_create(&labels).set(number(*processes));
        of_all.get_or_create(&labels).set(number(*conversations));
        for (of, amount) in [("dollars", dollars), ("tokens", tokens), ("calls", calls)] {
            let labels = BudgetLabels { budget: name.clone(), of };
            if let Some(limit) = amount.most {
                most.get_or_create(&labels).set(limit);
            }
            used.get_or_create(&labels).set(amount.used);
            drawn.get_or_create(&labels).set(amount.drawn);
        }
    }
    registry.register("budget_limit", "What a shared budget allows, where it is limited", most);
    registry.register("budget_used", "What was used of a shared budget, as far as it was reported", used);
    let help = "What processes have drawn of a shared budget for their next calls, and not used yet";
    registry.register("budget_drawn", help, drawn);
    registry.register("budget_processes", "Processes that have drawn from a shared budget", by);
    registry.register("budget_conversations", "Conversations that a shared budget has paid for", of_all);
}

fn register_limits(registry: &mut Registry, limits: &[RateLimitFigures]) {
    let waits = Amounts::<LimitLabels>::default();
    let [requests, refusals] = [(); 2].map(|()| Family::<LimitLabels, Counter>::default());
    let [slots, taken] = [(); 2].map(|()| Family::<LimitLabels, Gauge>::default());
    for limit in limits {
        let labels = LimitLabels { provider: limit.provider.clone(), model: limit.model.clone() };
        waits.get_or_create(&labels).set(limit.wait_seconds);
        requests.get_or_create(&labels).inc_by(limit.requests);
        refusals.get_or_create(&labels).inc_by(limit.refusals);
        if limit.slots > 0 {
            slots.get_or_create(&labels).set(number(limit.slots));
            taken.get_or_create(&labels).set(number(limit.slots_taken));
        }
    }
    let help = "Time that the next call of a model must wait for a shared limit";
    registry.register_with_unit("limit_wait", help, Unit::Seconds, waits);
    let help = "Requests that were begun under a limit that processes share, of all processes";
    registry.register("limit_requests", help, requests);
    let help = "Times that a provider has asked to wait, of all processes";
    registry.register("limit_refusals", help, refusals);
    registry.register("limit_slots", "Calls that may be in flight at a model server", slots);
    registry.register("limit_slots_taken", "Those of them that are", taken);
}
