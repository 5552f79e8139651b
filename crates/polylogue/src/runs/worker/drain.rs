//! Draining a worker.

use std::sync::Arc;

use tokio::sync::watch;

/// Drains a worker, such as on SIGTERM: it claims nothing more, lets turns end, and releases everything for others.
#[derive(Debug, Clone, Default)]
pub struct Drain(Arc<watch::Sender<bool>>);

impl Drain {
    /// Requests that the worker drains.
    pub fn request(&self) {
        self.0.send_replace(true);
    }

    /// Returns whether draining was requested.
    pub fn is_requested(&self) -> bool {
        *self.0.borrow()
    }

    /// Waits until draining is requested.
    pub async fn wait(&self) {
        // The sender lives as long as `self`.
        let _ = self.0.subscribe().wait_for(|requested| *requested).await;
    }
}
