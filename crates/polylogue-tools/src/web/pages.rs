//! Local pages, searched and read without a network.

mod rank;

use url::Url;

use self::rank::{Index, words};
use super::html::{Page, read_html};
use super::search::{Hit, Search};

/// Length of an excerpt in words.
const EXCERPT: usize = 40;

/// Local pages in Markdown, HTML or plain text: a small web for tests, and for teams without a network.
///
/// Each has an address: `page:/` and its path, such as `page:/bees/dance.md`. Results are ranked by BM25; words in titles count three
/// times.
///
/// ```
/// use polylogue_tools::web::Pages;
/// let pages = Pages::of([("bees.md", "# Bees\nThey dance."), ("ants.html", "<title>Ants</title><p>They do not.")]);
/// assert_eq!(pages.find("dancing bees", 5)[0].url, "page:/bees.md");
/// assert_eq!(pages.page("page:/ants.html").unwrap().title, "Ants");
/// ```
#[derive(Debug, Clone, Default)]
pub struct Pages {
    pages: Vec<(Url, Page)>,
    index: Index,
}

impl Pages {
    /// Creates the pages `files`: their paths, with `/` between the parts, and their contents.
    pub fn of<P: AsRef<str>, T: AsRef<str>>(files: impl IntoIterator<Item = (P, T)>) -> Self {
        let mut all = Self::default();
        for (path, text) in files {
            let Some(url) = address(path.as_ref()) else { continue };
            let page = read(&url, text.as_ref());
            let text = without_addresses(&page.text);
            let counted = [page.title.as_str(), &page.title, &page.title, &text];
            all.index.add(counted.into_iter().flat_map(words));
            all.pages.push((url, page));
        }
        all
    }

    /// Returns the number of pages.
    pub fn len(&self) -> usize {
        self.pages.len()
    }

    /// Returns whether there are none.
    pub fn is_empty(&self) -> bool {
        self.pages.is_empty()
    }

    /// Returns whether `address` is that of a local page.
    pub fn is_address(address: &str) -> bool {
        address.trim().to_ascii_lowercase().starts_with("page:")
    }

    /// Returns the page at `address`, with or without `page:/` before its path.
    pub fn page(&self, address: &str) -> Option<&Page> {
        let wanted = self::address(address.trim())?;
        self.pages.iter().find(|(url, _)| *url == wanted).map(|(_, page)| page)
    }

    /// Returns the best `limit` pages for `query`, the best first.
    pub fn find(&self, query: &str, limit: usize) -> Vec<Hit> {
        let wanted: Vec<String> = words(query).collect();
        let best = self.index.best(&wanted, limit).into_iter();
        let found = best.filter_map(|at| self.pages.get(at)).map(|(url, page)| Hit {
            title: page.title.clone(),
            url: url.to_string(),
            excerpt: excerpt(&without_addresses(&page.text), &wanted),
        });
        found.collect()
    }
}

impl Search for Pages {
    fn source(&self) -> &'static str {
        "the pages at hand"
    }

    async fn search(&self, query: &str, limit: usize) -> Result<Vec<Hit>, String> {
        Ok(self.find(query, limit))
    }
}

/// The address of the page at `path`; a path may be an address already.
fn address(path: &str) -> Option<Url> {
    let path = path.split('#').next().unwrap_or_default();
    let path = if Pages::is_address(path) { path.get("page:".len()..)? } else { path };
    let mut url = Url::parse("page:/").ok()?;
    // As links are read: `a b` and `a%20b` are the same.
    url = url.join(&format!("/{}", path.trim_start_matches('/').replace('\\', "/"))).ok()?;
    Some(url)
}

fn read(url: &Url, text: &str) -> Page {
    let name = url.path_segments().and_then(|mut parts| parts.next_back()).unwrap_or_default();
    let lower = name.to_ascii_lowercase();
    let mut page = if [".html", ".htm", ".xhtml"].iter().any(|end| lower.ends_with(end)) {
        read_html(text, url)
    } else {
        let heading = text.lines().find_map(|line| line.strip_prefix("# ")).unwrap_or_default();
        Page { title: heading.trim().to_owned(), text: text.trim().to_owned(), is_cut: false }
    };
    if page.title.is_empty() {
        page.title = name.split('.').next().unwrap_or_default().replace(['-', '_'], " ");
    }
    page
}

/// A Markdown text without the addresses of its links.
fn without_addresses(text: &str) -> String {
    let mut pieces = text.split("](");
    let mut whole = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        // The address ends before the first blank, or is none.
        let (address, after) = piece.split_once(')').unwrap_or(("", piece));
        whole.push_str("] ");
        whole.push_str(if address.contains(char::is_whitespace) { piece } else { after });
    }
    whole
}

/// The excerpt of `text` with the most words of `wanted`.
fn excerpt(text: &str, wanted: &[String]) -> String {
    let all: Vec<&str> = text.split_whitespace().collect();
    let is_wanted = |word: &&str| words(word).any(|word| wanted.contains(&word));
    let places: Vec<usize> =
        all.iter().enumerate().filter(|(_, word)| is_wanted(word)).map(|(at, _)| at).collect();
    let near = |from: &&usize| places.iter().filter(|at| (**from..**from + EXCERPT).contains(at)).count();
    // Of several as good ones the first.
    let best = places.iter().take(1000).rev().max_by_key(near).copied().unwrap_or(0);
    let from = best.saturating_sub(5);
    let shown = all.get(from..).unwrap_or_default();
    let (before, after) = (if from > 0 { "… " } else { "" }, if shown.len() > EXCERPT { " …" } else { "" });
    let shown = shown.get(..EXCERPT).unwrap_or(shown).join(" ");
    format!("{before}{shown}{after}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bees() -> Pages {
        Pages::of([
            (
                "bees/dance.md",
                "# The waggle dance\n\nBees dance to tell one another where flowers are. See [ants](../ants.html).",
            ),
            (
                "ants.html",
                "<title>Ants</title><p>Ants leave traces, and <a href='bees/dance.md'>bees dance</a>.</p>",
            ),
            (
                "notes/plain_words.txt",
                "Nothing about animals; many words about the weather, the rain and the sun.",
            ),
            ("a b.md", "# Blanks"),
        ])
    }

    #[test]
    fn pages_are_found_by_their_words_and_read_by_their_addresses() {
        let pages = bees();
        let found: Vec<String> = pages.find("How do bees dance?", 9).into_iter().map(|hit| hit.url).collect();
        assert_eq!(found, ["page:/bees/dance.md", "page:/ants.html"]);
        assert_eq!(pages.find("rainy WEATHER", 1)[0].title, "plain words");
        assert!(
            pages.find("submarines", 9).is_empty()
                && pages.find("", 9).is_empty()
                && pages.find("bees", 0).is_empty()
        );
        let ants = pages.page("page:/ants.html").unwrap();
        assert_eq!(ants.text, "Ants leave traces, and [bees dance](page:/bees/dance.md).");
        for same in [
            "bees/dance.md",
            "/bees/dance.md",
            " page:/bees/dance.md#top",
            "PAGE:bees/dance.md",
            "page:/x/../bees/dance.md",
        ] {
            assert_eq!(pages.page(same).map(|page| page.title.as_str()), Some("The waggle dance"), "{same}");
        }
        assert_eq!(pages.page("page:/a%20b.md"), pages.page("a b.md"));
        assert!(pages.page("a b.md").is_some() && pages.page("page:/none.md").is_none());
    }

    #[test]
    fn excerpts_are_where_the_words_stand() {
        let far = format!("{}the bees dance here {}", "filler ".repeat(200), "more ".repeat(200));
        let pages = Pages::of([("x.txt", far)]);
        let hit = &pages.find("bees dance", 1)[0];
        assert!(
            hit.excerpt.starts_with("… filler") && hit.excerpt.contains("the bees dance here more"),
            "{hit:?}"
        );
        assert!(hit.excerpt.ends_with(" …") && hit.excerpt.split_whitespace().count() <= EXCERPT + 2);
    }
}
