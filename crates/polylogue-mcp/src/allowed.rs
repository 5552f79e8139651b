//! Filters of tools.

/// The tools of a server that an agent can use, by their names at the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Allowed {
    /// All tools.
    #[default]
    All,
    /// Only these tools.
    Only(Vec<String>),
    /// All tools except these.
    But(Vec<String>),
}

impl Allowed {
    /// Allows only these tools.
    pub fn only(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Only(names.into_iter().map(Into::into).collect())
    }

    /// Allows all tools except these.
    pub fn but(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::But(names.into_iter().map(Into::into).collect())
    }

    /// Returns whether the tool `name` is allowed.
    pub fn includes(&self, name: &str) -> bool {
        let among = |names: &[String]| names.iter().any(|other| other == name);
        match self {
            Self::All => true,
            Self::Only(names) => among(names),
            Self::But(names) => !among(names),
        }
    }

    /// The included or excluded names.
    pub(crate) fn named(&self) -> &[String] {
        match self {
            Self::All => &[],
            Self::Only(names) | Self::But(names) => names,
        }
    }
}
