//! Stopping runs from outside.

use std::sync::Arc;

use tokio::sync::watch;

/// Stops runs of one log from outside. What was appended stays, and the run can be resumed.
#[derive(Debug, Clone)]
pub struct Cancellation(Arc<watch::Sender<CancelMode>>);

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum CancelMode {
    Run,
    AfterStep,
    Now,
}

impl Default for Cancellation {
    fn default() -> Self {
        Self(Arc::new(watch::Sender::new(CancelMode::Run)))
    }
}

impl Cancellation {
    /// Lets the turns that have begun end, and begins no other.
    pub fn after_step(&self) {
        self.0.send_if_modified(|order| {
            std::mem::replace(order, (*order).max(CancelMode::AfterStep)) < CancelMode::AfterStep
        });
    }

    /// Breaks off model and tool calls in flight.
    pub fn now(&self) {
        self.0.send_replace(CancelMode::Now);
    }

    /// Lets the next run go on.
    pub fn clear(&self) {
        self.0.send_replace(CancelMode::Run);
    }

    /// Whether it was told to stop.
    #[must_use]
    pub fn is_requested(&self) -> bool {
        self.order() > CancelMode::Run
    }

    pub(crate) fn order(&self) -> CancelMode {
        *self.0.borrow()
    }

    /// Waits until there is such an order.
    pub(crate) async fn wait(&self, order: CancelMode) {
        // The sender lives as long as `self`, so this ends only with the order.
        let _ = self.0.subscribe().wait_for(|given| *given >= order).await;
    }
}
