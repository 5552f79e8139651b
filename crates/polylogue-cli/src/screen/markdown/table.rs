//! Tables, aligned; too wide ones wrap within their cells, or are written row by row.

use pulldown_cmark::Alignment;

use crate::screen::style::Style;
use crate::screen::text::{Line, wrap};

/// Columns between two cells: ` │ `.
const BETWEEN: usize = 3;

/// A column of fewer columns than this is not worth showing as one.
const MIN_WIDTH: usize = 6;

/// A table while it is read.
#[derive(Debug)]
pub(super) struct Table {
    alignments: Vec<Alignment>,
    /// The first is the head.
    rows: Vec<Vec<Line>>,
    row: Vec<Line>,
}

impl Table {
    pub(super) const fn new(alignments: Vec<Alignment>) -> Self {
        Self { alignments, rows: Vec::new(), row: Vec::new() }
    }

    pub(super) fn cell(&mut self, text: Line) {
        self.row.push(text);
    }

    pub(super) fn end_row(&mut self) {
        self.rows.push(std::mem::take(&mut self.row));
    }

    /// The rows on the screen, at most `width` columns wide.
    pub(super) fn render(&self, width: usize) -> Vec<Line> {
        match self.widths(width) {
            Some(widths) => self.aligned(&widths),
            None => self.row_by_row(width),
        }
    }

    /// The width of each column: the widest cell's, unless there is not enough room; then the widest columns give
    /// way first. `None` when there is no room for all columns.
    fn widths(&self, width: usize) -> Option<Vec<usize>> {
        let widest = |column: usize| {
            let cells = self.rows.iter().filter_map(|row| row.get(column));
            cells.map(Line::width).max().unwrap_or(0).max(1)
        };
        let natural: Vec<usize> = (0..self.alignments.len()).map(widest).collect();
        let room = width.checked_sub(BETWEEN * natural.len().saturating_sub(1))?;
        if natural.iter().sum::<usize>() <= room {
            return Some(natural);
        }
        // The largest limit under which the columns fit.
        let fits = |limit: &usize| natural.iter().map(|width| (*width).min(*limit)).sum::<usize>() <= room;
        let limit = (MIN_WIDTH..=room).rev().find(fits)?;
        Some(natural.iter().map(|width| (*width).min(limit)).collect())
    }

    fn aligned(&self, widths: &[usize]) -> Vec<Line> {
        let mut lines = Vec::new();
        for (index, row) in self.rows.iter().enumerate() {
            lines.extend(self.row_lines(row, widths));
            if index == 0 {
                let dashes: Vec<String> = widths.iter().map(|width| "─".repeat(*width)).collect();
                lines.push(Line::new(&dashes.join("─┼─"), Style::DIM));
            }
        }
        lines
    }

    fn row_lines(&self, row: &[Line], widths: &[usize]) -> Vec<Line> {
        let empty = Line::default();
        let cells: Vec<Vec<Line>> = widths
            .iter()
            .enumerate()
            .map(|(column, width)| wrap(row.get(column).unwrap_or(&empty), *width))
            .collect();
        let height = cells.iter().map(Vec::len).max().unwrap_or(0);
        (0..height).map(|level| self.level(&cells, widths, level)).collect()
    }

    /// One line of a row whose cells may have several.
    fn level(&self, cells: &[Vec<Line>], widths: &[usize], level: usize) -> Line {
        let mut line = Line::default();
        for (column, (cell, width)) in cells.iter().zip(widths).enumerate() {
            if column > 0 {
                line.push(" │ ", Style::DIM);
            }
            let text = cell.get(level).cloned().unwrap_or_default();
            let free = width.saturating_sub(text.width());
            let before = match self.alignments.get(column) {
                Some(Alignment::Right) => free,
                Some(Alignment::Center) => free / 2,
                _ => 0,
            };
            line.push(&" ".repeat(before), Style::PLAIN);
            line.append(&text);
            // No blanks at the end of a line.
            if column + 1 < cells.len() {
                line.push(&" ".repeat(free - before), Style::PLAIN);
            }
        }
        line
    }

    /// `head: cell`, one below the other.
    fn row_by_row(&self, width: usize) -> Vec<Line> {
        let mut lines = Vec::new();
        let Some((head, rows)) = self.rows.split_first() else { return lines };
        for (index, row) in rows.iter().enumerate() {
            if index > 0 {
                lines.push(Line::new("─", Style::DIM));
            }
            for (column, cell) in row.iter().enumerate() {
                let mut line = head.get(column).cloned().unwrap_or_default();
                line.push(": ", Style::DIM);
                line.append(cell);
                lines.extend(wrap(&line, width));
            }
        }
        if rows.is_empty() {
            head.iter().for_each(|cell| lines.extend(wrap(cell, width)));
        }
        lines
    }
}
