//! Mistakes in a configuration file, with their positions.

use std::borrow::Cow;
use std::collections::{HashMap, HashSet};
use std::fmt;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

use crate::codes;
use crate::source::{Position, Source, Span};

/// An error or a warning about a file: a mistake, or something that is probably not meant.
///
/// It is displayed as plain text of several lines:
///
/// ```text
/// error: unknown key `sytem`
///   --> trading-bot.yaml:7:5
///    |
///  7 |     sytem: You are a trader
///    |     ^^^^^
/// hint: did you mean `system`?
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Diagnostic {
    /// Whether the file can still be used.
    pub severity: Severity,
    /// The kind of finding, such as `unknown-key`. Programs can rely on it; messages change.
    #[serde(default = "invalid")]
    pub code: Cow<'static, str>,
    /// The message: what is wrong.
    pub message: String,
    /// The file, as the caller named it.
    pub file: String,
    /// The place in the file; `None` when it is about the file as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub place: Option<Place>,
    /// How to fix it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub hint: Option<String>,
}

fn invalid() -> Cow<'static, str> {
    Cow::Borrowed(codes::INVALID)
}

impl Diagnostic {
    /// Creates a diagnostic of the kind `code`. Control characters in its texts are replaced.
    pub fn new(
        severity: Severity,
        code: &'static str,
        file: &str,
        place: Option<Place>,
        message: &str,
        hint: Option<&str>,
    ) -> Self {
        let safe = |text: &str| text.chars().map(printable).collect::<String>();
        Self {
            severity,
            code: code.into(),
            message: safe(message),
            file: safe(file),
            place,
            hint: hint.map(safe),
        }
    }
}

/// The severity of a diagnostic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// The file cannot be used.
    Error,
    /// The file can be used, but something in it is probably not meant.
    Warning,
}

/// A place in a file, with the line it is in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// The line, counted from 1.
    pub line: usize,
    /// The column, counted from 1 in characters.
    pub column: usize,
    /// The text of the line, cut to what is around the place when it is long; control characters are replaced. Empty if lines are not
    /// shown ([`Report::without_lines`]).
    pub text: String,
    /// The column of the place in a terminal, from 0, where `text` is shown.
    pub caret: usize,
    /// The number of columns of a terminal that the place takes: at least 1, or 0 if lines are not shown.
    pub width: usize,
    /// The columns of its first character and after its last one in the line, counted from 1 in UTF-16 code units, as many editors
    /// count. It is not serialized.
    #[serde(skip)]
    pub utf16: Range<usize>,
}

impl Place {
    /// The longest piece of a line that is shown, in characters.
    const SHOWN: usize = 100;

    /// How much of a long line is shown before the place.
    const LEAD: usize = Self::SHOWN / 3;

    /// Without the line it is in.
    fn bare(self) -> Self {
        Self { text: String::new(), caret: 0, width: 0, ..self }
    }

    /// Looks at no more of a long line than is shown: a file of one line may have many mistakes.
    fn new(source: &Source<'_>, span: &Span) -> Self {
        let Position { line, column } = source.position(span.start);
        let (before, rest) = source.line_around(span.start);
        let short = before.chars().chain(rest.chars()).take(Self::SHOWN + 1).count() <= Self::SHOWN;
        let kept = if short || column <= Self::LEAD { column } else { Self::LEAD };
        let around = span.start.saturating_sub(Self::SHOWN * 4)..span.start + Self::SHOWN * 4;
        let hidden = source.hidden_in(&around);
        let shown = |start: usize, (at, c): (usize, char)| {
            let is_hidden = hidden.iter().any(|span| span.contains(&(start + at)));
            if is_hidden { '*' } else { printable(c) }
        };
        let start = span.start.saturating_sub(before.len());
        let lead: String = before.char_indices().rev().take(kept).map(|c| shown(start, c)).collect();
        let lead: String = lead.chars().rev().collect();
        let room = Self::SHOWN - lead.chars().count();
        let rest: String = rest.char_indices().take(room).map(|c| shown(span.start, c)).collect();
        let marked = source.slice(span).split(['\n', '\r']).next().unwrap_or_default();
        let utf16 = utf16_columns(before, marked);
        let marked = marked.chars().take(rest.chars().count()).count();
        let width = rest.chars().take(marked).collect::<String>().trim_end().width().max(1);
        Self { line, column, caret: lead.width(), text: lead + &rest, width, utf16 }
    }
}

/// The columns of `marked` in a line that begins with `before`.
fn utf16_columns(before: &str, marked: &str) -> Range<usize> {
    let units = |text: &str| text.chars().map(char::len_utf16).sum::<usize>();
    let start = 1 + units(before);
    start..start + units(marked.trim_end()).max(1)
}

/// Control and bidirectional characters of a file are escaped, so that an error cannot manipulate the terminal.
fn printable(c: char) -> char {
    match c {
        '\t' => ' ',
        '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' => '\u{fffd}',
        c if c.is_control() || c.width().is_none() => '\u{fffd}',
        c => c,
    }
}

impl fmt::Display for Severity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Error => "error",
            Self::Warning => "warning",
        })
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.severity {
            Severity::Error => writeln!(f, "{}: {}", self.severity, self.message)?,
            Severity::Warning => writeln!(f, "{}[{}]: {}", self.severity, self.code, self.message)?,
        }
        match &self.place {
            None => writeln!(f, " --> {}", self.file)?,
            Some(Place { line, column, text, caret, width, .. }) => {
                let gutter = line.to_string().len();
                writeln!(f, "{:gutter$}--> {}:{line}:{column}", "", self.file)?;
                if *width > 0 {
                    writeln!(f, "{:gutter$} |", "")?;
                    writeln!(f, "{line} | {text}")?;
                    writeln!(f, "{:gutter$} | {:caret$}{:^<width$}", "", "", "")?;
                }
            }
        }
        match &self.hint {
            Some(hint) => writeln!(f, "hint: {hint}"),
            None => Ok(()),
        }
    }
}

/// Every mistake in a file and in the files it names, in the order of the text.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// Iterates over all of them, errors and warnings.
    pub fn iter(&self) -> std::slice::Iter<'_, Diagnostic> {
        self.0.iter()
    }

    /// Returns the number of errors.
    pub fn errors(&self) -> usize {
        self.0.iter().filter(|diagnostic| diagnostic.severity == Severity::Error).count()
    }

    /// Adds a diagnostic.
    pub fn push(&mut self, diagnostic: Diagnostic) {
        self.0.push(diagnostic);
    }

    /// Adds those of `other` that are not here yet: a file that is included twice has its mistakes once.
    pub fn append(&mut self, other: Self) {
        for diagnostic in other.0 {
            if !self.0.contains(&diagnostic) {
                self.0.push(diagnostic);
            }
        }
    }

    /// Adds all of `other` in the order of the text: files in the order in which they are first named, and in each of them
    /// lines and columns, before what is about the file as a whole. A finding that both have is kept once, as an error if it is
    /// one in either of them.
    pub fn merge(&mut self, other: Self) {
        let mut known: HashMap<_, usize> = HashMap::new();
        for diagnostic in std::mem::take(&mut self.0).into_iter().chain(other.0) {
            let at = diagnostic.place.as_ref().map(|place| (place.line, place.column));
            let key = (diagnostic.file.clone(), at, diagnostic.message.clone());
            match known.get(&key).and_then(|index| self.0.get_mut(*index)) {
                Some(same) if diagnostic.severity == Severity::Error => *same = diagnostic,
                Some(_) => {}
                None => {
                    known.insert(key, self.0.len());
                    self.0.push(diagnostic);
                }
            }
        }
        let mut files: HashMap<String, usize> = HashMap::new();
        for diagnostic in &self.0 {
            let next = files.len();
            files.entry(diagnostic.file.clone()).or_insert(next);
        }
        self.0.sort_by_key(|Diagnostic { file, place, .. }| {
            let at = place.as_ref().map(|place| (place.line, place.column));
            (files.get(file).copied(), at.is_none(), at)
        });
    }

    fn sort(&mut self) {
        self.0.sort_by_key(|diagnostic| diagnostic.place.as_ref().map(|place| (place.line, place.column)));
    }
}

impl IntoIterator for Diagnostics {
    type Item = Diagnostic;
    type IntoIter = std::vec::IntoIter<Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

impl<'a> IntoIterator for &'a Diagnostics {
    type Item = &'a Diagnostic;
    type IntoIter = std::slice::Iter<'a, Diagnostic>;
    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// With a blank line between two.
impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, diagnostic) in self.0.iter().enumerate() {
            let gap = if index > 0 { "\n" } else { "" };
            write!(f, "{gap}{diagnostic}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Diagnostics {}

/// Collects the mistakes of one file.
pub struct Report<'s> {
    /// The file.
    pub source: &'s Source<'s>,
    /// Lines are taken out of the source at the end, when it is known what must not be shown of them.
    found: Vec<Found>,
    /// What was found where: what is reached twice through an alias is wrong once.
    said: HashSet<(usize, String)>,
    /// How many errors and warnings were found.
    errors: usize,
    warnings: usize,
    /// How often something was reported, including what was known already, and how often that was an error.
    attempts: usize,
    failures: usize,
    /// The code of the next error.
    code: &'static str,
    /// Whether the lines of the mistakes are shown.
    shows_lines: bool,
}

struct Found {
    severity: Severity,
    code: &'static str,
    span: Span,
    message: String,
    hint: Option<String>,
}

impl<'s> Report<'s> {
    /// A file can be wrong in as many ways as it has lines; no reader needs more errors than this, and no more warnings.
    const MOST: usize = 100;
    /// How often errors are looked for: a mistake that thousands of aliases reach is found each time, with a search for what was meant.
    const MOST_FAILURES: usize = 500;

    /// Creates an empty report on `source`.
    pub fn new(source: &'s Source<'s>) -> Self {
        Self {
            source,
            found: Vec::new(),
            said: HashSet::new(),
            errors: 0,
            warnings: 0,
            attempts: 0,
            failures: 0,
            code: codes::INVALID,
            shows_lines: true,
        }
    }

    /// Shows where mistakes are, and not the lines they are in: for files whose lines are long or private, such as rows of data.
    ///
    /// ```
    /// use polylogue_config::{diagnostic::Report, source::Source};
    ///
    /// let source = Source::new("rows.jsonl", "{\"task\": []}");
    /// let mut report = Report::new(&source).without_lines();
    /// report.error(&(9..11), "`task` is not a text");
    /// assert_eq!(report.finish().to_string(), "error: `task` is not a text\n --> rows.jsonl:1:10\n");
    /// ```
    #[must_use]
    pub fn without_lines(self) -> Self {
        Self { shows_lines: false, ..self }
    }

    /// Returns whether the report holds its maximum of errors. A caller can stop looking then, and should where looking takes
    /// long. Warnings do not count: behind them can be the first error, without which the file would pass.
    pub const fn full(&self) -> bool {
        self.errors >= Self::MOST || self.failures >= Self::MOST_FAILURES
    }

    /// Returns whether the report holds its maximum of errors or of warnings, for a caller that looks for nothing but warnings.
    pub const fn full_of_warnings(&self) -> bool {
        self.full() || self.warnings >= Self::MOST
    }

    /// Sets the code of the next error. Without it, the code is [`codes::INVALID`].
    pub const fn code(&mut self, code: &'static str) -> &mut Self {
        self.code = code;
        self
    }

    /// Adds an error.
    pub fn error(&mut self, span: &Span, message: impl Into<String>) {
        self.add(Severity::Error, span, message.into(), None);
    }

    /// Adds an error and what to do about it.
    pub fn error_with_hint(&mut self, span: &Span, message: impl Into<String>, hint: impl Into<String>) {
        self.add(Severity::Error, span, message.into(), Some(hint.into()));
    }

    /// Adds a warning of the kind `code` and what to do about it.
    pub fn warning(
        &mut self,
        code: &'static str,
        span: &Span,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        self.code = code;
        self.add(Severity::Warning, span, message.into(), Some(hint.into()));
    }

    /// Returns how often an error or a warning was added, counting those that the report knew already or had no room for: a
    /// value is sound if this did not change while it was read.
    pub const fn attempts(&self) -> usize {
        self.attempts
    }

    /// Returns whether an error begins where `span` does.
    pub fn has_error_at(&self, span: &Span) -> bool {
        self.found.iter().any(|one| one.severity == Severity::Error && one.span.start == span.start)
    }

    fn add(&mut self, severity: Severity, span: &Span, message: String, hint: Option<String>) {
        let code = std::mem::replace(&mut self.code, codes::INVALID);
        let is_full = match severity {
            Severity::Error => self.full(),
            Severity::Warning => self.full_of_warnings(),
        };
        self.attempts += 1;
        self.failures += usize::from(severity == Severity::Error);
        if is_full || !self.said.insert((span.start, message.clone())) {
            return;
        }
        match severity {
            Severity::Error => self.errors += 1,
            Severity::Warning => self.warnings += 1,
        }
        self.found.push(Found { severity, code, span: span.clone(), message, hint });
    }

    /// Hides the text of `span` in the lines that are shown.
    pub fn hide(&mut self, span: &Span) {
        self.source.hide(span.clone());
    }

    /// Returns whether there is an error so far.
    pub const fn failed(&self) -> bool {
        self.errors > 0
    }

    /// Returns the mistakes, in the order of the text.
    #[must_use]
    pub fn finish(self) -> Diagnostics {
        let (source, rest, shows_lines) = (self.source, self.rest(), self.shows_lines);
        let mut diagnostics = Diagnostics::default();
        for Found { severity, code, span, message, hint } in self.found {
            let place = Place::new(source, &span);
            let place = Some(if shows_lines { place } else { place.bare() });
            let hint = hint.as_deref();
            diagnostics.push(Diagnostic::new(severity, code, source.name, place, &message, hint));
        }
        diagnostics.sort();
        if let Some((severity, message)) = rest {
            diagnostics.push(Diagnostic::new(severity, codes::INVALID, source.name, None, &message, None));
        }
        diagnostics
    }

    /// What is said of mistakes that the report has no room for.
    fn rest(&self) -> Option<(Severity, String)> {
        let most = Self::MOST;
        if self.errors >= most {
            return Some((Severity::Error, format!("there may be more: the first {most} are shown")));
        }
        if self.full() {
            let message =
                "there may be more: the same mistakes repeat, and the rest of the file was not checked";
            return Some((Severity::Error, message.to_owned()));
        }
        let message = || format!("there may be more warnings: the first {most} are shown");
        self.full_of_warnings().then(|| (Severity::Warning, message()))
    }
}

#[cfg(test)]
mod tests;
