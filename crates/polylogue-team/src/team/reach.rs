//! Hosts that the tools of a team, and the providers of its models, reach for it, and environment variables that they send.

use std::collections::{BTreeMap, BTreeSet};

use polylogue_http::host_of;
use polylogue_tools::http::Header;
use polylogue_tools::openapi::Operation;
use serde_json::Value;

use super::Team;
use crate::web::{FETCH, SEARCH, SearchEngine};

/// Extra fields of requests that let a provider use its own tools, or connect to servers.
const TOOLS_OF_PROVIDERS: [&str; 11] = [
    "connectors", "enable_search", "mcp_servers", "plugins", "search", "search_parameters",
    "search_settings", "toolConfig", "tools", "web_search", "web_search_options",
];

impl Team {
    /// What the providers of its models reach because the team says so, for display: the hosts of what it attaches by address and of
    /// addresses in extra fields, and what tools of the provider reach.
    pub(crate) fn reached_by_providers(&self) -> Vec<String> {
        let attached = self.media_addresses().into_iter().map(shown_host);
        let mut reached: Vec<String> =
            attached.map(|host| format!("{host} (by the provider of the model)")).collect();
        for (model, extra) in self.extra_fields() {
            let mut what: Vec<String> = extra.values().flat_map(hosts_in).collect();
            let tools = extra.keys().filter(|key| TOOLS_OF_PROVIDERS.contains(&key.as_str()));
            what.extend(tools.map(|key| format!("what `{key}` of `extra` reaches")));
            reached.extend(what.into_iter().map(|what| format!("{what} (by the provider of {model})")));
        }
        reached
    }

    /// The addresses of what is attached, here and in the teams within it, without those that have the content.
    fn media_addresses(&self) -> Vec<&str> {
        let media = self.chats_as(&self.name).flat_map(|(_, chat)| chat.media());
        let own = media.filter_map(|media| media.url.as_ref()).map(|url| url.as_str());
        let within = self.teams.iter().flat_map(|sub| sub.team.media_addresses());
        own.filter(|url| !url.starts_with("data:")).chain(within).collect()
    }

    /// Hosts that the web tools reach, for display.
    pub(crate) fn reached_by_web(&self) -> Vec<String> {
        let mut reached = Vec::new();
        if let Some(search) = self.web.search.as_ref().filter(|_| self.names_tool(SEARCH)) {
            let SearchEngine { engine, url, .. } = search.engine();
            reached.push(shown_host(url.as_deref().or(engine.kind().url()).unwrap_or_default()));
        }
        if let Some(settings) = self.web.fetch.on().filter(|_| self.names_tool(FETCH)) {
            if settings.hosts.is_empty() {
                reached.push("the public web".to_owned());
            }
            reached.extend(settings.hosts.iter().cloned());
            reached.extend(settings.private.iter().cloned());
        }
        reached
    }

    /// The environment variable that the search engine is sent, unless it is the engine's own key at the engine's own address.
    pub(crate) fn sent_by_search(&self) -> Vec<String> {
        let Some(search) = self.web.search.as_ref().filter(|_| self.names_tool(SEARCH)) else {
            return Vec::new();
        };
        let engine = search.engine();
        let kind = engine.engine.kind();
        let variable = engine.variable();
        if engine.url.is_none() && variable == kind.key_variable() {
            return Vec::new();
        }
        let to = shown_host(engine.url.as_deref().or(kind.url()).unwrap_or_default());
        variable.map(|variable| sent(variable, &to)).into_iter().collect()
    }

    /// Hosts of the HTTP calls that agents can make.
    pub(crate) fn reached_by_calls(&self) -> Vec<String> {
        let calls =
            self.calls.iter().filter(|call| self.names_tool(&call.name)).filter_map(|call| call.host());
        let operations = self.openapi.iter().flat_map(|(name, document)| {
            let is_named = move |of: &&Operation| self.names_tool(name) || self.names_tool(&of.name);
            document.operations.iter().filter(is_named).filter_map(Operation::host)
        });
        let mut hosts: Vec<String> = calls.chain(operations).collect();
        hosts.sort();
        hosts.dedup();
        hosts
    }

    /// The host that each call and operation reaches, by its name.
    pub(crate) fn hosts_of_calls(&self) -> BTreeMap<String, String> {
        let calls = self.calls.iter().filter_map(|call| Some((call.name.clone(), call.host()?)));
        let operations = self.openapi.values().flat_map(|document| &document.operations);
        calls.chain(operations.filter_map(|of| Some((of.name.clone(), of.host()?)))).collect()
    }

    /// Environment variables with secrets of calls.
    pub(crate) fn variables_of_calls(&self) -> impl Iterator<Item = &String> {
        let of_calls =
            self.calls.iter().flat_map(|call| call.headers.values()).filter_map(|header| match header {
                Header::Secret(secret) => Some(&secret.env),
                Header::Text(_) => None,
            });
        of_calls.chain(self.openapi.values().flat_map(|document| document.variables()))
    }

    /// The environment variables that calls send, each with the host.
    pub(crate) fn sent_by_calls(&self) -> Vec<String> {
        let mut all = BTreeSet::new();
        for call in self.calls.iter().filter(|call| self.names_tool(&call.name)) {
            for header in call.headers.values() {
                if let Header::Secret(secret) = header {
                    all.insert(sent(&secret.env, &call.host().unwrap_or_default()));
                }
            }
        }
        for (name, document) in &self.openapi {
            let used = |of: &&polylogue_tools::openapi::Operation| {
                self.names_tool(name) || self.names_tool(&of.name)
            };
            let to: BTreeSet<String> =
                document.operations.iter().filter(used).filter_map(|of| of.host()).collect();
            for variable in document.variables() {
                all.extend(to.iter().map(|to| sent(variable, to)));
            }
        }
        all.into_iter().collect()
    }
}

/// The hosts of the texts in `value` that are addresses.
fn hosts_in(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => host_of(text).into_iter().collect(),
        Value::Array(items) => items.iter().flat_map(hosts_in).collect(),
        Value::Object(fields) => fields.values().flat_map(hosts_in).collect(),
        _ => Vec::new(),
    }
}

/// The host of `address` for display. What names no host is shown whole: it is refused where it is used.
pub(super) fn shown_host(address: &str) -> String {
    host_of(address).unwrap_or_else(|| address.to_owned())
}

/// The environment variable `variable`, and where it goes.
pub(super) fn sent(variable: &str, to: &str) -> String {
    format!("{variable} -> {to}")
}
