//! What a team file says of services that are called over HTTP.

use std::collections::BTreeMap;

use polylogue_tools::http::Header;
use polylogue_tools::openapi::{Keys, Operation};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::duration::Time;
use crate::team::Team;
use crate::text::{PathText, VariableText};

/// A service that an OpenAPI document describes: its operations are tools by their names, and all of them by the name it has here.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(rename = "OpenApi")]
pub struct ApiDocument {
    /// The document, in JSON or YAML, version 3.0 or 3.1; a file below this file's folder.
    #[schemars(with = "PathText")]
    pub file: String,
    /// The operations that become tools, by `operationId` or as `get /pets/{id}`; all when left out.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    #[schemars(with = "Vec<PathText>", extend("uniqueItems" = true))]
    pub only: Vec<String>,
    /// Where the service is, if not where the document says; written as it is, without variables.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<PathText>")]
    pub base_url: Option<String>,
    /// The name of the environment variable that holds the key, `user:password` for a service that asks for both. It is sent
    /// as the document says.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Option<VariableText>")]
    pub key: Option<String>,
    /// The same by the names of the document's security schemes, where there are several.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    #[schemars(with = "BTreeMap<String, VariableText>")]
    pub keys: BTreeMap<String, String>,
    /// How long a call may take; 30 s when left out.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time: Option<Time>,
    /// What the document says of them.
    #[serde(default)]
    #[schemars(skip)]
    pub operations: Vec<Operation>,
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
