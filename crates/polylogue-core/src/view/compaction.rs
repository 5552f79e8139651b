//! Replaces the older part of a view by a summary.

use std::ops::Range;

use super::View;
use super::entry::Entry;
use super::window::tokens;
use super::words::is_spoken;
use crate::{Compacted, HistorySummary, Part};

/// The part of a view that a compaction can replace.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Compactable {
    /// The entries, an earlier summary not included.
    pub entries: Range<usize>,
    /// The last event that they are from.
    pub through: u64,
}

/// The maximum size of the latest entries that stay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KeptSize {
    /// Tokens, estimated at four ASCII characters or one other character each.
    Tokens(u64),
    /// Entries, each call and each result counted as one.
    Entries(usize),
}

impl KeptSize {
    /// How many of the latest entries fit.
    fn latest(self, entries: &[Entry]) -> usize {
        let most = match self {
            Self::Entries(most) => return most.min(entries.len()),
            Self::Tokens(most) => most,
        };
        let mut size: u64 = 0;
        let fits = |entry: &&Entry| {
            size = size.saturating_add(tokens(entry) as u64);
            size <= most
        };
        entries.iter().rev().take_while(fits).count()
    }
}

impl View {
    /// Estimates the tokens of a request for this view: those reported for the last one and what followed it, or else all of it
    /// at four ASCII characters or one other character each, and `others` for the system message and the tools.
    pub fn tokens(&self, others: impl FnOnce() -> u64) -> u64 {
        let (known, since) = self.measured.unwrap_or_else(|| (others(), 0));
        known.saturating_add(estimate(self.entries.get(since..).unwrap_or_default()))
    }

    /// Estimates the tokens of the entries from `index` on, in the same way.
    pub fn tokens_from(&self, index: usize) -> u64 {
        estimate(self.entries.get(index..).unwrap_or_default())
    }

    /// Returns the summary that earlier entries were replaced by.
    pub const fn summary(&self) -> Option<&HistorySummary> {
        self.summary.as_ref()
    }

    /// Returns the event that the entry at `index` is from, by `seq`.
    pub fn origin(&self, index: usize) -> Option<u64> {
        self.origins.get(index).copied()
    }

    /// Returns the entry that the agent's turn works on: the last one of others or prompt that was there when the turn began.
    pub fn turn_task(&self) -> Option<usize> {
        let before = self.entries.get(..self.begun?.entries)?;
        before.iter().rposition(|entry| matches!(entry, Entry::User { .. } | Entry::System { .. }))
    }

    /// Returns the part that a compaction can replace so that at most `keep` of the latest entries stays, but not fewer than
    /// `keep_messages`, a call and its results counted as one. Never the opening. `None` if nothing can be replaced.
    pub fn compactable(&self, keep: KeptSize, keep_messages: usize) -> Option<Compactable> {
        let first = self.pinned + usize::from(self.summary.is_some());
        let starts: Vec<usize> = (first..self.entries.len()).filter(|&at| self.begins_exchange(at)).collect();
        let latest = starts.len().checked_sub(keep_messages.max(1)).filter(|index| *index > 0)?;
        let cuts = starts
            .get(1..=latest)?
            .iter()
            .copied()
            .filter(|&at| self.origins.get(at) > self.origins.get(at - 1));
        let cuts: Vec<usize> = cuts.collect();
        // Each entry is measured once: histories are long.
        let from = self.entries.len() - keep.latest(&self.entries);
        let end = *cuts.iter().find(|at| **at >= from).or(cuts.last())?;
        let through = self.origin(end - 1)?;
        Some(Compactable { entries: first..end, through })
    }

    /// Replaces the entries up to an event by their summary, after those that stay verbatim. The entry that the turn works
    /// on follows the summary, until a later compaction.
    pub(super) fn compact(&mut self, compacted: &Compacted) {
        let is_older = |at: usize| self.origins.get(at).is_some_and(|origin| *origin <= compacted.through);
        let mut cut = self.pinned;
        while is_older(cut)
            || (cut > self.pinned && matches!(self.entries.get(cut), Some(Entry::Tool { .. })))
        {
            cut += 1;
        }
        let is_kept =
            |at: &usize| self.origins.get(*at).is_some_and(|origin| compacted.kept.contains(origin));
        let replaced = self.pinned + usize::from(self.summary.is_some())..cut;
        let kept = replaced.clone().filter(is_kept);
        let mut head: Vec<Entry> = kept.filter_map(|at| verbatim(self.entries.get(at)?)).collect();
        let pinned = self.pinned + head.len();
        head.push(Entry::user(compacted.summary.text()));
        let is_task = |at: &usize| compacted.task.is_some() && self.origin(*at) == compacted.task;
        head.extend(replaced.rev().find(is_task).and_then(|at| verbatim(self.entries.get(at)?)));
        self.replace(cut, head);
        self.pinned = pinned;
        self.summary = Some(compacted.summary.clone());
    }
}

/// The text of an entry without calls and results.
fn verbatim(entry: &Entry) -> Option<Entry> {
    let parts = entry.parts();
    let is_text = |part: &&Part| is_spoken(part, parts) && !matches!(part, Part::ToolCall(_));
    let parts: Vec<Part> = parts.iter().filter(is_text).cloned().collect();
    match entry {
        _ if parts.is_empty() => None,
        Entry::Tool { .. } => None,
        Entry::Assistant { .. } => Some(Entry::own(parts)),
        Entry::User { .. } | Entry::System { .. } => Some(Entry::User { parts }),
    }
}

fn estimate(entries: &[Entry]) -> u64 {
    entries.iter().map(|entry| tokens(entry) as u64).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn as_many_of_the_latest_entries_stay_as_fit() {
        let entries: Vec<Entry> =
            [40, 4, 400, 0, 12, 100].iter().map(|bytes| Entry::user("x".repeat(*bytes))).collect();
        for most in 0..200 {
            let fits =
                |latest: &usize| estimate(entries.get(entries.len() - latest..).unwrap_or_default()) <= most;
            let expected = (0..=entries.len()).rev().find(fits);
            assert_eq!(Some(KeptSize::Tokens(most).latest(&entries)), expected, "{most}");
        }
        assert_eq!([0, 4, 9].map(|most| KeptSize::Entries(most).latest(&entries)), [0, 4, 6]);
    }
}
