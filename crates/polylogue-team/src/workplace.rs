//! Where the programs of one conversation work.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::{Path, PathBuf};

use polylogue_core::{AnyTool, Error, Result};
use polylogue_mcp::Catalog;
use polylogue_tools::code::{Limits, Network, Sandbox};

use crate::build::is_work_tool;
use crate::remote::{GivenTool, McpTools};
use crate::team::Team;
use crate::working::{Grant, Place, SandboxSettings};

/// The work directory of one conversation, and what its programs may do beyond what the enclosure gives.
///
/// Each conversation has one of its own, which is the same when the conversation is resumed.
#[derive(Debug, Clone, Default)]
pub struct Workplace {
    dir: Option<PathBuf>,
    granted: BTreeSet<Grant>,
    /// Whether agents are only looked at: then nothing is asked of the machine.
    unused: bool,
    /// The tools of MCP servers.
    catalog: Option<Catalog>,
}

impl Workplace {
    /// The directory `dir`; it is made when the first program runs, or by [`Team::prepare`].
    #[must_use]
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: Some(dir.into()), ..Self::default() }
    }

    /// None: a team that runs programs cannot be built with it.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    /// For agents that are looked at, and never run.
    pub(crate) fn unused() -> Self {
        Self { dir: Some("work".into()), granted: Grant::ALL.into(), unused: true, catalog: None }
    }

    /// Gives the tools of the MCP servers that are [wanted](Team::mcp_wanted).
    #[must_use]
    pub fn with_tools(self, catalog: Catalog) -> Self {
        Self { catalog: Some(catalog), ..self }
    }

    /// The tools of an MCP server. Of agents that are looked at, those that are known.
    pub(crate) fn mcp_tools(&self, given: &McpTools) -> Result<Vec<AnyTool>> {
        let found = match &self.catalog {
            Some(catalog) => catalog.tools(&given.mcp, &given.allowed()),
            None => {
                let why =
                    format!("the tools of the MCP server `{}` are needed, which was not started", given.mcp);
                Err(Error::Config(why))
            }
        };
        found.or_else(|error| if self.unused { Ok(Vec::new()) } else { Err(error) })
    }

    /// Allows what a team file asks for.
    #[must_use]
    pub fn grant(mut self, grants: impl IntoIterator<Item = Grant>) -> Self {
        self.granted.extend(grants);
        self
    }

    /// The sandbox that `settings` describe.
    pub(crate) fn sandbox(&self, settings: &SandboxSettings) -> Result<Sandbox> {
        let dir = self.dir.as_deref().ok_or_else(|| {
            Error::Config("there is no work directory for the programs that this team runs".into())
        })?;
        for (grant, what) in settings.wants() {
            if !self.granted.contains(&grant) {
                return Err(Error::Config(refusal(grant, &what)));
            }
        }
        let mut sandbox = placed(settings, dir)?.limited(limits(settings));
        if !settings.network.is_empty() {
            sandbox = sandbox.network(Network::Hosts(settings.network.clone()));
        }
        for path in settings.readable.iter().filter(|_| !self.unused) {
            sandbox = sandbox.readable(path).map_err(|error| Error::Config(error.to_string()))?;
        }
        Ok(sandbox)
    }
}

/// Why something is not done without having been allowed.
fn refusal(grant: Grant, what: &[String]) -> String {
    let what = what.iter().map(|what| format!("`{what}`")).collect::<Vec<_>>().join(", ");
    match grant {
        Grant::UnsafeHost => {
            "this team wants to run programs with all your rights (`place: unsafe-host`), which was not allowed"
                .into()
        }
        Grant::Network => format!("the programs of this team want to reach {what}, which was not allowed"),
        Grant::Readable => format!("the programs of this team want to read {what}, which was not allowed"),
        Grant::Mcp => format!("this team wants to start the MCP servers {what}, which was not allowed"),
    }
}

fn placed(settings: &SandboxSettings, dir: &Path) -> Result<Sandbox> {
    match settings.place {
        Place::Enclosed => Ok(Sandbox::enclosed(dir)),
        Place::UnsafeHost => Ok(Sandbox::unsafe_host(dir)),
        Place::Docker | Place::Podman => contained(settings, dir),
    }
}

#[cfg(unix)]
fn contained(settings: &SandboxSettings, dir: &Path) -> Result<Sandbox> {
    use polylogue_sandbox::Engine;
    let image = settings.image.as_deref();
    let image = image.ok_or_else(|| Error::Config("a container needs an `image`".into()))?;
    let engine = if settings.place == Place::Docker { Engine::docker(image) } else { Engine::podman(image) };
    Ok(Sandbox::container(dir, engine))
}

#[cfg(not(unix))]
fn contained(_: &SandboxSettings, _: &Path) -> Result<Sandbox> {
    Err(Error::Config("containers are supported on Unix only".into()))
}

fn limits(settings: &SandboxSettings) -> Limits {
    let default = Limits::default();
    let bytes = |mib: Option<u32>, default: u64| mib.map_or(default, |mib| u64::from(mib) << 20);
    Limits {
        time: settings.time.map_or(default.time, Into::into),
        memory_bytes: bytes(settings.memory_mib, default.memory_bytes),
        disk_bytes: bytes(settings.disk_mib, default.disk_bytes),
        processes: settings.processes.map_or(default.processes, u64::from),
        ..default
    }
}

impl Team {
    /// Whether it may run programs, or work with files: then it is built at a [`Workplace`].
    #[must_use]
    pub fn needs_workplace(&self) -> bool {
        self.works() || self.teams.iter().any(|sub| sub.team.needs_workplace())
    }

    fn works(&self) -> bool {
        self.agents.iter().any(|agent| !agent.runs_code.is_off())
            || self
                .tool_names()
                .any(|tool| is_work_tool(tool) || self.commands.iter().any(|command| command.name == *tool))
    }

    /// Whether somebody has to do with the tool `name`.
    pub(crate) fn names_tool(&self, name: &str) -> bool {
        self.tool_names().any(|tool| tool == name)
    }

    fn tool_names(&self) -> impl Iterator<Item = &String> {
        let taught = self.given_tools().filter_map(GivenTool::own);
        let named = self.agents.iter().flat_map(|agent| agent.offers.iter().chain(&agent.runs));
        taught.map(|tool| &tool.tool).chain(named)
    }

    /// What the team and those within it ask for that has to be allowed, and what of it: hosts, paths, MCP servers.
    #[must_use]
    pub fn wants(&self) -> BTreeMap<Grant, Vec<String>> {
        let mut all = self.wants_of_programs();
        let declared = self.mcp_declared();
        let servers = self.mcp_wanted().into_iter().filter(|name| declared.contains_key(name));
        let servers: Vec<String> = servers.map(str::to_owned).collect();
        if !servers.is_empty() {
            all.insert(Grant::Mcp, servers);
        }
        all
    }

    fn wants_of_programs(&self) -> BTreeMap<Grant, Vec<String>> {
        let mut all = if self.works() { self.sandbox.wants() } else { BTreeMap::new() };
        for (grant, what) in self.teams.iter().flat_map(|sub| sub.team.wants_of_programs()) {
            let known: &mut Vec<String> = all.entry(grant).or_default();
            known.extend(what);
            known.dedup();
        }
        all
    }

    /// Makes the work directory `dir` with the files that the team and those within it bring along, unless it is there
    /// already.
    ///
    /// # Errors
    /// When it cannot be written.
    pub fn prepare(&self, dir: &Path) -> io::Result<()> {
        if dir.exists() {
            return Ok(());
        }
        if let Some(around) = dir.parent() {
            std::fs::create_dir_all(around)?;
        }
        // Half a directory must not be taken for a whole one.
        let mut begun = dir.as_os_str().to_owned();
        begun.push(".new");
        let begun = PathBuf::from(begun);
        if begun.exists() {
            std::fs::remove_dir_all(&begun)?;
        }
        std::fs::create_dir(&begun)?;
        self.write_files(&begun)?;
        std::fs::rename(&begun, dir)
    }

    fn write_files(&self, dir: &Path) -> io::Result<()> {
        for sub in &self.teams {
            sub.team.write_files(dir)?;
        }
        // Those of the outer team take the place of those within.
        self.files.iter().try_for_each(|file| std::fs::write(dir.join(file.name()), &file.content))
    }
}
