//! Limits that endpoints share with those of other processes.

mod limiter;
mod permit;

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use polylogue_core::{LearnedRate, LearnedRates, LimitScope, Rate, Slot};
use tokio::sync::{Mutex as AsyncMutex, OnceCell};
use tokio::time::{Instant, sleep, timeout};
use tracing::warn;

use self::limiter::SharedLimiter;
pub(crate) use self::permit::Permit;
pub(crate) use self::permit::SlotGuard;
use crate::config::Config;
use crate::limits::ClusterLimits;

/// The shared limits of one endpoint.
pub(crate) struct EndpointLimiters {
    cluster: ClusterLimits,
    provider: String,
    /// By index of the key.
    accounts: Vec<[u8; 32]>,
    /// All keys together.
    server: LimitScope,
    /// The rate of all requests, and whether it is stored.
    per_minute: Option<(Rate, OnceCell<()>)>,
    slots: Option<u32>,
    limiters: Mutex<HashMap<LimitScope, Arc<SharedLimiter>>>,
    /// Who waits for a slot, in order.
    queue: AsyncMutex<()>,
    /// By model: who waits for a rate with a place.
    lines: Mutex<HashMap<String, Arc<AsyncMutex<()>>>>,
}

/// The time between two looks for a free slot, from the first to the longest.
const LOOKS: (Duration, Duration) = (Duration::from_millis(20), Duration::from_millis(250));

impl EndpointLimiters {
    /// Those of the endpoint at `address`, without secrets; `None` if it shares none.
    pub(crate) fn new(config: &Config, address: &str) -> Option<Self> {
        let cluster = config.cluster.clone()?;
        let account = |key: &str| account(&[address, key]);
        let keys = config.keys().map(|key| account(key.reveal()));
        let mut accounts: Vec<_> = keys.collect();
        if accounts.is_empty() {
            let secrets: Vec<&str> = config.auth.secrets().collect();
            accounts.push(account(&secrets.join("\n")));
        }
        let server =
            LimitScope { provider: config.provider.clone(), account: account(""), model: String::new() };
        Some(Self {
            cluster,
            provider: config.provider.clone(),
            accounts,
            server,
            per_minute: config.limits.per_minute.map(|count| (minutely(count), OnceCell::new())),
            slots: config.slots.map(|slots| slots.max(1)),
            limiters: Mutex::default(),
            queue: AsyncMutex::default(),
            lines: Mutex::default(),
        })
    }

    fn limiter(&self, scope: LimitScope) -> Arc<SharedLimiter> {
        let mut limiters = self.limiters.lock().unwrap_or_else(PoisonError::into_inner);
        let limiter = limiters.entry(scope);
        Arc::clone(limiter.or_insert_with_key(|scope| {
            Arc::new(SharedLimiter::new(scope.clone(), Arc::clone(&self.cluster.limits)))
        }))
    }

    /// Waits no longer than `patience` until any key may begin a request, by the rate of all requests.
    ///
    /// # Errors
    /// The wait, if it is longer.
    pub(crate) async fn begin(&self, patience: Option<Duration>) -> Result<(), Duration> {
        let Some((rate, is_known)) = &self.per_minute else { return Ok(()) };
        let limiter = self.limiter(self.server.clone());
        let requests = Some(LearnedRate { rate: *rate, remaining: None });
        let rates = LearnedRates { requests, tokens: None };
        let stored = || async { limiter.note(rates).await.then_some(()).ok_or(()) };
        // One that cannot be stored now is stored with a later call, and does not hold up this one.
        let _ = is_known.get_or_try_init(stored).await;
        limiter.pass(0, patience).await
    }

    /// Waits no longer than `patience` for a slot, if there is a limit on them.
    ///
    /// # Errors
    /// The patience, if none is free by then.
    pub(crate) async fn slot(&self, patience: Option<Duration>) -> Result<Option<SlotGuard>, Duration> {
        let Some(slots) = self.slots else { return Ok(None) };
        let (begun, mut pause) = (Instant::now(), LOOKS.0);
        let first = self.queue.lock();
        let _first = match patience {
            Some(patience) => timeout(patience, first).await.map_err(|_| patience)?,
            None => first.await,
        };
        loop {
            match self.cluster.limits.take_slot(&self.server, slots).await {
                Ok(Some(slot)) => return Ok(Some(self.guard(slot))),
                Ok(None) => {}
                Err(error) => {
                    warn!(%error, "slots cannot be shared: a call begins without one");
                    return Ok(None);
                }
            }
            if let Some(patience) = patience.filter(|patience| begun.elapsed() >= *patience) {
                return Err(patience);
            }
            sleep(pause).await;
            pause = (pause * 2).min(LOOKS.1);
        }
    }

    fn guard(&self, slot: Slot) -> SlotGuard {
        SlotGuard::new(slot, Arc::clone(&self.cluster.limits))
    }

    /// Waits no longer than `patience` until the key `key` may begin a request of `tokens` tokens to `model`.
    ///
    /// # Errors
    /// The wait, if it is longer.
    pub(crate) async fn pass(
        &self,
        key: usize,
        model: &str,
        tokens: u64,
        patience: Option<Duration>,
    ) -> Result<Arc<SharedLimiter>, Duration> {
        let limiter = self.limiter(self.scope(key, model));
        limiter.pass(tokens, patience).await?;
        Ok(limiter)
    }

    /// What is limited of a key and a model.
    pub(crate) fn scope(&self, key: usize, model: &str) -> LimitScope {
        let account = self.accounts.get(key).copied().unwrap_or(self.server.account);
        LimitScope { provider: self.provider.clone(), account, model: model.to_owned() }
    }

    /// The line of the requests to `model` of which one at a time waits for a rate with a place.
    pub(crate) fn line(&self, model: &str) -> Arc<AsyncMutex<()>> {
        let mut lines = self.lines.lock().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(lines.entry(model.to_owned()).or_default())
    }

    /// How long a call may wait.
    pub(crate) const fn patience(&self) -> Option<Duration> {
        self.cluster.patience
    }
}

/// A digest that identifies an account and does not tell its key.
fn account(parts: &[&str]) -> [u8; 32] {
    let mut hasher = blake3::Hasher::new_derive_key("polylogue 2026 account of a shared limit");
    for part in parts {
        hasher.update(&part.len().to_le_bytes());
        hasher.update(part.as_bytes());
    }
    *hasher.finalize().as_bytes()
}

/// A rate that never lets more than `count` begin within any 60 seconds.
fn minutely(count: u32) -> Rate {
    let burst = (count / 20).max(1);
    match u64::from(count.saturating_sub(burst)) {
        // One at a time, with a little distance.
        0 => Rate { count: 1, period: Duration::from_secs(61), burst: 1.0 },
        // A call may begin a little later than it could.
        count => Rate { count, period: Duration::from_millis(60_500), burst: f64::from(burst) },
    }
}

#[cfg(test)]
pub(crate) mod tests;
