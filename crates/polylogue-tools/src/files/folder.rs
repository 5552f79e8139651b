//! A directory that tools cannot leave.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::OwnedFd;
use std::path::{Component, Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use polylogue_core::ToolError;
use polylogue_sandbox::Sandbox;
use rustix::fs::{AtFlags, FileType, Mode, OFlags, RawMode, Stat};
use rustix::io::Errno;

/// Maximum size of a file in bytes.
pub(super) const MAX_FILE_BYTES: u64 = 16 << 20;

/// A directory whose files tools can access. It is created with the first file. Cloning shares it.
#[derive(Debug, Clone)]
pub struct Folder(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    dir: PathBuf,
    /// Its path for programs.
    alias: PathBuf,
    /// The sandbox whose disk limit applies, if there is one.
    sandbox: Option<Sandbox>,
    /// Locked while a file changes.
    changing: Mutex<()>,
}

/// An entry of a directory.
pub(crate) struct Entry {
    pub(crate) name: String,
    pub(crate) kind: FileType,
    pub(crate) bytes: u64,
    /// Modification time: seconds and nanoseconds since 1970.
    pub(crate) changed: (i64, i64),
}

/// Maximum number of entries of a directory.
const MAX_ENTRIES: usize = 20_000;

pub(super) const DIR: OFlags =
    OFlags::RDONLY.union(OFlags::DIRECTORY).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);
/// Opening a pipe must not block.
pub(super) const FILE: OFlags = OFlags::RDONLY
    .union(OFlags::NONBLOCK)
    .union(OFlags::NOFOLLOW)
    .union(OFlags::CLOEXEC)
    .union(OFlags::NOCTTY);
pub(super) const NEW: OFlags =
    OFlags::WRONLY.union(OFlags::CREATE).union(OFlags::EXCL).union(OFlags::NOFOLLOW).union(OFlags::CLOEXEC);

impl Folder {
    /// Creates a handle of the directory at `dir`.
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        let dir = dir.into();
        Self(Arc::new(Inner { alias: dir.clone(), dir, sandbox: None, changing: Mutex::new(()) }))
    }

    /// Returns the work directory of `sandbox`, with the path for its programs.
    pub fn of(sandbox: &Sandbox) -> Self {
        let (dir, alias) = (sandbox.work().to_owned(), sandbox.work_inside().to_owned());
        Self(Arc::new(Inner { dir, alias, sandbox: Some(sandbox.clone()), changing: Mutex::new(()) }))
    }

    /// Returns the path.
    pub fn path(&self) -> &Path {
        &self.0.dir
    }

    /// Locks the files against other changes until it is dropped.
    pub(super) fn changing(&self) -> MutexGuard<'_, ()> {
        self.0.changing.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns where `path` leads in the folder: names with `/` between them, or `.` for the folder itself. `None` if it leads
    /// elsewhere.
    pub fn resolve(&self, path: &str) -> Option<String> {
        let names = self.names(path).ok()?;
        Some(if names.is_empty() { ".".to_owned() } else { names.join("/") })
    }

    /// The components of `path` relative to the folder.
    pub(super) fn names(&self, path: &str) -> Result<Vec<String>, ToolError> {
        let outside = || ToolError(format!("`{path}` is not in the work directory"));
        let given = Path::new(path);
        let within = match given.has_root() {
            true => given.strip_prefix(&self.0.alias).or_else(|_| given.strip_prefix(&self.0.dir)),
            false => Ok(given),
        };
        let mut names: Vec<String> = Vec::new();
        for component in within.map_err(|_| outside())?.components() {
            match component {
                Component::Normal(name) => names.push(name.to_string_lossy().into_owned()),
                Component::CurDir => {}
                // No name is a link, so that this is what the words say.
                Component::ParentDir => drop(names.pop().ok_or_else(outside)?),
                Component::RootDir | Component::Prefix(_) => return Err(outside()),
            }
        }
        Ok(names)
    }

    /// Opens the directory at `names`.
    fn dir(&self, names: &[String]) -> Result<OwnedFd, Errno> {
        // The folder itself may be reached by a link: its owner set it up.
        let root = rustix::fs::open(&self.0.dir, DIR.difference(OFlags::NOFOLLOW), Mode::empty())?;
        names.iter().try_fold(root, |dir, name| rustix::fs::openat(&dir, name, DIR, Mode::empty()))
    }

    /// The same, created if missing.
    fn made(&self, names: &[String]) -> Result<OwnedFd, Errno> {
        polylogue_files::make_private_folder(&self.0.dir)
            .map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))?;
        names.iter().try_fold(self.dir(&[])?, |dir, name| {
            match rustix::fs::mkdirat(&dir, name, Mode::from_raw_mode(0o777)) {
                Ok(()) | Err(Errno::EXIST) => rustix::fs::openat(&dir, name, DIR, Mode::empty()),
                Err(error) => Err(error),
            }
        })
    }

    /// The entries of the directory at `names`, sorted by name; at most 20,000.
    pub(crate) fn entries(&self, names: &[String]) -> Result<Vec<Entry>, Errno> {
        let dir = self.dir(names)?;
        let mut entries = Vec::new();
        for entry in rustix::fs::Dir::read_from(&dir)?.take(MAX_ENTRIES) {
            let entry = entry?;
            let name = entry.file_name();
            if matches!(name.to_bytes(), b"." | b"..") {
                continue;
            }
            // It may be gone by now.
            let Ok(about) = rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) else { continue };
            let (kind, bytes) = (kind(&about), u64::try_from(about.st_size).unwrap_or_default());
            #[allow(clippy::useless_conversion, reason = "the type differs between machines")]
            let changed = (about.st_mtime, about.st_mtime_nsec.try_into().unwrap_or_default());
            entries.push(Entry { name: name.to_string_lossy().into_owned(), kind, bytes, changed });
        }
        entries.sort_by(|a, b| a.name.cmp(&b.name));
        Ok(entries)
    }

    /// The content of the file at `names`.
    pub(super) fn read(&self, names: &[String]) -> Result<Vec<u8>, ToolError> {
        let path = names.join("/");
        let (name, dirs) = names.split_last().ok_or_else(no_file)?;
        let fd = self.dir(dirs).and_then(|dir| rustix::fs::openat(&dir, name, FILE, Mode::empty()));
        let fd = fd.map_err(|error| wrong(&path, error))?;
        let about = rustix::fs::fstat(&fd).map_err(|error| wrong(&path, error))?;
        if kind(&about) != FileType::RegularFile {
            return Err(ToolError(format!("`{path}` is not a file")));
        }
        let mut content = Vec::new();
        File::from(fd)
            .take(MAX_FILE_BYTES + 1)
            .read_to_end(&mut content)
            .map_err(|error| ToolError(format!("`{path}` cannot be read: {error}")))?;
        check_size(&path, content.len() as u64)?;
        Ok(content)
    }

    /// Writes `content` to the file at `names`. Returns whether it existed before.
    pub(crate) fn write(&self, names: &[String], content: &[u8]) -> Result<bool, ToolError> {
        let path = names.join("/");
        check_size(&path, content.len() as u64)?;
        self.check_protected(&path)?;
        let (name, dirs) = names.split_last().ok_or_else(no_file)?;
        let dir = self.made(dirs).map_err(|error| wrong(&path, error))?;
        let mode = match rustix::fs::statat(&dir, name, AtFlags::SYMLINK_NOFOLLOW) {
            Ok(about) if kind(&about) == FileType::RegularFile => Some(about.st_mode & 0o777),
            Ok(_) => {
                return Err(ToolError(format!("`{path}` is not a file: a directory, a link or a device")));
            }
            Err(_) => None,
        };
        // The old file stays until the new one is whole.
        self.check_free_space(content.len() as u64)?;
        let (draft, file) = new_draft(&dir).map_err(|error| wrong(&path, error))?;
        let placed = fill(file, content, mode).and_then(|()| {
            // This replaces the name, whatever it may have become, and follows nothing.
            rustix::fs::renameat(&dir, &draft, &dir, name)
        });
        placed.map(|()| mode.is_some()).map_err(|error| {
            // There is nothing more to be done about a draft that stays.
            let _ = rustix::fs::unlinkat(&dir, &draft, AtFlags::empty());
            wrong(&path, error)
        })
    }
}

impl Folder {
    /// Refuses to change the virtual environment of the sandbox.
    fn check_protected(&self, path: &str) -> Result<(), ToolError> {
        match &self.0.sandbox {
            Some(sandbox) if sandbox.is_protected(Path::new(path)) => {
                Err(ToolError(format!("`{path}` is in the virtual environment, which cannot be changed")))
            }
            _ => Ok(()),
        }
    }

    /// Refuses content that exceeds the disk limit.
    fn check_free_space(&self, bytes: u64) -> Result<(), ToolError> {
        let Some(sandbox) = &self.0.sandbox else { return Ok(()) };
        let room = sandbox.free_bytes();
        if bytes <= room {
            return Ok(());
        }
        let most = sandbox.limits().disk_bytes;
        Err(ToolError(format!(
            "the work directory has no room for {bytes} bytes: it may hold {most}, and {room} are left; remove files that are not \
             needed any more"
        )))
    }
}

/// A new file in `dir`, with its name. A draft that has the name already belongs to a process with the same id: one before this
/// one, or one in another container, which may be writing it. It is left alone.
fn new_draft(dir: &OwnedFd) -> Result<(String, OwnedFd), Errno> {
    static NTH: AtomicU64 = AtomicU64::new(0);
    loop {
        let nth = NTH.fetch_add(1, Ordering::Relaxed);
        let name = format!(".polylogue-{}-{nth}.part", std::process::id());
        match rustix::fs::openat(dir, &name, NEW, Mode::from_raw_mode(0o666)) {
            Err(Errno::EXIST) => {}
            opened => return Ok((name, opened?)),
        }
    }
}

/// Writes a new file, with the permissions of the one that it will replace.
fn fill(file: OwnedFd, content: &[u8], mode: Option<RawMode>) -> Result<(), Errno> {
    if let Some(mode) = mode {
        rustix::fs::fchmod(&file, Mode::from_raw_mode(mode))?;
    }
    let written = File::from(file).write_all(content);
    written.map_err(|error| Errno::from_io_error(&error).unwrap_or(Errno::IO))
}

fn kind(about: &Stat) -> FileType {
    FileType::from_raw_mode(about.st_mode)
}

fn no_file() -> ToolError {
    ToolError("the path must name a file of the work directory".into())
}

/// Refuses a file that is too large.
pub(super) fn check_size(path: &str, bytes: u64) -> Result<(), ToolError> {
    if bytes > MAX_FILE_BYTES {
        return Err(ToolError(format!("`{path}` is too large: at most {MAX_FILE_BYTES} bytes are possible")));
    }
    Ok(())
}

/// Error text for failures of the system.
pub(super) fn wrong(path: &str, error: Errno) -> ToolError {
    let path = if path.is_empty() { "the work directory" } else { path };
    ToolError(match error {
        Errno::NOENT => format!("there is no `{path}`"),
        Errno::LOOP => format!("`{path}` leads over a link, and links are not followed"),
        Errno::NOTDIR => {
            format!("`{path}` leads over what is not a directory, or a link; links are not followed")
        }
        other => format!("`{path}`: {}", std::io::Error::from(other)),
    })
}
