//! Streamed replies whose pieces come when a test says so.

use std::sync::Arc;

use tokio::sync::watch;

/// Holds back the pieces of streamed replies until they are let through. A clone is the same gate.
///
/// ```
/// use polylogue_test::server::{Answer, PieceGate};
///
/// let gate = PieceGate::new();
/// let answer = Answer::text("one two three").pieces(3).gated(&gate);
/// gate.open_until(1);
/// gate.lift();
/// # let _ = answer;
/// ```
#[derive(Debug, Clone)]
pub struct PieceGate(Arc<watch::Sender<usize>>);

impl PieceGate {
    /// Creates a gate that lets nothing through.
    pub fn new() -> Self {
        Self(Arc::new(watch::Sender::new(0)))
    }

    /// Lets the first `chunks` chunks of each reply through. With OpenAI's API, the first one has no text.
    pub fn open_until(&self, chunks: usize) {
        self.0.send_replace(chunks);
    }

    /// Lets everything through.
    pub fn lift(&self) {
        self.open_until(usize::MAX);
    }

    /// Waits until the chunk `nth`, from 0, may pass.
    pub(super) async fn pass(&self, nth: usize) {
        // Fails only without a sender, which this one is.
        drop(self.0.subscribe().wait_for(|open| nth < *open).await);
    }
}

impl Default for PieceGate {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for PieceGate {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
