//! One budget as this process has it: what it draws, reports and returns, and when.

use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use polylogue_core::{Budget, BudgetDemand, BudgetStanding, StoreError};
use tokio::sync::Mutex;
use tokio::time::{sleep, timeout};
use tracing::warn;

use super::inner::Inner;
use super::names::title;

/// How often a process reports, and returns what it does not use.
const TICK: Duration = Duration::from_secs(1);

/// The pause after which more is asked for that others have.
const PAUSE: Duration = Duration::from_millis(200);

/// How often a lease is renewed.
const RENEWAL: Duration = Duration::from_secs(10);

/// A budget that is open.
pub(super) struct Account {
    name: String,
    budget: Budget,
    state: Mutex<State>,
}

/// What was sent last.
struct State {
    /// The number of the last statement: the row has it, so that a repeated one does nothing.
    number: i64,
    /// A demand whose statement has failed: whether it was executed is unknown.
    pending: Option<BudgetDemand>,
    renewed: Instant,
}

impl Account {
    pub(super) fn new(name: &str, standing: BudgetStanding) -> Self {
        let budget = Budget::pooled(title(name), standing);
        let state = Mutex::new(State { number: 0, pending: None, renewed: Instant::now() });
        Self { name: name.to_owned(), budget, state }
    }

    pub(super) const fn budget(&self) -> &Budget {
        &self.budget
    }

    /// Draws as soon as a call asks, reports each second, and renews the lease, until the account is dropped.
    pub(super) async fn keep(account: Weak<Self>, inner: Weak<Inner>) {
        let Some(mut asked) = account.upgrade().and_then(|account| account.budget.asked()) else { return };
        let mut logged = None;
        loop {
            // Fails when the budget is gone, and so is the account.
            let _ = timeout(TICK, asked.changed()).await;
            let (Some(account), Some(inner)) = (account.upgrade(), inner.upgrade()) else { return };
            match account.sync(&inner).await {
                Ok(is_drawn) => {
                    logged = None;
                    if !is_drawn {
                        // Others have it, and return each second what they do not use.
                        sleep(PAUSE).await;
                    }
                }
                Err(error) => {
                    // It is tried again each second, until the database is there again, or for as long as this process runs.
                    if logged.as_ref() != Some(&error) {
                        warn!(budget = %account.name, %error, "what was used of a budget is not reported");
                    }
                    logged = Some(error.clone());
                    account.budget.failed(error);
                    sleep(TICK).await;
                }
            }
        }
    }

    /// Reports and draws. Returns whether what was wanted was drawn.
    async fn sync(&self, inner: &Arc<Inner>) -> Result<bool, StoreError> {
        let mut state = self.state.lock().await;
        if let Some(pending) = state.pending.clone() {
            self.send(inner, &mut state, &pending).await?;
        }
        let renews = state.renewed.elapsed() >= RENEWAL;
        let Some(demand) = self.budget.demand(renews) else { return Ok(true) };
        state.number += 1;
        state.pending = Some(demand.clone());
        let standing = self.send(inner, &mut state, &demand).await?;
        let wanted = demand.wants.map_or(demand.reserved, |wants| wants.least);
        let is_drawn = [
            (standing.limits.calls, standing.drawn.calls >= wanted.calls),
            (standing.limits.tokens, standing.drawn.tokens >= wanted.tokens),
        ];
        let has_cost = standing.limits.cost.is_none() || standing.drawn.cost >= wanted.cost;
        Ok(has_cost && is_drawn.iter().all(|(limit, is_drawn)| limit.is_none() || *is_drawn))
    }

    /// Executes the last statement, and takes in what the row says.
    async fn send(
        &self,
        inner: &Arc<Inner>,
        state: &mut State,
        demand: &BudgetDemand,
    ) -> Result<BudgetStanding, StoreError> {
        let sent = Instant::now();
        let (standing, expired) = inner.draw(&self.name, state.number, demand).await?;
        (state.pending, state.renewed) = (None, sent);
        self.budget.settled(standing, sent);
        inner.release_all_expired(&self.name, &expired).await;
        Ok(standing)
    }

    /// Fails the calls that wait: nothing is drawn any more.
    pub(super) fn close(&self, error: StoreError) {
        self.budget.failed(error);
    }

    /// Reports the rest, and returns all that is drawn. What fails is returned when the lease expires.
    pub(super) async fn leave(&self, inner: &Arc<Inner>) {
        let left = async {
            self.sync(inner).await?;
            inner.leave(&self.name).await
        };
        if let Err(error) = left.await {
            warn!(budget = %self.name, %error, "an allowance of a budget is not returned yet");
        }
    }
}
