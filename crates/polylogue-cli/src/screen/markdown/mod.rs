//! Markdown that arrives in pieces, as lines for a terminal.
//!
//! Blocks are parsed by `pulldown-cmark`; which text is a finished block is decided by [`split`], line by line, so
//! that what is settled never changes and the same text gives the same lines however it was cut into pieces.
//!
//! Two liberties: a line break of the author's is kept (agents write `Instruction: ..` and `Input: ..` below each
//! other), and so is a blank line or its absence between blocks.

use std::borrow::Cow;

mod render;
mod split;
mod table;

use self::render::{Frame, code_begin, code_line, render};
use self::split::{Piece, Splitter};
use super::style::Style;
use super::text::{Line, visible, wrap};

/// A text that is being written.
#[derive(Debug)]
pub(crate) struct Markdown {
    frame: Frame,
    splitter: Splitter,
    /// The line that is not finished.
    line: String,
    settled: Vec<Line>,
}

impl Markdown {
    /// A longer unfinished block is shown by its end alone, so that redrawing it stays cheap.
    const MAX_PREVIEW: usize = 16 * 1024;

    /// Bytes of such a block that are shown.
    const PREVIEW_TAIL: usize = 2 * 1024;

    /// An empty text for rows of `width` columns.
    pub(crate) fn new(width: usize, base: Style) -> Self {
        let frame = Frame { width: width.max(8), base };
        Self { frame, splitter: Splitter::default(), line: String::new(), settled: Vec::new() }
    }

    /// All of `text` at once.
    pub(crate) fn lines(text: &str, width: usize, base: Style) -> Vec<Line> {
        let mut markdown = Self::new(width, base);
        markdown.push(text);
        markdown.finish();
        markdown.settled
    }

    /// Adds a piece.
    pub(crate) fn push(&mut self, text: &str) {
        let mut rest = text;
        while let Some((head, tail)) = rest.split_once('\n') {
            self.line.push_str(head);
            let line = std::mem::take(&mut self.line);
            self.end_line(&line);
            rest = tail;
        }
        self.line.push_str(rest);
    }

    fn end_line(&mut self, line: &str) {
        let mut pieces = Vec::new();
        self.splitter.line(&clean(line), &mut pieces);
        pieces.iter().for_each(|piece| self.settled.extend(lines_of(piece, self.frame)));
    }

    /// The text is over: all its lines are settled.
    pub(crate) fn finish(&mut self) {
        let line = std::mem::take(&mut self.line);
        if !line.is_empty() {
            self.end_line(&line);
        }
        let mut pieces = Vec::new();
        self.splitter.end(&mut pieces);
        pieces.iter().for_each(|piece| self.settled.extend(lines_of(piece, self.frame)));
    }

    /// The lines that no later piece changes.
    pub(crate) fn settled(&self) -> &[Line] {
        &self.settled
    }

    /// The lines after those, as they would be if the text ended here.
    pub(crate) fn pending(&self) -> Vec<Line> {
        let waiting = self.splitter.waiting().len() + self.line.len();
        if waiting > Self::MAX_PREVIEW {
            return self.tail();
        }
        let mut splitter = self.splitter.clone();
        let mut pieces = Vec::new();
        if !self.line.is_empty() {
            splitter.line(&clean(&self.line), &mut pieces);
        }
        splitter.end(&mut pieces);
        pieces.iter().flat_map(|piece| lines_of(piece, self.frame)).collect()
    }

    fn tail(&self) -> Vec<Line> {
        let text: &str = if self.line.is_empty() { self.splitter.waiting() } else { &self.line };
        let from = text.len().saturating_sub(Self::PREVIEW_TAIL);
        let from = (from..=text.len()).find(|at| text.is_char_boundary(*at)).unwrap_or(0);
        let tail = text.get(from..).unwrap_or_default();
        tail.lines().flat_map(|line| wrap(&Line::new(line, self.frame.base), self.frame.width)).collect()
    }

    /// The fence that would end the block of code that the text is in, if it is in one.
    pub(crate) fn open_fence(&self) -> Option<String> {
        self.splitter.open_fence()
    }
}

/// A line before parsing: without the `\r` of a Windows line end, and without characters that would be parsed as
/// something else than they look like, such as a lone `\r`.
fn clean(line: &str) -> String {
    let line = line.strip_suffix('\r').unwrap_or(line);
    line.chars().map(|c| if c == '\t' { c } else { visible(c) }).collect()
}

fn lines_of(piece: &Piece, frame: Frame) -> impl Iterator<Item = Line> {
    rendered(piece, frame).into_iter().map(Line::trimmed)
}

fn rendered(piece: &Piece, frame: Frame) -> Vec<Line> {
    match piece {
        Piece::Gap => vec![Line::default()],
        Piece::Blocks(source) => render(&without_definitions(source), frame, None),
        Piece::Item { source, number, indent } => {
            let margin = Line::new(&" ".repeat(*indent), Style::PLAIN);
            let frame = Frame { width: frame.width.saturating_sub(*indent).max(8), ..frame };
            render(source, frame, *number).iter().map(|line| line.after(&margin)).collect()
        }
        Piece::CodeBegin(language) => vec![code_begin(language, frame)],
        Piece::CodeLine(line) => vec![code_line(line, frame)],
    }
}

/// `source` with definitions of links, such as `[1]: https://..`, made text: they would vanish, and agents write
/// their sources that way.
fn without_definitions(source: &str) -> Cow<'_, str> {
    let defines = |line: &str| line.trim_start().starts_with('[') && line.contains("]:");
    if !source.lines().any(defines) {
        return Cow::Borrowed(source);
    }
    let escaped = source.lines().map(|line| {
        let escape = if defines(line) { "\\" } else { "" };
        format!("{escape}{}\n", if defines(line) { line.trim_start() } else { line })
    });
    Cow::Owned(escaped.collect())
}

#[cfg(test)]
mod tests;
