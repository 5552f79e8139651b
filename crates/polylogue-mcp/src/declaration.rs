//! Declarations of servers in the `mcpServers` format of many programs.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::Value;

use crate::expand::{Secrets, Variables};

/// An `mcpServers` document.
#[derive(Debug, Deserialize)]
pub(crate) struct Document {
    #[serde(rename = "mcpServers")]
    pub(crate) servers: BTreeMap<String, Value>,
}

/// Declaration of a server. Keys of other programs (`autoApprove`, `timeout`) are ignored.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
pub(crate) struct Declaration {
    pub(crate) command: Option<String>,
    #[serde(default)]
    args: Vec<String>,
    #[serde(default)]
    env: BTreeMap<String, String>,
    cwd: Option<String>,
    pub(crate) url: Option<String>,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) disabled: bool,
    /// The transport, if given: `sse` is the older HTTP transport.
    #[serde(rename = "type")]
    kind: Option<String>,
}

/// How a server is reached, with variables replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum ServerLocation {
    /// A local process.
    Launch(Launch),
    /// A remote server.
    Address(Address),
}

impl ServerLocation {
    pub(crate) const fn secrets(&self) -> &Secrets {
        match self {
            Self::Launch(launch) => &launch.secrets,
            Self::Address(address) => &address.secrets,
        }
    }
}

/// The address of a remote server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Address {
    pub(crate) url: String,
    pub(crate) headers: Vec<(String, String)>,
    /// What must not be shown.
    pub(crate) secrets: Secrets,
}

/// The program of a local server, with variables replaced.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Launch {
    pub(crate) command: String,
    pub(crate) args: Vec<String>,
    pub(crate) env: Vec<(String, String)>,
    pub(crate) cwd: Option<String>,
    /// What must not be shown.
    pub(crate) secrets: Secrets,
}

impl Declaration {
    /// Whether it uses the older HTTP transport, which is not supported.
    pub(crate) fn is_of_older_kind(&self) -> bool {
        self.url.is_some() && self.kind.as_deref() == Some("sse")
    }

    /// # Errors
    /// When keys contradict each other; the text follows the name of the server.
    pub(crate) fn of(value: Value) -> Result<Self, String> {
        let declared: Self = serde_json::from_value(value).map_err(|error| error.to_string())?;
        match (&declared.command, &declared.url) {
            (None, None) => Err("has neither a `command` nor a `url`".into()),
            (Some(_), Some(_)) => Err("has both a `command` and a `url`: which is it?".into()),
            (Some(command), None) if command.trim().is_empty() => Err("has an empty `command`".into()),
            _ => Ok(declared),
        }
    }

    /// # Errors
    /// When a variable is not set, or has an illegal name.
    pub(crate) fn location(&self, variables: &Variables) -> Result<ServerLocation, String> {
        match &self.command {
            Some(command) => self.launch(command, variables).map(ServerLocation::Launch),
            None => self.address(variables).map(ServerLocation::Address),
        }
    }

    fn address(&self, variables: &Variables) -> Result<Address, String> {
        let mut secrets = Secrets::default();
        let url = variables.place(self.url.as_deref().unwrap_or_default(), &mut secrets)?;
        let mut headers = Vec::new();
        for (name, value) in &self.headers {
            headers.push((name.clone(), variables.expand(value, &mut secrets)?));
        }
        // As for the environment of a program.
        headers.iter().for_each(|(name, value)| secrets.add(name, value.clone()));
        Ok(Address { url, headers, secrets })
    }

    fn launch(&self, command: &str, variables: &Variables) -> Result<Launch, String> {
        let mut secrets = Secrets::default();
        let mut place = |text: &str| variables.place(text, &mut secrets);
        let command = place(command)?;
        let args = self.args.iter().map(|arg| place(arg)).collect::<Result<_, _>>()?;
        let cwd = self.cwd.as_deref().map(place).transpose()?;
        let mut env = Vec::new();
        for (name, value) in &self.env {
            if name.is_empty() || name.contains(['=', '\0']) {
                return Err(format!("has a variable with the illegal name `{}`", name.escape_debug()));
            }
            env.push((name.clone(), variables.expand(value, &mut secrets)?));
        }
        // Values that the declaration contains may be keys, too.
        env.iter().for_each(|(name, value)| secrets.add(name, value.clone()));
        Ok(Launch { command, args, env, cwd, secrets })
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_is_declared_is_launched() {
        let declared = json!({
            "type": "stdio", "command": "npx", "args": ["-y", "${NAME}"], "env": {"KEY": "${SECRET}"}, "cwd": "/srv",
            "autoApprove": ["x"],
        });
        let declared = Declaration::of(declared).unwrap();
        let variables = Variables::new(|name| Some(name.to_lowercase()));
        let ServerLocation::Launch(launch) = declared.location(&variables).unwrap() else { panic!() };
        assert_eq!((launch.command.as_str(), launch.cwd.as_deref()), ("npx", Some("/srv")));
        assert_eq!(launch.args, ["-y", "name"]);
        assert_eq!(launch.env, [("KEY".to_owned(), "secret".to_owned())]);
        let missing = declared.location(&Variables::new(|_| None)).unwrap_err();
        assert_eq!(missing, "needs the variable `NAME`, which is not set");
    }

    #[test]
    fn declarations_that_contradict_themselves_are_refused() {
        let wrong = |value| Declaration::of(value).unwrap_err();
        assert_eq!(wrong(json!({})), "has neither a `command` nor a `url`");
        assert_eq!(
            wrong(json!({"command": "a", "url": "b"})),
            "has both a `command` and a `url`: which is it?"
        );
        assert_eq!(wrong(json!({"command": " "})), "has an empty `command`");
        assert!(wrong(json!({"command": 1})).contains("invalid type"), "{}", wrong(json!({"command": 1})));
    }

    #[test]
    fn illegal_names_of_variables_are_refused() {
        let location = |value| Declaration::of(value).unwrap().location(&Variables::new(|_| None));
        let illegal = location(json!({"command": "a", "env": {"A=B": "c"}})).unwrap_err();
        assert_eq!(illegal, "has a variable with the illegal name `A=B`");
        let unset = location(json!({"url": "http://localhost/mcp", "headers": {"A": "${B}"}})).unwrap_err();
        assert_eq!(unset, "needs the variable `B`, which is not set");
    }
}
