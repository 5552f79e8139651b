//! Graphs: edges say who speaks next, with parallel nodes, joins, conditions and loops.
//!
//! The participants are the nodes. After a node's turn its edges fire: all edges without a condition, and those whose
//! condition holds. A node with several incoming edges runs when all have fired that still can, or as its [`Join`]
//! says. Nodes that are ready together run at the same time.
//!
//! An edge that leads back and closes a loop activates its node alone, whatever the join. Of the edges of a loop, the
//! back edge is one with a condition or a bound: the one farthest from the start.
//!
//! The position of a run is not stored: it is computed by replaying the log along the graph, so a run that is
//! interrupted in the middle of a loop continues there.
//!
//! # A writer, two parallel critics, and an editor who can send the text back
//! ```
//! use polylogue::policies::graph::{Edge, Graph};
//! use polylogue::{AnyModel, Assistant, Chat};
//! # fn example(model: AnyModel) -> polylogue::Result<Chat> {
//! let graph = Graph::of(["Writer", "Grammar", "Style", "Editor", "Printer"])
//!     .starts_with("Writer")
//!     .edge(("Writer", "Grammar"))
//!     .edge(("Writer", "Style"))
//!     .edge(("Grammar", "Editor"))
//!     .edge(("Style", "Editor"))
//!     .edge(Edge::from(("Editor", "Writer")).says("again").at_most(3))
//!     .edge(Edge::from(("Editor", "Printer")).otherwise())
//!     .build()?;
//! let mut desk = Chat::named("desk");
//! for who in graph.nodes() {
//!     desk = desk.participant(Assistant::new(who.as_str(), model.clone())?);
//! }
//! # desk.policy(graph).build()
//! # }
//! ```

mod build;
mod edge;
mod error;
mod run;

use std::fmt;

use polylogue_core::{Name, Policy, Step, Transcript};

pub use self::edge::Edge;
pub use self::error::GraphError;

use self::edge::Link;

/// When a node with several incoming edges runs.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Join {
    /// When one edge has fired and no running node can still lead to it: waits for all edges that can still fire, and
    /// for no others.
    #[default]
    Settled,
    /// When all edges have fired. If one never does, the chat ends.
    All,
    /// Each time any edge fires.
    Any,
}

/// A graph under construction; see the [module](self).
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<String>,
    starts: Vec<String>,
    edges: Vec<Edge>,
    joins: Vec<(String, Join)>,
}

impl Graph {
    /// A graph of these participants. Nodes that are ready together run in this order.
    #[must_use]
    pub fn of<N: Into<String>>(nodes: impl IntoIterator<Item = N>) -> Self {
        Self { nodes: nodes.into_iter().map(Into::into).collect(), ..Self::default() }
    }

    /// Adds an edge: a pair of names, or an [`Edge`] with a condition.
    #[must_use]
    pub fn edge(mut self, edge: impl Into<Edge>) -> Self {
        self.edges.push(edge.into());
        self
    }

    /// Adds a start node. Default: the nodes without incoming edges.
    #[must_use]
    pub fn starts_with(mut self, node: impl Into<String>) -> Self {
        self.starts.push(node.into());
        self
    }

    /// Sets when `node` runs if it has several incoming edges.
    #[must_use]
    pub fn join(mut self, node: impl Into<String>, join: Join) -> Self {
        self.joins.push((node.into(), join));
        self
    }

    /// Checks the graph and returns it as a policy.
    ///
    /// # Errors
    /// When it has no start or no end, when a node is unknown, listed twice or unreachable, when a loop is endless, or
    /// when a node has edges both with and without a condition.
    pub fn build(self) -> Result<CheckedGraph, GraphError> {
        build::checked(self)
    }
}

/// A checked graph of participants: a [`Policy`].
///
/// The chat ends when no node is ready. The stop reason is completion; if the run got stuck before a final node,
/// because no condition held or a join waits for an edge that cannot fire, the reason names the last node.
#[derive(Clone)]
pub struct CheckedGraph {
    nodes: Vec<Name>,
    starts: Vec<usize>,
    links: Vec<Link>,
    joins: Vec<Join>,
    /// For each node, the nodes reachable without back edges.
    leads: Vec<Vec<bool>>,
}

impl CheckedGraph {
    /// The nodes, in order: the participants that the chat needs.
    #[must_use]
    pub fn nodes(&self) -> &[Name] {
        &self.nodes
    }

    fn name(&self, node: usize) -> Option<&Name> {
        self.nodes.get(node)
    }

    fn from(&self, node: usize) -> impl Iterator<Item = (usize, &Link)> {
        self.links.iter().enumerate().filter(move |(_, link)| link.from == node)
    }
}

impl Policy for CheckedGraph {
    fn next(&self, chat: &Transcript) -> Step {
        run::next(self, chat)
    }
}

impl fmt::Debug for CheckedGraph {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Graph")
            .field("nodes", &self.nodes)
            .field("links", &self.links)
            .finish_non_exhaustive()
    }
}
