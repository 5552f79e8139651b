//! The files that teams are read from.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::str::Utf8Error;

use crate::codes;
use crate::diagnostic::{Diagnostics, Report};
use crate::masking::hide_words;
use crate::source::Source;
use crate::suggest;
use polylogue_core::Media;
use polylogue_tools::code::Venv;

/// The largest team file, in bytes.
const MAX_BYTES: u64 = 4 << 20;

/// Why a file cannot be read that is not there.
pub(super) const MISSING: &str = "the file does not exist";

/// Where files come from.
pub(super) trait Files {
    fn read(&self, path: &Path) -> Result<Vec<u8>, Unreadable>;
    /// A picture, sound or document of at most `most` bytes.
    fn read_media(&self, path: &Path, most: u64) -> Result<Vec<u8>, Unreadable>;
    /// What is in a folder, and whether it is a folder itself.
    fn list(&self, folder: &Path) -> Result<Vec<(String, bool)>, Unreadable>;
    /// The same for all ways of naming the same file.
    fn identity(&self, path: &Path) -> PathBuf;
    /// The virtual environment of Python at `path`.
    fn venv(&self, path: &Path) -> Result<Venv, String> {
        Venv::open(path).map_err(|error| error.to_string())
    }
    /// Whether they are those of a stored team: what is missing on this machine then shows when the team runs.
    fn is_stored(&self) -> bool {
        false
    }
    /// The whole path.
    fn absolute(&self, path: &Path) -> PathBuf {
        std::path::absolute(path).unwrap_or_else(|_| path.to_owned())
    }
}

/// Why a file cannot be read, and what to do about it.
pub(super) struct Unreadable {
    pub(super) why: String,
    pub(super) hint: Option<String>,
}

/// The disk.
pub(super) struct OnDisk;

impl Files for OnDisk {
    fn read(&self, path: &Path) -> Result<Vec<u8>, Unreadable> {
        read_up_to(MAX_BYTES, path)?.ok_or_else(|| Unreadable {
            why: format!("it is larger than {} MiB", MAX_BYTES >> 20),
            hint: Some("a team file holds a few pages; is this another file?".to_owned()),
        })
    }

    fn read_media(&self, path: &Path, most: u64) -> Result<Vec<u8>, Unreadable> {
        read_up_to(most, path)?.ok_or_else(|| Unreadable {
            why: format!("all that a team attaches has {} MiB at most", Media::MAX_BYTES >> 20),
            hint: Some("make it smaller, or give its address on the web as `url`".to_owned()),
        })
    }

    fn list(&self, folder: &Path) -> Result<Vec<(String, bool)>, Unreadable> {
        const MOST: usize = 10_000;
        let wrong = |error: io::Error| Unreadable { why: error.to_string(), hint: None };
        let mut found = Vec::new();
        for (count, entry) in fs::read_dir(folder).map_err(wrong)?.enumerate() {
            // Which ones come first is by chance.
            if count >= MOST {
                return Err(Unreadable { why: format!("a folder has more than {MOST} files"), hint: None });
            }
            let entry = entry.map_err(wrong)?;
            // A link to a folder could lead back.
            let is_folder = entry.file_type().map_err(wrong)?.is_dir();
            if let Ok(name) = entry.file_name().into_string() {
                found.push((name, is_folder));
            }
        }
        Ok(found)
    }

    fn identity(&self, path: &Path) -> PathBuf {
        fs::canonicalize(path).unwrap_or_else(|_| path.to_owned())
    }
}

/// The content of a file; `None` if it is larger than `most` bytes.
fn read_up_to(most: u64, path: &Path) -> Result<Option<Vec<u8>>, Unreadable> {
    let mut bytes = Vec::new();
    match open(path).and_then(|file| file.take(most + 1).read_to_end(&mut bytes)) {
        Ok(_) => Ok((bytes.len() as u64 <= most).then_some(bytes)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Err(Unreadable { why: MISSING.to_owned(), hint: neighbor(path) })
        }
        Err(error) => Err(Unreadable { why: error.to_string(), hint: None }),
    }
}

/// Opens a regular file: opening a pipe would wait for its writer.
fn open(path: &Path) -> io::Result<File> {
    if fs::metadata(path)?.is_file() { File::open(path) } else { Err(io::Error::other("it is not a file")) }
}

/// A file in the same folder that may be meant.
fn neighbor(path: &Path) -> Option<String> {
    const LOOKED_AT: usize = 1000;
    let given = path.file_name()?.to_str()?;
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let entries = fs::read_dir(folder).ok()?.take(LOOKED_AT).flatten();
    let names: Vec<String> = entries.filter_map(|entry| entry.file_name().into_string().ok()).collect();
    let mut teams = names.iter().map(String::as_str).filter(|name| {
        Path::new(name)
            .extension()
            .is_some_and(|extension| ["yaml", "yml", "json"].iter().any(|e| extension == *e))
    });
    // The extension, which all have, would make other names near.
    let meant = suggest::closest(stem(given), teams.clone().map(stem))?;
    let found = teams.find(|name| stem(name) == meant)?;
    Some(format!("did you mean `{}`?", path.with_file_name(found).display()))
}

/// The name of a file without its extension.
fn stem(name: &str) -> &str {
    Path::new(name).file_stem().and_then(|stem| stem.to_str()).unwrap_or_default()
}

/// None: a text that stands alone can name no files.
pub(super) struct NoFiles;

impl Files for NoFiles {
    fn read(&self, _: &Path) -> Result<Vec<u8>, Unreadable> {
        let hint = "a team that was not read from a file cannot name files of further teams";
        Err(Unreadable { why: "files are not read here".to_owned(), hint: Some(hint.to_owned()) })
    }

    fn read_media(&self, _: &Path, _: u64) -> Result<Vec<u8>, Unreadable> {
        let hint = "a team that was not read from a file attaches addresses: `{type: ..., url: ...}`";
        Err(Unreadable { why: "files are not read here".to_owned(), hint: Some(hint.to_owned()) })
    }

    fn list(&self, folder: &Path) -> Result<Vec<(String, bool)>, Unreadable> {
        self.read(folder).map(|_| Vec::new())
    }

    fn venv(&self, path: &Path) -> Result<Venv, String> {
        self.read(path).map_or_else(|Unreadable { why, .. }| Err(why), |_| Err("it is not a folder".into()))
    }

    fn identity(&self, path: &Path) -> PathBuf {
        path.to_owned()
    }
}

/// The disk below one folder, for a text whose author may read nothing else of this machine.
pub(super) struct BelowFolder {
    /// Without links.
    folder: PathBuf,
    /// Files in it that the author may not read. Without links.
    hidden: Vec<PathBuf>,
}

impl BelowFolder {
    /// The folder of the file at `path` without the files `hidden`; none if it does not exist.
    pub(super) fn of(path: &Path, hidden: &[PathBuf]) -> Option<Self> {
        let folder = std::path::absolute(path).ok()?.parent().map(fs::canonicalize)?.ok()?;
        let hidden = hidden.iter().filter_map(|file| fs::canonicalize(file).ok()).collect();
        Some(Self { folder, hidden })
    }

    /// Refuses what is outside, whether it exists or not, and what is hidden as if it did not exist.
    fn check(&self, path: &Path) -> Result<(), Unreadable> {
        let parent = || {
            let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty());
            fs::canonicalize(parent.unwrap_or(Path::new(".")))
        };
        match fs::canonicalize(path).or_else(|_| parent()) {
            Ok(found) if self.hidden.contains(&found) => {
                Err(Unreadable { why: MISSING.to_owned(), hint: None })
            }
            Ok(found) if found.starts_with(&self.folder) => Ok(()),
            _ => Err(Unreadable {
                why: "it is not in the folder of the team file".to_owned(),
                hint: Some("only files in that folder are read here".to_owned()),
            }),
        }
    }

    /// The same error without a hint if that could name a hidden file.
    fn without_names(&self, error: Unreadable) -> Unreadable {
        if self.hidden.is_empty() { error } else { Unreadable { hint: None, ..error } }
    }
}

impl Files for BelowFolder {
    fn read(&self, path: &Path) -> Result<Vec<u8>, Unreadable> {
        self.check(path).and_then(|()| OnDisk.read(path)).map_err(|error| self.without_names(error))
    }

    fn read_media(&self, path: &Path, most: u64) -> Result<Vec<u8>, Unreadable> {
        let bytes = self.check(path).and_then(|()| OnDisk.read_media(path, most));
        bytes.map_err(|error| self.without_names(error))
    }

    fn list(&self, folder: &Path) -> Result<Vec<(String, bool)>, Unreadable> {
        let mut found = self.check(folder).and_then(|()| OnDisk.list(folder))?;
        let is_hidden =
            |name: &str| fs::canonicalize(folder.join(name)).is_ok_and(|file| self.hidden.contains(&file));
        found.retain(|(name, _)| self.hidden.is_empty() || !is_hidden(name));
        Ok(found)
    }

    fn venv(&self, path: &Path) -> Result<Venv, String> {
        self.check(path).map_err(|Unreadable { why, .. }| why).and_then(|()| OnDisk.venv(path))
    }

    fn identity(&self, path: &Path) -> PathBuf {
        OnDisk.identity(path)
    }
}

/// Where a file stops being text.
pub(super) fn not_utf8(bytes: &[u8], error: &Utf8Error, shown: &str) -> Diagnostics {
    let good = error.valid_up_to();
    let line_end =
        bytes.iter().skip(good).position(|byte| *byte == b'\n').map_or(bytes.len(), |at| good + at);
    let text = String::from_utf8_lossy(bytes.get(..line_end).unwrap_or(bytes));
    let source = Source::new(shown, &text);
    hide_words(&source);
    let mut report = Report::new(&source);
    let bom = text.len() - source.text.len();
    let at = good.saturating_sub(bom);
    let utf16 = bytes.starts_with(&[0xff, 0xfe]) || bytes.starts_with(&[0xfe, 0xff]);
    let hint = if utf16 { "it looks like UTF-16: save it as UTF-8" } else { "save the file as UTF-8" };
    report.code(codes::FILE).error_with_hint(
        &(at..at + '\u{fffd}'.len_utf8()),
        "this is not valid UTF-8",
        hint,
    );
    report.finish()
}
