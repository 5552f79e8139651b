//! What other programs ask a server to continue: conversations to which they have given an answer or a message in the store. In a database, a
//! notification asks all servers, and one of them claims the conversation; elsewhere, a file asks one. And what they ask it not to begin.

use std::collections::BTreeSet;
use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{Due, Instruction, LimitOverrides, Listing, LogId, LogState, Store as _, StoreError};
use polylogue_runtime::Runtime;
use polylogue_runtime::stored::served_as;
use tokio::time::sleep;
use tracing::{info, warn};

use crate::app::App;
use crate::conversation::listing;
use crate::opened::{close, open};
use crate::promised::Promised;
use crate::runs::{is_held, promise, run, take_back};
use crate::slots::Slot;
use crate::spending::Payer;
use crate::steered::leave;
use crate::tenants::{Tenant, running_in, server_of};
use crate::token::Token;

/// How often it is looked what they ask for: in one folder, however many conversations there are.
const LOOK: Duration = Duration::from_secs(1);

/// Asks the server that runs with the store of `runtime` to continue the conversation `id`, after it was given an answer or a message there: a server
/// on this machine, or with a database on any machine. Returns whether there is such a server, and none for a conversation that no server has
/// begun. No token pays for what follows.
///
/// # Errors
/// When the store cannot be read, or its server cannot be asked.
pub async fn ask_server(runtime: &Runtime, id: &LogId) -> polylogue_runtime::Result<bool> {
    if served_as(&runtime.store().meta(id).await?).is_none() {
        return Ok(false);
    }
    if let Some(database) = runtime.place().watch() {
        return Ok(database.ask_server(id).await?);
    }
    let Some(notes) = Notes::of(runtime) else { return Ok(false) };
    Ok(notes.result(notes.promised.ask(&notes.tenant, id))?)
}

/// Returns the conversations that the server on this machine with the store of `runtime` runs, and those that wait in it until others have ended.
/// None where machines share the store.
///
/// # Errors
/// When the notes of the server cannot be read.
pub fn promised_by_server(runtime: &Runtime) -> Result<BTreeSet<LogId>, StoreError> {
    let Some(notes) = Notes::of(runtime) else { return Ok(BTreeSet::new()) };
    notes.result(notes.promised.of_living(&notes.tenant))
}

/// Cancels the conversation `id` if it is one of those [promised](promised_by_server): the server does not begin it when the others have ended.
/// `now`: if the server has just begun it, its calls are aborted. Returns whether it is such a one.
///
/// # Errors
/// When the store cannot be read or written, or the notes of its server cannot.
pub async fn cancel_promised(runtime: &Runtime, id: &LogId, now: bool) -> polylogue_runtime::Result<bool> {
    let Some(notes) = Notes::of(runtime) else { return Ok(false) };
    if !notes.result(notes.promised.of_living(&notes.tenant))?.contains(id) {
        return Ok(false);
    }
    // Before the log says it: a server that opens it between the two runs it, and receives the cancellation.
    notes.result(notes.promised.withdraw(&notes.tenant, id))?;
    runtime.steer(id, Instruction::Cancel { now }).await?;
    Ok(true)
}

/// What the server has noted that would have the conversations of a store.
struct Notes {
    promised: Promised,
    /// The tenant whose conversations are in the store.
    tenant: String,
    path: PathBuf,
}

impl Notes {
    /// `None` where machines share the store.
    fn of(runtime: &Runtime) -> Option<Self> {
        let place = runtime.place();
        if place.is_shared() {
            return None;
        }
        let (folder, tenant) = server_of(place);
        let path = running_in(&folder);
        Some(Self { promised: Promised::at(path.clone()), tenant, path })
    }

    fn result<T>(&self, done: io::Result<T>) -> Result<T, StoreError> {
        done.map_err(|error| StoreError::Io {
            place: self.path.display().to_string(),
            why: error.to_string(),
        })
    }
}

/// Continues what other programs ask for. Never ends.
pub(crate) async fn continue_asked(app: &Arc<App>) {
    if let Some(mut database) = app.tenants.asked() {
        loop {
            let (tenant, id) = database.asked().await;
            if Token::is_tenant(&tenant) {
                continue_one(app, &tenant, &id).await;
            }
        }
    }
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
        return withdraw(app, name, id);
    }
    match listing(&tenant, id).await {
        Ok(found) if continues(&found) => {
            info!(conversation = %id, "a conversation is continued that another program has given something to");
            let slot = app.slots.wait(&format!("tenant {name}"), Payer::default());
            // Noted first: it continues after a restart, too.
            promise(app, &tenant, id, &slot.payer);
            tokio::spawn(claim_and_run(Arc::clone(app), tenant, found, slot));
        }
        Err(problem) if !problem.is_not_found() => {
            warn!(conversation = %id, %problem, "a conversation is not continued");
        }
        _ => take_back(app, &tenant, id),
    }
}

/// Whether there is something to continue: while it waits for people, others can have turns.
fn continues(found: &Listing) -> bool {
    matches!(found.state(), LogState::Open | LogState::Failed | LogState::Waiting) && !found.summary.is_paused
}

/// Leaves a conversation to the process that has it open.
fn withdraw(app: &App, tenant: &str, id: &LogId) {
    if let Err(error) = app.promised.remove_own(tenant, id) {
        warn!(conversation = %id, %error, "a restart will continue a conversation");
    }
}

/// Runs a conversation once it may run, unless another server claims it first, which was asked as well.
async fn claim_and_run(app: Arc<App>, tenant: Arc<Tenant>, about: Listing, mut slot: Slot) {
    let Listing { id, summary, .. } = about;
    let mut stopping = app.stopping.subscribe();
    tokio::select! {
        biased;
        // The next process continues it.
        _ = stopping.wait_for(|stopping| *stopping) => return,
        () = slot.running.take() => {}
    }
    if !tenant.runs.enter_new(&id) {
        return;
    }
    let opening = open(&app, &tenant, &id, LimitOverrides::default(), &slot.payer);
    match tenant.runs.hold(&id, opening).await {
        Ok(opened) => {
            // Another server can have continued it before, and a person can have stopped it then.
            let is_as_asked = |now: Listing| continues(&now) && now.summary.cancelled == summary.cancelled;
            if listing(&tenant, &id).await.is_ok_and(is_as_asked) {
                return run(&app, &tenant, &id, slot, Some(opened));
            }
            close(opened, Due::Never).await;
            take_back(&app, &tenant, &id);
        }
        Err(problem) if problem.is_busy() => withdraw(&app, &tenant.name, &id),
        Err(problem) => warn!(conversation = %id, %problem, "a conversation cannot be continued"),
    }
    leave(&app, &tenant, &id, slot).await;
}
