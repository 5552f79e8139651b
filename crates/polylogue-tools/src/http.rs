//! HTTP calls as tools: declared as data, without any code.
//!
//! A [`Declaration`] has a method and a URL, which can contain arguments of the tool. The JSON Schema for models is generated from the
//! declaration.
//!
//! - `{name}` in the path, in a value of `query` or `headers`, or in a text of `json` is the argument of that name; `{{` and
//!   `}}` are braces. An argument is encoded: it is one segment of the path, or one value, whatever it contains, and cannot change
//!   host, path or other parameters.
//! - A value with an omitted argument is omitted, too. A text of `json` that is only an argument is replaced by its value, with its
//!   type.
//! - A header can be the value of an environment variable, which is in no log and no result.
//!
//! Redirects are not followed, so that only the declared host is reached.
//!
//! ```
//! use polylogue_core::Tool as _;
//! use polylogue_http::{Client, Env};
//! use polylogue_tools::http::{Call, Declaration};
//!
//! let declared = r#"{
//!     "name": "find_ticket",
//!     "description": "Finds tickets.",
//!     "url": "https://tickets.example/api/{project}/tickets",
//!     "query": {"q": "{words}", "limit": "10"},
//!     "headers": {"Authorization": {"env": "TICKETS_KEY", "before": "Bearer "}},
//!     "arguments": {
//!         "project": {"type": "string", "choices": ["house", "garden"]},
//!         "words": {"type": "string", "optional": true}
//!     }
//! }"#;
//! let declared: Declaration = serde_json::from_str(declared)?;
//! let call = Call::new(declared, |reach| Client::new(reach), &Env::of([("TICKETS_KEY", "x")]))?;
//! assert!(call.spec().repeatable, "it only reads");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod declaration;
pub(crate) mod request;
pub(crate) mod send;

use polylogue_core::{ConfigError, Error, Money, Tool, ToolCx, ToolError, ToolResult, ToolSpec};
pub use polylogue_http::Client;
use polylogue_http::{Env, NetworkAccess};
use serde_json::Value;

pub use self::declaration::{Declaration, Header, HttpMethod, Secret};
use self::request::Request;
use self::send::Sender;
use crate::command::{check_named, given, schema_of, undeclared};

/// A tool that makes an HTTP call. See the [module](self).
#[derive(Debug)]
pub struct Call {
    spec: ToolSpec,
    declaration: Declaration,
    request: Request,
    sender: Sender,
}

impl Call {
    /// Creates the tool that `declaration` describes. `client` creates the HTTP client for the declared host, which may be
    /// private. Secrets are read from `env`.
    ///
    /// # Errors
    /// When the declaration is inconsistent or invalid, or a variable is not set.
    pub fn new(
        declaration: Declaration,
        client: impl FnOnce(NetworkAccess) -> Client,
        env: &Env,
    ) -> Result<Self, Error> {
        let wrong = |why| flaw(&declaration, why);
        let request = request_of(&declaration).map_err(wrong)?;
        let reach = NetworkAccess::only([request.place().map_err(wrong)?]);
        let mut sender = Sender::new(client(reach));
        for (name, header) in &declaration.headers {
            if let Header::Secret(secret) = header {
                sender.add_header(name, &secret.env, &secret.before, env).map_err(wrong)?;
            }
        }
        if let Some(seconds) = declaration.time_s {
            sender.time = std::time::Duration::from_secs(seconds.into());
        }
        sender.cost = request::cost_header(&declaration).map_err(wrong)?;
        let spec = declaration.spec();
        Ok(Self { spec, declaration, request, sender })
    }

    /// Checks `declaration`.
    ///
    /// # Errors
    /// As [`new`](Self::new), except for variables.
    pub fn check(declaration: &Declaration) -> Result<(), Error> {
        let place = request_of(declaration).and_then(|request| request.place());
        place.map(drop).map_err(|why| flaw(declaration, why).into())
    }
}

fn flaw(declaration: &Declaration, why: String) -> ConfigError {
    ConfigError::Declaration { kind: "call", name: declaration.name.clone(), why }
}

fn request_of(declaration: &Declaration) -> Result<Request, String> {
    check_named(&declaration.name, &declaration.arguments)?;
    if declaration.json.is_some() && !declaration.method.has_body() {
        return Err(format!("a request by `{}` has no `json`", declaration.method));
    }
    let request = Request::declared(declaration)?;
    request::cost_header(declaration)?;
    let used = request.arguments();
    if let Some(name) = used.iter().find(|name| !declaration.arguments.contains_key(**name)) {
        return Err(undeclared(name, &declaration.arguments));
    }
    if let Some(name) = declaration.arguments.keys().find(|name| !used.contains(&name.as_str())) {
        return Err(format!("the argument `{name}` is not used"));
    }
    for name in request.arguments_of_path() {
        if declaration.arguments.get(name).is_some_and(|argument| argument.optional) {
            return Err(format!("`{name}` is a piece of the path, and cannot be left out"));
        }
    }
    Ok(request)
}

impl Declaration {
    /// Description for models.
    fn spec(&self) -> ToolSpec {
        let spec = ToolSpec::new(self.name.clone(), self.description.clone(), schema_of(&self.arguments));
        let spec = if self.repeatable.unwrap_or(self.method.only_reads()) { spec.repeatable() } else { spec };
        ToolSpec { max_cost: self.max_cost.map(Money::dollars), ..spec }
    }

    /// Returns the host that it reaches, with its port if given.
    pub fn host(&self) -> Option<String> {
        Request::declared(self).ok().map(|request| request.host())
    }
}

impl Tool for Call {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let given = given(&self.declaration.arguments, &args)?;
        self.sender.send(&self.request, &given).await
    }
}
