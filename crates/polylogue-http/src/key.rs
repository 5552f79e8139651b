//! Keys, and how they are recognized by their names.

use std::fmt;
use std::sync::Arc;

/// A secret that authorizes requests. Never shown: not in errors, not in logs, not by `Debug`. Cloning shares it.
#[derive(Clone, PartialEq, Eq, derive_more::Debug)]
#[debug("[key]")]
pub struct Key(Arc<str>);

impl Key {
    /// Creates a key without surrounding white space. `None` if it is blank.
    pub fn new(text: &str) -> Option<Self> {
        let text = text.trim();
        (!text.is_empty()).then(|| Self(text.into()))
    }

    /// Returns all keys of a text with one key, or several separated by commas.
    pub fn several(text: &str) -> Vec<Self> {
        text.split(',').filter_map(Self::new).collect()
    }

    /// Returns the key itself, for sending it.
    pub fn reveal(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
    }
}

/// Headers that hold a secret whatever it looks like, and what names of further ones end with.
const SECRET_HEADERS: [&str; 4] = ["authorization", "proxy-authorization", "cookie", "api-key"];
const SECRET_ENDINGS: [&str; 4] = ["-api-key", "-auth-token", "-access-token", "-secret"];

/// Returns whether the value of an HTTP header called `name` is a secret.
pub fn is_secret_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    SECRET_HEADERS.contains(&name.as_str()) || SECRET_ENDINGS.iter().any(|ending| name.ends_with(ending))
}

/// What the names of variables end with that hold secrets.
const SECRET_VARIABLES: [&str; 5] = ["key", "token", "secret", "password", "credentials"];

/// Returns whether a header or variable called `name` holds a secret by what it is for.
pub fn is_secret_name(name: &str) -> bool {
    let lower = name.to_ascii_lowercase();
    is_secret_header(name) || SECRET_VARIABLES.iter().any(|ending| lower.ends_with(ending))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_shows_itself_nowhere() {
        let key = Key::new(" sk-secret-123 \n").unwrap();
        assert_eq!(format!("{key} {key:?} {:?}", Some(&key)), "[key] [key] Some([key])");
        assert_eq!(key.reveal(), "sk-secret-123");
        assert_eq!(Key::new("  "), None);
        let several = Key::several("sk-1, sk-2,,\n");
        assert_eq!(several.iter().map(Key::reveal).collect::<Vec<_>>(), ["sk-1", "sk-2"]);
    }
}
