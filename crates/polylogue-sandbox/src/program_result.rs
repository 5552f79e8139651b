//! The result of a program.

use std::fmt;
use std::time::Duration;

/// The result of a program that has ended, with all processes that it started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProgramResult {
    /// The reason why it ended.
    pub how: ExitReason,
    /// The output and error output in the order of writing; any bytes.
    pub output: Vec<u8>,
    /// The running time, including the setup of the sandbox.
    pub took: Duration,
}

/// The reason why a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum ExitReason {
    /// The program exited with this code.
    Exited(i32),
    /// The program was ended by a signal from elsewhere: a crash, or the kernel's limit on the size of files.
    Signaled(i32),
    /// It was killed: it exceeded the time limit.
    TimedOut,
    /// It was killed: it wrote too much output.
    TooMuchOutput,
    /// It was killed: it used too much memory.
    TooMuchMemory,
    /// It was killed: it started too many processes.
    TooManyProcesses,
    /// It was killed: its work directory grew too large.
    TooMuchDisk,
    /// It was [cancelled](crate::Cancellation).
    Cancelled,
}

impl ExitReason {
    /// Returns the exit code in the convention of shells: 124 for a timeout, 128 plus the signal number (9 for all other limits).
    pub const fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signaled(signal) => 128 + signal,
            Self::TimedOut => 124,
            Self::TooMuchOutput
            | Self::TooMuchMemory
            | Self::TooManyProcesses
            | Self::TooMuchDisk
            | Self::Cancelled => 128 + 9,
        }
    }
}

impl fmt::Display for ExitReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "Exit code {code}"),
            // SIGXFSZ: the same number on every Unix.
            Self::Signaled(25) => f.write_str("Ended: a file grew too large"),
            Self::Signaled(signal) => write!(f, "Ended by signal {signal}"),
            Self::TimedOut => f.write_str("Timeout"),
            Self::TooMuchOutput => f.write_str("Ended: too much output"),
            Self::TooMuchMemory => f.write_str("Ended: too much memory"),
            Self::TooManyProcesses => f.write_str("Ended: too many processes"),
            Self::TooMuchDisk => f.write_str("Ended: the work directory grew too large"),
            Self::Cancelled => f.write_str("Ended: cancelled"),
        }
    }
}
