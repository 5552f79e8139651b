//! Who can follow whom in a chat, as far as the file says: what checks and drawings of a team are derived from.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use polylogue_config::At;
use polylogue_core::Name;

use crate::source::Span;

/// The steps that a chat can take from its start to its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct ChatFlow<'c> {
    pub(crate) steps: Vec<FlowStep<'c>>,
    /// How the next speaker is selected, if every participant can follow every other. Then there are no steps.
    pub(crate) selected: Option<Cow<'static, str>>,
    /// What ends the chat without a termination condition, if the pattern does.
    pub(crate) end: Option<&'static str>,
}

/// A step from one point to the next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FlowStep<'c> {
    pub(crate) from: Point<'c>,
    pub(crate) to: Point<'c>,
    /// When it is taken; `None` for always.
    pub(crate) when: Option<Cow<'c, str>>,
    /// Where the file gives it.
    pub(crate) at: Option<&'c Span>,
}

/// A point of a chat.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Point<'c> {
    Start,
    Speaker(&'c Name),
    End,
}

impl<'c> Point<'c> {
    /// The speaker, if it is one.
    pub(crate) const fn speaker(self) -> Option<&'c Name> {
        if let Self::Speaker(name) = self { Some(name) } else { None }
    }
}

impl<'c> FlowStep<'c> {
    pub(crate) const fn new(from: Point<'c>, to: Point<'c>) -> Self {
        Self { from, to, when: None, at: None }
    }

    pub(crate) fn when(self, when: Option<impl Into<Cow<'c, str>>>) -> Self {
        Self { when: when.map(Into::into), ..self }
    }

    pub(crate) fn at(self, at: &'c Span) -> Self {
        Self { at: Some(at), ..self }
    }
}

impl<'c> ChatFlow<'c> {
    pub(crate) const fn of(steps: Vec<FlowStep<'c>>) -> Self {
        Self { steps, selected: None, end: None }
    }

    /// Everyone can follow everyone; `how` says how the next speaker is selected.
    pub(crate) fn selected(how: impl Into<Cow<'static, str>>) -> Self {
        Self { steps: Vec::new(), selected: Some(how.into()), end: None }
    }

    /// One after the other, once.
    pub(crate) fn once(speakers: impl IntoIterator<Item = &'c At<Name>>) -> Self {
        let mut flow = Self::of(Vec::new());
        let last = flow.chain(speakers);
        flow.steps.push(FlowStep::new(last, Point::End));
        flow
    }

    /// One after the other, repeatedly.
    pub(crate) fn repeated(speakers: impl IntoIterator<Item = &'c At<Name>>) -> Self {
        let mut flow = Self::of(Vec::new());
        let last = flow.chain(speakers);
        if let Some(first) = flow.steps.first().map(|step| step.to) {
            flow.steps.push(FlowStep::new(last, first));
        }
        flow
    }

    /// The same, where the pattern ends the chat: `end` says when.
    pub(crate) fn ended_by(self, end: &'static str) -> Self {
        Self { end: Some(end), ..self }
    }

    fn chain(&mut self, speakers: impl IntoIterator<Item = &'c At<Name>>) -> Point<'c> {
        let mut last = Point::Start;
        for speaker in speakers {
            let next = Point::Speaker(&speaker.value);
            self.steps.push(FlowStep::new(last, next));
            last = next;
        }
        last
    }

    /// Which point leads where, to look for ways.
    pub(crate) fn ways(&self) -> Ways<'c> {
        let mut next: BTreeMap<Point<'c>, Vec<Point<'c>>> = BTreeMap::new();
        for step in &self.steps {
            next.entry(step.from).or_default().push(step.to);
        }
        Ways(next)
    }
}

/// Where each point leads.
pub(crate) struct Ways<'c>(BTreeMap<Point<'c>, Vec<Point<'c>>>);

impl<'c> Ways<'c> {
    /// The points that can be reached from `from`, these included.
    pub(crate) fn reached(&self, from: impl IntoIterator<Item = Point<'c>>) -> BTreeSet<Point<'c>> {
        let mut open: Vec<Point<'c>> = from.into_iter().collect();
        let mut reached: BTreeSet<Point<'c>> = open.iter().copied().collect();
        while let Some(at) = open.pop() {
            open.extend(self.0.get(&at).into_iter().flatten().copied().filter(|to| reached.insert(*to)));
        }
        reached
    }

    /// Whether a step leads on from `point`.
    pub(crate) fn leads_on(&self, point: Point<'c>) -> bool {
        self.0.contains_key(&point)
    }

    /// The speakers among `reached` from whom no way leads to an end: neither the end of the chat nor a speaker after whom no step follows.
    pub(crate) fn trapped(&self, reached: &BTreeSet<Point<'c>>) -> Vec<&'c Name> {
        let mut back: BTreeMap<Point<'c>, Vec<Point<'c>>> = BTreeMap::new();
        for (from, to) in self.0.iter().flat_map(|(from, next)| next.iter().map(move |to| (from, to))) {
            back.entry(*to).or_default().push(*from);
        }
        let ends = reached.iter().copied().filter(|point| *point == Point::End || !self.leads_on(*point));
        let can_end = Ways(back).reached(ends);
        reached.difference(&can_end).filter_map(|point| point.speaker()).collect()
    }
}
