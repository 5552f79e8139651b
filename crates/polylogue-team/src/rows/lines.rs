//! Rows of JSON lines.

use std::collections::{HashMap, HashSet};

use serde_json::{Map, Value};

use super::row::{LONGEST_ID, MOST_ROWS, Row, as_text, shown};
use crate::diagnostic::{Diagnostics, Report};
use crate::source::{Source, Span};

/// What a row is.
const FORM: &str = "give one JSON object a line: `{\"task\": \"...\"}`";

/// Rows as they were given, and their keys in the order in which they come first.
#[derive(Debug, Clone, Default)]
pub(super) struct Lines {
    pub(super) rows: Vec<Row>,
    pub(super) columns: Vec<String>,
}

pub(super) fn read(text: &str, file_name: &str) -> Result<Lines, Diagnostics> {
    let source = Source::new(file_name, text);
    let mut report = Report::new(&source).without_lines();
    let mut rows = Collector::new(&mut report);
    rows.read(source.text);
    let lines = rows.finish();
    if lines.rows.is_empty() && !report.failed() {
        report.error_with_hint(&(0..0), "there is no row", FORM);
    }
    if report.failed() { Err(report.finish()) } else { Ok(lines) }
}

/// Rows with different ids.
pub(super) struct Collector<'r, 's> {
    lines: Lines,
    /// The lines in which ids were met.
    ids: HashMap<String, usize>,
    /// The names of the columns so far. Each line can have others.
    known: HashSet<String>,
    pub(super) report: &'r mut Report<'s>,
}

impl<'r, 's> Collector<'r, 's> {
    pub(super) fn new(report: &'r mut Report<'s>) -> Self {
        Self { lines: Lines::default(), ids: HashMap::new(), known: HashSet::new(), report }
    }

    /// Whether there are more rows, or more mistakes, than anyone wants to read.
    pub(super) fn is_full(&self) -> bool {
        self.lines.rows.len() > MOST_ROWS || self.report.full()
    }

    /// Adds the row of the line `number`, if its id is legal and new.
    pub(super) fn add(&mut self, number: usize, row: Row, span: &Span) {
        let legal = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
        if !(1..=LONGEST_ID).contains(&row.id.len()) || !row.id.chars().all(legal) {
            let hint = format!("it is 1 to {} ASCII letters, digits, `-` and `_`", LONGEST_ID);
            self.report.error_with_hint(span, format!("`{}` is not a valid row id", shown(&row.id)), hint);
        } else if let Some(first) = self.ids.insert(row.id.clone(), number) {
            let id = shown(&row.id);
            self.report.error(span, format!("the row `{id}` is in the file twice; first in line {first}"));
        }
        self.lines.rows.push(row);
        if self.lines.rows.len() > MOST_ROWS {
            self.report.error(&(span.end..span.end), format!("there are more than {} rows", MOST_ROWS));
        }
    }

    /// Notes the key or the column `name`.
    pub(super) fn column(&mut self, name: &str) {
        if !self.known.contains(name) {
            self.known.insert(name.to_owned());
            self.lines.columns.push(name.to_owned());
        }
    }

    pub(super) fn finish(self) -> Lines {
        self.lines
    }

    fn read(&mut self, text: &str) {
        let mut from = 0;
        for (at, line) in text.split_inclusive('\n').enumerate() {
            let span = from..from + line.trim_end().len();
            from += line.len();
            if self.is_full() {
                break;
            }
            if !line.trim().is_empty() {
                self.line(at + 1, line.trim_end(), span);
            }
        }
    }

    fn line(&mut self, number: usize, line: &str, span: Span) {
        match serde_json::from_str::<Value>(line) {
            Ok(Value::Object(object)) => self.row(number, &object, span),
            Ok(_) => self.report.error_with_hint(&span, "this is not a JSON object", FORM),
            Err(error) => {
                let columns = line.char_indices().map(|(at, _)| at);
                let at = span.start + columns.take(error.column()).last().unwrap_or(0);
                let why = error.to_string();
                let why = why.split(" at line").next().unwrap_or_default();
                let message = format!("this is not valid JSON: {why}");
                match line.trim_start().starts_with('{') {
                    true => self.report.error(&(at..at + 1), message),
                    false => self.report.error_with_hint(&(at..at + 1), message, FORM),
                }
            }
        }
    }

    fn row(&mut self, number: usize, object: &Map<String, Value>, span: Span) {
        let mut row = Row::new(format!("{number:05}"));
        for (key, value) in object {
            self.column(key);
            match as_text(value) {
                Some(id) if key == "id" => row.id = id,
                Some(value) => row.set(key, value),
                None => {
                    self.report.error(&span, format!("`{}` is neither a text nor a number", shown(key)));
                }
            }
        }
        self.add(number, row, &span);
    }
}
