//! Lines for the person, in addition to the output.

use std::fmt::Display;
use std::io::{self, IsTerminal, Write};
use std::sync::OnceLock;

use polylogue_team::Diagnostics;

use crate::screen::text::{Line, neutral, wrap};
use crate::screen::{ColorChoice, OutputStyle, Sanitized, Size, Style};

/// When the labels of errors have a color.
static COLORS: OnceLock<ColorChoice> = OnceLock::new();

/// Colors the labels of errors from now on as the command line says.
pub(crate) fn set_colors(wish: ColorChoice) {
    // Once: the command line does not change.
    let _ = COLORS.set(wish);
}

/// A line for the person, in addition to the output.
pub(crate) fn print_note(text: &str) {
    // Without a reader there is nothing left to do.
    let _ = writeln!(io::stderr(), "{}", neutral(text));
}

/// As [`print_note`], an error or several, in rows as [`print_table`], whose labels stand out.
pub(crate) fn print_error(error: &impl Display) {
    let text = error.to_string();
    if !io::stderr().is_terminal() {
        return print_note(&text);
    }
    let looks = OutputStyle::of(COLORS.get().copied().unwrap_or_default(), &io::stderr());
    let rows = Size::of_terminal().table_rows(text.lines().map(labeled));
    let _ = write!(io::stderr(), "{}", Sanitized::lines(&rows, looks.color));
}

/// A line of an error, with the style of its label.
fn labeled(line: &str) -> Line {
    let begins = |words: &[&str]| words.iter().any(|word| line.trim_start().starts_with(word));
    let style = match line.find(':') {
        Some(_) if begins(&["error"]) => Style::ERROR,
        Some(_) if begins(&["warning"]) => Style::WARNING,
        Some(_) if begins(&["hint:", "tip:"]) => Style::BOLD,
        _ => return Line::new(line, Style::PLAIN),
    };
    let (label, rest) = line.split_once(':').unwrap_or((line, ""));
    Line::new(&format!("{label}:"), style).with(rest, Style::PLAIN)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_of_errors_stand_out_and_nothing_else() {
        let shown = |line: &str| Sanitized::lines(&[labeled(line)], true).to_string();
        assert_eq!(shown("error (config): no: it"), "\u{1b}[1;31merror (config):\u{1b}[0m no: it\n");
        assert_eq!(shown("warning[no-stop]: it"), "\u{1b}[1;33mwarning[no-stop]:\u{1b}[0m it\n");
        assert_eq!(shown("  hint: this"), "\u{1b}[1m  hint:\u{1b}[0m this\n");
        for line in ["5 | error: none", "an error: none", "error", "  | ^^^^"] {
            assert_eq!(shown(line), format!("{line}\n"));
        }
    }
}
