//! Files that the program writes where the user names them: whole or not at all, also when the disk is full.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::path::Path;

/// Writes a new file.
///
/// # Errors
/// [`AlreadyExists`](io::ErrorKind::AlreadyExists) when there is something at `path`. When it cannot be written as a whole: it is then not
/// there.
pub(crate) fn create(path: &Path, content: &[u8]) -> io::Result<()> {
    filled(path, File::create_new(path)?, |file| file.write_all(content))
}

/// Writes a file, and keeps the permissions of one that is there. A link keeps pointing to its file, and what is no file, such as a
/// pipe, is written into.
///
/// # Errors
/// When it cannot be written as a whole: it is then the old one.
pub(crate) fn replace(path: &Path, text: &str) -> io::Result<()> {
    match fs::metadata(path) {
        Ok(found) if found.is_file() => polylogue_files::replace(&fs::canonicalize(path)?, text.as_bytes()),
        Err(_) if fs::symlink_metadata(path).is_err() => polylogue_files::replace(path, text.as_bytes()),
        // Also through a link whose file is not there yet.
        _ => fs::write(path, text),
    }
}

/// Adds `text` at the end of `file`, which is open for that, and returns when it survives a loss of power.
///
/// # Errors
/// When it cannot be added as a whole: the file is then as long as before.
pub(crate) fn append(mut file: File, text: &str) -> io::Result<()> {
    extended(&mut file, |file| {
        file.write_all(text.as_bytes())?;
        file.sync_all()
    })
}

/// Adds to `file`. Half a line would make all of it unreadable.
fn extended(file: &mut File, add: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    let length = file.metadata()?.len();
    add(file).inspect_err(|_| {
        // Why it was not added is the error that counts.
        let _ = file.set_len(length);
    })
}

/// Fills the new `file` at `path`. Half of one would be taken for a whole one.
fn filled(path: &Path, mut file: File, fill: impl FnOnce(&mut File) -> io::Result<()>) -> io::Result<()> {
    fill(&mut file).inspect_err(|_| {
        // Why it was not written is the error that counts.
        let _ = fs::remove_file(path);
    })
}

#[cfg(test)]
mod tests {
    use std::io::Read as _;

    use super::*;

    #[test]
    fn a_new_file_is_whole_or_not_there_and_replaces_none() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("team.yaml");
        let file = File::create_new(&path).unwrap();
        let half = |file: &mut File| file.write_all(b"name: ").and(Err(io::ErrorKind::StorageFull.into()));
        assert_eq!(filled(&path, file, half).unwrap_err().kind(), io::ErrorKind::StorageFull);
        assert!(!path.exists());
        create(&path, b"one").unwrap();
        assert_eq!(create(&path, b"two").unwrap_err().kind(), io::ErrorKind::AlreadyExists);
        assert_eq!(fs::read_to_string(&path).unwrap(), "one");
    }

    #[test]
    fn a_line_is_added_as_a_whole_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("rules.yaml");
        let open = || fs::OpenOptions::new().append(true).create(true).open(&path).unwrap();
        append(open(), "- one\n").unwrap();
        let half = |file: &mut File| file.write_all(b"- tw").and(Err(io::ErrorKind::StorageFull.into()));
        assert_eq!(extended(&mut open(), half).unwrap_err().kind(), io::ErrorKind::StorageFull);
        append(open(), "- three\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "- one\n- three\n");
    }

    #[test]
    fn a_file_is_replaced_as_a_whole_and_a_link_stays() {
        let dir = tempfile::tempdir().unwrap();
        let (path, link) = (dir.path().join("file"), dir.path().join("link"));
        replace(&path, "one").unwrap();
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let (mut before, mut text) = (File::open(&path).unwrap(), String::new());
        replace(&link, "two").unwrap();
        // Who reads the old one reads all of it.
        before.read_to_string(&mut text).unwrap();
        assert_eq!((text.as_str(), fs::read_to_string(&path).unwrap().as_str()), ("one", "two"));
        fs::remove_file(&path).unwrap();
        replace(&link, "new").unwrap();
        assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        replace(Path::new("/dev/null"), "three").unwrap();
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        assert_eq!(replace(dir.path(), "four").unwrap_err().kind(), io::ErrorKind::IsADirectory);
    }
}
