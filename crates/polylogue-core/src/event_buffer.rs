//! What a log holds in memory: the events so far, and figures of them.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::origins::Origins;
use crate::{Body, ChargeReason, Event, Name, Path, Timestamp, TotalUsage};

/// The events of a log, and those that are about to follow them.
#[derive(Default)]
pub(crate) struct EventBuffer {
    /// What the store has.
    pub(crate) events: Vec<Arc<Event>>,
    /// What comes next, and is not in the store yet.
    staged: Vec<Arc<Event>>,
    pub(crate) tally: Tally,
    /// An append was begun and not seen to end: the store knows better what it has.
    pub(crate) doubtful: bool,
}

impl EventBuffer {
    /// The `seq` of the next event.
    pub(crate) fn next_seq(&self) -> u64 {
        (self.events.len() + self.staged.len()) as u64
    }

    /// Makes events of `bodies`, to follow those so far.
    pub(crate) fn stage(
        &mut self,
        at: &Path,
        (time, ran_ms): (Timestamp, u64),
        bodies: impl IntoIterator<Item = Body>,
    ) -> Vec<Arc<Event>> {
        let first = self.next_seq();
        // All of them before the first is taken in: those who act at the same time do not hear each other.
        let bodies: Vec<Body> = bodies.into_iter().map(|body| self.tally.origins.mark(at, body)).collect();
        let event = |(seq, body)| Arc::new(Event { seq, at: at.clone(), time, ran_ms, body });
        let batch: Vec<Arc<Event>> = (first..).zip(bodies).map(event).collect();
        for event in &batch {
            self.tally.add(event);
            self.staged.push(Arc::clone(event));
        }
        batch
    }

    /// What is to be given to the store.
    pub(crate) fn staged(&self) -> &[Arc<Event>] {
        &self.staged
    }

    /// The store has what was staged. Returns it.
    pub(crate) fn settle(&mut self) -> &[Arc<Event>] {
        let first = self.events.len();
        self.events.append(&mut self.staged);
        self.events.get(first..).unwrap_or_default()
    }

    /// Forgets what was staged, and takes in what the store has more.
    pub(crate) fn take_in(&mut self, more: impl IntoIterator<Item = Event>) {
        self.staged.clear();
        self.events.extend(more.into_iter().map(Arc::new));
        self.tally = Tally::default();
        self.events.iter().for_each(|event| self.tally.add(event));
    }
}

/// How many model calls count in the events before `first`.
pub(crate) fn calls_before(events: &[Arc<Event>], first: u64) -> u64 {
    let mut spent = TotalUsage::default();
    for event in events.iter().take_while(|event| event.seq < first) {
        match &event.body {
            Body::ModelReplied(sample) => spent.add(sample),
            Body::Charged(charge) => spent.charge(charge),
            Body::ToolReturned { outcome, .. } => outcome.used.iter().for_each(|used| spent.add_tool(used)),
            _ => {}
        }
    }
    spent.counted_calls()
}

/// Figures of a whole run.
#[derive(Default)]
pub(crate) struct Tally {
    /// What was spent.
    pub(crate) spent: TotalUsage,
    /// Turns of agents in all chats.
    pub(crate) turns: u64,
    /// Finished model calls of each agent.
    pub(crate) calls: BTreeMap<Name, u64>,
    /// Failed turns of each agent, and model calls that were refused without failing the turn.
    pub(crate) failures: BTreeMap<Name, u64>,
    /// A model whose cost is unknown.
    pub(crate) unpriced: Option<Arc<str>>,
    /// Whose next replies have their upper bound counted, because their usage is unknown.
    bounded: Vec<(Path, Name)>,
    /// The last event with which the outermost chat was closed.
    pub(crate) closed: Option<u64>,
    /// Who has read words from outside.
    pub(crate) origins: Origins,
}

impl Tally {
    fn add(&mut self, event: &Event) {
        self.origins.add(event);
        match &event.body {
            Body::ModelReplied(sample) => {
                self.spent.add(sample);
                *self.calls.entry(sample.who.clone()).or_default() += 1;
                let is_bounded = self.is_bounded(&event.at, &sample.who);
                if sample.cost.is_none() && !sample.cached && !is_bounded {
                    self.unpriced = Some(Arc::clone(&sample.model));
                }
            }
            Body::Charged(charge) => {
                self.spent.charge(charge);
                if charge.why == ChargeReason::Unreported && charge.cost.is_some() {
                    self.bounded.push((event.at.clone(), charge.who.clone()));
                }
            }
            Body::ToolReturned { outcome, .. } => {
                for used in &outcome.used {
                    self.spent.add_tool(used);
                    if used.cost.is_none() {
                        self.unpriced = Some(Arc::clone(&used.model));
                    }
                }
            }
            Body::Failed { who, .. }
            | Body::CapabilityMissing { who, .. }
            | Body::ContinuationFailed { who, .. } => *self.failures.entry(who.clone()).or_default() += 1,
            Body::Message(message) if message.to.is_private() => {}
            Body::Message(_) | Body::Passed { .. } | Body::Left { .. } | Body::Stopped { .. } => {
                self.turns += 1
            }
            Body::Closed { .. } if event.at.is_root() => self.closed = Some(event.seq),
            // The turn that this chat is will end next; its members' turns are what counts.
            Body::Closed { .. } if event.at.is_first() => self.turns = self.turns.saturating_sub(1),
            _ => {}
        }
    }

    /// Whether the reply of `who` has its upper bound counted.
    fn is_bounded(&mut self, at: &Path, who: &Name) -> bool {
        let found = self.bounded.iter().position(|(path, name)| path == at && name == who);
        found.map(|index| self.bounded.swap_remove(index)).is_some()
    }

    /// How many model calls of `who` came to an end, with a reply or with a turn that failed.
    pub(crate) fn ended(&self, who: &Name) -> u64 {
        [&self.calls, &self.failures].iter().filter_map(|count| count.get(who)).sum()
    }
}
