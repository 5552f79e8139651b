//! What was told before in other words, or while it was written.

use polylogue_core::{Message, ModelReply, Part, Path, plain};

use super::{Key, Renderer};
use crate::screen::again;
use crate::screen::call::{self, calls_tools};
use crate::screen::text::{Line, folded};

impl Renderer {
    /// Called for a message that was shown while it was written: what is left of it to show.
    pub(crate) fn said_already(&mut self, at: &Path, message: &Message) -> Vec<Line> {
        let key = (at.clone(), message.from.clone());
        self.prompts_of(at, message);
        self.extras(at, &message.from, &message.parts);
        self.last_said = message.in_words().into_owned();
        self.drafts.remove(&key);
        self.end_turn(&key);
        std::mem::take(&mut self.out)
    }

    /// Called for a reply that was shown while it was written.
    pub(crate) fn sampled_already(&mut self, key: &Key, sample: &ModelReply) {
        let thoughts = sample.parts.iter().filter_map(|part| match part {
            Part::Thought(text) => Some((key.clone(), text.to_string())),
            _ => None,
        });
        self.thoughts.extend(thoughts);
        if calls_tools(&sample.parts) {
            self.narrated.insert(key.clone(), plain(&sample.parts).into_owned());
        }
    }

    /// What `message` says besides the results of the code that its author ran, where these were told: nothing if it does not have
    /// them, or if they were left to it.
    pub(super) fn besides_results(&mut self, key: &Key, message: &Message) -> Option<Vec<Part>> {
        let held = self.held.iter().filter(|(turn, ..)| turn == key).map(|(_, _, outcome)| outcome.clone());
        if again::besides_results(message, &held.collect::<Vec<_>>()).is_some() {
            self.held.retain(|(turn, ..)| turn != key);
            return None;
        }
        self.tell_held(key);
        let told = self.returned.iter().filter(|(turn, _)| turn == key).map(|(_, outcome)| outcome.clone());
        let told: Vec<_> = told.collect();
        again::besides_results(message, &told).filter(|_| self.format.whole)
    }

    /// Notes that a message was said all of which was told.
    pub(super) fn known(&mut self, at: &Path, message: &Message) {
        self.origin(at, &message.outside);
        self.last_said = message.plain().into_owned();
    }

    /// Tells the results that no message had.
    pub(super) fn tell_held(&mut self, key: &Key) {
        let (of_turn, others) =
            std::mem::take(&mut self.held).into_iter().partition(|(turn, ..)| turn == key);
        self.held = others;
        let of_turn: Vec<_> = of_turn;
        for (turn, wanted, outcome) in of_turn {
            let to = self.audience(&turn);
            self.begin(&turn, &to);
            let width = self.width(&turn.0);
            let line = call::finished(&wanted, &outcome, std::time::Duration::ZERO, width);
            self.put(&turn.0, &[line]);
            self.pictures_of(&turn.0, &outcome);
        }
    }

    /// Whether `message` has the words of a handoff that were told with its call.
    pub(super) fn was_handed(&mut self, at: &Path, message: &Message) -> bool {
        again::is_of_handoff(self.handed.take(), at, message)
    }

    /// Remembers the words of a handoff if `line`, or what stands below it, has all of them.
    pub(super) fn note_handed(&mut self, key: &Key, words: &str, line: &Line) {
        let is_shown = self.format.whole || line.text().contains(&folded(words));
        self.handed = is_shown.then(|| (key.clone(), words.to_owned()));
    }
}
