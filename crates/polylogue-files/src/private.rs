//! What only its owner can read: conversations and secrets are private.

use std::fs::{DirBuilder, OpenOptions};
use std::io;
use std::path::Path;

/// Makes the folder `path` and those that it is in, readable by their owner only. An existing folder keeps its mode.
///
/// # Errors
/// When it cannot be made.
pub fn make_private_folder(path: &Path) -> io::Result<()> {
    let mut builder = DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(path)
}

/// Returns options that make new files readable by their owner only. An existing file keeps its mode.
///
/// ```
/// # fn main() -> std::io::Result<()> {
/// let path = std::env::temp_dir().join(format!("polylogue-example-{}", std::process::id()));
/// polylogue_files::private_options().write(true).create(true).truncate(true).open(&path)?;
/// # std::fs::remove_file(path)
/// # }
/// ```
pub fn private_options() -> OpenOptions {
    let mut options = OpenOptions::new();
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    options
}

#[cfg(all(test, unix))]
mod tests {
    use std::fs;
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn new_files_and_folders_are_private_and_others_keep_their_mode() {
        let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
        let dir = tempfile::tempdir().unwrap();
        let (above, folder) = (dir.path().join("a"), dir.path().join("a/b"));
        make_private_folder(&folder).unwrap();
        assert_eq!((mode(&above), mode(&folder)), (0o700, 0o700));
        let file = folder.join("file");
        let open = || private_options().write(true).create(true).truncate(false).open(&file).unwrap();
        drop(open());
        assert_eq!(mode(&file), 0o600);
        for (path, wider) in [(&folder, 0o750), (&file, 0o640)] {
            fs::set_permissions(path, fs::Permissions::from_mode(wider)).unwrap();
        }
        make_private_folder(&folder).unwrap();
        drop(open());
        assert_eq!((mode(&folder), mode(&file)), (0o750, 0o640));
    }
}
