//! Files and folders that only their owner can read: conversations are private.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Creates the folder `path` and its parents, unless they exist.
pub(crate) fn make_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Options that make new files private. Existing files keep their mode.
pub(crate) fn options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}
