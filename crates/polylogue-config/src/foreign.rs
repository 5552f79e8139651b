//! Names of other systems, and their equivalents.

/// A key or word of another system, or one that people guess, and its equivalent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Foreign {
    /// The system, such as `AutoGen`; empty for a guess.
    pub system: &'static str,
    /// The key or word.
    pub name: &'static str,
    /// The only value of the key to which the row applies; empty for any value.
    pub value: &'static str,
    /// The types in which people write it, by their names in the reference, with commas between them.
    pub within: &'static str,
    /// The equivalent, in back quotes, such as `` `stop: {max_turns: ...}` ``.
    pub here: &'static str,
}

impl Foreign {
    /// Returns the types in which people write it.
    pub fn types(&self) -> impl Iterator<Item = &'static str> {
        self.within.split(", ")
    }

    /// Returns whether people write it in the type `within`.
    pub fn is_within(&self, within: &str) -> bool {
        self.types().any(|ty| ty == within)
    }

    /// Returns whether the row applies to the key or word `name` in the type `within`, with the word `value` if it has one.
    pub fn fits(&self, within: &str, name: &str, value: Option<&str>) -> bool {
        let has_value = self.value.is_empty() || value == Some(self.value);
        self.name == name && has_value && self.is_within(within)
    }

    /// Returns whether the equivalent is the key `name`, whatever its value.
    pub fn is_key(&self, name: &str) -> bool {
        self.here.strip_prefix('`').and_then(|here| here.strip_suffix('`')) == Some(name)
    }

    /// Returns the hint, such as: AutoGen's `system_message` is `system` here.
    pub fn hint(&self) -> String {
        let Self { system, name, value, here, .. } = self;
        let owner = if system.is_empty() { String::new() } else { format!("{system}'s ") };
        let value = if value.is_empty() { String::new() } else { format!(": {value}") };
        format!("{owner}`{name}{value}` is {here} here")
    }
}
