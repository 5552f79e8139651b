//! Redacting secrets from what servers and tools return.

use std::collections::BTreeSet;
use std::fmt;
use std::sync::{Arc, OnceLock};

use aho_corasick::{AhoCorasick, MatchKind};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD_NO_PAD, URL_SAFE_NO_PAD};

use crate::key_format::{begun_key, without_keys};

/// Redacts secrets from texts: as they are, as JSON writes them, and longer ones also in base64 and in hexadecimal digits, wherever they
/// begin in what was encoded.
///
/// ```
/// use polylogue_http::Redactor;
///
/// let redactor = Redactor::new(["sk-0123456789abcdef"]);
/// assert_eq!(redactor.clean("the key sk-0123456789abcdef is wrong"), "the key [key] is wrong");
/// // With a name before it, as in basic authentication.
/// assert_eq!(redactor.clean("Basic dTpzay0wMTIzNDU2Nzg5YWJjZGVm"), "Basic dTp[key]");
/// ```
#[derive(Clone, Default)]
pub struct Redactor {
    secrets: BTreeSet<String>,
    /// Whether texts that look like keys are secrets, too.
    has_formats: bool,
    /// Finds all their forms; made when the first text is cleaned. `None` within: they are too many for one search.
    finder: Arc<OnceLock<Option<AhoCorasick>>>,
}

/// Shorter values are not treated as secrets: redacting them would only spoil texts.
const MIN_SECRET: usize = 6;

/// Shorter values are not looked for in other encodings.
const MIN_ENCODED: usize = 16;

impl Redactor {
    /// Redacts `secrets`, and each word of them: in `Bearer abc` of a custom header, the value alone is a secret, too.
    pub fn new<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let with_words = |secret: &'a str| secret.split_whitespace().chain([secret.trim()]);
        let is_secret = |word: &&str| !word.eq_ignore_ascii_case("bearer");
        Self::exact(secrets.into_iter().flat_map(with_words).filter(is_secret))
    }

    /// Redacts `secrets` as a whole.
    pub fn exact<'a>(secrets: impl IntoIterator<Item = &'a str>) -> Self {
        let long = secrets.into_iter().filter(|secret| secret.len() >= MIN_SECRET);
        Self { secrets: long.map(str::to_owned).collect(), has_formats: false, finder: Arc::default() }
    }

    /// Redacts all words that look like keys of well-known services, too, such as those that a gateway uses and quotes in its errors.
    ///
    /// ```
    /// use polylogue_http::Redactor;
    ///
    /// let redactor = Redactor::default().with_key_formats();
    /// assert_eq!(redactor.clean("the key sk-0123456789abcdef0 is wrong"), "the key [key] is wrong");
    /// ```
    #[must_use]
    pub fn with_key_formats(self) -> Self {
        Self { has_formats: true, ..self }
    }

    /// Redacts these secrets and `more`.
    #[must_use]
    pub fn with<'a>(&self, more: impl IntoIterator<Item = &'a str>) -> Self {
        let mut both = Self { has_formats: self.has_formats, ..Self::new(more) };
        both.secrets.extend(self.secrets.iter().cloned());
        both
    }

    /// Returns `text` with `[key]` instead of the secrets.
    pub fn clean(&self, text: &str) -> String {
        self.clean_as(text, "[key]")
    }

    /// Returns `text` with `mark` instead of the secrets.
    pub fn clean_as(&self, text: &str, mark: &str) -> String {
        let clean = self.without_secrets(text, mark);
        if self.has_formats { without_keys(&clean, mark) } else { clean }
    }

    fn without_secrets(&self, text: &str, mark: &str) -> String {
        if self.secrets.is_empty() {
            return text.to_owned();
        }
        let find = || AhoCorasick::builder().match_kind(MatchKind::LeftmostLongest).build(self.forms()).ok();
        let Some(finder) = self.finder.get_or_init(find) else {
            return self.forms().iter().fold(text.to_owned(), |text, form| text.replace(form, mark));
        };
        let mut clean = String::with_capacity(text.len());
        finder.replace_all_with(text, &mut clean, |_, _, clean| {
            clean.push_str(mark);
            true
        });
        clean
    }

    /// Returns the beginning of `text` without the secrets, at most `limit` bytes, even if `text` itself is truncated within
    /// one.
    pub fn excerpt(&self, text: &str, is_cut: bool, limit: usize) -> String {
        let mut clean = self.clean(text);
        if is_cut && let Some(begun) = self.begun_at_end(&clean) {
            clean.truncate(begun);
        }
        clean.truncate(clean.floor_char_boundary(limit));
        clean
    }

    /// Where a secret begins whose end is after the text.
    fn begun_at_end(&self, text: &str) -> Option<usize> {
        let forms = self.forms();
        let longest = forms.first().map_or(0, String::len);
        let from = text.floor_char_boundary(text.len().saturating_sub(longest));
        let mut ends = text.get(from..).unwrap_or_default().char_indices().map(|(at, _)| from + at);
        let begins =
            |at: &usize| text.get(*at..).is_some_and(|end| forms.iter().any(|form| form.starts_with(end)));
        let begun = ends.find(begins);
        let begun_key = begun_key(text).filter(|_| self.has_formats);
        begun.into_iter().chain(begun_key).min()
    }

    /// What secrets look like in texts, the longest first.
    fn forms(&self) -> Vec<String> {
        let forms: BTreeSet<String> = self.secrets.iter().flat_map(|secret| forms_of(secret)).collect();
        let mut forms: Vec<String> = forms.into_iter().collect();
        forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
        forms
    }
}

/// What `secret` looks like in texts.
fn forms_of(secret: &str) -> Vec<String> {
    let mut forms = vec![secret.to_owned(), secret.replace('/', "\\/")];
    if secret.len() < MIN_ENCODED {
        return forms;
    }
    let hex: String = secret.bytes().map(|byte| format!("{byte:02x}")).collect();
    forms.extend([hex.to_ascii_uppercase(), hex]);
    for before in 0..3 {
        // After so many other bytes. A digit has 6 bits: those that these bytes, or what follows, have a part of, can be any.
        let mut bytes = vec![0; before];
        bytes.extend(secret.bytes());
        let (from, to) = ((8 * before).div_ceil(6), 8 * bytes.len() / 6);
        let encoded = [STANDARD_NO_PAD.encode(&bytes), URL_SAFE_NO_PAD.encode(&bytes)];
        forms.extend(encoded.iter().filter_map(|text| text.get(from..to)).map(str::to_owned));
    }
    forms
}

impl fmt::Debug for Redactor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Redactor")
    }
}

#[cfg(test)]
mod tests {
    use base64::engine::general_purpose::{STANDARD, URL_SAFE};
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn secrets_are_taken_out_of_texts_in_every_form() {
        let redactor = Redactor::new(["sk-se/cret-123", "Bearer token-456", "abc"]);
        let text = r#"key sk-se/cret-123, "sk-se\/cret-123", token-456, bearer, abc"#;
        assert_eq!(redactor.clean(text), r#"key [key], "[key]", [key], bearer, abc"#);
        let exact = Redactor::exact(["Bearer token-456"]);
        assert_eq!(exact.clean_as("Bearer token-456 token-456", "***"), "*** token-456");
        assert_eq!(Redactor::default().clean("sk-se/cret-123"), "sk-se/cret-123");
    }

    #[test]
    fn a_text_that_is_cut_within_a_secret_shows_no_part_of_it() {
        let redactor = Redactor::new(["sk-secret-123"]);
        assert_eq!(redactor.excerpt("wrong key sk-secre", true, 100), "wrong key ");
        assert_eq!(redactor.excerpt("wrong key sk-secre", false, 100), "wrong key sk-secre");
        assert_eq!(redactor.excerpt("a text that is cut", true, 100), "a text that is cut");
        assert_eq!(redactor.excerpt("sk-secret-123 ä", false, 7), "[key] ");
        let long = Redactor::new(["sk-0123456789abcdef"]);
        let encoded = STANDARD.encode("u:sk-0123456789abcdef");
        assert_eq!(long.excerpt(&encoded[..12], true, 100), "dTp");
    }

    #[test]
    fn secrets_that_come_later_are_found_as_well() {
        let first = Redactor::new(["sk-0123456789abcdef"]);
        assert_eq!(first.clean("sk-0123456789abcdef token-456"), "[key] token-456");
        let both = first.with(["Bearer token-456"]);
        assert_eq!(both.clean("sk-0123456789abcdef token-456"), "[key] [key]");
        assert_eq!(first.clean("token-456"), "token-456");
    }

    #[test]
    fn texts_that_look_like_keys_are_secrets_on_request() {
        let text = "sk-fedcba9876543210fedc token-456";
        assert_eq!(Redactor::new(["token-456"]).clean(text), "sk-fedcba9876543210fedc [key]");
        let redactor = Redactor::default().with_key_formats();
        assert_eq!(redactor.clean(text), "[key] token-456");
        assert_eq!(redactor.with(["token-456"]).clean(text), "[key] [key]");
        assert_eq!(redactor.excerpt("wrong key sk-fed", true, 100), "wrong key ");
        assert_eq!(redactor.excerpt("wrong key sk-fed", false, 100), "wrong key sk-fed");
    }

    #[test]
    fn short_ones_are_not_looked_for_in_other_encodings() {
        let redactor = Redactor::new(["0123456789abcde"]);
        let encoded = STANDARD.encode("0123456789abcde");
        assert_eq!(redactor.clean(&encoded), encoded);
    }

    /// The digits of `encoded` that have bits of the secret only, which begins after so many bytes.
    fn own_digits(encoded: &str, before: usize, secret: &str) -> String {
        encoded[(8 * before).div_ceil(6)..8 * (before + secret.len()) / 6].to_owned()
    }

    proptest! {
        #[test]
        fn no_encoding_of_a_secret_is_left_wherever_it_begins(
            secret in "[!-~]{16,60}",
            before in proptest::collection::vec(any::<u8>(), 0..9),
            after in proptest::collection::vec(any::<u8>(), 0..9),
        ) {
            let redactor = Redactor::new([secret.as_str()]);
            let bytes = [&before[..], secret.as_bytes(), &after[..]].concat();
            for engine in [&STANDARD, &URL_SAFE, &STANDARD_NO_PAD, &URL_SAFE_NO_PAD] {
                let encoded = engine.encode(&bytes);
                let own = own_digits(&encoded, before.len(), &secret);
                let clean = redactor.clean(&format!("x {encoded} y"));
                prop_assert!(clean.contains("[key]") && !clean.contains(&own), "{clean}");
            }
            let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
            for hex in [hex.to_uppercase(), hex] {
                let own = &hex[2 * before.len()..2 * (before.len() + secret.len())];
                prop_assert!(!redactor.clean(&hex).contains(own), "{hex}");
            }
        }
    }
}
