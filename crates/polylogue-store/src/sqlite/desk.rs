//! What the writer does to the tables, within a transaction.

use std::cell::OnceCell;
use std::path::Path;
use std::sync::Arc;

use polylogue_core::{Claim, LogId, Meta, StoreError};
use rusqlite::{Connection, OptionalExtension, Result, params};

use super::fault::Fault;
use super::seat::{self, Seat};
use crate::batch::Batch;
use crate::{holder, io_error};

/// What the writer keeps between transactions.
pub(super) struct Office {
    place: Arc<Path>,
    /// Taken when the first log is claimed.
    seat: OnceCell<Seat>,
}

impl Office {
    pub(super) fn new(place: Arc<Path>) -> Self {
        Self { place, seat: OnceCell::new() }
    }

    /// The database.
    pub(super) fn place(&self) -> &Path {
        &self.place
    }

    /// Deletes all claims. They count no more when the seat is gone; this only leaves a tidy table.
    pub(super) fn close(&self, connection: &Connection) {
        if let Some(own) = self.own() {
            let _ = connection.execute("DELETE FROM claims WHERE writer = ?1", [own]);
        }
    }

    /// What claims call this store, if it has any.
    fn own(&self) -> Option<&str> {
        self.seat.get().map(Seat::token)
    }

    /// What claims call this store, which is about to have one.
    fn token(&self) -> Result<&str, StoreError> {
        if let Some(seat) = self.seat.get() {
            return Ok(seat.token());
        }
        let seat = Seat::take(&self.place).map_err(|error| io_error::writing(&self.place, &error))?;
        Ok(self.seat.get_or_init(|| seat).token())
    }
}

/// A transaction, and who writes in it.
///
/// Whatever can be refused is checked before anything is written.
pub(super) struct Desk<'a> {
    connection: &'a Connection,
    office: &'a Office,
}

impl<'a> Desk<'a> {
    pub(super) fn new(connection: &'a Connection, office: &'a Office) -> Self {
        Self { connection, office }
    }

    pub(super) fn connection(&self) -> &Connection {
        self.connection
    }

    /// One value, or none when there is no such row.
    fn get<T: rusqlite::types::FromSql>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<Option<T>> {
        self.connection.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()
    }

    fn execute(&self, sql: &str, params: impl rusqlite::Params) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute(params).map(drop)
    }

    /// The log's number.
    fn log(&self, id: &LogId) -> Result<i64, Fault> {
        let log = self.get("SELECT nr FROM logs WHERE id = ?1", [id.as_str()])?;
        log.ok_or_else(|| StoreError::NotFound { id: id.clone() }.into())
    }

    pub(super) fn create(&self, id: &LogId, meta: &Meta) -> Result<Claim, Fault> {
        match self.log(id) {
            Ok(_) => return Err(StoreError::Exists { id: id.clone() }.into()),
            Err(Fault::Refused(_)) => {}
            Err(error) => return Err(error),
        }
        self.office.token()?;
        self.execute(
            "INSERT INTO logs(id, title, created_ms, team) VALUES(?1, ?2, ?3, ?4)",
            // Times beyond the year 292 million come back as they were, though they sort as the oldest.
            params![id.as_str(), meta.title, meta.created.0.cast_signed(), meta.team.to_string()],
        )?;
        self.insert_claim(id, self.connection.last_insert_rowid())
    }

    pub(super) fn claim(&self, id: &LogId) -> Result<Claim, Fault> {
        let log = self.log(id)?;
        let dead = self.writer_of(id, log)?;
        self.office.token()?;
        if let Some(dead) = dead {
            self.execute("DELETE FROM claims WHERE writer = ?1", [dead])?;
        }
        self.insert_claim(id, log)
    }

    /// Who has claimed the log and died. An error if it is alive.
    fn writer_of(&self, id: &LogId, log: i64) -> Result<Option<String>, Fault> {
        let mut select =
            self.connection.prepare_cached("SELECT writer, holder FROM claims WHERE log = ?1")?;
        let claim = select.query_row([log], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).optional()?;
        let Some((writer, holder)) = claim else { return Ok(None) };
        let own = self.office.own() == Some(&*writer);
        if own || seat::is_taken(self.office.place(), &writer) {
            return Err(StoreError::Busy { id: id.clone(), holder }.into());
        }
        Ok(Some(writer))
    }

    fn insert_claim(&self, id: &LogId, log: i64) -> Result<Claim, Fault> {
        self.execute(
            "INSERT INTO claims(log, writer, holder) VALUES(?1, ?2, ?3)",
            params![log, self.office.token()?, holder::this_process()],
        )?;
        let fence = self.connection.last_insert_rowid().cast_unsigned();
        Ok(Claim { id: id.clone(), fence })
    }

    pub(super) fn append(&self, claim: &Claim, batch: &Batch) -> Result<(), Fault> {
        let log = self.log(&claim.id)?;
        let valid = self.get::<i64>(
            "SELECT 1 FROM claims WHERE fence = ?1 AND log = ?2 AND writer = ?3",
            params![claim.fence.cast_signed(), log, self.office.own()],
        )?;
        if valid.is_none() {
            return Err(StoreError::Fenced { id: claim.id.clone() }.into());
        }
        let last: Option<i64> = self.get("SELECT max(seq) FROM events WHERE log = ?1", [log])?.flatten();
        let kept = last.map_or(0, |last| last.saturating_add(1));
        batch.follows(&claim.id, kept.cast_unsigned())?;
        let mut insert =
            self.connection.prepare_cached("INSERT INTO events(log, seq, json) VALUES(?1, ?2, ?3)")?;
        for (seq, json) in (kept..).zip(&batch.json) {
            insert.execute(params![log, seq, json])?;
        }
        Ok(())
    }

    pub(super) fn release(&self, claim: &Claim) -> Result<(), Fault> {
        self.execute(
            "DELETE FROM claims WHERE fence = ?1 AND writer = ?2",
            params![claim.fence.cast_signed(), self.office.own()],
        )?;
        Ok(())
    }

    pub(super) fn remove(&self, id: &LogId) -> Result<(), Fault> {
        let log = self.log(id)?;
        self.writer_of(id, log)?;
        for table in ["events", "claims"] {
            self.execute(&format!("DELETE FROM {table} WHERE log = ?1"), [log])?;
        }
        self.execute("DELETE FROM logs WHERE nr = ?1", [log])?;
        Ok(())
    }
}
