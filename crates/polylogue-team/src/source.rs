//! A text with a name, and places in it.

use std::ops::Range;

/// The text of a file, and what people call it.
pub(crate) struct Source<'a> {
    pub(crate) name: &'a str,
    pub(crate) text: &'a str,
    /// The offset at which each line begins.
    lines: Vec<usize>,
}

/// A range of bytes of a source.
pub(crate) type Span = Range<usize>;

/// A position as people count it: from 1, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Position {
    pub(crate) line: usize,
    pub(crate) column: usize,
}

impl<'a> Source<'a> {
    pub(crate) fn new(name: &'a str, text: &'a str) -> Self {
        // Editors do not count the mark that some of them put before the text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let after_breaks = text.bytes().enumerate().filter(|(_, byte)| *byte == b'\n').map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(after_breaks).collect();
        Self { name, text, lines }
    }

    /// The text of `span`, or nothing when it is none of this source.
    pub(crate) fn slice(&self, span: &Span) -> &'a str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    pub(crate) fn position(&self, offset: usize) -> Position {
        let line = self.lines.partition_point(|start| *start <= offset);
        let start = self.line_start(line);
        let column = self.slice(&(start..offset)).chars().count() + 1;
        Position { line, column }
    }

    /// The text of a line, counted from 1, without its break.
    pub(crate) fn line(&self, line: usize) -> &'a str {
        let end = self.lines.get(line).copied().unwrap_or(self.text.len());
        self.slice(&(self.line_start(line)..end)).trim_end_matches(['\n', '\r'])
    }

    fn line_start(&self, line: usize) -> usize {
        line.checked_sub(1).and_then(|index| self.lines.get(index)).copied().unwrap_or(self.text.len())
    }

    /// The offset of the `index`-th character.
    pub(crate) fn offset_of_char(&self, index: usize) -> usize {
        self.text.char_indices().nth(index).map_or(self.text.len(), |(offset, _)| offset)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = Source::new("f", "\u{feff}a: ü\r\nbc: x\n");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(source.text.find('\r').unwrap()), Position { line: 1, column: 5 });
        assert_eq!(source.position(source.text.find('b').unwrap()), Position { line: 2, column: 1 });
        assert_eq!(source.position(source.text.len()), Position { line: 3, column: 1 });
        assert_eq!(
            (source.line(1), source.line(2), source.line(3), source.line(9)),
            ("a: ü", "bc: x", "", "")
        );
    }
}
