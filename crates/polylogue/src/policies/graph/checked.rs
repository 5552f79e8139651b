//! A checked graph: the nodes and edges along which chats run.

use polylogue_core::Name;

use super::edge::Link;

/// When a node with several incoming edges runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Join {
    /// Runs when one edge has fired and no running node can still lead to it: waits for all edges that can still fire, and for
    /// no others.
    #[default]
    Settled,
    /// Runs when all edges have fired. If one never does, the chat ends.
    All,
    /// Runs each time any edge fires.
    Any,
}

/// What follows when a node cannot run because its participant has left.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterLeaving {
    /// The chat ends.
    Close,
    /// The edges of the node fire.
    Continue,
}

/// A graph of participants, checked when it was [built](super::GraphBuilder::build): a [`Policy`](polylogue_core::Policy).
///
/// The chat ends when no node is ready. The stop reason is completion; if the run got stuck before a final node,
/// because no condition held or a join waits for an edge that cannot fire, the reason names the last node.
#[derive(Clone, derive_more::Debug)]
pub struct Graph {
    pub(super) nodes: Vec<Name>,
    pub(super) starts: Vec<usize>,
    pub(super) links: Vec<Link>,
    pub(super) joins: Vec<Join>,
    /// For each node, the nodes reachable without back edges. Only [`Join::Settled`] needs them.
    #[debug(skip)]
    pub(super) leads: Vec<Vec<bool>>,
    pub(super) after_leaving: AfterLeaving,
}

impl Graph {
    /// A graph of unconditional edges without a cycle, in which every node waits for all of its edges.
    pub(crate) fn of_dependencies(nodes: Vec<Name>, links: Vec<Link>) -> Self {
        let (joins, starts) = (vec![Join::All; nodes.len()], roots(nodes.len(), &links));
        Self { nodes, starts, links, joins, leads: Vec::new(), after_leaving: AfterLeaving::Continue }
    }

    /// Returns the nodes, in order: the participants that the chat needs.
    pub fn nodes(&self) -> &[Name] {
        &self.nodes
    }

    /// The nodes with an edge to `node`, in the order of the edges.
    pub(crate) fn sources(&self, node: &Name) -> Vec<Name> {
        let into = |link: &&Link| self.name(link.to) == Some(node);
        self.links.iter().filter(into).filter_map(|link| self.name(link.from)).cloned().collect()
    }

    pub(super) fn name(&self, node: usize) -> Option<&Name> {
        self.nodes.get(node)
    }

    pub(super) fn from(&self, node: usize) -> impl Iterator<Item = (usize, &Link)> {
        self.links.iter().enumerate().filter(move |(_, link)| link.from == node)
    }
}

/// The nodes without incoming edges.
pub(super) fn roots(nodes: usize, links: &[Link]) -> Vec<usize> {
    (0..nodes).filter(|node| links.iter().all(|link| link.to != *node)).collect()
}
