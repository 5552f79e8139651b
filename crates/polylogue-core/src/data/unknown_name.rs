//! Names that do not exist.

use std::fmt;

/// A name that does not exist, and the names that do.
///
/// ```
/// use polylogue_core::{Error, UnknownName};
/// let error = Error::from(UnknownName::new("layer", "cod").within("of `Bob`").known(["code", "model"]));
/// assert_eq!(error.to_string(), "unknown layer `cod` of `Bob`");
/// assert_eq!(error.hint().as_deref(), Some("use one of `code`, `model`"));
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownName {
    /// The kind of name, such as `agent`.
    pub kind: &'static str,
    /// The name.
    pub name: String,
    /// The place where it is written, or the item that lacks it, with a preposition; empty if that is clear.
    pub place: String,
    /// The names that exist.
    pub known: Vec<String>,
}

impl UnknownName {
    /// Creates the error that no `kind` has this name.
    pub fn new(kind: &'static str, name: impl fmt::Display) -> Self {
        Self { kind, name: name.to_string(), place: String::new(), known: Vec::new() }
    }

    /// Sets where the name stands, or what does not have it, with a preposition, such as `` of `Bob` ``.
    #[must_use]
    pub fn within(self, place: impl Into<String>) -> Self {
        Self { place: place.into(), ..self }
    }

    /// Sets the names that exist.
    #[must_use]
    pub fn known(self, names: impl IntoIterator<Item = impl fmt::Display>) -> Self {
        Self { known: names.into_iter().map(|name| name.to_string()).collect(), ..self }
    }

    /// Returns which names exist, if that is known.
    pub fn hint(&self) -> Option<String> {
        let known = self.known.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ");
        (!known.is_empty()).then(|| format!("use one of {known}"))
    }
}

impl fmt::Display for UnknownName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { kind, name, place, .. } = self;
        write!(f, "unknown {kind} `{name}`{}{place}", if place.is_empty() { "" } else { " " })
    }
}

impl std::error::Error for UnknownName {}
