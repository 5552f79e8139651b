//! Cancelling runs from outside.

use std::sync::Arc;

use tokio::sync::watch;

/// Cancels runs of one log from outside. Appended events stay, and the run can be resumed.
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
    /// Requests that the run end after its current step: turns that have begun finish, and no
    /// other begins. Does not weaken an earlier [`cancel_now`](Self::cancel_now).
    pub fn cancel_after_step(&self) {
        self.0.send_if_modified(|mode| {
            std::mem::replace(mode, (*mode).max(CancelMode::AfterStep)) < CancelMode::AfterStep
        });
    }

    /// Requests that the run end at once: aborts model and tool calls in flight.
    pub fn cancel_now(&self) {
        self.0.send_replace(CancelMode::Now);
    }

    /// Withdraws the request, so that the log can be run again.
    pub fn clear(&self) {
        self.0.send_replace(CancelMode::Run);
    }

    /// Returns whether cancellation was requested.
    pub fn is_requested(&self) -> bool {
        self.mode() > CancelMode::Run
    }

    pub(crate) fn mode(&self) -> CancelMode {
        *self.0.borrow()
    }

    /// Waits until this mode, or a stronger one, is requested.
    pub(crate) async fn wait(&self, mode: CancelMode) {
        // The sender lives as long as `self`, so this ends only with the request.
        let _ = self.0.subscribe().wait_for(|given| *given >= mode).await;
    }
}
