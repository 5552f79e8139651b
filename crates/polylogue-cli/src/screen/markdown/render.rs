//! Turns the source of whole blocks into lines.

use std::ops::Range;

use pulldown_cmark::{CodeBlockKind, CowStr, Event, HeadingLevel, Options, Parser, Tag, TagEnd};

use super::table::Table;
use crate::screen::style::Style;
use crate::screen::text::{CODE, Line, wrap};

/// How to render.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Frame {
    /// Columns of a row.
    pub(super) width: usize,
    /// The style of ordinary text.
    pub(super) base: Style,
}

/// Renders `source`; the first list begins at `number`, if given.
pub(super) fn render(source: &str, frame: Frame, number: Option<u64>) -> Vec<Line> {
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    let mut renderer = Renderer { number, ..Renderer::new(frame, source) };
    for (event, range) in Parser::new_ext(source, options).into_offset_iter() {
        renderer.event(event, range);
    }
    renderer.flush();
    if renderer.done.is_empty() {
        // Marks without anything to mark. Nothing that was written is to vanish.
        return source.lines().flat_map(|line| wrap(&Line::new(line, frame.base), frame.width)).collect();
    }
    renderer.done
}

/// A line of code.
pub(super) fn code_line(line: &str, frame: Frame) -> Line {
    Line::verbatim(line, Style { color: frame.base.color.or(CODE.color), ..frame.base })
}

/// What stands above a block of code: a fence is seen even if there is nothing in it.
pub(super) fn code_begin(language: &str, frame: Frame) -> Line {
    let rule = if language.is_empty() { "──" } else { "── " };
    Line::new(rule, Style::DIM).with(language, Style { italic: true, ..Style::DIM }).fit(frame.width)
}

/// What a container puts before the lines in it.
struct Indent {
    /// Before the first line; taken by it.
    first: Option<Line>,
    /// Before the others.
    rest: Line,
}

#[derive(Default)]
struct Renderer<'a> {
    frame: Frame,
    source: &'a str,
    number: Option<u64>,
    done: Vec<Line>,
    text: Line,
    indents: Vec<Indent>,
    /// Numbers of the lists we are in: `None` for a list with bullets.
    lists: Vec<Option<u64>>,
    styles: Vec<Style>,
    /// Targets of the links and images we are in.
    targets: Vec<(String, usize)>,
    table: Option<Table>,
    code: Option<String>,
    /// Whether a block ended since the last began.
    after_block: bool,
}

impl<'a> Renderer<'a> {
    fn new(frame: Frame, source: &'a str) -> Self {
        Self { frame, source, styles: vec![frame.base], ..Self::default() }
    }

    fn event(&mut self, event: Event<'_>, range: Range<usize>) {
        match event {
            Event::Start(tag) => self.begin(tag, range.start),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.words(&text),
            Event::Code(text) => self.styled(&text, CODE),
            Event::Html(text) => text.lines().for_each(|line| self.html(line)),
            Event::InlineHtml(text) => self.words(&text),
            Event::SoftBreak | Event::HardBreak if self.table.is_none() => self.flush(),
            Event::SoftBreak | Event::HardBreak => self.words(" "),
            Event::Rule => self.rule(range.start),
            Event::TaskListMarker(done) => self.words(if done { "☑ " } else { "☐ " }),
            Event::FootnoteReference(text) | Event::InlineMath(text) | Event::DisplayMath(text) => {
                self.words(&text);
            }
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or(self.frame.base)
    }

    fn words(&mut self, text: &str) {
        match &mut self.code {
            Some(code) => code.push_str(text),
            None => self.text.push(text, self.styles.last().copied().unwrap_or_default()),
        }
    }

    fn styled(&mut self, text: &str, style: Style) {
        let now = self.style();
        self.text.push(text, Style { color: style.color, dim: now.dim || style.dim, ..now });
    }

    fn html(&mut self, line: &str) {
        self.words(line);
        self.flush();
    }

    fn begin(&mut self, tag: Tag<'_>, start: usize) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock => self.separate(start),
            Tag::Heading { level, .. } => {
                self.separate(start);
                let underline = level == HeadingLevel::H1;
                self.push_style(|style| Style { bold: true, underline, ..style });
            }
            Tag::BlockQuote(_) => {
                self.separate(start);
                let bar = Line::new("▌ ", Style::DIM);
                self.indents.push(Indent { first: None, rest: bar });
            }
            Tag::CodeBlock(kind) => self.begin_code(&kind, start),
            Tag::List(first) => {
                self.flush();
                self.lists.push(first.map(|first| self.number.take().unwrap_or(first)));
            }
            Tag::Item => self.begin_item(start),
            Tag::Table(alignments) => {
                self.separate(start);
                self.table = Some(Table::new(alignments));
            }
            Tag::TableHead => self.push_style(|style| Style { bold: true, ..style }),
            Tag::Emphasis => self.push_style(|style| Style { italic: true, ..style }),
            Tag::Strong => self.push_style(|style| Style { bold: true, ..style }),
            Tag::Strikethrough => self.push_style(|style| Style { struck: true, ..style }),
            Tag::Link { dest_url, .. } => self.begin_link(&dest_url, ""),
            Tag::Image { dest_url, .. } => self.begin_link(&dest_url, "image: "),
            _ => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.pop_style();
            }
            TagEnd::BlockQuote(_) | TagEnd::Item => {
                self.flush();
                self.empty_item();
                self.indents.pop();
            }
            TagEnd::CodeBlock => self.end_code(),
            TagEnd::List(_) => {
                self.lists.pop();
            }
            TagEnd::TableCell => {
                let text = std::mem::take(&mut self.text);
                self.table.iter_mut().for_each(|table| table.cell(text.clone()));
            }
            TagEnd::TableRow => self.table.iter_mut().for_each(Table::end_row),
            TagEnd::TableHead => {
                self.pop_style();
                self.table.iter_mut().for_each(Table::end_row);
            }
            TagEnd::Table => self.end_table(),
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => self.pop_style(),
            TagEnd::Link | TagEnd::Image => self.end_link(),
            _ => return,
        }
        self.after_block |= is_block(tag);
    }

    fn push_style(&mut self, change: impl FnOnce(Style) -> Style) {
        self.styles.push(change(self.style()));
    }

    fn pop_style(&mut self) {
        if self.styles.len() > 1 {
            self.styles.pop();
        }
    }

    fn begin_item(&mut self, start: usize) {
        self.separate(start);
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                *number += 1;
                format!("{}. ", *number - 1)
            }
            _ => "• ".to_owned(),
        };
        let first = Line::new(&mark, Style::DIM);
        let rest = Line::new(&" ".repeat(first.width()), Style::PLAIN);
        self.indents.push(Indent { first: Some(first), rest });
    }

    /// An item without text still shows its mark.
    fn empty_item(&mut self) {
        if self.indents.last().is_some_and(|indent| indent.first.is_some()) {
            self.put(&Line::default());
        }
    }

    fn begin_code(&mut self, kind: &CodeBlockKind<'_>, start: usize) {
        self.separate(start);
        let info: &CowStr<'_> = match kind {
            CodeBlockKind::Fenced(info) => info,
            CodeBlockKind::Indented => &CowStr::Borrowed(""),
        };
        let language = info.split_whitespace().next().unwrap_or_default();
        let frame = Frame { width: self.room(), ..self.frame };
        self.put(&code_begin(language, frame));
        self.code = Some(String::new());
    }

    fn end_code(&mut self) {
        let frame = Frame { width: self.room(), ..self.frame };
        let code = self.code.take().unwrap_or_default();
        for line in code.lines() {
            self.put(&code_line(line, frame));
        }
    }

    fn end_table(&mut self) {
        let Some(table) = self.table.take() else { return };
        for row in table.render(self.room()) {
            self.put(&row);
        }
    }

    fn begin_link(&mut self, target: &str, label: &str) {
        self.words(label);
        self.targets.push((target.to_owned(), self.text.text().len()));
        self.push_style(|style| Style { underline: true, ..style });
    }

    /// The target is always shown: a text may claim to lead elsewhere.
    fn end_link(&mut self) {
        self.pop_style();
        let Some((target, from)) = self.targets.pop() else { return };
        let text = self.text.text();
        let shown = text.get(from..).unwrap_or_default();
        if !target.is_empty() && shown != target && Some(shown) != target.strip_prefix("mailto:") {
            self.styled(&format!(" ({target})"), Style { color: self.style().color, ..Style::DIM });
        }
    }

    fn rule(&mut self, start: usize) {
        self.separate(start);
        let width = self.room().min(40);
        self.put(&Line::new(&"─".repeat(width), Style::DIM));
        self.after_block = true;
    }

    /// Before a block: as the author, a blank line or none.
    fn separate(&mut self, start: usize) {
        self.flush();
        let after_block = std::mem::take(&mut self.after_block);
        let begins_item = self.indents.last().is_some_and(|indent| indent.first.is_some());
        if after_block && !begins_item && self.blank_before(start) {
            self.put(&Line::default());
        }
    }

    /// Whether the line before that of `start` is blank; inside quotes, it has their marks.
    fn blank_before(&self, start: usize) -> bool {
        let mut lines = self.source.get(..start).unwrap_or_default().rsplit('\n').skip(1);
        lines.next().is_some_and(|line| line.trim_matches([' ', '\t', '>']).is_empty())
    }

    /// Columns left for text.
    fn room(&self) -> usize {
        let shown = self.indents.iter().take(self.shown_indents());
        self.frame.width.saturating_sub(shown.map(|indent| indent.rest.width()).sum())
    }

    /// How many containers indent: together they take at most half of the row, which needs room for words.
    fn shown_indents(&self) -> usize {
        let mut used = 0;
        let fits = |indent: &&Indent| {
            used += indent.rest.width();
            used <= self.frame.width / 2
        };
        self.indents.iter().take_while(fits).count()
    }

    fn flush(&mut self) {
        if self.text.is_empty() {
            return;
        }
        let text = std::mem::take(&mut self.text);
        for row in wrap(&text, self.room()) {
            self.put(&row);
        }
    }

    /// Writes a row behind what the containers put before it.
    fn put(&mut self, row: &Line) {
        if row.is_verbatim() {
            return self.done.push(row.clone());
        }
        let shown = self.shown_indents();
        let mut line = Line::default();
        for (depth, indent) in self.indents.iter_mut().enumerate() {
            let first = indent.first.take();
            if depth < shown {
                line.append(first.as_ref().unwrap_or(&indent.rest));
            }
        }
        line.append(row);
        self.done.push(line);
    }
}

const fn is_block(tag: TagEnd) -> bool {
    matches!(
        tag,
        TagEnd::Paragraph
            | TagEnd::HtmlBlock
            | TagEnd::Heading(_)
            | TagEnd::BlockQuote(_)
            | TagEnd::CodeBlock
            | TagEnd::List(_)
            | TagEnd::Item
            | TagEnd::Table
    )
}
