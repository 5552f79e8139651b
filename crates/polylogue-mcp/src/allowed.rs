//! Filters of tools.

/// The tools of a server that an agent can use, by their names at the server.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Allowed {
    /// All tools.
    #[default]
    All,
    /// Only these tools.
    Include(Vec<String>),
    /// All tools except these.
    Exclude(Vec<String>),
}

impl Allowed {
    /// Allows only these tools.
    pub fn include(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Include(names.into_iter().map(Into::into).collect())
    }

    /// Allows all tools except these.
    pub fn exclude(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Exclude(names.into_iter().map(Into::into).collect())
    }

    /// Returns whether the tool `name` is allowed.
    pub fn includes(&self, name: &str) -> bool {
        let among = |names: &[String]| names.iter().any(|other| other == name);
        match self {
            Self::All => true,
            Self::Include(names) => among(names),
            Self::Exclude(names) => !among(names),
        }
    }

    /// The included or excluded names.
    pub(crate) fn named(&self) -> &[String] {
        match self {
            Self::All => &[],
            Self::Include(names) | Self::Exclude(names) => names,
        }
    }
}
