//! The tree of a page, parsed like browsers do.

use std::borrow::Cow;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::time::{Duration, Instant};

use html5ever::interface::{Attribute, ElementFlags, NodeOrText, QuirksMode, TreeSink};
use html5ever::tendril::{StrTendril, TendrilSink as _};
use html5ever::{LocalName, ParseOpts, QualName, ns, parse_document};

/// Maximum nesting of elements, the same as in browsers; beyond it parsing would take quadratic time.
const DEEPEST: usize = 512;
/// Maximum number of nodes of a page.
const MOST_NODES: usize = 400_000;
/// Maximum number of attributes of an element.
const MOST_ATTRIBUTES: usize = 64;
/// Time limit of parsing. The parser compares each attribute with all before it, so that a short page can take very long.
const LONGEST: Duration = Duration::from_secs(5);
/// How much is parsed between two checks of these limits, in bytes.
const PIECE: usize = 2048;

/// The index of a node.
pub(super) type Id = usize;

/// The elements and texts of a page.
#[derive(Debug, Default)]
pub(super) struct Tree {
    nodes: Vec<Node>,
    /// Whether the page exceeds a limit and was cut.
    pub(super) is_cut: bool,
}

#[derive(Debug, Default)]
struct Node {
    /// Empty for a text.
    name: String,
    text: String,
    attributes: Vec<(String, String)>,
    parent: Option<Id>,
    children: Vec<Id>,
    depth: usize,
}

impl Tree {
    /// The document node.
    pub(super) const ROOT: Id = 0;

    /// Parses `html`.
    pub(super) fn of(html: &str) -> Self {
        let sink = Sink::default();
        let is_full = Rc::clone(&sink.is_full);
        let mut parser = parse_document(sink, ParseOpts::default());
        let (begun, mut rest) = (Instant::now(), html);
        while !rest.is_empty() && !is_full.get() && begun.elapsed() < LONGEST {
            let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE));
            parser.process(StrTendril::from_slice(piece));
            rest = after;
        }
        let mut tree = parser.finish();
        tree.is_cut = !rest.is_empty();
        tree
    }

    /// The name of an element, in lower case; `None` for a text.
    pub(super) fn name(&self, id: Id) -> &str {
        self.nodes.get(id).map_or("", |node| &node.name)
    }

    /// A text.
    pub(super) fn text(&self, id: Id) -> &str {
        self.nodes.get(id).map_or("", |node| &node.text)
    }

    pub(super) fn attribute(&self, id: Id, name: &str) -> Option<&str> {
        let attributes = &self.nodes.get(id)?.attributes;
        attributes.iter().find(|(is, _)| is == name).map(|(_, value)| value.as_str())
    }

    pub(super) fn children(&self, id: Id) -> &[Id] {
        self.nodes.get(id).map_or(&[], |node| &node.children)
    }

    pub(super) fn len(&self) -> usize {
        self.nodes.len()
    }

    /// All descendants of `id` in document order, without those that `skip` matches.
    pub(super) fn within<'a>(
        &'a self,
        id: Id,
        skip: impl Fn(Id) -> bool + 'a,
    ) -> impl Iterator<Item = Id> + 'a {
        let mut waiting: Vec<Id> = self.children(id).iter().rev().copied().collect();
        std::iter::from_fn(move || {
            loop {
                let next = waiting.pop()?;
                if !skip(next) {
                    waiting.extend(self.children(next).iter().rev());
                    return Some(next);
                }
            }
        })
    }

    fn node(&mut self, id: Id) -> Option<&mut Node> {
        self.nodes.get_mut(id)
    }

    fn push(&mut self, node: Node) -> Id {
        self.nodes.push(node);
        self.nodes.len() - 1
    }

    /// Removes `id` from its parent.
    fn detach(&mut self, id: Id) {
        let Some(parent) = self.node(id).and_then(|node| node.parent.take()) else { return };
        if let Some(parent) = self.node(parent) {
            // What is moved was put there lately.
            if let Some(at) = parent.children.iter().rposition(|child| *child == id) {
                parent.children.remove(at);
            }
        }
    }

    /// Inserts `id` into `parent`, before its child `before` or last. Returns its depth.
    fn attach(&mut self, parent: Id, id: Id, before: Option<Id>) -> usize {
        self.detach(id);
        let mut depth = 0;
        if let Some(parent) = self.node(parent) {
            let at = before.and_then(|before| parent.children.iter().rposition(|child| *child == before));
            parent.children.insert(at.unwrap_or(parent.children.len()), id);
            depth = parent.depth + 1;
        }
        if let Some(node) = self.node(id) {
            (node.parent, node.depth) = (Some(parent), depth);
        }
        depth
    }

    /// Adds `text` to the text before `before`, or at the end of `parent`, if there is one.
    fn extend(&mut self, parent: Id, before: Option<Id>, text: &str) -> bool {
        let children = self.children(parent);
        let last = match before.and_then(|before| children.iter().rposition(|child| *child == before)) {
            Some(at) => at.checked_sub(1).and_then(|at| children.get(at)),
            None => children.last(),
        };
        match last.copied().and_then(|last| self.node(last)).filter(|last| last.name.is_empty()) {
            Some(last) => {
                last.text.push_str(text);
                true
            }
            None => false,
        }
    }
}

/// The part of an element that the parser needs.
#[derive(Debug, Clone)]
struct Handle {
    id: Id,
    name: Rc<QualName>,
}

/// Builds the tree for the parser.
#[derive(Debug)]
struct Sink {
    tree: RefCell<Tree>,
    is_full: Rc<Cell<bool>>,
}

impl Default for Sink {
    fn default() -> Self {
        let tree = Tree { nodes: vec![Node { name: "#document".into(), ..Node::default() }], is_cut: false };
        Self { tree: RefCell::new(tree), is_full: Rc::default() }
    }
}

impl Sink {
    fn handle(&self, node: Node, name: QualName) -> Handle {
        let id = self.tree.borrow_mut().push(node);
        if id >= MOST_NODES {
            self.is_full.set(true);
        }
        Handle { id, name: Rc::new(name) }
    }

    fn put(&self, parent: Id, before: Option<Id>, child: NodeOrText<Handle>) {
        let mut tree = self.tree.borrow_mut();
        let id = match child {
            NodeOrText::AppendNode(handle) => handle.id,
            NodeOrText::AppendText(text) if tree.extend(parent, before, &text) => return,
            NodeOrText::AppendText(text) => tree.push(Node { text: text.to_string(), ..Node::default() }),
        };
        if tree.attach(parent, id, before) > DEEPEST || tree.len() > MOST_NODES {
            self.is_full.set(true);
        }
    }

    fn parent(&self, id: Id) -> Option<Id> {
        self.tree.borrow().nodes.get(id).and_then(|node| node.parent)
    }
}

/// The name of nodes that are not elements.
fn nameless() -> QualName {
    QualName::new(None, ns!(), LocalName::from(""))
}

fn attributes(attributes: Vec<Attribute>) -> Vec<(String, String)> {
    attributes
        .into_iter()
        .take(MOST_ATTRIBUTES)
        .map(|one| (one.name.local.to_string(), one.value.to_string()))
        .collect()
}

impl TreeSink for Sink {
    type Handle = Handle;
    type Output = Tree;
    type ElemName<'a> = &'a QualName;

    fn finish(self) -> Tree {
        self.tree.into_inner()
    }

    fn parse_error(&self, _: Cow<'static, str>) {}

    fn get_document(&self) -> Handle {
        Handle { id: Tree::ROOT, name: Rc::new(nameless()) }
    }

    fn elem_name<'a>(&'a self, target: &'a Handle) -> &'a QualName {
        &target.name
    }

    fn create_element(&self, name: QualName, given: Vec<Attribute>, _: ElementFlags) -> Handle {
        let node = Node {
            name: name.local.to_ascii_lowercase().to_string(),
            attributes: attributes(given),
            ..Node::default()
        };
        self.handle(node, name)
    }

    fn create_comment(&self, _: StrTendril) -> Handle {
        self.handle(Node { name: "#comment".into(), ..Node::default() }, nameless())
    }

    fn create_pi(&self, _: StrTendril, _: StrTendril) -> Handle {
        self.create_comment(StrTendril::new())
    }

    fn append(&self, parent: &Handle, child: NodeOrText<Handle>) {
        self.put(parent.id, None, child);
    }

    fn append_based_on_parent_node(&self, element: &Handle, previous: &Handle, child: NodeOrText<Handle>) {
        match self.parent(element.id) {
            Some(_) => self.append_before_sibling(element, child),
            None => self.append(previous, child),
        }
    }

    fn append_doctype_to_document(&self, _: StrTendril, _: StrTendril, _: StrTendril) {}

    /// The content of a template is not part of the page, but needs a place in the tree.
    fn get_template_contents(&self, target: &Handle) -> Handle {
        target.clone()
    }

    fn same_node(&self, x: &Handle, y: &Handle) -> bool {
        x.id == y.id
    }

    fn set_quirks_mode(&self, _: QuirksMode) {}

    fn append_before_sibling(&self, sibling: &Handle, child: NodeOrText<Handle>) {
        if let Some(parent) = self.parent(sibling.id) {
            self.put(parent, Some(sibling.id), child);
        }
    }

    fn add_attrs_if_missing(&self, target: &Handle, given: Vec<Attribute>) {
        if let Some(node) = self.tree.borrow_mut().node(target.id) {
            for (name, value) in attributes(given) {
                let fits = node.attributes.len() < MOST_ATTRIBUTES;
                if fits && !node.attributes.iter().any(|(is, _)| *is == name) {
                    node.attributes.push((name, value));
                }
            }
        }
    }

    fn remove_from_parent(&self, target: &Handle) {
        self.tree.borrow_mut().detach(target.id);
    }

    fn reparent_children(&self, node: &Handle, new_parent: &Handle) {
        let mut tree = self.tree.borrow_mut();
        let children = tree.node(node.id).map(|node| std::mem::take(&mut node.children)).unwrap_or_default();
        for child in children {
            if let Some(child) = tree.node(child) {
                child.parent = None;
            }
            tree.attach(new_parent.id, child, None);
        }
    }
}
