//! A folder of logs: what blocks of the store, run on its threads.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polylogue_core::{Claim, Event, Intact, Listing, LogId, Meta, StoreError};

use super::file::{self, LogFile};
use super::writer::Writer;
use crate::batch::{self, Batch};
use crate::{fence, io_error, private};

/// The folder, and the logs that are claimed through this store.
#[derive(Debug)]
pub(super) struct Folder {
    dir: PathBuf,
    claimed: Mutex<HashMap<LogId, Arc<Held>>>,
}

#[derive(Debug)]
struct Held {
    fence: u64,
    /// `None` when it was released.
    writer: Mutex<Option<Writer>>,
}

impl Held {
    fn writer(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Folder {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, claimed: Mutex::default() }
    }

    fn path(&self, id: &LogId) -> PathBuf {
        self.dir.join(format!("{id}.jsonl"))
    }

    fn note(&self, id: &LogId) -> PathBuf {
        self.dir.join(format!("{id}.writer"))
    }

    fn claimed(&self) -> MutexGuard<'_, HashMap<LogId, Arc<Held>>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log appears under its name when it is whole and locked.
    pub(super) fn create(&self, id: &LogId, meta: &Meta) -> Result<Claim, StoreError> {
        let path = self.path(id);
        if path.exists() {
            return Err(StoreError::Exists { id: id.clone() });
        }
        let fence = fence::next();
        let draft = self.dir.join(format!(".{id}.{}-{fence}", std::process::id()));
        let written = write_draft(&draft, meta).and_then(|(file, bytes)| {
            // Unlike renaming, linking fails when the name is taken.
            fs::hard_link(&draft, &path)?;
            Ok((file, bytes))
        });
        let _ = fs::remove_file(&draft);
        let (file, bytes) = written.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => StoreError::Exists { id: id.clone() },
            _ => io_error::writing(&path, &error),
        })?;
        self.sync().map_err(|error| io_error::writing(&self.dir, &error))?;
        self.hold(id, file, fence, 0, bytes)
    }

    pub(super) fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        let path = self.path(id);
        let mut file = self.lock(id, &path)?;
        let (_, end) = file::ends(&path, &mut file)?;
        self.hold(id, file, fence::next(), end.kept(), end.bytes)
    }

    fn hold(&self, id: &LogId, file: File, fence: u64, kept: u64, bytes: u64) -> Result<Claim, StoreError> {
        let writer = Writer::new(file, self.note(id), kept, bytes)
            .map_err(|error| io_error::writing(&self.path(id), &error))?;
        self.claimed().insert(id.clone(), Arc::new(Held { fence, writer: Mutex::new(Some(writer)) }));
        Ok(Claim { id: id.clone(), fence })
    }

    /// Opens a log for writing and locks it.
    fn lock(&self, id: &LogId, path: &Path) -> Result<File, StoreError> {
        let file =
            OpenOptions::new().read(true).write(true).open(path).map_err(|error| match error.kind() {
                ErrorKind::NotFound => StoreError::NotFound { id: id.clone() },
                _ => io_error::writing(path, &error),
            })?;
        match file.try_lock() {
            Ok(()) if is_removed(path, &file) => Err(StoreError::NotFound { id: id.clone() }),
            Ok(()) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                let note = fs::read_to_string(self.note(id)).unwrap_or_default();
                let holder = if note.is_empty() { "another process".into() } else { note };
                Err(StoreError::Busy { id: id.clone(), holder })
            }
            Err(TryLockError::Error(error)) => Err(io_error::writing(path, &error)),
        }
    }

    pub(super) fn append(&self, claim: &Claim, batch: &Batch) -> Result<(), StoreError> {
        let id = &claim.id;
        let held = self.held(claim).ok_or_else(|| self.lost(id))?;
        let mut writer = held.writer();
        let writer = writer.as_mut().ok_or_else(|| self.lost(id))?;
        batch.follows(id, writer.kept)?;
        if batch.json.is_empty() {
            return Ok(());
        }
        writer.append(batch).map_err(|error| io_error::writing(&self.path(id), &error))
    }

    fn held(&self, claim: &Claim) -> Option<Arc<Held>> {
        self.claimed().get(&claim.id).filter(|held| held.fence == claim.fence).map(Arc::clone)
    }

    fn lost(&self, id: &LogId) -> StoreError {
        let id = id.clone();
        if self.path(&id).exists() { StoreError::Fenced { id } } else { StoreError::NotFound { id } }
    }

    /// Waits for an append that is under way.
    pub(super) fn release(&self, claim: &Claim) {
        if let Some(held) = self.held(claim) {
            let mut writer = held.writer();
            self.claimed().remove(&claim.id);
            *writer = None;
        }
    }

    fn open(&self, id: &LogId) -> Result<(PathBuf, File), StoreError> {
        let path = self.path(id);
        match File::open(&path) {
            Ok(file) => Ok((path, file)),
            Err(error) => Err(file::opening(&path, id, &error)),
        }
    }

    pub(super) fn read(&self, id: &LogId, from: u64) -> Result<Vec<Event>, StoreError> {
        let (path, mut file) = self.open(id)?;
        let mut log = LogFile::new(&path, &file);
        let events = match log.header()? {
            Ok(_) => log.events(from)?,
            Err(file::BadHeader::Newer(error)) => return Err(error),
            Err(file::BadHeader::Damaged(_)) => None,
        };
        events.ok_or_else(|| file::damage(&path, &mut file))
    }

    pub(super) fn read_intact(&self, id: &LogId) -> Result<Intact, StoreError> {
        let (path, file) = self.open(id)?;
        LogFile::new(&path, &file).intact()
    }

    pub(super) fn meta(&self, id: &LogId) -> Result<Meta, StoreError> {
        let (path, mut file) = self.open(id)?;
        match LogFile::new(&path, &file).header()? {
            Ok(meta) => Ok(meta),
            Err(file::BadHeader::Newer(error)) => Err(error),
            Err(file::BadHeader::Damaged(_)) => Err(file::damage(&path, &mut file)),
        }
    }

    pub(super) fn list(&self) -> Result<Vec<Listing>, StoreError> {
        let broken = |error: io::Error| io_error::reading(&self.dir, &error);
        let mut listings = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(broken)? {
            let path = entry.map_err(broken)?.path();
            let is_log = path.extension().is_some_and(|extension| extension == "jsonl");
            let stem = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_log);
            if let Some(id) = stem.and_then(|stem| LogId::new(stem).ok()) {
                listings.extend(listing(id, &path));
            }
        }
        batch::newest_first(&mut listings);
        Ok(listings)
    }

    pub(super) fn remove(&self, id: &LogId) -> Result<(), StoreError> {
        let path = self.path(id);
        // Held until the end, so that nobody claims what is about to go.
        let _lock = self.lock(id, &path)?;
        fs::remove_file(&path).and_then(|()| self.sync()).map_err(|error| io_error::writing(&path, &error))
    }

    /// Makes names survive a loss of power.
    fn sync(&self) -> io::Result<()> {
        if cfg!(unix) { File::open(&self.dir)?.sync_all() } else { Ok(()) }
    }
}

/// Writes a log without events, locked before anybody can see it.
fn write_draft(draft: &Path, meta: &Meta) -> io::Result<(File, u64)> {
    let header = file::header(meta)?;
    let mut file = private::options().read(true).write(true).create_new(true).open(draft)?;
    file.lock()?;
    file.write_all(&header)?;
    file.sync_all()?;
    Ok((file, header.len() as u64))
}

/// Whether the file was removed between opening and locking it.
fn is_removed(path: &Path, file: &File) -> bool {
    #[cfg(unix)]
    if let Ok(metadata) = file.metadata() {
        return std::os::unix::fs::MetadataExt::nlink(&metadata) == 0;
    }
    let _ = file;
    !path.exists()
}

/// `None` if the log was removed since the folder was read.
fn listing(id: LogId, path: &Path) -> Option<Listing> {
    let mut file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        file => file.ok(),
    };
    let (meta, events, last) = match file.as_mut().map(|file| file::ends(path, file)) {
        Some(Ok((meta, end))) => (meta, end.kept(), end.last),
        // Damaged, newer or unreadable: whoever reads it is told in what way.
        Some(Err(StoreError::Damaged { intact, .. })) => (meta(path).unwrap_or_default(), intact, None),
        _ => (Meta::default(), 0, None),
    };
    Some(Listing { id, meta, events, last })
}

fn meta(path: &Path) -> Option<Meta> {
    LogFile::new(path, &File::open(path).ok()?).header().ok()?.ok()
}
