//! The account of one run: its reservations, and the charges that are not in the log yet.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::watch;

use super::{Reserved, RunReservation};
use crate::{Charge, Money, Path, StopReason};

/// The reservations of one run, and the charges for the next write.
#[derive(Default)]
pub(crate) struct Account {
    state: Mutex<AccountState>,
    pub(crate) changed: watch::Sender<()>,
}

/// What an account has.
#[derive(Default)]
pub(crate) struct AccountState {
    pub(crate) reserved: Reserved,
    /// Those of the accounts of agents and chats, by index.
    owned: Vec<Reserved>,
    /// Whether an agent or a chat has limits for which upper bounds must be known.
    pub(crate) need_bounds: bool,
    /// Whether an agent or a chat has a limit on time.
    pub(crate) is_timed: bool,
    /// Charges that are not in the log yet.
    pub(crate) pending: Vec<(Path, Charge)>,
    /// The limit that refused a call of this run.
    pub(crate) refused: Option<StopReason>,
    /// How many open turns may have had a call in flight when an earlier process died, and are not checked yet.
    pub(crate) unchecked_turns: usize,
    /// How many background tasks are to be aborted as soon as these turns are checked.
    pub(crate) to_abort: usize,
    /// Whether open turns act only up to their next calls, which are charged and not sent.
    pub(crate) only_charges: bool,
    /// The model calls in the log from before the outermost agent call.
    pub(crate) before: u64,
}

impl AccountState {
    /// The reservations within the account of an agent or chat.
    pub(crate) fn owned(&self, index: usize) -> Reserved {
        self.owned.get(index).copied().unwrap_or_default()
    }

    /// Reserves a call in all accounts.
    pub(crate) fn add(&mut self, run: RunReservation, owned: &[(usize, RunReservation)]) {
        self.reserved.add(run);
        for (index, hold) in owned {
            if self.owned.len() <= *index {
                self.owned.resize(index + 1, Reserved::default());
            }
            self.owned.get_mut(*index).into_iter().for_each(|reserved| reserved.add(*hold));
        }
    }

    /// Releases the reservation of a call in all accounts.
    pub(crate) fn remove(&mut self, run: RunReservation, owned: &[(usize, RunReservation)]) {
        self.reserved.remove(run);
        for (index, hold) in owned {
            self.owned.get_mut(*index).into_iter().for_each(|reserved| reserved.remove(*hold));
        }
    }

    /// What is reserved in all accounts together.
    pub(crate) fn total(&self) -> Money {
        self.owned.iter().chain([&self.reserved]).map(|reserved| reserved.money()).sum()
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
