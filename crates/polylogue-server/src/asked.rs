//! What other programs ask a server to continue: conversations to which they have given an answer or a message in the store.

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{LogId, LogState, Store as _, StoreError};
use polylogue_runtime::Runtime;
use polylogue_runtime::stored::served_as;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::app::App;
use crate::conversation::listing;
use crate::promised::Promised;
use crate::runs::{is_held, run_stored, take_back};
use crate::spending::Payer;
use crate::tenants::{running_in, server_of};

/// How often it is looked what they ask for: in one folder, however many conversations there are.
const LOOK: Duration = Duration::from_secs(1);

/// Asks the server that runs on this machine with the store of `runtime` to continue the conversation `id`, after it was given an answer or a
/// message there. Returns whether there is such a server: none where machines share the store, and none for a conversation that no server has begun.
/// No token pays for what follows.
///
/// # Errors
/// When the store cannot be read, or its server cannot be asked.
pub async fn ask_server(runtime: &Runtime, id: &LogId) -> polylogue_runtime::Result<bool> {
    let place = runtime.place();
    if place.is_shared() || served_as(&runtime.store().meta(id).await?).is_none() {
        return Ok(false);
    }
    let (folder, tenant) = server_of(place);
    let running = running_in(&folder);
    let asked = Promised::at(running.clone()).ask(&tenant, id);
    let failed = |error: std::io::Error| StoreError::Io {
        place: running.display().to_string(),
        why: error.to_string(),
    };
    Ok(asked.map_err(failed)?)
}

/// Continues what other programs ask for. Never ends.
pub(crate) async fn continue_asked(app: &Arc<App>) {
    let mut has_failed = false;
    loop {
        match app.promised.take_asked() {
            Ok(asked) => {
                has_failed = false;
                for (tenant, id) in asked {
                    continue_one(app, &tenant, &id).await;
                }
            }
            Err(error) => {
                if !std::mem::replace(&mut has_failed, true) {
                    warn!(%error, "what other programs ask for in the store is not continued");
                }
            }
        }
        sleep(LOOK).await;
    }
}

/// Continues a conversation, unless a process has it open, or it is at rest.
async fn continue_one(app: &Arc<App>, name: &str, id: &LogId) {
    let Ok(tenant) = app.tenants.get(name) else { return };
    // Its run has what was given to it.
    if tenant.runs.is_running(id) {
        return;
    }
    if is_held(&tenant, id).await {
        if let Err(error) = app.promised.remove_own(name, id) {
            warn!(conversation = %id, %error, "a restart will continue a conversation");
        }
        return;
    }
    match listing(&tenant, id).await {
        // While it waits for people, others can have turns.
        Ok(found)
            if matches!(found.state(), LogState::Open | LogState::Failed | LogState::Waiting)
                && !found.summary.is_paused =>
        {
            info!(conversation = %id, "a conversation is continued that another program has given something to");
            let slot = app.slots.wait(&format!("tenant {name}"), Payer::default());
            run_stored(app, &tenant, id, slot);
        }
        Err(problem) if !problem.is_not_found() => {
            warn!(conversation = %id, %problem, "a conversation is not continued");
        }
        _ => take_back(app, &tenant, id),
    }
}
