//! Whether what is stored of a conversation is what was written.

use axum::http::StatusCode;
use polylogue_core::{Listing, LogId, RecoveredEvents, Store as _, StoreError};
use polylogue_wire::Scope;
use polylogue_wire::conversation::{Integrity, Verdict};

use crate::call::{Call, Reply, json_reply};
use crate::conversation::find;
use crate::route::Route;

pub(crate) fn routes() -> Vec<Route> {
    vec![
        Route::get("/api/v1/conversations/{id}/verify", Scope::Read, verify)
            .about("Whether a stored conversation is undamaged"),
    ]
}

async fn verify(call: Call) -> Reply {
    let token = call.token()?;
    let tenant = call.app.tenant(token)?;
    let Listing { id, .. } = find(&tenant, token, call.param("id")).await?;
    let (events, damage) = match tenant.runtime.store().read_intact(&id).await {
        Ok(RecoveredEvents { events, damage }) => (events.len() as u64, damage),
        // Nothing of it can be read.
        Err(damage @ (StoreError::Damaged { .. } | StoreError::Older { .. } | StoreError::Newer { .. })) => {
            (0, Some(damage))
        }
        Err(error) => return Err(error.into()),
    };
    json_reply(StatusCode::OK, &verdict(id, events, damage.as_ref()))
}

/// The verdict, without the path of the store, which is for the log of the server.
fn verdict(id: LogId, events: u64, damage: Option<&StoreError>) -> Verdict {
    let Some(damage) = damage else {
        return Verdict { id, state: Integrity::Intact, events, intact: events, why: None };
    };
    tracing::error!(conversation = %id, error = %damage, "a conversation is not intact");
    let (state, why) = match damage {
        StoreError::Older { .. } => (Integrity::OldFormat, "an earlier version of Polylogue wrote it".into()),
        StoreError::Newer { .. } => (Integrity::NewerFormat, "a later version of Polylogue wrote it".into()),
        StoreError::UnknownEvent { seq, kind, .. } => {
            let why = format!("event {seq}, of type `{kind}`, is of a later version of Polylogue");
            (Integrity::NewerFormat, why)
        }
        StoreError::Damaged { why, .. } => (Integrity::Damaged, why.clone()),
        other => (Integrity::Damaged, other.to_string()),
    };
    Verdict { id, state, events, intact: damage.intact(), why: Some(why) }
}
