//! Rows of comma-separated values (RFC 4180): the first line names the columns.

use std::collections::HashSet;

use ::csv::{ErrorKind, ReaderBuilder, StringRecord};

use super::lines::{Collector, Lines};
use super::row::{Row, shown};
use crate::diagnostic::{Diagnostics, Report};
use crate::source::{Source, Span};

pub(super) fn read(text: &str, file_name: &str, delimiter: u8) -> Result<Lines, Diagnostics> {
    let source = Source::new(file_name, text);
    let mut report = Report::new(&source).without_lines();
    if let Some(at) = open_quotation(source.text.as_bytes(), delimiter) {
        let hint = "close it; within a cell in quotation marks, write a quotation mark twice";
        report.error_with_hint(&span_at(at, source.text), "this quotation mark is not closed", hint);
        return Err(report.finish());
    }
    let mut reader = ReaderBuilder::new().delimiter(delimiter).from_reader(source.text.as_bytes());
    let names = reader.headers().cloned();
    let lines = match names {
        Ok(names) if are_columns(&names, source.text, &mut report) => {
            let mut rows = Collector::new(&mut report);
            names.iter().for_each(|name| rows.column(name.trim()));
            for record in reader.records() {
                if rows.is_full() {
                    break;
                }
                match record {
                    Ok(record) => add(&mut rows, &names, &record, source.text),
                    Err(error) => rows.report.error(&span_of(error.position(), source.text), why(&error)),
                }
            }
            rows.finish()
        }
        Ok(_) => Lines::default(),
        Err(error) => {
            report.error(&(0..1), why(&error));
            Lines::default()
        }
    };
    if lines.rows.is_empty() && !report.failed() {
        report.error_with_hint(&(0..0), "there is no row", "write one below the names of the columns");
    }
    if report.failed() { Err(report.finish()) } else { Ok(lines) }
}

/// Where a cell begins with a quotation mark that is not closed: the reader of CSV takes all that follows as this cell.
fn open_quotation(text: &[u8], delimiter: u8) -> Option<usize> {
    let (mut opened, mut is_start) = (None, true);
    let mut bytes = text.iter().copied().enumerate().peekable();
    while let Some((at, byte)) = bytes.next() {
        match (opened, byte) {
            (Some(_), b'"') if bytes.next_if(|(_, next)| *next == b'"').is_none() => opened = None,
            (None, b'"') if is_start => opened = Some(at),
            _ => {}
        }
        is_start = opened.is_none() && (byte == delimiter || matches!(byte, b'\n' | b'\r'));
    }
    opened
}

/// Adds a record. An empty cell sets nothing.
fn add(rows: &mut Collector<'_, '_>, names: &StringRecord, record: &StringRecord, text: &str) {
    let span = span_of(record.position(), text);
    let line = rows.report.source.position(span.start).line;
    let mut row = Row::new(format!("{line:05}"));
    for (name, value) in names.iter().zip(record).filter(|(_, value)| !value.trim().is_empty()) {
        match name.trim() {
            "id" => row.id = value.to_owned(),
            name => row.set(name, value.to_owned()),
        }
    }
    rows.add(line, row, &span);
}

/// Whether the names of the columns can be those of rows; reports why not.
fn are_columns(names: &StringRecord, text: &str, report: &mut Report<'_>) -> bool {
    let first = span_at(0, text);
    let mut seen = HashSet::new();
    for name in names.iter().map(str::trim) {
        if name.is_empty() {
            report.error(&first, "a column has no name");
        } else if !seen.insert(name) {
            report.error(&first, format!("there are two columns `{}`", shown(name)));
        }
    }
    if names.len() == 1 && seen.iter().any(|one| one.contains([';', '\t'])) {
        let hint = "separate the columns by commas, or name a file with tabs `.tsv`";
        report.error_with_hint(&first, "there is only one column", hint);
    }
    !report.failed()
}

fn why(error: &::csv::Error) -> String {
    match error.kind() {
        ErrorKind::UnequalLengths { expected_len, len, .. } => {
            let s = |count: &u64| if *count == 1 { "" } else { "s" };
            let columns = format!("{expected_len} column{}", s(expected_len));
            format!("this row has {len} cell{}, and the header has {columns}", s(len))
        }
        _ => format!("this is not valid CSV: {error}"),
    }
}

/// The first line of a record.
fn span_of(position: Option<&::csv::Position>, text: &str) -> Span {
    let at = position.and_then(|position| usize::try_from(position.byte()).ok());
    span_at(at.unwrap_or_default(), text)
}

fn span_at(at: usize, text: &str) -> Span {
    let rest = text.get(at..).unwrap_or_default();
    let skipped = rest.len() - rest.trim_start_matches(['\r', '\n']).len();
    let line = rest.trim_start_matches(['\r', '\n']).lines().next().unwrap_or_default();
    at + skipped..at + skipped + line.len()
}
