//! The text of a file, its name, and positions in it.

use std::cell::{Cell, RefCell};
use std::collections::BTreeSet;
use std::ops::Range;

/// The text of a file and the name that its errors give it.
pub struct Source<'a> {
    /// The name, as the user wrote it.
    pub name: &'a str,
    /// The text, without a byte order mark.
    pub text: &'a str,
    /// The offset at which each line begins.
    lines: Vec<usize>,
    /// The place that was asked for last, and its column: the line of a file without breaks is long.
    last: Cell<(usize, usize)>,
    /// The starts and ends of what is not shown, being secret. What thousands of aliases reach is hidden once.
    hidden: RefCell<BTreeSet<(usize, usize)>>,
}

/// A range of bytes of a source.
pub type Span = Range<usize>;

/// A position as people count it: from 1, in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Position {
    /// The line, from 1.
    pub line: usize,
    /// The column, from 1.
    pub column: usize,
}

impl<'a> Source<'a> {
    /// Creates the source with `text` of the file `name`.
    pub fn new(name: &'a str, text: &'a str) -> Self {
        // Editors do not count the mark that some of them put before the text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        // As YAML counts: `\n`, `\r\n`, or `\r` alone.
        let next = text.bytes().skip(1).map(Some).chain([None]);
        let breaks = text.bytes().zip(next).enumerate();
        let breaks =
            breaks.filter(|(_, (byte, next))| *byte == b'\n' || *byte == b'\r' && *next != Some(b'\n'));
        let after_breaks = breaks.map(|(at, _)| at + 1);
        let lines = std::iter::once(0).chain(after_breaks).collect();
        Self { name, text, lines, last: Cell::new((0, 1)), hidden: RefCell::default() }
    }

    /// Returns the text of `span`, or nothing if the span is not in this source.
    pub fn slice(&self, span: &Span) -> &'a str {
        self.text.get(span.clone()).unwrap_or_default()
    }

    /// Returns the position of the byte at `offset`.
    pub fn position(&self, offset: usize) -> Position {
        let line = self.lines.partition_point(|start| *start <= offset);
        // From the place that was asked for last, if it is before this one in the same line.
        let (known, column) = Some(self.last.get())
            .filter(|(at, _)| (self.line_start(line)..=offset).contains(at))
            .unwrap_or((self.line_start(line), 1));
        let column = column + self.slice(&(known..offset)).chars().count();
        self.last.set((offset, column));
        Position { line, column }
    }

    /// Hides the text of `span` in every line that an error shows.
    pub fn hide(&self, span: Span) {
        self.hidden.borrow_mut().insert((span.start, span.end));
    }

    /// What is hidden and overlaps `shown`.
    pub(crate) fn hidden_in(&self, shown: &Span) -> Vec<Span> {
        let hidden = self.hidden.borrow();
        let starts_before = hidden.range(..(shown.end, 0)).map(|(start, end)| *start..*end);
        starts_before.filter(|span| span.end > shown.start).collect()
    }

    /// The line that holds `offset`, without its break, split at `offset`.
    pub(crate) fn line_around(&self, offset: usize) -> (&'a str, &'a str) {
        let line = self.lines.partition_point(|start| *start <= offset);
        let end = self.lines.get(line).copied().unwrap_or(self.text.len());
        let rest = self.slice(&(offset..end)).trim_end_matches(['\n', '\r']);
        (self.slice(&(self.line_start(line)..offset)), rest)
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
    fn a_carriage_return_alone_breaks_a_line() {
        let source = Source::new("f", "a: 1\rb: 2\r\nc: 3\r");
        let position = |needle: char| source.position(source.text.find(needle).unwrap());
        assert_eq!([position('b').line, position('c').line], [2, 3]);
        assert_eq!(position('b').column, 1);
        assert_eq!(source.line_around(source.text.find('1').unwrap()), ("a: ", "1"));
        assert_eq!(source.position(source.text.len()).line, 4);
    }

    #[test]
    fn positions_count_lines_and_characters_from_one() {
        let source = Source::new("f", "\u{feff}a: ü\r\nbc: x\n");
        assert_eq!(source.position(0), Position { line: 1, column: 1 });
        assert_eq!(source.position(source.text.find('\r').unwrap()), Position { line: 1, column: 5 });
        assert_eq!(source.position(source.text.find('b').unwrap()), Position { line: 2, column: 1 });
        assert_eq!(source.position(source.text.len()), Position { line: 3, column: 1 });
        assert_eq!(source.position(3), Position { line: 1, column: 4 });
        let around = |needle| source.line_around(source.text.find(needle).unwrap());
        assert_eq!((around('ü'), around('c')), (("a: ", "ü"), ("b", "c: x")));
        assert_eq!(source.line_around(source.text.len()), ("", ""));
    }
}
