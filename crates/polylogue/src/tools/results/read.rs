//! The tool `read_result`.

use std::ops::Range;

use polylogue_core::{BlobId, StoredResult, Tool, ToolCx, ToolError, ToolResult, ToolSpec, text};
use serde_json::{Value, json};

/// The most bytes that a call returns by default.
pub(super) const SHOWN: usize = 8 * 1024;
/// Lines that a call returns if the model does not say.
const LINES: u64 = 200;
/// Matches that a search returns at most.
const MATCHES: usize = 50;
/// Bytes of a line that a search shows before and after a match.
const BEFORE: usize = 60;
const AFTER: usize = 160;
/// The longest text that is searched for, in bytes.
const LONGEST_SEARCH: usize = 400;
/// Bytes of the notes of a call, besides the text that it returns.
const NOTES: usize = 200;
/// The least bytes of text that a call returns: one that returns none would say to continue where it began.
const LEAST: usize = 64;

/// The tool `read_result`: reads lines of a stored result, a range of bytes, or the lines with a given text.
#[derive(Debug, Clone)]
pub struct ReadResult {
    spec: ToolSpec,
    bytes: usize,
}

impl Default for ReadResult {
    fn default() -> Self {
        let number =
            |what: &str, least: u64| json!({"type": "integer", "minimum": least, "description": what});
        let lines = format!("How many lines at most; {LINES} if it is left out.");
        let parameters = json!({
            "type": "object",
            "properties": {
                "id": {"type": "string", "description": "The id of the result, as the result itself says it."},
                "line": number("The first line, from 1. Default: 1.", 1),
                "byte": number("The first byte, from 0, instead of `line`.", 0),
                "lines": number(&lines, 1),
                "search": {
                    "type": "string",
                    "description": "Returns the places of this text from there on, in upper or lower case.",
                },
            },
            "required": ["id"],
            "additionalProperties": false,
        });
        let description = "Reads more of a result that was too long to be returned whole: some of its lines, or the \
                           places of a text in it.";
        let spec = ToolSpec::new(StoredResult::READER, description, parameters).repeatable();
        Self { spec, bytes: SHOWN }
    }
}

impl ReadResult {
    /// Sets the most bytes that a call returns. A search always returns one match, of up to 700 bytes.
    #[must_use]
    pub fn max_bytes(self, bytes: usize) -> Self {
        Self { bytes, ..self }
    }
}

/// What a call asks for.
struct Asked<'a> {
    line: u64,
    byte: Option<u64>,
    lines: u64,
    search: Option<&'a str>,
}

impl<'a> Asked<'a> {
    fn of(args: &'a Value) -> Result<Self, ToolError> {
        let search = args.get("search").filter(|search| !search.is_null());
        let search = search.map(|search| search.as_str().ok_or("`search` must be a text")).transpose()?;
        let search = search.filter(|search| !search.is_empty());
        if search.is_some_and(|search| search.len() > LONGEST_SEARCH) {
            return Err(format!("`search` must have at most {LONGEST_SEARCH} bytes").into());
        }
        Ok(Self {
            line: number(args, "line")?.unwrap_or(1).max(1),
            byte: number(args, "byte")?,
            lines: number(args, "lines")?.unwrap_or(LINES).max(1),
            search,
        })
    }

    /// The first byte in `text`, at a boundary of characters.
    fn start(&self, text: &str) -> usize {
        let byte = match self.byte {
            Some(byte) => usize::try_from(byte).unwrap_or(usize::MAX),
            None if self.line <= 1 => 0,
            None => {
                let before = usize::try_from(self.line - 2).unwrap_or(usize::MAX);
                text.match_indices('\n').nth(before).map_or(text.len(), |(end, _)| end + 1)
            }
        };
        text.floor_char_boundary(byte.min(text.len()))
    }
}

fn number(args: &Value, name: &str) -> Result<Option<u64>, ToolError> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => match value.as_u64().or_else(|| value.as_str()?.trim().parse().ok()) {
            Some(number) => Ok(Some(number)),
            None => Err(format!("`{name}` must be a whole number; got {value}").into()),
        },
    }
}

/// The number of the line in which the byte `at` is, from 1.
fn line_of(text: &str, at: usize) -> usize {
    text.get(..at).unwrap_or(text).matches('\n').count() + 1
}

/// The range of at most `lines` lines and `bytes` bytes from `start` on. It ends with a line if it can.
fn range(text: &str, start: usize, lines: u64, bytes: usize) -> Range<usize> {
    let rest = text.get(start..).unwrap_or_default();
    let last = usize::try_from(lines - 1).unwrap_or(usize::MAX);
    let end = rest.match_indices('\n').nth(last).map_or(rest.len(), |(end, _)| end + 1);
    if end <= bytes {
        return start..start + end;
    }
    let most = rest.floor_char_boundary(bytes);
    let whole = rest.get(..most).and_then(|part| part.rfind('\n')).map_or(most, |end| end + 1);
    start..start + whole
}

fn read(text: &str, asked: &Asked<'_>, bytes: usize) -> String {
    let start = asked.start(text);
    let Range { start, end } = range(text, start, asked.lines, bytes);
    let (total, count) = (text.len(), text.lines().count());
    if start >= total {
        return format!("(There is nothing there: the result has {total} bytes in {count} lines.)");
    }
    let part = text.get(start..end).unwrap_or_default();
    let (first, last) = (line_of(text, start), line_of(text, end.saturating_sub(1)));
    let head = format!("(bytes {start} to {end} of {total}, lines {first} to {last} of {count})\n{part}");
    if end < total { format!("{}\n(It continues at byte {end}.)", head.trim_end_matches('\n')) } else { head }
}

fn search(text: &str, asked: &Asked<'_>, wanted: &str, bytes: usize) -> String {
    // Lower case of ASCII letters has the same length, so that places stay the same.
    let (low, wanted) = (text.to_ascii_lowercase(), wanted.to_ascii_lowercase());
    let (mut at, mut found, mut shown) = (asked.start(text), Vec::new(), 0);
    let (mut counted, mut line) = (0, 1);
    while let Some(next) = low.get(at..).and_then(|rest| rest.find(&wanted)) {
        let place = at + next;
        line += text.get(counted..place).unwrap_or_default().matches('\n').count();
        counted = place;
        let begin = text.get(..place).and_then(|before| before.rfind('\n')).map_or(0, |end| end + 1);
        let close = text.get(place..).and_then(|rest| rest.find('\n')).map_or(text.len(), |end| place + end);
        let begin = text.floor_char_boundary(begin.max(place.saturating_sub(BEFORE)));
        let close = text.floor_char_boundary(close.min(place + wanted.len() + AFTER));
        let row = format!("line {line}, byte {place}: {}", text.get(begin..close).unwrap_or_default());
        // The first row always: otherwise the search would continue where it began.
        if found.len() >= MATCHES || (!found.is_empty() && shown + row.len() > bytes) {
            found.push(format!("(There are more: search from byte {place}.)"));
            break;
        }
        shown += row.len() + 1;
        found.push(row);
        at = close.max(place + wanted.len());
    }
    match found.is_empty() {
        true => "(This text is not there.)".to_owned(),
        false => found.join("\n"),
    }
}

impl Tool for ReadResult {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let given = args.get("id").and_then(Value::as_str).unwrap_or_default().trim();
        let id = BlobId::parse(given).ok_or_else(|| {
            let given = text::excerpt(given, 80);
            format!("`id` must be the 32 digits that a result gives as its id; got `{given}`")
        })?;
        let asked = Asked::of(&args)?;
        let found = cx.results.read(&id).await.map_err(|error| error.to_string())?;
        let found = found.ok_or_else(|| format!("This conversation has no stored result {id}."))?;
        let bytes = self.bytes.saturating_sub(NOTES).max(LEAST);
        let text = match asked.search {
            Some(wanted) => search(&found.text, &asked, wanted, bytes),
            None => read(&found.text, &asked, bytes),
        };
        let outcome = ToolResult::done(text);
        Ok(match found.outside {
            Some(source) => outcome.from_outside(source),
            None => outcome,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(args: &Value, text: &str) -> String {
        asked_within(args, text, 300)
    }

    fn asked_within(args: &Value, text: &str, bytes: usize) -> String {
        let asked = Asked::of(args).unwrap();
        match asked.search {
            Some(wanted) => search(text, &asked, wanted, bytes),
            None => read(text, &asked, bytes),
        }
    }

    #[test]
    fn lines_and_ranges_are_read_and_say_where_they_continue() {
        let text: String = (1..=100).map(|nth| format!("line {nth}\n")).collect();
        let cases = [
            (
                json!({"line": 3, "lines": 2}),
                "(bytes 14 to 28 of 792, lines 3 to 4 of 100)\nline 3\nline 4\n(It continues at byte 28.)",
            ),
            (json!({"line": "100"}), "(bytes 783 to 792 of 792, lines 100 to 100 of 100)\nline 100\n"),
            (json!({"byte": 786, "lines": 1}), "(bytes 786 to 792 of 792, lines 100 to 100 of 100)\ne 100\n"),
            (json!({"line": 101}), "(There is nothing there: the result has 792 bytes in 100 lines.)"),
            (json!({"byte": u64::MAX}), "(There is nothing there: the result has 792 bytes in 100 lines.)"),
        ];
        for (args, expected) in cases {
            assert_eq!(asked(&args, &text), expected, "{args}");
        }
        assert!(asked(&json!({}), &text).ends_with("line 37\nline 38\n(It continues at byte 295.)"));
    }

    /// Reading on from where each piece says that it continues gives the whole, whatever it is.
    #[test]
    fn pieces_make_the_whole() {
        for text in [
            "é".repeat(1_000),
            "a\n".repeat(900),
            format!("{}\n\n\u{1f600}b", "x".repeat(700)),
            "\n".repeat(500),
        ] {
            let (mut at, mut whole) = (0, String::new());
            while at < text.len() {
                let next = range(&text, text.floor_char_boundary(at), 200, 300);
                assert!(next.end > at && next.len() <= 300, "{next:?}");
                whole += &text[next.clone()];
                at = next.end;
            }
            assert_eq!(whole, text);
        }
    }

    #[test]
    fn a_search_finds_text_in_lines_of_any_length() {
        let text = format!("first\nan Error here\n{}ERROR{}\nlast error", "x".repeat(500), "y".repeat(500));
        let found = asked(&json!({"search": "error"}), &text);
        let lines: Vec<&str> = found.lines().collect();
        assert_eq!(lines[0], "line 2, byte 9: an Error here");
        assert!(lines[1].starts_with("line 3, byte 520: xxx") && lines[1].len() < 260, "{}", lines[1]);
        assert_eq!(lines[2], "(There are more: search from byte 1031.)");
        assert_eq!(asked(&json!({"search": "error", "byte": 1026}), &text), "line 4, byte 1031: last error");
        assert_eq!(asked(&json!({"search": "nothing"}), &text), "(This text is not there.)");
    }

    /// However few bytes a call may return: a model that follows the note of each call comes to the end.
    #[test]
    fn a_search_that_continues_comes_to_the_end() {
        let text = format!("{}hit\n", "x".repeat(100)).repeat(5);
        let (mut byte, mut rows) = (0, 0);
        loop {
            let found = asked_within(&json!({"search": "hit", "byte": byte}), &text, LEAST);
            rows += found.lines().filter(|line| line.starts_with("line ")).count();
            let Some((_, next)) = found.split_once("search from byte ") else { break };
            let next: u64 = next.trim_end_matches(".)").parse().unwrap();
            assert!(next > byte, "{found}");
            byte = next;
        }
        assert_eq!(rows, 5);
    }

    #[test]
    fn wrong_arguments_are_named() {
        let fails = |args: Value| Asked::of(&args).err().unwrap().0;
        assert_eq!(fails(json!({"line": -1})), "`line` must be a whole number; got -1");
        assert_eq!(fails(json!({"search": 3})), "`search` must be a text");
        assert_eq!(fails(json!({"search": "x".repeat(401)})), "`search` must have at most 400 bytes");
    }
}
