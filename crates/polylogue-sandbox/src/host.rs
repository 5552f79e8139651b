//! Supervised processes without a native sandbox: on the host, or the client of a container engine.
#![allow(unsafe_code, reason = "a whole group of processes is ended by a system call")]

#[cfg(target_os = "linux")]
use std::os::fd::FromRawFd;
use std::os::fd::{AsRawFd, OwnedFd};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::process::{Command, Stdio};
use std::time::Instant;

use crate::error::Error;
use crate::files;
use crate::program::{Cancellation, Program, Streams};
use crate::program_result::ExitReason;
use crate::sandbox::Sandbox;
use crate::supervise::{LimitCheck, Running, Source, supervise};

/// Runs `program` with all rights of the user.
pub(crate) fn run(
    sandbox: &Sandbox,
    program: &Program,
    cancellation: &Cancellation,
    streams: Streams<'_>,
) -> Result<ExitReason, Error> {
    files::write(sandbox.work(), &program.files)?;
    let mut command = Command::new(sandbox.path_of(program)?);
    command.args(&program.args).current_dir(sandbox.work()).env_clear().envs(sandbox.environment());
    let watched = Watched { sandbox, cancellation, slow: &mut || None, end: &|| {} };
    supervised(command, streams, watched)
}

/// How a process is supervised and killed.
pub(crate) struct Watched<'a> {
    pub(crate) sandbox: &'a Sandbox,
    pub(crate) cancellation: &'a Cancellation,
    /// Checks its limits.
    pub(crate) slow: LimitCheck<'a>,
    /// Kills processes that it did not start itself, after it was killed.
    pub(crate) end: &'a (dyn Fn() + Sync),
}

/// Runs `command` in a separate process group, which is killed at the end.
pub(crate) fn supervised(
    mut command: Command,
    streams: Streams<'_>,
    watched: Watched<'_>,
) -> Result<ExitReason, Error> {
    let started = Instant::now();
    let piped = |error| Error::system("no pipe can be created for the output", error);
    let (output, input) = std::io::pipe().map_err(piped)?;
    let source = Source::new(output.as_raw_fd())?;
    command
        .stdin(streams.input.map_or_else(Stdio::null, Stdio::from))
        .stdout(input.try_clone().map_err(piped)?)
        .stderr(input)
        .process_group(0);
    let mut child = command.spawn().map_err(|error| Error::system("the program cannot be started", error))?;
    // It holds the other end of the pipe.
    drop(command);
    let pid = i32::try_from(child.id()).unwrap_or(i32::MAX);
    let kill = || {
        // SAFETY: the group is that of the child, and a call on numbers touches no memory.
        unsafe { libc::kill(-pid, libc::SIGKILL) };
    };
    let kill_all = || {
        kill();
        (watched.end)();
    };
    let mut is_over =
        || {
            let status = child.try_wait().ok().flatten()?;
            Some(status.code().map_or_else(
                || ExitReason::Signaled(status.signal().unwrap_or_default()),
                ExitReason::Exited,
            ))
        };
    let ends = end_of(pid);
    let running = Running {
        output: source,
        over: ends.as_ref().map(AsRawFd::as_raw_fd),
        quick: &mut || None,
        slow: watched.slow,
        is_over: &mut is_over,
        kill: &kill_all,
        sink: streams.output,
    };
    let how = supervise(running, watched.sandbox.limits(), watched.cancellation, started);
    // What it left behind in its group goes, too.
    kill();
    drop(child.wait());
    how
}

/// A descriptor that becomes readable when the process ends.
#[cfg(target_os = "linux")]
fn end_of(pid: i32) -> Option<OwnedFd> {
    // SAFETY: a call on numbers.
    let fd = unsafe { libc::syscall(libc::SYS_pidfd_open, pid, 0) };
    let fd = i32::try_from(fd).ok().filter(|fd| *fd >= 0)?;
    // SAFETY: it was opened just now and has no other owner.
    Some(unsafe { OwnedFd::from_raw_fd(fd) })
}

/// Elsewhere its state is polled.
#[cfg(not(target_os = "linux"))]
fn end_of(_: i32) -> Option<OwnedFd> {
    None
}
