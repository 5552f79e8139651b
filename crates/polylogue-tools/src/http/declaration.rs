//! Declarations of HTTP calls.

use std::collections::BTreeMap;
use std::fmt;

use polylogue_http::Method;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::command::Arguments;

/// The declaration of an HTTP call as a tool.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Declaration {
    /// The name of the tool: 1 to 64 ASCII letters, digits, `_` and `-`
    pub name: String,
    /// The description for the model: what it does, and when to use it
    pub description: String,
    /// The HTTP method. Default: `get`
    #[serde(default, skip_serializing_if = "HttpMethod::is_get")]
    pub method: HttpMethod,
    /// The URL; `{name}` in its path is the argument of that name
    pub url: String,
    /// The query parameters by name; `{name}` in a value is the argument of that name
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub query: BTreeMap<String, String>,
    /// Headers by name: texts, or values of environment variables
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, Header>,
    /// The JSON body; a text `{name}` in it is the value of the argument of that name
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub json: Option<Value>,
    /// The arguments by name
    #[serde(default, skip_serializing_if = "Arguments::is_empty")]
    pub arguments: Arguments,
    /// The timeout in seconds. Default: 30
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_s: Option<u32>,
    /// Whether a call that was in flight when the process died can be repeated. Default: only for `get`
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub repeatable: Option<bool>,
    /// The maximum cost of a call, in dollars
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_cost: Option<f64>,
    /// The header of the response that says what the call cost, in dollars
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_header: Option<String>,
}

/// The value of a header.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Header {
    /// A text; `{name}` in it is the argument of that name.
    Text(String),
    /// A secret from an environment variable.
    Secret(Secret),
}

/// A secret from an environment variable.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Secret {
    /// The name of the variable
    pub env: String,
    /// A prefix, such as `Bearer ` with its space
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub before: String,
}

/// HTTP methods.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HttpMethod {
    /// `GET`.
    #[default]
    Get,
    /// `POST`.
    Post,
    /// `PUT`.
    Put,
    /// `PATCH`.
    Patch,
    /// `DELETE`.
    Delete,
}

impl HttpMethod {
    pub(crate) const ALL: [Self; 5] = [Self::Get, Self::Post, Self::Put, Self::Patch, Self::Delete];

    // Serde passes a reference.
    #[expect(clippy::trivially_copy_pass_by_ref, reason = "serde passes a reference")]
    fn is_get(&self) -> bool {
        self.only_reads()
    }

    /// Returns whether the method only reads.
    pub fn only_reads(self) -> bool {
        self == Self::Get
    }

    pub(crate) fn has_body(self) -> bool {
        self != Self::Get
    }

    pub(crate) const fn word(self) -> &'static str {
        match self {
            Self::Get => "get",
            Self::Post => "post",
            Self::Put => "put",
            Self::Patch => "patch",
            Self::Delete => "delete",
        }
    }

    pub(crate) const fn method(self) -> Method {
        match self {
            Self::Get => Method::GET,
            Self::Post => Method::POST,
            Self::Put => Method::PUT,
            Self::Patch => Method::PATCH,
            Self::Delete => Method::DELETE,
        }
    }
}

impl fmt::Display for HttpMethod {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}
