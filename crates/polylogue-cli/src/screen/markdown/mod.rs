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
use self::split::{Fence, Piece, Splitter};
use super::style::Style;
use super::text::{Line, visible, wrap};

/// A text that is being written.
#[derive(Debug)]
pub(crate) struct Markdown {
    frame: Frame,
    start: Start,
    splitter: Splitter,
    /// Whether the line that the text begins in stands elsewhere, and has not ended.
    mid_line: bool,
    /// The line that is not finished.
    line: String,
    settled: Vec<Line>,
}

/// Where a text begins: at its own beginning, or within one of which the part before stands elsewhere.
#[derive(Debug, Clone, Default)]
struct Start {
    splitter: Splitter,
    mid_line: bool,
}

impl Markdown {
    /// A longer unfinished block is shown by its end alone, so that redrawing it stays cheap.
    const MAX_PREVIEW: usize = 16 * 1024;

    /// Bytes of such a block that are shown.
    const PREVIEW_TAIL: usize = 2 * 1024;

    /// An empty text for rows of `width` columns.
    pub(crate) fn new(width: usize, base: Style) -> Self {
        Self::begin(Frame { width: width.max(8), base }, Start::default())
    }

    fn begin(frame: Frame, start: Start) -> Self {
        let (splitter, mid_line) = (start.splitter.clone(), start.mid_line);
        Self { frame, start, splitter, mid_line, line: String::new(), settled: Vec::new() }
    }

    /// The same, empty again, for rows of `width` columns.
    pub(crate) fn emptied(&self, width: usize) -> Self {
        Self::begin(Frame { width: width.max(8), ..self.frame }, self.start.clone())
    }

    /// What follows this text, to be shown apart from it. A block of code that is open stays open.
    pub(crate) fn rest(&self) -> Self {
        let mut splitter = self.splitter.clone();
        let is_in_line = !self.line.is_empty();
        if is_in_line {
            splitter.line(&clean(&self.line), &mut Vec::new());
        }
        Self::begin(self.frame, Start { splitter: splitter.rest(), mid_line: is_in_line || self.mid_line })
    }

    /// All of `text` at once.
    pub(crate) fn lines(text: &str, width: usize, base: Style) -> Vec<Line> {
        let mut markdown = Self::new(width, base);
        markdown.push(text);
        markdown.finish();
        markdown.settled
    }

    /// All of `text` as it was written, broken between words into rows of `width` columns; lines of code are not broken.
    pub(crate) fn source_rows(text: &str, width: usize, base: Style) -> Vec<Line> {
        let (mut rows, mut open) = (Vec::new(), None::<Fence>);
        for line in text.lines() {
            let (row, begun) = (Line::new(line, base), line.trim_start());
            let opened = if open.is_none() { Fence::open(begun) } else { None };
            if open.is_some() || opened.is_some() {
                rows.push(row);
            } else {
                rows.extend(wrap(&row, width));
            }
            open.take_if(|fence| fence.closed_by(begun));
            open = open.or(opened.map(|(fence, _)| fence));
        }
        rows
    }

    /// Adds a piece.
    pub(crate) fn push(&mut self, text: &str) {
        let mut rest = text;
        if !text.is_empty() && std::mem::take(&mut self.mid_line) {
            rest = text.strip_prefix('\n').unwrap_or(text);
        }
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
