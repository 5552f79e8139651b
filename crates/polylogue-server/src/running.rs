//! Which conversations a server runs.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polylogue_core::LogId;
use tokio::sync::{Notify, watch};

/// The conversations of one tenant that this process runs.
pub(crate) struct Runs {
    running: Mutex<HashMap<LogId, Entry>>,
    /// Counts how often one was opened or has stopped running.
    changes: watch::Sender<u64>,
}

/// A conversation that runs, or waits until it may.
#[derive(Default)]
struct Entry {
    /// Whether it is to be run once more when it has stopped: something was sent to it meanwhile.
    again: bool,
    /// Ends its wait: it is not to run any more.
    unqueued: Arc<Notify>,
}

impl Runs {
    pub(crate) fn new() -> Self {
        Self { running: Mutex::default(), changes: watch::Sender::new(0) }
    }

    fn running(&self) -> MutexGuard<'_, HashMap<LogId, Entry>> {
        self.running.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether this process runs it, or is about to.
    pub(crate) fn is_running(&self, id: &LogId) -> bool {
        self.running().contains_key(id)
    }

    /// How many run.
    pub(crate) fn count(&self) -> usize {
        self.running().len()
    }

    /// Those that run.
    pub(crate) fn ids(&self) -> Vec<LogId> {
        self.running().keys().cloned().collect()
    }

    /// Changes when one is opened or has stopped running.
    pub(crate) fn changes(&self) -> watch::Receiver<u64> {
        self.changes.subscribe()
    }

    /// Takes the right to run it. If it runs already, it is run once more when it has stopped.
    pub(crate) fn enter(&self, id: &LogId) -> bool {
        let mut running = self.running();
        match running.get_mut(id) {
            Some(entry) => {
                entry.again = true;
                false
            }
            None => running.insert(id.clone(), Entry::default()).is_none(),
        }
    }

    /// Returns whether it is to be run once more; if not, gives up the right to run it.
    pub(crate) fn leave(&self, id: &LogId) -> bool {
        let mut running = self.running();
        let again = running.get_mut(id).is_some_and(|entry| std::mem::take(&mut entry.again));
        if !again {
            running.remove(id);
        }
        drop(running);
        self.note_change();
        again
    }

    /// Resolves when it is not to wait any longer until it may run.
    pub(crate) async fn unqueued(&self, id: &LogId) {
        let unqueued = self.running().get(id).map(|entry| Arc::clone(&entry.unqueued));
        match unqueued {
            Some(unqueued) => unqueued.notified().await,
            None => std::future::pending().await,
        }
    }

    /// Ends the wait of one that waits until it may run.
    pub(crate) fn unqueue(&self, id: &LogId) {
        if let Some(entry) = self.running().get(id) {
            entry.unqueued.notify_one();
        }
    }

    /// Tells those who follow a conversation that one was opened, or has stopped running.
    pub(crate) fn note_change(&self) {
        self.changes.send_modify(|count| *count = count.wrapping_add(1));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_comes_while_it_runs_runs_it_once_more() {
        let (runs, id) = (Runs::new(), LogId::new("a").unwrap());
        assert!(runs.enter(&id));
        assert!(!runs.enter(&id) && !runs.enter(&id));
        assert!(runs.leave(&id), "once more");
        assert!(runs.is_running(&id));
        assert!(!runs.leave(&id));
        assert_eq!(runs.count(), 0);
    }
}
