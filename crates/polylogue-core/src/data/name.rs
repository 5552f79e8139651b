//! Names of participants.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

mod characters;
mod tool_name;

pub(crate) use characters::is_label;
pub(crate) use tool_name::resolved;

/// The name of a participant, used as author and in audiences.
///
/// A name has 1 to 64 characters and begins with a letter of any script. Letters with their marks, digits, `_`, `-`, `'`, `’`
/// and `·` follow, and single spaces between them. Cloning is cheap.
///
/// Invalid are characters that are invisible or reorder others (controls, joiners, bidirectional marks, fillers,
/// variation selectors), spaces at the ends and in a row, and `.` and `/`, which separate names in a
/// [`Path`](crate::Path).
///
/// Names are normalized to NFC, so that forms of Unicode that look the same are the same name.
///
/// What creates an agent or a chat takes its name as text or as a `Name`, and checks it; what refers to a participant takes
/// a `Name`.
///
/// Texts of requests contain the name unchanged. Providers accept only ASCII letters, digits, `_` and `-` in tool
/// names; for these use [`tool_name`](Self::tool_name).
///
/// ```
/// use polylogue_core::Name;
/// assert_eq!(Name::new("Ai assistant 1")?.as_str(), "Ai assistant 1");
/// assert_eq!(Name::new("E\u{301}lodie")?, Name::new("Élodie")?);
/// assert!(Name::new("Ann ").is_err());
/// # Ok::<(), polylogue_core::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

impl Name {
    /// The maximum length in characters.
    pub const MAX_CHARS: usize = characters::MAX;

    /// Checks `text` and normalizes it to NFC.
    ///
    /// # Errors
    /// When `text` is not a valid name; the error says why and suggests a valid one.
    pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
        let text = characters::composed(text.as_ref());
        match characters::flaw(&text) {
            None => Ok(Self(text.into())),
            Some(flaw) => Err(NameError { name: text.chars().take(80).collect(), flaw }),
        }
    }

    /// Returns the author of a task that no participant wrote: the person or program that started the run.
    pub fn user() -> Self {
        Self("user".into())
    }

    /// Returns the author of a message from outside that neither the user nor a participant says.
    pub fn system() -> Self {
        Self("system".into())
    }

    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the name of a tool for this participant, after `prefix`: at most 64 ASCII letters, digits, `_` and `-`, as all
    /// providers accept.
    ///
    /// Deterministic, and different for every name: a name that is not valid as a tool name is followed by 12 digits
    /// of its BLAKE3 hash, and so is a valid one that ends like a name with such digits.
    ///
    /// ```
    /// use polylogue_core::Name;
    /// assert_eq!(Name::new("Critic")?.tool_name("ask_"), "ask_Critic");
    /// let spaced = Name::new("Ai assistant 1")?.tool_name("");
    /// assert!(spaced.starts_with("Ai_assistant_1-") && spaced.len() == 27);
    /// # Ok::<(), polylogue_core::NameError>(())
    /// ```
    pub fn tool_name(&self, prefix: &str) -> String {
        Self::tool_called(&format!("{prefix}{self}"))
    }

    /// Returns the name of a tool for the participants in `text`, such as `transfer_to_` and a name.
    pub fn tool_called(text: &str) -> String {
        tool_name::of(&characters::composed(text))
    }

    /// Converts `text` to NFC, the normal form of names, to search it for names.
    pub fn composed(text: &str) -> Cow<'_, str> {
        characters::composed(text)
    }

    /// Returns whether `c` is part of a word: a letter, a digit, a mark on one of them, or `_`.
    pub fn is_of_word(c: char) -> bool {
        characters::is_of_word(c)
    }
}

/// The error for a text that is not a valid [`Name`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name `{}` {flaw}", shown(name))]
pub struct NameError {
    name: String,
    flaw: &'static str,
}

impl NameError {
    /// Returns a valid name close to the invalid one, if there is any.
    pub fn suggestion(&self) -> Option<Name> {
        let words = self.name.split_whitespace().map(|word| {
            let pieces = word.split(|c| !characters::is_of_name(c));
            pieces.filter(|piece| !piece.is_empty()).collect::<Vec<_>>().join("_")
        });
        let words: Vec<String> = words.filter(|word| !word.is_empty()).collect();
        let text: String = words.join(" ").chars().take(Name::MAX_CHARS).collect();
        Name::new(text.trim_end()).ok()
    }

    /// Returns how to fix the name: the [suggestion](Self::suggestion), if there is any.
    pub fn hint(&self) -> Option<String> {
        self.suggestion().map(|name| format!("use `{name}`"))
    }
}

/// An invalid name, with its invisible characters as escapes.
fn shown(name: &str) -> String {
    let visible = |c: char| {
        c.is_ascii_graphic() || c == ' ' || characters::is_of_word(c) && !characters::is_invisible(c)
    };
    name.chars().map(|c| if visible(c) { c.to_string() } else { c.escape_unicode().to_string() }).collect()
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, f)
    }
}

impl TryFrom<String> for Name {
    type Error = NameError;
    fn try_from(text: String) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl TryFrom<&str> for Name {
    type Error = NameError;
    fn try_from(text: &str) -> Result<Self, NameError> {
        Self::new(text)
    }
}

impl From<Name> for String {
    fn from(name: Name) -> Self {
        name.0.as_ref().to_owned()
    }
}

impl AsRef<str> for Name {
    fn as_ref(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        &*self.0 == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        &*self.0 == *other
    }
}

#[cfg(test)]
#[path = "name_tests.rs"]
mod tests;
