//! Names of tools that are called after participants.

use unicode_normalization::UnicodeNormalization;

/// The longest name of a tool that all providers take.
const MAX_CHARS: usize = 64;

/// How many digits of the hash tell names apart that are not legal themselves.
const DIGITS: usize = 12;

/// The name of the tool that is called after `text`.
pub(super) fn of(text: &str) -> String {
    if is_legal(text) && stem(text).is_none() {
        return text.to_owned();
    }
    let hash = blake3::hash(text.as_bytes()).to_hex();
    // Letters keep what is left of them without their accents.
    let ascii = text.nfd().map(|c| if c == ' ' { '_' } else { c }).filter(|c| is_legal_char(*c));
    let ascii: String = ascii.take(MAX_CHARS - DIGITS - 1).collect();
    let words = match ascii.trim_end_matches('_') {
        "" => "agent",
        words => words,
    };
    format!("{words}-{}", hash.get(..DIGITS).unwrap_or_default())
}

/// Which of the tools that are `offered` a model means that writes `tool`, in the characters of such names. Some models write
/// the participant's name, or leave out the digits.
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

/// `text` with `_` for all that is not legal.
fn written(text: &str) -> String {
    let text: String = text.chars().map(|c| if is_legal_char(c) { c } else { '_' }).take(MAX_CHARS).collect();
    if text.is_empty() { "unnamed".into() } else { text }
}

/// What stands before the digits of a hash, if `text` ends like a name that has them.
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
