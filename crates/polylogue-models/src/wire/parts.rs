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

/// Finished parts, and what belongs to them.
pub(super) struct Finished {
    pub(super) parts: Vec<Part>,
    pub(super) seals: Vec<Seal>,
    pub(super) arguments: Vec<RawArguments>,
}

impl Parts {
    /// Adds words of a server that has one thought and one text, in pieces of any order: the thought is first, and
    /// calls are last.
    pub(super) fn push(&mut self, kind: Kind, piece: &str) {
        self.only(kind).into_iter().for_each(|text| text.push_str(piece));
    }

    /// Replaces the words of a server that has one thought and one text.
    pub(super) fn replace(&mut self, kind: Kind, text: String) {
        self.only(kind).into_iter().for_each(|before| before.clone_from(&text));
    }

    fn only(&mut self, kind: Kind) -> Option<&mut String> {
        let is_kind = |part: &Draft| matches!(&part.content, Content::Words(other, _) if *other == kind);
        let at = self.0.iter().position(is_kind).unwrap_or_else(|| {
            let is_call = |part: &Draft| matches!(part.content, Content::Call(_));
            let at = match kind {
                Kind::Thought => 0,
                Kind::Text => self.0.iter().position(is_call).unwrap_or(self.0.len()),
            };
            self.0
                .insert(at, Draft { content: Content::Words(kind, String::new()), exact: false, seal: None });
            at
        });
        match &mut self.0.get_mut(at)?.content {
            Content::Words(_, text) => Some(text),
            Content::Call(_) => None,
        }
    }

    pub(super) fn open(&mut self, kind: Kind) {
        self.0.push(Draft { content: Content::Words(kind, String::new()), exact: true, seal: None });
    }

    /// Adds to the last part, if it is of words; returns its kind.
    pub(super) fn write(&mut self, piece: &str) -> Option<Kind> {
        match &mut self.0.last_mut()?.content {
            Content::Words(kind, text) => {
                text.push_str(piece);
                Some(*kind)
            }
            Content::Call(_) => None,
        }
    }

    /// Adds the call `index`, unless it is there.
    pub(super) fn call(&mut self, index: usize) {
        let is_there = |part: &Draft| matches!(part.content, Content::Call(at) if at == index);
        if !self.0.iter().rev().any(is_there) {
            self.0.push(Draft { content: Content::Call(index), exact: true, seal: None });
        }
    }

    pub(super) fn seal(&mut self, data: Value) {
        if let Some(last) = self.0.last_mut() {
            last.seal = Some(data);
        }
    }

    pub(super) fn seal_thought(&mut self, data: Value) {
        let _ = self.only(Kind::Thought);
        if let Some(first) = self.0.first_mut() {
            first.seal.get_or_insert(data);
        }
    }

    /// Seals the only thought instead of how it was sealed before. It stays, even if it is empty.
    pub(super) fn seal_only_thought(&mut self, data: Value) {
        let _ = self.only(Kind::Thought);
        if let Some(first) = self.0.first_mut() {
            (first.seal, first.exact) = (Some(data), true);
        }
    }

    /// The text, if there is no thought: it may have one without a mark.
    pub(super) fn unmarked(&self) -> Option<&str> {
        let mut words = self.0.iter().filter_map(|part| match &part.content {
            Content::Words(kind, text) if !part.exact => Some((*kind, text)),
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
        for Draft { content, exact, seal } in self.0 {
            let at = finished.parts.len();
            let part = match content {
                Content::Words(kind, text) => words(kind, text, exact, seal.is_some()),
                Content::Call(index) => calls.get_mut(index).and_then(Option::take).map(|made| {
                    let raw = made.raw.map(|text| RawArguments { part: at, text });
                    finished.arguments.extend(raw);
                    Part::Call(made.call)
                }),
            };
            let Some(part) = part else { continue };
            finished.seals.extend(seal.map(|data| Seal::new(at, &part, data)));
            finished.parts.push(part);
        }
        finished
    }
}

fn words(kind: Kind, text: String, exact: bool, sealed: bool) -> Option<Part> {
    if text.trim().is_empty() && !(exact && sealed) {
        return None;
    }
    Some(match kind {
        Kind::Thought if exact => Part::Thought(text.into()),
        Kind::Thought => Part::Thought(text.trim().into()),
        Kind::Text => Part::text(text),
    })
}
