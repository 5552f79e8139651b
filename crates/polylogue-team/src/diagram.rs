//! Diagrams of teams: participants, who can speak after whom, nested chats, tools, people, and what ends each chat.

mod dot;
mod graph;
mod json;
mod layout;
mod mermaid;
mod of_team;
mod order;
mod outermost;
mod place;
mod stops;
mod svg;
mod text;

use self::graph::Group;
pub use self::outermost::{DiagramEdge, DiagramParticipant};
use crate::team::Team;

/// A diagram of a team, made by [`Team::diagram`].
///
/// ```
/// use polylogue_team::{Overrides, parse};
/// let text = "{name: t, agents: [{name: Ann}, {name: Bob}], chat: {participants: [Ann, Bob], stop: {max_turns: 4}}}";
/// let diagram = parse(text, "t.yaml", &Overrides::default())?.team.diagram();
/// assert!(diagram.to_svg().starts_with("<svg "));
/// assert!(diagram.to_dot().starts_with("digraph "));
/// assert!(diagram.to_mermaid().starts_with("flowchart "));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Diagram {
    outermost: Group,
}

impl Diagram {
    /// Writes a self-contained SVG document: no script, no font from elsewhere, in light or dark by the reader's preference.
    pub fn to_svg(&self) -> String {
        svg::document(&self.outermost)
    }

    /// Returns the contents with their places, for programs that draw it themselves: `width` and `height`, and for each chat
    /// its `name`, `pattern`, `nodes`, `edges` and what `ends` it. Places are in pixels, within their chat.
    pub fn to_json(&self) -> serde_json::Value {
        json::document(&self.outermost)
    }

    /// Writes a flowchart in the language of Mermaid.
    pub fn to_mermaid(&self) -> String {
        mermaid::document(&self.outermost)
    }

    /// Writes a graph in the language of Graphviz.
    pub fn to_dot(&self) -> String {
        dot::document(&self.outermost)
    }
}

impl Team {
    /// Returns the team as a diagram: participants, who can speak after whom, nested chats, tools, people, and what ends each
    /// chat.
    pub fn diagram(&self) -> Diagram {
        Diagram { outermost: of_team::outermost(self) }
    }
}
