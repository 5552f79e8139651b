//! Permissions.

/// A permission: something beyond the sandbox and the user's own models, which a team file asks for and the user allows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Grant {
    /// Programs run on this machine with all rights of the user.
    UnsafeHost,
    /// Programs and tools reach hosts of the network, or providers of models do because the team says so.
    Network,
    /// Programs read files of this machine.
    Readable,
    /// MCP servers that the team file declares are started on this machine, or reached.
    Mcp,
    /// Conversations are sent to addresses of models that the team file gives.
    Endpoints,
    /// Environment variables are sent to hosts, or handed to MCP servers.
    Env,
    /// Memory that other teams have written to is read and changed.
    Memory,
    /// Team files outside the folder of the outermost team file are read.
    OutsideFiles,
    /// Addresses and proxies are taken from the `.env` file of the current folder.
    Dotenv,
    /// Prices of the team file below the user's own or the list prices count toward limits. Without it, those count.
    Prices,
    /// Models of unknown price are called under a limit on cost. Their calls count as free. No team file asks for it.
    UnknownPrice,
}

impl Grant {
    /// All permissions.
    pub const ALL: [Self; 11] = [
        Self::UnsafeHost,
        Self::Network,
        Self::Readable,
        Self::Mcp,
        Self::Endpoints,
        Self::Env,
        Self::Memory,
        Self::OutsideFiles,
        Self::Dotenv,
        Self::Prices,
        Self::UnknownPrice,
    ];

    /// Returns the word for it.
    pub const fn word(self) -> &'static str {
        match self {
            Self::UnsafeHost => "unsafe-host",
            Self::Network => "network",
            Self::Readable => "readable",
            Self::Mcp => "mcp",
            Self::Endpoints => "endpoints",
            Self::Env => "env",
            Self::Memory => "memory",
            Self::OutsideFiles => "outside-files",
            Self::Dotenv => "dotenv",
            Self::Prices => "prices",
            Self::UnknownPrice => "unknown-price",
        }
    }

    /// Returns whether a team that is not granted it runs without it.
    pub const fn is_optional(self) -> bool {
        matches!(self, Self::Prices | Self::UnknownPrice)
    }

    /// Returns the permission that `word` stands for.
    pub fn of_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|grant| grant.word() == word)
    }
}

impl std::fmt::Display for Grant {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.word())
    }
}
