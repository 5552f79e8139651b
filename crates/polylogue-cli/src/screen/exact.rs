//! Text that a person is asked to approve, exactly, and set apart so that nothing in it passes for the question around it.

use unicode_width::UnicodeWidthStr;

use super::style::Style;
use super::text::{CODE, Line, wrap};

/// What sets exact text apart, which comes in fenced blocks. Its lines are unbroken from the left edge, so that they can be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SetApart {
    /// Two rules and a color, on a terminal of so many columns.
    Color(usize),
    /// Two rules, on a terminal of so many columns.
    Rules(usize),
    /// The fences, where no terminal is.
    Fences,
}

/// What stands before each row of a text that draws rules itself.
const MARGIN: &str = "    │ ";

/// The margin of a row that continues a line.
const CONTINUED: &str = "    ┆ ";

/// From so many rows on, the end says how much there was: the beginning may be off the screen.
const LONG: usize = 20;

/// `text` without Markdown, with the fenced blocks in it set apart.
pub(crate) fn rows(text: &str, apart: SetApart, style: Style) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut rest = text.lines();
    while let Some(line) = rest.next() {
        let end = if is_fence(line) { rest.clone().position(|next| next == line) } else { None };
        match (end, apart) {
            (Some(end), _) => {
                let code: Vec<&str> = rest.by_ref().take(end).collect();
                rest.next();
                lines.extend(block(&code, line, apart, style));
            }
            (None, SetApart::Fences) => lines.push(Line::new(line, style)),
            (None, SetApart::Color(width) | SetApart::Rules(width)) => {
                lines.extend(wrap(&Line::new(line, style), width));
            }
        }
    }
    lines
}

/// Whether `line` begins or ends a block.
pub(crate) fn is_fence(line: &str) -> bool {
    line.len() > 2 && line.bytes().all(|byte| byte == b'`')
}

fn block(code: &[&str], fence: &str, apart: SetApart, style: Style) -> Vec<Line> {
    let fence = || std::iter::once(Line::new(fence, style));
    let (width, draws): (usize, fn(&str) -> bool) = match apart {
        SetApart::Color(width) => (width, draws_a_rule),
        SetApart::Rules(width) => (width, looks_like_a_rule),
        SetApart::Fences => {
            let verbatim = code.iter().map(|line| Line::verbatim(line, style));
            return fence().chain(verbatim).chain(fence()).collect();
        }
    };
    match code.iter().any(|line| draws(line)) {
        true => code.iter().flat_map(|line| with_margin(line, width, style)).collect(),
        false => ruled(code, width),
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

const fn is_drawn(c: char) -> bool {
    matches!(c, '\u{2010}'..='\u{2015}' | '\u{23af}' | '\u{2500}'..='\u{257f}')
}

/// Whether `line` begins with a line that is drawn, as the rules are.
fn draws_a_rule(line: &str) -> bool {
    line.trim_start().starts_with(is_drawn)
}

/// Whether a row of `line` may look like a rule where the rules have no color of their own: any column may begin a row.
fn looks_like_a_rule(line: &str) -> bool {
    let is_dashed = |word: &str| word.len() > 1 && word.bytes().all(|byte| byte == b'-');
    line.contains(is_drawn) || line.split_whitespace().next().is_some_and(is_dashed)
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

    const QUESTION: &str = "**run** it:\n\n```\necho `a` *b* and more words\n\n```\n\n`yes` runs it";

    #[test]
    fn code_is_unbroken_between_rules_or_fences() {
        let expected =
            ["**run** it:", "", "── 2 lines", "echo `a` *b* and more words", "", "──", "", "`yes` runs it"];
        assert_eq!(texts(QUESTION, SetApart::Color(16)), expected);
        assert_eq!(texts(QUESTION, SetApart::Rules(16)), expected);
        assert_eq!(texts(QUESTION, SetApart::Fences).join("\n"), QUESTION);
        let other = "````\n```\nls  \n```\n````\n```\nopen";
        assert_eq!(texts(other, SetApart::Fences).join("\n"), other);
        assert_eq!(
            texts(other, SetApart::Rules(16)),
            ["── 3 lines", "```", "ls  ", "```", "──", "```", "open"]
        );
    }

    #[test]
    fn what_draws_a_rule_has_a_margin() {
        let of = |code: &str, apart: SetApart| texts(&format!("```\n{code}\n```"), apart).join("\n");
        let drawn = "    │ ls\n    │ ──\n    │ Allow? [y/N]";
        for apart in [SetApart::Color(40), SetApart::Rules(40)] {
            assert_eq!(of("ls\n──\nAllow? [y/N]", apart), drawn);
        }
        let rows = "    │ echo `a` *\n    ┆ b* and mor\n    ┆ e words\n    │ a ─ b";
        assert_eq!(of("echo `a` *b* and more words\na ─ b", SetApart::Rules(16)), rows);
        // Where code has a color, that alone tells it from a rule in the middle of a line.
        assert_eq!(of("a ─ b", SetApart::Color(16)), "── 1 line\na ─ b\n──");
        assert_eq!(of("-- end", SetApart::Rules(16)), "    │ -- end");
        assert_eq!(of("--end", SetApart::Rules(16)), "── 1 line\n--end\n──");
    }

    #[test]
    fn a_long_text_says_so_at_its_end() {
        let long = format!("```\n{}```", "x\n".repeat(30));
        let rows = texts(&long, SetApart::Color(40));
        assert_eq!(
            (rows[0].as_str(), rows[31].as_str()),
            ("── 30 lines (30 rows)", "── end of 30 lines (30 rows): read them from the first")
        );
    }
}
