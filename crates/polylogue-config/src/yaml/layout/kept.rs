//! Parts of a file that keep the author's layout: each key or list item below a comment `# fmt: skip`.
//!
//! They are taken out before the rest gets its layout, and put back at the indentation that the key or item has then. Meanwhile,
//! there is a placeholder for each.

use std::collections::BTreeSet;
use std::ops::Range;

use granit_parser::{Event, Parser, StructureStyle};

/// What the comment says.
const SKIP: &str = "fmt: skip";

/// A file without its kept parts.
pub(super) struct Outline<'a> {
    /// The file, with placeholders.
    pub(super) text: String,
    /// The parts, in their order.
    kept: Vec<Kept<'a>>,
}

/// A key or list item.
struct Kept<'a> {
    first: Line<'a>,
    /// The lines after the first.
    lines: Vec<Line<'a>>,
    placeholder: String,
}

impl<'a> Outline<'a> {
    /// Takes the kept parts out of `text`; `None` if it cannot be read.
    pub(super) fn of(text: &'a str) -> Option<Self> {
        let marks = Marks::of(text)?;
        let mut outline = Self { text: String::with_capacity(text.len()), kept: Vec::new() };
        let mut lines = lines(text).peekable();
        while let Some(line) = lines.next() {
            outline.text.push_str(line.text);
            if !marks.skips.contains(&(line.start + line.indent())) {
                continue;
            }
            while let Some(line) = lines.next_if(|line| line.is_empty() || line.words().starts_with('#')) {
                outline.text.push_str(line.text);
            }
            let Some(first) = lines.next() else { break };
            let mut part = Kept::beginning(first, outline.kept.len());
            while let Some(count) = part.continued(lines.clone(), &marks) {
                part.lines.extend(lines.by_ref().take(count));
            }
            let indent = part.indent();
            outline.text.push_str(&format!("{:indent$}{}\n", "", part.placeholder));
            outline.kept.push(part);
        }
        Some(outline)
    }

    /// `formatted`, which is the text of this outline in another layout, with the kept parts.
    pub(super) fn filled(&self, formatted: &str) -> String {
        let mut parts = self.kept.iter().peekable();
        let mut text = String::with_capacity(formatted.len());
        for line in lines(formatted) {
            match parts.next_if(|part| line.words() == part.placeholder) {
                Some(part) => part.write(line.indent(), &mut text),
                None => text.push_str(line.text),
            }
        }
        text
    }
}

impl<'a> Kept<'a> {
    fn beginning(first: Line<'a>, index: usize) -> Self {
        let name = format!("polylogue_fmt_skip_{index}");
        let placeholder = if first.is_item() { format!("- {name}") } else { format!("{name}: 0") };
        Self { first, lines: Vec::new(), placeholder }
    }

    fn indent(&self) -> usize {
        self.first.indent()
    }

    /// Whether `line` continues it: it is deeper, or an item of the list that is the value of this key.
    fn has(&self, line: &Line<'_>) -> bool {
        let is_own_item = !self.first.is_item() && line.is_item() && line.indent() == self.indent();
        line.is_empty() || line.indent() > self.indent() || is_own_item
    }

    /// How many of the lines in `next` continue it: one, or comments further left with the line of it after them. `None` if it ends.
    fn continued<'t>(&self, next: impl Iterator<Item = Line<'t>>, marks: &Marks) -> Option<usize> {
        for (count, line) in (1..).zip(next) {
            let is_own = self.has(&line) || marks.is_in_brackets(line.start);
            let is_content = !line.is_empty() && !line.words().starts_with('#');
            if is_own && (count == 1 || is_content) {
                return Some(count);
            }
            if is_content {
                return None;
            }
        }
        None
    }

    /// Writes it with its first line `indent` columns deep.
    fn write(&self, indent: usize, text: &mut String) {
        for line in std::iter::once(&self.first).chain(&self.lines) {
            let own = line.text.trim_end_matches(['\n', '\r']);
            let depth = (line.indent() + indent).saturating_sub(self.indent());
            if !own.is_empty() {
                text.push_str(&format!("{:depth$}{}", "", own.trim_start_matches(' ')));
            }
            text.push('\n');
        }
    }
}

/// A line with its end.
#[derive(Clone)]
struct Line<'a> {
    /// Where it begins in its text, in bytes.
    start: usize,
    text: &'a str,
}

impl Line<'_> {
    fn indent(&self) -> usize {
        self.text.len() - self.text.trim_start_matches(' ').len()
    }

    fn words(&self) -> &str {
        self.text.trim()
    }

    fn is_empty(&self) -> bool {
        self.words().is_empty()
    }

    fn is_item(&self) -> bool {
        self.words().strip_prefix('-').is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
    }
}

fn lines(text: &str) -> impl Iterator<Item = Line<'_>> + Clone {
    text.split_inclusive('\n').scan(0, |at, text| {
        let start = *at;
        *at += text.len();
        Some(Line { start, text })
    })
}

/// Where the comments and the brackets of a file are, in bytes.
struct Marks {
    /// Where the comments begin that keep a layout.
    skips: BTreeSet<usize>,
    /// The lists and mappings in brackets that are in no others.
    brackets: Vec<Range<usize>>,
}

impl Marks {
    fn of(text: &str) -> Option<Self> {
        let options =
            granit_parser::options! { emit_comments: true, max_buffered_comment_events: usize::MAX };
        let (mut comments, mut brackets) = (Vec::new(), Vec::new());
        // Whether each list and mapping around is in brackets, with its start.
        let mut open: Vec<Option<usize>> = Vec::new();
        for next in Parser::new_from_str_with_options(text, options) {
            let (event, span) = next.ok()?;
            let start = span.start.byte_offset()?;
            match event {
                Event::Comment(text, _) if keeps_layout(&text) => comments.push(start),
                Event::SequenceStart(style, ..) | Event::MappingStart(style, ..) => {
                    open.push((style == StructureStyle::Flow).then_some(start));
                }
                Event::SequenceEnd | Event::MappingEnd => {
                    let is_outermost = !open.iter().rev().skip(1).any(Option::is_some);
                    if let Some(start) = open.pop().flatten().filter(|_| is_outermost) {
                        brackets.push(start..span.end.byte_offset()?);
                    }
                }
                _ => {}
            }
        }
        let mut marks = Self { skips: BTreeSet::new(), brackets };
        comments.retain(|at| !marks.is_in_brackets(*at));
        marks.skips.extend(comments);
        Some(marks)
    }

    fn is_in_brackets(&self, at: usize) -> bool {
        let before = self.brackets.partition_point(|range| range.start < at);
        before.checked_sub(1).and_then(|last| self.brackets.get(last)).is_some_and(|range| at < range.end)
    }
}

/// Whether a comment is [`SKIP`], with or without a reason after it.
fn keeps_layout(comment: &str) -> bool {
    let rest = comment.trim_start().strip_prefix(SKIP);
    rest.is_some_and(|rest| rest.is_empty() || rest.starts_with([' ', '\t']))
}
