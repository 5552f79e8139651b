//! HTTP calls and OpenAPI services as tools.

use std::collections::BTreeMap;

use indexmap::IndexMap;
use polylogue_config::types::Type;
use polylogue_config::yaml::{Data, Node};
use polylogue_config::{As, At, Config, Cx, Label};
use polylogue_tools::command::Argument;
use polylogue_tools::http::{self, Header, HttpMethod, Secret};
use polylogue_tools::openapi::{Keys, LeftOutOperation, Operation};
use serde_json::Value;

use crate::command::DeclaredArgument;
use crate::duration::Time;
use crate::secret::is_secret_header;
use crate::text::{PathText, VariableText};

/// An OpenAPI service. Each operation is a tool by its own name; the name of the service stands for all of them.
#[derive(Debug, Clone, PartialEq, Config)]
#[config(name = "OpenApi")]
pub struct ApiDocument {
    /// Path of the OpenAPI document, version 3.0 or 3.1, in JSON or YAML. It must lie below the folder of this file.
    #[key(as = At<PathText>, nonempty)]
    pub file: At<String>,
    /// Operations that become tools, by `operationId` or as `get /pets/{id}`.
    #[key(as = Vec<PathText>, none = "all", unique)]
    pub include: Vec<String>,
    /// Address of the service, without variables.
    #[key(as = Option<PathText>, none = "the address in the document")]
    pub base_url: Option<String>,
    /// Environment variable that holds the API key, or `user:password` for basic authentication. The key is sent as the
    /// document defines.
    #[key(as = Option<At<VariableText>>, none = "no key")]
    pub key: Option<At<String>>,
    /// Environment variables by security scheme of the document, if it has several.
    #[key(as = BTreeMap<String, At<VariableText>>)]
    pub keys: BTreeMap<String, At<String>>,
    /// Time limit of a call, such as `30 s`.
    #[key(none = "30 s")]
    pub timeout: Option<Time>,
    /// Maximum cost of a call of each operation in US dollars. It is reserved before the call, and counts where the call does not report its cost.
    #[key(none = "free", range = 0..=1_000_000)]
    pub max_cost: Option<f64>,
    /// The operations of the document.
    #[key(skip)]
    pub operations: Vec<Operation>,
    /// Those that cannot be called, unless `include` names some.
    #[key(skip)]
    pub left_out: Vec<LeftOutOperation>,
}

/// An HTTP request that agents can call as a tool.
#[derive(Config)]
#[config(name = "HttpCall", for = http::Declaration)]
pub(crate) struct CallKeys {
    /// Name of the tool: 1 to 64 ASCII letters, digits, `_` and `-`.
    name: String,
    /// Description of the tool for the model: what it does and when to call it.
    description: String,
    /// HTTP method.
    #[key(as = Method, default = HttpMethod::Get)]
    method: HttpMethod,
    /// Address. `{name}` in its path is replaced by the tool argument of that name.
    url: String,
    /// Query parameters by name. `{name}` in a value is replaced by the tool argument of that name.
    query: BTreeMap<String, String>,
    /// Headers by name.
    #[key(as = BTreeMap<String, NoSecret>)]
    headers: BTreeMap<String, Header>,
    /// JSON body. A text `{name}` in it is replaced by the value of the tool argument of that name.
    #[key(none = "no body")]
    json: Option<Value>,
    /// Arguments of the tool by name.
    #[key(as = IndexMap<String, DeclaredArgument>)]
    arguments: IndexMap<String, Argument>,
    /// Time limit of a call in seconds.
    #[key(name = "timeout_s", none = "30", range = 1..=3600)]
    time_s: Option<u32>,
    /// Allows a call that was in flight when the process died to be repeated on resume.
    #[key(none = "`true` for `get`, else `false`")]
    repeatable: Option<bool>,
    /// Maximum cost of a call in US dollars. It is reserved before the call, and counts where the call does not report its cost.
    #[key(none = "free", range = 0..=1_000_000)]
    max_cost: Option<f64>,
    /// Header of the response with the cost of the call in US dollars.
    #[key(none = "each call counts as `max_cost`")]
    cost_header: Option<String>,
}

/// HTTP method.
#[derive(Config)]
#[config(name = "Method", for = HttpMethod)]
enum Method {
    /// `GET`.
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

/// Value of a header.
#[derive(Config)]
#[config(name = "CallHeader", by_shape, for = Header)]
enum CallHeader {
    /// A text that is not a secret. `{name}` is replaced by the tool argument of that name.
    Text(String),
    /// The value of an environment variable.
    #[key(as = SecretHeader)]
    Secret(Secret),
}

/// A header that is not a secret, or whose value is in an environment variable.
struct NoSecret(CallHeader);

impl Config for NoSecret {
    fn ty() -> &'static Type {
        CallHeader::ty()
    }

    fn read(node: &Node, cx: &mut Cx<'_, '_>) -> Self {
        if let Label::Key(name) = cx.label()
            && is_secret_header(&name)
            && !matches!(node.data, Data::Map(_))
        {
            let hint = "put it into the environment: `{env: NAME}`, with `before: \"Bearer \"` if that stands before it";
            cx.report.error_with_hint(&node.span, format!("`{name}` is a secret"), hint);
        }
        Self(CallHeader::read(node, cx))
    }

    fn hole() -> Self {
        Self(CallHeader::hole())
    }

    fn write(&self) -> Value {
        self.0.write()
    }
}

impl As<Header> for NoSecret {
    fn into_value(self) -> Header {
        self.0.into_value()
    }

    fn from_value(header: &Header) -> Self {
        Self(CallHeader::from_value(header))
    }
}

/// Value of an environment variable.
#[derive(Config)]
#[config(for = Secret)]
struct SecretHeader {
    /// Name of the environment variable.
    env: String,
    /// Text before the value, such as `Bearer ` with a trailing space.
    #[key(default = String::new())]
    before: String,
}

impl ApiDocument {
    /// Returns which operations cannot be called, in one line; `None` if all can.
    pub fn left_out_in_words(&self) -> Option<String> {
        const SHOWN: usize = 3;
        const WHY_CHARS: usize = 100;
        let of = |left: &LeftOutOperation| {
            let why: String = left.why.chars().take(WHY_CHARS).collect();
            format!("`{}` ({why})", left.name)
        };
        let shown: Vec<String> = self.left_out.iter().take(SHOWN).map(of).collect();
        let operations = match self.left_out.len() {
            0 => return None,
            1 => "1 operation".to_owned(),
            count => format!("{count} operations"),
        };
        let more = match self.left_out.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!(" and {more} more"),
        };
        Some(format!("leaves out {operations} that cannot be called: {}{more}", shown.join(", ")))
    }

    /// Environment variables that hold its keys.
    pub(crate) fn variables(&self) -> impl Iterator<Item = &String> {
        self.key.iter().chain(self.keys.values()).map(|variable| &variable.value)
    }

    pub(crate) fn keys(&self) -> Keys {
        let by_scheme = self.keys.iter().map(|(scheme, variable)| (scheme.clone(), variable.value.clone()));
        Keys { all: self.key.as_deref().cloned(), by_scheme: by_scheme.collect() }
    }
}
