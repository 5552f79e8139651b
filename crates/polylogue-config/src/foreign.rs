//! Names of other systems, and their equivalents.

/// A key or word of another system, and what it is called here.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    /// The system, such as `AutoGen`.
    pub system: &'static str,
    /// Its name for it.
    pub name: &'static str,
    /// The type in which people write it here, by its name in the reference; empty for any.
    pub within: &'static str,
    /// What to write here, such as `stop: {max_turns: ...}`.
    pub here: &'static str,
}

impl Foreign {
    /// Whether people who write `name` in one of the types `within` mean this.
    #[must_use]
    pub fn fits(&self, within: &[&str], name: &str) -> bool {
        self.name == name && (self.within.is_empty() || within.contains(&self.within))
    }

    /// The hint, such as: `system_message` of AutoGen is `system` here.
    #[must_use]
    pub fn hint(&self) -> String {
        format!("`{}` of {} is `{}` here", self.name, self.system, self.here)
    }
}
