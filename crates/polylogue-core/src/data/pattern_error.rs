//! Errors in the definition of patterns: graphs, groups, votes, tasks.

use std::fmt;
use std::sync::Arc;

use super::name::Name;

/// An error in the definition of a pattern, such as a graph, a group, a vote or a list of tasks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PatternError {
    /// A pattern has too few parts.
    #[error("{of} needs at least {least} {what}{}", if *.least == 1 { "" } else { "s" })]
    TooFew {
        /// The pattern.
        of: &'static str,
        /// The part of which there are too few, in the singular.
        what: &'static str,
        /// The minimum.
        least: u64,
    },
    /// A required text is blank.
    #[error("{what} is blank")]
    Blank {
        /// The text.
        what: Arc<str>,
    },
    /// A node, a chat or an option is listed twice.
    #[error("the {kind} `{name}` is listed twice")]
    ListedTwice {
        /// The kind: `node`, `chat`, `option`.
        kind: &'static str,
        /// The name.
        name: String,
    },
    /// Chats depend on each other in a cycle, so that none of them can start.
    #[error("chats depend on each other: {}", path(.chats))]
    Cycle {
        /// The chats; the last one is the first.
        chats: Vec<Name>,
    },
    /// A loop of a graph that nothing ends.
    #[error("the loop {} never ends", path(.nodes))]
    EndlessLoop {
        /// The nodes; the last one is the first.
        nodes: Vec<Name>,
    },
    /// Every node of a graph has incoming edges.
    #[error("the graph has no start: edges lead to every node")]
    NoStart,
    /// Every node of a graph has outgoing edges.
    #[error("the graph has no end: edges lead on from every node")]
    NoEnd,
    /// A node of a graph that cannot be reached.
    #[error("no path leads from the start of the graph to `{node}`")]
    Unreachable {
        /// The node.
        node: Name,
    },
    /// A chat takes part in itself.
    #[error("the chat `{chat}` takes part in itself")]
    Recursive {
        /// The chat.
        chat: Name,
    },
    /// Two settings exclude each other.
    #[error("{of} {has}, but {but}")]
    Conflict {
        /// The item that has both settings.
        of: Arc<str>,
        /// The first setting, as a predicate.
        has: Arc<str>,
        /// The setting that excludes it, as a clause.
        but: Arc<str>,
        /// How to fix it, if known.
        hint: Option<&'static str>,
    },
}

impl PatternError {
    /// Returns how to fix the error, if that is known.
    pub fn hint(&self) -> Option<String> {
        let text = match self {
            Self::EndlessLoop { .. } => "give an edge of it a condition or a bound",
            Self::NoStart => "name the nodes with which it starts",
            Self::NoEnd => "leave a node without edges to others",
            Self::Unreachable { .. } => "add an edge to it, or start with it",
            Self::Cycle { .. } => "remove one of these dependencies",
            Self::Conflict { hint, .. } => (*hint)?,
            _ => return None,
        };
        Some(text.to_owned())
    }
}

/// `A -> B -> A`.
fn path(names: &[Name]) -> impl fmt::Display {
    names.iter().map(Name::as_str).collect::<Vec<_>>().join(" -> ")
}
