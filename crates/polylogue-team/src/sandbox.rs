//! The sandbox of a team's programs.

use std::collections::BTreeMap;
use std::path::Path;

use polylogue_config::types::Type;
use polylogue_config::yaml::Node;
use polylogue_config::{At, Config, Cx};
use polylogue_core::{ConfigError, Result};
use polylogue_tools::code::{Limits, Network, Sandbox, Venv};
use serde_json::Value;

use crate::diagnostic::Report;
use crate::duration::Time;
use crate::grant::Grant;
use crate::set::Set as _;
use crate::text::{HostText, PathText};

/// Sandbox in which programs run, and its limits. The defaults are the most restrictive: isolated, without network
/// access.
#[derive(Debug, Clone, Default, PartialEq, Eq, Config)]
#[config(name = "Sandbox")]
pub struct SandboxSettings {
    /// Isolation of programs: `native`, `docker`, `podman` or `none`.
    #[key(default = SandboxBackend::Native)]
    pub backend: At<SandboxBackend>,
    /// Container image for `docker` and `podman`. It must already be on the machine; it is not pulled.
    #[key(none = "the engine's Python image", nonempty)]
    pub image: Option<At<String>>,
    /// Virtual environment of Python that programs use, such as `.venv`: a path relative to the folder of this file. It is
    /// read-only, and models receive the names and versions of its packages. Paths outside of that folder, such as the
    /// interpreter of uv or pyenv, must also be allowed on the command line.
    #[key(none = "the system's Python")]
    pub python: Option<At<PythonVenv>>,
    /// Hosts that programs in the sandbox can reach, such as `example.org`, `*.example.org` or `example.org:8080`. They
    /// must also be allowed on the command line.
    #[key(as = At<Vec<HostText>>, none = "no network", unique)]
    pub network: At<Vec<String>>,
    /// Absolute paths of files and folders that programs can read besides system files and the work directory. They
    /// must also be allowed on the command line.
    #[key(as = At<Vec<At<PathText>>>, unique)]
    pub readable: At<Vec<At<String>>>,
    /// Time limit of a program, such as `30 s`. A program that runs longer is killed.
    #[key(none = "1 min")]
    pub timeout: Option<Time>,
    /// Memory limit of a program in MiB.
    #[key(none = "1024", range = 16..=1_048_576)]
    pub memory_mib: Option<u32>,
    /// Maximum size of the work directory in MiB.
    #[key(none = "1024", range = 1..=1_048_576)]
    pub disk_mib: Option<u32>,
    /// Maximum number of concurrent processes and threads.
    #[key(none = "128", range = 1..=65_536)]
    pub processes: Option<u32>,
}

/// Isolation of programs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord, Config)]
#[config(name = "SandboxBackend")]
pub enum SandboxBackend {
    /// Isolated by the kernel of this machine.
    #[default]
    Native,
    /// In Docker containers.
    Docker,
    /// In Podman containers.
    Podman,
    /// Not isolated: on this machine, with all rights of the user who runs the team. Must also be allowed on the
    /// command line.
    None,
}

impl SandboxBackend {
    /// The backend as the file names it.
    const fn word(self) -> &'static str {
        match self {
            Self::Native => "native",
            Self::Docker => "docker",
            Self::Podman => "podman",
            Self::None => "none",
        }
    }

    const fn is_container(self) -> bool {
        matches!(self, Self::Docker | Self::Podman)
    }
}

/// A virtual environment of Python, by its path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PythonVenv {
    /// The path, relative to the team file's folder.
    pub path: String,
    /// What the loader found there, or why it cannot be used.
    found: std::result::Result<Found, String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    venv: Venv,
    /// What programs read of it outside of the team file's folder and of the system.
    outside: Vec<String>,
}

impl PythonVenv {
    /// Takes what is at its path in `folder`, that of the team file.
    pub(crate) fn resolve(&mut self, folder: &Path, found: std::result::Result<Venv, String>) {
        self.found = found.map(|venv| {
            let outside = venv.outside(folder).into_iter().map(|path| path.display().to_string()).collect();
            Found { venv, outside }
        });
    }

    /// Why it cannot be used, if it cannot.
    pub(crate) fn error(&self) -> Option<&str> {
        self.found.as_ref().err().map(String::as_str)
    }
}

/// The environment is read by the loader.
impl Config for PythonVenv {
    fn ty() -> &'static Type {
        PathText::ty()
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        Self { path: PathText::read(node, cx).0, ..Self::hole() }
    }

    fn hole() -> Self {
        Self { path: String::new(), found: Err("the virtual environment was not looked for".into()) }
    }

    fn write(&self) -> Value {
        Value::String(self.path.clone())
    }
}

/// Checks.
impl SandboxSettings {
    /// Reports keys that do not fit together.
    pub(crate) fn check(&self, report: &mut Report<'_>) {
        self.check_image(report);
        let (backend, word) = (*self.backend, self.backend.word());
        if let Some(at) = self.network.given().filter(|_| backend != SandboxBackend::Native) {
            let message =
                format!("only the native sandbox lets single hosts through, not with `backend: {word}`");
            report.error_with_hint(at, message, "leave out `network`, or `backend`");
        }
        if let Some(python) = self.python.as_ref().filter(|_| backend.is_container()) {
            let message = format!("with `backend: {word}` programs use the Python of the image");
            let hint = "install the packages in the image, and leave out `python`";
            report.error_with_hint(python.key(), message, hint);
        }
        if let Some(at) = self.readable.given().filter(|_| backend == SandboxBackend::None) {
            let message = "with `backend: none` programs can read everything anyway";
            report.error_with_hint(at, message, "leave out `readable`, or `backend`");
        }
        for path in self.readable.iter().filter(|path| path.ok && !Path::new(path.as_str()).is_absolute()) {
            let hint = "write the whole path, or bring the file along with `files`";
            report.error_with_hint(&path.span, "this path must be absolute", hint);
        }
    }

    fn check_image(&self, report: &mut Report<'_>) {
        match &self.image {
            Some(image) if !self.backend.is_container() => {
                let hint = "add `backend: docker` or `backend: podman`, or leave it out";
                report.error_with_hint(image.key(), "`image` applies only to containers", hint);
            }
            Some(image) if image.ok && !is_image(image) => {
                let message = format!("`{}` is not the name of an image", image.as_str());
                report.error_with_hint(&image.span, message, "write it as `python:3.12-slim`");
            }
            None if self.backend.is_container() => {
                let hint = "add `image`, such as `image: python:3.12-slim`";
                let message = format!("`backend: {}` needs an image", self.backend.word());
                report.error_with_hint(&self.backend.span, message, hint);
            }
            _ => {}
        }
    }
}

/// Whether `text` can be the name of an image, and not an option of the engine.
#[cfg(unix)]
fn is_image(text: &str) -> bool {
    polylogue_sandbox::Engine::is_image(text)
}

#[cfg(not(unix))]
const fn is_image(_: &str) -> bool {
    true
}

/// Permissions.
impl SandboxSettings {
    /// What it asks for that has to be allowed, and what of it.
    pub(crate) fn wants(&self) -> BTreeMap<Grant, Vec<String>> {
        let mut wants = BTreeMap::new();
        if *self.backend == SandboxBackend::None {
            wants.insert(Grant::UnsafeHost, Vec::new());
        }
        for (grant, what) in
            [(Grant::Network, self.network.value.clone()), (Grant::Readable, self.wants_readable())]
        {
            if !what.is_empty() {
                wants.insert(grant, what);
            }
        }
        wants
    }

    fn wants_readable(&self) -> Vec<String> {
        let named = self.readable.iter().map(|path| path.value.clone());
        let native = self.python.as_ref().filter(|_| *self.backend == SandboxBackend::Native);
        let found = native.and_then(|python| python.found.as_ref().ok());
        named.chain(found.into_iter().flat_map(|found| found.outside.iter().cloned())).collect()
    }
}

/// Building.
impl SandboxSettings {
    /// The virtual environment of Python, if there is one.
    pub(crate) fn venv(&self) -> Option<&Venv> {
        self.python.as_ref()?.found.as_ref().ok().map(|found| &found.venv)
    }

    /// The sandbox with the work directory `dir`. Where it `is_unused`, paths that are missing are left out.
    pub(crate) fn build(&self, dir: &Path, is_unused: bool) -> Result<Sandbox> {
        let mut sandbox = self.backend(dir)?.limited(self.limits());
        sandbox = sandbox.set_if(!self.network.is_empty(), |sandbox| {
            sandbox.network(Network::Hosts(self.network.value.clone()))
        });
        let wrong = |why: String| ConfigError::invalid("the sandbox", why);
        let flawed = |error: polylogue_sandbox::Error| wrong(error.to_string());
        if let Some(venv) = self.venv() {
            sandbox = sandbox.venv(venv.clone()).map_err(flawed)?;
        }
        if is_unused {
            return Ok(sandbox);
        }
        if let Some(why) = self.python.as_ref().and_then(|python| python.error()) {
            return Err(wrong(why.to_owned()).into());
        }
        let mut paths = self.readable.iter();
        Ok(paths.try_fold(sandbox, |sandbox, path| sandbox.readable(path.as_str())).map_err(flawed)?)
    }

    fn backend(&self, dir: &Path) -> Result<Sandbox> {
        match *self.backend {
            SandboxBackend::Native => Ok(Sandbox::enclosed(dir)),
            SandboxBackend::None => Ok(Sandbox::unsafe_host(dir)),
            SandboxBackend::Docker | SandboxBackend::Podman => self.container(dir),
        }
    }

    #[cfg(unix)]
    fn container(&self, dir: &Path) -> Result<Sandbox> {
        use polylogue_sandbox::Engine;
        let image = self.image.as_ref().map(|image| image.as_str());
        let image = image.ok_or_else(|| ConfigError::missing("the container of the sandbox", "image"))?;
        let engine = match *self.backend {
            SandboxBackend::Docker => Engine::docker(image),
            _ => Engine::podman(image),
        };
        Ok(Sandbox::container(dir, engine))
    }

    #[cfg(not(unix))]
    fn container(&self, _: &Path) -> Result<Sandbox> {
        Err(ConfigError::invalid("the backend of the sandbox", "containers are supported on Unix only")
            .into())
    }

    fn limits(&self) -> Limits {
        let default = Limits::default();
        let bytes = |mib: Option<u32>, default: u64| mib.map_or(default, |mib| u64::from(mib) << 20);
        Limits {
            time: self.timeout.map_or(default.time, Into::into),
            memory_bytes: bytes(self.memory_mib, default.memory_bytes),
            disk_bytes: bytes(self.disk_mib, default.disk_bytes),
            processes: self.processes.map_or(default.processes, u64::from),
            ..default
        }
    }
}
