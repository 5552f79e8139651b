//! Team files that clients edit: read as they are now, and replaced as a whole.

use std::fs;
use std::io::{self, Write as _};
use std::path::Path;

use polylogue_files::Draft;

/// The largest text of a team file, in bytes: as large as those that are read.
const LARGEST: u64 = 4 * 1024 * 1024;

/// The text of a file, and its version.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FileText {
    pub(crate) text: String,
    pub(crate) version: String,
}

impl FileText {
    fn new(text: String) -> Self {
        let version = version(&text);
        Self { text, version }
    }
}

/// The version of a text, as an entity tag.
pub(crate) fn version(text: &str) -> String {
    format!("\"{}\"", blake3::hash(text.as_bytes()).to_hex().get(..32).unwrap_or_default())
}

/// Why a file was not replaced.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EditError {
    /// It has another version than the one that was named.
    #[error("the file has changed since it was read")]
    Changed,
    /// It is a link, or no file.
    #[error("the file is a symbolic link, or no regular file")]
    NoFile,
    /// No one may write to it.
    #[error("the file is read-only")]
    ReadOnly,
    /// The system refuses it.
    #[error("{0}")]
    Io(#[from] io::Error),
}

/// The text of the file at `path`.
///
/// # Errors
/// When it is missing, too large or not UTF-8.
pub(crate) fn read(path: &Path) -> io::Result<FileText> {
    if fs::metadata(path)?.len() > LARGEST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "the file is larger than 4 MiB"));
    }
    fs::read_to_string(path).map(FileText::new)
}

/// Replaces the text of the file at `path`, whose version must be `expected`: readers see the old text or the new one, never a part.
///
/// # Errors
/// [`EditError`].
pub(crate) fn replace(path: &Path, expected: &str, text: &str) -> Result<FileText, EditError> {
    let about = fs::symlink_metadata(path)?;
    // What a link leads to may be outside of the folder.
    if !about.is_file() {
        return Err(EditError::NoFile);
    }
    // A new file takes its name, for which only the folder must be writable.
    if about.permissions().readonly() {
        return Err(EditError::ReadOnly);
    }
    if read(path)?.version != expected {
        return Err(EditError::Changed);
    }
    let mut draft = Draft::of(path)?;
    draft.write_all(text.as_bytes())?;
    draft.put_durably()?;
    Ok(FileText::new(text.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_is_replaced_as_a_whole_and_only_in_the_version_that_was_read() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("team.yaml");
        fs::write(&path, "one").unwrap();
        let one = read(&path).unwrap();
        let two = replace(&path, &one.version, "two").unwrap();
        assert_eq!(read(&path).unwrap(), two);
        assert!(matches!(replace(&path, &one.version, "three"), Err(EditError::Changed)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "two");
        let left: Vec<_> =
            fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(left, ["team.yaml"]);
    }

    #[test]
    fn a_file_that_is_read_only_stays() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("team.yaml");
        fs::write(&path, "one").unwrap();
        let mut permissions = fs::metadata(&path).unwrap().permissions();
        permissions.set_readonly(true);
        fs::set_permissions(&path, permissions).unwrap();
        let version = read(&path).unwrap().version;
        assert!(matches!(replace(&path, &version, "two"), Err(EditError::ReadOnly)));
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    }

    #[cfg(unix)]
    #[test]
    fn a_link_is_not_followed() {
        let dir = tempfile::tempdir().unwrap();
        let (outside, link) = (dir.path().join("outside"), dir.path().join("team.yaml"));
        fs::write(&outside, "secret").unwrap();
        std::os::unix::fs::symlink(&outside, &link).unwrap();
        let version = read(&link).unwrap().version;
        assert!(matches!(replace(&link, &version, "x"), Err(EditError::NoFile)));
        assert_eq!(fs::read_to_string(&outside).unwrap(), "secret");
    }
}
