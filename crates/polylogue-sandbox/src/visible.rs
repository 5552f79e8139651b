//! The parts of the machine that programs in the sandbox see.

use std::ffi::OsStr;
use std::path::{Component, Path};

use crate::error::Error;

/// The directories of the system, read-only, where they exist.
pub(crate) const SYSTEM: [&str; 9] =
    ["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store"];

/// Whether programs can read what is at `path` in any case.
pub(crate) fn is_of_system(path: &Path) -> bool {
    SYSTEM.iter().chain(&["/etc/alternatives"]).any(|shown| path.starts_with(shown))
}

/// The sandbox's own directories at its root.
const OWN: [&str; 4] = ["work", "proc", "sys", "dev"];

/// Refuses a further path that would hide a directory of the sandbox.
pub(crate) fn check_visible(path: &Path) -> Result<(), Error> {
    let first = path.components().nth(1).map(Component::as_os_str);
    let own = OWN.into_iter().find(|own| first == Some(OsStr::new(own)));
    let why = match (first, own) {
        (None, _) => "it has the sandbox's own directories".to_owned(),
        (Some(_), Some(own)) => format!("`/{own}` is the sandbox's own directory"),
        (Some(_), None) => return Ok(()),
    };
    Err(Error::Config(format!(
        "`{}` cannot be shown to programs in the sandbox: {why}\nhint: use a path that is not below `/work`, `/proc`, `/sys` or `/dev`",
        path.display()
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_below_a_directory_of_the_sandbox_is_refused_with_that_directory() {
        for (path, why) in [
            ("/work/project/.venv", "`/work` is the sandbox's own directory"),
            ("/dev/shm/.venv", "`/dev` is the sandbox's own directory"),
            ("/", "it has the sandbox's own directories"),
        ] {
            let error = check_visible(Path::new(path)).unwrap_err().to_string();
            let expected =
                format!("`{path}` cannot be shown to programs in the sandbox: {why}\nhint: use a path");
            assert!(error.starts_with(&expected), "{error}");
        }
        for path in ["/home/pat/work/.venv", "/worker/.venv"] {
            assert!(check_visible(Path::new(path)).is_ok(), "{path}");
        }
    }
}
