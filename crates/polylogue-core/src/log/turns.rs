//! The turns of a run: how many have begun, and how many have ended.

use super::event::{Body, Event};
use super::summary::add_turn;
use crate::{Name, Path, TurnRequest};

/// The turns of agents in all chats, without private ones. The turn of a nested chat is not one: those within it are.
#[derive(Default)]
pub(crate) struct TurnCount {
    /// Turns that have ended.
    pub(crate) ended: u64,
    /// Turns that have begun, without those that will never end: they were rolled back, or their chat is over.
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
                    self.open.push((event.chat.clone(), request.who.clone(), event.seq));
                }
            }
            // The turns of its participants count instead of the turn of the chat.
            Body::Opened(_) if !event.chat.is_root() && event.chat.is_first() => {
                self.begun = self.begun.saturating_sub(1);
                let outer = event.chat.ancestors().next().zip(event.chat.owner());
                self.open.retain(|(at, who, _)| {
                    outer.as_ref().is_none_or(|outer| (at, who) != (&outer.0, &outer.1))
                });
            }
            Body::Message(message) => self.end(&event.chat, &message.from),
            Body::Passed { who } | Body::Left { who, .. } | Body::Stopped { who, .. } => {
                self.end(&event.chat, who)
            }
            // Background tasks are in none of its turns: those that the turns started are rolled back as well.
            Body::RolledBack { since } => self.forget(|path, begun| {
                let is_background = path.as_background_of(&event.chat).is_some();
                begun >= *since && is_in(path, &event.chat) && !is_background
            }),
            // Those of the outermost chat, and of one in which an agent is called, continue when it is opened again.
            Body::Closed { .. } if event.chat.owner().is_some() => {
                self.forget(|path, _| is_in(path, &event.chat));
            }
            Body::BackgroundEnded(result) => {
                let task = event.chat.background(&result.who, result.number);
                self.forget(|path, _| is_in(path, &task));
            }
            _ => {}
        }
    }

    fn end(&mut self, at: &Path, who: &Name) {
        self.open.retain(|(path, name, _)| path != at || name != who);
        // A turn can be given up in the middle of a chat that it runs, or of a call.
        self.forget(|path, _| path.is_run_by(at, who));
    }

    /// Forgets open turns that never end: those whose chats and beginnings `are` such.
    fn forget(&mut self, are: impl Fn(&Path, u64) -> bool) {
        let before = self.open.len();
        self.open.retain(|(path, _, begun)| !are(path, *begun));
        self.begun = self.begun.saturating_sub((before - self.open.len()) as u64);
    }
}

/// Whether `path` is that of `chat` or of a chat within it.
pub(super) fn is_in(path: &Path, chat: &Path) -> bool {
    path == chat || path.is_within(chat)
}

/// How many turns whose messages others see begin with these events.
fn turns_begun(bodies: &[Body]) -> u64 {
    let begun = |body: &Body| match body {
        Body::TurnStarted { turns } => public(turns).count() as u64,
        _ => 0,
    };
    bodies.iter().map(begun).sum()
}

/// How many turns whose messages others see a step with these events takes: those that begin, or the one for which a private turn selects a
/// speaker.
pub(crate) fn turns_taken(bodies: &[Body]) -> u64 {
    let selects = |body: &Body| match body {
        Body::TurnStarted { turns } => turns.iter().any(TurnRequest::selects),
        _ => false,
    };
    turns_begun(bodies).max(bodies.iter().any(selects).into())
}

/// The requests whose messages others see.
fn public(turns: &[TurnRequest]) -> impl Iterator<Item = &TurnRequest> {
    turns.iter().filter(|request| !request.to.is_private())
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::{BackgroundResult, BackgroundStatus, Choice, Chooser, StopReason, Timestamp};

    #[test]
    fn a_selection_takes_the_turn_of_the_speaker_and_other_private_turns_take_none() {
        let name = |text: &str| Name::new(text).unwrap();
        let by = |who: &str| Choice { of: vec![name("Ann")], by: Chooser::Agent(name(who)), reply: None };
        let private = || TurnRequest::private(name("Sel"), "?");
        let public = || TurnRequest::to_all(name("Ann"));
        for (turns, begun, taken) in [
            (vec![private().with_choice(by("Sel"))], 0, 1),
            (vec![private()], 0, 0),
            (vec![private().with_choice(by("Ann"))], 0, 0),
            (vec![public().with_choice(by("Sel"))], 1, 1),
            (vec![public(), private()], 1, 1),
            (vec![public(), public()], 2, 2),
        ] {
            let bodies = [Body::TurnStarted { turns }];
            assert_eq!((turns_begun(&bodies), turns_taken(&bodies)), (begun, taken), "{bodies:?}");
        }
    }

    #[test]
    fn open_turns_of_a_chat_that_is_over_do_not_count() {
        let name = |text: &str| Name::new(text).unwrap();
        let (root, host) = (Path::root(), name("Host"));
        let (nested, called) = (root.child(&host, 1), root.agent("Host.Helper").unwrap());
        let (task, inner) = (root.background(&host, 1), root.background(&host, 1).child(&host, 1));
        let begin = |at: &Path| {
            let turns = ["Ann", "Bob"].map(|who| TurnRequest::to_all(name(who)));
            (at.clone(), Body::TurnStarted { turns: turns.to_vec() })
        };
        let said = |at: &Path| (at.clone(), Body::Passed { who: name("Ann") });
        let closed =
            |at: &Path| (at.clone(), Body::Closed { reason: StopReason::Finished, summary: Arc::from("") });
        let ended = BackgroundResult {
            who: host.clone(),
            id: "Host-1".into(),
            status: BackgroundStatus::Cancelled,
            parts: Vec::new(),
            reason: None,
            number: 1,
            awaited: false,
            turn: false,
        };
        let ended = (root.clone(), Body::BackgroundEnded(ended));
        for (bodies, begun) in [
            (vec![begin(&nested), said(&nested), closed(&nested)], 1),
            (vec![begin(&nested), begin(&nested.child(&host, 1)), closed(&nested)], 0),
            (vec![begin(&task), begin(&inner), said(&inner), ended.clone()], 1),
            (vec![begin(&root), said(&root), ended], 2),
            (vec![begin(&nested), (root.clone(), Body::Passed { who: host.clone() })], 1),
            (vec![begin(&called), (root.clone(), Body::Passed { who: host })], 1),
            (vec![begin(&nested), (root.clone(), Body::RolledBack { since: 0 })], 0),
            (vec![begin(&task), (root.clone(), Body::RolledBack { since: 0 })], 2),
            (vec![begin(&task), (task.clone(), Body::RolledBack { since: 0 })], 0),
            // Their turns continue when they are opened again.
            (vec![begin(&called), closed(&called)], 2),
            (vec![begin(&root), closed(&root)], 2),
        ] {
            let mut turns = TurnCount::default();
            for (seq, (at, body)) in (0..).zip(bodies.clone()) {
                turns.add(&Event { seq, chat: at, time: Timestamp(0), ran_ms: 0, inbox: None, body });
            }
            assert_eq!(turns.begun(), begun, "{bodies:?}");
        }
    }
}
