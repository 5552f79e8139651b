//! The outermost chat of a diagram without places, for lists of teams.

use super::Diagram;
use super::graph::{EdgeKind, NodeKind};

/// A participant of the outermost chat of a [`Diagram`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiagramParticipant<'d> {
    /// The name.
    pub name: &'d str,
    /// The kind: `model`, `person`, `program`, or `chat` for a chat or a team.
    pub kind: &'static str,
    /// The model, or several: the first, and those asked when it fails. `None` if it has none, or the team names none.
    pub model: Option<&'d str>,
}

/// An edge of the outermost chat of a [`Diagram`]: who can speak after whom.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiagramEdge<'d> {
    /// The participant that speaks before; `None` for the beginning of the chat.
    pub from: Option<&'d str>,
    /// The participant that speaks next; `None` for the end of the chat.
    pub to: Option<&'d str>,
    /// The condition; `None` for always.
    pub when: Option<&'d str>,
}

impl Diagram {
    /// Returns the participants of the outermost chat, in its order, late joiners last.
    pub fn participants(&self) -> impl Iterator<Item = DiagramParticipant<'_>> {
        let nodes = self.outermost.nodes.iter().skip(1).take(self.outermost.participants);
        nodes.map(|node| DiagramParticipant {
            name: &node.name,
            kind: node.kind.word(),
            model: node.model.as_deref(),
        })
    }

    /// Returns how the next speaker of the outermost chat is selected, if every participant can follow every other one. Then there are no
    /// [`edges`](Self::edges).
    pub fn selected_by(&self) -> Option<&str> {
        let selector = self.outermost.nodes.iter().find(|node| node.kind == NodeKind::Selector);
        selector.map(|node| node.name.as_str())
    }

    /// Returns the edges of the outermost chat: who can speak after whom.
    ///
    /// ```
    /// use polylogue_team::{DiagramEdge, Overrides, parse};
    /// let text = "{name: t, agents: [{name: Ann}, {name: Bob}], chat: {participants: [Ann, Bob], stop: {max_turns: 4}}}";
    /// let diagram = parse(text, "t.yaml", &Overrides::default())?.team.diagram();
    /// assert!(diagram.edges().contains(&DiagramEdge { from: Some("Ann"), to: Some("Bob"), when: None }));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn edges(&self) -> Vec<DiagramEdge<'_>> {
        let mut edges = Vec::new();
        for edge in self.outermost.edges.iter().filter(|edge| edge.kind != EdgeKind::Uses) {
            let (Some(from), Some(to)) = (self.point(edge.from), self.point(edge.to)) else { continue };
            let when = Some(edge.when.as_str()).filter(|when| !when.is_empty());
            edges.push(DiagramEdge { from, to, when });
            if edge.kind == EdgeKind::Both {
                edges.push(DiagramEdge { from: to, to: from, when });
            }
        }
        edges
    }

    /// The name of who speaks at the node `at`: `Some(None)` for the beginning and the end, `None` for what selects speakers.
    fn point(&self, at: usize) -> Option<Option<&str>> {
        let node = self.outermost.nodes.get(at)?;
        match node.kind {
            NodeKind::Selector => None,
            NodeKind::Start | NodeKind::End => Some(None),
            NodeKind::Model | NodeKind::Person | NodeKind::Program | NodeKind::Chat => {
                Some(Some(node.name.as_str()))
            }
        }
    }
}
