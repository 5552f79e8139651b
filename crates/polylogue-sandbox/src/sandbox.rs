//! Where and within what limits programs run.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[cfg(unix)]
use crate::engine::Engine;
use crate::error::Error;
#[cfg(unix)]
use crate::program::PATH;
use crate::work::make_work_directory;

/// Where programs run, and what they may use.
#[derive(Debug, Clone)]
pub struct Sandbox {
    work: PathBuf,
    limits: Limits,
    pub(crate) network: Network,
    pub(crate) readable: Vec<PathBuf>,
    env: Vec<(OsString, OsString)>,
    pub(crate) place: Place,
}

/// Where programs run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Place {
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
        let made = make_work_directory(&self.work).and_then(|()| self.work.canonicalize());
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
