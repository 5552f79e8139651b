//! Texts that look like keys of well-known services.

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

/// Returns `text` with `mark` instead of the words that look like keys.
pub(crate) fn without_keys(text: &str, mark: &str) -> String {
    let mut clean = String::with_capacity(text.len());
    let mut is_escaped = false;
    for piece in text.split_inclusive(is_break) {
        let word = piece.trim_end_matches(is_break);
        match key_at_end(word, is_escaped) {
            Some(key) => {
                clean.push_str(word.strip_suffix(key).unwrap_or_default());
                clean.push_str(mark);
                clean.push_str(piece.strip_prefix(word).unwrap_or_default());
            }
            None => clean.push_str(piece),
        }
        is_escaped = piece.ends_with('\\');
    }
    clean
}

/// Where the last word of `text` begins, if it may be the beginning of a key whose rest was cut off.
pub(crate) fn begun_key(text: &str) -> Option<usize> {
    let last = text.rsplit(is_break).next().filter(|last| begins_like_key(last))?;
    Some(text.len() - last.len())
}

/// The key that `word` is. After a backslash, the word may begin with the rest of an escape of JSON, as in `\nsk-...`.
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
