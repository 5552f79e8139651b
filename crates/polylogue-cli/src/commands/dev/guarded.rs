//! Processes that end with this one, however it ends.

use std::ffi::OsString;
use std::os::unix::process::CommandExt as _;
use std::process::{Child, ChildStdin, Command, Stdio};

use crate::error::CliError;

/// Runs the words after the first, and sends it the signal that the first one names when the input of this shell ends: when this process
/// closes it, or is killed. Ends when the words do. It is a group of its own, so that Ctrl-C at the terminal does not reach it.
const GUARD: &str = r#"signal=$1; shift; exec 3<&0; "$@" </dev/null 3<&- & child=$!
(cat <&3 >/dev/null; kill -"$signal" "$child" 2>/dev/null) & guard=$!
exec 3<&-; wait "$child"; code=$?; kill "$guard" 2>/dev/null; exit "$code""#;

/// A process with a shell around it.
pub(super) struct Guarded {
    name: String,
    shell: Child,
    input: Option<ChildStdin>,
}

impl Guarded {
    /// Starts `words`, to be ended by `signal`.
    pub(super) fn spawn(
        name: &str,
        signal: &str,
        words: &[OsString],
        change: impl FnOnce(&mut Command),
    ) -> Result<Self, CliError> {
        let mut shell = Command::new("sh");
        shell.args(["-c", GUARD, "sh", signal]).args(words).stdin(Stdio::piped()).process_group(0);
        change(&mut shell);
        let failed = |error| CliError::failed(format!("{name} cannot be started: {error}"));
        let mut shell = shell.spawn().map_err(failed)?;
        let input = shell.stdin.take();
        Ok(Self { name: name.to_owned(), shell, input })
    }

    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Sends the signal, once.
    pub(super) fn ask_to_end(&mut self) {
        self.input = None;
    }

    /// Whether it has ended.
    pub(super) fn is_over(&mut self) -> bool {
        !matches!(self.shell.try_wait(), Ok(None))
    }
}

impl Drop for Guarded {
    /// What has not ended by then is killed.
    fn drop(&mut self) {
        self.input = None;
        if !self.is_over() {
            let group = format!("-{}", self.shell.id());
            // Where it is gone there is nothing to end.
            let _ = Command::new("kill").args(["-KILL", "--", &group]).stderr(Stdio::null()).status();
            let _ = self.shell.wait();
        }
    }
}
