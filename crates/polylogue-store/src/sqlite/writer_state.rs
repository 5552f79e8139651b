//! The state of the writer thread between transactions.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;

use polylogue_core::{Claim, LogId, StoreError};
use rusqlite::Connection;

use super::ends::LogEnds;
use super::files::Files;
use super::heads;
use super::process_lock::{self, DeadProcess, Place, ProcessLock};
use crate::clock::Clock;
use crate::head::Head;

/// The state of the writer between transactions.
pub(super) struct WriterState {
    place: Place,
    clock: Clock,
    files: Files,
    /// The lock file, created when the first log is claimed.
    lock: RefCell<Option<ProcessLock>>,
    /// The heads of dead processes that are not yet in the database.
    dead: RefCell<Vec<DeadProcess>>,
    /// Whether the transaction stores them.
    are_dead_stored: Cell<bool>,
    /// The ends of claimed logs.
    ends: LogEnds,
    /// The heads to be written after the commit.
    unwritten: RefCell<Vec<Head>>,
    /// Claims that no one has any more, and whose release could not be written.
    unreleased: RefCell<Vec<Claim>>,
}

impl WriterState {
    pub(super) fn new(place: Place, clock: Clock) -> Self {
        let files = Files::of(&place);
        let (lock, dead, unwritten) = (RefCell::default(), RefCell::default(), RefCell::default());
        let (are_dead_stored, ends, unreleased) = (Cell::new(false), LogEnds::default(), RefCell::default());
        Self { place, clock, files, lock, dead, are_dead_stored, ends, unwritten, unreleased }
    }

    /// The database.
    pub(super) fn place(&self) -> &Place {
        &self.place
    }

    /// The time in milliseconds since 1970.
    pub(super) fn now(&self) -> u64 {
        self.clock.now()
    }

    /// The time by the clock of leases.
    pub(super) fn steady(&self) -> u64 {
        self.clock.steady()
    }

    /// The ends of claimed logs, also of those that the transaction appends to.
    pub(super) const fn ends(&self) -> &LogEnds {
        &self.ends
    }

    /// Whether the database still has the name under which it was opened.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.files.check()
    }

    /// Deletes all claims. They are invalid without the lock file anyway; this only cleans up the table.
    pub(super) fn close(&self, connection: &Connection) {
        if let Some(own) = self.own() {
            let _ = connection.execute("DELETE FROM claims WHERE writer = ?1", [own]);
        }
    }

    /// The name of this store in claims, if it has any.
    pub(super) fn own(&self) -> Option<String> {
        self.lock.borrow().as_ref().map(|lock| lock.token().to_owned())
    }

    /// The name of this store in its first claim.
    pub(super) fn token(&self) -> io::Result<String> {
        if let Some(own) = self.own() {
            return Ok(own);
        }
        let lock = ProcessLock::take(&self.place)?;
        let token = lock.token().to_owned();
        *self.dead.borrow_mut() = lock.dead();
        *self.lock.borrow_mut() = Some(lock);
        Ok(token)
    }

    /// The heads of dead processes, to be stored by this transaction.
    pub(super) fn heads_of_ended_processes(&self) -> Vec<Head> {
        if self.are_dead_stored.replace(true) {
            return Vec::new();
        }
        self.dead.borrow().iter().flat_map(|dead| dead.heads.iter().cloned()).collect()
    }

    /// The last head of a log, in this transaction or before.
    pub(super) fn head_of(&self, id: &LogId) -> Option<Head> {
        let unwritten = self.unwritten.borrow();
        let last = unwritten.iter().rev().find(|head| head.id == *id).cloned();
        last.or_else(|| self.lock.borrow().as_ref()?.head_of(id))
    }

    /// The last head of a log that the store with the token `writer` has written.
    pub(super) fn head_written_by(&self, writer: &str, id: &LogId) -> Option<Head> {
        if self.lock.borrow().as_ref().is_some_and(|lock| lock.token() == writer) {
            return self.head_of(id);
        }
        process_lock::head_written_by(&self.place, writer, id)
    }

    /// Writes the head of a log after the commit.
    pub(super) fn write_head_later(&self, head: Head) {
        self.unwritten.borrow_mut().push(head);
    }

    /// Notes claims whose release could not be written.
    pub(super) fn keep_unreleased(&self, claims: &[Claim]) {
        self.unreleased.borrow_mut().extend_from_slice(claims);
    }

    /// Takes the claims whose release could not be written.
    pub(super) fn take_unreleased(&self) -> Vec<Claim> {
        self.unreleased.take()
    }

    /// Whether there are claims whose release could not be written.
    pub(super) fn has_unreleased(&self) -> bool {
        !self.unreleased.borrow().is_empty()
    }

    /// The transaction was committed.
    pub(super) fn committed(&self) {
        let unwritten = self.unwritten.take();
        let lock = self.lock.borrow();
        let Some(lock) = lock.as_ref() else { return };
        if self.are_dead_stored.get() {
            // Until the journal is gone it is still needed; those logs are no longer claimed.
            let (dead, mut latest) = (self.dead.take(), HashMap::new());
            let heads = dead.iter().flat_map(|dead| dead.heads.iter().cloned());
            heads.for_each(|head| heads::keep_latest(&mut latest, Head { lease_ms: 0, ..head }));
            latest.into_values().for_each(|head| lock.write_head(head));
            dead.into_iter().for_each(DeadProcess::clear);
        }
        unwritten.into_iter().for_each(|head| lock.write_head(head));
    }

    /// The transaction was rolled back.
    pub(super) fn rolled_back(&self) {
        self.unwritten.take();
        self.ends.clear();
        self.are_dead_stored.set(self.dead.borrow().is_empty());
    }
}
