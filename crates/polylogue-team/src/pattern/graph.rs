//! Graphs.

use std::collections::BTreeMap;

use polylogue_config::{At, ByName, Config, OneOrMany, Same};
use polylogue_core::Name;

use crate::text::{ConditionText, Member, MemberRef};

/// Graph of who speaks after whom. Branches run concurrently.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Graph")]
pub struct Graph {
    /// First speakers.
    #[key(as = OneOrMany<MemberRef>, none = "participants without an incoming edge")]
    pub start: Vec<Name>,
    /// Edges by source participant: a name, or a list of names and of edges with conditions. All targets of the edges
    /// that are taken speak concurrently.
    #[key(as = ByName<Member, OneOrMany<Same<Edge>>>, required, nonempty)]
    pub edges: BTreeMap<At<Name>, Vec<Edge>>,
    /// For participants with several incoming edges: `all` (default) waits for all of them, `any` speaks after each.
    #[key(as = ByName<Member, Same<Join>>)]
    pub join: BTreeMap<At<Name>, Join>,
}

/// When a participant with several incoming edges speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Config)]
#[config(name = "GraphJoin")]
pub enum Join {
    /// After all incoming edges were taken.
    All,
    /// Each time an incoming edge is taken.
    Any,
}

/// An edge of a graph: its target, or a mapping.
#[derive(Debug, Clone, PartialEq, Eq, Config)]
#[config(name = "Edge", shorthand = "to")]
pub struct Edge {
    /// Target of the edge: the next speaker.
    #[key(as = MemberRef)]
    pub to: Name,
    /// Text that the last message must contain, in upper or lower case.
    #[key(none = "always", nonempty)]
    pub says: Option<At<String>>,
    /// Condition of the edge, in CEL.
    #[key(as = Option<At<ConditionText>>, none = "always", nonempty)]
    pub when: Option<At<String>>,
    /// Takes the edge only if no other edge of the same source is taken.
    #[key(default = false)]
    pub otherwise: At<bool>,
    /// Maximum number of times that the edge is taken.
    #[key(none = "any number of times", range = 1..=1_000_000)]
    pub max_uses: Option<u64>,
}
