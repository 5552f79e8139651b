//! The tree of pages of a PDF, and how many pages any reader can find in it.

use std::collections::HashMap;

use super::dict::{Dict, number, references};

/// The deepest tree that is counted. A tree with a circle is deeper.
const DEPTH: usize = 64;

/// The objects of a PDF that can be nodes of its tree of pages, in all their versions.
#[derive(Debug, Default)]
pub(super) struct PageTree {
    nodes: Vec<Node>,
    /// The roots that the catalogs name.
    roots: Vec<u64>,
    /// What says that it is a page, in a tree or not: readers use it if the tree is damaged.
    pages: Vec<u64>,
    /// The most pages that a node says there are below it.
    claimed: u64,
}

/// A version of an object.
#[derive(Debug)]
struct Node {
    object: u64,
    /// The objects below it: none for a page. `None` if they cannot be read.
    below: Option<Vec<u64>>,
}

impl PageTree {
    /// Adds a dictionary. `None` if it is a catalog whose tree cannot be found.
    pub(super) fn add(&mut self, object: u64, dict: &Dict<'_>) -> Option<()> {
        if let Some(root) = dict.pages {
            self.roots.push(*references(root)?.first()?);
        }
        if dict.is(b"Page") {
            self.pages.push(object);
        }
        if dict.kids.is_some() {
            self.claimed = self.claimed.max(dict.count.and_then(number).unwrap_or_default());
        }
        self.nodes.push(Node { object, below: dict.kids.map_or(Some(Vec::new()), references) });
        Some(())
    }

    /// Adds a list, which can have the nodes below another one.
    pub(super) fn add_list(&mut self, object: u64, list: &[u8]) {
        self.nodes.push(Node { object, below: references(list) });
    }

    /// The most pages that a reader can find, and whether all readers find as many; `None` if it cannot be told.
    pub(super) fn count(mut self) -> Option<(u64, bool)> {
        self.nodes.sort_unstable_by_key(|node| node.object);
        self.pages.sort_unstable();
        self.pages.dedup();
        let (mut most, mut known) = (None, HashMap::new());
        for root in &self.roots {
            most = most.max(Some(self.pages_below(*root, DEPTH, &mut known)?));
        }
        let (in_tree, alone) = (most?, self.pages.len() as u64);
        let has_versions = self.nodes.windows(2).any(|pair| matches!(pair, [a, b] if a.object == b.object));
        let is_one_tree = !has_versions && self.roots.len() == 1;
        let is_exact = is_one_tree && in_tree == self.claimed && in_tree == alone;
        Some((in_tree.max(self.claimed).max(alone), is_exact))
    }

    /// The pages of a node, which count as often as there is a way to them. `depth` is how much deeper it can be.
    fn pages_below(&self, object: u64, depth: usize, known: &mut HashMap<u64, u64>) -> Option<u64> {
        if let Some(pages) = known.get(&object) {
            return Some(*pages);
        }
        let depth = depth.checked_sub(1)?;
        let first = self.nodes.partition_point(|node| node.object < object);
        let versions = self.nodes.iter().skip(first).take_while(|node| node.object == object);
        let mut most = None;
        for node in versions {
            let below = node.below.as_ref()?;
            let mut pages = u64::from(below.is_empty());
            for kid in below {
                pages = pages.saturating_add(self.pages_below(*kid, depth, known)?);
            }
            most = most.max(Some(pages));
        }
        known.insert(object, most?);
        most
    }
}
