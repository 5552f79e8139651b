//! Conversations that this process has open, with the teams that they need while they run.

use std::sync::Arc;

use polylogue_core::{Due, LimitOverrides, LogId, Summary};
use polylogue_runtime::stored::StoredDocument;
use polylogue_runtime::{Conversation, OpenOptions, Prepared};
use tracing::warn;

use crate::app::App;
use crate::problem::Problem;
use crate::source::SourceError;
use crate::spending::Payer;
use crate::stored_teams::Digests;
use crate::tenants::Tenant;

/// A conversation that is open, with the team that it needs while it runs.
pub(crate) struct Opened {
    pub(crate) conversation: Conversation,
    pub(crate) prepared: Arc<Prepared>,
}

/// Opens a stored conversation, which may use `more` than it has used so far, and takes in what is in its inbox. Its log is read once.
pub(crate) async fn open(
    app: &App,
    tenant: &Tenant,
    id: &LogId,
    more: LimitOverrides,
    payer: &Payer,
) -> Result<Opened, Problem> {
    let runtime = &tenant.runtime;
    let options =
        OpenOptions { more, budgets: payer.budgets(), daily: Some(payer.daily()), ..OpenOptions::default() };
    if runtime.get(id).is_some() {
        // A worker of this process has it.
        let prepared = team_of(app, tenant, id, &runtime.stored_document(id).await?).await?;
        let conversation = runtime.open(id, &prepared, options).await?;
        return Ok(Opened { conversation, prepared });
    }
    let claimed = runtime.claim_unprepared(id).await?;
    let preparing = async { team_of(app, tenant, id, &claimed.document().await?).await };
    let prepared = match preparing.await {
        Ok(prepared) => prepared,
        Err(problem) => {
            // Why it cannot be prepared is the error that counts.
            let _ = claimed.release().await;
            return Err(problem);
        }
    };
    let conversation = runtime.open_prepared(claimed, &prepared, options).await?;
    Ok(Opened { conversation, prepared })
}

/// The team that is stored with the conversation `id`, which those with equal documents share.
async fn team_of(
    app: &App,
    tenant: &Tenant,
    id: &LogId,
    document: &StoredDocument,
) -> Result<Arc<Prepared>, Problem> {
    let preparing = app.source.prepare_stored(&tenant.runtime, id, document);
    let preparing = async {
        let prepared = preparing.await?;
        let is_for_any = app.source.is_for_any_task(&prepared);
        Ok::<_, SourceError>((prepared, is_for_any))
    };
    let digests = Digests { whole: document.digest(), for_any_task: document.digest_for_any_task() };
    Ok(tenant.stored_teams.get(digests, preparing).await?)
}

/// Whether another program has [cancelled](crate::cancel_promised) a conversation while it waited until it may run. One that was resumed since has
/// a note again.
pub(crate) async fn was_withdrawn(app: &App, tenant: &Tenant, conversation: &Conversation) -> bool {
    if app.promised.payer(&tenant.name, conversation.id()).is_some() {
        return false;
    }
    let events = conversation.events().await;
    Summary::of(events.iter().map(|event| &**event), true).cancelled.is_some()
}

/// Closes a conversation here, so that others can open it. Workers continue it at `due`, unless it is at rest.
pub(crate) async fn close(Opened { conversation, prepared }: Opened, due: Due) {
    if let Err(error) = conversation.release_until(due).await {
        warn!(conversation = %conversation.id(), %error, "a conversation cannot be released");
    }
    drop(conversation);
    drop(prepared);
}
