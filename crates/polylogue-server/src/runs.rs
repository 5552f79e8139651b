//! The conversations that a server runs, each in a task of its own. Requests begin and continue them, and never wait for them.

use std::sync::Arc;

use polylogue_core::{LimitOverrides, LogId};
use polylogue_runtime::{Conversation, OpenOptions, Prepared};
use tokio::time::timeout;
use tracing::{info, warn};

use crate::app::App;
use crate::problem::Problem;
use crate::tenants::Tenant;

/// A conversation that is open, with the team that it needs while it runs.
pub(crate) struct Opened {
    pub(crate) conversation: Conversation,
    pub(crate) prepared: Arc<Prepared>,
}

/// Opens a stored conversation, which may use `more` than it has used so far.
pub(crate) async fn open(
    app: &App,
    tenant: &Tenant,
    id: &LogId,
    more: LimitOverrides,
) -> Result<Opened, Problem> {
    let prepared = app.source.prepare_stored(&tenant.runtime, id).await?;
    let options = OpenOptions { more, ..OpenOptions::default() };
    let conversation = tenant.runtime.open(id, &prepared, options).await?;
    Ok(Opened { conversation, prepared: Arc::new(prepared) })
}

/// Runs a stored conversation, unless it runs already.
pub(crate) fn run_stored(app: &Arc<App>, tenant: &Arc<Tenant>, id: &LogId) {
    if !app.is_stopping() && tenant.runs.enter(id) {
        run(app, tenant, id, None);
    }
}

/// Runs a conversation for which the right to run it was taken.
pub(crate) fn run(app: &Arc<App>, tenant: &Arc<Tenant>, id: &LogId, opened: Option<Opened>) {
    let (app, tenant, id) = (Arc::clone(app), Arc::clone(tenant), id.clone());
    let mut next = opened;
    tokio::spawn(async move {
        loop {
            let opened = match next.take() {
                Some(opened) => Ok(opened),
                None => open(&app, &tenant, &id, LimitOverrides::default()).await,
            };
            match opened {
                Ok(opened) => run_to_rest(&tenant, opened).await,
                Err(problem) => warn!(conversation = %id, %problem, "a conversation cannot be continued"),
            }
            if !tenant.runs.leave(&id) || app.is_stopping() {
                break;
            }
        }
    });
}

/// Runs a conversation until it closes, waits or is cancelled, and closes it here, so that others can open it.
async fn run_to_rest(tenant: &Tenant, opened: Opened) {
    let Opened { conversation, prepared } = opened;
    tenant.runs.note_change();
    let id = conversation.id().clone();
    match conversation.run().await {
        Ok(_) => info!(conversation = %id, "a conversation has stopped running"),
        Err(error) => warn!(conversation = %id, %error, "a conversation has failed"),
    }
    if let Err(error) = conversation.release().await {
        warn!(conversation = %id, %error, "a conversation cannot be released");
    }
    drop(conversation);
    drop(prepared);
}

/// Stops all conversations after their steps, so that the next start continues them, and after a time at once.
pub(crate) async fn stop_all(app: &App) {
    let tenants = app.tenants.used();
    let stop = |now: bool| {
        for tenant in &tenants {
            let open = tenant.runs.ids().into_iter().filter_map(|id| tenant.runtime.get(&id));
            open.for_each(|conversation| match now {
                true => conversation.cancellation().now(),
                false => conversation.cancellation().after_step(),
            });
        }
    };
    let at_rest = async {
        for tenant in &tenants {
            let mut changes = tenant.runs.changes();
            while tenant.runs.count() > 0 {
                // One that was being opened when the others were stopped is open now.
                stop(false);
                if changes.changed().await.is_err() {
                    break;
                }
            }
        }
    };
    if timeout(app.limits.stop_time, at_rest).await.is_err() {
        stop(true);
    }
}
