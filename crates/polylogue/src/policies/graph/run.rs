//! Replays a log along a graph.

use polylogue_core::{
    Choice, Chooser, EarlierTranscript, Name, Policy, Step, StopReason, Transcript, TurnRequest,
};

use super::checked::{AfterLeaving, Graph, Join};
use super::edge::{EdgeCondition, Link};
use crate::policies::replay::{Kind, Replay, ReplayStep, is_present};
use crate::stop::LibraryStopReason;

impl Policy for Graph {
    fn next(&self, chat: &Transcript) -> Step {
        match chat.ended_by() {
            Some((_, reason)) => Step::close(reason.clone(), chat),
            None => ready(self, chat)
                .and_then(|turns| {
                    Step::turns(turns).ok_or_else(|| StopReason::from(LibraryStopReason::GraphComplete))
                })
                .unwrap_or_else(|reason| Step::close(reason, chat)),
        }
    }
}

/// The next turns along the graph that are not in the log, in the order of the nodes; without any, why the chat ends.
pub(crate) fn ready(graph: &Graph, chat: &Transcript) -> Result<Vec<TurnRequest>, StopReason> {
    let mut past = Replay::of(chat);
    let mut position = Position::new(graph, chat);
    let mut due: Vec<ReadyNode> =
        graph.starts.iter().map(|node| ReadyNode { node: *node, of: None }).collect();
    // Nodes whose turns are background tasks that have not ended.
    let mut working: Vec<(usize, &Name)> = Vec::new();
    loop {
        let is_stuck = due.is_empty();
        let (mut ended, mut missing) = (Vec::new(), Vec::new());
        for due in due {
            let Some(who) = graph.name(due.node) else { continue };
            match past.take(Kind::Chat, who) {
                None if is_present(chat, who) || graph.after_leaving == AfterLeaving::Close => {
                    missing.push(due.request(who));
                }
                Some(turn) if turn.begins => working.push((due.node, who)),
                turn => ended.push((due.node, turn)),
            }
        }
        if !missing.is_empty() {
            let left = missing.iter().find_map(|turn| chat.left().iter().find(|(gone, _)| *gone == turn.who));
            let reason = left.map(|(who, why)| StopReason::Left { who: who.clone(), why: why.clone() });
            return reason.map_or(Ok(missing), Err);
        }
        // Conditions see all messages of parallel turns.
        let end = ended.iter().flat_map(|(_, turn)| turn).map(|turn| turn.end).max().unwrap_or_default();
        for (node, turn) in &ended {
            position.leave(*node, &turn.as_ref().map(ReplayStep::text).unwrap_or_default(), end);
        }
        if !take_results(&mut past, &mut position, &mut working, is_stuck) && is_stuck {
            // The chat waits for background tasks.
            return Err(if working.is_empty() {
                position.reason()
            } else {
                LibraryStopReason::GraphComplete.into()
            });
        }
        due = position.due(&working);
    }
}

/// Lets nodes whose turns were background tasks fire, as far as their results were there before the next step, or, if the run `waits`
/// for one, at least one of them. Returns whether any was there.
fn take_results(
    past: &mut Replay<'_>,
    position: &mut Position<'_>,
    working: &mut Vec<(usize, &Name)>,
    waits: bool,
) -> bool {
    let mut is_any = false;
    while let Some(result) =
        past.take_result(|who| working.iter().any(|(_, of)| *of == who), waits && !is_any)
    {
        is_any = true;
        if let Some(at) = working.iter().position(|(_, who)| *who == result.who) {
            position.leave(working.remove(at).0, &result.text(), result.end);
        }
    }
    is_any
}

/// A node that is ready.
struct ReadyNode {
    node: usize,
    /// The alternatives, where a condition chose.
    of: Option<Vec<Name>>,
}

impl ReadyNode {
    fn request(self, who: &Name) -> TurnRequest {
        let request = TurnRequest::to_all(who.clone());
        match self.of {
            Some(of) => request.with_choice(Choice { of, by: Chooser::Rule, reply: None }),
            None => request,
        }
    }
}

/// The position of a run in its graph.
struct Position<'g> {
    graph: &'g Graph,
    /// The chat at this point, where conditions read it.
    past: EarlierTranscript<'g>,
    /// For each edge, how often it fired, and whether its target has not run since.
    fired: Vec<(u64, bool)>,
    /// The node at which the run got stuck.
    stuck: Option<usize>,
}

impl<'g> Position<'g> {
    fn new(graph: &'g Graph, chat: &'g Transcript) -> Self {
        let past = EarlierTranscript::of(chat);
        Self { graph, past, fired: vec![(0, false); graph.links.len()], stuck: None }
    }

    /// `node` had its turn, which ended with the event at `end`: its edges fire.
    fn leave(&mut self, node: usize, said: &str, end: usize) {
        let graph = self.graph;
        if graph.from(node).any(|(_, link)| matches!(link.when, EdgeCondition::Transcript(_))) {
            self.past.advance(end);
        }
        let past = self.past.transcript();
        let mut open = self.open(node, |when| match when {
            EdgeCondition::Always => true,
            EdgeCondition::Message(holds) => holds(said),
            EdgeCondition::Transcript(holds) => holds(past),
            EdgeCondition::Otherwise => false,
        });
        if open.is_empty() {
            open = self.open(node, |when| matches!(when, EdgeCondition::Otherwise));
        }
        if open.is_empty() && graph.from(node).next().is_some() {
            self.stuck = Some(node);
        }
        for index in open {
            if let Some((times, waiting)) = self.fired.get_mut(index) {
                *times += 1;
                *waiting = true;
            }
        }
    }

    /// The edges of `node` that can fire once more and whose condition `holds`.
    fn open(&self, node: usize, holds: impl Fn(&EdgeCondition) -> bool) -> Vec<usize> {
        let times = |index: usize| self.fired.get(index).map_or(0, |(times, _)| *times);
        let open = |index: usize, link: &Link| link.max_times.is_none_or(|most| times(index) < most);
        let open = self.graph.from(node).filter(|(index, link)| open(*index, link) && holds(&link.when));
        open.map(|(index, _)| index).collect()
    }

    /// The nodes that are ready while others are `working`, in order. Consumes the edges that led to them.
    fn due(&mut self, working: &[(usize, &Name)]) -> Vec<ReadyNode> {
        let fired = self.graph.links.iter().zip(&self.fired).filter(|(_, (_, waiting))| *waiting);
        let mut active: Vec<usize> = fired.map(|(link, _)| link.to).collect();
        active.sort_unstable();
        active.dedup();
        let running: Vec<usize> =
            active.iter().copied().chain(working.iter().map(|(node, _)| *node)).collect();
        let is_due = |node: &&usize| self.is_due(**node, &running);
        let due: Vec<ReadyNode> = active.iter().filter(is_due).map(|node| self.chosen(*node)).collect();
        for (link, (_, waiting)) in self.graph.links.iter().zip(&mut self.fired) {
            *waiting &= due.iter().all(|due| due.node != link.to);
        }
        due
    }

    /// The incoming edges of `node`, and whether they have fired and are not consumed.
    fn incoming(&self, node: usize) -> impl Iterator<Item = (&Link, bool)> {
        let links = self.graph.links.iter().zip(&self.fired);
        links.filter(move |(link, _)| link.to == node).map(|(link, (_, waiting))| (link, *waiting))
    }

    /// Whether a node is ready, given all nodes that are active.
    fn is_due(&self, node: usize, active: &[usize]) -> bool {
        let leads = |from: usize| {
            let leads = self.graph.leads.get(from).and_then(|leads| leads.get(node));
            from != node && leads.copied().unwrap_or(false)
        };
        self.incoming(node).any(|(link, waiting)| waiting && link.back)
            || match self.graph.joins.get(node).copied().unwrap_or_default() {
                Join::Any => true,
                Join::All => self.incoming(node).filter(|(link, _)| !link.back).all(|(_, waiting)| waiting),
                Join::Settled => !active.iter().any(|from| leads(*from)),
            }
    }

    /// The node with its alternatives, if a condition led to it.
    fn chosen(&self, node: usize) -> ReadyNode {
        let led = self.graph.links.iter().zip(&self.fired).find(|(link, (_, waiting))| {
            link.to == node && *waiting && !matches!(link.when, EdgeCondition::Always)
        });
        let others = |from: usize| {
            self.graph.from(from).filter_map(|(_, link)| self.graph.name(link.to).cloned()).collect()
        };
        ReadyNode { node, of: led.map(|(link, _)| others(link.from)) }
    }

    /// Why no node is ready.
    fn reason(&self) -> StopReason {
        let waiting = self.graph.links.iter().zip(&self.fired).find(|(_, (_, waiting))| *waiting);
        let after = self.stuck.or(waiting.map(|(link, _)| link.from)).and_then(|node| self.graph.name(node));
        match after {
            None => LibraryStopReason::GraphComplete.into(),
            Some(who) => StopReason::from(LibraryStopReason::NoSpeaker { after: Some(who.clone()) }),
        }
    }
}
