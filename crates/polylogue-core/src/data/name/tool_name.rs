//! Names of tools that are derived from participants.

use unicode_normalization::UnicodeNormalization;

/// The maximum length of a tool name that all providers accept.
const MAX_CHARS: usize = 64;

/// How many digits of the hash follow a name that is not valid itself.
const DIGITS: usize = 12;

/// The tool name for `text`.
pub(super) fn of(text: &str) -> String {
    if is_legal(text) && stem(text).is_none() {
        return text.to_owned();
    }
    let hash = blake3::hash(text.as_bytes()).to_hex();
    // Accented letters keep their base letter.
    let ascii = text.nfd().map(|c| if c == ' ' { '_' } else { c }).filter(|c| is_legal_char(*c));
    let ascii: String = ascii.take(MAX_CHARS - DIGITS - 1).collect();
    let ascii = match ascii.trim_end_matches('_') {
        "" => "agent",
        ascii => ascii,
    };
    format!("{ascii}-{}", hash.get(..DIGITS).unwrap_or_default())
}

/// Resolves the tool name that a model wrote to one of the `offered` tools. Some models write the participant's name,
/// or omit the digits.
pub(crate) fn resolved<'t>(tool: &str, offered: impl Iterator<Item = &'t str> + Clone) -> String {
    let is_offered = |name: &str| offered.clone().any(|other| other == name);
    let plain = written(tool);
    if let Some(name) = [tool.to_owned(), of(tool), plain.clone()].into_iter().find(|name| is_offered(name)) {
        return name;
    }
    let mut meant = offered.filter(|name| stem(name) == Some(&plain));
    match (meant.next(), meant.next()) {
        (Some(only), None) => only.to_owned(),
        _ => plain,
    }
}

/// `text` with `_` for all invalid characters.
fn written(text: &str) -> String {
    let text: String = text.chars().map(|c| if is_legal_char(c) { c } else { '_' }).take(MAX_CHARS).collect();
    if text.is_empty() { "unnamed".into() } else { text }
}

/// The text before the digits of a hash, if `text` ends like a name with digits.
fn stem(text: &str) -> Option<&str> {
    let (stem, digits) = text.rsplit_once('-')?;
    let is_digit = |b: u8| b.is_ascii_digit() || matches!(b, b'a'..=b'f');
    (digits.len() == DIGITS && digits.bytes().all(is_digit)).then_some(stem)
}

fn is_legal(text: &str) -> bool {
    (1..=MAX_CHARS).contains(&text.len()) && text.chars().all(is_legal_char)
}

const fn is_legal_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-')
}
