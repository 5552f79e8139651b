//! Lines for what only some receive: prompts, replies of private turns.

use polylogue_core::{Audience, Body, HistoryEntry, Message, Name, Part, Path};

use super::{Key, Renderer};
use crate::screen::style::Style;
use crate::screen::text::{Line, folded};
use crate::screen::{again, value};

impl Renderer {
    /// A text that is no message: folded to a line, or whole.
    pub(super) fn private(&mut self, at: &Path, label: &str, text: &str) {
        if self.format.whole && text.trim().contains('\n') {
            self.note(at, label.trim_end(), Style::DIM);
            let lines = self.prose(at, text, Style::DIM);
            self.put(at, &lines);
        } else {
            let room = self.width(at).unwrap_or(usize::MAX).saturating_sub(label.chars().count());
            let text = Line::new(&folded(text), Style::DIM).fit(room).text();
            self.note(at, &format!("{label}{text}"), Style::DIM);
        }
    }

    /// A prompt of an agent's own program to its model. In a private turn it waits for the reply: no one who
    /// follows a run wants to read again and again how agents are asked about their tasks.
    pub(super) fn prompted(&mut self, at: &Path, who: &Name, text: &str) {
        let key = (at.clone(), who.clone());
        self.draft(&key);
        let is_alone =
            matches!(self.audience(&key), Audience::Only(names) if names.iter().all(|name| name == who));
        if is_alone && !self.format.whole {
            self.prompts.entry(key).or_default().push(text.to_owned());
        } else {
            self.private(at, &format!("{who} is prompted: "), text);
        }
    }

    /// Tells what an agent was told alone, unless it was how it was asked about its task.
    pub(super) fn prompts_of(&mut self, at: &Path, message: &Message) {
        let key = (at.clone(), message.from.clone());
        if value::decision(&message.parts).is_some() {
            self.prompts.remove(&key);
        }
        self.prompts(&key);
    }

    pub(super) fn remembered(&mut self, at: &Path, who: &Name, words: &[HistoryEntry]) {
        if let Some(HistoryEntry::Sent(text)) = words.last() {
            self.memories.insert((at.clone(), who.clone()), text.as_ref().to_owned());
        }
    }

    /// Whether an agent that passes still remembers a reply: one that learns of a task, or of another's. Shown only in
    /// whole output.
    pub(super) fn learnt(&mut self, at: &Path, who: &Name) -> bool {
        let key = (at.clone(), who.clone());
        let Some(words) = self.memories.remove(&key) else { return false };
        self.end_turn(&key);
        if self.format.whole {
            self.private(at, &format!("{who} remembers to have said: "), &words);
        }
        true
    }

    /// Tells what those were told in whose turns the chat `at` begins.
    pub(super) fn prompts_around(&mut self, at: &Path) {
        let is_around = |key: &&Key| at.ancestors().any(|around| around == key.0);
        let mut around: Vec<Key> = self.prompts.keys().filter(is_around).cloned().collect();
        around.sort();
        around.iter().for_each(|key| self.prompts(key));
    }

    /// Tells what an agent was told alone.
    pub(super) fn prompts(&mut self, key: &Key) {
        for text in self.prompts.remove(key).unwrap_or_default() {
            self.private(&key.0, &format!("{} is prompted: ", key.1), &text);
        }
    }

    /// A private reply waits for its effect; a decision about a task is shown in a few words.
    pub(super) fn aside(&mut self, at: &Path, message: &Message) {
        if let Some(decision) = value::decision(&message.parts) {
            return self.note(at, &format!("{} (aside): {}", message.from, folded(&decision)), Style::DIM);
        }
        let text = message.plain();
        let data = message.parts.iter().find_map(|part| match part {
            Part::Data(value) if text.trim().is_empty() => Some(value.to_string()),
            _ => None,
        });
        let text = data.unwrap_or_else(|| text.into_owned());
        self.waiting = Some((at.clone(), format!("{} (aside): ", message.from), text));
    }

    /// Tells what waits, unless `next` tells it in full: a summary said aside, an answer that is then said.
    pub(super) fn release(&mut self, next: Option<&Body>) {
        let Some((at, label, text)) = self.waiting.take() else { return };
        if !next.is_some_and(|next| again::tells(next, &text)) {
            self.private(&at, &label, &text);
        }
    }
}
