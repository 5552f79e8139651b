//! Text that can go to a terminal: the one way in is made safe.

use std::fmt;
use std::ops::Deref;

use serde::Serialize;

use super::json;
use super::style::Style;
use super::text::{Line, neutral};

/// Text that cannot drive a terminal. Commands write nothing else to one.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Sanitized(String);

impl Sanitized {
    /// `text`, whose line feeds and tabs stay; other characters that cannot be shown are replaced.
    pub(crate) fn plain(text: &str) -> Self {
        Self(neutral(text).into_owned())
    }

    /// `text` as one row, with its end: line feeds in it are shown, too.
    pub(crate) fn row(text: &str) -> Self {
        Self::lines(&[Line::new(text, Style::PLAIN).trimmed()], false)
    }

    /// `lines` with their ends, with escape sequences for styles if `color`.
    pub(crate) fn lines(lines: &[Line], color: bool) -> Self {
        let mut out = String::new();
        for line in lines {
            line.write(color, &mut out);
            out.push('\n');
        }
        Self(out)
    }

    /// `value` as a line of JSON.
    ///
    /// # Errors
    /// When it holds what JSON cannot.
    pub(crate) fn json(value: &impl Serialize) -> serde_json::Result<Self> {
        json::line(value).map(Self)
    }
}

impl Deref for Sanitized {
    type Target = str;

    fn deref(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for Sanitized {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromIterator<Self> for Sanitized {
    fn from_iter<I: IntoIterator<Item = Self>>(all: I) -> Self {
        Self(all.into_iter().map(|shown| shown.0).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_shown_drives_no_terminal_and_a_row_is_one_row() {
        let name = "a\x1b]52;c;eA==\x07\u{9b}2J\u{202e}b\r\nfiles: c\u{200b}";
        let json = Sanitized::json(&name).unwrap();
        let row = Sanitized::row(name);
        assert_eq!(&*row, "a␛]52;c;eA==␇\u{fffd}2J\u{fffd}b␍␊files: c\u{fffd}\n");
        let shown: Sanitized = [Sanitized::plain(name), row, json.clone()].into_iter().collect();
        let is_bad = |c: char| (c.is_control() && c != '\n') || matches!(c, '\u{202e}' | '\u{200b}');
        assert!(!shown.chars().any(is_bad), "{shown:?}");
        assert_eq!(serde_json::from_str::<String>(&json).unwrap(), name, "JSON reads back as the same");
    }
}
