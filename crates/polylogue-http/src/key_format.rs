//! Texts that look like keys of well-known services.

use std::ops::Range;

/// What the keys of well-known services begin with.
const BEGINNINGS: [&str; 22] = [
    "sk-", "sk_", "rk_", "gsk_", "xai-", "csk-", "hf_", "nvapi-", "pplx-", "fw_", "tgp_", "r8_", "AIza",
    "AKIA", "ghp_", "gho_", "ghs_", "github_pat_", "glpat-", "xoxb-", "xoxp-", "eyJ",
];

/// The shortest word within a text that is taken for a key, in bytes.
const SHORTEST: usize = 20;

/// Returns whether `word` begins as the keys of well-known services do.
///
/// ```
/// assert!(polylogue_http::begins_like_key("sk-proj"));
/// assert!(!polylogue_http::begins_like_key("task-1"));
/// ```
pub fn begins_like_key(word: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| word.starts_with(beginning))
}

/// Returns whether a word of `text` looks like a key of a well-known service: it begins as these do, has at least 20 bytes, and both letters
/// and digits after its beginning.
///
/// ```
/// assert!(polylogue_http::contains_key("the key sk-proj-0123456789abcdef is wrong"));
/// assert!(!polylogue_http::contains_key("a key begins with `sk-`"));
/// ```
pub fn contains_key(text: &str) -> bool {
    text.split(is_break).any(is_key)
}

/// Returns where the words of `text` are that look like keys of well-known services, in order, as [`contains_key`] finds them. After a backslash, a
/// word may begin with the rest of an escape of JSON, as in `\nsk-...`.
///
/// ```
/// let text = "the key sk-proj-0123456789abcdef is wrong";
/// assert_eq!(polylogue_http::keys_in(text).collect::<Vec<_>>(), [8..32]);
/// ```
pub fn keys_in(text: &str) -> impl Iterator<Item = Range<usize>> {
    let (mut end, mut is_escaped) = (0, false);
    text.split_inclusive(is_break).filter_map(move |piece| {
        let word = piece.trim_end_matches(is_break);
        let key = key_at_end(word, is_escaped);
        let word_end = end + word.len();
        is_escaped = piece.ends_with('\\');
        end += piece.len();
        key.map(|key| word_end - key.len()..word_end)
    })
}

/// Returns `text` with `mark` instead of the words that look like keys.
pub(crate) fn without_keys(text: &str, mark: &str) -> String {
    let (mut clean, mut rest) = (String::with_capacity(text.len()), 0);
    for key in keys_in(text) {
        clean.push_str(text.get(rest..key.start).unwrap_or_default());
        clean.push_str(mark);
        rest = key.end;
    }
    clean.push_str(text.get(rest..).unwrap_or_default());
    clean
}

/// Where the last word of `text` begins, if it may be the beginning of a key whose rest was cut off.
pub(crate) fn begun_key(text: &str) -> Option<usize> {
    let last = text.rsplit(is_break).next().filter(|last| begins_like_key(last))?;
    Some(text.len() - last.len())
}

/// The key that `word` is, or ends with after the rest of an escape.
fn key_at_end(word: &str, is_escaped: bool) -> Option<&str> {
    let escape = if word.starts_with('u') { 5 } else { 1 };
    let unescaped = word.get(escape..).filter(|_| is_escaped);
    [Some(word), unescaped].into_iter().flatten().find(|word| is_key(word))
}

fn is_key(word: &str) -> bool {
    let varied = |rest: &str| {
        rest.bytes().any(|b| b.is_ascii_digit()) && rest.bytes().any(|b| b.is_ascii_alphabetic())
    };
    let rest = BEGINNINGS.iter().find_map(|beginning| word.strip_prefix(beginning));
    word.len() >= SHORTEST && rest.is_some_and(varied)
}

/// Whether `c` is in no key.
const fn is_break(c: char) -> bool {
    !(c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn words_that_look_like_keys_are_replaced_and_others_stay() {
        let key = "sk-abcdefghijklmnopqrstuvwxyz012345";
        for (text, expected) in [
            (format!("bad key {key}"), "bad key [key]"),
            (format!("`{key}`, {key}."), "`[key]`, [key]."),
            (format!(r#"{{"error":"bad key\n{key}"}}"#), r#"{"error":"bad key\n[key]"}"#),
            (format!(r#"{{"error":"\u0022{key}\u0022"}}"#), r#"{"error":"\u0022[key]\u0022"}"#),
            (r"C:\rk_0123456789abcdefghij".to_owned(), r"C:\[key]"),
            ("eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxMjM0NTYifQ.x".to_owned(), "[key].[key].x"),
            (format!("tasks: de{key}"), ""),
            ("sk-... and sk-of-a-model-without-digits".to_owned(), ""),
            ("sk-1234, ä".to_owned(), ""),
        ] {
            let expected = if expected.is_empty() { text.as_str() } else { expected };
            assert_eq!(without_keys(&text, "[key]"), expected);
        }
        assert!(contains_key(&format!("bad key {key}")) && !contains_key("sk-... and sk-1234"));
    }

    #[test]
    fn a_key_whose_end_is_cut_off_is_found_by_its_beginning() {
        assert_eq!(begun_key("bad key sk-ab"), Some(8));
        for text in ["bad key sk-ab.", "bad task-ab", ""] {
            assert_eq!(begun_key(text), None, "{text}");
        }
    }
}
