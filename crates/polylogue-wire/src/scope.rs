//! What a token may do.

use std::fmt;
use std::str::FromStr;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A permission of a token. A route needs exactly one scope; no scope contains another.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Scope {
    /// Read teams, conversations and events.
    Read,
    /// Begin, continue, stop and fork conversations, and send messages into them.
    Run,
    /// Answer questions of conversations; with [`Run`](Self::Run), send messages as participants.
    Answer,
    /// Change titles and remove conversations; check team files.
    Edit,
    /// Make, list and revoke tokens of the same tenant that can do no more.
    Admin,
    /// Read `/metrics`.
    Metrics,
}

impl Scope {
    /// All scopes.
    pub const ALL: [Self; 6] = [Self::Read, Self::Run, Self::Answer, Self::Edit, Self::Admin, Self::Metrics];

    /// Returns the name on the command line, in files and on the wire.
    pub const fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Run => "run",
            Self::Answer => "answer",
            Self::Edit => "edit",
            Self::Admin => "admin",
            Self::Metrics => "metrics",
        }
    }
}

impl fmt::Display for Scope {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.word())
    }
}

impl FromStr for Scope {
    type Err = String;

    /// # Errors
    /// When `text` is no [`word`](Self::word).
    fn from_str(text: &str) -> Result<Self, String> {
        let found = Self::ALL.into_iter().find(|scope| scope.word() == text);
        found.ok_or_else(|| format!("expected one of {}", Self::ALL.map(Self::word).join(", ")))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_word_names_one_scope() {
        for scope in Scope::ALL {
            assert_eq!(scope.word().parse(), Ok(scope));
            assert_eq!(serde_json::to_value(scope).unwrap(), scope.word());
        }
        assert_eq!(
            "write".parse::<Scope>(),
            Err("expected one of read, run, answer, edit, admin, metrics".to_owned())
        );
    }
}
