//! Replays a log along a graph.

use crate::stop::Reason;
use polylogue_core::{Choice, Chooser, Name, Step, StopReason, Transcript, TurnRequest};

use super::edge::{Link, When};
use super::{CheckedGraph, Join};
use crate::policies::replay::{Kind, Replay, ReplayStep};

/// The next step: the first along the graph that is not in the log.
pub(super) fn next(graph: &CheckedGraph, chat: &Transcript) -> Step {
    if let Some((_, reason)) = chat.ended_by() {
        return Step::close(reason.clone(), chat);
    }
    let mut past = Replay::of(chat);
    let mut place = Place::new(graph, chat);
    let mut due: Vec<Due> = graph.starts.iter().map(|node| Due { node: *node, of: None }).collect();
    while !due.is_empty() {
        let mut turns = Vec::new();
        for Due { node, .. } in &due {
            let taken = graph.name(*node).and_then(|who| past.take(Kind::Room, who));
            turns.extend(taken.map(|turn| (*node, turn)));
        }
        if turns.len() < due.len() {
            return cue(graph, chat, &due, &turns);
        }
        // Conditions see all messages of parallel turns.
        let end = turns.iter().map(|(_, turn)| turn.end).max().unwrap_or_default();
        for (node, turn) in &turns {
            place.leave(*node, &turn.text(), end);
        }
        due = place.due();
    }
    Step::close(place.reason(), chat)
}

/// A node that is ready.
struct Due {
    node: usize,
    /// The alternatives, where a condition chose.
    of: Option<Vec<Name>>,
}

/// Requests the missing turns.
fn cue(graph: &CheckedGraph, chat: &Transcript, due: &[Due], ended: &[(usize, ReplayStep<'_>)]) -> Step {
    let mut cues = Vec::new();
    for Due { node, of } in due {
        let Some(who) = graph.name(*node).filter(|_| ended.iter().all(|(done, ..)| done != node)) else {
            continue;
        };
        if let Some((who, why)) = chat.left().iter().find(|(gone, _)| gone == who) {
            return Step::close(StopReason::Left { who: who.clone(), why: why.clone() }, chat);
        }
        let cue = TurnRequest::to_all(who.clone());
        cues.push(match of {
            Some(of) => cue.with_choice(Choice { of: of.clone(), by: Chooser::Rule, reply: None }),
            None => cue,
        });
    }
    match <[TurnRequest; 1]>::try_from(cues) {
        Ok([cue]) => Step::Turn(cue),
        Err(cues) => Step::Parallel(cues),
    }
}

/// The position of a run in its graph.
struct Place<'g> {
    graph: &'g CheckedGraph,
    chat: &'g Transcript,
    /// The transcript at this point, and its number of events.
    past: Transcript,
    seen: usize,
    /// For each edge, how often it fired, and whether its target has not run since.
    led: Vec<(u64, bool)>,
    /// The node at which the run got stuck.
    stuck: Option<usize>,
}

impl<'g> Place<'g> {
    fn new(graph: &'g CheckedGraph, chat: &'g Transcript) -> Self {
        let past = Transcript::new(chat.at().clone());
        Self { graph, chat, past, seen: 0, led: vec![(0, false); graph.links.len()], stuck: None }
    }

    /// Applies the chat's events up to and including the one at `end`.
    fn catch_up(&mut self, end: usize) {
        for event in self.chat.events().get(self.seen..=end).unwrap_or_default() {
            // Events that one transcript accepted are valid for another.
            let _ = self.past.apply(event.clone());
        }
        self.seen = self.seen.max(end + 1);
    }

    /// `node` had its turn, which ended with the event at `end`: its edges fire.
    fn leave(&mut self, node: usize, said: &str, end: usize) {
        let graph = self.graph;
        if graph.from(node).any(|(_, link)| matches!(link.when, When::Given(_))) {
            self.catch_up(end);
        }
        let past = &self.past;
        let mut leads = self.open(node, |when| match when {
            When::Always => true,
            When::Said(holds) => holds(said),
            When::Given(holds) => holds(past),
            When::Otherwise => false,
        });
        if leads.is_empty() {
            leads = self.open(node, |when| matches!(when, When::Otherwise));
        }
        if leads.is_empty() && graph.from(node).next().is_some() {
            self.stuck = Some(node);
        }
        for index in leads {
            if let Some((led, unheard)) = self.led.get_mut(index) {
                *led += 1;
                *unheard = true;
            }
        }
    }

    /// The edges of `node` that can fire once more and whose condition `holds`.
    fn open(&self, node: usize, holds: impl Fn(&When) -> bool) -> Vec<usize> {
        let led = |index: usize| self.led.get(index).map_or(0, |(led, _)| *led);
        let open = |index: usize, link: &Link| link.at_most.is_none_or(|most| led(index) < most);
        let open = self.graph.from(node).filter(|(index, link)| open(*index, link) && holds(&link.when));
        open.map(|(index, _)| index).collect()
    }

    /// The nodes that are ready, in order. Consumes the edges that led to them.
    fn due(&mut self) -> Vec<Due> {
        let nodes = 0..self.graph.nodes.len();
        let under_way: Vec<usize> =
            nodes.filter(|node| self.heard(*node).any(|(_, unheard)| unheard)).collect();
        let is_due = |node: &&usize| self.is_due(**node, &under_way);
        let due: Vec<Due> = under_way.iter().filter(is_due).map(|node| self.called(*node)).collect();
        for (link, (_, unheard)) in self.graph.links.iter().zip(&mut self.led) {
            *unheard &= due.iter().all(|due| due.node != link.to);
        }
        due
    }

    /// The incoming edges of `node`, and whether they have fired and are not consumed.
    fn heard(&self, node: usize) -> impl Iterator<Item = (&Link, bool)> {
        let links = self.graph.links.iter().zip(&self.led);
        links.filter(move |(link, _)| link.to == node).map(|(link, (_, unheard))| (link, *unheard))
    }

    /// Whether a node is ready, given all nodes that are active.
    fn is_due(&self, node: usize, under_way: &[usize]) -> bool {
        let leads = |from: usize| {
            let leads = self.graph.leads.get(from).and_then(|leads| leads.get(node));
            from != node && leads.copied().unwrap_or(false)
        };
        self.heard(node).any(|(link, unheard)| unheard && link.back)
            || match self.graph.joins.get(node).copied().unwrap_or_default() {
                Join::Any => true,
                Join::All => self.heard(node).filter(|(link, _)| !link.back).all(|(_, unheard)| unheard),
                Join::Settled => !under_way.iter().any(|from| leads(*from)),
            }
    }

    /// The node with its alternatives, if a condition led to it.
    fn called(&self, node: usize) -> Due {
        let led =
            self.graph.links.iter().zip(&self.led).find(|(link, (_, unheard))| {
                link.to == node && *unheard && !matches!(link.when, When::Always)
            });
        let others = |from: usize| {
            self.graph.from(from).filter_map(|(_, link)| self.graph.name(link.to).cloned()).collect()
        };
        Due { node, of: led.map(|(link, _)| others(link.from)) }
    }

    /// Why no node is ready.
    fn reason(&self) -> StopReason {
        let waiting = self.graph.links.iter().zip(&self.led).find(|(_, (_, unheard))| *unheard);
        let after = self.stuck.or(waiting.map(|(link, _)| link.from)).and_then(|node| self.graph.name(node));
        match after {
            None => StopReason::Finished,
            Some(who) => StopReason::from(Reason::NoSpeaker { after: Some(who.clone()) }),
        }
    }
}
