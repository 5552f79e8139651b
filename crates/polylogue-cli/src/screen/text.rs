//! Lines of styled text that cannot drive a terminal.
//!
//! Every text that comes from a model, a tool or a file becomes a [`Line`] before it is written, and
//! [`Line::push`] is the only way in: control characters are made visible there, so no escape sequence of anyone
//! else reaches the terminal.

use std::borrow::Cow;
use std::sync::Arc;

use unicode_width::UnicodeWidthChar;

use super::style::{Color, Style};

/// A character that can be shown: what would move the cursor, change the terminal or reorder the text is replaced by
/// a picture of itself.
pub(crate) fn visible(c: char) -> char {
    match c {
        '\0'..='\x1f' => char::from_u32(0x2400 + u32::from(c)).unwrap_or(char::REPLACEMENT_CHARACTER),
        '\x7f' => '␡',
        // C1 controls: some terminals obey them even in UTF-8.
        '\u{80}'..='\u{9f}' => char::REPLACEMENT_CHARACTER,
        // Marks that reorder text, so that it reads differently than it is ("Trojan Source").
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' => char::REPLACEMENT_CHARACTER,
        // Marks without a width that hide in words, and more that reorder. What joins letters and emojis (U+200C, U+200D) stays.
        '\u{180e}' | '\u{200b}' | '\u{2060}'..='\u{206f}' | '\u{feff}' | '\u{fff9}'..='\u{fffb}' => {
            char::REPLACEMENT_CHARACTER
        }
        // Tags and fillers, which can hold a whole text without a glyph. Flags of regions are spelled with tags: only the flag
        // before them is left. What scripts are written with stays; an approval shows that by its number, too.
        '\u{3164}' | '\u{ffa0}' | '\u{e0000}'..='\u{e00ff}' => char::REPLACEMENT_CHARACTER,
        '\u{2028}' | '\u{2029}' => '␤',
        // Terminals do not agree on its width.
        '\u{ad}' => '-',
        c => c,
    }
}

/// `text` with every character visible, save line feeds and tabs. For texts that are written without a [`Line`].
pub(crate) fn neutral(text: &str) -> Cow<'_, str> {
    let keep = |c: char| matches!(c, '\n' | '\t') || visible(c) == c;
    if text.chars().all(keep) {
        return Cow::Borrowed(text);
    }
    // A line ending of Windows is not a control character that anyone wants to see.
    Cow::Owned(text.replace("\r\n", "\n").chars().map(|c| if keep(c) { c } else { visible(c) }).collect())
}

/// Marks without a width that may follow a character: more would cover the lines around it.
const MAX_MARKS: usize = 8;

/// Joins two emojis into one.
const JOINER: char = '\u{200d}';

/// One character on the screen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Glyph {
    c: char,
    style: Style,
    width: usize,
}

/// A stretch of one style.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Span {
    text: String,
    style: Style,
}

/// A line of styled text, without its end.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Line {
    spans: Vec<Span>,
    width: usize,
    /// What draws a picture behind it, on a terminal that can.
    drawing: Option<Arc<str>>,
    /// Whether it begins at the left edge, whatever stands before other lines, and is never broken: so it can be copied.
    is_verbatim: bool,
}

impl Line {
    /// Columns of a tab.
    const TAB: usize = 4;

    /// `text` in one style.
    pub(crate) fn new(text: &str, style: Style) -> Self {
        let mut line = Self::default();
        line.push(text, style);
        line
    }

    /// A line of code or of a program's output, from the left edge and unbroken.
    pub(crate) fn verbatim(text: &str, style: Style) -> Self {
        Self { is_verbatim: true, ..Self::new(text, style) }
    }

    /// Whether it is [`Line::verbatim`].
    pub(crate) const fn is_verbatim(&self) -> bool {
        self.is_verbatim
    }

    /// A picture, drawn by `commands`, which go to the terminal verbatim: no words of others may be in them.
    pub(super) fn drawing(commands: Arc<str>) -> Self {
        Self { drawing: Some(commands), ..Self::default() }
    }

    /// Adds `text`; characters that cannot be shown are replaced.
    pub(crate) fn push(&mut self, text: &str, style: Style) {
        let mut marks = 0;
        for c in text.chars() {
            if c == '\t' {
                let blanks = Self::TAB - self.width % Self::TAB;
                (0..blanks).for_each(|_| self.glyph(Glyph { c: ' ', style, width: 1 }));
                marks = 0;
                continue;
            }
            let next = glyph(c, style);
            marks = if next.width == 0 { marks + 1 } else { 0 };
            // A mark without a character before it would change what stands before the line.
            let is_out_of_place = marks > MAX_MARKS || (marks > 0 && self.width == 0);
            self.glyph(if is_out_of_place { glyph(char::REPLACEMENT_CHARACTER, style) } else { next });
        }
    }

    /// The same with more text.
    pub(crate) fn with(mut self, text: &str, style: Style) -> Self {
        self.push(text, style);
        self
    }

    /// Adds another line.
    pub(crate) fn append(&mut self, other: &Self) {
        for span in &other.spans {
            match self.spans.last_mut().filter(|last| last.style == span.style) {
                Some(last) => last.text.push_str(&span.text),
                None => self.spans.push(span.clone()),
            }
        }
        self.width += other.width;
        if other.drawing.is_some() {
            self.drawing.clone_from(&other.drawing);
        }
    }

    /// The same and then `other`.
    pub(crate) fn joined(mut self, other: &Self) -> Self {
        self.append(other);
        self
    }

    fn glyph(&mut self, glyph: Glyph) {
        self.width += glyph.width;
        match self.spans.last_mut().filter(|last| last.style == glyph.style) {
            Some(last) => last.text.push(glyph.c),
            None => self.spans.push(Span { text: glyph.c.to_string(), style: glyph.style }),
        }
    }

    /// How many columns it takes. Never less than a terminal uses, sometimes more (joined emojis).
    pub(crate) const fn width(&self) -> usize {
        self.width
    }

    /// Whether it has no text at all.
    pub(crate) fn is_empty(&self) -> bool {
        self.spans.is_empty()
    }

    /// Its text.
    pub(crate) fn text(&self) -> String {
        self.spans.iter().map(|span| span.text.as_str()).collect()
    }

    /// Without blanks at its end, unless it is verbatim.
    pub(crate) fn trimmed(mut self) -> Self {
        if self.is_verbatim {
            return self;
        }
        while let Some(span) = self.spans.last_mut() {
            let kept = span.text.trim_end_matches(' ').len();
            self.width -= span.text.len() - kept;
            span.text.truncate(kept);
            if kept > 0 {
                break;
            }
            self.spans.pop();
        }
        self
    }

    /// `before` and then this; only this if it is verbatim.
    pub(crate) fn after(&self, before: &Self) -> Self {
        if self.is_verbatim {
            return self.clone();
        }
        before.clone().joined(self)
    }

    /// Cut to `width` columns, with an ellipsis where something is missing.
    pub(crate) fn fit(self, width: usize) -> Self {
        if self.width <= width {
            return self;
        }
        let mut line = Self::default();
        let mut last = Style::PLAIN;
        for glyph in self.glyphs() {
            if line.width + glyph.width + 1 > width {
                break;
            }
            last = glyph.style;
            line.glyph(glyph);
        }
        if width > 0 {
            line.push("…", last);
        }
        line
    }

    /// Where the last column of a row begins that begins before column `most`: behind several blanks, or with its text.
    fn last_column(&self, most: usize) -> usize {
        let (mut column, mut blanks, mut found) = (0, 0, None);
        for glyph in self.glyphs() {
            if glyph.c == ' ' {
                blanks += 1;
            } else {
                let begins = found.is_none() || (blanks > 1 && column <= most);
                found = if begins { Some(column) } else { found };
                blanks = 0;
            }
            column += glyph.width;
        }
        found.filter(|column| *column > 0).unwrap_or(2).min(most)
    }

    /// The first `columns`, and the rest.
    fn split_at(&self, columns: usize) -> (Self, Self) {
        let (mut first, mut rest) = (Self::default(), Self::default());
        for glyph in self.glyphs() {
            let is_first = rest.is_empty() && first.width + glyph.width <= columns;
            let part = if is_first { &mut first } else { &mut rest };
            part.glyph(glyph);
        }
        (first, rest)
    }

    fn glyphs(&self) -> impl Iterator<Item = Glyph> {
        self.spans.iter().flat_map(|span| span.text.chars().map(|c| glyph(c, span.style)))
    }

    /// Writes it, with escape sequences for its styles, and what is drawn, if `color`.
    pub(crate) fn write(&self, color: bool, out: &mut String) {
        for span in &self.spans {
            let styled = color && span.style != Style::PLAIN;
            if styled {
                span.style.begin(out);
            }
            out.push_str(&span.text);
            if styled {
                out.push_str(Style::END);
            }
        }
        if let Some(commands) = self.drawing.as_ref().filter(|_| color) {
            out.push_str(commands);
        }
    }
}

fn glyph(c: char, style: Style) -> Glyph {
    let c = visible(c);
    // The emoji selector makes the character before it two columns wide on many terminals.
    let width = if c == '\u{fe0f}' { 1 } else { c.width().unwrap_or(0) };
    Glyph { c, style, width }
}

/// Breaks `line` between words into rows of at most `width` columns; a word that is longer than a row is broken
/// within. Blanks at a break vanish.
pub(crate) fn wrap(line: &Line, width: usize) -> Vec<Line> {
    if line.width <= width {
        return vec![line.clone()];
    }
    let mut rows = Rows { width: width.max(2), done: Vec::new(), row: Line::default(), gap: Vec::new() };
    let mut word = Vec::new();
    for glyph in line.glyphs() {
        if glyph.c == ' ' {
            rows.word(&mut word);
            rows.gap.push(glyph);
        } else {
            // Scripts of wide characters are written without blanks and may break anywhere.
            let joined = word.last().is_some_and(|last: &Glyph| last.c == JOINER);
            let wide = |glyph: &Glyph| glyph.width == 2;
            if !joined && glyph.width > 0 && (wide(&glyph) || word.last().is_some_and(wide)) {
                rows.word(&mut word);
            }
            word.push(glyph);
        }
    }
    rows.word(&mut word);
    rows.finish()
}

/// As [`wrap`], for a row of a table: what does not fit continues below its last column, if that leaves half of the width, else below
/// its beginning, or two columns to the right of it if that is the left edge.
pub(crate) fn wrap_row(line: &Line, width: usize) -> Vec<Line> {
    if line.width <= width {
        return vec![line.clone()];
    }
    let indent = line.last_column(width / 2);
    let (mut first, rest) = line.split_at(indent);
    let margin = Line::new(&" ".repeat(indent), Style::PLAIN);
    let rows = wrap(&rest, width.saturating_sub(indent));
    rows.iter().map(|row| row.after(&std::mem::replace(&mut first, margin.clone()))).collect()
}

/// Code.
pub(crate) const CODE: Style = Style::PLAIN.color(Color::Cyan);

struct Rows {
    width: usize,
    done: Vec<Line>,
    row: Line,
    gap: Vec<Glyph>,
}

impl Rows {
    fn word(&mut self, word: &mut Vec<Glyph>) {
        if word.is_empty() {
            return;
        }
        let wide: usize = word.iter().map(|glyph| glyph.width).sum();
        if self.row.width + self.gap.len() + wide > self.width {
            let indent = self.row.is_empty() && self.done.is_empty() && self.gap.len() < self.width / 2;
            if indent {
                // The first row keeps its indentation, even if its first word has to be broken.
                std::mem::take(&mut self.gap).into_iter().for_each(|blank| self.row.glyph(blank));
            } else if !self.row.is_empty() {
                self.done.push(std::mem::take(&mut self.row));
            }
            self.gap.clear();
        }
        for blank in std::mem::take(&mut self.gap) {
            self.row.glyph(blank);
        }
        word.drain(..).for_each(|glyph| self.glyph(glyph));
    }

    fn glyph(&mut self, glyph: Glyph) {
        if self.row.width + glyph.width > self.width && !self.row.is_empty() {
            self.done.push(std::mem::take(&mut self.row));
        }
        self.row.glyph(glyph);
    }

    fn finish(mut self) -> Vec<Line> {
        if !self.row.is_empty() || self.done.is_empty() {
            self.done.push(self.row);
        }
        self.done
    }
}

/// Characters of a folded text that are kept at all; no row is longer.
const FOLD_CHARS: usize = 1000;

/// `text` as a single line: its first line that is not blank, and how many more there are.
pub(crate) fn folded(text: &str) -> String {
    match first_line(text) {
        (first, None) => first,
        (first, Some(more)) => format!("{first} ({more})"),
    }
}

/// The first line of `text` that is not blank, and how many more there are, in words.
pub(crate) fn first_line(text: &str) -> (String, Option<String>) {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let first = lines.next().unwrap_or_default().chars().take(FOLD_CHARS).collect();
    let more = match lines.count() {
        0 => None,
        1 => Some("+1 line".to_owned()),
        more => Some(format!("+{more} lines")),
    };
    (first, more)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wrapped(text: &str, width: usize) -> Vec<String> {
        wrap(&Line::new(text, Style::PLAIN), width).iter().map(Line::text).collect()
    }

    #[test]
    fn control_characters_are_removed() {
        let line = Line::new("a\x1b[2Jb\x07\r\n\u{9b}31m\u{202e}x\x7f\u{2028}", Style::PLAIN);
        assert_eq!(line.text(), "a␛[2Jb␇␍␊\u{fffd}31m\u{fffd}x␡␤");
        assert_eq!(neutral("a\u{200b}b\u{feff}\u{2066}c\u{200d}"), "a\u{fffd}b\u{fffd}\u{fffd}c\u{200d}");
        let tags: String = "rm".chars().filter_map(|c| char::from_u32(0xe0000 + u32::from(c))).collect();
        assert_eq!(neutral(&format!("a{tags}\u{3164}b")), "a\u{fffd}\u{fffd}\u{fffd}b");
        assert_eq!(neutral("a\r\nb\x1b\tc\n"), "a\nb␛\tc\n");
        assert!(matches!(neutral("plain\ttext\n"), Cow::Borrowed(_)));
    }

    #[test]
    fn words_wrap_and_long_words_break() {
        assert_eq!(wrapped("the quick brown fox", 10), ["the quick", "brown fox"]);
        assert_eq!(wrapped("abcdefghij", 4), ["abcd", "efgh", "ij"]);
        assert_eq!(wrapped("x abcdefghij", 4), ["x", "abcd", "efgh", "ij"]);
        assert_eq!(wrapped("  indented words here", 12), ["  indented", "words here"]);
        assert_eq!(wrapped("", 4), [""]);
        assert_eq!(wrapped("中文沒有空格也要換行", 8), ["中文沒有", "空格也要", "換行"]);
        assert_eq!(wrapped("e\u{301}e\u{301}e\u{301}", 2), ["e\u{301}e\u{301}", "e\u{301}"]);
    }

    #[test]
    fn rows_of_tables_continue_below_their_last_column() {
        let rows = |text: &str, width| -> Vec<String> {
            wrap_row(&Line::new(text, Style::PLAIN), width).iter().map(Line::text).collect()
        };
        assert_eq!(
            rows("  openai      no key: set `OPENAI_API_KEY`", 30),
            ["  openai      no key: set", "              `OPENAI_API_KEY`"]
        );
        // Where that leaves too little, below the beginning.
        assert_eq!(rows("  openai      no key: set `KEY`", 20), ["  openai      no", "  key: set `KEY`"]);
        assert_eq!(rows("  one two three", 10), ["  one two", "  three"]);
        assert_eq!(rows("one two three", 9), ["one two", "  three"]);
        assert_eq!(rows("one  two", 8), ["one  two"]);
        for width in 4..40 {
            let line = Line::new("ab12  5 m ago  中文  a longer text at the end", Style::PLAIN);
            assert!(wrap_row(&line, width).iter().all(|row| row.width() <= width), "{width}");
        }
    }

    #[test]
    fn no_row_is_wider_than_asked() {
        let text = "Ein längerer Satz mit 中文 und 👩‍🔬 Emojis ❤️, Donaudampfschifffahrtsgesellschaft.";
        for width in 2..60 {
            let line = Line::new(text, Style::PLAIN);
            assert!(wrap(&line, width).iter().all(|row| row.width() <= width), "{width}");
        }
    }

    #[test]
    fn marks_cover_no_other_text() {
        let marks = "\u{301}".repeat(20);
        let text = Line::new(&format!("a{marks}b\u{301}"), Style::PLAIN).text();
        assert_eq!(text, format!("a{}{}b\u{301}", "\u{301}".repeat(8), "\u{fffd}".repeat(12)));
        assert_eq!(Line::new("\u{336}rm", Style::PLAIN).text(), "\u{fffd}rm");
    }

    #[test]
    fn a_line_that_does_not_fit_ends_in_an_ellipsis() {
        assert_eq!(Line::new("abcdef", Style::PLAIN).fit(4).text(), "abc…");
        assert_eq!(Line::new("abcd", Style::PLAIN).fit(4).text(), "abcd");
        assert_eq!(Line::new("中文中", Style::PLAIN).fit(4).text(), "中…");
        assert_eq!(Line::new("abc", Style::PLAIN).fit(0).text(), "");
    }

    #[test]
    fn folding_says_how_much_is_hidden() {
        assert_eq!(folded("\n one \n\ntwo\nthree"), "one (+2 lines)");
        assert_eq!(folded("one\ntwo\n"), "one (+1 line)");
        assert_eq!(folded(""), "");
    }

    #[test]
    fn styles_are_written_only_when_asked_for() {
        let line = Line::new("a", Style::BOLD).with("b", Style::PLAIN);
        let write = |color| {
            let mut out = String::new();
            line.write(color, &mut out);
            out
        };
        assert_eq!(write(true), "\x1b[1ma\x1b[0mb");
        assert_eq!(write(false), "ab");
    }
}
