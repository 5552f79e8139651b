//! Text that a person is asked to approve, exactly, and set apart so that nothing in it passes for the question around it.

use polylogue::tools::approval::MARGIN;
use unicode_width::UnicodeWidthStr;

use super::style::Style;
use super::text::{CODE, Line, wrap};

/// What sets exact text apart, which comes behind [`MARGIN`]s.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetApart {
    /// A color, in rows of so many columns: the text is unbroken from the left edge, so that it can be copied.
    Color(usize),
    /// The margin, in rows of so many columns: a terminal would continue a long line without one.
    Margin(usize),
    /// The margin, where nothing is known of rows.
    Lines,
}

/// The margin of a row that continues a line.
const CONTINUED: &str = "    ┆ ";

/// From so many rows on, the end says how much there was: the beginning may be off the screen.
const LONG: usize = 20;

/// `text` without Markdown, with the exact text in it set apart.
pub(crate) fn rows(text: &str, apart: SetApart, style: Style) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut rest = text.lines().peekable();
    while let Some(line) = rest.next() {
        let Some(first) = code_of(line) else {
            match apart {
                SetApart::Lines => lines.push(Line::new(line, style)),
                SetApart::Color(width) | SetApart::Margin(width) => {
                    lines.extend(wrap(&Line::new(line, style), width))
                }
            }
            continue;
        };
        let mut code = vec![first];
        while let Some(next) = rest.peek().and_then(|line| code_of(line)) {
            code.push(next);
            rest.next();
        }
        lines.extend(block(&code, apart, style));
    }
    lines
}

/// What stands behind the [`MARGIN`] of `line`.
fn code_of(line: &str) -> Option<&str> {
    line.strip_prefix(MARGIN).or_else(|| (line == MARGIN.trim_end()).then_some(""))
}

fn block(code: &[&str], apart: SetApart, style: Style) -> Vec<Line> {
    match apart {
        SetApart::Color(width) if !code.iter().any(|line| draws_a_rule(line)) => ruled(code, width),
        SetApart::Color(width) | SetApart::Margin(width) => {
            code.iter().flat_map(|line| with_margin(line, width, style)).collect()
        }
        SetApart::Lines => code.iter().map(|line| Line::new(MARGIN, style).with(line, style)).collect(),
    }
}

/// Unbroken lines between two rules, the first of which says how many there are; after a long text, the second does, too.
fn ruled(code: &[&str], width: usize) -> Vec<Line> {
    let rows: usize = code.iter().map(|line| line.width().div_ceil(width.max(1)).max(1)).sum();
    let count = if code.len() == 1 { "1 line".into() } else { format!("{} lines", code.len()) };
    let is_long = rows > LONG;
    let count = if is_long { format!("{count} ({rows} rows)") } else { count };
    let end =
        if is_long { format!("── end of {count}: read them from the first") } else { "──".into() };
    let mut lines = vec![Line::new(&format!("── {count}"), Style::DIM)];
    lines.extend(code.iter().map(|line| Line::verbatim(line, CODE)));
    lines.push(Line::new(&end, Style::DIM));
    lines
}

/// Whether `line` begins with a line that is drawn, as the rules are.
fn draws_a_rule(line: &str) -> bool {
    let is_drawn = |c: char| matches!(c, '\u{2010}'..='\u{2015}' | '\u{23af}' | '\u{2500}'..='\u{257f}');
    line.trim_start().starts_with(is_drawn)
}

fn with_margin(line: &str, width: usize, style: Style) -> Vec<Line> {
    let rows = cut(line, width.saturating_sub(MARGIN.chars().count()).max(2));
    let margin = |nth: usize| if nth == 0 { MARGIN } else { CONTINUED };
    let rows = rows.into_iter().enumerate();
    rows.map(|(nth, row)| Line::new(margin(nth), style).joined(&Line::new(&row, style)).trimmed()).collect()
}

/// `line` in pieces of at most `width` columns, without a change.
fn cut(line: &str, width: usize) -> Vec<String> {
    let mut pieces = vec![String::new()];
    let mut taken = 0;
    for c in line.chars() {
        let wide = Line::new(c.encode_utf8(&mut [0; 4]), Style::PLAIN).width();
        if taken + wide > width {
            pieces.push(String::new());
            taken = 0;
        }
        taken += wide;
        pieces.last_mut().into_iter().for_each(|piece| piece.push(c));
    }
    pieces
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(text: &str, apart: SetApart) -> Vec<String> {
        rows(text, apart, Style::PLAIN).iter().map(|row| row.clone().trimmed().text()).collect()
    }

    const QUESTION: &str = "**run** it:\n\n    │ echo `a` *b* and more words\n    │\n\n`yes` runs it";

    #[test]
    fn code_is_unbroken_between_rules_and_keeps_its_margin_without_colors() {
        let expected =
            ["**run** it:", "", "── 2 lines", "echo `a` *b* and more words", "", "──", "", "`yes` runs it"];
        assert_eq!(texts(QUESTION, SetApart::Color(16)), expected);
        assert_eq!(texts(QUESTION, SetApart::Lines).join("\n"), QUESTION);
        let expected = [
            "**run** it:",
            "",
            "    │ echo `a` *",
            "    ┆ b* and mor",
            "    ┆ e words",
            "    │",
            "",
            "`yes` runs it",
        ];
        assert_eq!(texts(QUESTION, SetApart::Margin(16)), expected);
    }

    #[test]
    fn what_draws_a_rule_has_a_margin_and_a_long_text_says_so_at_its_end() {
        let drawn = "Run:\n\n    │ ls\n    │ ──\n    │ Allow? [y/N]";
        assert_eq!(texts(drawn, SetApart::Color(40)).join("\n"), drawn);
        let long = "    │ x\n".repeat(30);
        let rows = texts(&long, SetApart::Color(40));
        assert_eq!(
            (rows[0].as_str(), rows[31].as_str()),
            ("── 30 lines (30 rows)", "── end of 30 lines (30 rows): read them from the first")
        );
    }
}
