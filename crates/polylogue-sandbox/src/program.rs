//! Programs, their input and output, and their cancellation.

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

/// The directories in which programs are looked up by name.
#[cfg(unix)]
pub(crate) const PATH: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// A program, its arguments, and files that are written for it.
#[derive(Debug, Clone)]
pub struct Program {
    #[cfg_attr(not(unix), allow(dead_code, reason = "nothing is run on other systems"))]
    pub(crate) command: OsString,
    pub(crate) args: Vec<OsString>,
    pub(crate) files: Vec<(PathBuf, Vec<u8>)>,
}

impl Program {
    /// Creates the program `command`: an absolute path, or a name that is looked up in the `bin` of the sandbox's virtual
    /// environment, if it has one, then in `/usr/local/bin`, `/usr/bin` and `/bin`.
    pub fn new(command: impl Into<OsString>) -> Self {
        Self { command: command.into(), args: Vec::new(), files: Vec::new() }
    }

    /// Adds an argument.
    #[must_use]
    pub fn arg(mut self, arg: impl Into<OsString>) -> Self {
        self.args.push(arg.into());
        self
    }

    /// Adds a file that is written to the work directory, or overwritten, before the program starts. Links of earlier programs are
    /// not followed.
    #[must_use]
    pub fn file(mut self, path: impl Into<PathBuf>, content: impl Into<Vec<u8>>) -> Self {
        self.files.push((path.into(), content.into()));
        self
    }
}

/// Input of a program, and the callback for its output while it runs.
pub struct Streams<'a> {
    /// The input. Default: empty.
    pub input: Option<std::io::PipeReader>,
    /// The callback for output and error output, piece by piece, in the order of writing. While it runs, no further output is
    /// read, and limits are enforced.
    pub output: &'a mut dyn FnMut(&[u8]),
}

impl std::fmt::Debug for Streams<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streams").field("input", &self.input).finish_non_exhaustive()
    }
}

/// Cancels a program from another thread. Clones share it.
#[derive(Debug, Clone, Default)]
pub struct Cancellation(Arc<AtomicBool>);

impl Cancellation {
    /// Creates a cancellation that is not requested yet.
    pub fn new() -> Self {
        Self::default()
    }

    /// Kills the program that runs with this, and every later one.
    pub fn cancel(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    #[cfg(unix)]
    pub(crate) fn is_cancelled(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }
}
