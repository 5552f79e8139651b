//! Writes of the writer within a transaction.

use polylogue_core::chain::Link;
use polylogue_core::{Claim, LogId, Meta, StoreError, Summary};
use rusqlite::{Connection, OptionalExtension, Result, params};

use super::ends::LogEnd;
use super::process_lock;
use super::rows;
use super::schema;
use super::write_error::WriteError;
use super::writer_state::WriterState;
use crate::batch::Batch;
use crate::head::{Head, lease_from};
use crate::intact::parse_event;
use crate::io_error::show;
use crate::sealed::{first_link, sealed, unsealed};
use crate::{claims, io_error};

/// A transaction of the writer.
///
/// All conditions are checked before anything is written.
pub(super) struct WriteTransaction<'a> {
    connection: &'a Connection,
    pub(super) state: &'a WriterState,
}

impl<'a> WriteTransaction<'a> {
    pub(super) fn new(connection: &'a Connection, state: &'a WriterState) -> Self {
        Self { connection, state }
    }

    pub(super) fn connection(&self) -> &Connection {
        self.connection
    }

    /// One value; `None` without such a row.
    pub(super) fn get<T: rusqlite::types::FromSql>(
        &self,
        sql: &str,
        params: impl rusqlite::Params,
    ) -> Result<Option<T>> {
        self.connection.prepare_cached(sql)?.query_row(params, |row| row.get(0)).optional()
    }

    pub(super) fn execute(&self, sql: &str, params: impl rusqlite::Params) -> Result<()> {
        self.connection.prepare_cached(sql)?.execute(params).map(drop)
    }

    /// Writes a page again without a change of it, which takes what any commit takes.
    pub(super) fn write_nothing_new(&self) -> Result<(), WriteError> {
        Ok(self.connection.pragma_update(None, "user_version", schema::FORMAT)?)
    }

    /// The log's number.
    pub(super) fn log(&self, id: &LogId) -> Result<i64, WriteError> {
        self.log_with_team(id).map(|(log, _)| log)
    }

    /// The log's number, and whether it has a team.
    fn log_with_team(&self, id: &LogId) -> Result<(i64, bool), WriteError> {
        let mut select = self.connection.prepare_cached("SELECT nr, has_team FROM logs WHERE id = ?1")?;
        let log = select.query_row([id.as_str()], |row| Ok((row.get(0)?, row.get(1)?))).optional()?;
        log.ok_or_else(|| StoreError::NotFound { id: id.clone() }.into())
    }

    /// The name of this store in claims. Stores the heads of dead processes.
    pub(super) fn token(&self) -> Result<String, WriteError> {
        let token = self.state.token().map_err(|error| io_error::writing(self.state.place(), &error))?;
        for head in self.state.heads_of_ended_processes() {
            self.store_head(&head)?;
        }
        Ok(token)
    }

    /// Stores the head of a log that has fewer events than the head says: it has lost some.
    fn store_head(&self, head: &Head) -> Result<(), WriteError> {
        let Head { id, fence, events, link, lease_ms } = head;
        self.state.ends().forget(id);
        let (fence, events) = (fence.cast_signed(), events.cast_signed());
        let log = match self.log(id) {
            Ok(log) => log,
            // One that was released may have been removed.
            Err(WriteError::Refused(StoreError::NotFound { .. })) if *lease_ms == 0 => return Ok(()),
            Err(WriteError::Refused(StoreError::NotFound { .. })) => {
                let sql = "INSERT INTO logs(id, title, created_ms, has_team, chain, team) VALUES(?1, '', 0, 0, x'00', 'null')";
                self.execute(sql, [id.as_str()])?;
                self.connection.last_insert_rowid()
            }
            Err(error) => return Err(error),
        };
        let sql =
            "INSERT INTO heads(log, fence, events, chain, summary) VALUES(?1, ?2, ?3, ?4, '') ON CONFLICT(log) DO UPDATE
                   SET fence = ?2, events = ?3, chain = ?4 WHERE fence <= ?2 AND events < ?3";
        Ok(self.execute(sql, params![log, fence, events, link.bytes()])?)
    }

    pub(super) fn create(&self, id: &LogId, meta: &Meta) -> Result<Claim, WriteError> {
        self.token()?;
        match self.log(id) {
            Ok(_) => return Err(StoreError::Exists { id: id.clone() }.into()),
            Err(WriteError::Refused(_)) => {}
            Err(error) => return Err(error),
        }
        // Times beyond the year 292 million come back as they were, though they sort as the oldest.
        let (created, team) = (meta.created.0.cast_signed(), meta.team.to_string());
        let parent = meta.parent.as_ref().and_then(|parent| serde_json::to_string(parent).ok());
        let link = first_link(id.as_str(), &meta.title, created, &team, parent.as_deref());
        self.execute(
            "INSERT INTO logs(id, title, created_ms, has_team, parent, chain, team) VALUES(?1, ?2, ?3, ?4, ?5, ?6, ?7)",
            params![id.as_str(), meta.title, created, !meta.team.is_null(), parent, link.bytes(), team],
        )?;
        let log = self.connection.last_insert_rowid();
        self.execute(
            "INSERT INTO heads(log, fence, events, chain, summary) VALUES(?1, 0, 0, ?2, ?3)",
            params![log, link.bytes(), sealed(&Summary::default(), link)],
        )?;
        self.insert_claim(id, log)
    }

    pub(super) fn claim(&self, id: &LogId) -> Result<Claim, WriteError> {
        let log = self.log(id)?;
        let dead = self.writer_of(id, log)?;
        self.token()?;
        if let Some(dead) = dead {
            self.execute("DELETE FROM claims WHERE writer = ?1", [dead])?;
        }
        self.insert_claim(id, log)
    }

    /// The living process that has claimed a log.
    pub(super) fn holder(&self, id: &LogId) -> Result<Option<String>, WriteError> {
        match self.writer_of(id, self.log(id)?) {
            Ok(_) => Ok(None),
            Err(WriteError::Refused(StoreError::Busy { holder, .. })) => Ok(Some(holder)),
            Err(error) => Err(error),
        }
    }

    /// Claims a log also when its writer is alive, but has not renewed its lease.
    pub(super) fn take_over(&self, id: &LogId) -> Result<Claim, WriteError> {
        let log = self.log(id)?;
        let writer: Option<String> = self.get("SELECT writer FROM claims WHERE log = ?1", [log])?;
        let head = writer.and_then(|writer| self.state.head_written_by(&writer, id));
        if head.is_none_or(|head| head.holds_at(self.state.steady()).is_some()) {
            return self.claim(id);
        }
        self.token()?;
        self.execute("DELETE FROM claims WHERE log = ?1", [log])?;
        self.insert_claim(id, log)
    }

    /// The dead process with a claim on the log. An error if it is alive.
    pub(super) fn writer_of(&self, id: &LogId, log: i64) -> Result<Option<String>, WriteError> {
        let mut select =
            self.connection.prepare_cached("SELECT writer, holder FROM claims WHERE log = ?1")?;
        let claim = select.query_row([log], |row| Ok((row.get::<_, String>(0)?, row.get(1)?))).optional()?;
        let Some((writer, holder)) = claim else { return Ok(None) };
        let holder: String = holder;
        let place = self.state.place();
        if self.state.own().as_ref() == Some(&writer) || process_lock::is_taken(place, &writer) {
            let lease =
                self.state.head_written_by(&writer, id).and_then(|head| head.holds_at(self.state.steady()));
            let holder = claims::with_lease(&holder, lease);
            return Err(StoreError::Busy { id: id.clone(), holder }.into());
        }
        Ok(Some(writer))
    }

    /// Claims a log, which unpacks it if it was archived.
    pub(super) fn insert_claim(&self, id: &LogId, log: i64) -> Result<Claim, WriteError> {
        self.state.ends().forget(id);
        self.unpack(log)?;
        self.execute(
            "INSERT INTO claims(log, writer, holder) VALUES(?1, ?2, ?3)",
            params![log, self.token()?, claims::this_process()],
        )?;
        let fence = self.connection.last_insert_rowid().cast_unsigned();
        if let Some((events, link, _)) = self.head(log)? {
            self.renew_head(id, fence, events, link);
        }
        Ok(Claim::new(id.clone(), fence))
    }

    /// How far a log goes, and its summary, sealed.
    fn head(&self, log: i64) -> Result<Option<(u64, Link, String)>> {
        let sql = "SELECT events, chain, summary FROM heads WHERE log = ?1";
        let mut select = self.connection.prepare_cached(sql)?;
        let columns = |row: &rusqlite::Row<'_>| {
            let events = row.get::<_, i64>(0)?.cast_unsigned();
            Ok((events, Link::from_bytes(row.get_ref(1)?.as_blob()?), row.get(2)?))
        };
        let head = select.query_row([log], columns).optional()?;
        Ok(head.and_then(|(events, link, summary)| Some((events, link?, summary))))
    }

    /// Writes the head of a log with a new lease outside of the database, after the commit.
    fn renew_head(&self, id: &LogId, fence: u64, events: u64, link: Link) {
        let lease_ms = lease_from(self.state.steady());
        self.state.write_head_later(Head { id: id.clone(), fence, events, link, lease_ms });
    }

    /// The log's number, and whether it has a team, if the claim is valid.
    fn claimed(&self, claim: &Claim) -> Result<(i64, bool), WriteError> {
        let (log, has_team) = self.log_with_team(&claim.id)?;
        let valid = self.get::<i64>(
            "SELECT 1 FROM claims WHERE fence = ?1 AND log = ?2 AND writer = ?3",
            params![claim.fence.cast_signed(), log, self.state.own()],
        )?;
        match valid {
            Some(_) => Ok((log, has_team)),
            None => Err(StoreError::Fenced { id: claim.id.clone() }.into()),
        }
    }

    pub(super) fn append(&self, claim: &Claim, batch: &Batch) -> Result<(), WriteError> {
        let mut end = match self.state.ends().take(claim) {
            Some(end) => end,
            None => self.log_end(claim)?,
        };
        batch.follows(&claim.id, end.events)?;
        let insert = "INSERT INTO events(log, seq, json, chain) VALUES(?1, ?2, ?3, ?4)";
        let mut insert = self.connection.prepare_cached(insert)?;
        for json in &batch.json {
            end.link = end.link.next(json.as_bytes());
            insert.execute(params![end.log, end.events.cast_signed(), json, end.link.bytes()])?;
            end.events += 1;
        }
        batch.events.iter().for_each(|event| end.summary.add(event, end.has_team));
        self.take_messages(end.log, batch.events.iter().filter_map(|event| event.inbox))?;
        let LogEnd { log, events, link, summary, .. } = &end;
        let sql = "UPDATE heads SET fence = ?2, events = ?3, chain = ?4, summary = ?5 WHERE log = ?1";
        let (fence, count) = (claim.fence.cast_signed(), events.cast_signed());
        self.execute(sql, params![log, fence, count, link.bytes(), sealed(summary, *link)])?;
        self.renew_head(&claim.id, claim.fence, *events, *link);
        self.state.ends().keep(claim, end);
        Ok(())
    }

    /// Reads the end of a log, if the claim is valid.
    fn log_end(&self, claim: &Claim) -> Result<LogEnd, WriteError> {
        let (log, has_team) = self.claimed(claim)?;
        let (events, link, summary) = self.end(claim, log)?;
        let summary = match unsealed(summary.into_bytes(), link) {
            Some(summary) => summary,
            None => self.summary(&claim.id, log, has_team)?,
        };
        // The first append under a claim: its worker has not died of the log.
        self.progressed(log)?;
        Ok(LogEnd { log, has_team, events, link, summary })
    }

    /// The summary of a log whose own is not what was written.
    fn summary(&self, id: &LogId, log: i64, has_team: bool) -> Result<Summary, WriteError> {
        let events = rows::events(self.connection, (id, log), 0..u64::MAX, None)?.unwrap_or_default();
        Ok(Summary::of(&events, has_team))
    }

    /// The end of a log, which must match its writer's head.
    fn end(&self, claim: &Claim, log: i64) -> Result<(u64, Link, String), WriteError> {
        let place = || format!("`{}` in {}", claim.id, show(self.state.place()));
        let damaged = || {
            WriteError::from(StoreError::Damaged { place: place(), why: "its end is lost".into(), intact: 0 })
        };
        let (events, link, summary) = self.head(log)?.ok_or_else(damaged)?;
        match self.state.head_of(&claim.id) {
            Some(head) if head.fence == claim.fence && (head.events, head.link) != (events, link) => {
                return Err(StoreError::Replaced { place: show(self.state.place()) }.into());
            }
            _ => {}
        }
        let sql = "SELECT seq, chain FROM events WHERE log = ?1 ORDER BY seq DESC LIMIT 1";
        let mut select = self.connection.prepare_cached(sql)?;
        let last = select
            .query_row([log], |row| Ok((row.get::<_, i64>(0)?, row.get::<_, Vec<u8>>(1)?)))
            .optional()?;
        let is_end = match last {
            None => events == 0,
            Some((seq, last)) => seq.cast_unsigned() + 1 == events && last == link.bytes(),
        };
        if is_end { Ok((events, link, summary)) } else { Err(damaged()) }
    }

    pub(super) fn renew(&self, claim: &Claim) -> Result<(), WriteError> {
        let (log, _) = self.claimed(claim)?;
        let (events, link, _) = self.end(claim, log)?;
        self.renew_head(&claim.id, claim.fence, events, link);
        Ok(())
    }

    pub(super) fn release(&self, claim: &Claim) -> Result<(), WriteError> {
        self.state.ends().forget(&claim.id);
        self.wake_released(claim)?;
        self.execute(
            "DELETE FROM claims WHERE fence = ?1 AND writer = ?2",
            params![claim.fence.cast_signed(), self.state.own()],
        )?;
        if let Some(head) = self.state.head_of(&claim.id).filter(|head| head.fence == claim.fence) {
            self.state.write_head_later(Head { lease_ms: 0, ..head });
        }
        Ok(())
    }

    pub(super) fn remove(&self, id: &LogId) -> Result<(), WriteError> {
        self.state.ends().forget(id);
        let log = self.log(id)?;
        self.writer_of(id, log)?;
        // The head that a dead process wrote of the log must not be missed later.
        self.token()?;
        for table in ["events", "claims", "heads", "inbox", "blobs", "archives", "queue"] {
            self.execute(&format!("DELETE FROM {table} WHERE log = ?1"), [log])?;
        }
        self.execute("DELETE FROM logs WHERE nr = ?1", [log])?;
        Ok(())
    }

    /// Keeps the first `kept` events, with new links.
    pub(super) fn repair(&self, id: &LogId, kept: u64) -> Result<(), WriteError> {
        let log = self.log(id)?;
        let dead = self.writer_of(id, log)?;
        self.token()?;
        self.unpack_damaged(log)?;
        self.execute("DELETE FROM events WHERE log = ?1 AND seq >= ?2", params![log, kept.cast_signed()])?;
        let sql = "SELECT title, created_ms, team, parent FROM logs WHERE nr = ?1";
        let (title, created, team, parent) = self.connection.query_row(sql, [log], |row| {
            let (title, created): (String, i64) = (row.get(0)?, row.get(1)?);
            Ok((title, created, row.get::<_, String>(2)?, row.get::<_, Option<String>>(3)?))
        })?;
        let team =
            if serde_json::from_str::<serde_json::Value>(&team).is_ok() { team } else { "null".into() };
        let mut link = first_link(id.as_str(), &title, created, &team, parent.as_deref());
        let has_team = team != "null";
        let sql = "UPDATE logs SET has_team = ?2, team = ?3, chain = ?4 WHERE nr = ?1";
        self.execute(sql, params![log, has_team, team, link.bytes()])?;
        let mut summary = Summary::default();
        for seq in 0..kept {
            let key = params![log, seq.cast_signed()];
            let json: Option<String> =
                self.get("SELECT json FROM events WHERE log = ?1 AND seq = ?2", key)?;
            let json = json.unwrap_or_default();
            link = link.next(json.as_bytes());
            parse_event(json.as_bytes(), seq).iter().for_each(|event| summary.add(event, has_team));
            let sql = "UPDATE events SET chain = ?3 WHERE log = ?1 AND seq = ?2";
            self.execute(sql, params![log, seq.cast_signed(), link.bytes()])?;
        }
        // Its own fence: what was acknowledged under earlier ones counts no more.
        self.execute("DELETE FROM claims WHERE log = ?1 OR writer = ?2", params![log, dead])?;
        let claim = self.insert_claim(id, log)?;
        let sql =
            "INSERT OR REPLACE INTO heads(log, fence, events, chain, summary) VALUES(?1, ?2, ?3, ?4, ?5)";
        let (fence, events) = (claim.fence.cast_signed(), kept.cast_signed());
        self.execute(sql, params![log, fence, events, link.bytes(), sealed(&summary, link)])?;
        self.execute("DELETE FROM claims WHERE fence = ?1", [claim.fence.cast_signed()])?;
        self.state.write_head_later(Head {
            id: id.clone(),
            fence: claim.fence,
            events: kept,
            link,
            lease_ms: 0,
        });
        Ok(())
    }
}
