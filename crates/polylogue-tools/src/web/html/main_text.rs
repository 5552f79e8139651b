//! Finds the main text of a page.

use super::tree::{Id, Tree};

/// Elements without text of the page.
const NO_TEXT: [&str; 24] = [
    "#comment", "script", "style", "noscript", "template", "svg", "canvas", "iframe", "object", "embed",
    "head", "nav", "footer", "aside", "dialog", "button", "input", "select", "textarea", "audio", "video",
    "map", "datalist", "annotation",
];
const NO_TEXT_ROLES: [&str; 8] =
    ["navigation", "banner", "contentinfo", "complementary", "search", "dialog", "menu", "menubar"];
/// Words in `class` and `id` of elements around the main text, such as menus.
const AROUND: [&str; 22] = [
    "ad", "ads", "advert", "banner", "breadcrumb", "breadcrumbs", "catlinks", "comments", "consent",
    "cookie", "footer", "masthead", "nav", "navbar", "navbox", "newsletter", "pagination", "promo", "share",
    "sidebar", "social", "editsection",
];
/// Elements that can contain the main text.
const CONTAINERS: [&str; 9] =
    ["html", "body", "main", "article", "section", "div", "center", "form", "header"];
/// The minimum share of a page's text in its main element, in percent.
const MOST: usize = 75;

/// The main text of a page in its tree.
#[derive(Debug)]
pub(super) struct MainText {
    /// The element that contains it.
    pub(super) root: Id,
    /// The skipped nodes, by their indices.
    left_out: Vec<bool>,
}

impl MainText {
    pub(super) fn of(tree: &Tree) -> Self {
        let mut left_out = vec![false; tree.len()];
        let hidden = |id: &Id| is_no_text(tree, *id);
        (0..tree.len()).filter(hidden).for_each(|id| mark(&mut left_out, id));
        // Menus and notices by their names, unless what is called so is most of the page.
        let all = Weights::of(tree, &left_out);
        let total = all.of_node(Tree::ROOT);
        let is_around = |id: &Id| is_named_around(tree, *id) && all.of_node(*id) * 100 <= total * 40;
        (0..tree.len()).filter(is_around).for_each(|id| mark(&mut left_out, id));
        let weights = Weights::of(tree, &left_out);
        Self { root: root(tree, &weights), left_out }
    }

    pub(super) fn leaves_out(&self, id: Id) -> bool {
        self.left_out.get(id).copied().unwrap_or(true)
    }
}

fn mark(marks: &mut [bool], id: Id) {
    if let Some(mark) = marks.get_mut(id) {
        *mark = true;
    }
}

fn is_no_text(tree: &Tree, id: Id) -> bool {
    let name = tree.name(id);
    let has = |attribute: &str, value: &str| {
        tree.attribute(id, attribute).is_some_and(|is| is.trim().eq_ignore_ascii_case(value))
    };
    let role = || NO_TEXT_ROLES.iter().any(|role| has("role", role));
    let unseen = || {
        let style = tree.attribute(id, "style").unwrap_or_default().replace(' ', "").to_ascii_lowercase();
        style.contains("display:none") || style.contains("visibility:hidden")
    };
    !name.is_empty()
        && name != "html"
        && name != "body"
        && (NO_TEXT.contains(&name)
            || tree.attribute(id, "hidden").is_some()
            || has("aria-hidden", "true")
            || role()
            || unseen())
}

fn is_named_around(tree: &Tree, id: Id) -> bool {
    let is_named = |attribute| {
        let names = tree.attribute(id, attribute).unwrap_or_default();
        let mut words = names.split(|c: char| !c.is_ascii_alphanumeric());
        words.any(|word| AROUND.iter().any(|around| around.eq_ignore_ascii_case(word)))
    };
    !matches!(tree.name(id), "" | "html" | "body" | "main" | "article")
        && (is_named("class") || is_named("id"))
}

/// The element with the main text: one that is marked as such, else the innermost one with most of the text.
fn root(tree: &Tree, weights: &Weights) -> Id {
    let total = weights.of_node(Tree::ROOT);
    let is_main = |id: &Id| {
        tree.name(*id) == "main" || tree.attribute(*id, "role").is_some_and(|role| role.trim() == "main")
    };
    let is_large = |id: &Id| weights.of_node(*id) > 0 && weights.of_node(*id) * 100 >= total * 30;
    let mut at = (0..tree.len()).filter(is_main).find(is_large).unwrap_or(Tree::ROOT);
    let within = weights.of_node(at);
    loop {
        let holds_most = |child: &&Id| {
            CONTAINERS.contains(&tree.name(**child)) && weights.of_node(**child) * 100 >= within * MOST
        };
        match tree.children(at).iter().find(holds_most) {
            Some(child) if within > 0 => at = *child,
            _ => return at,
        }
    }
}

/// Bytes of text in every element; text in links counts a quarter.
struct Weights(Vec<usize>);

impl Weights {
    fn of(tree: &Tree, left_out: &[bool]) -> Self {
        let is_out = |id: Id| left_out.get(id).copied().unwrap_or(true);
        let mut weights = vec![0; tree.len()];
        let mut around: Vec<(Id, bool, usize)> = vec![(Tree::ROOT, false, 0)];
        // Each is met twice: on the way in, and on the way out, when all that is in it is known.
        while let Some((id, in_link, next)) = around.pop() {
            if let Some(child) = tree.children(id).get(next) {
                around.push((id, in_link, next + 1));
                if !is_out(*child) {
                    around.push((*child, in_link || tree.name(*child) == "a", 0));
                }
                continue;
            }
            let text = tree.text(id).split_whitespace().map(|word| word.len() + 1).sum::<usize>();
            let own = if in_link { text / 4 } else { text };
            let whole = weights.get(id).copied().unwrap_or(0) + own;
            for (place, added) in [(Some(id), own), (around.last().map(|(parent, ..)| *parent), whole)] {
                if let Some(weight) = place.and_then(|place| weights.get_mut(place)) {
                    *weight += added;
                }
            }
        }
        Self(weights)
    }

    fn of_node(&self, id: Id) -> usize {
        self.0.get(id).copied().unwrap_or(0)
    }
}
