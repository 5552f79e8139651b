//! Logs in an SQLite database.

mod archive;
mod blobs;
mod checkpoints;
mod connect;
mod create;
mod due;
mod ends;
mod facts;
mod files;
mod heads;
mod inbox;
mod keys;
mod listing;
mod process_lock;
mod queue;
mod queue_overview;
mod reader;
mod rows;
mod schema;
mod transaction;
mod write_error;
mod writer;
mod writer_state;

use std::io::{self, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{
    AnyStore, BlobId, Claim, DynQueue, Event, InboxMessage, ListQuery, Listing, LogId, Meta, Page,
    RecoveredEvents, Store, StoreError, Timestamp,
};
use polylogue_files::{behind_links, private_options};

use crate::batch::Batch;
use crate::claims::ClaimGuard;
use crate::clock::Clock;
use crate::workers::Workers;
use crate::{claims, io_error};
pub use facts::Facts;
use files::{Files, sibling};
use process_lock::Place;
use reader::Reader;
use schema::FileKind;
use transaction::WriteTransaction;
use write_error::WriteError;
use writer::{ClaimIssuer, Writer};

/// A store of logs in one SQLite database.
///
/// # Commits
///
/// One thread writes. Appends that arrive during a commit are committed together next, so that many conversations
/// need few disk syncs; a rejected append does not affect the others of its commit. Reading uses connections of its own
/// and never waits for the writer.
///
/// # Format
///
/// The database is in WAL mode, has the `application_id` `0x504C594C` (`PLYL`) and its format as `user_version`, 10
/// being the only supported one. `sqlite3` can read it, also while it is written:
///
/// ```sql
/// CREATE TABLE logs(                       -- the conversations
///     nr INTEGER PRIMARY KEY,              -- referenced by the other tables
///     id TEXT NOT NULL UNIQUE,             -- the conversation's id
///     title TEXT NOT NULL,
///     created_ms INTEGER NOT NULL,         -- since 1970-01-01 00:00 UTC
///     has_team INTEGER NOT NULL,           -- whether the team is not null
///     parent TEXT,                         -- JSON: the conversation that it is a fork of
///     chain BLOB NOT NULL,                 -- the link before the events
///     team TEXT NOT NULL                   -- JSON
/// ) STRICT;
/// CREATE INDEX newest ON logs(created_ms, id);
/// CREATE TABLE events(
///     log INTEGER NOT NULL,                -- logs.nr
///     seq INTEGER NOT NULL,                -- 0, 1, 2 and so on
///     json TEXT NOT NULL,                  -- the event
///     chain BLOB NOT NULL,                 -- its link
///     PRIMARY KEY(log, seq)
/// ) STRICT, WITHOUT ROWID;
/// CREATE TABLE heads(                      -- the ends of the conversations
///     log INTEGER PRIMARY KEY,             -- logs.nr
///     fence INTEGER NOT NULL,              -- the claim under which it was written last
///     events INTEGER NOT NULL,
///     chain BLOB NOT NULL,                 -- the link of the last event
///     summary TEXT NOT NULL                -- JSON: what lists show, sealed with the link
/// ) STRICT;
/// CREATE TABLE claims(                     -- the current writers
///     fence INTEGER PRIMARY KEY AUTOINCREMENT,
///     log INTEGER NOT NULL UNIQUE,         -- logs.nr
///     writer TEXT NOT NULL,                -- the file in the folder of writers that it holds locked
///     holder TEXT NOT NULL                 -- process and machine, for people
/// ) STRICT;
/// CREATE TABLE inbox(                      -- instructions from outside
///     log INTEGER NOT NULL,                -- logs.nr
///     nr INTEGER NOT NULL,                 -- 1, 2, 3 and so on; the event that carries it out has it as `inbox`
///     key TEXT NOT NULL,                   -- the same key twice is one message
///     json TEXT NOT NULL,                  -- the message
///     is_taken INTEGER NOT NULL,           -- whether an event carries it out
///     wakes INTEGER NOT NULL,              -- whether it came while the conversation was held
///     PRIMARY KEY(log, nr),
///     UNIQUE(key, log)
/// ) STRICT, WITHOUT ROWID;
/// CREATE INDEX unread ON inbox(log) WHERE NOT is_taken;
/// CREATE INDEX waking ON inbox(log) WHERE wakes AND NOT is_taken;
/// CREATE TABLE blobs(                      -- large results of tool calls, and files
///     log INTEGER NOT NULL,                -- logs.nr
///     id TEXT NOT NULL,                    -- a digest of the bytes; events have it as `stored`
///     bytes BLOB NOT NULL,
///     is_packed INTEGER NOT NULL,          -- whether they are deflated, because the log was archived
///     UNIQUE(log, id)
/// ) STRICT;
/// CREATE TABLE archives(                   -- the events of conversations that were archived; no row of `events` has them
///     log INTEGER PRIMARY KEY,             -- logs.nr
///     bytes BLOB NOT NULL                  -- deflated lines of a link (hexadecimal), a space, and the JSON of an event
/// ) STRICT;
/// CREATE TABLE queue(                      -- the conversations that workers have looked at, or must look at
///     log INTEGER PRIMARY KEY,             -- logs.nr
///     due_ms INTEGER,                      -- when a worker must look at it, since 1970; null: never
///     needs TEXT NOT NULL,                 -- what a worker must offer, as words
///     is_woken INTEGER NOT NULL,           -- whether a message came while a process had it
///     tries INTEGER NOT NULL,              -- claims by workers since its last event or release; of a parked one, before it was
///                                          -- parked: negative after an event
///     takeovers INTEGER NOT NULL,          -- how often it was taken from a worker that had died or was frozen
///     is_parked INTEGER NOT NULL,          -- whether no worker looks at it, because it failed repeatedly
///     worker TEXT NOT NULL,                -- the worker that had it last: process and machine, for people
///     why TEXT                             -- why its last try failed
/// ) STRICT;
/// CREATE INDEX due ON queue(needs, due_ms) WHERE due_ms IS NOT NULL;
/// CREATE INDEX woken ON queue(log) WHERE is_woken;
/// CREATE TABLE workers(                    -- the workers that were seen lately
///     writer TEXT PRIMARY KEY,             -- as in claims
///     process TEXT NOT NULL,               -- process and machine, for people
///     version TEXT NOT NULL,
///     offers TEXT NOT NULL,                -- what it offers, as words
///     at_once INTEGER NOT NULL,            -- how many conversations it runs at the same time
///     address TEXT,                        -- where others reach it over HTTP
///     seen_ms INTEGER NOT NULL             -- its last heartbeat, since 1970
/// ) STRICT, WITHOUT ROWID;
/// CREATE TABLE reserved_keys(              -- the idempotency keys of requests to a server
///     key TEXT PRIMARY KEY,
///     request TEXT NOT NULL,               -- identifies the request that has it
///     until_ms INTEGER NOT NULL            -- when the reservation ends, since 1970
/// ) STRICT, WITHOUT ROWID;
/// CREATE INDEX reserved ON reserved_keys(until_ms);
/// ```
///
/// ```sql
/// -- The messages of `monday`:
/// SELECT seq, json ->> 'from', json ->> '$.parts[0].text' FROM events JOIN logs ON nr = log
/// WHERE id = 'monday' AND json ->> 'type' = 'message' ORDER BY seq;
/// -- The conversations of one team by cost:
/// SELECT id, summary ->> 'task', summary ->> '$.usage.cost' FROM logs JOIN heads ON log = nr
/// WHERE title = 'newsroom' ORDER BY 3 DESC;
/// ```
///
/// # Writers
///
/// A writing store holds a lock on a file in the folder `<database>.writers` for its lifetime, and each claim names
/// that file. The operating system releases the lock when the process dies, however it dies; claims whose file can be
/// locked, or does not exist, are invalid. Dropping the store waits for operations in progress and releases its
/// claims. A claim whose release cannot be written, such as while the disk is full, is released as soon as the store can be written again.
///
/// Each claim has a lease in that file, which is renewed by every append and by [`renew`](Store::renew). It counts by the time since the
/// machine was started, which does not jump when the clock is set.
/// [`take_over`](Store::take_over) takes the claim of a live process whose lease has expired. A process that is
/// stopped in the middle of a commit locks the whole database until it continues or is killed.
///
/// It is a [`Queue`](polylogue_core::Queue): workers of several processes share one database. A held log whose process has died is due
/// when another worker starts, or with the next [`announce`](polylogue_core::Queue::announce) of one that runs: at the latest when its
/// lease has expired.
///
/// All processes must be on one machine: SQLite's WAL mode does not work over network file systems.
///
/// # Damage
///
/// The link of an event is 16 bytes of BLAKE3 over the link before and the event's JSON; the first is that of the id,
/// the title, the time, the team and the parent. So every reader detects an event that was changed, lost or moved. The file of a
/// writer also has the ends of the logs that it has claimed, or released last: a journal that is damaged in a crash
/// loses commits without an error of SQLite, and a log with fewer events than its writer acknowledged is damaged.
/// That file is not synced: after a loss of power it may be out of date. It is removed with the journal when the
/// database is closed. Not detected: the loss of the database together with all files next to it, and changes by
/// someone who recomputes the links. Facts of agents have no links.
///
/// If the files of a database are replaced or removed while it is open, the next commit fails with
/// [`StoreError::Replaced`].
///
/// Damage is reported as [`StoreError::Damaged`] by every operation that it affects; others continue to work.
/// [`read_intact`](Store::read_intact) and [`list_intact`](Self::list_intact) return what is readable. A database
/// that is truncated, whose disk is full, or whose disk or folder is not writable, is opened for reading: only
/// writing fails. (If an index page is lost, the command `.recover` of `sqlite3` may find more than Polylogue does.)
#[derive(Debug)]
pub struct Sqlite {
    place: Place,
    clock: Clock,
    /// Dropped before the writer, whose connection is the last one and cleans up.
    readers: Workers<Reader>,
    /// Or why there is none.
    writer: Result<Writer, StoreError>,
}

impl Sqlite {
    /// The format that is written, and the only one that is read.
    pub const FORMAT: u64 = schema::FORMAT as u64;

    /// How many logs are read at once.
    const READERS: usize = 2;

    /// Opens the database at `path`, and creates it and its folder if it does not exist.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] when the file is not Polylogue's, [`StoreError::Damaged`] when nothing of it is
    /// readable; it is not changed. [`StoreError::Newer`] and [`StoreError::Older`]; [`StoreError::ReadOnly`] and
    /// [`StoreError::Full`] when it cannot be created.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        Self::open_by(path, Clock::default())
    }

    /// Opens the database as [`open`](Self::open), with clocks of its own: one for what is due, and one for leases. For tests.
    ///
    /// # Errors
    /// As [`open`](Self::open).
    pub fn open_with_clocks(
        path: impl AsRef<Path>,
        clock: impl Fn() -> Timestamp + Send + Sync + 'static,
        leases: impl Fn() -> Duration + Send + Sync + 'static,
    ) -> Result<Self, StoreError> {
        Self::open_by(path, Clock::new(clock).with_steady(leases))
    }

    fn open_by(path: impl AsRef<Path>, clock: Clock) -> Result<Self, StoreError> {
        // Absolute, so that changing the working directory does not move the store, and no name is parsed as a URI.
        let place =
            std::path::absolute(path.as_ref()).map_err(|error| io_error::reading(path.as_ref(), &error))?;
        // Processes that open it through links must find each other's locks, and its journal, which has the name of the file.
        let place = behind_links(&place);
        if schema::inspect(&place)? == FileKind::Nothing {
            create::create(&place)?;
        }
        let place = Place::new(place.into());
        let opened = Files::of_database(&place);
        let writer = match connect::to_write(&place) {
            Ok(connection) => Ok(Writer::start(connection, place.clone(), clock.clone())?),
            Err(
                error @ (StoreError::Damaged { .. } | StoreError::ReadOnly { .. } | StoreError::Full { .. }),
            ) => Err(error),
            Err(error) => return Err(error),
        };
        opened.check()?;
        Ok(Self { place, clock, readers: Workers::new(Self::READERS), writer })
    }

    /// Lists all logs that can be listed, newest first, and the damage of the rest of the database, if there is any.
    ///
    /// Checks the whole database, at about one second per gigabyte.
    ///
    /// # Errors
    /// When the database cannot be read at all.
    pub async fn list_intact(&self) -> Result<(Vec<Listing>, Option<StoreError>), StoreError> {
        self.reading(|reader, place| reader.list_intact(place)).await
    }

    async fn reading<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Reader, &Place) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let place = self.place.clone();
        self.readers.run(move |reader| job(reader, &place)).await
    }

    fn issuer(&self) -> ClaimIssuer {
        self.writer.as_ref().map(Writer::issuer).unwrap_or_default()
    }

    /// Releases a claim by `work`, or later without it, if this cannot be written now.
    async fn releasing(
        &self,
        claim: Claim,
        work: impl Fn(&WriteTransaction<'_>, &Claim) -> Result<(), WriteError> + Send + 'static,
    ) -> Result<(), StoreError> {
        match &self.writer {
            Ok(writer) => writer.release(claim, work).await,
            Err(error) => Err(error.clone()),
        }
    }

    /// Writes; if something is damaged, reports how much of the log is intact, or of all logs.
    async fn writing<T: Send + 'static>(
        &self,
        id: Option<&LogId>,
        work: impl Fn(&WriteTransaction<'_>) -> Result<T, WriteError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let written = match &self.writer {
            Ok(writer) => writer.run(work).await,
            Err(error) => Err(error.clone()),
        };
        match (written, id) {
            (Err(StoreError::Damaged { place, why, .. }), Some(id)) => {
                let intact = self.read_intact(id).await?;
                let events = intact.events.len() as u64;
                Err(intact.damage.unwrap_or(StoreError::Damaged { place, why, intact: events }))
            }
            (Err(error @ StoreError::Damaged { .. }), None) => {
                Err(self.list_intact().await?.1.unwrap_or(error))
            }
            (written, _) => written,
        }
    }
}

impl From<Sqlite> for AnyStore {
    fn from(store: Sqlite) -> Self {
        Self::new(store)
    }
}

impl Store for Sqlite {
    async fn create(&self, id: &LogId, meta: &Meta) -> Result<Claim, StoreError> {
        let (id, meta, issuer) = (id.clone(), meta.clone(), self.issuer());
        self.writing(None, move |transaction| Ok(issuer.grant(transaction.create(&id, &meta)?)))
            .await
            .map(ClaimGuard::accept)
    }

    async fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        let (log, issuer) = (id.clone(), self.issuer());
        self.writing(Some(id), move |transaction| Ok(issuer.grant(transaction.claim(&log)?)))
            .await
            .map(ClaimGuard::accept)
    }

    async fn holder(&self, id: &LogId) -> Result<Option<String>, StoreError> {
        let log = id.clone();
        // As a write, so that no two processes examine the lock of a third one at once.
        self.writing(Some(id), move |transaction| transaction.holder(&log)).await
    }

    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        let (batch, by) = (Batch::new(&claim.id, batch)?, claim.clone());
        self.writing(Some(&claim.id), move |transaction| transaction.append(&by, &batch)).await
    }

    async fn release(&self, claim: Claim) -> Result<(), StoreError> {
        self.releasing(claim, |transaction, claim| transaction.release(claim)).await
    }

    async fn read_range(&self, id: &LogId, range: Range<u64>) -> Result<Vec<Event>, StoreError> {
        let id = id.clone();
        self.reading(move |reader, place| reader.read(place, &id, range)).await
    }

    async fn read_intact(&self, id: &LogId) -> Result<RecoveredEvents, StoreError> {
        let id = id.clone();
        self.reading(move |reader, place| reader.read_intact(place, &id)).await
    }

    async fn meta(&self, id: &LogId) -> Result<Meta, StoreError> {
        let id = id.clone();
        self.reading(move |reader, place| reader.meta(place, &id)).await
    }

    async fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        let query = query.clone();
        self.reading(move |reader, place| reader.list(place, &query)).await
    }

    async fn count(&self) -> Result<u64, StoreError> {
        self.reading(|reader, place| reader.count(place)).await
    }

    async fn remove(&self, id: &LogId) -> Result<(), StoreError> {
        let log = id.clone();
        self.writing(Some(id), move |transaction| transaction.remove(&log)).await
    }

    async fn archive(&self, id: &LogId) -> Result<bool, StoreError> {
        let log = id.clone();
        let archive = self.reading(move |reader, place| reader.archive(place, &log)).await?;
        let log = id.clone();
        self.writing(Some(id), move |transaction| transaction.archive(&log, &archive)).await?;
        let log = id.clone();
        for blob in self.reading(move |reader, place| reader.blobs_to_pack(place, &log)).await? {
            let (log, name) = (id.clone(), blob.clone());
            let packed = self.reading(move |reader, place| reader.packed_blob(place, &log, &name)).await?;
            let Some(packed) = packed else { continue };
            let log = id.clone();
            self.writing(None, move |transaction| transaction.pack_blob(&log, &blob, &packed)).await?;
        }
        Ok(true)
    }

    async fn renew(&self, claim: &Claim) -> Result<(), StoreError> {
        let by = claim.clone();
        self.writing(Some(&claim.id), move |transaction| transaction.renew(&by)).await
    }

    async fn take_over(&self, id: &LogId) -> Result<Claim, StoreError> {
        let (log, issuer) = (id.clone(), self.issuer());
        self.writing(Some(id), move |transaction| Ok(issuer.grant(transaction.take_over(&log)?)))
            .await
            .map(ClaimGuard::accept)
    }

    async fn post(&self, id: &LogId, message: &InboxMessage) -> Result<u64, StoreError> {
        let (log, message) = (id.clone(), message.clone());
        self.writing(None, move |transaction| transaction.post(&log, &message)).await
    }

    async fn inbox(&self, id: &LogId, after: u64) -> Result<Vec<(u64, InboxMessage)>, StoreError> {
        let id = id.clone();
        self.reading(move |reader, place| reader.inbox(place, &id, after)).await
    }

    async fn posted_with(&self, key: &str) -> Result<Option<LogId>, StoreError> {
        let key = key.to_owned();
        self.reading(move |reader, place| reader.posted_with(place, &key)).await
    }

    async fn reserve_key(&self, key: &str, request: &str) -> Result<String, StoreError> {
        let (key, request) = (key.to_owned(), request.to_owned());
        self.writing(None, move |transaction| transaction.reserve_key(&key, &request)).await
    }

    async fn store_blob(&self, id: &LogId, blob: &BlobId, bytes: &[u8]) -> Result<bool, StoreError> {
        let (log, blob, bytes) = (id.clone(), blob.clone(), bytes.to_vec());
        self.writing(None, move |transaction| transaction.store_blob(&log, &blob, &bytes)).await?;
        Ok(true)
    }

    async fn stored_blob(&self, id: &LogId, blob: &BlobId) -> Result<Option<Arc<[u8]>>, StoreError> {
        let (id, blob) = (id.clone(), blob.clone());
        self.reading(move |reader, place| reader.stored_blob(place, &id, &blob)).await
    }

    async fn repair(&self, id: &LogId) -> Result<u64, StoreError> {
        let found = self.read_intact(id).await;
        let (kept, behind) = match found {
            Ok(RecoveredEvents { events, damage: Some(StoreError::Damaged { intact, .. }) }) => {
                (intact, events.into_iter().filter(|event| event.seq >= intact).collect::<Vec<_>>())
            }
            Ok(RecoveredEvents { damage: Some(error), .. }) | Err(error) => return Err(error),
            Ok(intact) => return Ok(intact.events.len() as u64),
        };
        let aside = sibling(&self.place, &format!(".damaged-{id}-{}.jsonl", claims::next_fence()));
        if !behind.is_empty() {
            set_aside(&aside, &behind).map_err(|error| io_error::writing(&aside, &error))?;
        }
        let log = id.clone();
        self.writing(None, move |transaction| transaction.repair(&log, kept)).await.map(|()| kept)
    }

    async fn damage(&self) -> Result<Option<StoreError>, StoreError> {
        self.reading(|reader, place| reader.check(place)).await
    }

    async fn check_writable(&self) -> Result<(), StoreError> {
        self.writing(None, |transaction| transaction.write_nothing_new()).await
    }

    fn as_queue(&self) -> Option<&dyn DynQueue> {
        Some(self)
    }
}

/// Writes the events after the damage of a log to a separate file.
fn set_aside(path: &Path, events: &[Event]) -> io::Result<()> {
    let mut file = private_options().write(true).create_new(true).open(path)?;
    for event in events {
        serde_json::to_writer(&mut file, event)?;
        file.write_all(b"\n")?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests;
