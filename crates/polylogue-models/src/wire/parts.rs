//! The parts of a reply that is assembled from pieces, in order.

use polylogue_core::{Part, RawArguments, Seal};
use serde_json::Value;

use super::calls::Finished as Call;
use super::think::Kind;

/// The parts so far.
#[derive(Debug, Default)]
pub(crate) struct Parts(Vec<Draft>);

#[derive(Debug)]
struct Draft {
    content: Content,
    /// Whether it stays as it came: it is neither trimmed nor, if it is sealed, left out.
    exact: bool,
    seal: Option<Value>,
}

#[derive(Debug)]
enum Content {
    Words(Kind, String),
    /// The index of a call.
    Call(usize),
}

impl Draft {
    /// Words of a server that does not say where parts begin.
    const fn loose(kind: Kind, text: String) -> Self {
        Self { content: Content::Words(kind, text), exact: false, seal: None }
    }

    fn is_of(&self, kind: Kind) -> bool {
        matches!(self.content, Content::Words(other, _) if other == kind)
    }

    /// Whether it is [loose](Self::loose) and of this kind.
    fn is_loose(&self, kind: Kind) -> bool {
        !self.exact && self.is_of(kind)
    }

    /// Whether it has neither content nor a seal that stays.
    fn is_nothing(&self) -> bool {
        match &self.content {
            Content::Words(_, text) => text.trim().is_empty() && !(self.exact && self.seal.is_some()),
            Content::Call(_) => false,
        }
    }

    fn loose_thought(&mut self) -> Option<&mut String> {
        match &mut self.content {
            Content::Words(Kind::Thought, text) if !self.exact => Some(text),
            _ => None,
        }
    }
}

/// Finished parts, and what belongs to them.
pub(super) struct Finished {
    pub(super) parts: Vec<Part>,
    pub(super) seals: Vec<Seal>,
    pub(super) arguments: Vec<RawArguments>,
}

impl Parts {
    /// Adds words of a server that does not say where parts begin: they continue the last part, or begin one after another kind of
    /// part. Text is one up to a call, whatever was reasoned between its pieces. White space alone begins none after words of its kind.
    pub(super) fn push(&mut self, kind: Kind, piece: &str) {
        if piece.is_empty() {
            return;
        }
        let continues = |part: &Draft| part.is_loose(kind);
        let at = match kind {
            _ if piece.trim().is_empty() => self.0.iter().rposition(continues),
            Kind::Text => self.open_text(),
            Kind::Thought => self.0.len().checked_sub(1).filter(|at| self.0.get(*at).is_some_and(continues)),
        };
        let begun = match at {
            Some(at) => self.0.get_mut(at),
            None => None,
        };
        match begun {
            Some(Draft { content: Content::Words(_, text), .. }) => text.push_str(piece),
            _ => self.0.push(Draft::loose(kind, piece.to_owned())),
        }
    }

    /// The text that the next piece of one continues. White space before a thought is none.
    fn open_text(&self) -> Option<usize> {
        let at = self.0.iter().rposition(|part| !part.is_loose(Kind::Thought))?;
        let is_last = at + 1 == self.0.len();
        self.0.get(at).filter(|part| part.is_loose(Kind::Text) && (is_last || !part.is_nothing()))?;
        Some(at)
    }

    /// Separates the thought in the only text of a server that does not say where parts begin.
    pub(super) fn separate(&mut self, thought: String, answer: String) {
        let is_text = |part: &Draft| part.is_loose(Kind::Text) && !part.is_nothing();
        let Some(at) = self.0.iter().position(is_text) else { return };
        let separated = [Draft::loose(Kind::Thought, thought), Draft::loose(Kind::Text, answer)];
        drop(self.0.splice(at..=at, separated));
    }

    /// Begins a part; returns its index.
    pub(super) fn open(&mut self, kind: Kind) -> usize {
        self.0.push(Draft { content: Content::Words(kind, String::new()), exact: true, seal: None });
        self.last()
    }

    /// The index of the last part.
    pub(super) fn last(&self) -> usize {
        self.0.len().saturating_sub(1)
    }

    /// Adds to the part at `index`, if it is of words; returns its kind.
    pub(super) fn write(&mut self, index: usize, piece: &str) -> Option<Kind> {
        match &mut self.0.get_mut(index)?.content {
            Content::Words(kind, text) => {
                text.push_str(piece);
                Some(*kind)
            }
            Content::Call(_) => None,
        }
    }

    /// Adds the call `index`, unless it is there; returns the index of its part.
    pub(super) fn call(&mut self, index: usize) -> usize {
        let is_there = |part: &Draft| matches!(part.content, Content::Call(at) if at == index);
        match self.0.iter().rposition(is_there) {
            Some(at) => at,
            None => {
                self.0.push(Draft { content: Content::Call(index), exact: true, seal: None });
                self.last()
            }
        }
    }

    /// Seals the part at `index`.
    pub(super) fn seal(&mut self, index: usize, data: Value) {
        if let Some(part) = self.0.get_mut(index) {
            part.seal = Some(data);
        }
    }

    /// What it says, in order.
    pub(super) fn words(&self) -> impl Iterator<Item = (Kind, &str)> {
        self.0.iter().filter_map(|part| match &part.content {
            Content::Words(kind, text) if !text.trim().is_empty() => Some((*kind, text.as_str())),
            _ => None,
        })
    }

    /// Whether the last part is one of `kind` that was [begun](Self::open).
    pub(super) fn ends_with(&self, kind: Kind) -> bool {
        self.0.last().is_some_and(|last| last.exact && last.is_of(kind))
    }

    pub(super) fn seal_thought(&mut self, data: Value) {
        if let Some(last) = self.0.iter_mut().rfind(|part| part.is_of(Kind::Thought)) {
            last.seal.get_or_insert(data);
        }
    }

    /// Seals the first thought, instead of how it was sealed before. It stays, even if it is empty.
    pub(super) fn seal_all_thoughts(&mut self, data: Value) {
        match self.0.iter_mut().find(|part| part.is_of(Kind::Thought)) {
            Some(first) => (first.seal, first.exact) = (Some(data), true),
            None => {
                let content = Content::Words(Kind::Thought, String::new());
                self.0.insert(0, Draft { content, exact: true, seal: Some(data) });
            }
        }
    }

    /// The text, if there is no other and no thought: it may have one without a mark.
    pub(super) fn unmarked(&self) -> Option<&str> {
        let mut words = self.0.iter().filter_map(|part| match &part.content {
            Content::Words(kind, text) if !part.exact && !part.is_nothing() => Some((*kind, text)),
            _ => None,
        });
        match (words.next(), words.next()) {
            (Some((Kind::Text, text)), None) => Some(text),
            _ => None,
        }
    }

    /// The parts in order, without those that have neither content nor a seal.
    pub(super) fn finish(self, calls: Vec<Option<Call>>) -> Finished {
        let mut calls = calls;
        let mut finished =
            Finished { parts: Vec::with_capacity(self.0.len()), seals: Vec::new(), arguments: Vec::new() };
        for Draft { content, seal, .. } in tidied(self.0) {
            let at = finished.parts.len();
            let part = match content {
                Content::Words(Kind::Thought, text) => Some(Part::Thought(text.into())),
                Content::Words(Kind::Text, text) => Some(Part::text(text)),
                Content::Call(index) => calls.get_mut(index).and_then(Option::take).map(|made| {
                    let raw = made.raw.map(|text| RawArguments { part: at, text });
                    finished.arguments.extend(raw);
                    Part::ToolCall(made.call)
                }),
            };
            let Some(part) = part else { continue };
            finished.seals.extend(seal.map(|data| Seal::new(at, &part, data)));
            finished.parts.push(part);
        }
        finished
    }
}

/// The parts that say something or are sealed, with neighbors joined that are one part, and without white space around the thoughts of a
/// server that does not say where they begin.
fn tidied(parts: Vec<Draft>) -> Vec<Draft> {
    let mut tidied: Vec<Draft> = Vec::with_capacity(parts.len());
    for part in parts.into_iter().filter(|part| !part.is_nothing()) {
        match (tidied.last_mut(), part) {
            (
                Some(Draft { content: Content::Words(kind, text), exact: false, seal }),
                Draft { content: Content::Words(other, more), exact: false, seal: further },
            ) if *kind == other => {
                text.push_str(&more);
                *seal = seal.take().or(further);
            }
            (_, part) => tidied.push(part),
        }
    }
    if let Some(first) = tidied.iter_mut().find_map(Draft::loose_thought) {
        *first = first.trim_start().to_owned();
    }
    if let Some(last) = tidied.iter_mut().rev().find_map(Draft::loose_thought) {
        last.truncate(last.trim_end().len());
    }
    tidied
}
