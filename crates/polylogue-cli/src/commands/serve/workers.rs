//! The workers within a server: one for each of its tenants, each with the store of its tenant. Together they run as many conversations as one.

use std::collections::BTreeSet;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::LocalBoxFuture;
use futures_util::stream::{FuturesUnordered, unfold};
use futures_util::{FutureExt as _, StreamExt as _};
use polylogue_core::Budget;
use polylogue_runtime::StoreLocation;
use polylogue_runtime::worker::{Worker, WorkerOptions, WorkerSlots};
use polylogue_server::{LiveNode, ServedTenants, StoreMetrics, Token, tenant_place};
use tokio::sync::watch;
use tokio::time::interval;
use tracing::{info, warn};

use crate::commands::worker::{offers, runtime_of, worker};
use crate::error::CliError;
use crate::{args, place};

/// How often workers begin for tenants that have none yet.
const LOOK: Duration = Duration::from_secs(15);

/// What the workers have of the server.
pub(super) struct Workers<'s> {
    pub(super) cli: &'s args::Cli,
    pub(super) args: &'s args::serve::Serve,
    /// Where other servers follow what they run.
    pub(super) live: Option<LiveNode>,
    pub(super) metrics: StoreMetrics,
    /// What all conversations of the server share.
    pub(super) budget: Option<Budget>,
    pub(super) tenants: ServedTenants,
}

/// What a worker ends with: an error, with the tenant, if it could not begin, or cannot write any more.
type Ended = Result<(), (String, CliError)>;

impl Workers<'_> {
    /// Runs conversations that were handed over, until the sender of `stop` is dropped.
    pub(super) async fn run(&self, mut stop: watch::Receiver<()>) -> Result<(), CliError> {
        let slots = WorkerSlots::new(self.args.takes.at_once());
        let mut begun = BTreeSet::new();
        // Workers continue while the store is asked.
        let mut looks = pin!(unfold(interval(LOOK), |mut look| async move {
            look.tick().await;
            Some((self.wanted().await, look))
        }));
        let mut working = FuturesUnordered::<LocalBoxFuture<'_, Ended>>::new();
        loop {
            tokio::select! {
                _ = stop.changed() => break,
                Some(wanted) = looks.next() => {
                    for tenant in wanted? {
                        if begun.insert(tenant.clone()) {
                            working.push(self.work(tenant, slots.clone(), stop.clone()).boxed_local());
                        }
                    }
                }
                Some(ended) = working.next() => {
                    let Err((tenant, error)) = ended else { continue };
                    if self.must_begin(&tenant) {
                        return Err(error);
                    }
                    // Such as one whose file is damaged: the others are not concerned.
                    let (why, _) = error.into_parts();
                    warn!(%tenant, why, "no worker runs the conversations of a tenant: it is tried again");
                    begun.remove(&tenant);
                }
            }
        }
        while working.next().await.is_some() {}
        Ok(())
    }

    /// The tenants whose conversations are run: those that the command line names, or else all that have a token or conversations.
    async fn wanted(&self) -> Result<Vec<String>, CliError> {
        let store = place::of(&self.cli.named_store())?;
        let names = match self.args.tenants.as_slice() {
            [] => self.tenants.names().await,
            named => named.iter().cloned().collect(),
        };
        Ok(names.into_iter().filter(|tenant| has_conversations(&store, tenant)).collect())
    }

    /// Whether the server ends if no worker can begin for the tenant.
    fn must_begin(&self, tenant: &str) -> bool {
        tenant == Token::LOCAL || self.args.tenants.iter().any(|named| named == tenant)
    }

    /// Runs the conversations of a tenant until the sender of `stop` is dropped.
    async fn work(&self, tenant: String, slots: WorkerSlots, mut stop: watch::Receiver<()>) -> Ended {
        let worker = self.worker(&tenant, slots).await.map_err(|error| (tenant.clone(), error))?;
        info!(%tenant, "a worker runs the conversations of a tenant");
        let ended = worker.run(async { drop(stop.changed().await) }).await;
        ended.map_err(|error| (tenant, error.into()))
    }

    /// A worker of a tenant. Its conversations are paid by the budgets of the server.
    async fn worker(&self, tenant: &str, slots: WorkerSlots) -> Result<Arc<Worker>, CliError> {
        let location = tenant_place(&place::of(&self.cli.named_store())?, tenant);
        location.check_volume()?;
        let args::serve::Serve { takes, options, budgets, public_url, .. } = self.args;
        let takes = WorkerOptions {
            at_once: takes.at_once(),
            slots: Some(slots),
            offers: offers(&location, &takes.offers, options)?,
            address: public_url.clone(),
            keeps_files: takes.keep_files,
            meter: Some(self.tenants.meter(tenant).map_err(|error| *error)?),
        };
        let shared = budgets.shared().into_iter().map(|(name, _)| name).collect();
        let runtime = runtime_of(location, self.live.as_ref(), Some(&self.metrics)).await?;
        worker(&runtime.with_budget(self.budget.clone()).paid_by(shared)?, options, takes)
    }
}

/// Whether a tenant can have conversations: the file of one that has none is not made.
fn has_conversations(store: &StoreLocation, tenant: &str) -> bool {
    let location = tenant_place(store, tenant);
    tenant == Token::LOCAL || location.is_shared() || location.path().exists()
}
