//! Why a graph cannot be run.

use std::fmt;

use polylogue_core::{Error, NameError};

/// Why a graph cannot be run.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum GraphError {
    /// A name is illegal.
    Name(NameError),
    /// A node is there twice.
    SameNode(String),
    /// An edge, a beginning or a join names a node that is not there.
    UnknownNode(String),
    /// An edge is there twice.
    SameEdge {
        /// From whom.
        from: String,
        /// To whom.
        to: String,
    },
    /// Edges lead to every node, and none is said to be the beginning.
    NoStart,
    /// Edges lead on from every node.
    NoLeaf,
    /// No way leads to a node from the beginning.
    Unreachable(String),
    /// A loop of edges without condition and bound: it would never end.
    EndlessLoop(Vec<String>),
    /// A node has both edges with and without a condition: whether the way goes on would depend on which of them was meant.
    Mixed(String),
    /// A node has edges for otherwise, and no other with a condition.
    NoCondition(String),
}

impl std::error::Error for GraphError {}

impl From<GraphError> for Error {
    fn from(error: GraphError) -> Self {
        Self::Config(error.to_string())
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
            Self::UnknownNode(node) => write!(f, "the graph has no node `{node}`; name it in `Flow::of`"),
            Self::SameEdge { from, to } => write!(f, "the graph has two edges from `{from}` to `{to}`"),
            Self::NoStart => f.write_str("the graph has no beginning; name one with `starts_with`"),
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
