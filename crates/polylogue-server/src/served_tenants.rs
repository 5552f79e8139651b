//! The tenants of a server, for workers in its process.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::BoxFuture;
use polylogue_core::{AnyStore, Status};
use polylogue_runtime::Conversation;
use polylogue_runtime::worker::{LeaseCheck, WorkerEvent, WorkerMeter};
use tracing::warn;

use crate::app::App;
use crate::meter;
use crate::store_metrics::StoreMetrics;
use crate::tenants::Tenant;
use crate::token::Token;

/// The tenants of a [`Server`](crate::Server), for workers in its process that run their conversations: see [`tenant_place`](crate::tenant_place).
#[derive(Clone, derive_more::Debug)]
#[debug("ServedTenants {{ .. }}")]
pub struct ServedTenants(Arc<App>);

impl ServedTenants {
    pub(crate) const fn new(app: Arc<App>) -> Self {
        Self(app)
    }

    /// Returns their names: [`Token::LOCAL`], those of all tokens, and those whose conversations the store has, also if only other servers have
    /// tokens of theirs. While the store cannot be read, those of tokens.
    pub async fn names(&self) -> BTreeSet<String> {
        // Without the file of the tokens no request is accepted.
        let tokens = self.0.tokens.all().unwrap_or_default();
        let of_tokens = tokens.iter().map(|token| token.tenant.clone());
        let stored = self.0.tenants.stored().await.unwrap_or_else(|error| {
            warn!(%error, "the store does not say whose conversations it has: it is asked again");
            Vec::new()
        });
        of_tokens.chain(stored).chain([Token::LOCAL.to_owned()]).collect()
    }

    /// Returns what counts the conversations of a tenant that a worker runs, as the server counts those that it runs itself.
    ///
    /// # Errors
    /// When the store of the tenant cannot be opened.
    pub fn meter(&self, tenant: &str) -> Result<Arc<dyn WorkerMeter>, Box<polylogue_runtime::Error>> {
        let tenant = self.0.tenants.get(tenant)?;
        Ok(Arc::new(TenantMeter { tenant, store_metrics: self.0.tenants.store_metrics.clone() }))
    }
}

#[derive(derive_more::Debug)]
#[debug("TenantMeter({:?})", self.tenant.name)]
struct TenantMeter {
    tenant: Arc<Tenant>,
    store_metrics: StoreMetrics,
}

impl WorkerMeter for TenantMeter {
    fn run<'a>(
        &'a self,
        _store: &'a AnyStore,
        _team: &'a str,
        conversation: &'a Conversation,
    ) -> BoxFuture<'a, polylogue_runtime::Result<Status>> {
        Box::pin(meter::run(&self.tenant, conversation))
    }

    fn note(&self, _event: &WorkerEvent) {}

    fn note_lease(&self, at: LeaseCheck, left: Duration) {
        self.store_metrics.count_lease(at, left);
    }
}
