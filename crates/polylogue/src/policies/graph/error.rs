//! Errors of a graph.

use std::fmt;

use polylogue_core::{Error, NameError};

/// Why a graph is invalid.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError {
    /// A name is illegal.
    Name(NameError),
    /// A node is listed twice.
    SameNode(String),
    /// An edge, a start or a join names an unknown node.
    UnknownNode(String),
    /// An edge is listed twice.
    SameEdge {
        /// The source.
        from: String,
        /// The target.
        to: String,
    },
    /// Every node has incoming edges, and no start is set.
    NoStart,
    /// Every node has outgoing edges.
    NoLeaf,
    /// A node cannot be reached from the start.
    Unreachable(String),
    /// A loop of edges without a condition or a bound never ends.
    EndlessLoop(Vec<String>),
    /// A node has edges both with and without a condition, which is ambiguous.
    Mixed(String),
    /// A node has only `otherwise` edges.
    NoCondition(String),
}

impl std::error::Error for GraphError {}

impl From<GraphError> for Error {
    fn from(error: GraphError) -> Self {
        Self::config(error.to_string())
    }
}

impl From<NameError> for GraphError {
    fn from(error: NameError) -> Self {
        Self::Name(error)
    }
}

impl fmt::Display for GraphError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(error) => error.fmt(f),
            Self::SameNode(node) => write!(f, "the graph has the node `{node}` twice"),
            Self::UnknownNode(node) => write!(f, "the graph has no node `{node}`; name it in `Graph::of`"),
            Self::SameEdge { from, to } => write!(f, "the graph has two edges from `{from}` to `{to}`"),
            Self::NoStart => f.write_str(
                "the graph has no start: edges lead to every node; name the nodes with which it starts",
            ),
            Self::NoLeaf => f.write_str("the graph has no end: edges lead on from every node"),
            Self::Unreachable(node) => write!(f, "no way leads to `{node}` from the beginning of the graph"),
            Self::EndlessLoop(nodes) => {
                write!(
                    f,
                    "the loop {} never ends; give an edge of it a condition or a bound",
                    nodes.join(" -> ")
                )
            }
            Self::Mixed(node) => write!(
                f,
                "`{node}` has edges with and without a condition; give each a condition, or use `otherwise`"
            ),
            Self::NoCondition(node) => {
                write!(f, "`{node}` has an edge for otherwise, and none with a condition")
            }
        }
    }
}
