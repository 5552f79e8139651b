//! One layout for YAML files: indentation, spaces and quotes. Comments, line breaks and the order of keys stay.
//!
//! The layout is made by a crate with a parser of its own, so its output is not trusted: it is parsed again, and values, the order
//! of keys and comments must be those of the input.

mod kept;

use granit_parser::{Event, Parser};
use pretty_yaml::config::{FormatOptions, LanguageOptions, LayoutOptions};
use serde::de::IgnoredAny;

use super::{Data, Node, parse};
use crate::codes;
use crate::diagnostic::{Diagnostics, Report};
use crate::source::{Source, Span};
use kept::Outline;

/// Lines are broken where the author breaks them.
const WIDTH: usize = 1 << 24;
/// No comment is this one: the formatter would keep the indentation of what follows its own, also where that of the rest changes.
const NO_COMMENT: &str = "\n";
/// How many columns a line can be indented: the formatter keeps the indentations of a file in 64 bits.
const MAX_INDENT: usize = 60;
/// How often the layout is made until it is the same again.
const PASSES: usize = 4;

/// Formats a file: two spaces of indentation, also of lists within mappings, one space after `,`, `:` and `-`, none within
/// brackets and braces, double quotes where a text needs quotes, at most one empty line, no spaces at the ends of lines. Values,
/// comments, line breaks of bracketed lists and the order of keys stay, and so does `\r\n` as the line break. The output, formatted
/// again, is the same.
///
/// A comment `# fmt: skip` on a line of its own keeps the layout of the key or list item below it, except within brackets and braces.
/// JSON, a subset of YAML, stays unchanged, so that it stays JSON.
///
/// # Errors
/// The text is not YAML that [`parse`] reads, a line is indented by more than 60 columns, or the layout would change what the file
/// says.
///
/// ```
/// use polylogue_config::source::Source;
/// use polylogue_config::yaml;
///
/// let source = Source::new("t.yaml", "name:   t   # the name\nlist:\n- {a: 1,b: 'x'}\n");
/// let formatted = yaml::layout::format(&source)?;
/// assert_eq!(formatted, "name: t # the name\nlist:\n  - {a: 1, b: \"x\"}\n");
/// # Ok::<(), polylogue_config::diagnostic::Diagnostics>(())
/// ```
pub fn format(source: &Source<'_>) -> Result<String, Diagnostics> {
    let mut report = Report::new(source);
    let tree = parse(&mut report).filter(|_| !report.failed());
    if tree.is_some()
        && let Some(span) = deep_line(source.text)
    {
        let message =
            format!("a line is indented by more than {MAX_INDENT} columns, which `fmt` does not support");
        report.code(codes::SYNTAX).error_with_hint(&span, message, "indent by 2 columns");
    }
    let Some(tree) = tree.filter(|_| !report.failed()) else { return Err(report.finish()) };
    if serde_json::from_str::<IgnoredAny>(source.text).is_ok() {
        return Ok(source.text.to_owned());
    }
    let formatted = layout(source.text).map(|formatted| with_breaks_of(source.text, formatted));
    match formatted.filter(|formatted| is_same(source.text, &tree, formatted)) {
        Some(formatted) => Ok(formatted),
        None => {
            let message = "the layout of this file cannot be changed without changing what it says";
            let hint = "this is a limit of `fmt`, and the file stays as you wrote it; simpler YAML, with fewer line breaks within \
                        values, can be formatted";
            report.code(codes::SYNTAX).error_with_hint(&(0..0), message, hint);
            Err(report.finish())
        }
    }
}

/// `formatted` with the line breaks of `text`: those of Windows if its first one is. To YAML they are the same.
fn with_breaks_of(text: &str, formatted: String) -> String {
    match text.split_once('\n') {
        Some((first, _)) if first.ends_with('\r') => formatted.replace("\r\n", "\n").replace('\n', "\r\n"),
        _ => formatted,
    }
}

/// The start of the first line that is indented too far.
fn deep_line(text: &str) -> Option<Span> {
    let is_indent = |byte: &u8| matches!(byte, b' ' | b'-' | b'?' | b'\t');
    let mut lines = text.split_inclusive('\n').scan(0, |at, line| {
        let start = *at;
        *at += line.len();
        Some((start, line))
    });
    let deep = lines.find(|(_, line)| line.bytes().take_while(is_indent).count() > MAX_INDENT);
    deep.map(|(start, _)| start..start + 1)
}

/// The layout that stays the same when it is made again.
fn layout(text: &str) -> Option<String> {
    let layout = LayoutOptions { print_width: WIDTH, ..LayoutOptions::default() };
    let language = LanguageOptions {
        brace_spacing: false,
        ignore_comment_directive: NO_COMMENT.to_owned(),
        ..LanguageOptions::default()
    };
    let options = FormatOptions { layout, language };
    let outline = Outline::of(text)?;
    let mut last = outline.text.clone();
    for _ in 0..PASSES {
        let next = pretty_yaml::format_text(&last, &options).ok()?;
        if next == last {
            return Some(outline.filled(&next));
        }
        last = next;
    }
    None
}

/// Whether a formatted text has the values and comments of the original.
fn is_same(text: &str, tree: &Node, formatted: &str) -> bool {
    let source = Source::new("", formatted);
    let mut report = Report::new(&source);
    let again = parse(&mut report);
    again.is_some_and(|again| has_same_values(tree, &again)) && comments(text) == comments(formatted)
}

fn has_same_values(one: &Node, other: &Node) -> bool {
    match (&one.data, &other.data) {
        (Data::List(one), Data::List(other)) => {
            one.len() == other.len() && one.iter().zip(other).all(|(one, other)| has_same_values(one, other))
        }
        (Data::Map(one), Data::Map(other)) => {
            let mut pairs = one.iter().zip(other);
            one.len() == other.len()
                && pairs.all(|(a, b)| a.key == b.key && has_same_values(&a.value, &b.value))
        }
        (Data::List(_) | Data::Map(_), _) | (_, Data::List(_) | Data::Map(_)) => false,
        _ => one.to_value() == other.to_value(),
    }
}

/// The comments in their order, without spaces at their ends; `None` if the text cannot be read.
fn comments(text: &str) -> Option<Vec<String>> {
    let options = granit_parser::options! { emit_comments: true, max_buffered_comment_events: usize::MAX };
    let mut comments = Vec::new();
    for next in Parser::new_from_str_with_options(text, options) {
        if let Event::Comment(text, _) = next.ok()?.0 {
            comments.push(text.trim_end().to_owned());
        }
    }
    Some(comments)
}
