//! The parts of the machine that programs in the sandbox see.

use std::path::Path;

use crate::error::Error;

/// The directories of the system, read-only, where they exist.
pub(crate) const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// Whether programs can read what is at `path` in any case.
pub(crate) fn is_of_system(path: &Path) -> bool {
    SYSTEM.iter().chain(&["/etc/alternatives"]).any(|shown| path.starts_with(shown))
}

/// Refuses a further path that would hide a directory of the sandbox.
pub(crate) fn check_visible(path: &Path) -> Result<(), Error> {
    let first = path.components().nth(1).map(|part| part.as_os_str().to_owned());
    if first.is_none_or(|first| ["proc", "sys", "dev", "work"].iter().any(|own| first == **own)) {
        return Err(Error::Config(format!(
            "`{}` cannot be shown to programs in the sandbox",
            path.display()
        )));
    }
    Ok(())
}
