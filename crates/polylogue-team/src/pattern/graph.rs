//! Graphs.

use std::collections::BTreeMap;

use polylogue_config::{ByName, Config, OneOrMany, Same};
use polylogue_core::Name;
use serde::{Deserialize, Serialize};

use crate::text::{ConditionText, Participant, ParticipantRef};

/// A graph: who speaks after whom.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "Graph")]
pub struct Graph {
    /// Who begins.
    #[key(as = OneOrMany<ParticipantRef>, none = "participants without an incoming edge")]
    pub start: Vec<Name>,
    /// The edges from each participant: a name, or a list of names and of edges with conditions. All participants that are
    /// reached speak at the same time.
    #[key(as = ByName<Participant, OneOrMany<Same<Edge>>>, required, nonempty)]
    pub edges: BTreeMap<Name, Vec<Edge>>,
    /// For participants with several incoming edges, whether `all` of them (default) or `any` must reach them.
    #[key(as = ByName<Participant, Same<Join>>)]
    pub join: BTreeMap<Name, Join>,
}

/// When a participant with several incoming edges speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "GraphJoin")]
pub enum Join {
    /// When all of them reached it.
    All,
    /// Each time one of them reaches it.
    Any,
}

/// An edge of a graph.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, Config)]
#[config(name = "Edge", shorthand = "to")]
pub struct Edge {
    /// The next participant.
    #[key(as = ParticipantRef)]
    pub to: Name,
    /// Only if the last message contains this text, in upper or lower case.
    #[key(none = "always", nonempty)]
    pub says: Option<String>,
    /// Only if this condition holds, in CEL.
    #[key(as = Option<ConditionText>, none = "always", nonempty)]
    pub when: Option<String>,
    /// Only if no other edge from the same participant is taken.
    #[key(default = false)]
    pub otherwise: bool,
    /// How often it can be taken.
    #[key(none = "any number of times", range = 1..=1_000_000)]
    pub max_uses: Option<u64>,
}
