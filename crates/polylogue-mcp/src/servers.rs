//! All declared servers.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use futures_util::future::try_join_all;
use polylogue_core::{AnyTool, ConfigError, Result, Tool as _, UnknownName};
use polylogue_http::Proxies;

use crate::allowed::Allowed;
use crate::catalog::Catalog;
use crate::declaration::{Declaration, Document};
use crate::expand::Variables;
use crate::progress::{Progress, ProgressCallback};
use crate::server::Server;
use crate::settings::Limits;
use crate::settings::Settings;

/// The servers of an `mcpServers` document. See the [crate](crate).
///
/// Cloning shares them: a running server serves all agents and conversations with tools of the same value. Servers are
/// terminated when the last clone and the last of their tools are dropped.
#[derive(Clone)]
pub struct Servers {
    declared: BTreeMap<String, Declaration>,
    variables: Variables,
    settings: Settings,
    servers: BTreeMap<String, Arc<Server>>,
}

impl Servers {
    /// Reads a document: an object whose `mcpServers` has servers by name, each with `command` and optional `args`, `env` and
    /// `cwd`, or with `url` and optional `headers`; and optional `disabled`. `${NAME}` and `${NAME:-default}` in them are environment
    /// variables, looked up when the server starts. Other keys are ignored. Nothing is started.
    ///
    /// # Errors
    /// When the document is invalid.
    pub fn from_json(text: &str) -> Result<Self> {
        Self::with_variables(text, |name| std::env::var(name).ok())
    }

    /// Uses other variables than the environment's, such as those of a `.env` file.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn with_variables(
        text: &str,
        look_up: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self> {
        let wrong = |error: serde_json::Error| ConfigError::Invalid {
            what: "the document of MCP servers".into(),
            why: error.to_string().into(),
            hint: Some("it must be an object with `mcpServers`".into()),
        };
        let document: Document = serde_json::from_str(text).map_err(wrong)?;
        let mut declared = BTreeMap::new();
        for (name, value) in document.servers {
            let declaration =
                Declaration::of(value).map_err(|why| ConfigError::McpServer { name: name.clone(), why })?;
            declared.insert(name, declaration);
        }
        Ok(Self::of(declared, Variables::new(look_up), Settings::default()))
    }

    /// Returns the same servers, none of them started, with the variables of commands, arguments, folders and addresses looked
    /// up by `look_up`: they determine what runs and where requests go, so a file that provides keys may not be trusted with
    /// them.
    #[must_use]
    pub fn placed_by(self, look_up: impl Fn(&str) -> Option<String> + Send + Sync + 'static) -> Self {
        Self::of(self.declared, self.variables.placed_by(look_up), self.settings)
    }

    fn of(declared: BTreeMap<String, Declaration>, variables: Variables, settings: Settings) -> Self {
        let server = |(name, declaration): (&String, &Declaration)| {
            let (declaration, variables) = (declaration.clone(), variables.clone());
            let server = Server::new(name.clone(), declaration, variables, settings.clone());
            (name.clone(), Arc::new(server))
        };
        let servers = declared.iter().map(server).collect();
        Self { declared, variables, settings, servers }
    }

    /// Returns the same servers with other limits, none of them started.
    #[must_use]
    pub fn limited(self, limits: Limits) -> Self {
        Self::of(self.declared, self.variables, Settings { limits, ..self.settings })
    }

    /// Returns the same servers, none of them started, which call `callback` with the progress of calls.
    #[must_use]
    pub fn on_progress(self, callback: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        Self::of(
            self.declared,
            self.variables,
            Settings { callback: ProgressCallback::new(callback), ..self.settings },
        )
    }

    /// Returns the same servers, none of them started, reached through `proxies` instead of those of this process's environment.
    #[must_use]
    pub fn through(self, proxies: Proxies) -> Self {
        Self::of(self.declared, self.variables, Settings { proxies, ..self.settings })
    }

    /// Returns the names of the servers, in alphabetical order.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.declared.keys().map(String::as_str)
    }

    /// Returns the tools of the servers `names`, under unique names, `SERVER_TOOL`. Starts the servers that do not run, all at
    /// once.
    ///
    /// # Errors
    /// When there is no such server, or one cannot be started.
    pub async fn catalog(&self, names: impl IntoIterator<Item = &str>) -> Result<Catalog> {
        let wanted = names.into_iter().map(|name| Ok((name, self.server(name)?)));
        let wanted = wanted.collect::<Result<BTreeMap<_, _>>>()?;
        let lists = try_join_all(wanted.values().map(|server| server.tools())).await?;
        Ok(Catalog::of(&wanted, &lists))
    }

    /// Returns the tools of the servers named in `wanted` that are allowed, in the order of `wanted` and then of the servers'
    /// lists, each once; as those of their [`catalog`](Self::catalog).
    ///
    /// # Errors
    /// When there is no such server or tool, or a server cannot be started.
    pub async fn tools<'a>(
        &self,
        wanted: impl IntoIterator<Item = (&'a str, Allowed)>,
    ) -> Result<Vec<AnyTool>> {
        let wanted: Vec<_> = wanted.into_iter().collect();
        let catalog = self.catalog(wanted.iter().map(|(name, _)| *name)).await?;
        let mut given = BTreeSet::new();
        let mut tools = Vec::new();
        for (server, allowed) in &wanted {
            let allowed = catalog.tools(server, allowed)?.into_iter();
            tools.extend(allowed.filter(|tool| given.insert(tool.spec().name.clone())));
        }
        Ok(tools)
    }

    /// Terminates all running servers. Calls in flight finish first; later calls restart their server.
    pub async fn close(&self) {
        for server in self.servers.values() {
            server.close().await;
        }
    }

    fn server(&self, name: &str) -> Result<&Arc<Server>> {
        let unknown = || UnknownName::new("MCP server", name).known(self.names()).into();
        self.servers.get(name).ok_or_else(unknown)
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}
