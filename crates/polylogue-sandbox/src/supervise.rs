//! Reading what a program writes, and ending it when it has used up what it may use.
#![allow(unsafe_code, reason = "reading with a time limit is a matter of system calls")]

use std::os::fd::RawFd;
use std::time::{Duration, Instant};

use crate::{Error, Halt, How, Limits};

/// How long the supervisor sleeps at most: how late a program may be halted.
const TICK: Duration = Duration::from_millis(20);
/// How much is read at once, in bytes.
const CHUNK: usize = 16 * 1024;

/// A descriptor that is read without waiting.
pub(crate) struct Source(RawFd);

/// A program that runs.
pub(crate) struct Running<'a> {
    /// What it writes.
    pub(crate) output: Source,
    /// What becomes readable, or closed, when it is over; without one it is asked at every tick.
    pub(crate) over: Option<RawFd>,
    /// Looks whether it uses too much.
    pub(crate) watch: &'a mut dyn FnMut() -> Option<How>,
    /// How it ended, if it did.
    pub(crate) is_over: &'a mut dyn FnMut() -> Option<How>,
    /// Ends it, and all that it started.
    pub(crate) kill: &'a dyn Fn(),
    /// Where its output goes.
    pub(crate) sink: &'a mut dyn FnMut(&[u8]),
}

enum Read {
    Nothing,
    End,
    TooMuch,
}

impl Source {
    /// # Errors
    /// When the system does not let it.
    pub(crate) fn new(fd: RawFd) -> Result<Self, Error> {
        // SAFETY: the descriptor is open; setting a flag touches no memory.
        let result = unsafe {
            let flags = libc::fcntl(fd, libc::F_GETFL);
            libc::fcntl(fd, libc::F_SETFL, flags | libc::O_NONBLOCK)
        };
        if result < 0 {
            return Err(Error::system("the output cannot be read", std::io::Error::last_os_error()));
        }
        Ok(Self(fd))
    }

    /// Hands on all there is, within what is left of `room`.
    fn read(&self, sink: &mut dyn FnMut(&[u8]), room: &mut usize) -> Read {
        let mut chunk = [0_u8; CHUNK];
        loop {
            // SAFETY: the buffer is as long as is said.
            let count = unsafe { libc::read(self.0, chunk.as_mut_ptr().cast(), chunk.len()) };
            let Ok(count) = usize::try_from(count) else {
                if std::io::Error::last_os_error().kind() == std::io::ErrorKind::Interrupted {
                    continue;
                }
                return Read::Nothing;
            };
            if count == 0 {
                return Read::End;
            }
            let fits = count.min(*room);
            sink(chunk.get(..fits).unwrap_or_default());
            *room -= fits;
            if count > fits {
                return Read::TooMuch;
            }
        }
    }
}

/// Waits for the program, and ends it if need be. How it ended.
pub(crate) fn supervise(running: Running<'_>, limits: &Limits, halt: &Halt, started: Instant) -> How {
    let mut room = limits.output_bytes;
    let mut closed = false;
    let deadline = started.checked_add(limits.time);
    let how = loop {
        wait(&running, closed, deadline);
        match running.output.read(running.sink, &mut room) {
            Read::TooMuch => break How::TooMuchOutput,
            Read::End => closed = true,
            Read::Nothing => {}
        }
        if let Some(how) = (running.is_over)() {
            // What it wrote between the last look and its end.
            let rest = running.output.read(running.sink, &mut room);
            return if matches!(rest, Read::TooMuch) { How::TooMuchOutput } else { how };
        }
        if halt.is_halted() {
            break How::Halted;
        }
        if deadline.is_some_and(|deadline| Instant::now() >= deadline) {
            break How::TimedOut;
        }
        if let Some(how) = (running.watch)() {
            break how;
        }
    };
    (running.kill)();
    running.output.read(running.sink, &mut room);
    how
}

/// Sleeps until there is something to read, the program is over, or a tick has passed.
fn wait(running: &Running<'_>, closed: bool, deadline: Option<Instant>) {
    let left = deadline.map_or(TICK, |deadline| deadline.saturating_duration_since(Instant::now()));
    let pause = TICK.min(left);
    let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
    // A negative descriptor is passed over.
    let output = if closed { -1 } else { running.output.0 };
    let mut fds = [entry(output), entry(running.over.unwrap_or(-1))];
    let pause_ms = i32::try_from(pause.as_millis()).unwrap_or(i32::MAX).max(1);
    // SAFETY: the array is as long as is said.
    unsafe { libc::poll(fds.as_mut_ptr(), 2, pause_ms) };
}
