//! Keys, how they are recognized by their names, and redacting them from output.

use std::fmt;

/// A secret that authorizes requests. Never shown: not in errors, not in logs, not by `Debug`.
#[derive(Clone, PartialEq, Eq)]
pub struct Key(Box<str>);

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

impl fmt::Debug for Key {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("[key]")
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

/// Redacts secrets from texts.
#[derive(Clone, Default)]
pub struct Redactor {
    /// The secrets, longest first, and as JSON writes them where that differs.
    secrets: Vec<String>,
}

/// Shorter values are not treated as secrets: redacting them would only spoil texts.
const MIN_SECRET: usize = 6;

impl Redactor {
    /// Redacts `secrets`, also in their JSON form.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let mut all = Vec::new();
        for secret in secrets.into_iter().map(str::trim).filter(|secret| secret.len() >= MIN_SECRET) {
            // `Authorization: Bearer abc` in a custom header: the value alone is a secret, too.
            all.extend(secret.split_whitespace().filter(|word| word.len() >= MIN_SECRET).map(str::to_owned));
            all.push(secret.to_owned());
            all.push(secret.replace('/', "\\/"));
        }
        all.retain(|secret| !secret.eq_ignore_ascii_case("bearer"));
        all.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        all.dedup();
        Self { secrets: all }
    }

    /// Redacts these secrets and `more`.
    #[must_use]
    pub fn with<'a>(&self, more: impl IntoIterator<Item = &'a str>) -> Self {
        let mut both = Self::new(more);
        both.secrets.extend(self.secrets.iter().cloned());
        both.secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
        both
    }

    /// Returns `text` without the secrets.
    pub fn clean(&self, text: &str) -> String {
        let mut clean = text.to_owned();
        for secret in &self.secrets {
            if clean.contains(secret) {
                clean = clean.replace(secret, "[key]");
            }
        }
        clean
    }

    /// Returns the beginning of `text` without the secrets, at most `limit` bytes, even if `text` itself is truncated within
    /// one.
    pub fn excerpt(&self, text: &str, is_cut: bool, limit: usize) -> String {
        let mut clean = self.clean(text);
        if is_cut {
            let longest = self.secrets.first().map_or(0, String::len);
            let end = clean.floor_char_boundary(clean.len().saturating_sub(longest));
            clean.truncate(end);
        }
        clean.truncate(clean.floor_char_boundary(limit));
        clean
    }
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
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

    #[test]
    fn secrets_are_taken_out_of_texts_in_every_form() {
        let redactor = Redactor::new(["sk-se/cret-123", "Bearer token-456", "abc"]);
        let text = r#"key sk-se/cret-123, "sk-se\/cret-123", token-456, bearer, abc"#;
        assert_eq!(redactor.clean(text), r#"key [key], "[key]", [key], bearer, abc"#);
    }

    #[test]
    fn a_text_that_is_cut_within_a_secret_shows_no_part_of_it() {
        let redactor = Redactor::new(["sk-secret-123"]);
        assert_eq!(redactor.excerpt("wrong key sk-secre", true, 100), "wrong");
        assert_eq!(redactor.excerpt("sk-secret-123 ä", false, 7), "[key] ");
    }
}
