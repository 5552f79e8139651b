//! What a team file asks of the user's machine, keys and network: nothing of it is given unless the user allows it.

use std::collections::{BTreeMap, BTreeSet};

use polylogue_models::{Day, Prices, Provider};

use super::Team;
use super::reach::{sent, shown_host};
use crate::grant::Grant;
use crate::mcp::McpServer;

/// How a team is used, as far as that decides which permissions it requests.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Usage {
    /// Whether no real model is called: then nothing is sent to endpoints.
    pub offline: bool,
    /// MCP servers that the user declares: those of the team file with these names are not used.
    pub own_servers: BTreeSet<String>,
    /// The user's own prices, which count instead of list prices.
    pub prices: Prices,
}

/// What is asked for, by permission.
type RequestedPermissions = BTreeMap<Grant, Vec<String>>;

impl Team {
    /// Lists the permissions that the team and those within it need, and for what: programs, hosts, also those that providers of
    /// models reach for it, paths, MCP servers, addresses of models, environment variables. [Memory](Self::memory_scopes) is apart: only its user knows who wrote it.
    pub fn wants(&self) -> BTreeMap<Grant, Vec<String>> {
        self.wants_of(&Usage::default())
    }

    /// Lists the permissions of a team that is run in the way `usage` says.
    pub fn wants_of(&self, usage: &Usage) -> BTreeMap<Grant, Vec<String>> {
        let mut all = self.wants_of_tools();
        self.add_servers(usage, &mut all);
        if !usage.offline {
            self.add_endpoints(&mut all);
            let reached = self.reached_by_providers();
            if !reached.is_empty() {
                all.entry(Grant::Network).or_default().extend(reached);
            }
            let files = self.outside_model_files();
            if !files.is_empty() {
                all.entry(Grant::Readable).or_default().extend(files);
            }
            let lower = self.lower_prices(&usage.prices);
            if !lower.is_empty() {
                all.insert(Grant::Prices, lower);
            }
        }
        for what in all.values_mut() {
            let mut seen = BTreeSet::new();
            what.retain(|one| seen.insert(one.clone()));
        }
        all
    }

    /// Lists the permissions that the endpoint `name` of the team needs when its models are called.
    pub fn wants_of_endpoint(&self, name: &str) -> BTreeMap<Grant, Vec<String>> {
        let mut all = RequestedPermissions::new();
        let Some((_, endpoint)) = self.endpoint_called(name) else { return all };
        let given = endpoint.base_url.as_deref();
        // A provider's own address and its own key are what the user has them for.
        let provider = match given {
            Some(url) => Provider::all().iter().find(|provider| provider.is_at(url)),
            None => Provider::find(name),
        };
        if let (Some(url), None) = (given, provider) {
            all.entry(Grant::Endpoints).or_default().push(url.to_owned());
        }
        let own = provider.map(Provider::key_variables).unwrap_or_default();
        let to = given.map_or_else(|| name.to_owned(), shown_host);
        for variable in endpoint.variables().filter(|variable| !own.contains(variable)) {
            all.entry(Grant::Env).or_default().push(sent(variable, &to));
        }
        all
    }

    /// The models that the team uses and says cost less than they do today by `prices`, or else by their list prices.
    fn lower_prices(&self, prices: &Prices) -> Vec<String> {
        let today = Day::today();
        let vectors = self.embedding_model();
        let own = self.own_prices();
        if own.is_empty() {
            return Vec::new();
        }
        let is_lower = |name: &&str| {
            let Some((provider, model)) = name.split_once([':', '/']) else { return false };
            let (provider, model) = (provider.trim(), model.trim());
            let given = self.endpoint_of(name).and_then(|(_, endpoint)| endpoint.base_url.as_deref());
            let list = match given {
                Some(url) => prices.at(provider, url, model, today),
                None => prices.of(provider, model, today),
            };
            list.is_some_and(|list| own.may_be_below(&list, provider, model))
        };
        self.models().into_iter().chain(vectors).filter(is_lower).map(str::to_owned).collect()
    }

    fn add_endpoints(&self, all: &mut RequestedPermissions) {
        let vectors = self.embedding_model();
        let models = self.models().into_iter().chain(vectors);
        let used: BTreeSet<&str> =
            models.filter_map(|model| self.endpoint_of(model)).map(|(name, _)| name).collect();
        for name in used {
            for (grant, what) in self.wants_of_endpoint(name) {
                all.entry(grant).or_default().extend(what);
            }
        }
    }

    fn add_servers(&self, usage: &Usage, all: &mut RequestedPermissions) {
        let wanted = self.mcp_wanted();
        let used = |name: &str| wanted.contains(name) && !usage.own_servers.contains(name);
        for (name, server) in self.mcp_declared().into_iter().filter(|(name, _)| used(name)) {
            all.entry(Grant::Mcp).or_default().push(described(name, server));
            let to = format!("the MCP server {name}");
            let variables = server.variables();
            if !variables.is_empty() {
                let sent = variables.into_iter().map(|variable| sent(variable, &to));
                all.entry(Grant::Env).or_default().extend(sent);
            }
        }
    }

    fn wants_of_tools(&self) -> RequestedPermissions {
        let mut all = if self.works() { self.sandbox.wants() } else { BTreeMap::new() };
        if let Some(what) = all.get_mut(&Grant::UnsafeHost) {
            *what = self.programs_in_words();
        }
        let reached = [self.reached_by_web(), self.reached_by_calls()].concat();
        if !reached.is_empty() {
            all.entry(Grant::Network).or_default().extend(reached);
        }
        let sent = [self.sent_by_search(), self.sent_by_calls()].concat();
        if !sent.is_empty() {
            all.entry(Grant::Env).or_default().extend(sent);
        }
        for (grant, what) in self.teams.iter().flat_map(|sub| sub.team.wants_of_tools()) {
            all.entry(grant).or_default().extend(what);
        }
        all
    }

    /// What runs without a sandbox.
    fn programs_in_words(&self) -> Vec<String> {
        let commands = self.commands.iter().filter(|command| self.names_tool(&command.name));
        let commands =
            commands.map(|command| format!("the command {}: {}", command.name, command.in_words()));
        let tools = ["python", "shell", "javascript", "python_session"].into_iter();
        let tools = tools.filter(|tool| self.names_tool(tool));
        let tools = tools.map(|tool| format!("the tool {tool}: programs that models write"));
        let coders = self.agents.iter().filter(|agent| agent.code_execution.on().is_some());
        let coders = coders.map(|agent| format!("code in messages, run by {}", agent.name));
        commands.chain(tools).chain(coders).collect()
    }
}

/// A server: its command and the folder it runs in, or its address.
fn described(name: &str, server: &McpServer) -> String {
    let folder = server.cwd.as_deref().filter(|_| server.command.is_some());
    let folder = folder.map(|folder| format!(" (in {folder})")).unwrap_or_default();
    format!("{name}: {}{folder}", server.in_words())
}
