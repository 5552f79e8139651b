//! The last rows of the terminal, which change in place.
//!
//! A frame is one text to write: it keeps the rows that are the same, moves the cursor up to the first that is not,
//! and writes from there on. Lines that are given as final are written above the region and never touched again.

use super::text::{Line, wrap_row};

/// The size of a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Size {
    pub(crate) columns: usize,
    pub(crate) rows: usize,
}

impl Size {
    /// What a terminal has that does not tell its size.
    pub(crate) const USUAL: Self = Self { columns: 80, rows: 24 };

    /// The size of this process' terminal.
    pub(crate) fn of_terminal() -> Self {
        let size = terminal_size::terminal_size();
        let size = size.map(|(columns, rows)| Self { columns: columns.0.into(), rows: rows.0.into() });
        // Some pseudo terminals say 0.
        size.filter(|size| size.columns > 0 && size.rows > 0).unwrap_or(Self::USUAL)
    }

    /// Columns for text: long rows are hard to read, and the last column is left free, because terminals do not
    /// agree on what happens when it is written.
    pub(crate) fn text_columns(self) -> usize {
        self.row_columns().min(100)
    }

    /// Lines of a table in rows that it has room for: what does not fit continues below its column.
    pub(crate) fn table_rows(self, lines: impl IntoIterator<Item = Line>) -> Vec<Line> {
        lines.into_iter().flat_map(|line| wrap_row(&line, self.row_columns())).collect()
    }

    /// Columns for rows of tables, which are looked up more than read.
    pub(crate) fn row_columns(self) -> usize {
        self.columns.saturating_sub(1).max(8)
    }
}

/// What is shown at the end of the screen. The cursor stands behind its last line, or at the beginning of a row if
/// it has none.
#[derive(Debug, Default)]
pub(crate) struct Region {
    shown: Vec<Line>,
    /// Another program has written into the rows.
    is_outdated: bool,
}

impl Region {
    /// Writes to `out` what makes the terminal show `above`, permanently, and `lines` below.
    ///
    /// A terminal that was made narrower has broken our rows again: how far to go up is counted in its columns.
    pub(crate) fn draw(&mut self, above: &[Line], lines: Vec<Line>, columns: usize, out: &mut String) {
        let total = above.len() + lines.len();
        let wanted = |index: usize| match index.checked_sub(above.len()) {
            None => above.get(index),
            Some(index) => lines.get(index),
        };
        let sound = if std::mem::take(&mut self.is_outdated) { 0 } else { self.shown.len() };
        let same = (0..sound).take_while(|index| self.shown.get(*index) == wanted(*index)).count();
        if same == total && same == self.shown.len() && !lines.is_empty() {
            self.shown = lines;
            return;
        }
        // The cursor is to end behind a line, so at least the last one is written.
        let same = if lines.is_empty() { same } else { same.min(total - 1) };
        self.erase_from(same, columns, out);
        for index in same..total {
            if index > same {
                out.push_str("\r\n");
            }
            wanted(index).into_iter().for_each(|line| line.write(true, out));
        }
        if lines.is_empty() && total > same {
            out.push_str("\r\n");
        }
        self.shown = lines;
    }

    /// The terminal has echoed what was typed into the rows: the next frame writes all of them again.
    pub(crate) fn mark_outdated(&mut self) {
        self.is_outdated = true;
    }

    /// Puts the cursor where line `index` begins, with nothing after it.
    fn erase_from(&self, index: usize, columns: usize, out: &mut String) {
        let erased = self.shown.get(index..).unwrap_or_default();
        if erased.is_empty() {
            if !self.shown.is_empty() {
                out.push_str("\r\n");
            }
            return;
        }
        let up = erased.iter().map(|line| rows(line, columns)).sum::<usize>() - 1;
        out.push('\r');
        if up > 0 {
            out.push_str(&format!("\x1b[{up}A"));
        }
        out.push_str("\x1b[J");
    }
}

/// How many rows a line takes.
pub(crate) fn rows(line: &Line, columns: usize) -> usize {
    line.width().div_ceil(columns.max(1)).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::screen::style::Style;

    fn lines(texts: &[&str]) -> Vec<Line> {
        texts.iter().map(|text| Line::new(text, Style::PLAIN)).collect()
    }

    #[test]
    fn only_what_changes_is_written() {
        let mut region = Region::default();
        let mut frame = |above: &[&str], below: &[&str]| {
            let mut out = String::new();
            region.draw(&lines(above), lines(below), 20, &mut out);
            out
        };
        assert_eq!(frame(&[], &["a", "b"]), "a\r\nb");
        assert_eq!(frame(&[], &["a", "b"]), "");
        assert_eq!(frame(&[], &["a", "c"]), "\r\x1b[Jc");
        assert_eq!(frame(&["a"], &["c", "d"]), "\r\nd", "a line becomes final where it stands");
        assert_eq!(frame(&["x"], &["c"]), "\r\x1b[1A\x1b[Jx\r\nc");
        assert_eq!(frame(&["c"], &[]), "\r\n");
        assert_eq!(frame(&[], &[]), "");
        assert_eq!(frame(&["y"], &[]), "y\r\n");
        assert_eq!(frame(&[], &["a", "b"]), "a\r\nb");
        assert_eq!(frame(&[], &["a"]), "\r\x1b[1A\x1b[Ja");
        assert_eq!(frame(&[], &[]), "\r\x1b[J");
        assert_eq!(frame(&[], &["a", "b"]), "a\r\nb");
        region.mark_outdated();
        let mut out = String::new();
        region.draw(&[], lines(&["a", "b"]), 20, &mut out);
        assert_eq!(out, "\r\x1b[1A\x1b[Ja\r\nb");
    }

    #[test]
    fn rows_are_counted_in_the_terminals_columns() {
        let mut region = Region::default();
        let mut out = String::new();
        region.draw(&[], lines(&["0123456789", "x"]), 20, &mut out);
        out.clear();
        region.draw(&[], lines(&["y"]), 5, &mut out);
        assert_eq!(out, "\r\x1b[2A\x1b[Jy");
    }
}
