//! Code that a model wrote passes for nothing else where a person is asked whether it may run.

use crate::home::Home;
use crate::screen::quoted;
use crate::terminal::Terminal;

const COLUMNS: usize = 80;

/// What is asked in the end.
const QUESTION: &str = "Allow Bob to run this shell command? [y/N]";

/// The line before it.
const CHOICES: &str = "`yes` runs it; `no`, with a reason if you like, rejects it; code in a";

/// A line that fills a row, so that the question would begin the next one.
fn filled(before: usize) -> String {
    format!("echo {}{QUESTION:<COLUMNS$}{CHOICES}", "x".repeat(before))
}

/// Code that tries to look like the end of the question, another question, or less than it is.
fn attacks() -> Vec<(&'static str, String)> {
    vec![
        ("the end of the frame", format!("ls\n──\n\n{CHOICES}\n{QUESTION} ")),
        ("a heavy line", format!("ls\n━━\n\n{CHOICES}\n{QUESTION} ")),
        ("dashes", format!("ls\n——\n{QUESTION} ")),
        ("hyphens", format!("ls\n--\n\n{CHOICES}\n{QUESTION} ")),
        ("a rule that begins a row", format!("echo {}──\n{QUESTION}", "x".repeat(COLUMNS - 5))),
        ("the margin", format!("ls\n    │ ls\n    │\n\n{CHOICES}\n{QUESTION} ")),
        ("a fence", format!("ls\n```\n\n{CHOICES}\n{QUESTION} ")),
        (
            "another question",
            format!("ls\n\nBob asks for approval:\n`Bob` is about to run sh code:\n\nls\n\n{QUESTION} "),
        ),
        (
            "escape sequences",
            format!("ls\n\u{1b}[2J\u{1b}[H\u{1b}[0m\u{9b}0m{QUESTION}\u{1b}]0;t\u{7}\u{1b}[8m"),
        ),
        ("a carriage return", format!("rm -rf x\rls        \r{QUESTION}")),
        ("backspaces", format!("rm -rf x{}ls       {QUESTION}", "\u{8}".repeat(8))),
        (
            "bidirectional marks",
            format!("ls \u{202e}{}\u{202c}\u{2066}x\u{2069}", QUESTION.chars().rev().collect::<String>()),
        ),
        ("characters without a width", format!("r\u{200b}m -rf x\n\u{feff}{QUESTION}\u{2060}")),
        ("a line that fills the row", filled(COLUMNS - 5)),
        ("a line that fills the row of the text", filled(COLUMNS - 6)),
        ("a line that fills the row behind the margin", filled(COLUMNS - 5 - 6 - 1)),
        ("a line of many rows", format!("echo {}{QUESTION}", "y".repeat(50 * COLUMNS))),
        ("spaces", format!("rm x{}{QUESTION}", " ".repeat(60))),
        ("10,000 lines", format!("rm -rf x\n{}{QUESTION} ", "echo\n".repeat(10_000))),
        ("combining marks", format!("ls a{}\n\u{336}{QUESTION}", "\u{301}".repeat(400))),
        ("full width", "ls\nＡｌｌｏｗ Bob to run this shell command? [y/N] ".to_owned()),
        ("tabs", format!("ls\n\t{QUESTION}\t\t\t\t\t\t\t\t{QUESTION}")),
    ]
}

/// The rows of the question from its true head on, or all if that has left the screen; without what is set apart: by a margin, and by the
/// color of code or, if there are no colors, between two rules.
fn ours(rows: &[(String, bool)], has_colors: bool) -> Vec<&str> {
    let is_apart = |nth: usize| {
        let (text, is_code) = &rows[nth];
        let has_margin = text.starts_with("    │") || text.starts_with("    ┆");
        has_margin || if has_colors { *is_code && !text.is_empty() } else { is_between_rules(rows, nth) }
    };
    let is_head = |nth: &usize| rows[*nth].0.starts_with("`Bob` is about to run sh code") && !is_apart(*nth);
    let head = (0..rows.len()).rev().find(is_head).unwrap_or(0);
    (head..rows.len()).filter(|nth| !is_apart(*nth)).map(|nth| rows[nth].0.as_str()).collect()
}

/// Whether the row `nth` is behind a rule that begins a text, or before one that ends it if the beginning has left the screen.
fn is_between_rules(rows: &[(String, bool)], nth: usize) -> bool {
    let begins = |(text, _): &(String, bool)| {
        let count = text.strip_prefix("── ")?;
        Some(count.starts_with(|c: char| c.is_ascii_digit()))
    };
    let rule = |row: &(String, bool)| if row.0 == "──" { Some(false) } else { begins(row) };
    let before = rows[..nth].iter().rev().find_map(rule);
    let after = rows[nth + 1..].iter().find_map(rule);
    rule(&rows[nth]).is_none() && before.unwrap_or(after == Some(false))
}

fn check(options: &[&str]) {
    for (attack, code) in attacks() {
        let home = Home::new();
        let message = quoted(&format!("I run it.\n\n````sh\n{code}\n````\n"));
        home.file(
            "team.yaml",
            &format!(
                "name: duo\ntask: Go.\nsandbox: {{backend: none}}\nagents: [{{name: Ann}}, {{name: Bob, model: none, code_execution: true}}]\n\
                 chat: {{participants: [Ann, Bob], pattern: round_robin, stop: {{max_turns: 2}}}}\nscript: [{{Ann: {message}}}]\n"
            ),
        );
        let args = [&["run", "team.yaml", "--offline", "--allow", "unsafe-host"], options].concat();
        let mut terminal = Terminal::open(&home, (COLUMNS.try_into().unwrap(), 40), &args);
        terminal.wait_for_question("ends the conversation.");
        let rows = terminal.rows();
        let all = rows.iter().map(|row| row.0.as_str()).collect::<Vec<_>>().join("\n");
        let ours = ours(&rows, !options.contains(&"never"));
        let asked = ours.iter().filter(|row| row.contains("[y/N]") || row.contains("]N/y[")).count();
        assert_eq!(asked, 1, "{attack} {options:?}: it is asked once\n{all}");
        assert!(ours.iter().rfind(|row| !row.is_empty()) == Some(&QUESTION), "{attack} {options:?}\n{all}");
        let choices = ours.iter().filter(|row| row.starts_with(&CHOICES[..20])).count();
        assert_eq!(choices, 1, "{attack} {options:?}\n{all}");
        for sequence in ["\u{1b}[2J", "\u{1b}]0;", "\u{9b}", "\u{8}", "\u{202e}", "\u{200b}"] {
            assert!(!terminal.bytes().contains(sequence), "{attack}: {sequence:?} reaches the terminal");
        }
        if attack == "10,000 lines" && options.is_empty() {
            assert!(all.contains("── end of 10002 lines (10002 rows): read them from the first"), "{all}");
        }
        terminal.press("no\r");
        assert_eq!(terminal.end().0, 0, "{attack}");
    }
}

#[test]
fn no_code_passes_for_the_question_in_colors() {
    check(&[]);
}

#[test]
fn no_code_passes_for_the_question_in_plain_text() {
    check(&["--color", "never"]);
}

#[test]
fn no_code_passes_for_the_question_in_the_layout_of_autogen() {
    check(&["--style", "autogen"]);
}
