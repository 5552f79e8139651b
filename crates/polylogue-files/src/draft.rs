//! Replacing files as a whole.

use std::fs::{self, File, OpenOptions};
use std::hash::{BuildHasher as _, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::private::private_options;

/// A new version of a file, which takes the name of the file when it is complete: after a crash there is the old version or the new
/// one, and no reader sees a part.
///
/// It is written in the same folder, under a random name, so that the drafts of several processes are different files. A draft
/// that is dropped before it gets the name is removed.
///
/// ```
/// use std::io::Write as _;
///
/// # fn main() -> std::io::Result<()> {
/// let path = std::env::temp_dir().join(format!("polylogue-example-draft-{}", std::process::id()));
/// let mut draft = polylogue_files::Draft::of(&path)?;
/// writeln!(draft, "id,text")?;
/// draft.put_durably()?;
/// assert_eq!(std::fs::read_to_string(&path)?, "id,text\n");
/// # std::fs::remove_file(path)
/// # }
/// ```
#[derive(Debug)]
pub struct Draft {
    file: File,
    place: PathBuf,
    target: PathBuf,
    is_put: bool,
}

impl Draft {
    /// Creates a draft of the file at `path`, with the permissions of that file; those of every new file if it does not exist.
    ///
    /// # Errors
    /// When it cannot be created in the folder of `path`, which must exist; when there is something else than a file at `path`, such as a
    /// folder or a device.
    pub fn of(path: &Path) -> io::Result<Self> {
        match fs::metadata(path) {
            Ok(about) => {
                // Private first: a process that has the file open can read what is written to it later.
                let draft = Self::private(path)?;
                draft.file.set_permissions(about.permissions())?;
                Ok(draft)
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                Self::create(path, &mut OpenOptions::new())
            }
            Err(error) => Err(error),
        }
    }

    /// Creates a draft that only its owner can read, whatever the permissions of the file at `path`.
    ///
    /// # Errors
    /// As [`of`](Self::of).
    pub fn private(path: &Path) -> io::Result<Self> {
        Self::create(path, &mut private_options())
    }

    fn create(path: &Path, options: &mut OpenOptions) -> io::Result<Self> {
        path.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        // `/dev/null` as a file would break all other programs of the machine.
        if fs::metadata(path).is_ok_and(|about| !about.is_file()) {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "it is no regular file"));
        }
        let place = path.with_file_name(format!(".polylogue-{:016x}.new", RandomState::new().hash_one(0_u8)));
        // A file or link with this name is an error.
        let file = options.write(true).create_new(true).open(&place)?;
        Ok(Self { file, place, target: path.to_owned(), is_put: false })
    }

    /// Replaces the file. After a loss of power, it can be the old version, or empty.
    ///
    /// # Errors
    /// When it cannot be renamed; the file is then the old one.
    pub fn put(mut self) -> io::Result<()> {
        fs::rename(&self.place, &self.target)?;
        self.is_put = true;
        Ok(())
    }

    /// Replaces the file, and returns when the new version survives a loss of power.
    ///
    /// # Errors
    /// When it cannot be saved or renamed; when the folder cannot be saved, although the file was replaced.
    pub fn put_durably(mut self) -> io::Result<()> {
        self.file.sync_all()?;
        fs::rename(&self.place, &self.target)?;
        self.is_put = true;
        sync_folder(&self.target)
    }

    /// Like [`put_durably`](Self::put_durably), but replaces nothing.
    ///
    /// # Errors
    /// [`AlreadyExists`](io::ErrorKind::AlreadyExists) when there is a file with the name, and as [`put_durably`](Self::put_durably).
    pub fn put_new(self) -> io::Result<()> {
        self.file.sync_all()?;
        // Unlike a rename, a link never replaces a file. The draft is removed, which leaves the other name.
        fs::hard_link(&self.place, &self.target)?;
        sync_folder(&self.target)
    }
}

impl Write for Draft {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.file.write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for Draft {
    fn drop(&mut self) {
        if !self.is_put {
            // Why it was not put is the error that counts.
            let _ = fs::remove_file(&self.place);
        }
    }
}

/// Replaces the file at `path` by one with `content` and the same permissions, see [`Draft::of`] and [`Draft::put`].
///
/// # Errors
/// When it cannot be written; the file is then the old one.
pub fn replace(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut draft = Draft::of(path)?;
    draft.write_all(content)?;
    draft.put()
}

/// Replaces the file at `path` by one with `content` that only its owner can read, and returns when it survives a loss of
/// power, see [`Draft::private`] and [`Draft::put_durably`].
///
/// # Errors
/// As [`Draft::put_durably`].
pub fn replace_private(path: &Path, content: &[u8]) -> io::Result<()> {
    let mut draft = Draft::private(path)?;
    draft.write_all(content)?;
    draft.put_durably()
}

/// Makes the name `path`, new or removed, survive a loss of power, where the system can.
///
/// # Errors
/// When the folder cannot be saved.
pub fn sync_folder(path: &Path) -> io::Result<()> {
    if !cfg!(unix) {
        return Ok(());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    match File::open(folder).and_then(|folder| folder.sync_all()) {
        // The folder cannot be read, only written, or its file system saves no folders.
        Err(error) if is_impossible(error.kind()) => Ok(()),
        synced => synced,
    }
}

fn is_impossible(kind: io::ErrorKind) -> bool {
    matches!(kind, io::ErrorKind::PermissionDenied | io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The names in a folder, sorted.
    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).unwrap();
        let mut names: Vec<_> =
            entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    #[test]
    fn the_old_version_is_there_until_the_new_one_is_put() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        replace(&path, b"one").unwrap();
        let mut draft = Draft::of(&path).unwrap();
        draft.write_all(b"two").unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"one");
        draft.put_durably().unwrap();
        assert_eq!(fs::read(&path).unwrap(), b"two");
        assert_eq!(names(dir.path()), ["file"]);
    }

    #[test]
    fn a_draft_that_is_not_put_leaves_nothing() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        drop(Draft::of(&path).unwrap());
        assert!(names(dir.path()).is_empty());
        for put in [Draft::put, Draft::put_durably, Draft::put_new] {
            let draft = Draft::private(&path).unwrap();
            // A folder takes the name meanwhile.
            fs::create_dir(&path).unwrap();
            assert!(put(draft).is_err());
            assert_eq!(names(dir.path()), ["file"]);
            fs::remove_dir(&path).unwrap();
        }
    }

    #[test]
    fn nothing_but_files_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let is_refused = |path: &Path| {
            for made in [Draft::of(path), Draft::private(path)] {
                assert_eq!(made.unwrap_err().kind(), io::ErrorKind::InvalidInput, "{path:?}");
            }
        };
        is_refused(Path::new("/"));
        is_refused(dir.path());
        #[cfg(unix)]
        {
            let socket = dir.path().join("socket");
            let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
            is_refused(&socket);
            assert_eq!(names(dir.path()), ["socket"]);
        }
    }

    #[test]
    fn a_new_file_replaces_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let put = |content: &[u8]| {
            let mut draft = Draft::private(&path).unwrap();
            draft.write_all(content).unwrap();
            draft.put_new()
        };
        put(b"one").unwrap();
        assert_eq!(put(b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read(&path).unwrap(), b"one");
        assert_eq!(names(dir.path()), ["file"]);
    }

    #[cfg(unix)]
    #[test]
    fn a_file_keeps_its_permissions_unless_it_must_be_private() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("file");
        let mode = || fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        fs::write(&path, "one").unwrap();
        for kept in [0o640, 0o755, 0o444] {
            fs::set_permissions(&path, fs::Permissions::from_mode(kept)).unwrap();
            replace(&path, b"two").unwrap();
            assert_eq!(mode(), kept);
        }
        replace_private(&path, b"three").unwrap();
        assert_eq!((mode(), fs::read(&path).unwrap().as_slice()), (0o600, b"three".as_slice()));
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_replaced_and_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (link, other) = (dir.path().join("link"), dir.path().join("other"));
        fs::write(&other, "kept").unwrap();
        std::os::unix::fs::symlink(&other, &link).unwrap();
        replace(&link, b"new").unwrap();
        assert_eq!(fs::read(&other).unwrap(), b"kept");
        assert!(fs::symlink_metadata(&link).unwrap().is_file());
        assert_eq!(fs::read(&link).unwrap(), b"new");
    }

    #[test]
    fn a_name_without_a_folder_is_of_the_current_one() {
        sync_folder(Path::new("a name")).unwrap();
    }
}
