//! Names of participants.

use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

/// The name of a participant: what an author signs with and an audience lists.
///
/// A name has 1 to 64 characters, begins with a letter, and goes on with letters, digits, `_` and `-`. ASCII
/// names of this form are legal in every provider's `name` field; letters of other scripts are allowed too,
/// because Polylogue writes names into the text of a request and not into that field. Cloning is cheap.
///
/// ```
/// use polylogue_core::Name;
/// assert_eq!(Name::new("Stock_Trader")?.as_str(), "Stock_Trader");
/// assert!(Name::new("Stock Trader").is_err());
/// # Ok::<(), polylogue_core::NameError>(())
/// ```
#[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Name(Arc<str>);

impl Name {
    /// The longest name, in characters.
    pub const MAX_CHARS: usize = 64;

    /// Checks `text` and makes a name of it.
    ///
    /// # Errors
    /// When `text` is no legal name; the error says why and suggests a legal one.
    pub fn new(text: impl AsRef<str>) -> Result<Self, NameError> {
        let text = text.as_ref();
        match flaw(text) {
            None => Ok(Self(text.into())),
            Some(flaw) => Err(NameError { name: text.chars().take(80).collect(), flaw }),
        }
    }

    /// The author of a task that no participant wrote: the person or program that started the run.
    #[must_use]
    pub fn user() -> Self {
        Self("user".into())
    }

    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn flaw(text: &str) -> Option<&'static str> {
    if text.is_empty() {
        return Some("is empty");
    }
    if text.chars().count() > Name::MAX_CHARS {
        return Some("is longer than 64 characters");
    }
    if !text.starts_with(char::is_alphabetic) {
        return Some("does not begin with a letter");
    }
    let legal = |c: char| c.is_alphanumeric() || c == '_' || c == '-';
    (!text.chars().all(legal)).then_some("has characters other than letters, digits, `_` and `-`")
}

/// A text that is no legal [`Name`].
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the name `{name}` {flaw}")]
pub struct NameError {
    name: String,
    flaw: &'static str,
}

impl NameError {
    /// A legal name close to the refused one, if there is any.
    #[must_use]
    pub fn suggestion(&self) -> Option<Name> {
        let words: Vec<&str> =
            self.name.split(|c: char| !c.is_alphanumeric() && c != '-').filter(|w| !w.is_empty()).collect();
        Name::new(words.join("_").chars().take(Name::MAX_CHARS).collect::<String>()).ok()
    }
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
mod tests {
    use super::*;

    #[test]
    fn illegal_names_are_refused_with_a_reason_and_a_suggestion() {
        for (bad, why, fix) in [
            ("", "is empty", None),
            ("Stock Trader", "has characters", Some("Stock_Trader")),
            ("a/b.3", "has characters", Some("a_b_3")),
            ("3rd", "does not begin with a letter", None),
            (&*"x".repeat(65), "is longer than 64", Some(&*"x".repeat(64))),
        ] {
            let error = Name::new(bad).unwrap_err();
            assert!(error.to_string().contains(why), "{error}");
            assert_eq!(error.suggestion().as_ref().map(Name::as_str), fix, "{bad}");
        }
    }

    #[test]
    fn names_of_any_script_are_legal() {
        for good in ["a", "Stock_Trader", "critic-2", "Köchin", "翻译"] {
            assert_eq!(Name::new(good).unwrap(), *good);
        }
    }
}
