//! Logs in an SQLite database.

mod connect;
mod create;
mod facts;
mod files;
mod heads;
mod listing;
mod process_lock;
mod reader;
mod schema;
mod transaction;
mod write_error;
mod writer;
mod writer_state;

use std::io::{self, Write};
use std::path::Path;
use std::sync::Arc;

use polylogue_core::{Claim, Event, Intact, Listing, LogId, Meta, Store, StoreError};

use crate::batch::Batch;
use crate::claim_guard::ClaimGuard;
use crate::workers::Workers;
use crate::{fence, io_error, private};
pub use facts::Facts;
use files::{Files, beside};
use reader::Reader;
use schema::Found;
use transaction::WriteTransaction;
use write_error::WriteError;
use writer::{Giver, Writer};

/// One SQLite database with any number of logs.
///
/// # Commits
///
/// One thread writes. What arrives while it commits is committed together next, so that many conversations cost few
/// synchronisations of the disk; an append that is refused leaves the others of its commit alone. Reading is done on
/// connections of its own and never waits for the writer.
///
/// # Format
///
/// The database is in WAL mode, has the `application_id` `0x504C594C` (`PLYL`) and its format, 3 being the only one that
/// is read, as `user_version`. `sqlite3` reads it, also while it is written:
///
/// ```sql
/// CREATE TABLE logs(                       -- the conversations
///     nr INTEGER PRIMARY KEY,              -- what the other tables call it
///     id TEXT NOT NULL UNIQUE,             -- what people call it
///     title TEXT NOT NULL,
///     created_ms INTEGER NOT NULL,         -- since 1970-01-01 00:00 UTC
///     team TEXT NOT NULL,                  -- JSON
///     chain BLOB NOT NULL                  -- the link that the events go on from
/// ) STRICT;
/// CREATE TABLE events(
///     log INTEGER NOT NULL,                -- logs.nr
///     seq INTEGER NOT NULL,                -- 0, 1, 2 and so on
///     json TEXT NOT NULL,                  -- the event
///     chain BLOB NOT NULL,                 -- its link
///     PRIMARY KEY(log, seq)
/// ) STRICT, WITHOUT ROWID;
/// CREATE TABLE heads(                      -- how far the conversations go
///     log INTEGER PRIMARY KEY,             -- logs.nr
///     fence INTEGER NOT NULL,              -- the claim under which it was written last
///     events INTEGER NOT NULL,
///     chain BLOB NOT NULL                  -- the link of the last event
/// ) STRICT;
/// CREATE TABLE claims(                     -- who writes now
///     fence INTEGER PRIMARY KEY AUTOINCREMENT,
///     log INTEGER NOT NULL UNIQUE,         -- logs.nr
///     writer TEXT NOT NULL,                -- the file in the folder of writers that it holds locked
///     holder TEXT NOT NULL                 -- process and machine, for people
/// ) STRICT;
/// ```
///
/// ```sql
/// -- What was said in `monday`:
/// SELECT seq, json ->> 'from', json ->> '$.parts[0].text' FROM events JOIN logs ON nr = log
/// WHERE id = 'monday' AND json ->> 'type' = 'said' ORDER BY seq;
/// ```
///
/// # Writers
///
/// A store that writes holds a file in the folder `<database>.writers` locked for as long as it lives, and each claim
/// names that file. The operating system gives up the lock when the process dies, however it dies; claims whose file
/// can be locked, or is gone, count no more. Dropping the store waits for what is under way and frees its claims.
///
/// Each claim has a lease, which is renewed by every append and by [`renew`](Store::renew), and is written into that file.
/// [`take_over`](Store::take_over) takes the claim of a live process whose lease has run out. A process that is stopped in the
/// middle of a commit keeps the whole database locked until it goes on or is killed.
///
/// All processes have to be on one machine: SQLite's WAL mode does not work over network file systems.
///
/// # Damage
///
/// The link of an event is 16 bytes of BLAKE3 over the link before and the event's JSON; the first is that of the name, the title,
/// the time and the team. So an event that is changed, lost or moved is noticed by whoever reads the log. The file of a writer also
/// says how far the logs go that it has claimed, or gave back last: a journal that is damaged after a crash loses commits without
/// SQLite saying so, and a log that has fewer events than its writer acknowledged is damaged. That file is not synchronised: after
/// a loss of power it may say less. It goes with the journal when the database is closed. What cannot be noticed: the loss of the
/// database together with all files beside it, and changes by someone who computes the links anew. Facts that agents remember
/// have no links.
///
/// A database whose files are replaced or removed while it is open is noticed by the next commit, which fails with
/// [`StoreError::Replaced`].
///
/// What is damaged is reported as [`StoreError::Damaged`] by whatever needs it; the rest goes on working.
/// [`read_intact`](Store::read_intact) and [`list_intact`](Self::list_intact) give what is left. A database that is cut
/// off, whose disk is full, or whose disk or folder cannot be written, is opened for reading: only writing fails. (When
/// a page is lost through which others are found, the command `.recover` of `sqlite3` may find more than Polylogue
/// does.)
#[derive(Debug)]
pub struct Sqlite {
    place: Arc<Path>,
    /// Dropped before the writer, whose connection, being the last, tidies up.
    readers: Workers<Reader>,
    /// Or why there is none.
    writer: Result<Writer, StoreError>,
}

impl Sqlite {
    /// The version of the format that is written, and the last that is read.
    pub const FORMAT: u64 = schema::FORMAT as u64;

    /// How many logs are read at once.
    const READERS: usize = 2;

    /// Opens the database at `path`, and makes it, and the folder it is in, if it is not there.
    ///
    /// # Errors
    /// [`StoreError::Foreign`] when the file is not Polylogue's, [`StoreError::Damaged`] when nothing of it can be read; it is
    /// left as it is.
    /// [`StoreError::Newer`]; [`StoreError::ReadOnly`] and [`StoreError::Full`] when it cannot be made.
    pub fn open(path: impl AsRef<Path>) -> Result<Self, StoreError> {
        // Absolute, so that changing the working directory does not move the store, and no name is taken for a URI.
        let place = std::path::absolute(path.as_ref())
            .map_err(|error| io_error::reading(path.as_ref(), &error))?
            .into_boxed_path();
        if schema::inspect(&place)? == Found::Nothing {
            create::create(&place)?;
        }
        let place: Arc<Path> = place.into();
        let opened = Files::of_database(&place);
        let writer = match connect::to_write(&place) {
            Ok(connection) => Ok(Writer::start(connection, Arc::clone(&place))?),
            Err(
                error @ (StoreError::Damaged { .. } | StoreError::ReadOnly { .. } | StoreError::Full { .. }),
            ) => Err(error),
            Err(error) => return Err(error),
        };
        opened.check()?;
        Ok(Self { place, readers: Workers::new(Self::READERS), writer })
    }

    /// All logs that can be listed, newest first, and what is wrong with the rest of the database, if anything.
    ///
    /// Checks the whole database, which takes about a second a gigabyte.
    ///
    /// # Errors
    /// When the database cannot be read at all.
    pub async fn list_intact(&self) -> Result<(Vec<Listing>, Option<StoreError>), StoreError> {
        self.reading(|reader, place| reader.list_intact(place)).await
    }

    async fn reading<T: Send + 'static>(
        &self,
        job: impl FnOnce(&mut Reader, &Path) -> Result<T, StoreError> + Send + 'static,
    ) -> Result<T, StoreError> {
        let place = Arc::clone(&self.place);
        self.readers.run(move |reader| job(reader, &place)).await
    }

    fn giver(&self) -> Giver {
        self.writer.as_ref().map(Writer::giver).unwrap_or_default()
    }

    /// Writes; when something is damaged, says how much of the log is intact, or of all logs.
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

impl Store for Sqlite {
    async fn create(&self, id: &LogId, meta: &Meta) -> Result<Claim, StoreError> {
        let (id, meta, giver) = (id.clone(), meta.clone(), self.giver());
        self.writing(None, move |desk| Ok(giver.grant(desk.create(&id, &meta)?)))
            .await
            .map(ClaimGuard::accept)
    }

    async fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        let (log, giver) = (id.clone(), self.giver());
        self.writing(Some(id), move |desk| Ok(giver.grant(desk.claim(&log)?))).await.map(ClaimGuard::accept)
    }

    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> Result<(), StoreError> {
        let (batch, by) = (Batch::new(&claim.id, batch)?, claim.clone());
        self.writing(Some(&claim.id), move |desk| desk.append(&by, &batch)).await
    }

    async fn release(&self, claim: Claim) -> Result<(), StoreError> {
        self.writing(None, move |desk| desk.release(&claim)).await
    }

    async fn read(&self, id: &LogId, from: u64) -> Result<Vec<Event>, StoreError> {
        let id = id.clone();
        self.reading(move |reader, place| reader.read(place, &id, from)).await
    }

    async fn read_intact(&self, id: &LogId) -> Result<Intact, StoreError> {
        let id = id.clone();
        self.reading(move |reader, place| reader.read_intact(place, &id)).await
    }

    async fn meta(&self, id: &LogId) -> Result<Meta, StoreError> {
        let id = id.clone();
        self.reading(move |reader, place| reader.meta(place, &id)).await
    }

    async fn list(&self) -> Result<Vec<Listing>, StoreError> {
        self.reading(|reader, place| reader.list(place)).await
    }

    async fn remove(&self, id: &LogId) -> Result<(), StoreError> {
        let log = id.clone();
        self.writing(Some(id), move |desk| desk.remove(&log)).await
    }

    async fn renew(&self, claim: &Claim) -> Result<(), StoreError> {
        let by = claim.clone();
        self.writing(Some(&claim.id), move |desk| desk.renew(&by)).await
    }

    async fn take_over(&self, id: &LogId) -> Result<Claim, StoreError> {
        let (log, giver) = (id.clone(), self.giver());
        self.writing(Some(id), move |desk| Ok(giver.grant(desk.take_over(&log)?)))
            .await
            .map(ClaimGuard::accept)
    }

    async fn repair(&self, id: &LogId) -> Result<u64, StoreError> {
        let found = self.read_intact(id).await;
        let (kept, behind) = match found {
            Ok(Intact { events, damage: Some(StoreError::Damaged { intact, .. }) }) => {
                (intact, events.into_iter().filter(|event| event.seq >= intact).collect::<Vec<_>>())
            }
            Ok(intact) => return Ok(intact.events.len() as u64),
            Err(error) => return Err(error),
        };
        let aside = beside(&self.place, &format!(".damaged-{id}-{}.jsonl", fence::next()));
        if !behind.is_empty() {
            set_aside(&aside, &behind).map_err(|error| io_error::writing(&aside, &error))?;
        }
        let log = id.clone();
        self.writing(None, move |desk| desk.repair(&log, kept)).await.map(|()| kept)
    }

    async fn damage(&self) -> Result<Option<StoreError>, StoreError> {
        self.reading(|reader, place| reader.check(place)).await
    }
}

/// Writes what is behind the damage of a log to a file of its own.
fn set_aside(path: &Path, events: &[Event]) -> io::Result<()> {
    let mut file = private::options().write(true).create_new(true).open(path)?;
    for event in events {
        serde_json::to_writer(&mut file, event)?;
        file.write_all(b"\n")?;
    }
    file.sync_all()
}

#[cfg(test)]
mod tests;
