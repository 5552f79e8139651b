//! Edges of a graph.

use std::sync::Arc;

use polylogue_core::Transcript;

/// An edge of a [graph](super) from one participant to another, unconditional or with a condition.
///
/// ```
/// use polylogue::policies::graph::Edge;
///
/// let always = Edge::from(("Coder", "Tester"));
/// let again = Edge::from(("Tester", "Coder")).says("failed").max_times(3);
/// let done = Edge::from(("Tester", "Writer")).otherwise();
/// ```
#[derive(Debug, Clone)]
#[must_use]
pub struct Edge {
    pub(super) from: String,
    pub(super) to: String,
    pub(super) when: EdgeCondition,
    pub(super) max_times: Option<u64>,
}

/// The condition of an edge.
#[derive(Clone, Default, derive_more::Debug)]
pub(super) enum EdgeCondition {
    #[default]
    Always,
    /// On the message of the turn before.
    Message(#[debug(skip)] Arc<dyn Fn(&str) -> bool + Send + Sync>),
    /// On the transcript.
    Transcript(#[debug(skip)] Arc<dyn Fn(&Transcript) -> bool + Send + Sync>),
    Otherwise,
}

impl<F: Into<String>, T: Into<String>> From<(F, T)> for Edge {
    fn from((from, to): (F, T)) -> Self {
        Self { from: from.into(), to: to.into(), when: EdgeCondition::Always, max_times: None }
    }
}

impl Edge {
    /// Fires only when the message of the turn before contains `text`, case-insensitive.
    pub fn says(self, text: &str) -> Self {
        let text = text.to_lowercase();
        self.when_message(move |said| said.to_lowercase().contains(&text))
    }

    /// Fires only when `holds` is true of the message of the turn before; of an empty text after a silent turn.
    pub fn when_message(self, holds: impl Fn(&str) -> bool + Send + Sync + 'static) -> Self {
        Self { when: EdgeCondition::Message(Arc::new(holds)), ..self }
    }

    /// Fires only when `holds`, a pure function, is true of the transcript after the turn before: for instance
    /// [`state::is`](crate::tools::state::is). The transcript is without the usage of nested chats.
    pub fn when(self, holds: impl Fn(&Transcript) -> bool + Send + Sync + 'static) -> Self {
        Self { when: EdgeCondition::Transcript(Arc::new(holds)), ..self }
    }

    /// Fires only when no other edge of the same node does.
    pub fn otherwise(self) -> Self {
        Self { when: EdgeCondition::Otherwise, ..self }
    }

    /// Fires at most so many times, whatever its condition.
    pub fn max_times(self, times: u64) -> Self {
        Self { max_times: Some(times), ..self }
    }
}

/// An edge between nodes by index.
#[derive(Debug, Clone)]
pub(crate) struct Link {
    pub(crate) from: usize,
    pub(crate) to: usize,
    pub(super) when: EdgeCondition,
    pub(super) max_times: Option<u64>,
    /// Whether it is a back edge.
    pub(super) back: bool,
}

impl Link {
    /// An unconditional edge.
    pub(crate) const fn new(from: usize, to: usize) -> Self {
        Self { from, to, when: EdgeCondition::Always, max_times: None, back: false }
    }

    /// Whether it always fires.
    pub(super) const fn is_sure(&self) -> bool {
        matches!(self.when, EdgeCondition::Always) && self.max_times.is_none()
    }
}
