//! Where the files of a conversation are that this process does not have.

use std::fmt;
use std::path::PathBuf;

use polylogue_core::LogId;

/// The place of the files of a conversation that this process does not have: [`Error::FilesElsewhere`](crate::Error::FilesElsewhere).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FilesPlace {
    /// This folder, which all machines share at the same path.
    Volume(PathBuf),
    /// The machine of this name.
    Machine(String),
}

impl fmt::Display for FilesPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Volume(folder) if folder.is_dir() => {
                write!(f, "in the volume `{}`, which this process does not use", folder.display())
            }
            Self::Volume(folder) => write!(f, "in the volume `{}`, which is not here", folder.display()),
            Self::Machine(host) => write!(f, "on the machine `{host}`"),
        }
    }
}

impl FilesPlace {
    /// How a process on this machine gets at them.
    pub(super) fn hint(&self, id: &LogId) -> String {
        match self {
            Self::Volume(folder) if folder.is_dir() => {
                format!("set `POLYLOGUE_FILES=volume:{}`", folder.display())
            }
            Self::Volume(folder) => format!(
                "mount it at this path, which is the same on all machines, and set `POLYLOGUE_FILES=volume:{}`",
                folder.display()
            ),
            Self::Machine(_) => format!("run `polylogue files {id}` there"),
        }
    }
}
