//! A folder of logs: the blocking part of the store, run on its threads.

use std::collections::HashMap;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, ErrorKind, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polylogue_core::{
    BlobId, Claim, Event, InboxMessage, ListQuery, Listing, LogId, Meta, Page, RecoveredEvents, StoreError,
    Summary,
};
use polylogue_files::private_options;

use super::blobs;
use super::file::{self, LogFile};
use super::inbox;
use super::keys;
use super::note::{self, Entry, Note};
use super::writer::Writer;
use crate::batch::{self, Batch};
use crate::head::{Head, lease_from_now};
use crate::locked_file::LockedFile;
use crate::{claims, io_error};
use polylogue_core::chain::Link;

/// The folder, and the logs claimed through this store.
#[derive(Debug)]
pub(super) struct Folder {
    dir: PathBuf,
    claimed: Mutex<HashMap<LogId, Arc<Claimed>>>,
    /// Whether there may be files of dead processes.
    untidy: AtomicBool,
}

#[derive(Debug)]
struct Claimed {
    fence: u64,
    /// `None` after the release.
    writer: Mutex<Option<Writer>>,
}

impl Claimed {
    fn writer(&self) -> MutexGuard<'_, Option<Writer>> {
        self.writer.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// As much as the smallest file takes on most disks.
const BLOCK: [u8; 4096] = [b' '; 4096];

impl Folder {
    pub(super) fn new(dir: PathBuf) -> Self {
        Self { dir, claimed: Mutex::default(), untidy: AtomicBool::new(true) }
    }

    fn path(&self, id: &LogId) -> PathBuf {
        self.dir.join(format!("{id}.jsonl"))
    }

    /// The file of the head, which the log's writer updates.
    fn head(&self, id: &LogId) -> PathBuf {
        self.dir.join(format!("{id}.head"))
    }

    fn inbox_path(&self, id: &LogId) -> PathBuf {
        self.dir.join(format!("{id}.inbox"))
    }

    pub(super) fn post(&self, id: &LogId, message: &InboxMessage) -> Result<u64, StoreError> {
        self.open(id)?;
        let number = inbox::post(&self.inbox_path(id), message)?;
        self.sync().map_err(|error| io_error::writing(&self.dir, &error))?;
        Ok(number)
    }

    pub(super) fn inbox(&self, id: &LogId, after: u64) -> Result<Vec<(u64, InboxMessage)>, StoreError> {
        self.open(id)?;
        inbox::read(&self.inbox_path(id), after)
    }

    pub(super) fn reserve_key(&self, key: &str, request: &str) -> Result<String, StoreError> {
        let reserved = keys::reserve(&self.dir.join(keys::FILE), key, request)?;
        self.sync().map_err(|error| io_error::writing(&self.dir, &error))?;
        Ok(reserved)
    }

    fn blobs(&self, id: &LogId) -> PathBuf {
        self.dir.join(format!("{id}.blobs"))
    }

    pub(super) fn store_blob(&self, id: &LogId, blob: &BlobId, bytes: &[u8]) -> Result<(), StoreError> {
        self.open(id)?;
        blobs::write(&self.blobs(id), blob, bytes)?;
        self.sync().map_err(|error| io_error::writing(&self.dir, &error))
    }

    pub(super) fn stored_blob(&self, id: &LogId, blob: &BlobId) -> Result<Option<Arc<[u8]>>, StoreError> {
        self.open(id)?;
        blobs::read(&self.blobs(id), blob)
    }

    fn note(&self, id: &LogId) -> Note {
        Note::read(&self.head(id))
    }

    fn claimed(&self) -> MutexGuard<'_, HashMap<LogId, Arc<Claimed>>> {
        self.claimed.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The log appears under its name when it is complete and locked.
    pub(super) fn create(&self, id: &LogId, meta: &Meta) -> Result<Claim, StoreError> {
        let path = self.path(id);
        if path.exists() {
            return Err(StoreError::Exists { id: id.clone() });
        }
        self.clear();
        let fence = claims::next_fence();
        let draft = self.draft(id, fence);
        let written = write_draft(&draft, meta).and_then(|end| {
            let _lock = self.lock_names();
            // Another process may have created one since, of which nothing may be removed.
            if path.try_exists()? {
                return Err(ErrorKind::AlreadyExists.into());
            }
            // The head of an earlier log of this name does not count.
            let _ = fs::remove_file(self.head(id));
            inbox::remove(&self.inbox_path(id));
            blobs::remove(&self.blobs(id));
            // Unlike renaming, linking fails if the name is taken.
            fs::hard_link(&draft, &path)?;
            Ok(end)
        });
        let _ = fs::remove_file(&draft);
        let (file, bytes, link) = written.map_err(|error| match error.kind() {
            ErrorKind::AlreadyExists => StoreError::Exists { id: id.clone() },
            _ => io_error::writing(&path, &error),
        })?;
        self.sync().map_err(|error| io_error::writing(&self.dir, &error))?;
        let head = Head { id: id.clone(), fence, events: 0, link, lease_ms: lease_from_now() };
        self.hold(file, head, Entry::new(meta, bytes, Summary::default()))
    }

    /// Waits until no other process is about to give a new log its name. `None` on systems that cannot lock a folder.
    fn lock_names(&self) -> Option<LockedFile> {
        LockedFile::wait(File::open(&self.dir).ok()?).ok()
    }

    pub(super) fn claim(&self, id: &LogId) -> Result<Claim, StoreError> {
        let path = self.path(id);
        let file = self.lock(id, &path)?;
        self.claim_locked(id, file, claims::next_fence())
    }

    /// The living process that has claimed the log. For a moment its file is locked, for which [`lock`](Self::lock) waits.
    pub(super) fn holder(&self, id: &LogId) -> Result<Option<String>, StoreError> {
        let (path, file) = self.open(id)?;
        if self.claimed().contains_key(id) {
            return Ok(Some(self.holder_noted(id)));
        }
        match file.try_lock_shared() {
            // Closing it would leave the lock to a program that another thread is just starting.
            Ok(()) => file.unlock().map(|()| None).map_err(|error| io_error::writing(&path, &error)),
            Err(TryLockError::WouldBlock) => Ok(Some(self.holder_noted(id))),
            Err(TryLockError::Error(error)) => Err(io_error::writing(&path, &error)),
        }
    }

    fn holder_noted(&self, id: &LogId) -> String {
        let note = self.note(id);
        claims::with_lease(&note.holder, note.head.as_ref().and_then(Head::holds_for))
    }

    /// Claims the log in `file`, which is locked.
    fn claim_locked(&self, id: &LogId, mut file: LockedFile, fence: u64) -> Result<Claim, StoreError> {
        let (path, note) = (self.path(id), self.note(id));
        let end = file::end(&path, &mut file, note.head.as_ref())?;
        let head =
            Head { id: id.clone(), fence, events: end.kept(), link: end.link, lease_ms: lease_from_now() };
        let entry = match note.entry.filter(|entry| entry.bytes == end.bytes) {
            Some(entry) => entry,
            None => entry(&path, &file, end.bytes)?,
        };
        self.hold(file, head, entry)
    }

    fn hold(&self, file: LockedFile, head: Head, entry: Entry) -> Result<Claim, StoreError> {
        let (id, fence) = (head.id.clone(), head.fence);
        // The claim is valid without the note, too.
        let note = note::begin(&self.head(&id), &self.dir.join(format!(".{id}.head")), &head, &entry).ok();
        let writer = Writer::new(file, &self.path(&id), note, head, entry)?;
        self.claimed().insert(id.clone(), Arc::new(Claimed { fence, writer: Mutex::new(Some(writer)) }));
        Ok(Claim::new(id, fence))
    }

    /// The name of a log that is being written.
    fn draft(&self, id: &LogId, fence: u64) -> PathBuf {
        self.dir.join(format!(".{id}.{}-{fence}", std::process::id()))
    }

    /// Removes files of processes that died while they wrote a log.
    fn clear(&self) {
        if !self.untidy.swap(false, Ordering::Relaxed) {
            return;
        }
        for entry in fs::read_dir(&self.dir).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let is_draft = name.to_str().and_then(|name| name.strip_prefix('.')?.rsplit_once('.'));
            let is_draft = is_draft.is_some_and(|(_, end)| {
                end.contains('-') && end.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
            });
            // The lock is kept until the file is removed, so that its writer sees that it is gone.
            if is_draft
                && let Ok(file) = File::open(entry.path())
                && file.try_lock().is_ok()
            {
                let _ = fs::remove_file(entry.path());
            }
        }
    }

    /// Claims the log from a writer that is alive and has not renewed its lease in time.
    ///
    /// The writer checks the mark after each write before it acknowledges it, and the copy is made after the mark:
    /// everything acknowledged is in the copy, and later writes go to an unnamed file.
    pub(super) fn take_over(&self, id: &LogId) -> Result<Claim, StoreError> {
        let busy = match self.claim(id) {
            Err(busy @ StoreError::Busy { .. }) => busy,
            claim => return claim,
        };
        let (path, fence) = (self.path(id), claims::next_fence());
        if self.note(id).head.is_none_or(|head| head.holds_for().is_some()) {
            return Err(busy);
        }
        let fail = |error: io::Error| io_error::writing(&path, &error);
        note::mark(&self.head(id), fence).map_err(fail)?;
        let draft = self.draft(id, fence);
        let copied = copy(&path, &draft).and_then(|file| {
            fs::rename(&draft, &path)?;
            self.sync()?;
            Ok(file)
        });
        let file = copied.inspect_err(|_| drop(fs::remove_file(&draft))).map_err(fail)?;
        // A writer that hung in this process.
        self.claimed().remove(id);
        self.claim_locked(id, file, fence)
    }

    pub(super) fn renew(&self, claim: &Claim) -> Result<(), StoreError> {
        let claimed_log = self.claimed_log(claim).ok_or_else(|| self.lost(&claim.id))?;
        let mut writer = claimed_log.writer();
        let writer = writer.as_mut().ok_or_else(|| self.lost(&claim.id))?;
        writer.check()?;
        writer.renew();
        Ok(())
    }

    /// Writes the intact beginning to a new file; the damaged one stays under another name.
    pub(super) fn repair(&self, id: &LogId) -> Result<u64, StoreError> {
        let path = self.path(id);
        let file = self.lock(id, &path)?;
        let intact = LogFile::new(&path, &file).intact(self.note(id).head.as_ref())?;
        let kept = match intact.damage {
            None => return Ok(intact.events.len() as u64),
            Some(StoreError::Damaged { intact, .. }) => intact,
            Some(error) => return Err(error),
        };
        let events: Vec<Event> = intact.events.into_iter().take_while(|event| event.seq < kept).collect();
        let meta = match LogFile::from_start(&path, &file)?.header()? {
            Ok(meta) => meta,
            Err(_) => Meta {
                title: id.to_string(),
                created: events.first().map(|event| event.time).unwrap_or_default(),
                team: LogFile::from_start(&path, &file)?.recovered_team()?,
                parent: None,
            },
        };
        let draft = self.draft(id, claims::next_fence());
        let fail = |error: io::Error| io_error::writing(&path, &error);
        let written = write_draft(&draft, &meta).and_then(|(mut file, _, link)| {
            file.write_all(&file::lines(&events, link)?)?;
            file.sync_all()?;
            fs::rename(&path, self.dir.join(format!("{id}.jsonl.damaged-{}", claims::next_fence())))?;
            let _ = fs::remove_file(self.head(id));
            fs::rename(&draft, &path)?;
            self.sync()
        });
        written.inspect_err(|_| drop(fs::remove_file(&draft))).map_err(fail)?;
        Ok(kept)
    }

    /// Opens a log for writing and locks it.
    fn lock(&self, id: &LogId, path: &Path) -> Result<LockedFile, StoreError> {
        let file =
            OpenOptions::new().read(true).write(true).open(path).map_err(|error| match error.kind() {
                ErrorKind::NotFound => StoreError::NotFound { id: id.clone() },
                _ => io_error::writing(path, &error),
            })?;
        match LockedFile::without_waiting(file) {
            Ok(file) if io_error::is_other_file(path, &file) => Err(StoreError::NotFound { id: id.clone() }),
            Ok(file) => Ok(file),
            Err(TryLockError::WouldBlock) => {
                Err(StoreError::Busy { id: id.clone(), holder: self.holder_noted(id) })
            }
            Err(TryLockError::Error(error)) => Err(io_error::writing(path, &error)),
        }
    }

    pub(super) fn append(&self, claim: &Claim, batch: &Batch) -> Result<(), StoreError> {
        let id = &claim.id;
        let claimed_log = self.claimed_log(claim).ok_or_else(|| self.lost(id))?;
        let mut writer = claimed_log.writer();
        let writer = writer.as_mut().ok_or_else(|| self.lost(id))?;
        batch.follows(id, writer.kept())?;
        if batch.json.is_empty() {
            return Ok(());
        }
        writer.append(batch)
    }

    fn claimed_log(&self, claim: &Claim) -> Option<Arc<Claimed>> {
        self.claimed().get(&claim.id).filter(|claimed_log| claimed_log.fence == claim.fence).map(Arc::clone)
    }

    fn lost(&self, id: &LogId) -> StoreError {
        let id = id.clone();
        if self.path(&id).exists() { StoreError::Fenced { id } } else { StoreError::NotFound { id } }
    }

    /// Waits for an append in progress.
    pub(super) fn release(&self, claim: &Claim) {
        if let Some(claimed_log) = self.claimed_log(claim) {
            let mut writer = claimed_log.writer();
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

    pub(super) fn read(&self, id: &LogId, range: Range<u64>) -> Result<Vec<Event>, StoreError> {
        // Read first: events acknowledged by then are in the file.
        let head = self.note(id).head;
        let (path, mut file) = self.open(id)?;
        let mut log = LogFile::new(&path, &file);
        let events = match log.header()? {
            Ok(_) => log.events(range, head.as_ref())?,
            Err(file::BadHeader::Other(error)) => return Err(error),
            Err(file::BadHeader::Damaged(_)) => None,
        };
        events.ok_or_else(|| file::damage(&path, &mut file, head.as_ref()))
    }

    pub(super) fn read_intact(&self, id: &LogId) -> Result<RecoveredEvents, StoreError> {
        let head = self.note(id).head;
        let (path, file) = self.open(id)?;
        LogFile::new(&path, &file).intact(head.as_ref())
    }

    pub(super) fn meta(&self, id: &LogId) -> Result<Meta, StoreError> {
        let head = self.note(id).head;
        let (path, mut file) = self.open(id)?;
        match LogFile::new(&path, &file).header()? {
            Ok(meta) => Ok(meta),
            Err(file::BadHeader::Other(error)) => Err(error),
            Err(file::BadHeader::Damaged(_)) => Err(file::damage(&path, &mut file, head.as_ref())),
        }
    }

    pub(super) fn list(&self, query: &ListQuery) -> Result<Page, StoreError> {
        let broken = |error: io::Error| io_error::reading(&self.dir, &error);
        let mut listings = Vec::new();
        for entry in fs::read_dir(&self.dir).map_err(broken)? {
            let path = entry.map_err(broken)?.path();
            let is_log = path.extension().is_some_and(|extension| extension == "jsonl");
            let stem = path.file_stem().and_then(|stem| stem.to_str()).filter(|_| is_log);
            if let Some(id) = stem.and_then(|stem| LogId::new(stem).ok()).filter(|id| query.matches_id(id)) {
                listings.extend(listing(id, &path, self));
            }
        }
        batch::newest_first(&mut listings);
        Page::of(query, listings.into_iter().map(Ok))
    }

    pub(super) fn remove(&self, id: &LogId) -> Result<(), StoreError> {
        let path = self.path(id);
        // Locked until the end, so that no process claims it before it is removed.
        let _lock = self.lock(id, &path)?;
        let _ = fs::remove_file(self.head(id));
        inbox::remove(&self.inbox_path(id));
        blobs::remove(&self.blobs(id));
        fs::remove_file(&path).and_then(|()| self.sync()).map_err(|error| io_error::writing(&path, &error))
    }

    /// Writes a file of a block, and removes it. One that a process leaves which dies meanwhile is removed like a draft.
    pub(super) fn check_writable(&self) -> Result<(), StoreError> {
        let path = self.dir.join(format!(".check.{}-{}", std::process::id(), claims::next_fence()));
        let written = File::create_new(&path)
            .and_then(|mut file| file.write_all(&BLOCK).and_then(|()| file.sync_all()));
        let removed = fs::remove_file(&path);
        written.and(removed).map_err(|error| io_error::writing(&path, &error))
    }

    /// Makes names survive a loss of power.
    fn sync(&self) -> io::Result<()> {
        if cfg!(unix) { File::open(&self.dir)?.sync_all() } else { Ok(()) }
    }
}

/// Writes a log without events, locked before others can see it.
fn write_draft(draft: &Path, meta: &Meta) -> io::Result<(LockedFile, u64, Link)> {
    let (header, link) = file::header(meta)?;
    let mut file = locked_draft(draft)?;
    file.write_all(&header)?;
    file.sync_all()?;
    Ok((file, header.len() as u64, link))
}

/// Creates a file and locks it. Another process may take it for a leftover in between, and remove it: then it is created again.
fn locked_draft(draft: &Path) -> io::Result<LockedFile> {
    loop {
        let file = private_options().read(true).write(true).create_new(true).open(draft)?;
        let file = LockedFile::wait(file)?;
        if draft.try_exists()? {
            return Ok(file);
        }
    }
}

/// Copies a file, and locks the copy.
fn copy(path: &Path, draft: &Path) -> io::Result<LockedFile> {
    let mut copy = locked_draft(draft)?;
    io::copy(&mut File::open(path)?, &mut *copy)?;
    copy.sync_all()?;
    Ok(copy)
}

/// What lists show of a log, by reading it.
fn entry(path: &Path, file: &File, bytes: u64) -> Result<Entry, StoreError> {
    let meta = LogFile::from_start(path, file)?.header()?.unwrap_or_else(|_| Meta::default());
    let events = LogFile::from_start(path, file)?.intact(None)?.events;
    let summary = Summary::of(&events, !meta.team.is_null());
    Ok(Entry::new(&meta, bytes, summary))
}

/// `None` if the log was removed since the folder was read. The log is read only if it has no entry for what it is now.
fn listing(id: LogId, path: &Path, folder: &Folder) -> Option<Listing> {
    let Note { head, entry, .. } = folder.note(&id);
    let file = match File::open(path) {
        Err(error) if error.kind() == ErrorKind::NotFound => return None,
        file => file.ok(),
    };
    let bytes = file.as_ref().and_then(|file| file.metadata().ok()).map(|about| about.len());
    if let Some(entry) = entry.filter(|entry| Some(entry.bytes) == bytes) {
        // A log of another version, or whose first line is damaged, has an entry as well.
        let is_damaged = !file.as_ref().is_some_and(file::has_header);
        return Some(Listing { is_damaged, ..entry.listing(id) });
    }
    // Of another version or unreadable: reading it reports the details.
    let read = file.and_then(|file| file::listing(&id, path, &file, head.as_ref()));
    Some(read.unwrap_or_else(|| Listing::damaged(id)))
}
