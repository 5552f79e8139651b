//! Locks of processes: each writing process locks a file.

use std::collections::HashMap;
use std::fs::{self, File};
use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polylogue_core::LogId;
use polylogue_files::{make_private_folder, private_options};

use super::heads::{self, Heads};
use crate::claims;
use crate::head::Head;
use crate::locked_file::LockedFile;

/// The file that this store locks for its lifetime, with the heads of its logs.
///
/// Heads are committed before they are written: a log with fewer events has lost commits, such as by damage to the journal.
#[derive(Debug)]
pub(super) struct ProcessLock {
    token: String,
    place: Place,
}

/// A database, and the heads that this store itself has written: its readers need not look for them in its file.
#[derive(Debug, Clone, derive_more::Deref)]
pub(super) struct Place {
    #[deref(forward)]
    path: Arc<Path>,
    /// With the token. There is none before the first claim.
    own: Arc<Mutex<Option<(String, Heads)>>>,
}

impl Place {
    pub(super) fn new(path: Arc<Path>) -> Self {
        Self { path, own: Arc::default() }
    }

    fn own(&self) -> MutexGuard<'_, Option<(String, Heads)>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ProcessLock {
    /// Creates and locks the file next to the database at `place`.
    ///
    /// To be called with the database's write lock held, as [`is_taken`] is, so that no two processes examine a lock
    /// at once.
    pub(super) fn take(place: &Place) -> io::Result<Self> {
        let writers = folder(place);
        let token = format!("{}-{}", std::process::id(), claims::next_fence());
        let draft = writers.join(format!(".{token}"));
        let file = LockedFile::wait(open_in(&writers, &draft)?)?;
        // It gets its name when it is locked, so that no process takes it for a dead one.
        fs::rename(&draft, writers.join(&token))?;
        *place.own() = Some((token.clone(), Heads::new(file)));
        Ok(Self { token, place: place.clone() })
    }

    /// What claims call it.
    pub(super) fn token(&self) -> &str {
        &self.token
    }

    /// The head of a log that this process wrote last.
    pub(super) fn head_of(&self, id: &LogId) -> Option<Head> {
        self.place.own().as_ref()?.1.of(id).cloned()
    }

    /// Writes the head of a log.
    pub(super) fn write_head(&self, head: Head) {
        if let Some((_, heads)) = &mut *self.place.own() {
            heads.write(head);
        }
    }

    /// The locks of dead processes, and what is left of processes that died while they took theirs.
    pub(super) fn dead(&self) -> Vec<DeadProcess> {
        let mut dead = Vec::new();
        for entry in fs::read_dir(folder(&self.place)).into_iter().flatten().flatten() {
            let name = entry.file_name();
            let token = name.to_str().map(|name| name.strip_prefix('.').unwrap_or(name));
            if token.is_some_and(|token| token != self.token && is_token(token) && !is_locked(&entry.path()))
            {
                dead.push(DeadProcess { heads: heads::read(&entry.path()), path: entry.path() });
            }
        }
        dead
    }
}

impl Drop for ProcessLock {
    fn drop(&mut self) {
        // While there is a journal, the heads of its commits are needed. It, and what stays after a crash, is cleared away
        // by the next process; the folder stays while others have locks.
        if super::connect::journal_bytes(&self.place) == 0 {
            let writers = folder(&self.place);
            let _ = fs::remove_file(writers.join(&self.token));
            let _ = fs::remove_dir(&writers);
        }
        // With it goes the lock.
        self.place.own().take();
    }
}

/// What a dead process left.
#[derive(Debug)]
pub(super) struct DeadProcess {
    pub(super) heads: Vec<Head>,
    path: PathBuf,
}

impl DeadProcess {
    /// Clears it away.
    pub(super) fn clear(self) {
        let _ = fs::remove_file(self.path);
    }
}

/// The heads of these logs that living and dead processes have acknowledged; of each log, that of the latest claim.
pub(super) fn acknowledged(place: &Place, is_wanted: impl Fn(&LogId) -> bool) -> HashMap<LogId, Head> {
    let mut all = HashMap::new();
    let others = own_and_others(place, |heads| {
        let wanted = heads.all().filter(|head| is_wanted(&head.id));
        wanted.for_each(|head| heads::keep_latest(&mut all, head.clone()));
    });
    let heads = others.iter().flat_map(|other| heads::read(other)).filter(|head| is_wanted(&head.id));
    heads.for_each(|head| heads::keep_latest(&mut all, head));
    all
}

/// The head of one log that living and dead processes have acknowledged under the latest claim.
pub(super) fn acknowledged_of(place: &Place, id: &LogId) -> Option<Head> {
    let mut own = None;
    let others = own_and_others(place, |heads| own = heads.of(id).cloned());
    others.iter().filter_map(|other| heads::find(other, id)).chain(own).max_by_key(Head::age)
}

/// Shows `own` the heads of this store, and returns the files of all others. Without its file, its heads are of a database that was replaced.
fn own_and_others(place: &Place, own: impl FnOnce(&Heads)) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder(place)).into_iter().flatten().flatten();
    let mut files: Vec<PathBuf> = entries.map(|entry| entry.path()).collect();
    files.retain(|file| file.file_name().and_then(|name| name.to_str()).is_some_and(is_token));
    if let Some((token, heads)) = &*place.own()
        && let Some(at) = files.iter().position(|file| file.ends_with(token))
    {
        files.swap_remove(at);
        own(heads);
    }
    files
}

/// The head of the log `id` in the file `token`.
pub(super) fn head_written_by(place: &Path, token: &str, id: &LogId) -> Option<Head> {
    is_token(token).then(|| heads::find(&folder(place).join(token), id)).flatten()
}

/// The heads in the file `token`.
pub(super) fn heads_written_by(place: &Path, token: &str) -> Vec<Head> {
    if is_token(token) { heads::read(&folder(place).join(token)) } else { Vec::new() }
}

fn folder(place: &Path) -> PathBuf {
    let mut folder = place.as_os_str().to_owned();
    folder.push(".writers");
    folder.into()
}

/// Creates a file; another process may remove the empty folder meanwhile.
fn open_in(writers: &Path, path: &Path) -> io::Result<File> {
    const TRIES: u32 = 10;
    let mut opened = Err(ErrorKind::NotFound.into());
    for _ in 0..TRIES {
        make_private_folder(writers)?;
        opened = private_options().read(true).write(true).create_new(true).open(path);
        if !opened.as_ref().is_err_and(|error: &io::Error| error.kind() == ErrorKind::NotFound) {
            break;
        }
    }
    opened
}

/// Whether the process with the file `token` next to the database at `place` is alive.
pub(super) fn is_taken(place: &Path, token: &str) -> bool {
    // The token comes out of a file: it must not lead to other places.
    is_token(token) && is_locked(&folder(place).join(token))
}

fn is_token(token: &str) -> bool {
    !token.is_empty() && token.bytes().all(|byte| byte.is_ascii_digit() || byte == b'-')
}

fn is_locked(lock: &Path) -> bool {
    match File::open(lock) {
        Err(error) => error.kind() != ErrorKind::NotFound,
        Ok(file) => !matches!(file.try_lock_shared(), Ok(())),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_lock_is_held_until_it_is_dropped() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::new(dir.path().join("db").into());
        let lock = ProcessLock::take(&place).unwrap();
        let token = lock.token().to_owned();
        assert!(is_taken(&place, &token));
        drop(lock);
        assert!(!is_taken(&place, &token));
        assert!(!folder(&place).exists());
    }

    #[test]
    fn locks_of_dead_processes_are_removed_and_live_ones_kept() {
        let dir = tempfile::tempdir().unwrap();
        let place = Place::new(dir.path().join("db").into());
        let alive = ProcessLock::take(&place).unwrap();
        let dead = ["4711-1", ".4711-2"].map(|name| folder(&place).join(name));
        dead.iter().for_each(|lock| fs::write(lock, "").unwrap());
        let other = ProcessLock::take(&Place::new(place.path.clone())).unwrap();
        other.dead().into_iter().for_each(DeadProcess::clear);
        assert!(!dead.iter().any(|lock| lock.exists()));
        assert!(is_taken(&place, alive.token()));
    }

    #[test]
    fn a_token_does_not_lead_out_of_the_folder() {
        let dir = tempfile::tempdir().unwrap();
        let file = File::create(dir.path().join("7")).unwrap();
        file.lock().unwrap();
        assert!(!is_taken(&dir.path().join("db"), "../7"));
    }
}
