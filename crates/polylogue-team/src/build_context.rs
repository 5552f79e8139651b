//! Where the programs of one conversation work.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use polylogue_core::{AnyTool, ConfigError, Name, Result};
use polylogue_mcp::Catalog;
use polylogue_memory::{AnyMemory, Nothing};
use polylogue_models::Env;
use polylogue_tools::code::Sandbox;

use crate::grant::Grant;
use crate::mcp::McpTools;
use crate::rules::Rules;
use crate::sandbox::SandboxSettings;
use crate::tooling::costing;

/// The work directory of one conversation, and what its programs may do beyond what the sandbox gives.
///
/// Each conversation has one of its own, which is the same when the conversation is resumed.
#[derive(Debug, Clone, Default)]
#[must_use]
pub struct BuildContext {
    dir: Option<PathBuf>,
    /// Whether the directory is the user's own project.
    is_project: bool,
    granted: BTreeSet<Grant>,
    /// Whether the files in it follow the conversation.
    keeps_files: bool,
    purpose: Purpose,
    /// The tools of MCP servers.
    catalog: Option<Catalog>,
    /// What is remembered from one conversation to the next.
    memory: Option<AnyMemory>,
    /// Where keys and proxies are.
    env: Option<Env>,
    /// The user's rules for approvals.
    rules: Rules,
    /// Identifies the content of the team, for rules that are about it.
    content: Option<String>,
    /// What wraps the tools of the team.
    wrap: Option<Wrapper>,
}

/// What agents are built for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Purpose {
    /// To run.
    #[default]
    Run,
    /// To be looked at: nothing is asked of the machine.
    Look,
    /// The same, where MCP servers that are not known have some tools, since their calls count.
    Count,
}

/// What makes a tool of another one.
#[derive(Clone, derive_more::Debug)]
#[debug("Wrapper")]
struct Wrapper(Arc<dyn Fn(AnyTool) -> AnyTool + Send + Sync>);

impl BuildContext {
    /// Uses the directory `dir`; it is made when the first program runs, or by [`Team::prepare`](crate::Team::prepare).
    pub fn at(dir: impl Into<PathBuf>) -> Self {
        Self { dir: Some(dir.into()), ..Self::default() }
    }

    /// Uses the user's own directory `dir`, which must exist. A person is asked before a program runs in it or a file in it is
    /// changed, unless a rule of the user allows that.
    pub fn project(dir: impl Into<PathBuf>) -> Self {
        Self { dir: Some(dir.into()), is_project: true, ..Self::default() }
    }

    /// Stores the files of the directory with the conversation, after each call that may have changed them. Not those of a
    /// [project](Self::project).
    pub fn keeping_files(self) -> Self {
        Self { keeps_files: !self.is_project, ..self }
    }

    /// The directory whose files follow the conversation.
    pub(crate) fn kept_dir(&self) -> Option<&Path> {
        self.dir.as_deref().filter(|_| self.keeps_files)
    }

    pub(crate) const fn is_project(&self) -> bool {
        self.is_project
    }

    /// Uses no directory: a team that runs programs cannot be built with it.
    pub fn none() -> Self {
        Self::default()
    }

    /// For agents that are looked at, and never run.
    pub(crate) fn unused() -> Self {
        let granted = Grant::ALL.into();
        Self { dir: Some("work".into()), granted, purpose: Purpose::Look, ..Self::default() }
    }

    /// For agents whose calls are counted before they run.
    pub(crate) fn counted() -> Self {
        Self { purpose: Purpose::Count, ..Self::unused() }
    }

    /// Sets the tools of the MCP servers that are [wanted](crate::Team::mcp_wanted).
    pub fn with_tools(self, catalog: Catalog) -> Self {
        Self { catalog: Some(catalog), ..self }
    }

    /// The tools of an MCP server. Of agents that are looked at, those that are known; where calls are counted, others stand for those that
    /// are not.
    pub(crate) fn mcp_tools(&self, given: &McpTools) -> Result<Vec<AnyTool>> {
        let found = match &self.catalog {
            Some(catalog) => catalog.tools(&given.mcp, &given.allowed()),
            None => {
                let (name, why) = (given.mcp.to_string(), "was not started".to_owned());
                Err(ConfigError::McpServer { name, why }.into())
            }
        };
        let costing = |tool| self.wrapped(costing(tool, given.max_cost));
        let found = found.map(|tools| tools.into_iter().map(costing).collect());
        found.or_else(|error| match self.purpose {
            Purpose::Run => Err(error),
            Purpose::Look => Ok(Vec::new()),
            Purpose::Count => Ok(given.unknown_tools().into_iter().map(costing).collect()),
        })
    }

    /// Wraps each tool of the team, such as to count its calls or to test what follows from a result: those that agents have or run for
    /// others, those of their memory, and programs in messages. Not agents as tools, handoffs and `read_result`.
    pub fn wrapping_tools(self, wrap: impl Fn(AnyTool) -> AnyTool + Send + Sync + 'static) -> Self {
        Self { wrap: Some(Wrapper(Arc::new(wrap))), ..self }
    }

    /// `tool`, wrapped if tools are.
    pub(crate) fn wrapped(&self, tool: AnyTool) -> AnyTool {
        match &self.wrap {
            Some(Wrapper(wrap)) => wrap(tool),
            None => tool,
        }
    }

    /// Sets the memory of agents that remember beyond their conversation, of the team and of those within it.
    pub fn with_memory(self, memory: AnyMemory) -> Self {
        Self { memory: Some(memory), ..self }
    }

    /// The memory for `who`. Agents that are looked at have one that holds nothing.
    pub(crate) fn memory(&self, who: &Name) -> Result<AnyMemory> {
        match &self.memory {
            Some(memory) => Ok(memory.clone()),
            None if self.is_unused() => Ok(AnyMemory::new(Nothing)),
            None => Err(ConfigError::missing(format!("`{who}`"), "long-term memory").into()),
        }
    }

    /// Sets the user's `rules`, which decide what is asked about, before what the team says; `content` identifies the team.
    pub fn with_rules(self, rules: Rules, content: impl Into<String>) -> Self {
        Self { rules, content: Some(content.into()), ..self }
    }

    pub(crate) const fn rules(&self) -> &Rules {
        &self.rules
    }

    pub(crate) fn content(&self) -> Option<&str> {
        self.content.as_deref()
    }

    /// Sets the environment variables that hold keys and say which proxies there are; none without.
    pub fn with_env(self, env: Env) -> Self {
        Self { env: Some(env), ..self }
    }

    pub(crate) fn env(&self) -> Env {
        self.env.clone().unwrap_or_else(|| Env::of::<String, String>([]))
    }

    /// Whether agents are only looked at.
    pub(crate) fn is_unused(&self) -> bool {
        self.purpose != Purpose::Run
    }

    /// Whether `what` was allowed, if there is any.
    pub(crate) fn check(&self, grant: Grant, what: &[String]) -> Result<()> {
        if what.is_empty() || self.granted.contains(&grant) {
            return Ok(());
        }
        Err(not_granted(grant, what).into())
    }

    /// Grants a permission that the team file requests.
    pub fn grant(mut self, grants: impl IntoIterator<Item = Grant>) -> Self {
        self.granted.extend(grants);
        self
    }

    /// The sandbox that `settings` describe.
    pub(crate) fn sandbox(&self, settings: &SandboxSettings) -> Result<Sandbox> {
        let dir = self.dir.as_deref().ok_or_else(|| {
            ConfigError::missing("the team", "work directory for the programs that it runs")
        })?;
        for (grant, what) in settings.wants() {
            if !self.granted.contains(&grant) {
                return Err(not_granted(grant, &what).into());
            }
        }
        let sandbox = settings.build(dir, self.is_unused())?;
        Ok(if self.is_project { sandbox.project() } else { sandbox })
    }
}

/// The error of a team that wants `what` without permission.
fn not_granted(grant: Grant, what: &[String]) -> ConfigError {
    let what = what.iter().map(|what| format!("`{what}`")).collect::<Vec<_>>().join(", ");
    let wants = match grant {
        Grant::UnsafeHost => "this team wants to run programs with all your rights (`backend: none`)".into(),
        Grant::Network => format!("this team wants to reach {what} over the network"),
        Grant::Readable => format!("the programs of this team want to read {what}"),
        Grant::Mcp => format!("this team wants to start the MCP servers {what}"),
        Grant::Env => format!("this team wants to send the environment variables {what}"),
        Grant::Endpoints => format!("this team wants to send conversations to {what}"),
        Grant::Memory => format!("this team wants to use the memory {what}"),
        Grant::OutsideFiles | Grant::Dotenv => format!("this team wants to read {what}"),
        Grant::Prices => format!("this team wants to set the prices of {what}"),
        Grant::UnknownPrice => format!("this team wants to call {what}, whose prices are unknown"),
    };
    ConfigError::NotGranted { permission: grant.word(), wants }
}
