//! Supervision of a program: reads its output, and kills it when it exceeds a limit.
//!
//! Separate threads enforce the limits, so that neither the program's output nor its reader delays them.
#![allow(unsafe_code, reason = "reading with a time limit is a matter of system calls")]

use std::os::fd::RawFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Builder;
use std::time::{Duration, Instant};

use crate::error::Error;
use crate::program::Cancellation;
use crate::program_result::ExitReason;
use crate::sandbox::Limits;

/// Maximum sleep of a supervising thread, and so the maximum delay of a cancellation.
const TICK: Duration = Duration::from_millis(20);
/// Size of one read in bytes, and maximum number of reads in a row.
const CHUNK: usize = 16 * 1024;
const CHUNKS: usize = 16;
/// Maximum number of reads after the program's end: several times the default size of a pipe.
const LAST_CHUNKS: usize = 256;

/// A descriptor that is read without blocking.
pub(crate) struct Source(RawFd);

/// A periodic check whether a program exceeds a limit.
pub(crate) type LimitCheck<'a> = &'a mut (dyn FnMut() -> Option<ExitReason> + Send);

/// A running program.
pub(crate) struct Running<'a> {
    /// Its output.
    pub(crate) output: Source,
    /// A descriptor that becomes readable, or closed, when it ends. Without one, `is_over` is polled.
    pub(crate) over: Option<RawFd>,
    /// A quick check, and one that may be slow.
    pub(crate) quick: LimitCheck<'a>,
    pub(crate) slow: LimitCheck<'a>,
    /// How it ended, if it has.
    pub(crate) is_over: &'a mut dyn FnMut() -> Option<ExitReason>,
    /// Kills it and all processes that it started.
    pub(crate) kill: &'a (dyn Fn() + Sync),
    /// The callback for its output.
    pub(crate) sink: &'a mut dyn FnMut(&[u8]),
}

enum Read {
    Nothing,
    /// There may be more.
    Some,
    End,
    TooMuch,
}

impl Source {
    /// # Errors
    /// When the descriptor cannot be made non-blocking.
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

    /// Passes available output to `sink`: at most `chunks` reads, within the `room` that is left.
    fn read(&self, sink: &mut dyn FnMut(&[u8]), room: &mut usize, chunks: usize) -> Read {
        let mut chunk = [0_u8; CHUNK];
        for _ in 0..chunks {
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
        Read::Some
    }
}

/// The shared state of the threads that supervise one program.
struct Guard<'a> {
    state: Mutex<State>,
    changed: Condvar,
    kill: &'a (dyn Fn() + Sync),
}

#[derive(Default)]
struct State {
    /// It ended by itself. Its process id may be reused, so it must not be killed any more.
    is_over: bool,
    /// Why it was killed.
    ended: Option<ExitReason>,
}

impl Guard<'_> {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Kills it because of `how`, unless it has ended.
    fn end(&self, how: ExitReason) {
        let mut state = self.state();
        if !state.is_over && state.ended.is_none() {
            state.ended = Some(how);
            (self.kill)();
        }
        self.changed.notify_all();
    }

    /// Waits at most `pause`, and returns whether it has ended.
    fn is_over_after(&self, pause: Duration) -> bool {
        let is_going = |state: &mut State| !state.is_over && state.ended.is_none();
        let waited = self.changed.wait_timeout_while(self.state(), pause, is_going);
        let (mut state, _) = waited.unwrap_or_else(PoisonError::into_inner);
        !is_going(&mut state)
    }

    /// Enforces its time limit, the limits that `look` checks, and its cancellation.
    fn keep(&self, look: LimitCheck<'_>, cancellation: &Cancellation, deadline: Option<Instant>) {
        let left = || deadline.map_or(TICK, |deadline| deadline.saturating_duration_since(Instant::now()));
        while !self.is_over_after(TICK.min(left())) {
            let is_late = deadline.is_some_and(|deadline| Instant::now() >= deadline);
            let how = if cancellation.is_cancelled() {
                Some(ExitReason::Cancelled)
            } else {
                is_late.then_some(ExitReason::TimedOut)
            };
            if let Some(how) = how.or_else(&mut *look) {
                self.end(how);
            }
        }
    }

    /// Enforces the limits that `look` checks, which may be slow.
    fn keep_slowly(&self, look: LimitCheck<'_>) {
        while !self.is_over_after(TICK) {
            if let Some(how) = look() {
                self.end(how);
            }
        }
    }
}

/// Ends the threads when it is dropped.
struct EndOnDrop<'a>(&'a Guard<'a>);

impl Drop for EndOnDrop<'_> {
    fn drop(&mut self) {
        self.0.state().is_over = true;
        self.0.changed.notify_all();
    }
}

/// Waits for the program, kills it if it exceeds a limit, and returns how it ended.
///
/// # Errors
/// When the threads cannot be started; the program is then killed.
pub(crate) fn supervise(
    running: Running<'_>,
    limits: &Limits,
    cancellation: &Cancellation,
    started: Instant,
) -> Result<ExitReason, Error> {
    let Running { output, over, quick, slow, is_over, kill, sink } = running;
    let guard = Guard { state: Mutex::default(), changed: Condvar::new(), kill };
    let deadline = started.checked_add(limits.time);
    let reading = Reading { output, over, room: limits.output_bytes, closed: false };
    std::thread::scope(|scope| {
        let _over = EndOnDrop(&guard);
        let thread = || Builder::new().name("polylogue-guard".into());
        let begun = thread()
            .spawn_scoped(scope, || guard.keep(quick, cancellation, deadline))
            .and_then(|_| thread().spawn_scoped(scope, || guard.keep_slowly(slow)));
        if let Err(error) = begun {
            kill();
            return Err(Error::system("no thread can be started to supervise the program", error));
        }
        Ok(reading.until_the_end(&guard, is_over, sink))
    })
}

/// The reader of the output.
struct Reading {
    output: Source,
    over: Option<RawFd>,
    room: usize,
    closed: bool,
}

impl Reading {
    fn until_the_end(
        mut self,
        guard: &Guard<'_>,
        is_over: &mut dyn FnMut() -> Option<ExitReason>,
        sink: &mut dyn FnMut(&[u8]),
    ) -> ExitReason {
        loop {
            self.wait();
            match self.output.read(sink, &mut self.room, CHUNKS) {
                Read::TooMuch => guard.end(ExitReason::TooMuchOutput),
                Read::End => self.closed = true,
                Read::Nothing | Read::Some => {}
            }
            // While the state is held nothing is killed that the system may forget now.
            let mut state = guard.state();
            let by_itself = if state.ended.is_none() { is_over() } else { None };
            state.is_over = by_itself.is_some();
            let how = state.ended.or(by_itself);
            drop(state);
            if let Some(how) = how {
                // What it wrote between the last look and its end.
                let rest = self.output.read(sink, &mut self.room, LAST_CHUNKS);
                let was_ended = by_itself.is_none();
                return if matches!(rest, Read::TooMuch) && !was_ended {
                    ExitReason::TooMuchOutput
                } else {
                    how
                };
            }
        }
    }

    /// Sleeps until there is output, the program ends, or a tick has passed.
    fn wait(&self) {
        let entry = |fd| libc::pollfd { fd, events: libc::POLLIN, revents: 0 };
        // A negative descriptor is passed over.
        let output = if self.closed { -1 } else { self.output.0 };
        let mut fds = [entry(output), entry(self.over.unwrap_or(-1))];
        let pause_ms = i32::try_from(TICK.as_millis()).unwrap_or(i32::MAX).max(1);
        // SAFETY: the array is as long as is said.
        unsafe { libc::poll(fds.as_mut_ptr(), 2, pause_ms) };
    }
}
