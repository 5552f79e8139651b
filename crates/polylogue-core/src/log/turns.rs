//! The turns of a run: how many have begun, and how many have ended.

use super::event::{Body, Event};
use super::summary::add_turn;
use crate::{Name, Path, TurnRequest};

/// The turns of agents in all chats, without private ones. The turn of a nested chat is not one: those within it are.
#[derive(Default)]
pub(crate) struct TurnCount {
    /// Turns that have ended.
    pub(crate) ended: u64,
    /// Turns that have begun, those that were rolled back before their end not included.
    begun: u64,
    /// The open turns, with the `seq` of their beginnings.
    open: Vec<(Path, Name, u64)>,
}

impl TurnCount {
    /// How many have begun.
    pub(crate) fn begun(&self) -> u64 {
        self.begun.max(self.ended)
    }

    pub(crate) fn add(&mut self, event: &Event) {
        add_turn(&mut self.ended, event);
        match &event.body {
            Body::TurnStarted { turns } => {
                for request in public(turns) {
                    self.begun += 1;
                    self.open.push((event.at.clone(), request.who.clone(), event.seq));
                }
            }
            // The turns of its participants count instead of the turn of the chat.
            Body::Opened(_) if !event.at.is_root() && event.at.is_first() => {
                self.begun = self.begun.saturating_sub(1);
                let outer = event.at.ancestors().next().zip(event.at.owner());
                self.open.retain(|(at, who, _)| {
                    outer.as_ref().is_none_or(|outer| (at, who) != (&outer.0, &outer.1))
                });
            }
            Body::Message(message) => self.end(&event.at, &message.from),
            Body::Passed { who } | Body::Left { who, .. } | Body::Stopped { who, .. } => {
                self.end(&event.at, who)
            }
            Body::RolledBack { since } => {
                let before = self.open.len();
                let is_there = |at: &Path| *at == event.at || at.is_within(&event.at);
                self.open.retain(|(at, _, begun)| begun < since || !is_there(at));
                self.begun = self.begun.saturating_sub((before - self.open.len()) as u64);
            }
            _ => {}
        }
    }

    fn end(&mut self, at: &Path, who: &Name) {
        self.open.retain(|(path, name, _)| path != at || name != who);
    }
}

/// How many turns whose messages others see begin with these events.
pub(crate) fn turns_begun(bodies: &[Body]) -> u64 {
    let begun = |body: &Body| match body {
        Body::TurnStarted { turns } => public(turns).count() as u64,
        _ => 0,
    };
    bodies.iter().map(begun).sum()
}

/// The requests whose messages others see.
fn public(turns: &[TurnRequest]) -> impl Iterator<Item = &TurnRequest> {
    turns.iter().filter(|request| !request.to.is_private())
}
