//! The native sandbox, made of namespaces, seccomp filters and Landlock.
//!
//! It has two processes. The first is the init of a process namespace: a copy of this process that cannot be inspected from inside,
//! mounts the file system, and ends when the program does, upon which the kernel kills all remaining processes. The second becomes
//! the program.
#![allow(unsafe_code, reason = "processes are made and awaited by system calls")]

mod allowed;
mod child;
mod empty_dir;
mod filter;
mod group;
mod landlock;
mod plan;
mod socket;
mod sys;

use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use self::empty_dir::EmptyDir;
use self::group::Group;
pub(crate) use self::group::memory_obstacle;
pub(crate) use self::landlock::abi as landlock_abi;
use self::plan::{Fds, Plan};
use self::sys::Stage;
use crate::disk::WatchDisk;
use crate::error::Error;
use crate::program::{Cancellation, Program, Streams};
use crate::program_result::ExitReason;
use crate::proxy::{Allowed, Proxy};
use crate::sandbox::{Limits, Network, Sandbox};
use crate::supervise::{Running, Source, supervise};
use crate::usage::descendants;

/// Interval of checking memory and processes.
const WATCH: Duration = Duration::from_millis(50);

/// Runs `program` in the sandbox.
pub(crate) fn run(
    sandbox: &Sandbox,
    program: &Program,
    cancellation: &Cancellation,
    streams: Streams<'_>,
) -> Result<ExitReason, Error> {
    let started = Instant::now();
    let path = sandbox.path_of(program)?;
    let mut disk = WatchDisk::begin(sandbox, program)?;
    let mut plan = Plan::of(sandbox, program, &path, disk.largest_file())?;
    let (output, output_in) = pipe()?;
    let (report, report_in) = pipe()?;
    let (go_out, go) = pipe()?;
    let input = above_standard(input(streams.input)?)?;
    let proxy_socket = ProxySocket::of(&sandbox.network)?;
    plan.fds = Fds {
        input: input.as_raw_fd(),
        output: output_in.as_raw_fd(),
        report: report_in.as_raw_fd(),
        go: go_out.as_raw_fd(),
        proxy_socket: proxy_socket.as_ref().map_or(-1, |proxy_socket| proxy_socket.inside.as_raw_fd()),
    };
    // SAFETY: the child runs nothing but `child::enclose`, which allocates nothing and never returns.
    let pid = unsafe { sys::clone(plan.namespaces) };
    if pid == 0 {
        child::enclose(&plan);
    }
    // Read at once: whatever is called next may change it.
    let error = std::io::Error::last_os_error();
    // Declared before what is in it, and so dropped after.
    let group = Group::of(sandbox.limits());
    let init = Init::of(pid, &error)?;
    group.add(pid);
    drop((input, output_in, report_in, go_out));
    init.map_user(go)?;
    let proxy = proxy_socket.map(ProxySocket::open).transpose()?.flatten();

    let mut reports = Reports { pipe: report.into(), bytes: Vec::new() };
    sys::set_nonblocking(reports.pipe.as_raw_fd());
    let fd = reports.pipe.as_raw_fd();
    // Until the program is started only the sandbox uses something.
    let runs = AtomicBool::new(false);
    let mut watch = Watch { pid: init.0, sandbox, since: Instant::now(), group: &group };
    let running = Running {
        output: Source::new(output.as_raw_fd())?,
        over: Some(fd),
        quick: &mut || if runs.load(Ordering::Relaxed) { watch.look() } else { None },
        slow: &mut || {
            if runs.load(Ordering::Relaxed) { disk.look(|| descendants(init.0).processes) } else { None }
        },
        is_over: &mut || {
            let how = reports.read();
            runs.fetch_or(reports.has(Stage::Started), Ordering::Relaxed);
            how
        },
        kill: &|| init.kill(),
        sink: streams.output,
    };
    let how = supervise(running, sandbox.limits(), cancellation, started)?;
    let ran_out = group.ran_out();
    // Returns when the last process of the namespace is gone.
    drop(init);
    drop(proxy);
    reports.failure(&path)?;
    Ok(if ran_out { ExitReason::TooMuchMemory } else { disk.after(how) })
}

/// Tries the sandbox with a program that does not exist, in an empty directory: any other error is a missing feature of this
/// machine.
pub(crate) fn probe() -> Result<(), String> {
    let dir =
        EmptyDir::new().map_err(|error| format!("no empty directory can be made to try it in ({error})"))?;
    let sandbox =
        Sandbox::enclosed(dir.path()).limited(Limits { time: Duration::from_secs(20), ..Limits::default() });
    let sandbox = sandbox.placed().map_err(|error| error.to_string())?;
    let streams = Streams { input: None, output: &mut |_| {} };
    match run(&sandbox, &Program::new("/nowhere/at/all"), &Cancellation::new(), streams) {
        Err(Error::Config(_)) => Ok(()),
        Err(Error::Refused { why }) => Err(why),
        Err(error) => Err(error.to_string()),
        Ok(how) => Err(format!("the sandbox could not be made in time ({how})")),
    }
}

/// The socket of the proxy before the proxy is started.
struct ProxySocket {
    allowed: Allowed,
    inside: OwnedFd,
    outside: OwnedFd,
}

impl ProxySocket {
    fn of(network: &Network) -> Result<Option<Self>, Error> {
        let Network::Hosts(hosts) = network else { return Ok(None) };
        let allowed = Allowed::of(hosts)?;
        let pair = socket::pair().map_err(|errno| {
            Error::system("no socket can be created", std::io::Error::from_raw_os_error(errno))
        })?;
        let [inside, outside] = pair;
        Ok(Some(Self { allowed, inside: above_standard(inside)?, outside }))
    }

    /// `None` when the sandbox failed before, which it reports itself.
    fn open(self) -> Result<Option<Proxy>, Error> {
        drop(self.inside);
        let Some(listening) = socket::receive_descriptor(self.outside.as_raw_fd()) else { return Ok(None) };
        let proxy = Proxy::start(listening.into(), self.allowed);
        proxy.map(Some).map_err(|error| Error::system("no thread can be started for the proxy", error))
    }
}

/// The input of a program; empty by default.
fn input(given: Option<std::io::PipeReader>) -> Result<OwnedFd, Error> {
    if let Some(given) = given {
        return Ok(given.into());
    }
    let null = std::fs::File::open("/dev/null");
    null.map(OwnedFd::from).map_err(|error| Error::system("`/dev/null` cannot be opened", error))
}

/// A pipe whose ends are closed when a program is executed.
fn pipe() -> Result<(OwnedFd, OwnedFd), Error> {
    let (out, into) = std::io::pipe().map_err(|error| Error::system("there is no pipe", error))?;
    Ok((above_standard(out.into())?, above_standard(into.into())?))
}

/// The same file with a descriptor above those of standard input and output.
fn above_standard(fd: OwnedFd) -> Result<OwnedFd, Error> {
    let number = sys::duplicate_above(fd.as_raw_fd(), 10)
        .map_err(|error| Error::system("too many open files", error))?;
    // SAFETY: the descriptor was created just now and has no other owner.
    Ok(unsafe { OwnedFd::from_raw_fd(number) })
}

/// The first process of the sandbox. It is killed and awaited when this is dropped.
struct Init(i32);

impl Init {
    /// The process `pid`, or the `error` of creating it.
    fn of(pid: i32, error: &std::io::Error) -> Result<Self, Error> {
        if pid > 0 {
            return Ok(Self(pid));
        }
        Err(Error::Refused {
            why: format!("the kernel makes no namespaces for this user ({error}){}", sys::hint()),
        })
    }

    /// Maps the user for the kernel, and lets the process continue.
    fn map_user(&self, go: OwnedFd) -> Result<(), Error> {
        let (uid, gid) = sys::ids();
        let lines = [
            ("setgroups", "deny".to_owned()),
            ("uid_map", format!("{} {uid} 1", plan::USER)),
            ("gid_map", format!("{} {gid} 1", plan::USER)),
        ];
        for (file, line) in lines {
            let path = format!("/proc/{}/{file}", self.0);
            std::fs::write(path, line).map_err(|error| Error::Refused {
                why: format!("users cannot be mapped ({error}){}", sys::hint()),
            })?;
        }
        std::fs::File::from(go).write_all(b"!").map_err(|error| Error::system("the sandbox failed", error))
    }

    fn kill(&self) {
        sys::kill(self.0);
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        self.kill();
        sys::wait_for(self.0);
    }
}

/// The reports of the sandbox's processes: pairs of a stage and a number.
struct Reports {
    pipe: std::fs::File,
    bytes: Vec<u8>,
}

impl Reports {
    /// How the program ended, if it has.
    fn read(&mut self) -> Option<ExitReason> {
        let mut chunk = [0_u8; 64];
        loop {
            match self.pipe.read(&mut chunk) {
                // It is gone without a word: killed from outside.
                Ok(0) => return Some(self.how().unwrap_or(ExitReason::Signaled(libc::SIGKILL))),
                Ok(count) => self.bytes.extend_from_slice(chunk.get(..count).unwrap_or_default()),
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(_) => return None,
            }
        }
    }

    fn all(&self) -> impl Iterator<Item = (u32, i32)> {
        self.bytes.chunks_exact(8).filter_map(|pair| {
            let (stage, value) = pair.split_at_checked(4)?;
            Some((u32::from_ne_bytes(stage.try_into().ok()?), i32::from_ne_bytes(value.try_into().ok()?)))
        })
    }

    fn has(&self, stage: Stage) -> bool {
        self.all().any(|(other, _)| other == stage as u32)
    }

    fn how(&self) -> Option<ExitReason> {
        let (_, status) = self.all().find(|(stage, _)| *stage == Stage::ProgramResult as u32)?;
        Some(if libc::WIFSIGNALED(status) {
            ExitReason::Signaled(libc::WTERMSIG(status))
        } else {
            ExitReason::Exited(libc::WEXITSTATUS(status))
        })
    }

    /// Why the program was not started, if it was not.
    fn failure(&self, program: &std::path::Path) -> Result<(), Error> {
        let is_failure =
            |stage: &u32| *stage != Stage::Started as u32 && *stage != Stage::ProgramResult as u32;
        let Some((stage, errno)) = self.all().find(|(stage, _)| is_failure(stage)) else { return Ok(()) };
        let error = std::io::Error::from_raw_os_error(errno);
        if stage == Stage::Exec as u32 {
            return Err(Error::Config(format!(
                "`{}` cannot be run in the sandbox: {error}",
                program.display()
            )));
        }
        if stage == Stage::File as u32 {
            return Err(Error::system("a file cannot be written to the work directory", error));
        }
        let what = Stage::words(stage);
        Err(Error::Refused { why: format!("{what} failed ({error}){}", sys::hint()) })
    }
}

/// Checks memory and processes of the program periodically.
struct Watch<'a> {
    pid: i32,
    sandbox: &'a Sandbox,
    since: Instant,
    group: &'a Group,
}

impl Watch<'_> {
    /// The limit that it exceeds.
    fn look(&mut self) -> Option<ExitReason> {
        let limits = self.sandbox.limits();
        if self.since.elapsed() >= WATCH {
            let used = descendants(self.pid);
            self.since = Instant::now();
            if used.threads > limits.processes {
                return Some(ExitReason::TooManyProcesses);
            }
            if used.bytes > limits.memory_bytes || self.group.ran_out() {
                return Some(ExitReason::TooMuchMemory);
            }
        }
        None
    }
}
