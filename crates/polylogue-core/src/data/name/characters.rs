//! The characters of names.

use std::borrow::Cow;

use unicode_normalization::char::is_combining_mark;
use unicode_normalization::{UnicodeNormalization, is_nfc};

/// The maximum length of a name in characters.
pub(super) const MAX: usize = 64;

/// `text` in NFC.
pub(super) fn composed(text: &str) -> Cow<'_, str> {
    if text.is_ascii() || is_nfc(text) { Cow::Borrowed(text) } else { Cow::Owned(text.nfc().collect()) }
}

/// Whether `c` is part of a word.
pub(super) fn is_of_word(c: char) -> bool {
    c == '_' || c.is_alphanumeric() || !c.is_ascii() && is_combining_mark(c)
}

/// Whether `c` can be in a name, except spaces.
pub(super) fn is_of_name(c: char) -> bool {
    matches!(c, '-' | '\'' | '’' | '·') || is_of_word(c) && !is_invisible(c)
}

/// Invisible letters and marks: those in Unicode's `Default_Ignorable_Code_Point`.
pub(super) const fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{34f}'
            | '\u{115f}'..='\u{1160}'
            | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}'
            | '\u{3164}'
            | '\u{fe00}'..='\u{fe0f}'
            | '\u{ffa0}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// The maximum number of marks on one letter: more than any script needs overlap other lines.
const MAX_MARKS: usize = 4;

/// Why `text`, in NFC, is not a name.
pub(super) fn flaw(text: &str) -> Option<&'static str> {
    if text.trim().is_empty() {
        return Some(if text.is_empty() { "is empty" } else { "is blank" });
    }
    if text.chars().count() > MAX {
        return Some("is longer than 64 characters");
    }
    if text.trim() != text {
        return Some("begins or ends with a space");
    }
    if let Some(flaw) = text.chars().find_map(flaw_of) {
        return Some(flaw);
    }
    if !text.starts_with(char::is_alphabetic) {
        return Some("does not begin with a letter");
    }
    if text.contains("  ") {
        return Some("has two spaces in a row");
    }
    let marks = text.split(|c| !is_combining_mark(c)).map(|run| run.chars().count()).max();
    (marks > Some(MAX_MARKS)).then_some("has more than 4 marks on a letter")
}

fn flaw_of(c: char) -> Option<&'static str> {
    match c {
        ' ' => None,
        '.' | '/' => Some("has a `.` or a `/`, which separate names in the paths of chats"),
        c if is_of_name(c) => None,
        c if c.is_control() => Some("has a control character"),
        c if is_invisible(c) || is_format(c) => Some("has a character that is invisible or reorders others"),
        c if c.is_whitespace() => Some("has white space other than plain spaces"),
        _ => Some("has characters other than letters, digits, spaces, `_`, `-`, `'`, `’` and `·`"),
    }
}

/// Common characters of Unicode's category `Cf`, for the error message only. None of them is allowed in names.
const fn is_format(c: char) -> bool {
    matches!(c, '\u{ad}' | '\u{61c}' | '\u{180e}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
        | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}')
}

/// Whether `text` can be a part of an agent's label: as a name, but it may begin with anything except a space.
pub(crate) fn is_label(text: &str) -> bool {
    text.trim() == text && !text.is_empty() && text.chars().all(|c| c == ' ' || is_of_name(c))
}
