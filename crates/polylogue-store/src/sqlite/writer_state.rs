//! What the thread that writes keeps between transactions.

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::path::Path;
use std::sync::Arc;

use polylogue_core::{LogId, StoreError};
use rusqlite::Connection;

use super::files::Files;
use super::heads;
use super::process_lock::{DeadProcess, ProcessLock};
use crate::head::Head;

/// What the writer keeps between transactions.
pub(super) struct WriterState {
    place: Arc<Path>,
    files: Files,
    /// Taken when the first log is claimed.
    seat: RefCell<Option<ProcessLock>>,
    /// What dead processes left, and has not been taken in.
    dead: RefCell<Vec<DeadProcess>>,
    /// Whether it is taken in when the transaction is committed.
    read: Cell<bool>,
    /// What is to be said when the transaction is committed.
    unsaid: RefCell<Vec<Head>>,
}

impl WriterState {
    pub(super) fn new(place: Arc<Path>) -> Self {
        let files = Files::of(&place);
        let (seat, dead, unsaid) = (RefCell::default(), RefCell::default(), RefCell::default());
        Self { place, files, seat, dead, read: Cell::new(false), unsaid }
    }

    /// The database.
    pub(super) fn place(&self) -> &Path {
        &self.place
    }

    /// Whether the database is still where it was opened.
    pub(super) fn check(&self) -> Result<(), StoreError> {
        self.files.check()
    }

    /// Deletes all claims. They count no more when the seat is gone; this only leaves a tidy table.
    pub(super) fn close(&self, connection: &Connection) {
        if let Some(own) = self.own() {
            let _ = connection.execute("DELETE FROM claims WHERE writer = ?1", [own]);
        }
    }

    /// What claims call this store, if it has any.
    pub(super) fn own(&self) -> Option<String> {
        self.seat.borrow().as_ref().map(|seat| seat.token().to_owned())
    }

    /// What claims call this store, which is about to have one.
    pub(super) fn token(&self) -> io::Result<String> {
        if let Some(own) = self.own() {
            return Ok(own);
        }
        let seat = ProcessLock::take(&self.place)?;
        let token = seat.token().to_owned();
        *self.dead.borrow_mut() = seat.dead();
        *self.seat.borrow_mut() = Some(seat);
        Ok(token)
    }

    /// What dead processes said of their logs, to be taken in with this transaction.
    pub(super) fn said_by_the_dead(&self) -> Vec<Head> {
        if self.read.replace(true) {
            return Vec::new();
        }
        self.dead.borrow().iter().flat_map(|dead| dead.heads.iter().cloned()).collect()
    }

    /// What was said last of a log, in this transaction or before.
    pub(super) fn said(&self, id: &LogId) -> Option<Head> {
        let unsaid = self.unsaid.borrow();
        let last = unsaid.iter().rev().find(|head| head.id == *id).cloned();
        last.or_else(|| self.seat.borrow_mut().as_mut()?.heads().of(id).cloned())
    }

    /// Says how far a log goes, when that is committed.
    pub(super) fn say(&self, head: Head) {
        self.unsaid.borrow_mut().push(head);
    }

    /// The transaction was committed.
    pub(super) fn committed(&self) {
        let unsaid = self.unsaid.take();
        let mut seat = self.seat.borrow_mut();
        let Some(seat) = seat.as_mut() else { return };
        if self.read.get() {
            // Until the journal is gone it is still needed; those logs are no longer claimed.
            let (dead, mut latest) = (self.dead.take(), HashMap::new());
            let heads = dead.iter().flat_map(|dead| dead.heads.iter().cloned());
            heads.for_each(|head| heads::keep_latest(&mut latest, Head { lease_ms: 0, ..head }));
            latest.into_values().for_each(|head| seat.heads().say(head));
            dead.into_iter().for_each(DeadProcess::clear);
        }
        unsaid.into_iter().for_each(|head| seat.heads().say(head));
    }

    /// The transaction was rolled back.
    pub(super) fn rolled_back(&self) {
        self.unsaid.take();
        self.read.set(self.dead.borrow().is_empty());
    }
}
