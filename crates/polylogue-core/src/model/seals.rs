//! Which seals of a request are sent again.

use std::sync::Arc;

use super::Request;
use crate::view::{Chain, start};
use crate::{Digest, Entry, Seals, ToolSpec};

/// The seals of a request that are sent: from the front, those of the same wire and model whose reply came after the same
/// system message, tools and entries as it comes after now, as they are sent now.
///
/// All others are left out, with the thoughts that they are on. So the decision depends on nothing but the log:
/// whatever rewrites the past of a view - a window, a cleared history, another model for one turn, a changed tool -
/// ends the use of the seals behind it, and new ones are bound to what was really sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SealsSent {
    by: Arc<str>,
    start: Digest,
    /// Over the first `linked` entries: what a conversation without seals does not need.
    chain: Chain,
    linked: usize,
    /// How many entries were decided on.
    decided: usize,
    sent: Vec<usize>,
    key: Option<usize>,
}

impl SealsSent {
    /// Creates the beginning of a request with this system message and these tools to the model whose seals are `by`
    /// `wire:model`.
    pub fn new(by: impl Into<Arc<str>>, system: Option<&str>, tools: &[ToolSpec]) -> Self {
        let (start, chain) = (start(system, tools), Chain::default());
        Self { by: by.into(), start, chain, linked: 0, decided: 0, sent: Vec::new(), key: None }
    }

    /// Decides on `entries`, the first of which were decided on already. While none of them has seals, nothing is hashed.
    pub fn extend(&mut self, entries: &[Entry]) {
        if entries.iter().skip(self.decided).any(|entry| seals_of(entry).is_some()) {
            self.link(entries);
        }
        self.decided = entries.len();
    }

    fn link(&mut self, entries: &[Entry]) {
        entries.iter().skip(self.linked).for_each(|entry| self.push(entry));
    }

    fn push(&mut self, entry: &Entry) {
        let plain = match seals_of(entry) {
            Some(seals) if self.fits(seals) => {
                self.sent.push(self.linked);
                self.key = seals.key.or(self.key);
                None
            }
            _ => entry.unsealed(),
        };
        self.chain = self.chain.link(plain.as_ref().unwrap_or(entry));
        self.linked += 1;
    }

    fn fits(&self, seals: &Seals) -> bool {
        seals.by == self.by && seals.before == self.chain.after(&self.start)
    }

    /// Returns whether this is the beginning of `other`, so that it can be [extended](Self::extend) instead.
    pub fn begins_as(&self, other: &Self) -> bool {
        self.by == other.by && self.start == other.start
    }

    /// Returns whether the seals of the entry at `index` are sent.
    pub fn contains(&self, index: usize) -> bool {
        self.sent.binary_search(&index).is_ok()
    }

    /// Identifies everything that is sent with these `entries`, for the seals of the reply.
    pub fn before(&self, entries: &[Entry]) -> Digest {
        let mut all = self.clone();
        all.link(entries);
        all.chain.after(&all.start)
    }

    /// Returns who wrote the seals that are sent: `wire:model`.
    pub const fn by(&self) -> &Arc<str> {
        &self.by
    }

    /// Returns the index of the key with which the last of them was made.
    pub const fn key(&self) -> Option<usize> {
        self.key
    }
}

impl Request<'_> {
    /// Returns which seals of this request are sent to the model whose seals are `by` `wire:model`. Reads all entries.
    pub fn seals_sent(&self, by: impl Into<Arc<str>>) -> SealsSent {
        let mut sent = SealsSent::new(by, self.system, self.tools);
        sent.extend(self.entries);
        sent
    }
}

fn seals_of(entry: &Entry) -> Option<&Seals> {
    match entry {
        Entry::Assistant { verbatim: Some(verbatim), .. } => verbatim.seals.as_ref(),
        _ => None,
    }
}
