//! The tools `web_search` and `web_fetch`.

use std::fmt::Write as _;
use std::sync::Arc;

use polylogue_core::{AnyTool, Tool, ToolCx, ToolError, ToolResult, ToolSpec, text};
use serde_json::{Value, json};

use super::fetch::Fetcher;
use super::html::Page;
use super::pages::Pages;
use super::search::{AnySearch, Search as _};

/// Default and maximum number of search results.
const USUAL_HITS: usize = 5;
const MOST_HITS: usize = 20;
/// How much of a page is returned at once, in bytes; less than the maximum of a result.
const SHOWN: usize = 24_000;

/// Creates the tool `web_search`, which finds pages.
///
/// Results are marked as untrusted text.
pub fn web_search(search: AnySearch) -> AnyTool {
    let parameters = json!({
        "type": "object", "additionalProperties": false, "required": ["query"],
        "properties": {
            "query": {"type": "string", "description": "What to look for"},
            "limit": {"type": "integer", "minimum": 1, "maximum": MOST_HITS, "description": "Maximum number of pages. Default: 5"},
        },
    });
    let about =
        "Searches for pages. Tells their titles, addresses and some of their words; `web_fetch` reads them.";
    AnyTool::new(SearchTool { spec: ToolSpec::new("web_search", about, parameters).repeatable(), search })
}

/// Creates the tool `web_fetch`, which reads a page, from `pages` if it is one of them, else with `fetcher`.
///
/// Results are marked as untrusted text.
pub fn web_fetch(fetcher: Option<Arc<Fetcher>>, pages: Option<Arc<Pages>>) -> AnyTool {
    let parameters = json!({
        "type": "object", "additionalProperties": false, "required": ["url"],
        "properties": {
            "url": {"type": "string", "description": "The address of the page"},
            "from": {"type": "integer", "minimum": 0, "description": "The byte to continue from in a long page. Default: the beginning"},
        },
    });
    let about = "Reads a page: its text as Markdown, with its links.";
    AnyTool::new(FetchTool {
        spec: ToolSpec::new("web_fetch", about, parameters).repeatable(),
        fetcher,
        pages,
    })
}

struct SearchTool {
    spec: ToolSpec,
    search: AnySearch,
}

impl Tool for SearchTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let query = args.get("query").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        if query.is_empty() {
            return Err("`query` must be a text that says what to look for".into());
        }
        let limit = number(&args, "limit")?.unwrap_or(USUAL_HITS).clamp(1, MOST_HITS);
        let hits = self.search.search(query, limit).await?;
        if hits.is_empty() {
            return Ok(ToolResult::done(format!("Nothing was found for `{query}`.")));
        }
        let mut text = String::new();
        for (at, hit) in hits.iter().enumerate() {
            let title = if hit.title.is_empty() { &hit.url } else { &hit.title };
            let title = text::shortened(title, 300);
            let excerpt = text::shortened(&hit.excerpt, 500);
            let (gap, nth) = (if at > 0 { "\n" } else { "" }, at + 1);
            let _ = write!(text, "{gap}{nth}. [{title}]({})\n   {excerpt}", hit.url);
        }
        Ok(ToolResult::done(text).from_outside(format!("a search of {}", self.search.source())))
    }
}

struct FetchTool {
    spec: ToolSpec,
    fetcher: Option<Arc<Fetcher>>,
    pages: Option<Arc<Pages>>,
}

impl Tool for FetchTool {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }

    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        let url = args.get("url").and_then(Value::as_str).map(str::trim).unwrap_or_default();
        if url.is_empty() {
            return Err("`url` must be the address of a page".into());
        }
        let from = number(&args, "from")?.unwrap_or(0);
        if let Some(page) = self.pages.as_ref().and_then(|pages| pages.page(url)) {
            let text = page_text(page, None, from)?;
            return Ok(ToolResult::done(text).from_outside(url));
        }
        let Some(fetcher) = self.fetcher.as_ref().filter(|_| !Pages::is_address(url)) else {
            return Err(ToolError(format!(
                "there is no page `{url}`; `web_search` finds those that there are"
            )));
        };
        let fetched = fetcher.fetch(url).await?;
        let moved =
            (fetched.url.as_str().trim_end_matches('/') != url.trim_end_matches('/')).then_some(&fetched.url);
        let text = page_text(&fetched.page, moved.map(AsRef::as_ref), from)?;
        Ok(ToolResult::done(text).from_outside(fetched.url.as_str()))
    }
}

/// A page as text: its title, its final address, and its text from the byte `from` on.
fn page_text(page: &Page, moved: Option<&str>, from: usize) -> Result<String, ToolError> {
    let text = page.text.as_str();
    let start = text.floor_char_boundary(from);
    if start > 0 && start >= text.len() {
        return Err(ToolError(format!("the page has {} bytes; there is nothing from {from} on", text.len())));
    }
    let rest = text.get(start..).unwrap_or_default();
    let end = if rest.len() <= SHOWN { rest.len() } else { at_line(rest, rest.floor_char_boundary(SHOWN)) };
    let shown = rest.get(..end).unwrap_or_default().trim_end();
    let mut parts = Vec::new();
    let is_named =
        page.title.is_empty() || shown.lines().next().is_some_and(|line| line.contains(&page.title));
    parts.extend((!is_named).then(|| format!("Title: {}", page.title)));
    parts.extend(moved.map(|url| format!("Address: {url}")));
    parts.push(if shown.is_empty() { "(The page has no text.)".to_owned() } else { shown.to_owned() });
    if end < rest.len() {
        let next = start + end;
        parts.push(format!("(Bytes {start} to {next} of {}. Continue with `from: {next}`.)", text.len()));
    } else if page.is_cut {
        parts.push("(The page continues, but no more of it is read.)".to_owned());
    }
    Ok(parts.join("\n\n"))
}

/// The end of the last line before `end`, unless the line is very long.
fn at_line(text: &str, end: usize) -> usize {
    let before = text.get(..end).and_then(|text| text.rfind('\n'));
    before.filter(|line| *line > end / 2).map_or(end, |line| line + 1)
}

/// The optional argument `name`, a number.
fn number(args: &Value, name: &str) -> Result<Option<usize>, ToolError> {
    match args.get(name) {
        None | Some(Value::Null) => Ok(None),
        Some(value) => {
            let number = value.as_u64().and_then(|number| usize::try_from(number).ok());
            number.map(Some).ok_or_else(|| ToolError(format!("`{name}` must be a whole number")))
        }
    }
}
