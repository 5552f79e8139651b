//! The account of one run: its reservations, and the charges that are not in the log yet.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::Reserved;
use crate::{Charge, Path, StopReason};

/// The reservations of one run, and the charges for the next write.
pub(crate) struct Account {
    state: Mutex<AccountState>,
    pub(crate) changed: watch::Sender<()>,
}

/// What an account has.
#[derive(Default)]
pub(crate) struct AccountState {
    pub(crate) reserved: Reserved,
    /// Charges that are not in the log yet.
    pub(crate) pending: Vec<(Path, Charge)>,
    /// The limit that refused a call of this run.
    pub(crate) refused: Option<StopReason>,
    /// How many open turns may have had a call in flight when an earlier process died, and are not checked yet.
    pub(crate) unchecked_turns: usize,
    /// The model calls in the log from before the outermost agent call.
    pub(crate) before: u64,
}

impl Default for Account {
    fn default() -> Self {
        Self { state: Mutex::default(), changed: watch::Sender::new(()) }
    }
}

impl Account {
    pub(crate) fn state(&self) -> MutexGuard<'_, AccountState> {
        // A panic elsewhere leaves nothing half done.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Removes and returns the charges to be written.
    pub(crate) fn take_pending(&self) -> Vec<(Path, Charge)> {
        std::mem::take(&mut self.state().pending)
    }

    /// Whether there are charges that are not in the log yet.
    pub(crate) fn has_pending(&self) -> bool {
        !self.state().pending.is_empty()
    }

    /// Begins a run: what was refused before may fit now, and all model calls in the log count.
    pub(crate) fn begin(&self) {
        let mut state = self.state();
        state.refused = None;
        state.before = 0;
    }

    /// Begins the outermost agent call, after `before` earlier model calls.
    pub(crate) fn begin_call(&self, before: u64) {
        self.state().before = before;
    }

    /// The model calls from before the outermost agent call.
    pub(crate) fn before(&self) -> u64 {
        self.state().before
    }

    /// The limit that refused a call of this run: the run ends, however the agent handles the error.
    pub(crate) fn refused(&self) -> Option<StopReason> {
        self.state().refused.clone()
    }
}
