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
//! let graph = Graph::builder(["Writer", "Grammar", "Style", "Editor", "Printer"])
//!     .starts_with("Writer")
//!     .edge(("Writer", "Grammar"))
//!     .edge(("Writer", "Style"))
//!     .edge(("Grammar", "Editor"))
//!     .edge(("Style", "Editor"))
//!     .edge(Edge::from(("Editor", "Writer")).says("again").max_times(3))
//!     .edge(Edge::from(("Editor", "Printer")).otherwise())
//!     .build()?;
//! let mut desk = Chat::builder("desk");
//! for who in graph.nodes() {
//!     desk = desk.participant(Assistant::new(who.as_str(), model.clone())?);
//! }
//! # desk.policy(graph).build()
//! # }
//! ```

mod build;
mod checked;
mod edge;
mod run;

pub use self::build::GraphBuilder;
pub use self::checked::{Graph, Join};
pub use self::edge::Edge;

pub(super) use self::build::cycle;
pub(super) use self::edge::Link;
pub(super) use self::run::ready;
