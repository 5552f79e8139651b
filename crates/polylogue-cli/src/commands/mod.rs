//! The commands, one room each.

pub(crate) mod batch;
pub(crate) mod chat;
pub(crate) mod check;
pub(crate) mod cluster;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod count;
pub(crate) mod dev;
pub(crate) mod doctor;
pub(crate) mod files;
pub(crate) mod fmt;
pub(crate) mod fork;
mod hand_over;
pub(crate) mod import;
pub(crate) mod keeping;
pub(crate) mod mcp;
pub(crate) mod memory;
pub(crate) mod migrate;
pub(crate) mod models;
pub(crate) mod move_to;
pub(crate) mod new;
pub(crate) mod price;
pub(crate) mod resume;
pub(crate) mod run;
pub(crate) mod runs;
pub(crate) mod serve;
pub(crate) mod show;
pub(crate) mod steer;
mod takers;
mod team_version;
pub(crate) mod token;
pub(crate) mod trust;
pub(crate) mod verify;
pub(crate) mod waiting;
pub(crate) mod worker;

use std::io::{self, IsTerminal, Write};
use std::path::Path;

use crate::error::CliError;
use crate::screen::text::Line;
use crate::screen::{Sanitized, Size, Style};
use crate::text_arg::{read_up_to, utf8};
use crate::whole_file;

/// Writes to the output what a terminal can be shown. A closed output is not an error.
pub(crate) fn write(text: &Sanitized) -> Result<(), CliError> {
    write_unchanged(text)
}

/// Writes text that another program can read, such as a team file. A program and a file get it unchanged: to them, any character
/// may matter. A terminal gets what it can be shown.
pub(crate) fn write_data(text: &str) -> Result<(), CliError> {
    match io::stdout().is_terminal() {
        true => write(&Sanitized::plain(&format!("{}\n", text.trim_end_matches('\n')))),
        false => write_unchanged(text),
    }
}

/// Writes a value that another program can read, such as a path, on a line of its own: as [`write_data`] does, and to a terminal
/// always as one row.
pub(crate) fn write_value(value: &str) -> Result<(), CliError> {
    match io::stdout().is_terminal() {
        true => write(&Sanitized::row(value)),
        false => write_unchanged(&format!("{value}\n")),
    }
}

fn write_unchanged(text: &str) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match out.write_all(text.as_bytes()).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(CliError::failed(format!("the output cannot be written: {error}")))
        }
        _ => Ok(()),
    }
}

/// Writes a team file where the user names it: over an existing one only with `force`.
fn write_file(file: &Path, text: &str, force: bool) -> Result<(), CliError> {
    let written = match force {
        true => whole_file::replace(file, text),
        false => whole_file::create(file, text.as_bytes()),
    };
    written.map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => CliError::usage(format!("`{}` exists", file.display()))
            .hint("name another file, or overwrite it with `--force`"),
        _ => CliError::failed(format!("`{}` cannot be written: {error}", file.display())),
    })
}

/// The name of standard input in findings.
pub(crate) const PIPED: &str = "<stdin>";

/// The text of a team file on standard input, which otherwise cannot be `done`, such as formatted.
pub(crate) fn piped_team(done: &str) -> Result<String, CliError> {
    /// As for team files, in bytes.
    const LARGEST: u64 = 4 << 20;
    let text = read_up_to(io::stdin(), LARGEST).and_then(utf8);
    text.map_err(|why| CliError::usage(format!("standard input cannot be {done}: {why}")))
}

/// The columns for rows of a table, if the output is a terminal.
pub(crate) fn terminal_columns() -> Option<usize> {
    io::stdout().is_terminal().then(|| Size::of_terminal().row_columns())
}

/// Writes rows of a table for people, broken between words where a terminal is too narrow for them; or lines for programs, if `json`.
pub(crate) fn write_rows(text: &Sanitized, json: bool) -> Result<(), CliError> {
    if json || !io::stdout().is_terminal() {
        return write(text);
    }
    let rows = Size::of_terminal().table_rows(text.lines().map(|line| Line::new(line, Style::PLAIN)));
    write(&Sanitized::lines(&rows, false))
}

/// The error for a value that JSON cannot hold.
pub(crate) fn unwritable(error: serde_json::Error) -> CliError {
    CliError::failed(format!("the output cannot be written as JSON: {error}"))
}
