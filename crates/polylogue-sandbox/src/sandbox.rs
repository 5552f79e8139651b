//! The settings of a sandbox: backend, work directory, limits, network.

use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use polylogue_files::make_private_folder;

#[cfg(unix)]
use crate::engine::Engine;
use crate::error::Error;
#[cfg(unix)]
use crate::program::{PATH, Program};
use crate::venv::Venv;
use crate::visible::check_visible;

/// A sandbox in which programs run: its backend, work directory, limits and network.
#[derive(Debug, Clone)]
pub struct Sandbox {
    work: PathBuf,
    limits: Limits,
    pub(crate) network: Network,
    pub(crate) readable: Vec<PathBuf>,
    /// Links that are made for programs: from, to.
    pub(crate) links: Vec<(PathBuf, PathBuf)>,
    venv: Option<Arc<Venv>>,
    env: Vec<(OsString, OsString)>,
    /// Whether the work directory is a folder of the user's.
    is_project: bool,
    pub(crate) place: Backend,
}

/// The backend of a sandbox.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Backend {
    Enclosed,
    #[cfg(unix)]
    Container(Engine),
    Host,
}

/// Limits of a program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum time from start to end.
    pub time: Duration,
    /// Maximum memory in bytes: of each process by the kernel; of all together by a memory controller, including kernel memory,
    /// or else by periodic checks.
    pub memory_bytes: u64,
    /// Maximum output in bytes.
    pub output_bytes: usize,
    /// Maximum number of processes and threads at the same time.
    pub processes: u64,
    /// Maximum size of a file in bytes; `disk_bytes` if that is less.
    pub file_bytes: u64,
    /// Maximum size of the work directory in bytes, checked before, after, and periodically while a program runs.
    pub disk_bytes: u64,
}

impl Limits {
    /// Maximum size of a file: at most that of the work directory, which is checked only periodically.
    pub(crate) fn largest_file(&self) -> u64 {
        self.file_bytes.min(self.disk_bytes)
    }
}

impl Default for Limits {
    /// One minute, as in AutoGen; 1 GiB of memory, 1 MiB of output, 128 processes and threads, 256 MiB for a file and 1 GiB for the
    /// work directory.
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

/// Network access of a program.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Network {
    /// None, not even a loopback interface.
    #[default]
    None,
    /// Only web servers with these names, through a proxy: `example.org` at the ports 80 and 443, `example.org:8080` at that port,
    /// `*.example.org` for all subdomains. Programs find the proxy in the usual variables (`HTTPS_PROXY` and similar). A name that
    /// resolves to this machine or a private network is refused, unless that address, or `localhost`, is allowed itself. Only in the
    /// native sandbox.
    Hosts(Vec<String>),
    /// The network of this machine, including servers that listen on it. In a container: the engine's default network.
    Host,
}

/// Variables by which programs find the proxy. The proxy decides which hosts are allowed.
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
    /// Creates a native sandbox, with `work` as the work directory; it is created when the first program runs.
    ///
    /// Whether this machine supports it is only checked when a program runs.
    pub fn enclosed(work: impl Into<PathBuf>) -> Self {
        Self::at(work.into(), Backend::Enclosed)
    }

    /// Uses no sandbox: runs programs in `work` with all rights of this process's user. Only the limits on time and output
    /// apply. Never use it as a default.
    pub fn unsafe_host(work: impl Into<PathBuf>) -> Self {
        Self::at(work.into(), Backend::Host)
    }

    /// Runs programs in containers of `engine`, with `work` as the work directory: without a network, read-only, without
    /// capabilities, within the limits. The engine enforces this.
    #[cfg(unix)]
    pub fn container(work: impl Into<PathBuf>, engine: Engine) -> Self {
        Self::at(work.into(), Backend::Container(engine))
    }

    fn at(work: PathBuf, place: Backend) -> Self {
        let (limits, network) = (Limits::default(), Network::default());
        Self {
            work,
            limits,
            network,
            readable: Vec::new(),
            links: Vec::new(),
            venv: None,
            env: Vec::new(),
            is_project: false,
            place,
        }
    }

    /// The same with an existing work directory by its canonical path.
    pub(crate) fn placed(&self) -> Result<Self, Error> {
        let made = make_private_folder(&self.work).and_then(|()| self.work.canonicalize());
        let work = made.map_err(|error| Error::system("the work directory cannot be made", error))?;
        if work.parent().is_none() {
            return Err(Error::Config("the work directory cannot be the whole file system".into()));
        }
        Ok(Self { work, ..self.clone() })
    }

    /// Returns a warning for the user, if there is one.
    pub const fn warning(&self) -> Option<&'static str> {
        match (&self.place, &self.network) {
            (Backend::Host, _) => Some("code runs on this machine with all your rights: there is no sandbox"),
            (_, Network::Host) => Some("code reaches the network, and what listens on this machine"),
            (_, Network::None | Network::Hosts(_)) => None,
        }
    }

    /// Returns whether programs run in a sandbox: the native one, or a container.
    pub const fn is_enclosed(&self) -> bool {
        !matches!(self.place, Backend::Host)
    }

    /// Returns the path of the work directory outside of the sandbox.
    pub fn work(&self) -> &Path {
        &self.work
    }

    /// Returns the path of the work directory for programs.
    pub fn work_inside(&self) -> &Path {
        if self.is_enclosed() { Path::new("/work") } else { &self.work }
    }

    /// Declares the work directory a folder of the user's: a program that is written to a file only to be run is removed after it.
    #[must_use]
    pub fn project(self) -> Self {
        Self { is_project: true, ..self }
    }

    /// Returns whether the work directory is a folder of the user's.
    pub const fn is_project(&self) -> bool {
        self.is_project
    }

    /// Returns the limits.
    pub const fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Sets the limits.
    #[must_use]
    pub fn limited(self, limits: Limits) -> Self {
        Self { limits, ..self }
    }

    /// Sets the network access.
    #[must_use]
    pub fn network(self, network: Network) -> Self {
        Self { network, ..self }
    }

    /// Lets programs read another file or directory at its own path: an interpreter outside of `/usr`, a virtual environment, data.
    ///
    /// # Errors
    /// When it does not exist, or would hide a directory of the sandbox.
    pub fn readable(mut self, path: impl AsRef<Path>) -> Result<Self, Error> {
        let path = path.as_ref();
        let found = std::fs::canonicalize(path)
            .map_err(|error| Error::Config(format!("`{}` cannot be read: {error}", path.display())))?;
        check_visible(&found)?;
        self.readable.push(found);
        Ok(self)
    }

    /// Gives programs a virtual environment of Python, with its interpreter, read-only: `python3`, `python` and the other programs in
    /// its `bin` come before those of the system. Its path is the same for programs; what its `.pth` files and packages in editable mode
    /// name outside of it is not there. Without a sandbox it can be written to.
    ///
    /// # Errors
    /// For a container, whose image has the interpreter and the packages.
    pub fn venv(mut self, venv: Venv) -> Result<Self, Error> {
        #[cfg(unix)]
        if matches!(self.place, Backend::Container(_)) {
            let why = "a virtual environment of this machine is of no use in a container: install its packages in the image";
            return Err(Error::Config(why.into()));
        }
        self.readable.extend(venv.paths().map(Path::to_owned));
        self.links.extend(venv.base.links.iter().cloned());
        self.venv = Some(Arc::new(venv));
        Ok(self)
    }

    /// Returns the virtual environment of Python that programs use, if one was given.
    pub fn python(&self) -> Option<&Venv> {
        self.venv.as_deref()
    }

    /// Returns whether `path`, relative to the work directory, is a part of the virtual environment, which nothing may change.
    pub fn is_protected(&self, path: &Path) -> bool {
        let work = self.work.canonicalize();
        let path = work.as_deref().unwrap_or(&self.work).join(path);
        self.venv.iter().flat_map(|venv| venv.paths()).any(|protected| path.starts_with(protected))
    }

    /// The path of `program`, which is the same inside and outside of the sandbox.
    #[cfg(unix)]
    pub(crate) fn path_of(&self, program: &Program) -> Result<PathBuf, Error> {
        let command = Path::new(&program.command);
        if command.is_absolute() {
            return Ok(command.to_owned());
        }
        let mut paths = self.program_directories().map(|dir| dir.join(command));
        paths.find(|path| path.is_file()).ok_or_else(|| {
            let dirs: Vec<String> = self.program_directories().map(|dir| dir.display().to_string()).collect();
            Error::Config(format!("there is no program `{}` in {}", command.display(), dirs.join(", ")))
        })
    }

    /// The directories in which programs are looked up by name, in order.
    #[cfg(unix)]
    pub(crate) fn program_directories(&self) -> impl Iterator<Item = PathBuf> {
        self.venv.iter().map(|venv| venv.programs()).chain(PATH.map(PathBuf::from))
    }

    /// Sets an environment variable of programs; they inherit none.
    #[must_use]
    pub fn env(mut self, name: impl Into<OsString>, value: impl Into<OsString>) -> Self {
        self.env.push((name.into(), value.into()));
        self
    }

    /// The whole environment of programs.
    #[cfg(unix)]
    pub(crate) fn environment(&self) -> impl Iterator<Item = (OsString, OsString)> {
        let home = if self.is_enclosed() { "/tmp".into() } else { self.work.clone().into_os_string() };
        let path: Vec<OsString> = self.program_directories().map(PathBuf::into_os_string).collect();
        let basics: [(&str, OsString); 7] = [
            ("PATH", path.join(OsStr::new(":"))),
            ("HOME", home),
            ("LANG", "C.UTF-8".into()),
            ("TERM", "dumb".into()),
            // Bytecode next to a program would be listed as a file it wrote.
            ("PYTHONDONTWRITEBYTECODE", "1".into()),
            ("PYTHONUNBUFFERED", "1".into()),
            ("MPLBACKEND", "Agg".into()),
        ];
        let proxy =
            matches!((&self.place, &self.network), (Backend::Enclosed, Network::Hosts(_))).then_some(PROXY);
        let venv = self.venv.iter().map(|venv| ("VIRTUAL_ENV", venv.path().as_os_str().to_owned()));
        let basics = basics.into_iter().chain(venv);
        let basics = basics.chain(proxy.into_iter().flatten().map(|(name, value)| (name, value.into())));
        let is_set = |name: &str| self.env.iter().any(|(other, _)| other == name);
        let basics: Vec<(OsString, OsString)> =
            basics.filter(|(name, _)| !is_set(name)).map(|(name, value)| (name.into(), value)).collect();
        basics.into_iter().chain(self.env.iter().cloned())
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn a_work_directory_is_its_owners() {
        let dir = tempfile::tempdir().unwrap();
        let (above, work) = (dir.path().join("a"), dir.path().join("a/work"));
        Sandbox::enclosed(&work).placed().unwrap();
        for made in [above, work] {
            assert_eq!(made.metadata().unwrap().permissions().mode() & 0o777, 0o700, "{made:?}");
        }
    }
}
