//! The logs that are due at some time, in order.

use std::collections::{BTreeMap, BTreeSet};

use polylogue_core::{Features, LogId};

/// Which logs are due when, by what they need of a worker.
#[derive(Debug, Default)]
pub(super) struct DueIndex(BTreeMap<Features, BTreeSet<(u64, LogId)>>);

impl DueIndex {
    pub(super) fn insert(&mut self, needs: &Features, due: u64, id: &LogId) {
        self.0.entry(needs.clone()).or_default().insert((due, id.clone()));
    }

    pub(super) fn remove(&mut self, needs: &Features, due: u64, id: &LogId) {
        if let Some(logs) = self.0.get_mut(needs) {
            logs.remove(&(due, id.clone()));
            if logs.is_empty() {
                self.0.remove(needs);
            }
        }
    }

    /// The logs that are due at `now` and need what `offers` has, in order, as far as `wanted` allows: up to `room` of each need.
    pub(super) fn due(
        &self,
        now: u64,
        offers: &Features,
        room: usize,
        wanted: impl Fn(&LogId) -> bool,
    ) -> Vec<LogId> {
        let served = self.0.iter().filter(|(needs, _)| needs.is_subset(offers));
        let due = |logs: &BTreeSet<(u64, LogId)>| -> Vec<(u64, LogId)> {
            let due = logs.iter().take_while(|(due, _)| *due <= now);
            due.filter(|(_, id)| wanted(id)).take(room).cloned().collect()
        };
        let mut found: Vec<(u64, LogId)> = served.flat_map(|(_, logs)| due(logs)).collect();
        found.sort();
        found.into_iter().map(|(_, id)| id).collect()
    }
}
