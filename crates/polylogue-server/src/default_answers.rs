//! When a conversation that waits for people continues without them: with the default answer of a question whose time is up.

use std::time::Duration;

use polylogue_core::{LogId, LogState, OpenQuestion, Timestamp};
use tokio::time::sleep;

use crate::app::App;
use crate::conversation::listing;
use crate::problem::Problem;
use crate::spending::NotedPayer;
use crate::tenants::Tenant;
use crate::token_file::now_ms;

/// How soon it is looked again when the store cannot be read.
const AGAIN_MS: u64 = 1_000;

/// Whether the time of a question is up: its default answer counts, and no other one.
pub(crate) fn is_up(open: &OpenQuestion) -> bool {
    open.is_up(Timestamp(now_ms()))
}

/// When the first of the questions for which a conversation waits has its default answer. `None` if it does not continue then, as one that is
/// paused.
pub(crate) async fn first_default(tenant: &Tenant, id: &LogId) -> Result<Option<Timestamp>, Problem> {
    let listing = listing(tenant, id).await?;
    if listing.state() != LogState::Waiting || listing.summary.is_paused {
        return Ok(None);
    }
    Ok(OpenQuestion::first_default(&tenant.runtime.open_questions_of(&listing).await?))
}

/// Waits until a conversation continues with a default answer, and returns who pays for that. `None` if something else happens to it before:
/// it runs, or was stopped, paused or removed; or if the server stops.
pub(crate) async fn time_is_up(app: &App, tenant: &Tenant, id: &LogId) -> Option<NotedPayer> {
    let (mut changes, mut stopping) = (tenant.runs.changes_of(id), app.stopping.subscribe());
    loop {
        if tenant.runs.is_running(id) {
            return None;
        }
        let until = match first_default(tenant, id).await {
            Ok(until) => until?.0,
            Err(problem) if problem.is_not_found() => return None,
            Err(_) => now_ms().saturating_add(AGAIN_MS),
        };
        let left = until.saturating_sub(now_ms());
        if left == 0 {
            // What was stopped has no note.
            return app.promised.payer(&tenant.name, id);
        }
        tokio::select! {
            biased;
            _ = stopping.wait_for(|stopping| *stopping) => return None,
            () = changes.changed() => {}
            () = sleep(Duration::from_millis(left)) => {}
        }
    }
}
