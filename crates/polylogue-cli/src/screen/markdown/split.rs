//! Cuts Markdown that arrives in pieces into blocks that no later line can change.
//!
//! The cuts depend on whole lines only, never on how the text was split on its way here: so the same text always
//! gives the same blocks. Code in a fence at the top level is passed on line by line; a list, item by item; headings
//! and rules at once; everything else when a blank line ends it.

/// A block, or a line of code.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Piece {
    /// A blank line of the author's stands before the next piece.
    Gap,
    /// Source of one or more blocks.
    Blocks(String),
    /// Source of one item of a list at the top level.
    Item {
        /// The source.
        source: String,
        /// The number to show, if it is numbered: Markdown counts on from the first.
        number: Option<u64>,
        /// Columns that its marker is indented by.
        indent: usize,
    },
    /// A fence opens; with the language, if it is given.
    CodeBegin(String),
    /// A line of code.
    CodeLine(String),
}

/// Takes lines, gives pieces.
#[derive(Debug, Clone, Default)]
pub(super) struct Splitter {
    state: State,
    /// Source of the block that is not finished.
    block: String,
    /// Whether a blank line came since the last piece, and whether there was a piece.
    gap: bool,
    begun: bool,
    /// The last numbered or bulleted item at the top level, to number the next.
    last_item: Option<Marker>,
}

#[derive(Debug, Clone, Default)]
enum State {
    #[default]
    Between,
    Blocks,
    Item {
        marker: Marker,
        fence: Option<Fence>,
        after_blank: bool,
    },
    Code(Fence),
}

impl Splitter {
    /// Takes a line, without its end.
    pub(super) fn line(&mut self, line: &str, out: &mut Vec<Piece>) {
        let blank = line.trim().is_empty();
        match &mut self.state {
            State::Code(fence) if fence.closed_by(line) => self.state = State::Between,
            State::Code(fence) => out.push(Piece::CodeLine(fence.strip(line).to_owned())),
            State::Item { fence: Some(fence), .. } => {
                let closed = fence.closed_by(line.trim_start());
                self.append(line);
                if let State::Item { fence, after_blank, .. } = &mut self.state {
                    *after_blank = false;
                    fence.take_if(|_| closed);
                }
            }
            State::Item { after_blank, .. } if blank => {
                *after_blank = true;
                self.append("");
            }
            State::Item { marker, after_blank, .. } => {
                let (inside, after_blank) = (indent(line) >= marker.content, *after_blank);
                if inside || !(after_blank || interrupts(line, true)) {
                    self.inside_item(line);
                } else {
                    self.end(out);
                    self.gap = after_blank;
                    self.start(line, out);
                }
            }
            State::Blocks if blank => {
                self.end(out);
                self.gap = true;
            }
            State::Blocks if interrupts(line, false) => {
                self.end(out);
                self.start(line, out);
            }
            State::Blocks => self.append(line),
            State::Between if blank => self.gap = true,
            State::Between => self.start(line, out),
        }
    }

    /// The text is over.
    pub(super) fn end(&mut self, out: &mut Vec<Piece>) {
        let source = std::mem::take(&mut self.block);
        match std::mem::take(&mut self.state) {
            State::Between | State::Code(_) => {}
            State::Blocks => out.push(Piece::Blocks(source)),
            State::Item { marker, .. } => {
                out.push(Piece::Item { source, number: marker.number, indent: marker.indent });
                self.last_item = Some(marker);
            }
        }
    }

    /// The source that is not yet passed on.
    pub(super) fn waiting(&self) -> &str {
        &self.block
    }

    /// The line that would end the block of code that is open, if one is.
    pub(super) fn open_fence(&self) -> Option<String> {
        let (State::Code(fence) | State::Item { fence: Some(fence), .. }) = &self.state else { return None };
        Some(fence.mark.to_string().repeat(fence.length))
    }

    /// For the text that follows, shown apart: only a block of code that is open stays so.
    pub(super) fn rest(&self) -> Self {
        match &self.state {
            State::Code(fence) | State::Item { fence: Some(fence), .. } => {
                Self { state: State::Code(*fence), begun: true, ..Self::default() }
            }
            _ => Self::default(),
        }
    }

    fn append(&mut self, line: &str) {
        self.block.push_str(line);
        self.block.push('\n');
    }

    fn inside_item(&mut self, line: &str) {
        self.append(line);
        if let State::Item { fence, after_blank, .. } = &mut self.state {
            *after_blank = false;
            *fence = Fence::open(line.trim_start()).map(|(fence, _)| fence);
        }
    }

    /// Begins a block with its first line, which is not blank.
    fn start(&mut self, line: &str, out: &mut Vec<Piece>) {
        if std::mem::take(&mut self.gap) && self.begun {
            out.push(Piece::Gap);
        }
        self.begun = true;
        let before = self.last_item.take();
        if let Some((fence, language)) = Fence::open(line) {
            out.push(Piece::CodeBegin(language.to_owned()));
            self.state = State::Code(fence);
        } else if is_rule(line) || is_heading(line) {
            out.push(Piece::Blocks(format!("{line}\n")));
        } else if let Some(marker) = Marker::of(line) {
            let rest = line.get(marker.bytes..).unwrap_or_default().trim_start();
            let fence = Fence::open(rest).map(|(fence, _)| fence);
            self.append(line);
            self.state = State::Item { marker: marker.following(before), fence, after_blank: false };
        } else {
            self.append(line);
            self.state = State::Blocks;
        }
    }
}

/// Whether `line` begins its own block right after a line of a paragraph, or of an item's text.
fn interrupts(line: &str, in_list: bool) -> bool {
    let marker = || Marker::of(line).is_some_and(|marker| in_list || marker.interrupts(line));
    // In a paragraph, a rule may be the underline of a heading: that is for the parser to say.
    Fence::open(line).is_some()
        || is_heading(line)
        || (in_list && is_rule(line))
        || (marker() && !is_rule(line))
}

/// Columns of white space before the text.
fn indent(line: &str) -> usize {
    let mut columns = 0;
    for c in line.chars() {
        match c {
            ' ' => columns += 1,
            '\t' => columns += 4 - columns % 4,
            _ => break,
        }
    }
    columns
}

fn is_heading(line: &str) -> bool {
    let text = line.trim_start();
    let after = text.trim_start_matches('#');
    let level = text.len() - after.len();
    indent(line) <= 3 && (1..=6).contains(&level) && (after.is_empty() || after.starts_with([' ', '\t']))
}

fn is_rule(line: &str) -> bool {
    let mut marks = line.chars().filter(|c| !c.is_whitespace());
    let Some(mark) = marks.next().filter(|c| matches!(c, '-' | '*' | '_')) else { return false };
    let mut count = 1;
    indent(line) <= 3
        && marks.all(|c| {
            count += 1;
            c == mark
        })
        && count >= 3
}

/// The mark that begins an item.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Marker {
    /// Columns before it.
    indent: usize,
    /// The column at which the item's text begins.
    content: usize,
    /// Bytes up to its end.
    bytes: usize,
    number: Option<u64>,
    /// `-`, `*`, `+`, or what stands after the number.
    kind: char,
}

impl Marker {
    fn of(line: &str) -> Option<Self> {
        let indent = indent(line);
        let text = line.trim_start_matches([' ', '\t']);
        let digits = text.len() - text.trim_start_matches(|c: char| c.is_ascii_digit()).len();
        let number = text.get(..digits).and_then(|digits| digits.parse().ok());
        let kind = text.get(digits..)?.chars().next()?;
        let legal = match digits {
            0 => matches!(kind, '-' | '*' | '+'),
            1..=9 => matches!(kind, '.' | ')'),
            _ => false,
        };
        let rest = text.get(digits + 1..).filter(|_| legal && indent <= 3)?;
        let blanks = self::indent(rest);
        if !(rest.is_empty() || blanks > 0) {
            return None;
        }
        // More than four blanks are one, and then indented code.
        let gap = if rest.trim().is_empty() || blanks > 4 { 1 } else { blanks };
        let bytes = line.len() - rest.len();
        Some(Self { indent, content: indent + digits + 1 + gap, bytes, number, kind })
    }

    /// Whether it may follow a line of a paragraph: Markdown allows what can hardly be meant as text.
    fn interrupts(&self, line: &str) -> bool {
        let empty = line.get(self.bytes..).is_none_or(|rest| rest.trim().is_empty());
        !empty && self.number.is_none_or(|number| number == 1)
    }

    /// The same as the next item of the list that `before` belongs to, if it does.
    fn following(self, before: Option<Self>) -> Self {
        let same = before.filter(|before| before.kind == self.kind && before.number.is_some());
        let number = same.and_then(|before| before.number).map(|number| number + 1);
        Self { number: if self.number.is_some() { number.or(self.number) } else { None }, ..self }
    }
}

impl Default for Marker {
    fn default() -> Self {
        Self { indent: 0, content: 2, bytes: 1, number: None, kind: '-' }
    }
}

/// The fence around a block of code.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fence {
    mark: char,
    length: usize,
    indent: usize,
}

impl Fence {
    /// The fence that `line` opens, with the language it names.
    pub(super) fn open(line: &str) -> Option<(Self, &str)> {
        let indent = indent(line);
        let text = line.trim_start();
        let mark = text.chars().next().filter(|c| matches!(c, '`' | '~'))?;
        let info = text.trim_start_matches(mark);
        let length = text.len() - info.len();
        let legal = indent <= 3 && length >= 3 && !(mark == '`' && info.contains('`'));
        let language = info.split_whitespace().next().unwrap_or_default();
        legal.then_some((Self { mark, length, indent }, language))
    }

    /// Whether `line` ends the block.
    pub(super) fn closed_by(&self, line: &str) -> bool {
        let text = line.trim();
        let marks = text.trim_start_matches(self.mark);
        indent(line) <= 3 && marks.is_empty() && text.len() >= self.length
    }

    /// A line of code without the indentation that the fence has.
    fn strip<'a>(&self, line: &'a str) -> &'a str {
        let blanks = line.bytes().take(self.indent).take_while(|byte| *byte == b' ').count();
        line.get(blanks..).unwrap_or(line)
    }
}
