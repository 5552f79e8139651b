//! Whose fault an error is.

use std::fmt;

use serde::{Deserialize, Serialize};

/// The party that can fix an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The author of the team or of the call.
    Config,
    /// The model's provider, or the network.
    Provider,
    /// A tool.
    Tool,
    /// A configured limit.
    Limit,
    /// The machine: disk, permissions.
    System,
    /// Polylogue itself.
    Bug,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Config => "config",
            Self::Provider => "provider",
            Self::Tool => "tool",
            Self::Limit => "limit",
            Self::System => "system",
            Self::Bug => "bug",
        })
    }
}
