//! Messages of others in a view.

use super::View;
use super::words::{calls_as_text, spoken};
use crate::{ExecutedCall, Message, Part};

impl View {
    /// Adds a message: the agent's own ends its turn, and those of others are received.
    pub(super) fn add_message(&mut self, message: &Message) {
        if message.from == self.me {
            return self.end_turn(&message.parts);
        }
        if !message.to.includes(&self.me) {
            return;
        }
        let taken = self.take_outcomes(&message.parts);
        let parts = self.introduced(message, &taken);
        if !parts.is_empty() {
            self.receive(parts);
        }
        self.receive_deferred();
    }

    /// Takes the results of calls that the agent asked others to execute. Returns the ids of the calls.
    pub(super) fn take_outcomes(&mut self, parts: &[Part]) -> Vec<String> {
        let mut taken = Vec::new();
        for part in parts {
            if let Part::ToolResult(answer) = part
                && answer.to == self.me
                && let Some((_, slot)) = self.awaited.iter_mut().find(|(call, _)| call.id == answer.id)
            {
                slot.get_or_insert_with(|| answer.result.clone());
                taken.push(answer.id.clone());
            }
        }
        taken
    }

    pub(super) fn receive(&mut self, parts: Vec<Part>) {
        match &mut self.missed {
            Some(missed) => missed.push(parts),
            None if self.in_turn || !self.awaited.is_empty() => self.deferred.push(parts),
            None => self.push_others(parts),
        }
    }

    /// Appends deferred messages, if nothing blocks them any more.
    pub(super) fn receive_deferred(&mut self) {
        if self.in_turn || self.awaited.iter().any(|(_, answer)| answer.is_none()) {
            return;
        }
        self.answer_calls();
        self.release();
    }

    pub(super) fn release(&mut self) {
        for parts in std::mem::take(&mut self.deferred) {
            self.push_others(parts);
        }
    }

    /// The content of others, with their name or the prefix of the view options.
    pub(super) fn introduced(&self, message: &Message, taken: &[String]) -> Vec<Part> {
        let is_taken = |answer: &ExecutedCall| answer.to == self.me && taken.contains(&answer.id);
        let mut parts = calls_as_text(spoken(&message.parts), is_taken);
        if parts.is_empty() {
            return parts;
        }
        let introduction = match self.options.prefix.get(&message.from) {
            Some(prefix) => format!("{prefix}\n\n"),
            None if self.names => format!("{}: ", message.from),
            None => return parts,
        };
        if let Some(Part::Text(text)) = parts.first_mut() {
            *text = format!("{introduction}{text}").into();
        } else {
            parts.insert(0, Part::text(introduction.trim_end()));
        }
        parts
    }
}
