//! The text of a page as Markdown.

use std::cell::Cell;

use polylogue_core::text;
use url::Url;

use super::main_text::MainText;
use super::tree::{Id, Tree};

/// The maximum depth of blocks; deeper ones are written as one text.
const DEEPEST: usize = 64;

/// Maximum length of one address, and of all together, in bytes. Links beyond are written as text only.
const LONGEST_ADDRESS: usize = 4 * 1024;
const MOST_ADDRESSES: usize = 4 << 20;

/// Block elements.
const BLOCKS: [&str; 34] = [
    "html", "body", "main", "article", "section", "div", "center", "form", "header", "p", "address", "h1",
    "h2", "h3", "h4", "h5", "h6", "ul", "ol", "li", "dl", "dt", "dd", "blockquote", "pre", "hr", "table",
    "figure", "figcaption", "details", "summary", "fieldset", "caption", "hgroup",
];

/// Writes elements as Markdown.
pub(super) struct Writer<'a> {
    pub(super) tree: &'a Tree,
    pub(super) main: &'a MainText,
    /// The base address of links.
    pub(super) base: &'a Url,
    /// Remaining bytes for addresses.
    room: Cell<usize>,
}

impl<'a> Writer<'a> {
    /// Writes the `main` text of `tree`, with links relative to `base`.
    pub(super) const fn new(tree: &'a Tree, main: &'a MainText, base: &'a Url) -> Self {
        Self { tree, main, base, room: Cell::new(MOST_ADDRESSES) }
    }
}

impl Writer<'_> {
    pub(super) fn write(&self, root: Id) -> String {
        self.block(root, 0)
    }

    pub(super) fn children(&self, id: Id) -> impl Iterator<Item = Id> + '_ {
        self.tree.children(id).iter().copied().filter(|child| !self.main.leaves_out(*child))
    }

    pub(super) fn is_block(&self, id: Id) -> bool {
        BLOCKS.contains(&self.tree.name(id))
    }

    /// One block; empty if it has no content.
    fn block(&self, id: Id, depth: usize) -> String {
        if depth > DEEPEST {
            return self.plain(id);
        }
        match self.tree.name(id) {
            heading @ ("h1" | "h2" | "h3" | "h4" | "h5" | "h6") => {
                let level = heading.bytes().last().map_or(1, |digit| usize::from(digit.saturating_sub(b'0')));
                let text = self.inline_of(id, depth).replace('\n', " ");
                if text.is_empty() { text } else { format!("{} {text}", "#".repeat(level)) }
            }
            "hr" => "---".into(),
            "pre" => self.preformatted(id),
            "ul" | "ol" => self.list(id, depth),
            "blockquote" => prefixed(&self.blocks(id, depth), "> ", "> "),
            "table" => self.table(id, depth),
            "dt" | "summary" => match self.inline_of(id, depth) {
                text if text.is_empty() => text,
                text => format!("**{text}**"),
            },
            "dd" => prefixed(&self.blocks(id, depth), ": ", "  "),
            _ => self.blocks(id, depth),
        }
    }

    /// The content of `id`: blocks and the text between them, separated by empty lines.
    pub(super) fn blocks(&self, id: Id, depth: usize) -> String {
        let mut blocks: Vec<String> = Vec::new();
        let mut run = String::new();
        for child in self.children(id) {
            if self.is_block(child) || self.holds_blocks(child, depth) {
                blocks.push(settled(&std::mem::take(&mut run)));
                blocks.push(self.block(child, depth + 1));
            } else {
                self.inline(child, depth + 1, &mut run);
            }
        }
        blocks.push(settled(&run));
        blocks.retain(|block| !block.trim().is_empty());
        blocks.join("\n\n")
    }

    /// Whether an inline element contains blocks, such as a link around a card.
    fn holds_blocks(&self, id: Id, depth: usize) -> bool {
        const LOOKED_AT: usize = 50;
        if self.tree.name(id).is_empty() || depth > DEEPEST {
            return false;
        }
        let within = self.tree.within(id, |id| self.main.leaves_out(id));
        within.take(LOOKED_AT).any(|id| self.is_block(id))
    }

    fn list(&self, id: Id, depth: usize) -> String {
        let is_numbered = self.tree.name(id) == "ol";
        let start = self.tree.attribute(id, "start").and_then(|start| start.trim().parse::<u32>().ok());
        let mut number = start.unwrap_or(1);
        let mut items = Vec::new();
        for child in self.children(id) {
            let text = match self.tree.name(child) {
                "" => continue,
                // A list within a list, without an item around it.
                "ul" | "ol" => prefixed(&self.block(child, depth + 1), "  ", "  "),
                _ => {
                    let sign = if is_numbered { format!("{number}. ") } else { "- ".into() };
                    number = number.saturating_add(u32::from(is_numbered));
                    prefixed(&self.item(child, depth + 1), &sign, &" ".repeat(sign.len()))
                }
            };
            items.push(text);
        }
        items.retain(|item| !item.trim().is_empty());
        items.join("\n")
    }

    /// An item of a list: a list in it follows without an empty line.
    fn item(&self, id: Id, depth: usize) -> String {
        self.blocks(id, depth).replace("\n\n- ", "\n- ").replace("\n\n1. ", "\n1. ")
    }

    fn preformatted(&self, id: Id) -> String {
        let text = self.plain_text(id);
        let text = text.strip_prefix('\n').unwrap_or(&text).trim_end();
        if text.trim().is_empty() {
            return String::new();
        }
        let longest =
            text.lines().map(|line| line.trim_start().bytes().take_while(|byte| *byte == b'`').count()).max();
        let fence = "`".repeat(longest.unwrap_or(0).max(2) + 1);
        let tag = std::iter::once(id).chain(self.tree.within(id, |_| false)).find_map(|id| {
            let class = self.tree.attribute(id, "class")?;
            class
                .split_whitespace()
                .find_map(|class| class.strip_prefix("language-").or(class.strip_prefix("lang-")))
        });
        format!("{fence}{}\n{text}\n{fence}", tag.unwrap_or_default())
    }

    /// The content of `id` as inline text.
    pub(super) fn inline_of(&self, id: Id, depth: usize) -> String {
        let mut text = String::new();
        self.children(id).for_each(|child| self.inline(child, depth + 1, &mut text));
        settled(&text)
    }

    fn inline(&self, id: Id, depth: usize, into: &mut String) {
        if depth > DEEPEST * 2 {
            return push(into, &self.plain(id));
        }
        match self.tree.name(id) {
            "" => push_text(into, self.tree.text(id)),
            "br" | "hr" => into.push('\n'),
            "a" => self.link(id, depth, into),
            "img" => self.picture(id, into),
            "strong" | "b" => self.marked(id, depth, "**", into),
            "em" | "i" => self.marked(id, depth, "*", into),
            "del" | "s" => self.marked(id, depth, "~~", into),
            "code" | "kbd" | "samp" | "tt" => {
                let text = self.plain(id);
                let mark = if text.contains('`') { "``" } else { "`" };
                if !text.is_empty() {
                    self.spaced(id, into, &format!("{mark}{text}{mark}"));
                }
            }
            "math" => match self.tree.attribute(id, "alttext") {
                Some(text) => push_text(into, text),
                None => push_text(into, &self.plain(id)),
            },
            name => {
                // What is a block after all is parted from what is around it.
                let is_apart = BLOCKS.contains(&name) || matches!(name, "td" | "th" | "tr");
                if is_apart {
                    push_text(into, " ");
                }
                self.children(id).for_each(|child| self.inline(child, depth + 1, into));
                if is_apart {
                    push_text(into, " ");
                }
            }
        }
    }

    fn marked(&self, id: Id, depth: usize, mark: &str, into: &mut String) {
        let text = self.inline_of(id, depth);
        // Marks within marks, and those around several lines, would be none.
        if text.is_empty() || text.contains('\n') || text.starts_with(mark) {
            push(into, &text);
        } else {
            self.spaced(id, into, &format!("{mark}{text}{mark}"));
        }
    }

    fn link(&self, id: Id, depth: usize, into: &mut String) {
        let text = self.inline_of(id, depth).replace('\n', " ");
        let text = if text.is_empty() {
            self.tree.attribute(id, "aria-label").unwrap_or_default().trim()
        } else {
            &text
        };
        match self.tree.attribute(id, "href").and_then(|href| self.address(href)) {
            Some(address) if !text.is_empty() => self.spaced(id, into, &format!("[{text}]({address})")),
            _ => self.spaced(id, into, text),
        }
    }

    /// The address of `href`, if it is a page.
    fn address(&self, href: &str) -> Option<String> {
        let href = href.trim();
        if href.is_empty() || href.starts_with('#') {
            return None;
        }
        // A page may give a long address to everything on it.
        let room = self.room.get();
        let most = room.min(LONGEST_ADDRESS);
        if self.base.as_str().len().max(href.len()) > most {
            return None;
        }
        let url = self.base.join(href).ok()?;
        self.room.set(room.saturating_sub(url.as_str().len()));
        let is_page =
            matches!(url.scheme(), "http" | "https" | "mailto") || url.scheme() == self.base.scheme();
        // A closing bracket would end the link.
        is_page.then(|| url.as_str().replace('(', "%28").replace(')', "%29"))
    }

    fn picture(&self, id: Id, into: &mut String) {
        let about = self
            .tree
            .attribute(id, "alt")
            .unwrap_or_default()
            .split_whitespace()
            .collect::<Vec<_>>()
            .join(" ");
        if about.is_empty() {
            return;
        }
        match self.tree.attribute(id, "src").and_then(|src| self.address(src)) {
            Some(address) => push(into, &format!("![{about}]({address})")),
            None => push(into, &about),
        }
    }

    /// Adds `text` with the spaces at the ends of `id`.
    fn spaced(&self, id: Id, into: &mut String, text: &str) {
        let inner = self.plain_text(id);
        if inner.starts_with(char::is_whitespace) {
            push_text(into, " ");
        }
        push(into, text);
        if inner.ends_with(char::is_whitespace) {
            push_text(into, " ");
        }
    }

    /// The source text in `id`.
    fn plain_text(&self, id: Id) -> String {
        let mut text = self.tree.text(id).to_owned();
        for id in self.tree.within(id, |id| self.main.leaves_out(id)) {
            text.push_str(if self.tree.name(id) == "br" { "\n" } else { self.tree.text(id) });
        }
        text
    }

    /// The text in `id`, in one line.
    fn plain(&self, id: Id) -> String {
        text::one_line(&self.plain_text(id))
    }
}

/// `text` with its blanks made one each.
fn push_text(into: &mut String, text: &str) {
    for c in text.chars() {
        if !c.is_whitespace() || c == '\u{a0}' {
            into.push(if c == '\u{a0}' { ' ' } else { c });
        } else if !into.is_empty() && !into.ends_with([' ', '\n']) {
            into.push(' ');
        }
    }
}

fn push(into: &mut String, text: &str) {
    into.push_str(text);
}

/// Removes spaces at the ends of lines.
fn settled(text: &str) -> String {
    text.trim().lines().map(str::trim).collect::<Vec<_>>().join("\n")
}

/// `text` with `first` before its first line, and `next` before all others.
fn prefixed(text: &str, first: &str, next: &str) -> String {
    if text.is_empty() {
        return String::new();
    }
    let lines = text.lines().enumerate().map(|(at, line)| match (at, line) {
        (0, line) => format!("{first}{line}"),
        (_, "") => next.trim_end().to_owned(),
        (_, line) => format!("{next}{line}"),
    });
    lines.collect::<Vec<_>>().join("\n")
}
