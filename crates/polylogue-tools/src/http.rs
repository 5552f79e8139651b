//! Calls over HTTP as tools: declared as data, without any code.
//!
//! A [`Declaration`] says which address is asked in what way, and what of it comes from arguments. The schema for models
//! is made of the declaration.
//!
//! - `{name}` in the path, in a value of `query` or `headers`, or in a text of `json` is the argument of that name; `{{` and
//!   `}}` are braces. An argument is encoded: it is one piece of the path, or one value, whatever is in it, and cannot name
//!   another host, path or parameter.
//! - A value of which an argument was left out is left out, too. A text of `json` that is an argument and nothing else is its
//!   value, and keeps its type.
//! - A header may be what an environment variable holds. It is in no log and no answer.
//!
//! Redirects are not followed: what is declared is what is reached.
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

use polylogue_core::{Error, Outcome, Tool, ToolCx, ToolError, ToolSpec};
pub use polylogue_http::Client;
use polylogue_http::{Env, Reach};
use serde_json::Value;

pub use self::declaration::{Declaration, Header, Secret, Verb};
use self::request::Request;
use self::send::Sender;
use crate::command::{check_named, given, schema_of};

/// A tool that calls over HTTP. See the [module](self).
#[derive(Debug)]
pub struct Call {
    spec: ToolSpec,
    declaration: Declaration,
    request: Request,
    sender: Sender,
}

impl Call {
    /// The tool that `declaration` describes. `client` makes what sends its requests; it is given whom the declaration reaches,
    /// which is the host it names, and may be private. Secrets are taken from `env`.
    ///
    /// # Errors
    /// When the declaration contradicts itself or is no request; when a variable is not set. Says which.
    pub fn new(
        declaration: Declaration,
        client: impl FnOnce(Reach) -> Client,
        env: &Env,
    ) -> Result<Self, Error> {
        let wrong = |text: String| Error::config(format!("the call `{}`: {text}", declaration.name));
        let request = request_of(&declaration).map_err(wrong)?;
        let reach = Reach::only([request.place().map_err(wrong)?]);
        let mut sender = Sender::new(client(reach));
        for (name, header) in &declaration.headers {
            if let Header::Secret(secret) = header {
                sender.add_header(name, &secret.env, &secret.before, env).map_err(wrong)?;
            }
        }
        if let Some(seconds) = declaration.time_s {
            sender.time = std::time::Duration::from_secs(seconds.into());
        }
        let spec = declaration.spec();
        Ok(Self { spec, declaration, request, sender })
    }

    /// What is wrong with `declaration`, if anything is.
    ///
    /// # Errors
    /// As [`new`](Self::new), but for variables.
    pub fn check(declaration: &Declaration) -> Result<(), Error> {
        let wrong = |text: String| Error::config(format!("the call `{}`: {text}", declaration.name));
        request_of(declaration).and_then(|request| request.place()).map(drop).map_err(wrong)
    }
}

fn request_of(declaration: &Declaration) -> Result<Request, String> {
    check_named(&declaration.name, &declaration.arguments)?;
    if declaration.json.is_some() && !declaration.method.has_body() {
        return Err(format!("a request by `{}` has no `json`", declaration.method));
    }
    let request = Request::declared(declaration)?;
    let used = request.arguments();
    if let Some(name) = used.iter().find(|name| !declaration.arguments.contains_key(**name)) {
        return Err(format!("there is no argument `{name}`"));
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
        if self.repeatable.unwrap_or(self.method.only_reads()) { spec.repeatable() } else { spec }
    }

    /// The host that it reaches, with its port, if it names one.
    #[must_use]
    pub fn host(&self) -> Option<String> {
        Request::declared(self).ok().map(|request| request.host())
    }
}

impl Tool for Call {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<Outcome, ToolError> {
        let given = given(&self.declaration.arguments, &args)?;
        self.sender.send(&self.request, &given).await
    }
}
