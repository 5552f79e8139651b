//! Authentication of operations.

use std::collections::BTreeMap;

use base64::Engine as _;
use polylogue_http::Env;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::http::send::{Sender, held};

/// The place of a key in requests.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Credential {
    /// As the header `authorization` with `Bearer`.
    Bearer,
    /// As the header `authorization` with `Basic`; the key is `user:password`.
    Basic,
    /// As this header.
    Header(String),
    /// As the query parameter of this name.
    Query(String),
}

/// The environment variables with keys: one for all, or by names of security schemes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Keys {
    /// The variable for all other schemes.
    pub all: Option<String>,
    /// The variables by the name of the scheme in the document.
    pub by_scheme: BTreeMap<String, String>,
}

impl Keys {
    fn of(&self, scheme: &str) -> Option<&String> {
        self.by_scheme.get(scheme).or(self.all.as_ref())
    }
}

/// How the scheme `declared` sends a key, if it is supported.
pub(super) fn credential(declared: &Value) -> Option<Credential> {
    let text = |key: &str| declared.get(key).and_then(Value::as_str).unwrap_or_default();
    match (text("type"), text("scheme").to_ascii_lowercase().as_str(), text("in")) {
        ("http", "basic", _) => Some(Credential::Basic),
        // What is got by these is sent as a bearer's.
        ("http", "bearer", _) | ("oauth2" | "openIdConnect", ..) => Some(Credential::Bearer),
        ("apiKey", _, "header") => Some(Credential::Header(text("name").to_owned())),
        ("apiKey", _, "query") => Some(Credential::Query(text("name").to_owned())),
        _ => None,
    }
}

/// Adds `credentials` to `sender`; those without a variable are skipped.
pub(super) fn add(
    sender: &mut Sender,
    credentials: &BTreeMap<String, Credential>,
    keys: &Keys,
    env: &Env,
) -> Result<(), String> {
    for (scheme, credential) in credentials {
        let Some(variable) = keys.of(scheme) else { continue };
        match credential {
            Credential::Bearer => sender.add_header("authorization", variable, "Bearer ", env)?,
            Credential::Header(name) => sender.add_header(name, variable, "", env)?,
            Credential::Query(name) => sender.add_query(name, held(variable, env)?),
            Credential::Basic => {
                let login = held(variable, env)?;
                let encoded = base64::engine::general_purpose::STANDARD.encode(&login);
                sender.add_secret_header("authorization", &format!("Basic {encoded}"))?;
                // Services decode it, and may repeat what they read.
                sender.hide(login.split_once(':').map_or("", |(_, password)| password));
                sender.hide(&login);
            }
        }
    }
    Ok(())
}
