//! What continues when a server starts: the conversations that earlier processes of it were running when they ended.

use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{Listing, LogId, LogState, Timestamp};
use tokio::time::sleep;
use tracing::warn;

use crate::app::App;
use crate::conversation::listing;
use crate::default_answers::first_default;
use crate::problem::Problem;
use crate::runs::{continue_in_time, is_held, resume, resume_when_free, take_back};
use crate::spending::Payer;
use crate::tenants::Tenant;
use crate::waiting::stop_left;

/// What was promised to run, the oldest first, so that none is left behind by later ones at every restart; and its entry in the list. All
/// are read before the first one runs.
async fn oldest_first(
    app: &App,
    promised: Vec<(String, LogId)>,
) -> Vec<(String, Arc<Tenant>, LogId, Option<Listing>)> {
    let mut all = Vec::with_capacity(promised.len());
    for (name, id) in promised {
        let tenant = match app.tenants.get(&name) {
            Ok(tenant) => tenant,
            Err(error) => {
                warn!(conversation = %id, tenant = %name, %error, "a conversation is not continued");
                continue;
            }
        };
        let found = listing(&tenant, &id).await.ok();
        all.push((found.as_ref().map(|listing| listing.created), (name, tenant, id, found)));
    }
    all.sort_by_key(|(created, _)| *created);
    all.into_iter().map(|(_, one)| one).collect()
}

/// How often it is looked whether other processes are dead, and the time between: what a process that was just killed had locked can stay locked
/// for a moment.
const LOOKS: usize = 4;
const LOOK: Duration = Duration::from_millis(50);

/// What processes of the server were running that are dead.
async fn adopted(app: &App) -> Vec<(String, LogId)> {
    let mut all = Vec::new();
    for look in 1..=LOOKS {
        match app.promised.adopt() {
            Ok(adopted) => {
                all.extend(adopted.conversations);
                if !adopted.has_others {
                    break;
                }
            }
            Err(error) => {
                warn!(%error, "what was running cannot be continued");
                break;
            }
        }
        if look < LOOKS {
            sleep(LOOK).await;
        }
    }
    all
}

/// Whether a conversation that was promised was running when its process ended. One that waits for people is promised no longer when no turn
/// is in progress any more, unless a default answer continues it, and one that has failed until it is continued.
fn was_running(found: &Listing, default: &Result<Option<Timestamp>, Problem>) -> bool {
    match found.state() {
        LogState::Open | LogState::Failed => true,
        LogState::Waiting => matches!(default, Ok(None)) && !found.summary.is_paused,
        _ => false,
    }
}

/// Continues what earlier processes of the server were running when they ended, however they ended.
pub(crate) async fn resume_all(app: &Arc<App>) {
    let promised = adopted(app).await;
    let mut open = Vec::new();
    for (name, tenant, id, found) in oldest_first(app, promised).await {
        let default = first_default(&tenant, &id).await;
        if let Some(found) = found.filter(|found| was_running(found, &default)) {
            let Some(noted) = app.promised.payer(&name, &id) else {
                warn!(conversation = %id, "a conversation is not continued: it is not known who pays for it");
                continue;
            };
            // Its budget of today was counted before.
            match app.spending.admit_payer(app.spending.payer_of(noted), &app.tenants, &name).await {
                Ok(payer) => open.push(Adoption { tenant, id, payer, events: found.summary.events }),
                Err(problem) => warn!(conversation = %id, %problem, "a conversation is not continued"),
            }
            continue;
        }
        match default {
            Ok(Some(_)) => continue_in_time(app, &tenant, &id),
            Err(problem) if !problem.is_not_found() => {
                warn!(conversation = %id, %problem, "a conversation is not continued");
            }
            // It is at rest, or was removed.
            _ => take_back(app, &tenant, &id),
        }
    }
    for Adoption { tenant, id, payer, events } in resume_free(app, open).await {
        let app = Arc::clone(app);
        tokio::spawn(async move {
            resume_when_free(Arc::clone(&app), Arc::clone(&tenant), id.clone(), payer).await;
            stop_left(app, tenant, id, events).await;
        });
    }
}

/// A conversation that an earlier process was running, and that continues.
struct Adoption {
    tenant: Arc<Tenant>,
    id: LogId,
    payer: Payer,
    /// How many events it had then.
    events: u64,
}

/// Continues those that no process has claimed, and returns the others. A process that has just ended can have its claims for a moment.
async fn resume_free(app: &Arc<App>, mut open: Vec<Adoption>) -> Vec<Adoption> {
    for look in 1..=LOOKS {
        let mut held = Vec::new();
        for adoption in open {
            if is_held(&adoption.tenant, &adoption.id).await {
                held.push(adoption);
                continue;
            }
            let Adoption { tenant, id, payer, events } = adoption;
            let is_awaited = app.promised.is_awaited(&tenant.name, &id);
            resume(app, &tenant, &id, (payer, is_awaited));
            tokio::spawn(stop_left(Arc::clone(app), tenant, id, events));
        }
        open = held;
        if open.is_empty() {
            break;
        }
        if look < LOOKS {
            sleep(LOOK).await;
        }
    }
    open
}
