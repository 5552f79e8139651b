//! Which tools of a server an agent gets.

/// Which tools of a server an agent gets, by the names that the server gives them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub enum Allowed {
    /// All.
    #[default]
    All,
    /// These.
    Only(Vec<String>),
    /// All but these.
    But(Vec<String>),
}

impl Allowed {
    /// These tools only.
    pub fn only(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::Only(names.into_iter().map(Into::into).collect())
    }

    /// All tools but these.
    pub fn but(names: impl IntoIterator<Item = impl Into<String>>) -> Self {
        Self::But(names.into_iter().map(Into::into).collect())
    }

    /// Whether the tool called `name` is among them.
    #[must_use]
    pub fn includes(&self, name: &str) -> bool {
        let among = |names: &[String]| names.iter().any(|other| other == name);
        match self {
            Self::All => true,
            Self::Only(names) => among(names),
            Self::But(names) => !among(names),
        }
    }

    /// The names it speaks of.
    pub(crate) fn named(&self) -> &[String] {
        match self {
            Self::All => &[],
            Self::Only(names) | Self::But(names) => names,
        }
    }
}
