//! Graphs: who speaks after whom, with several at the same time, joins, conditions and loops.
//!
//! The members are the nodes. When a member has had its turn, its edges lead on: all that have no condition, and those
//! whose condition holds. A member to which several edges lead speaks when all have come that may still come, or as its
//! [`Join`] says; whoever is due at once speaks at the same time.
//!
//! An edge that leads back, and so closes a loop, is enough by itself, whatever the join is: it asks for another go, which
//! the others have no part in. Of the edges of a loop that is one with a condition or a bound: the one that is farthest
//! from the beginning.
//!
//! Where a run stands is kept nowhere: it is found by going along the graph with the log, so that a run that is cut in the
//! middle of a loop goes on in the middle of that loop.
//!
//! # A writer, two critics at the same time, and an editor who may send it back
//! ```
//! use polylogue::flow::{Edge, Flow};
//! use polylogue::{AnyModel, Assistant, Chat};
//! # fn example(model: AnyModel) -> polylogue::Result<Chat> {
//! let flow = Flow::of(["Writer", "Grammar", "Style", "Editor", "Printer"])
//!     .starts_with("Writer")
//!     .edge(("Writer", "Grammar"))
//!     .edge(("Writer", "Style"))
//!     .edge(("Grammar", "Editor"))
//!     .edge(("Style", "Editor"))
//!     .edge(Edge::from(("Editor", "Writer")).says("again").at_most(3))
//!     .edge(Edge::from(("Editor", "Printer")).otherwise())
//!     .build()?;
//! let mut desk = Chat::named("desk");
//! for who in flow.nodes() {
//!     desk = desk.with(Assistant::new(who.as_str(), model.clone())?);
//! }
//! # desk.policy(flow).build()
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

/// When a member speaks to which several edges lead.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Join {
    /// When it was reached by one of them, and nobody is under way any more who could lead to it: it waits for all that
    /// may still come, and for nobody in vain.
    #[default]
    Settled,
    /// When it was reached by all of them, as a gate. Where one of them never comes, the chat is over.
    All,
    /// When it was reached by any of them, each time.
    Any,
}

/// A graph that is not checked yet; see the [module](self).
#[derive(Debug, Clone, Default)]
pub struct Graph {
    nodes: Vec<String>,
    starts: Vec<String>,
    edges: Vec<Edge>,
    joins: Vec<(String, Join)>,
}

impl Graph {
    /// A graph of these members. Whoever is due at the same time is cued in this order.
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

    /// Begins with `node`, and with others so named. Without this, those begin to which no edge leads.
    #[must_use]
    pub fn starts_with(mut self, node: impl Into<String>) -> Self {
        self.starts.push(node.into());
        self
    }

    /// Sets when `node` speaks, if several edges lead to it.
    #[must_use]
    pub fn join(mut self, node: impl Into<String>, join: Join) -> Self {
        self.joins.push((node.into(), join));
        self
    }

    /// The graph as a policy.
    ///
    /// # Errors
    /// When it has no beginning or no end, when a node is unknown, twice there or cannot be reached, when a loop has nothing
    /// that ends it, or when a node has both edges with and without a condition.
    pub fn build(self) -> Result<CheckedGraph, GraphError> {
        build::checked(self)
    }
}

/// A graph of members, checked: a [`Policy`].
///
/// The chat is over when nobody is due. The reason is that all had their turns; if the way ended before a last node,
/// because no condition held or a join waits for somebody who will not come, the reason says after whom.
#[derive(Clone)]
pub struct CheckedGraph {
    nodes: Vec<Name>,
    starts: Vec<usize>,
    links: Vec<Link>,
    joins: Vec<Join>,
    /// For each node, to which others it leads without going back.
    leads: Vec<Vec<bool>>,
}

impl CheckedGraph {
    /// The nodes, in order: the members that the chat has to have.
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
