//! Logs, their writers, and when workers must look at them.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use polylogue_core::{
    BlobId, Claim, Event, Features, InboxMessage, LeaseNumber, LogId, MAX_TRIES, Meta, StoreError, Summary,
};

use super::due_index::DueIndex;
use crate::claims;

#[derive(Debug, Default)]
pub(super) struct Logs {
    pub(super) by_id: HashMap<LogId, Log>,
    pub(super) due: DueIndex,
    /// By the key.
    pub(super) reserved_keys: HashMap<String, ReservedKey>,
}

/// The request for which a key is reserved.
#[derive(Debug)]
pub(super) struct ReservedKey {
    pub(super) request: String,
    /// When the reservation ends.
    pub(super) until: u64,
}

#[derive(Debug, Default)]
pub(super) struct Log {
    pub(super) meta: Meta,
    pub(super) events: Vec<Arc<Event>>,
    pub(super) inbox: Vec<InboxMessage>,
    /// The numbers of those that its events take.
    pub(super) taken: BTreeSet<u64>,
    pub(super) blobs: HashMap<BlobId, Arc<[u8]>>,
    pub(super) summary: Summary,
    /// The fence of the valid claim, and its lease.
    pub(super) writer: Option<(u64, GrantedLease)>,
    pub(super) queued: Queued,
}

/// How long a claim is valid.
#[derive(Debug, Clone, Copy)]
pub(super) struct GrantedLease {
    /// When it expires.
    pub(super) until: u64,
    pub(super) number: LeaseNumber,
}

/// When a worker must look at a log.
#[derive(Debug, Default)]
pub(super) struct Queued {
    pub(super) due: Option<u64>,
    pub(super) needs: Features,
    /// Whether it was scheduled while it was held.
    pub(super) is_woken: bool,
    /// The inbox messages that came while it was held, and that it does not have.
    pub(super) unread: BTreeSet<u64>,
    /// Claims since the last append or release. Of a parked log, those before it was parked.
    pub(super) tries: u32,
    /// Whether a parked log has an append under the claim that it has now.
    pub(super) has_progressed: bool,
    /// Why the last try failed.
    pub(super) why: Option<String>,
    pub(super) is_parked: bool,
}

impl Log {
    pub(super) fn free(&self, id: &LogId) -> Result<(), StoreError> {
        match self.writer {
            None => Ok(()),
            Some(_) => Err(StoreError::Busy { id: id.clone(), holder: claims::this_process() }),
        }
    }
}

impl Logs {
    /// Changes when a log is due: that time, what it has not taken, or how long its lease lasts. The only way: the index follows.
    pub(super) fn requeue(&mut self, id: &LogId, change: impl FnOnce(&mut Log)) {
        let Some(log) = self.by_id.get_mut(id) else { return };
        let before = log.due().map(|due| (due, log.queued.needs.clone()));
        change(log);
        let after = log.due().map(|due| (due, log.queued.needs.clone()));
        if before == after {
            return;
        }
        if let Some((due, needs)) = before {
            self.due.remove(&needs, due, id);
        }
        if let Some((due, needs)) = after {
            self.due.insert(&needs, due, id);
        }
    }

    /// Grants `claim`, or parks its log. Returns whether it was granted.
    pub(super) fn take(&mut self, claim: &Claim, lease: GrantedLease) -> bool {
        let mut is_granted = false;
        self.requeue(&claim.id, |log| {
            let queued = &mut log.queued;
            // A parked one that was claimed by its id, and lost.
            if std::mem::take(&mut queued.has_progressed) {
                queued.tries = 0;
            }
            is_granted = queued.tries < MAX_TRIES;
            if is_granted {
                queued.take_wake_up();
                (queued.due, queued.tries, queued.is_parked) = (Some(lease.until), queued.tries + 1, false);
                log.writer = Some((claim.fence, lease));
            } else {
                log.park();
            }
        });
        is_granted
    }

    /// Removes a log.
    pub(super) fn remove(&mut self, id: &LogId) {
        self.requeue(id, |log| log.queued.due = None);
        self.by_id.remove(id);
    }

    /// Has a log looked at because of the message `number`: at once, or when it is released without having taken it.
    pub(super) fn wake(&mut self, id: &LogId, number: u64, now: u64) {
        self.requeue(id, |log| {
            let is_held = log.is_held(now);
            log.queued.unpark();
            // The holder may continue, though its lease has expired.
            if log.writer.is_some() {
                log.queued.unread.insert(number);
            }
            if !is_held {
                log.queued.due = Some(now);
            }
        });
    }

    /// Ends a claim, if it is valid, and has the log looked at again at `due`: at the time it was due before, without a value.
    pub(super) fn end_claim(&mut self, claim: &Claim, due: Option<Option<u64>>, now: u64) {
        if !self.by_id.get(&claim.id).is_some_and(|log| log.is_claimed_by(claim)) {
            return;
        }
        self.requeue(&claim.id, |log| {
            log.writer = None;
            log.queued.has_progressed = false;
            let due = due.unwrap_or(log.queued.due);
            log.queued.due = if log.queued.take_wake_up() { Some(now) } else { due };
        });
    }
}

impl Log {
    /// When a worker must look at it. If no worker continues it, but it has news that its holder has not taken: when the holder has died.
    pub(super) fn due(&self) -> Option<u64> {
        let has_news = self.queued.is_woken || !self.queued.unread.is_empty();
        let lost = self.writer.filter(|_| has_news).map(|(_, lease)| lease.until);
        self.queued.due.or(lost)
    }

    /// Whether a worker has it, and its lease lasts.
    pub(super) fn is_held(&self, now: u64) -> bool {
        self.writer.is_some_and(|(_, lease)| lease.until > now)
    }

    /// Whether a worker can claim it that knows of the leases up to `ended` that they have ended.
    pub(super) fn is_claimable(&self, now: u64, ended: LeaseNumber) -> bool {
        self.writer.is_none_or(|(_, lease)| lease.until <= now && lease.number <= ended)
    }

    pub(super) fn is_claimed_by(&self, claim: &Claim) -> bool {
        self.writer.is_some_and(|(fence, _)| fence == claim.fence)
    }

    pub(super) fn park(&mut self) {
        self.writer = None;
        let queued = &mut self.queued;
        queued.take_wake_up();
        (queued.due, queued.is_parked) = (None, true);
    }

    /// Its events take the inbox message `number`.
    pub(super) fn take_message(&mut self, number: u64) {
        self.taken.insert(number);
        self.queued.unread.remove(&number);
    }

    /// Whether its inbox has messages that it does not have, or it was scheduled while it was held.
    pub(super) fn has_news(&self) -> bool {
        self.queued.is_woken || (1..=self.inbox.len() as u64).any(|number| !self.taken.contains(&number))
    }
}

impl Queued {
    /// An event was appended, or the log was released by a worker that is well. Why it is parked, and after how many tries, stays until it is
    /// parked no more.
    pub(super) fn progressed(&mut self) {
        if self.is_parked {
            self.has_progressed = true;
        } else {
            (self.tries, self.why, self.has_progressed) = (0, None, false);
        }
    }

    /// Whether it must be looked at when it is released. That is forgotten.
    pub(super) fn take_wake_up(&mut self) -> bool {
        let unread = std::mem::take(&mut self.unread);
        std::mem::take(&mut self.is_woken) || !unread.is_empty()
    }

    pub(super) fn unpark(&mut self) {
        if self.is_parked {
            self.is_parked = false;
            self.progressed();
        }
    }
}
