//! Services that are called over HTTP.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use polylogue_config::{As, Config};
use polylogue_tools::command::Argument;
use polylogue_tools::http::{self, Header, Secret, Verb};
use polylogue_tools::openapi::{Keys, Operation};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::command::ArgumentKeys;
use crate::duration::Time;
use crate::team::Team;
use crate::text::{PathText, VariableText};

/// A service that an OpenAPI document describes. Each operation is a tool by its own name, and all of them are by the name
/// of the service.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, Config)]
#[config(name = "OpenApi")]
pub struct ApiDocument {
    /// The document, in JSON or YAML, version 3.0 or 3.1; a file below this file's folder.
    #[key(as = PathText, nonempty)]
    pub file: String,
    /// The operations that become tools, by `operationId` or as `get /pets/{id}`.
    #[key(as = Vec<PathText>, none = "all", unique)]
    pub include: Vec<String>,
    /// The address of the service, without variables.
    #[key(as = Option<PathText>, none = "the document's")]
    pub base_url: Option<String>,
    /// The name of the environment variable that holds the key, or `user:password` for a service that asks for both. It is
    /// sent in the way the document defines.
    #[key(as = Option<VariableText>, none = "no key")]
    pub key: Option<String>,
    /// The same by the names of the document's security schemes, if there are several.
    #[key(as = BTreeMap<String, VariableText>)]
    pub keys: BTreeMap<String, String>,
    /// Time limit of a call.
    #[key(none = "30 s")]
    pub timeout: Option<Time>,
    /// The operations of the document.
    #[key(skip)]
    pub operations: Vec<Operation>,
}

/// A call over HTTP that is a tool.
#[derive(Config)]
#[config(name = "HttpCall")]
pub(crate) struct CallKeys {
    /// Its name as a tool: 1 to 64 ASCII letters, digits, `_` and `-`.
    name: String,
    /// What it does and when to use it, for the model.
    description: String,
    /// The method.
    #[key(default = Method::Get)]
    method: Method,
    /// The address. `{name}` in its path is the argument of that name.
    url: String,
    /// The query of the address, by name. `{name}` in a value is the argument of that name.
    query: BTreeMap<String, String>,
    /// Headers, by name.
    headers: BTreeMap<String, CallHeader>,
    /// The body, as JSON. A text `{name}` in it is the value of the argument of that name.
    #[key(none = "no body")]
    json: Option<Value>,
    /// The arguments, by name.
    #[key(as = IndexMap<String, ArgumentKeys>)]
    arguments: IndexMap<String, Argument>,
    /// Time limit in seconds.
    #[key(none = "30", range = 1..=3600)]
    timeout_s: Option<u32>,
    /// Whether a call that was in flight when the process died can be repeated.
    #[key(none = "`true` for `get`, else `false`")]
    repeatable: Option<bool>,
}

/// A method of HTTP.
#[derive(Config)]
#[config(name = "Method")]
enum Method {
    /// Reads something.
    Get,
    /// Sends something.
    Post,
    /// Replaces something.
    Put,
    /// Changes a part of something.
    Patch,
    /// Removes something.
    Delete,
}

/// The value of a header.
#[derive(Config)]
#[config(name = "CallHeader", by_shape)]
enum CallHeader {
    /// A text that is not a secret. `{name}` in it is the argument of that name.
    Text(String),
    /// The value of an environment variable.
    Secret(SecretHeader),
}

/// The value of an environment variable.
#[derive(Config)]
struct SecretHeader {
    /// The name of the variable.
    env: String,
    /// Text before the value, such as `Bearer ` with a space at its end.
    #[key(default = String::new())]
    before: String,
}

impl As<http::Declaration> for CallKeys {
    fn into_value(self) -> http::Declaration {
        let Self {
            name,
            description,
            method,
            url,
            query,
            headers,
            json,
            arguments,
            timeout_s: time_s,
            repeatable,
        } = self;
        let method = match method {
            Method::Get => Verb::Get,
            Method::Post => Verb::Post,
            Method::Put => Verb::Put,
            Method::Patch => Verb::Patch,
            Method::Delete => Verb::Delete,
        };
        let header = |header| match header {
            CallHeader::Text(text) => Header::Text(text),
            CallHeader::Secret(SecretHeader { env, before }) => Header::Secret(Secret { env, before }),
        };
        let headers = headers.into_iter().map(|(name, value)| (name, header(value))).collect();
        http::Declaration {
            name,
            description,
            method,
            url,
            query,
            headers,
            json,
            arguments,
            time_s,
            repeatable,
        }
    }

    fn from_value(value: &http::Declaration) -> Self {
        let http::Declaration {
            name,
            description,
            method,
            url,
            query,
            headers,
            json,
            arguments,
            time_s,
            repeatable,
        } = value.clone();
        let method = match method {
            Verb::Get => Method::Get,
            Verb::Post => Method::Post,
            Verb::Put => Method::Put,
            Verb::Patch => Method::Patch,
            Verb::Delete => Method::Delete,
        };
        let header = |header| match header {
            Header::Text(text) => CallHeader::Text(text),
            Header::Secret(Secret { env, before }) => CallHeader::Secret(SecretHeader { env, before }),
        };
        let headers = headers.into_iter().map(|(name, value)| (name, header(value))).collect();
        Self {
            name,
            description,
            method,
            url,
            query,
            headers,
            json,
            arguments,
            timeout_s: time_s,
            repeatable,
        }
    }
}

impl ApiDocument {
    pub(crate) fn keys(&self) -> Keys {
        Keys { all: self.key.clone(), by_scheme: self.keys.clone() }
    }
}

impl Team {
    /// The operations that `name` stands for: those of a document, or one.
    pub(crate) fn operations(&self, name: &str) -> Vec<(&ApiDocument, &Operation)> {
        let all = self.openapi.iter().flat_map(|(of, document)| {
            document.operations.iter().map(move |operation| (of, document, operation))
        });
        let meant = all.filter(|(of, _, operation)| *of == name || operation.name == name);
        meant.map(|(_, document, operation)| (document, operation)).collect()
    }

    /// The hosts that calls reach which somebody may make.
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

    /// The environment variables that calls take secrets from.
    pub(crate) fn variables_of_calls(&self) -> impl Iterator<Item = &String> {
        let of_calls =
            self.calls.iter().flat_map(|call| call.headers.values()).filter_map(|header| match header {
                Header::Secret(secret) => Some(&secret.env),
                Header::Text(_) => None,
            });
        of_calls.chain(
            self.openapi.values().flat_map(|document| document.key.iter().chain(document.keys.values())),
        )
    }
}
