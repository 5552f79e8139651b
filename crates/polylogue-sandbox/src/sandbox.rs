//! Where and within what limits programs run.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};
use std::time::{Duration, Instant};

#[cfg(unix)]
use crate::Engine;
use crate::{Ended, Error, Halt, How, Program, Streams};

/// Where programs run, and what they may use.
#[derive(Debug, Clone)]
pub struct Sandbox {
    work: PathBuf,
    limits: Limits,
    pub(crate) network: Network,
    pub(crate) readable: Vec<PathBuf>,
    env: Vec<(OsString, OsString)>,
    place: Place,
}

/// Where programs run.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    Enclosed,
    #[cfg(unix)]
    Container(Engine),
    Host,
}

/// What a program may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Time from start to end.
    pub time: Duration,
    /// Bytes of memory: of each process by the kernel; of all together, with what the kernel holds for them, where there is a
    /// memory controller, else as seen from time to time.
    pub memory_bytes: u64,
    /// Bytes of output.
    pub output_bytes: usize,
    /// Processes and threads at the same time.
    pub processes: u64,
    /// Bytes of one file; `disk_bytes` if that is less.
    pub file_bytes: u64,
    /// Bytes of all that is in the work directory, whatever put it there: as seen before, after, and from time to time while a
    /// program runs.
    pub disk_bytes: u64,
}

impl Limits {
    /// Bytes that one file may have: no more than all files together, which are looked at only from time to time.
    pub(crate) fn largest_file(&self) -> u64 {
        self.file_bytes.min(self.disk_bytes)
    }
}

impl Default for Limits {
    /// A minute, as AutoGen has it; 1 GiB of memory, 1 MiB of output, 128 processes and threads, 256 MiB in a file and 1 GiB in
    /// the work directory.
    fn default() -> Self {
        Self {
            time: Duration::from_secs(60),
            memory_bytes: 1 << 30,
            output_bytes: 1 << 20,
            processes: 128,
            file_bytes: 256 << 20,
            disk_bytes: 1 << 30,
        }
    }
}

/// What of the network a program sees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Network {
    /// Nothing, not even a loopback interface.
    #[default]
    None,
    /// Web servers of these names only, by a proxy that is the one thing programs can reach: `example.org` on the ports 80
    /// and 443, `example.org:8080` on that one, `*.example.org` with all below it. Programs find the proxy in the variables
    /// that most of them know (`HTTPS_PROXY` and its like). A name that leads to an address of this machine or of a private
    /// network is refused, unless what is allowed is that address, or `localhost`. For enclosed programs only.
    Hosts(Vec<String>),
    /// All that this machine sees, servers that listen on it included. In a container: what its engine gives to all.
    Host,
}

/// Where a program of the name alone is looked for.
#[cfg(unix)]
pub(crate) const PATH: [&str; 3] = ["/usr/local/bin", "/usr/bin", "/bin"];

/// How programs find the proxy that leads to the hosts they may reach. What it leads to is decided there, not here.
#[cfg(unix)]
const PROXY: [(&str, &str); 7] = [
    ("HTTP_PROXY", PROXY_URL),
    ("http_proxy", PROXY_URL),
    ("HTTPS_PROXY", PROXY_URL),
    ("https_proxy", PROXY_URL),
    ("ALL_PROXY", PROXY_URL),
    ("all_proxy", PROXY_URL),
    // Node.js uses the other proxy variables only with this setting.
    ("NODE_USE_ENV_PROXY", "1"),
];
#[cfg(unix)]
const PROXY_URL: &str = "http://127.0.0.1:3128";

impl Sandbox {
    /// Runs programs enclosed, with `work` as their work directory; it is made when the first program runs.
    ///
    /// Nothing is asked of the machine before a program is to run: what never runs code needs no enclosure.
    #[must_use]
    pub fn enclosed(work: impl Into<PathBuf>) -> Self {
        Self::at(work.into(), Place::Enclosed)
    }

    /// Runs programs with all rights of this process's user, in `work`: they may read, change and send whatever the user
    /// may. Limits are those on time and output only. To be asked for by name, and never by default.
    #[must_use]
    pub fn unsafe_host(work: impl Into<PathBuf>) -> Self {
        Self::at(work.into(), Place::Host)
    }

    /// Runs programs in containers of `engine`, with `work` as their work directory: without a network, read-only, without
    /// capabilities, within the limits. How well that holds is the engine's affair.
    #[cfg(unix)]
    #[must_use]
    pub fn container(work: impl Into<PathBuf>, engine: Engine) -> Self {
        Self::at(work.into(), Place::Container(engine))
    }

    fn at(work: PathBuf, place: Place) -> Self {
        let (limits, network) = (Limits::default(), Network::default());
        Self { work, limits, network, readable: Vec::new(), env: Vec::new(), place }
    }

    /// The same with a work directory that is there, under its real path.
    pub(crate) fn placed(&self) -> Result<Self, Error> {
        let made = crate::make_work_directory(&self.work).and_then(|()| self.work.canonicalize());
        let work = made.map_err(|error| Error::system("the work directory cannot be made", error))?;
        if work.parent().is_none() {
            return Err(Error::Config("the work directory cannot be the whole file system".into()));
        }
        Ok(Self { work, ..self.clone() })
    }

    /// Warning for the user, if any.
    #[must_use]
    pub const fn warning(&self) -> Option<&'static str> {
        match (&self.place, &self.network) {
            (Place::Host, _) => Some("code runs on this machine with all your rights: nothing encloses it"),
            (_, Network::Host) => Some("code reaches the network, and what listens on this machine"),
            (_, Network::None | Network::Hosts(_)) => None,
        }
    }

    /// Whether programs are enclosed, by this machine's kernel or in a container.
    #[must_use]
    pub const fn is_enclosed(&self) -> bool {
        !matches!(self.place, Place::Host)
    }

    /// The work directory, from outside.
    #[must_use]
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// The work directory as programs see it.
    #[must_use]
    pub fn work_inside(&self) -> &Path {
        if self.is_enclosed() { Path::new("/work") } else { &self.work }
    }

    /// What programs may use.
    #[must_use]
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Sets what programs may use.
    #[must_use]
    pub fn limited(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets what of the network programs see.
    #[must_use]
    pub fn network(self, network: Network) -> Self {
        Self { network, ..self }
    }

    /// How many bytes may still be added to the work directory by whatever writes there on behalf of programs. Without an
    /// enclosure there is no limit.
    #[must_use]
    pub fn room(&self) -> u64 {
        if self.is_enclosed() { self.limits.disk_bytes.saturating_sub(used(&self.work)) } else { u64::MAX }
    }

    /// Lets programs read a file or directory more, at its own path: an interpreter that is not in `/usr`, a virtual
    /// environment, data.
    ///
    /// # Errors
    /// When it is not there, or would show what programs have of their own.
    pub fn readable(mut self, path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let found = std::fs::canonicalize(path)
            .map_err(|error| Error::Config(format!("`{}` cannot be read: {error}", path.display())))?;
        let first = found.components().nth(1).map(|part| part.as_os_str().to_owned());
        if first.is_none_or(|first| ["proc", "sys", "dev", "work"].iter().any(|own| first == **own)) {
            return Err(Error::Config(format!("`{}` cannot be shown to enclosed programs", path.display())));
        }
        self.readable.push(found);
        Ok(self)
    }

    /// Sets a variable of the programs' environment, which is otherwise made from nothing.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// Runs `program` to its end, and blocks until it and everything that it started is dead.
    ///
    /// # Errors
    /// [`Error::Refused`] where programs cannot be enclosed; when it cannot be started. Whatever it does once it runs is no
    /// error.
    pub fn run(&self, program: &Program, halt: &Halt) -> Result<Ended, Error> {
        let started = Instant::now();
        let mut output = Vec::new();
        let streams = Streams { input: None, output: &mut |bytes| output.extend_from_slice(bytes) };
        let how = self.run_streamed(program, halt, streams)?;
        Ok(Ended { how, output, took: started.elapsed() })
    }

    /// The same, for a program that is spoken with while it runs.
    ///
    /// # Errors
    /// As [`Self::run`].
    pub fn run_streamed(&self, program: &Program, halt: &Halt, streams: Streams<'_>) -> Result<How, Error> {
        for (path, _) in &program.files {
            check_file(path)?;
        }
        let placed = self.placed()?;
        match &self.place {
            Place::Enclosed => enclosed(&placed, program, halt, streams),
            #[cfg(unix)]
            Place::Container(engine) => crate::container::run(engine, &placed, program, halt, streams),
            Place::Host => exposed(&placed, program, halt, streams),
        }
    }

    /// The program's path, which is the same inside and outside.
    #[cfg(unix)]
    pub(crate) fn path_of(program: &Program) -> Result<PathBuf, Error> {
        let command = Path::new(&program.command);
        if command.is_absolute() {
            return Ok(command.to_owned());
        }
        let found = PATH.iter().map(|dir| Path::new(dir).join(command)).find(|path| path.is_file());
        found.ok_or_else(|| {
            Error::Config(format!("there is no program `{}` in {}", command.display(), PATH.join(", ")))
        })
    }

    /// The whole environment of programs.
    #[cfg(unix)]
    pub(crate) fn environment(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let home = if self.is_enclosed() { "/tmp".into() } else { self.work.clone().into_os_string() };
        let basics: [(&str, OsString); 7] = [
            ("PATH", PATH.join(":").into()),
            ("HOME", home),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "dumb".into()),
            // Bytecode beside a program would be listed as a file it wrote.
            ("PYTHONDONTWRITEBYTECODE", "1".into()),
            ("PYTHONUNBUFFERED", "1".into()),
            ("MPLBACKEND", "Agg".into()),
        ];
        let proxy =
            matches!((&self.place, &self.network), (Place::Enclosed, Network::Hosts(_))).then_some(PROXY);
        let basics =
            basics.into_iter().chain(proxy.into_iter().flatten().map(|(name, value)| (name, value.into())));
        let is_set = |name: &str| self.env.iter().any(|(other, _)| other == name);
        let basics: Vec<(OsString, OsString)> =
            basics.filter(|(name, _)| !is_set(name)).map(|(name, value)| (name.into(), value)).collect();
        basics.into_iter().chain(self.env.iter().cloned())
    }
}

/// A file for a program is within its work directory.
fn check_file(path: &Path) -> Result<(), Error> {
    let is_plain = path.components().all(|part| matches!(part, Component::Normal(_)));
    if is_plain && path.file_name().is_some() {
        return Ok(());
    }
    Err(Error::Config(format!("`{}` is not in the work directory", path.display())))
}

#[cfg(target_os = "linux")]
use crate::disk::used;

/// Bytes of all files in `dir`. No link is followed.
#[cfg(not(target_os = "linux"))]
fn used(dir: &Path) -> u64 {
    let mut bytes = 0_u64;
    let mut open = vec![dir.to_owned()];
    while let Some(dir) = open.pop() {
        for entry in std::fs::read_dir(dir).into_iter().flatten().flatten() {
            let Ok(about) = entry.metadata() else { continue };
            bytes = bytes.saturating_add(about.len());
            if about.is_dir() {
                open.push(entry.path());
            }
        }
    }
    bytes
}

#[cfg(target_os = "linux")]
fn enclosed(sandbox: &Sandbox, program: &Program, halt: &Halt, streams: Streams<'_>) -> Result<How, Error> {
    if let Some(why) = crate::enforced::obstacle() {
        return Err(Error::Refused { why });
    }
    crate::linux::run(sandbox, program, halt, streams)
}

#[cfg(not(target_os = "linux"))]
fn enclosed(_: &Sandbox, _: &Program, _: &Halt, _: Streams<'_>) -> Result<How, Error> {
    Err(Error::Refused { why: crate::enforced::NOT_LINUX.into() })
}

#[cfg(unix)]
fn exposed(sandbox: &Sandbox, program: &Program, halt: &Halt, streams: Streams<'_>) -> Result<How, Error> {
    crate::host::run(sandbox, program, halt, streams)
}

#[cfg(not(unix))]
fn exposed(_: &Sandbox, _: &Program, _: &Halt, _: Streams<'_>) -> Result<How, Error> {
    Err(Error::Refused { why: "programs can be run on Unix only".into() })
}
