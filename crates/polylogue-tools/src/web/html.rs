//! Reads HTML pages: their title, and their main text as Markdown.

mod main_text;
mod markdown;
mod table;
#[cfg(test)]
mod tests;
mod tree;

use polylogue_core::text;
use url::Url;

use self::main_text::MainText;
use self::markdown::Writer;
use self::tree::{Id, Tree};

/// The title and text of a page.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page {
    /// The title; empty if it has none.
    pub title: String,
    /// The main text as Markdown; links are absolute addresses.
    pub text: String,
    /// Whether the page was cut: it has too many or too deep elements, or takes too long to parse.
    pub is_cut: bool,
}

/// Reads the page `html` at `address`.
///
/// It is parsed like browsers do, even if it is invalid. The text excludes scripts, menus and notices; if the page marks its main
/// part, or one part has most of the text, only that part is returned. Nothing is escaped: the text is for reading.
///
/// ```
/// let html = "<title>Bees</title><nav><a href=/>Home</a></nav><p>Bees <b>dance</b>, see <a href=dance>how</a>.";
/// let page = polylogue_tools::web::read_html(html, &"https://example.org/bees/".parse()?);
/// assert_eq!(page.title, "Bees");
/// assert_eq!(page.text, "Bees **dance**, see [how](https://example.org/bees/dance).");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn read_html(html: &str, address: &Url) -> Page {
    let tree = Tree::of(html);
    let base = base(&tree, address);
    let main = MainText::of(&tree);
    let text = Writer::new(&tree, &main, &base).write(main.root);
    Page { title: title(&tree), text, is_cut: tree.is_cut }
}

fn elements<'a>(tree: &'a Tree, name: &'static str) -> impl Iterator<Item = Id> + 'a {
    // Pictures have titles of their own.
    tree.within(Tree::ROOT, |id| tree.name(id) == "svg").filter(move |id| tree.name(*id) == name)
}

/// The base address of links, which the page can set.
fn base(tree: &Tree, address: &Url) -> Url {
    let said = elements(tree, "base").find_map(|id| address.join(tree.attribute(id, "href")?.trim()).ok());
    said.filter(|base| !base.cannot_be_a_base()).unwrap_or_else(|| address.clone())
}

/// Maximum length of a title in characters. A page could otherwise fill a result with it.
const LONGEST_TITLE: usize = 300;

fn title(tree: &Tree) -> String {
    let text_of = |id: Id| {
        let texts: String = tree.within(id, |_| false).map(|id| tree.text(id)).collect();
        Some(text::one_line(&texts)).filter(|text| !text.is_empty())
    };
    let graph = || {
        let is_title = |id: &Id| tree.attribute(*id, "property") == Some("og:title");
        elements(tree, "meta")
            .filter(is_title)
            .find_map(|id| Some(tree.attribute(id, "content")?.trim().to_owned()))
    };
    let first = elements(tree, "title").find_map(text_of).or_else(graph);
    let title = first.or_else(|| elements(tree, "h1").find_map(text_of)).unwrap_or_default();
    text::excerpt(&title, LONGEST_TITLE)
}
