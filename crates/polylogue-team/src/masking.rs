//! YAML whose secrets no diagnostic shows, also where it cannot be parsed.

use polylogue_http::keys_in;

use crate::diagnostic::Report;
use crate::secret::{contains_credential, is_secret_name, looks_like_key};
use crate::source::Source;
use crate::text::is_variable;
use crate::yaml::{self, Node};

/// Returns the tree of the report's source, as [`yaml::parse`] does. Words that look like keys of well-known services are hidden in the lines that
/// are shown, also in comments and in names of keys. If the text is not YAML, so is all else that looks like a secret: there is no tree in
/// which the caller could find it.
///
/// ```
/// use polylogue_config::{diagnostic::Report, source::Source};
///
/// let source = Source::new("t.yaml", "endpoints: {mine: {key: sk-proj-0123456789abcdef\n");
/// let mut report = Report::new(&source);
/// assert!(polylogue_team::parse_yaml(&mut report).is_none());
/// assert!(!report.finish().to_string().contains("0123456789abcdef"));
/// ```
pub fn parse_yaml(report: &mut Report<'_>) -> Option<Node> {
    let source = report.source;
    keys_in(source.text).for_each(|key| source.hide(key));
    let root = yaml::parse(report);
    if root.is_none() {
        hide_words(source);
    }
    root
}

/// Hides the words that look like secrets, by themselves or by what is before them, in a text that may have any syntax.
pub(crate) fn hide_words(source: &Source<'_>) {
    let is_break = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | ',' | '[' | ']' | '{' | '}');
    keys_in(source.text).for_each(|key| source.hide(key));
    let (mut at, mut before, mut is_announced) = (0, "", false);
    for piece in source.text.split_inclusive(is_break) {
        let word = piece.trim_end_matches(is_break);
        let span = at..at + word.len();
        at += piece.len();
        if !word.is_empty() {
            let is_secret = is_announced && !is_variable(word);
            if is_secret || looks_like_key(word) || contains_credential(word) {
                source.hide(span);
            }
            is_announced = announces_secret(before, word);
            before = word;
        }
        // What follows is not the value itself.
        is_announced &= !piece.ends_with(['\n', '{', '[', ',']);
    }
}

/// Whether a secret follows `word`: it is the name of one with its colon, which may be apart from it, or the scheme of an `Authorization` header.
fn announces_secret(before: &str, word: &str) -> bool {
    let name = match word.strip_suffix(':') {
        Some("") => before,
        Some(name) => name,
        None => return ["bearer", "basic"].iter().any(|scheme| word.eq_ignore_ascii_case(scheme)),
    };
    matches!(name, "key" | "env") || is_secret_name(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The line of `text`, which is not YAML, as an error shows it.
    fn shown(text: &str) -> String {
        let source = Source::new("t.yaml", text);
        let mut report = Report::new(&source);
        assert!(parse_yaml(&mut report).is_none(), "{text}");
        report.error(&(0..1), "a mistake in this line");
        let found = report.finish();
        found.iter().filter_map(|one| one.place.as_ref()).find(|at| at.line == 1).unwrap().text.clone()
    }

    #[test]
    fn what_looks_like_a_secret_is_hidden_in_a_text_that_is_not_yaml() {
        for (text, expected) in [
            ("a: [sk-abcdefghijklmnop12345", "a: [************************"),
            ("a: [xsk, \"sk-abc-defgh\"", "a: [xsk, \"************\""),
            ("a: [x # \\nsk-abcdefghijklmnop12345", "a: [x # \\n************************"),
            ("{key: hunter-22, url: http://host", "{key: *********, url: http://host"),
            ("{\"api_key\" : \"hunter-22\", b: c", "{\"api_key\" : \"*********\", b: c"),
            ("h: [Authorization: Bearer hunter-22", "h: [Authorization: Bearer *********"),
            (
                "{key: {env: MY_KEY}, url: x?token=1234567890abcdef",
                "{key: {env: MY_KEY}, url: ************************",
            ),
            ("{key: MY_KEY, system: The key is small-talk", "{key: MY_KEY, system: The key is small-talk"),
        ] {
            assert_eq!(shown(text), expected, "{text}");
        }
    }
}
