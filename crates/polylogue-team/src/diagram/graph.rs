//! What a diagram shows: chats with their participants as nodes, and edges between them.

/// A chat.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) name: String,
    /// How the next speaker is selected.
    pub(super) pattern: String,
    /// First the start, and then the participants.
    pub(super) nodes: Vec<Node>,
    /// The number of participants.
    pub(super) participants: usize,
    pub(super) edges: Vec<Edge>,
    /// What ends the chat.
    pub(super) ends: Vec<String>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Node {
    pub(super) kind: NodeKind,
    pub(super) name: String,
    /// Its model, or several, if it speaks by one and the file names it.
    pub(super) model: Option<String>,
    /// Its model, its tools and the like, as they are drawn.
    pub(super) details: Vec<String>,
    /// The details in full, if they are drawn shortened.
    pub(super) whole: Option<String>,
    /// The chat, if it is one.
    pub(super) group: Option<Box<Group>>,
}

impl Node {
    /// A node with its name alone.
    pub(super) fn new(kind: NodeKind, name: &str) -> Self {
        Self { kind, name: name.to_owned(), model: None, details: Vec::new(), whole: None, group: None }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum NodeKind {
    Start,
    End,
    /// What selects the next speaker.
    Selector,
    Model,
    Person,
    Program,
    /// A chat or a team.
    Chat,
}

impl NodeKind {
    /// The name of the kind for programs.
    pub(super) const fn word(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::End => "end",
            Self::Selector => "selector",
            Self::Model => "model",
            Self::Person => "person",
            Self::Program => "program",
            Self::Chat => "chat",
        }
    }

    /// The name of the kind, if it is shown.
    pub(super) const fn noun(self) -> &'static str {
        match self {
            Self::Model | Self::Person | Self::Program => self.word(),
            Self::Start | Self::End | Self::Selector | Self::Chat => "",
        }
    }
}

/// An arrow between two nodes of a group, by their indexes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Edge {
    pub(super) from: usize,
    pub(super) to: usize,
    /// What is drawn at it.
    pub(super) label: String,
    /// The condition under which the one follows the other, of which the label is the beginning.
    pub(super) when: String,
    pub(super) kind: EdgeKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum EdgeKind {
    /// The one can follow the other.
    Next,
    /// Each can follow the other.
    Both,
    /// The one uses the other: as a tool, or as a nested chat.
    Uses,
}
