//! Code blocks of a message.

mod infer;

use std::sync::Arc;

use pulldown_cmark::{CodeBlockKind, Event, Parser, Tag, TagEnd};

/// A code block in a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CodeBlock {
    /// The language: the first word of the tag in lower case, such as `python` or `c++`; of a block without a tag, `python` or
    /// `sh` if it reads like that.
    pub language: Option<String>,
    /// Whether the language was inferred, because there is no tag.
    pub inferred: bool,
    /// The code, with `\n` at the end of each line.
    pub code: String,
    /// The file name in its first line, if there is one.
    pub file: Option<String>,
    /// The sources of text from outside that the agent [read](polylogue_core::Turn::outside) before it runs the block;
    /// empty when only parsed.
    pub outside: Vec<Arc<str>>,
}

/// Tags of blocks that are not programs: documents, data, and program output.
const NO_PROGRAM: [&str; 22] = [
    "markdown", "md", "text", "txt", "plain", "plaintext", "output", "console", "log", "json", "jsonl",
    "yaml", "yml", "toml", "ini", "csv", "tsv", "xml", "svg", "diff", "mermaid", "latex",
];

/// Limit on nesting of blocks that are indented by mistake.
const MAX_DEPTH: u8 = 4;

impl CodeBlock {
    /// Whether it should run: it has a language that is not one of documents or data.
    pub(crate) fn is_program(&self) -> bool {
        self.language.as_deref().is_some_and(|language| !NO_PROGRAM.contains(&language))
    }

    /// `code` within a fence that is longer than any in it.
    pub(crate) fn fenced(&self, code: &str) -> String {
        let fence = fence(code);
        let end = if code.ends_with('\n') { "" } else { "\n" };
        format!("{fence}{}\n{code}{end}{fence}", self.language.as_deref().unwrap_or_default())
    }

    fn new(info: &str, code: String) -> Option<Self> {
        let code = code.replace("\r\n", "\n");
        if code.trim().is_empty() {
            return None;
        }
        let tag = language(info);
        let inferred = tag.is_none();
        let language = tag.or_else(|| infer::language(&code).map(str::to_owned));
        let file = code.lines().next().and_then(file_name).map(str::to_owned);
        Some(Self { language, inferred, code, file, outside: Vec::new() })
    }
}

/// Returns a fence of backticks that is longer than any in `text`.
///
/// ```
/// use polylogue::layers::code::fence;
///
/// assert_eq!((fence("ls"), fence("cat <<````")), ("```".to_owned(), "`````".to_owned()));
/// ```
pub fn fence(text: &str) -> String {
    let longest = text.split(|c| c != '`').map(str::len).max().unwrap_or(0);
    "`".repeat(longest.max(2) + 1)
}

/// Returns the closed code blocks of `text`, in order, including those without a known language.
///
/// ```
/// let blocks = polylogue::layers::code::blocks("Run this:\n\n```python\n# filename: hi.py\nprint('hi')\n```\n");
/// assert_eq!(blocks[0].language.as_deref(), Some("python"));
/// assert_eq!(blocks[0].file.as_deref(), Some("hi.py"));
/// ```
pub fn blocks(text: &str) -> Vec<CodeBlock> {
    let mut found = Vec::new();
    collect(text, MAX_DEPTH, &mut found);
    found
}

/// The code block that `text` consists of: closed, and with nothing before or after it.
pub(crate) fn only_block(text: &str) -> Option<CodeBlock> {
    let text = text.trim();
    let (first, range) = Parser::new(text).into_offset_iter().next()?;
    let is_fenced = matches!(first, Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(_))));
    let is_whole = range.start == 0 && text.get(range.end..).is_none_or(|rest| rest.trim().is_empty());
    blocks(text).into_iter().next().filter(|_| is_fenced && is_whole)
}

fn collect(text: &str, depth: u8, found: &mut Vec<CodeBlock>) {
    // The tag of the current block, and whether it is fenced; the code so far.
    let mut open: Option<(Option<String>, String)> = None;
    for (event, range) in Parser::new(text).into_offset_iter() {
        match event {
            Event::Start(Tag::CodeBlock(CodeBlockKind::Fenced(info))) => {
                let source = text.get(range).unwrap_or_default();
                open = is_closed(source).then(|| (Some(info.to_string()), String::new()));
            }
            Event::Start(Tag::CodeBlock(CodeBlockKind::Indented)) => open = Some((None, String::new())),
            Event::Text(piece) => {
                if let Some((_, code)) = &mut open {
                    code.push_str(&piece);
                }
            }
            Event::End(TagEnd::CodeBlock) => match open.take() {
                Some((Some(info), code)) => found.extend(CodeBlock::new(&info, code)),
                // Models indent a whole answer; Markdown then reads the fences as code.
                Some((None, code)) if depth > 0 && has_fence(&code) => collect(&code, depth - 1, found),
                Some((None, _)) | None => {}
            },
            _ => {}
        }
    }
}

fn has_fence(code: &str) -> bool {
    code.lines().any(|line| line.trim_start().starts_with("```") || line.trim_start().starts_with("~~~"))
}

/// Whether the last line of a fenced block is its closing fence. Markdown closes an open block at the end of the
/// document: then the reply was truncated, and an incomplete program must not run.
fn is_closed(source: &str) -> bool {
    let opening = source.trim_start();
    let Some(mark) = opening.chars().next() else { return false };
    let length = |line: &str| line.chars().take_while(|c| *c == mark).count();
    source.trim_end().lines().skip(1).last().is_some_and(|last| {
        let last = last.trim_start_matches([' ', '\t', '>']);
        length(last) >= length(opening) && last.chars().all(|c| c == mark)
    })
}

/// The language of a fence: `python`, `python title="x"`, `{.python}`, `python,linenos`.
fn language(info: &str) -> Option<String> {
    let word = info.split([' ', '\t', ',', ';', '{', '}', ':']).find(|word| !word.is_empty())?;
    let word = word.trim_start_matches('.').to_lowercase();
    (!word.is_empty()).then_some(word)
}

/// The file name in a first line that is a `filename:` comment.
fn file_name(line: &str) -> Option<&str> {
    let line = line.trim();
    let comment = line.strip_prefix("<!--").map(|rest| rest.strip_suffix("-->").unwrap_or(rest));
    let comment =
        comment.or_else(|| line.strip_prefix("/*").map(|rest| rest.strip_suffix("*/").unwrap_or(rest)));
    let comment = comment.or_else(|| line.strip_prefix("//")).or_else(|| line.strip_prefix('#'))?;
    let name = comment.trim().strip_prefix("filename:")?.trim();
    (!name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests;
