//! The conversations that this server runs, as files that the next process reads: after a crash or a restart it continues these, and none
//! that a person or another program has interrupted.
//!
//! Servers of one machine can have the same store. Each process has a folder of its own, in which a file stays locked while it lives; a process that
//! starts takes over the folders of those that are dead. Other programs ask a living one to continue a conversation by a file of the same kind, in a
//! folder that belongs to no process.

use std::collections::BTreeSet;
use std::fs::{self, File, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use polylogue_core::LogId;
use polylogue_runtime::stored::fresh_id;
use serde::{Deserialize, Serialize};

use crate::spending::NotedPayer;

/// The file in the folder of a process that it has locked. No tenant has a name with a dot.
const LOCK: &str = "process.lock";

/// Locked while a folder is made, taken over or removed.
const GATE: &str = "folders.lock";

/// The folder next to those of the processes with what other programs ask for.
const ASKED: &str = "asked";

/// The conversations that are to run until they close, wait or are stopped: one file for each, by tenant, with who pays.
#[derive(Debug)]
pub(crate) struct Promised {
    /// Has the folders of all processes.
    root: PathBuf,
    /// That of this one, once it has one.
    own: Mutex<Option<OwnFolder>>,
}

#[derive(Debug)]
struct OwnFolder {
    path: PathBuf,
    lock: File,
}

/// Closing alone would leave the lock to a program that is just being started.
impl Drop for OwnFolder {
    fn drop(&mut self) {
        let _ = self.lock.unlock();
    }
}

/// What is noted of a conversation that is to run.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Promise {
    /// Who pays.
    #[serde(flatten)]
    pub(crate) payer: NotedPayer,
    /// Whether it runs for clients that wait for its response, and for no one else.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(crate) is_awaited: bool,
}

/// What dead processes have left.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Adopted {
    /// Tenants and ids.
    pub(crate) conversations: Vec<(String, LogId)>,
    /// Whether there are other processes that live.
    pub(crate) has_others: bool,
}

impl Promised {
    pub(crate) const fn at(root: PathBuf) -> Self {
        Self { root, own: Mutex::new(None) }
    }

    /// Notes that it is to run. A process that is killed later leaves the note, as a whole.
    pub(crate) fn note(&self, tenant: &str, id: &LogId, promise: &Promise) -> io::Result<()> {
        write_note(&self.own_folder()?.join(tenant), id, promise)
    }

    /// Asks a living process of the server to run it, for which no token pays. Returns whether there is one.
    pub(crate) fn ask(&self, tenant: &str, id: &LogId) -> io::Result<bool> {
        if self.living()?.is_empty() {
            return Ok(false);
        }
        write_note(&self.asked().join(tenant), id, &Promise::default())?;
        Ok(true)
    }

    /// Takes over what other programs have asked for: each conversation is returned to one process. What this one has noted of it before stays.
    pub(crate) fn take_asked(&self) -> io::Result<Vec<(String, LogId)>> {
        // From then on, other programs find a process that lives.
        let own = self.own_folder()?;
        moved(&self.asked(), &own)
    }

    fn asked(&self) -> PathBuf {
        self.root.with_file_name(ASKED)
    }

    /// The folders of the processes of the server that live.
    fn living(&self) -> io::Result<Vec<PathBuf>> {
        let mut living = Vec::new();
        if !self.root.exists() {
            return Ok(living);
        }
        let _gate = self.gate()?;
        for process in folders_in(&self.root)? {
            let folder = self.root.join(process);
            // One without a lock was killed before it had noted anything.
            let Ok(lock) = File::open(folder.join(LOCK)) else { continue };
            match lock.try_lock_shared() {
                Ok(()) => lock.unlock()?,
                Err(TryLockError::WouldBlock) => living.push(folder),
                Err(TryLockError::Error(error)) => return Err(error),
            }
        }
        Ok(living)
    }

    /// The conversations of a tenant that a living process runs or is to run, and those that other programs ask it to run.
    pub(crate) fn of_living(&self, tenant: &str) -> io::Result<BTreeSet<LogId>> {
        let mut folders = self.living()?;
        if !folders.is_empty() {
            folders.push(self.asked());
        }
        let mut ids = BTreeSet::new();
        for folder in folders {
            let names = names_in(&folder.join(tenant))?;
            ids.extend(names.iter().filter_map(|name| LogId::new(name).ok()));
        }
        Ok(ids)
    }

    /// Takes back what processes have noted of it, and what other programs have asked for.
    pub(crate) fn withdraw(&self, tenant: &str, id: &LogId) -> io::Result<()> {
        // First, because a process moves it from there to its own folder.
        absent_is_fine(fs::remove_file(self.asked().join(tenant).join(id.as_str())))?;
        self.remove(tenant, id)
    }

    fn promise(&self, tenant: &str, id: &LogId) -> Option<Promise> {
        let text = fs::read(self.own_folder().ok()?.join(tenant).join(id.as_str())).ok()?;
        serde_json::from_slice(&text).ok()
    }

    /// Who pays for it, if that can be read.
    pub(crate) fn payer(&self, tenant: &str, id: &LogId) -> Option<NotedPayer> {
        self.promise(tenant, id).map(|promise| promise.payer)
    }

    /// Whether it is to run for clients that wait for its response, and for no one else.
    pub(crate) fn is_awaited(&self, tenant: &str, id: &LogId) -> bool {
        self.promise(tenant, id).is_some_and(|promise| promise.is_awaited)
    }

    /// Notes that it is to run for others, too, if it still is.
    pub(crate) fn renew(&self, tenant: &str, id: &LogId) -> io::Result<()> {
        match self.promise(tenant, id) {
            Some(promise) => self.note(tenant, id, &Promise { is_awaited: false, ..promise }),
            None => Ok(()),
        }
    }

    /// Notes that it need not run any more, whichever process has run it.
    pub(crate) fn remove(&self, tenant: &str, id: &LogId) -> io::Result<()> {
        for process in folders_in(&self.root)? {
            absent_is_fine(fs::remove_file(self.root.join(process).join(tenant).join(id.as_str())))?;
        }
        Ok(())
    }

    /// Removes a note of this process. Those of others stay.
    pub(crate) fn remove_own(&self, tenant: &str, id: &LogId) -> io::Result<()> {
        absent_is_fine(fs::remove_file(self.own_folder()?.join(tenant).join(id.as_str())))
    }

    /// Takes over what processes have noted that are dead.
    pub(crate) fn adopt(&self) -> io::Result<Adopted> {
        let own = self.own_folder()?;
        let _gate = self.gate()?;
        let mut adopted = Adopted::default();
        for process in folders_in(&self.root)? {
            let folder = self.root.join(process);
            if folder == own {
                continue;
            }
            // One without a lock was killed before it had noted anything.
            let lock = File::options().create(true).truncate(false).write(true).open(folder.join(LOCK))?;
            match lock.try_lock() {
                Ok(()) => adopted.conversations.extend(taken_over(&folder, &own)?),
                Err(TryLockError::WouldBlock) => adopted.has_others = true,
                Err(TryLockError::Error(error)) => return Err(error),
            }
            let _ = lock.unlock();
        }
        Ok(adopted)
    }

    /// Leaves what is noted to the next process. Nothing is noted any more.
    pub(crate) fn leave(&self) {
        let Some(own) = self.own().take() else { return };
        let Ok(_gate) = self.gate() else { return };
        // Fails where something is noted.
        let tenants = folders_in(&own.path).unwrap_or_default();
        if tenants.iter().all(|tenant| fs::remove_dir(own.path.join(tenant)).is_ok()) {
            let _ = fs::remove_dir_all(&own.path);
        }
    }

    fn own(&self) -> MutexGuard<'_, Option<OwnFolder>> {
        self.own.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The folder of this process, which is made when it is needed.
    fn own_folder(&self) -> io::Result<PathBuf> {
        let mut own = self.own();
        if let Some(own) = &*own {
            return Ok(own.path.clone());
        }
        let _gate = self.gate()?;
        let path = self.root.join(fresh_id().as_str());
        fs::create_dir(&path)?;
        let lock = File::create_new(path.join(LOCK))?;
        lock.try_lock()?;
        *own = Some(OwnFolder { path: path.clone(), lock });
        Ok(path)
    }

    /// Keeps other processes from making folders and taking them over while it exists.
    fn gate(&self) -> io::Result<File> {
        fs::create_dir_all(&self.root)?;
        let gate = File::options().create(true).truncate(false).write(true).open(self.root.join(GATE))?;
        gate.lock()?;
        Ok(gate)
    }
}

/// Writes a note into `folder`, as a whole.
fn write_note(folder: &Path, id: &LogId, promise: &Promise) -> io::Result<()> {
    let (file, text) = (folder.join(id.as_str()), serde_json::to_vec(promise)?);
    match polylogue_files::replace(&file, &text) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(folder)?;
            polylogue_files::replace(&file, &text)
        }
        replaced => replaced,
    }
}

/// Moves what is noted in `folder` to `own`, and removes the folder.
fn taken_over(folder: &Path, own: &Path) -> io::Result<Vec<(String, LogId)>> {
    let all = moved(folder, own)?;
    fs::remove_dir_all(folder)?;
    Ok(all)
}

/// Moves what is noted in `folder` to `own`, unless that has a note of it, or another process is faster.
fn moved(folder: &Path, own: &Path) -> io::Result<Vec<(String, LogId)>> {
    let mut all = Vec::new();
    for tenant in folders_in(folder)? {
        let (from, to) = (folder.join(&tenant), own.join(&tenant));
        let mut ids = names_in(&from)?;
        ids.sort();
        for id in ids.iter().filter_map(|name| LogId::new(name).ok()) {
            fs::create_dir_all(&to)?;
            let (from, to) = (from.join(id.as_str()), to.join(id.as_str()));
            let taken = if to.exists() { fs::remove_file(from) } else { fs::rename(from, to) };
            match taken {
                Ok(()) => all.push((tenant.clone(), id)),
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                Err(error) => return Err(error),
            }
        }
    }
    Ok(all)
}

/// The names of the folders in a folder, sorted.
fn folders_in(folder: &Path) -> io::Result<Vec<String>> {
    let mut names = names_in(folder)?;
    names.retain(|name| folder.join(name).is_dir());
    names.sort();
    Ok(names)
}

fn names_in(folder: &Path) -> io::Result<Vec<String>> {
    let entries = match fs::read_dir(folder) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
        entries => entries?,
    };
    let mut names = Vec::new();
    for entry in entries {
        names.extend(entry?.file_name().into_string().ok());
    }
    Ok(names)
}

fn absent_is_fine(removed: io::Result<()>) -> io::Result<()> {
    match removed {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        removed => removed,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(text: &str) -> LogId {
        LogId::new(text).unwrap()
    }

    fn payer(token: &str) -> NotedPayer {
        NotedPayer { token: token.into(), limits: Vec::new() }
    }

    fn promise(token: &str) -> Promise {
        Promise { payer: payer(token), is_awaited: true }
    }

    fn adopted(promised: &Promised) -> Vec<(String, LogId)> {
        promised.adopt().unwrap().conversations
    }

    #[test]
    fn a_process_withdraws_its_own_note_alone() {
        let dir = tempfile::tempdir().unwrap();
        let [first, second] = [(); 2].map(|()| Promised::at(dir.path().join("running")));
        for process in [&first, &second] {
            process.note("local", &id("a"), &promise("tok-1")).unwrap();
        }
        second.remove_own("local", &id("a")).unwrap();
        second.remove_own("local", &id("b")).unwrap();
        assert_eq!(
            (first.payer("local", &id("a")), second.payer("local", &id("a"))),
            (Some(payer("tok-1")), None)
        );
    }

    #[test]
    fn what_is_noted_is_there_for_the_next_process_until_it_is_cleared() {
        let dir = tempfile::tempdir().unwrap();
        let process = || Promised::at(dir.path().join("running"));
        let first = process();
        first.remove("local", &id("a")).unwrap();
        for (tenant, of) in [("local", "b"), ("local", "a"), ("other", "a"), ("local", "c")] {
            first.note(tenant, &id(of), &promise("tok-1")).unwrap();
        }
        first.note("local", &id("c"), &promise("tok-2")).unwrap();
        assert_eq!(first.payer("local", &id("a")), Some(payer("tok-1")));
        assert_eq!(first.payer("local", &id("c")), Some(payer("tok-2")));
        first.remove("local", &id("b")).unwrap();
        drop(first);
        for _ in 0..2 {
            // However often it dies before it has run anything.
            let next = process();
            let left = [("local".into(), id("a")), ("local".into(), id("c")), ("other".into(), id("a"))];
            assert_eq!(adopted(&next), left);
            assert_eq!(next.payer("other", &id("a")), Some(payer("tok-1")));
        }
    }

    #[test]
    fn the_next_process_knows_what_ran_for_waiting_clients_alone() {
        let dir = tempfile::tempdir().unwrap();
        let process = || Promised::at(dir.path().join("running"));
        let first = process();
        for of in ["a", "b"] {
            first.note("local", &id(of), &promise("tok-1")).unwrap();
        }
        first.renew("local", &id("b")).unwrap();
        first.renew("local", &id("c")).unwrap();
        drop(first);
        let next = process();
        assert_eq!(adopted(&next).len(), 2, "what is not noted is not renewed");
        assert_eq!(["a", "b"].map(|of| next.is_awaited("local", &id(of))), [true, false]);
        assert_eq!(next.payer("local", &id("b")), Some(payer("tok-1")));
    }

    #[test]
    fn a_living_process_keeps_its_own_and_a_dead_one_is_taken_over_once() {
        let dir = tempfile::tempdir().unwrap();
        let process = || Promised::at(dir.path().join("running"));
        let (dead, living, next) = (process(), process(), process());
        dead.note("local", &id("of-dead"), &promise("tok-1")).unwrap();
        living.note("local", &id("of-living"), &promise("tok-1")).unwrap();
        assert_eq!(next.adopt().unwrap(), Adopted { conversations: Vec::new(), has_others: true });
        drop(dead);
        let conversations = vec![("local".into(), id("of-dead"))];
        assert_eq!(next.adopt().unwrap(), Adopted { conversations, has_others: true });
        assert_eq!(adopted(&living), [], "it has been taken over");
        // One that another process has run to its end need not run again, wherever that is noted.
        next.remove("local", &id("of-living")).unwrap();
        living.leave();
        next.leave();
        let last = process();
        assert_eq!(last.adopt().unwrap().conversations, [("local".into(), id("of-dead"))]);
        last.remove("local", &id("of-dead")).unwrap();
        last.leave();
        assert_eq!(folders_in(&dir.path().join("running")).unwrap(), Vec::<String>::new());
    }

    #[test]
    fn what_another_program_asks_for_is_taken_once_by_a_living_process() {
        let dir = tempfile::tempdir().unwrap();
        let process = || Promised::at(dir.path().join("running"));
        let (program, [first, second]) = (process(), [(); 2].map(|()| process()));
        assert!(!program.ask("local", &id("a")).unwrap(), "no server was ever there");
        assert!(!dir.path().join("running").exists());
        assert_eq!(first.take_asked().unwrap(), []);
        first.note("local", &id("b"), &promise("tok-1")).unwrap();
        for of in ["b", "a"] {
            assert!(program.ask("local", &id(of)).unwrap());
        }
        let asked = ["a", "b"].map(|of| ("local".to_owned(), id(of)));
        assert_eq!(first.take_asked().unwrap(), asked);
        assert_eq!(second.take_asked().unwrap(), []);
        assert_eq!(first.payer("local", &id("a")), Some(NotedPayer::default()));
        assert_eq!(first.payer("local", &id("b")), Some(payer("tok-1")), "it was noted before");
        drop((first, second));
        assert!(!program.ask("local", &id("c")).unwrap(), "no server lives");
        assert_eq!(adopted(&process()), asked);
    }

    #[test]
    fn another_program_reads_what_living_processes_are_to_run_and_takes_it_back() {
        let dir = tempfile::tempdir().unwrap();
        let process = || Promised::at(dir.path().join("running"));
        let (program, [living, dead]) = (process(), [(); 2].map(|()| process()));
        let of_local = || -> Vec<String> {
            program.of_living("local").unwrap().iter().map(ToString::to_string).collect()
        };
        assert_eq!(of_local(), Vec::<String>::new(), "no server was ever there");
        assert!(!dir.path().join("running").exists());
        for (tenant, of) in [("local", "b"), ("local", "a"), ("other", "c")] {
            living.note(tenant, &id(of), &promise("tok-1")).unwrap();
        }
        dead.note("local", &id("of-dead"), &promise("tok-1")).unwrap();
        drop(dead);
        assert!(program.ask("local", &id("d")).unwrap());
        assert_eq!(of_local(), ["a", "b", "d"]);
        for of in ["a", "d", "no-such"] {
            program.withdraw("local", &id(of)).unwrap();
        }
        assert_eq!(of_local(), ["b"]);
        assert_eq!((living.payer("local", &id("a")), living.take_asked().unwrap()), (None, Vec::new()));
        drop(living);
        assert_eq!(of_local(), Vec::<String>::new(), "no server lives");
    }

    #[test]
    fn a_process_that_was_killed_before_it_had_a_lock_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().join("running");
        fs::create_dir_all(root.join("torn")).unwrap();
        let next = Promised::at(root.clone());
        assert_eq!(next.adopt().unwrap(), Adopted::default());
        assert!(!root.join("torn").exists());
    }
}
