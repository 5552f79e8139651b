//! What a team is made of: the content of all files that were read.

use std::cell::RefCell;
use std::path::{Component, Path, PathBuf};

/// The files that were read, as one digest.
#[derive(Default)]
pub(super) struct Contents {
    /// The folder of the outermost team file, as the caller names it.
    folder: PathBuf,
    all: RefCell<blake3::Hasher>,
}

impl Contents {
    /// Begins with the outermost team file.
    pub(super) fn of(path: &Path, text: &str) -> Self {
        let folder = path.parent().unwrap_or(Path::new("")).to_owned();
        let contents = Self { folder, ..Self::default() };
        contents.add("", text.as_bytes());
        contents
    }

    /// The folder of the outermost team file.
    pub(super) fn folder(&self) -> &Path {
        &self.folder
    }

    /// Adds a file, under its name seen from the folder: a team is the same wherever it is.
    pub(super) fn note(&self, path: &Path, bytes: &[u8]) {
        let below = path.strip_prefix(&self.folder).unwrap_or(path);
        let plain: PathBuf = below.components().filter(|part| *part != Component::CurDir).collect();
        self.add(&plain.to_string_lossy(), bytes);
    }

    fn add(&self, name: &str, bytes: &[u8]) {
        let mut all = self.all.borrow_mut();
        for part in [name.as_bytes(), bytes] {
            all.update(&(part.len() as u64).to_le_bytes()).update(part);
        }
    }

    /// Identifies all of it.
    pub(super) fn digest(&self) -> String {
        self.all.borrow().finalize().to_hex().to_string()
    }
}

/// Whether the name of a file leads out of `folder`.
pub(super) fn leads_out(folder: &Path, path: &Path) -> bool {
    let Ok(below) = path.strip_prefix(folder) else { return true };
    let mut depth = 0_usize;
    for part in below.components() {
        match part {
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
            Component::ParentDir if depth > 0 => depth -= 1,
            _ => return true,
        }
    }
    false
}
