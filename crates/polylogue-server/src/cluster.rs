//! What workers run and what waits for them, as a document.

use std::time::Duration;

use polylogue_core::{Features, Queue as _, QueueOverview, QueueState, QueuedLog, SeenWorker};
use polylogue_runtime::Runtime;
use polylogue_runtime::database::{BudgetListing, PostgresWatch, RateLimitFigures};
use polylogue_wire::cluster::{Budget, Cluster, Counts, Limits, Queued, RateLimit, Usage, Worker};

/// The workers of the store of `runtime`, its shared budgets, and the first `most` of its conversations that are not idle. What follows its database
/// knows the limits that processes share.
///
/// # Errors
/// When the store is no queue, or cannot be read.
pub async fn cluster_of(
    runtime: &Runtime,
    watch: Option<&PostgresWatch>,
    most: usize,
) -> polylogue_runtime::Result<Cluster> {
    let rate_limits = match watch {
        Some(watch) => watch.rate_limits().await?.into_iter().map(rate_limit).collect(),
        None => Vec::new(),
    };
    let overview = runtime.queue()?.overview(most).await?;
    let budgets = runtime.shared_budgets().await?.into_iter().map(budget).collect();
    let conversations = overview.logs.iter().map(|log| queued(log, &overview)).collect();
    let QueueOverview { workers, figures, .. } = overview;
    let [lost, parked, ready, held, timed] = QueueState::ALL.map(|state| figures.count(state));
    Ok(Cluster {
        workers: workers.into_iter().map(worker).collect(),
        budgets,
        rate_limits,
        conversations,
        counts: Counts { lost, parked, ready, held, timed },
        overdue_seconds: figures.overdue_seconds,
        takeovers: figures.takeovers,
        lost_events: figures.lost_events,
    })
}

fn worker(seen: SeenWorker) -> Worker {
    let SeenWorker { process, version, info, seen, held } = seen;
    let (offers, seen_ms) = (words(&info.offers), u64::try_from(seen.as_millis()).unwrap_or(u64::MAX));
    Worker { worker: process, version, held, at_once: info.at_once, offers, address: info.address, seen_ms }
}

fn budget(listing: BudgetListing) -> Budget {
    let BudgetListing { name: budget, limits, spent, drawn, processes, conversations } = listing;
    let limits = Limits { calls: limits.calls, tokens: limits.tokens, cost: limits.cost };
    let used = Usage { calls: spent.calls, tokens: spent.tokens, cost: spent.cost };
    let drawn = Usage { calls: drawn.calls, tokens: drawn.tokens, cost: drawn.cost };
    Budget { budget, limits, used, drawn, processes, conversations }
}

fn rate_limit(figures: RateLimitFigures) -> RateLimit {
    let RateLimitFigures { provider, model, wait_seconds, requests, refusals, slots, slots_taken } = figures;
    let wait = Duration::try_from_secs_f64(wait_seconds).unwrap_or_default();
    let wait_ms = u64::try_from(wait.as_millis()).unwrap_or(u64::MAX);
    RateLimit { provider, model, wait_ms, requests, refusals, slots, slots_taken }
}

fn queued(log: &QueuedLog, overview: &QueueOverview) -> Queued {
    let QueuedLog { id, state, overdue_ms, holder, needs, tries, takeovers, why } = log.clone();
    let waits = matches!(state, QueueState::Ready | QueueState::Lost);
    let missing = overview.missing(log).filter(|_| waits).unwrap_or_default();
    let (needs, missing) = (words(&needs), words(&missing));
    Queued { id, state, overdue_ms, holder, needs, missing, tries, takeovers, why }
}

fn words(features: &Features) -> Vec<String> {
    features.words().map(str::to_owned).collect()
}
