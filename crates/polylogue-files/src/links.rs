//! Links to files and folders.

use std::fs;
use std::path::{Path, PathBuf};

/// Returns the file or folder that `path` leads to if it is a link, and otherwise `path`: what processes keep next to it, such as locks, has
/// the same place for all of them, by whatever name they open it.
///
/// ```
/// use std::path::Path;
///
/// assert_eq!(polylogue_files::behind_link(Path::new("no-link")), Path::new("no-link"));
/// ```
pub fn behind_link(path: &Path) -> PathBuf {
    // A slash at the end would lead to the folder behind the link.
    let name = path.components().as_path();
    match fs::symlink_metadata(name) {
        Ok(found) if found.is_symlink() => fs::canonicalize(name).unwrap_or_else(|_| path.to_owned()),
        _ => path.to_owned(),
    }
}
