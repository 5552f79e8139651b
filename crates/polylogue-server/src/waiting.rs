//! Who waits for a response: a run for which no client waits any more is stopped after a time.

use std::sync::Arc;

use polylogue_core::LogId;
use tokio::time::sleep;

use crate::app::App;
use crate::tenants::Tenant;

/// A client that waits for a response. If it goes away before the response has ended, and no other client waits for the conversation
/// after a time, that stops after its step.
pub(crate) struct Waiting {
    app: Arc<App>,
    tenant: Arc<Tenant>,
    id: LogId,
}

impl Waiting {
    pub(crate) fn new(app: &Arc<App>, tenant: &Arc<Tenant>, id: &LogId) -> Self {
        *app.attendance.waiting().entry(id.clone()).or_insert(0) += 1;
        Self { app: Arc::clone(app), tenant: Arc::clone(tenant), id: id.clone() }
    }
}

impl Drop for Waiting {
    fn drop(&mut self) {
        let is_last = {
            let mut waiting = self.app.attendance.waiting();
            let count = waiting.get_mut(&self.id).map_or(0, |count| {
                *count = count.saturating_sub(1);
                *count
            });
            if count == 0 {
                waiting.remove(&self.id);
            }
            count == 0
        };
        if !is_last || !self.tenant.runs.is_running(&self.id) {
            return;
        }
        let (app, tenant, id) = (Arc::clone(&self.app), Arc::clone(&self.tenant), self.id.clone());
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                sleep(app.limits.abandoned_time).await;
                let is_abandoned = !app.attendance.waiting().contains_key(&id);
                if let Some(conversation) = tenant.runtime.get(&id).filter(|_| is_abandoned) {
                    conversation.cancellation().after_step();
                }
            });
        }
    }
}
