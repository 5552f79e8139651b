//! The result of a program.

use std::fmt;
use std::time::Duration;

/// A program that is over, and everything that it started with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ended {
    /// How it ended.
    pub how: How,
    /// What it wrote to its output and to its error output, in the order in which it did; bytes, of any kind.
    pub output: Vec<u8>,
    /// How long it ran, the making of its enclosure included.
    pub took: Duration,
}

/// How a program ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum How {
    /// By itself, with this code.
    Exited(i32),
    /// By a signal that it was not sent from here: a crash, or a limit of its own such as that on the size of files.
    Signalled(i32),
    /// It was ended: its time was up.
    TimedOut,
    /// It was ended: it wrote too much output.
    TooMuchOutput,
    /// It was ended: it used too much memory.
    TooMuchMemory,
    /// It was ended: it started too many processes.
    TooManyProcesses,
    /// It was ended: its work directory grew too large.
    TooMuchDisk,
    /// It was [cancelled](crate::Cancellation).
    Cancelled,
}

impl How {
    /// The exit code as shells tell it: 124 when time was up, 128 and the number of the signal (9 for all other limits).
    #[must_use]
    pub const fn code(self) -> i32 {
        match self {
            Self::Exited(code) => code,
            Self::Signalled(signal) => 128 + signal,
            Self::TimedOut => 124,
            Self::TooMuchOutput
            | Self::TooMuchMemory
            | Self::TooManyProcesses
            | Self::TooMuchDisk
            | Self::Cancelled => 128 + 9,
        }
    }
}

impl fmt::Display for How {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exited(code) => write!(f, "Exit code {code}"),
            // SIGXFSZ: the same number on every Unix.
            Self::Signalled(25) => f.write_str("Ended: a file grew too large"),
            Self::Signalled(signal) => write!(f, "Ended by signal {signal}"),
            Self::TimedOut => f.write_str("Timeout"),
            Self::TooMuchOutput => f.write_str("Ended: too much output"),
            Self::TooMuchMemory => f.write_str("Ended: too much memory"),
            Self::TooManyProcesses => f.write_str("Ended: too many processes"),
            Self::TooMuchDisk => f.write_str("Ended: the work directory grew too large"),
            Self::Cancelled => f.write_str("Ended: halted"),
        }
    }
}
