//! Symbolic links.

use std::fs;
use std::path::{Path, PathBuf};

/// The most links that are followed, as by Linux.
const MOST: usize = 40;

/// Returns the path to which `path` leads through symbolic links, also if nothing is there yet. Links of the folders above it stay. Files that belong to
/// another one, and are next to it under its name, must have the same names for all who use it.
///
/// ```
/// # #[cfg(unix)] {
/// # let dir = tempfile::tempdir().unwrap();
/// let (file, link) = (dir.path().join("real.db"), dir.path().join("link.db"));
/// std::os::unix::fs::symlink("real.db", &link).unwrap();
/// assert_eq!(polylogue_files::behind_links(&link), file);
/// assert_eq!(polylogue_files::behind_links(&file), file);
/// # }
/// ```
pub fn behind_links(path: &Path) -> PathBuf {
    let mut path = path.to_owned();
    for _ in 0..MOST {
        // A slash at the end of a link leads to what it leads to.
        let Ok(target) = fs::read_link(path.components().as_path()) else { break };
        // An absolute one replaces the whole path.
        path = path.parent().unwrap_or(Path::new("")).join(target);
    }
    path
}
