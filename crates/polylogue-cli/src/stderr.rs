//! Lines for the person, in addition to the output.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};

use polylogue_team::Diagnostics;

use crate::screen::text::{Line, neutral, wrap};
use crate::screen::{Size, Style};

/// A line for the person, in addition to the output.
pub(crate) fn print_note(text: &str) {
    // Without a reader there is nothing left to do.
    let _ = writeln!(io::stderr(), "{}", neutral(text));
}

/// As [`print_note`], an error or several.
pub(crate) fn print_error(error: &impl Display) {
    print_table(&error.to_string());
}

/// As [`print_note`], each line in rows that the terminal has room for: what does not fit continues below its column.
pub(crate) fn print_table(text: &str) {
    if !io::stderr().is_terminal() {
        return print_note(text);
    }
    let lines = text.lines().map(|line| Line::new(line, Style::PLAIN));
    Size::of_terminal().table_rows(lines).iter().for_each(|row| print_note(&row.text()));
}

/// What is probably not meant in a team file, each with a blank line after it.
pub(crate) fn print_warnings(warnings: &Diagnostics) {
    for warning in warnings.iter() {
        print_error(&warning.to_string().trim_end());
        print_note("");
    }
}

/// As [`print_note`], in rows that fit the terminal.
pub(crate) fn print_note_wrapped(text: &str) {
    if !io::stderr().is_terminal() {
        return print_note(text);
    }
    let line = Line::new(text, Style::PLAIN);
    wrap(&line, Size::of_terminal().text_columns()).iter().for_each(|row| print_note(&row.text()));
}
