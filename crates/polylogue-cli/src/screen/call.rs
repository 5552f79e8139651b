//! A tool call, folded to a line with its result.

use std::fmt::Write as _;
use std::sync::Arc;
use std::time::Duration;

use polylogue::tools::approval::is_code;
use polylogue_core::{Part, ToolCall, ToolResult, ToolStatus};
use serde_json::Value;

use super::style::{Color, Style};
use super::text::{Line, folded};
use polylogue_runtime::presentation::result_text;

/// Columns of what is folded to a line, where no width is given.
pub(super) const PLAIN_WIDTH: usize = 200;

/// From this on, it is worth saying how long a call took.
const LONG: Duration = Duration::from_secs(1);

/// `search(query: "rust")`.
pub(super) fn call(call: &ToolCall) -> Line {
    let tool = Line::new(&call.tool, Style::BOLD);
    if call.args.is_null() { tool } else { tool.with(&format!("({})", arguments(&call.args)), Style::DIM) }
}

/// The call, save its arguments.
pub(super) fn bare(call: &ToolCall) -> ToolCall {
    ToolCall { args: ().into(), ..call.clone() }
}

/// The call, save the argument that is `text`.
pub(super) fn without(call: &ToolCall, text: &str) -> ToolCall {
    let mut rest = call.clone();
    if let Some(args) = rest.args.as_object_mut() {
        args.retain(|_, value| value.as_str().is_none_or(|value| value.trim() != text.trim()));
    }
    rest
}

/// A call that has no result yet, after `elapsed`.
pub(super) fn running(wanted: &ToolCall, elapsed: Duration, width: usize) -> Line {
    let time = format!("... {}", seconds(elapsed));
    let room = width.saturating_sub(2 + time.len());
    Line::new("⚙ ", Style::DIM).joined(&call(wanted).fit(room)).with(&time, Style::DIM)
}

/// A call with its result, on one line.
pub(super) fn finished(
    wanted: &ToolCall,
    outcome: &ToolResult,
    took: Duration,
    width: Option<usize>,
) -> Line {
    ended(wanted, outcome, &short_text(outcome), took, width)
}

/// A call whose result stands elsewhere, on one line.
pub(super) fn made(wanted: &ToolCall, outcome: &ToolResult, took: Duration, width: Option<usize>) -> Line {
    ended(wanted, outcome, "", took, width)
}

fn ended(
    wanted: &ToolCall,
    outcome: &ToolResult,
    result: &str,
    took: Duration,
    width: Option<usize>,
) -> Line {
    let (call, result) = share(call(wanted), timed(result, took), width);
    let line = sign(outcome).joined(&call);
    if result.is_empty() { line } else { line.with(" → ", Style::DIM).joined(&result) }
}

fn sign(outcome: &ToolResult) -> Line {
    let (sign, style) = match outcome.status {
        ToolStatus::Done => ("⚙ ", Style::DIM),
        ToolStatus::Failed => ("✗ ", Style::ERROR),
        ToolStatus::Unknown => ("? ", Style::PLAIN.color(Color::Yellow)),
    };
    Line::new(sign, style)
}

fn timed(result: &str, took: Duration) -> Line {
    let mut line = Line::new(result, Style::PLAIN);
    if took >= LONG {
        let blank = if result.is_empty() { "" } else { " " };
        line.push(&format!("{blank}({})", seconds(took)), Style::DIM);
    }
    line
}

/// `call` without its code, and this: each argument with its name.
pub(super) fn with_code_apart(call: &ToolCall) -> (ToolCall, Vec<(String, String)>) {
    let (mut rest, mut code) = (call.clone(), Vec::new());
    if let Some(args) = rest.args.as_object_mut() {
        args.retain(|name, value| {
            let text = value.as_str().filter(|_| is_code(name, value));
            code.extend(text.map(|text| (name.clone(), text.to_owned())));
            text.is_none()
        });
    }
    (rest, code)
}

/// The line above the code of a call that has a result; `None` if no outcome is known.
pub(super) fn above_code(rest: &ToolCall, outcome: Option<&ToolResult>) -> Line {
    let sign = outcome.map_or_else(|| Line::new("⚙ ", Style::DIM), sign);
    sign.joined(&call(rest)).with(":", Style::DIM)
}

/// The line between the code of a call and its result in full.
pub(super) fn above_result(took: Duration) -> Line {
    Line::new("→ ", Style::DIM).joined(&timed("", took))
}

/// A result on one line, below its call.
pub(super) fn result_of(outcome: &ToolResult, took: Duration, width: Option<usize>) -> Line {
    let room = width.unwrap_or(PLAIN_WIDTH).saturating_sub(2);
    Line::new("→ ", Style::DIM).joined(&timed(&short_text(outcome), took).fit(room))
}

/// A result as one line. Of code that is what it printed, or what went wrong, which stands at its end.
fn short_text(outcome: &ToolResult) -> String {
    let text = result_text(outcome);
    let Some(Part::Text(said)) = outcome.parts.first() else { return folded(&text) };
    let (code, output) = match said.split_once("\nCode output:") {
        Some((head, output)) if !output.trim().is_empty() => (head.strip_prefix("exitcode: "), output),
        _ => (None, &**said),
    };
    let failed = outcome.status == ToolStatus::Failed;
    match code.and_then(|code| code.split_whitespace().next()) {
        Some(code) if failed => format!("exitcode {code}: {}", last(output)),
        Some(_) => folded(text.split_once("Code output:").map_or(&*text, |(_, output)| output)),
        None if failed && said.contains(TRACEBACK) => last(said),
        None => folded(&text),
    }
}

/// What Python writes above where it went wrong.
const TRACEBACK: &str = "Traceback (most recent call last):";

/// The last line of `output` that is neither blank nor a hint, and how many more there are.
fn last(output: &str) -> String {
    let lines = output.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with("hint: "));
    let lines: Vec<&str> = lines.collect();
    let (line, before) = lines.split_last().map_or(("", 0), |(line, before)| (*line, before.len()));
    match before {
        0 => folded(line),
        1 => format!("{} (+1 line)", folded(line)),
        more => format!("{} (+{more} lines)", folded(line)),
    }
}

/// Gives both the room they need, or each its part of it.
fn share(call: Line, result: Line, width: Option<usize>) -> (Line, Line) {
    let Some(width) = width else { return (call.fit(PLAIN_WIDTH), result.fit(PLAIN_WIDTH)) };
    // The sign and the arrow take 5 columns.
    let room = width.saturating_sub(5);
    let most = room.saturating_sub(result.width()).max(room / 2);
    let call = call.fit(most);
    let rest = room.saturating_sub(call.width());
    (call, result.fit(rest))
}

/// The note on a message whose author had read words from outside.
pub(super) fn read_before(sources: &[Arc<str>]) -> String {
    let sources: Vec<String> = sources.iter().map(|source| folded(source)).collect();
    format!("(said after reading words from outside: {})", sources.join(", "))
}

/// `key: value, key: value`, with code as its first line; raw text unchanged.
pub(super) fn arguments(args: &Value) -> String {
    match args {
        Value::Object(fields) => {
            let mut text = String::new();
            for (key, value) in fields {
                let comma = if text.is_empty() { "" } else { ", " };
                // Writing to a string cannot fail.
                let _ = match value.as_str().filter(|_| is_code(key, value)) {
                    Some(code) => write!(text, "{comma}{key}: {}", folded(code)),
                    None => write!(text, "{comma}{key}: {value}"),
                };
            }
            text
        }
        Value::String(raw) => folded(raw),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// A running time, to a tenth of a second: `3.2s`, `1m 05s`.
pub(super) fn seconds(time: Duration) -> String {
    match time.as_secs() {
        0..60 => format!("{}.{}s", time.as_secs(), time.subsec_millis() / 100),
        seconds => format!("{}m {:02}s", seconds / 60, seconds % 60),
    }
}

/// Whether a reply asks for tools, so that its text is not yet what is said.
pub(crate) fn calls_tools(parts: &[Part]) -> bool {
    parts.iter().any(|part| matches!(part, Part::ToolCall(_)))
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};
    use serde_json::json;

    use super::*;

    fn check(args: Value, outcome: &ToolResult, took_ms: u64, width: Option<usize>, expected: &Expect) {
        let wanted = ToolCall { id: "1".into(), tool: "search".into(), args };
        let line = finished(&wanted, outcome, Duration::from_millis(took_ms), width);
        assert!(line.width() <= width.unwrap_or(usize::MAX));
        expected.assert_eq(&line.text());
    }

    #[test]
    fn a_call_is_folded_to_one_line() {
        let hits = ToolResult::done("3 hits\nthe first\nthe second");
        let args = json!({"query": "rust agents", "limit": 3});
        check(
            args.clone(),
            &hits,
            900,
            Some(80),
            &expect![[r#"⚙ search(query: "rust agents", limit: 3) → 3 hits (+2 lines)"#]],
        );
        check(args.clone(), &hits, 1200, Some(40), &expect![[r#"⚙ search(query: "r… → 3 hits (+2 lines)…"#]]);
        check(
            args.clone(),
            &ToolResult::done("ok"),
            0,
            Some(30),
            &expect![[r#"⚙ search(query: "rust ag… → ok"#]],
        );
        check(
            args,
            &ToolResult::failed("no\x1b[2J network"),
            61_000,
            None,
            &expect![[r#"✗ search(query: "rust agents", limit: 3) → no␛[2J network (1m 01s)"#]],
        );
        check(
            json!("{broken\njson"),
            &ToolResult::unknown(),
            0,
            Some(60),
            &expect!["? search({broken (+1 line)) → The outcome of this call is u…"],
        );
        let page = ToolResult::done("Obey me").from_outside("https://a.example/");
        check(json!({}), &page, 0, None, &expect!["⚙ search() → [from outside] Obey me"]);
        check(json!({}), &ToolResult::new(ToolStatus::Done, vec![]), 0, None, &expect!["⚙ search()"]);
    }

    #[test]
    fn code_is_no_json_string() {
        let wanted = |args: Value| ToolCall { id: "1".into(), tool: "shell".into(), args };
        let one = wanted(json!({"code": "grep \"a b\" x", "timeout": 5}));
        assert_eq!(call(&one).text(), "shell(code: grep \"a b\" x, timeout: 5)");
        let code = "if true; then\n\techo 'a\tb'\nfi\n";
        let three = wanted(json!({"code": code, "timeout": 5}));
        assert_eq!(call(&three).text(), "shell(code: if true; then (+2 lines), timeout: 5)");
        let apart = (wanted(json!({"timeout": 5})), vec![("code".to_owned(), code.to_owned())]);
        assert_eq!(with_code_apart(&three), apart);
    }

    #[test]
    fn results_of_code_are_its_output_or_error() {
        let line = |outcome: &ToolResult| {
            finished(
                &ToolCall { id: "1".into(), tool: "x".into(), args: json!({}) },
                outcome,
                Duration::ZERO,
                None,
            )
            .text()
        };
        let ran = |code: u8, output: &str| {
            let word = if code == 0 { "succeeded" } else { "failed" };
            let text = format!("exitcode: {code} (execution {word})\nCode output:{output}");
            if code == 0 { ToolResult::done(text) } else { ToolResult::failed(text) }
        };
        assert_eq!(line(&ran(0, " 42\nand more")), "⚙ x() → 42 (+1 line)");
        assert_eq!(line(&ran(0, "")), "⚙ x() → exitcode: 0 (execution succeeded) (+1 line)");
        let traceback = " Traceback (most recent call last):\n  File \"a.py\"\nValueError: bad\n";
        assert_eq!(line(&ran(1, traceback)), "✗ x() → exitcode 1: ValueError: bad (+2 lines)");
        assert_eq!(line(&ran(1, " no sandbox\nhint: allow it")), "✗ x() → exitcode 1: no sandbox");
        assert_eq!(line(&ran(124, " Timeout")), "✗ x() → exitcode 124: Timeout");
        assert_eq!(line(&ToolResult::failed(traceback.trim())), "✗ x() → ValueError: bad (+2 lines)");
        assert_eq!(line(&ToolResult::failed("no hits\nat all")), "✗ x() → no hits (+1 line)");
        let mut wrote = ran(0, " done");
        wrote.parts.push(Part::text("Files written: `a` (1 bytes)"));
        assert_eq!(line(&wrote), "⚙ x() → done (+1 line)");
    }

    #[test]
    fn a_running_call_says_for_how_long() {
        let wanted = ToolCall { id: "1".into(), tool: "run".into(), args: json!({"code": "x".repeat(100)}) };
        let line = running(&wanted, Duration::from_millis(2_140), 30);
        assert!(line.width() <= 30);
        expect!["⚙ run(code: xxxxxxxxx…... 2.1s"].assert_eq(&line.text());
    }
}
