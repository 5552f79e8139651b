//! All servers that are declared.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::sync::Arc;

use futures_util::future::try_join_all;
use polylogue_core::{AnyTool, Error, Result};
use rmcp::model::Tool as Listed;

use crate::allowed::Allowed;
use crate::declaration::{Declaration, Document};
use crate::expand::Variables;
use crate::limits::Limits;
use crate::names::name;
use crate::progress::{Progress, Teller};
use crate::server::Server;
use crate::tool::Remote;

/// The servers of an `mcpServers` document. See the [crate](crate).
///
/// Cloning shares them: a server that runs serves all agents and conversations whose tools are of the same value. They are
/// ended when the last clone and the last of their tools are dropped.
#[derive(Clone)]
pub struct Servers {
    declared: BTreeMap<String, Declaration>,
    variables: Variables,
    limits: Limits,
    teller: Teller,
    servers: BTreeMap<String, Arc<Server>>,
}

impl Servers {
    /// Reads a document: an object whose `mcpServers` holds servers by name, each with `command`, and if need be `args`,
    /// `env`, `cwd` and `disabled`. `${NAME}` and `${NAME:-otherwise}` in them are variables of the environment, looked up
    /// when the server is started. What else is in it is for other programs. Nothing is started.
    ///
    /// # Errors
    /// When it is no such document.
    pub fn from_json(text: &str) -> Result<Self> {
        Self::with_variables(text, |name| std::env::var(name).ok())
    }

    /// The same, with variables of another kind than the environment's, such as those of a `.env` file.
    ///
    /// # Errors
    /// As [`from_json`](Self::from_json).
    pub fn with_variables(
        text: &str,
        look_up: impl Fn(&str) -> Option<String> + Send + Sync + 'static,
    ) -> Result<Self> {
        let wrong =
            |error| Error::Config(format!("no list of MCP servers, an object with `mcpServers`: {error}"));
        let document: Document = serde_json::from_str(text).map_err(wrong)?;
        let mut declared = BTreeMap::new();
        for (name, value) in document.servers {
            let declaration = Declaration::of(value)
                .map_err(|why| Error::Config(format!("the MCP server `{name}` {why}")))?;
            declared.insert(name, declaration);
        }
        Ok(Self::of(declared, Variables::new(look_up), Limits::default(), Teller::NOBODY))
    }

    fn of(
        declared: BTreeMap<String, Declaration>,
        variables: Variables,
        limits: Limits,
        teller: Teller,
    ) -> Self {
        let server = |(name, declaration): (&String, &Declaration)| {
            let (declaration, variables) = (declaration.clone(), variables.clone());
            let server = Server::new(name.clone(), declaration, variables, limits, teller.clone());
            (name.clone(), Arc::new(server))
        };
        let servers = declared.iter().map(server).collect();
        Self { declared, variables, limits, teller, servers }
    }

    /// The same servers within other limits, none of them started.
    #[must_use]
    pub fn limited(self, limits: Limits) -> Self {
        Self::of(self.declared, self.variables, limits, self.teller)
    }

    /// The same servers, none of them started, of whose calls `tell` is told how far they have come, when a server says so.
    #[must_use]
    pub fn on_progress(self, tell: impl Fn(&Progress) + Send + Sync + 'static) -> Self {
        Self::of(self.declared, self.variables, self.limits, Teller::new(tell))
    }

    /// Their names, in the order of the alphabet.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.declared.keys().map(String::as_str)
    }

    /// The tools of the servers named in `wanted` that are allowed, called `SERVER_TOOL`, in the order of the servers and
    /// then of their lists, each once. Starts the servers that do not run, all at once.
    ///
    /// # Errors
    /// When there is no such server or tool, or a server cannot be started.
    pub async fn tools<'a>(
        &self,
        wanted: impl IntoIterator<Item = (&'a str, Allowed)>,
    ) -> Result<Vec<AnyTool>> {
        let wanted = wanted.into_iter().map(|(name, allowed)| Ok((self.server(name)?, allowed)));
        let wanted = wanted.collect::<Result<Vec<_>>>()?;
        let lists = try_join_all(wanted.iter().map(|(server, _)| server.tools())).await?;
        let (mut taken, mut given) = (BTreeSet::new(), BTreeSet::new());
        let mut tools = Vec::new();
        for ((server, allowed), list) in wanted.iter().zip(&lists) {
            knows(server, allowed, list)?;
            let mut is_new = |listed: &Listed| given.insert((server.name.clone(), listed.name.to_string()));
            for listed in list.iter().filter(|listed| allowed.includes(&listed.name) && is_new(listed)) {
                let name = name(&server.name, &listed.name, &mut taken);
                tools.push(AnyTool::new(Remote::new(name, Arc::clone(server), listed)));
            }
        }
        Ok(tools)
    }

    /// Ends all servers that run. Calls in flight are finished before; later ones start their server again.
    pub async fn close(&self) {
        for server in self.servers.values() {
            server.close().await;
        }
    }

    fn server(&self, name: &str) -> Result<&Arc<Server>> {
        self.servers.get(name).ok_or_else(|| {
            let names: Vec<&str> = self.names().collect();
            let names = names.join(", ");
            Error::Config(format!("there is no MCP server `{name}` among those declared: {names}"))
        })
    }
}

impl fmt::Debug for Servers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.names()).finish()
    }
}

/// A name that is allowed or forbidden and no tool's is a mistake of whoever wrote it, and may be a dangerous one.
fn knows(server: &Server, allowed: &Allowed, list: &[Listed]) -> Result<()> {
    let stranger = allowed.named().iter().find(|name| !list.iter().any(|listed| listed.name == **name));
    stranger.map_or(Ok(()), |name| {
        let names: Vec<&str> = list.iter().map(|listed| &*listed.name).collect();
        let (server, names) = (&server.name, names.join(", "));
        Err(Error::Config(format!("the MCP server `{server}` has no tool `{name}`; it has: {names}")))
    })
}
