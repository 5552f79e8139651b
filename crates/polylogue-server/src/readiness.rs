//! Whether the store can be written, however often it is asked.

use std::time::Duration;

use polylogue_core::{ListQuery, Store as _};
use polylogue_runtime::Runtime;
use tokio::sync::Mutex;
use tokio::time::{Instant, timeout};
use tracing::warn;

/// How long the store has to answer.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whether the store could be read and written when it was tried last.
pub(crate) struct Readiness {
    every: Duration,
    last: Mutex<Option<(Instant, bool)>>,
}

impl Readiness {
    /// Tries once in this time.
    pub(crate) fn new(every: Duration) -> Self {
        Self { every, last: Mutex::new(None) }
    }

    /// Whether the store of `runtime` can be read and written. Those who ask at the same time share one attempt.
    pub(crate) async fn is_ready(&self, runtime: &Runtime) -> bool {
        let mut last = self.last.lock().await;
        if let Some((at, is_ready)) = *last
            && at.elapsed() < self.every
        {
            return is_ready;
        }
        let is_ready = match timeout(PATIENCE, attempt(runtime)).await {
            Ok(Ok(())) => true,
            Ok(Err(error)) => {
                warn!(%error, "the server is not ready: the store cannot be read and written");
                false
            }
            Err(_) => {
                warn!("the server is not ready: the store did not answer within {} s", PATIENCE.as_secs());
                false
            }
        };
        *last = Some((Instant::now(), is_ready));
        is_ready
    }
}

async fn attempt(runtime: &Runtime) -> polylogue_runtime::Result<()> {
    runtime.list(&ListQuery { limit: Some(1), ..ListQuery::default() }).await?;
    Ok(runtime.store().check_writable().await.map_err(polylogue_core::Error::from)?)
}
