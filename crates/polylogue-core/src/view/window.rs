//! Removes entries from a view: by its window, by command, and after private turns.

use serde_json::Value;

use super::digest::Chain;
use super::entry::{EncodeCache, Entry};
use super::words::LEFT_OUT;
use super::{Mark, View, Window};
use crate::{InputTokens, Part};

impl View {
    pub(super) fn go_back(&mut self, mark: Mark) {
        self.entries.truncate(mark.entries);
        self.origins.truncate(mark.entries);
        self.summary.take_if(|_| mark.entries <= self.pinned);
        self.measured.take_if(|(_, entries)| *entries > mark.entries);
        self.awaited.clear();
        (self.chain, self.weight, self.most_tokens) = (mark.chain, mark.weight, mark.most_tokens);
        self.encoded = EncodeCache::default();
    }

    /// Drops all but the last `keep` entries, a call and its results counted as one. The current turn stays.
    pub(super) fn clear(&mut self, keep: usize) {
        let starts: Vec<usize> = (0..self.entries.len()).filter(|&at| self.begins_exchange(at)).collect();
        let keep = keep.max(usize::from(!self.awaited.is_empty()));
        let cut = match starts.len().checked_sub(keep) {
            Some(0) | None => return,
            Some(dropped) => starts.get(dropped).copied().unwrap_or(self.entries.len()),
        };
        self.pinned = 0;
        // Cleared entries need no replacement: the next message of others, or the text to begin with, follows.
        if cut == self.entries.len() && !self.in_turn {
            self.entries.clear();
            self.origins.clear();
            (self.summary, self.measured) = (None, None);
            self.weigh_again();
            (self.chain, self.encoded) = (Chain::default(), EncodeCache::default());
            return;
        }
        self.cut(cut);
    }

    /// After entries were removed or changed.
    fn weigh_again(&mut self) {
        (self.weight, self.most_tokens) = size_of(self.options.window, &self.entries);
    }

    pub(super) const fn limit(&self) -> usize {
        match self.options.window {
            Window::All => usize::MAX,
            Window::Messages(limit) | Window::Tokens(limit) => limit,
        }
    }

    /// Drops whole exchanges after the opening, oldest first; the last one always stays.
    pub(super) fn drop_oldest(&mut self) {
        // Leaves space for the replacement of the dropped entries.
        let target = self.limit().saturating_sub((self.limit() / 4).max(1));
        let starts: Vec<usize> =
            (self.pinned..self.entries.len()).filter(|&at| self.begins_exchange(at)).collect();
        let mut cut = self.pinned;
        let mut weight = self.weight;
        for &start in starts.iter().skip(1) {
            if weight <= target {
                break;
            }
            let dropped = self.entries.get(cut..start).unwrap_or_default().iter();
            weight -= dropped.map(|entry| self.options.window.weigh(entry)).sum::<usize>();
            cut = start;
        }
        if cut > self.pinned {
            self.cut(cut);
        }
    }

    pub(super) fn begins_exchange(&self, at: usize) -> bool {
        !matches!(self.entries.get(at), Some(Entry::Tool { .. }))
    }

    /// Computes weight and digests again after entries were changed; `moved` says how many entries come before a mark now, by how many
    /// came before it then.
    pub(super) fn relink(&mut self, moved: impl Fn(usize) -> usize) {
        self.weigh_again();
        let chain_of =
            |entries: &[Entry]| entries.iter().fold(Chain::default(), |chain, entry| chain.link(entry));
        self.chain = chain_of(&self.entries);
        let partial = self.partial.as_mut().map(|(mark, _)| mark);
        for mark in [self.private_turn.as_mut(), self.begun.as_mut(), partial].into_iter().flatten() {
            mark.entries = moved(mark.entries);
            let before = self.entries.get(..mark.entries).unwrap_or_default();
            mark.chain = chain_of(before);
            (mark.weight, mark.most_tokens) = size_of(self.options.window, before);
        }
    }

    fn cut(&mut self, cut: usize) {
        let head = self.head(cut);
        self.summary = None;
        self.replace(cut, head);
    }

    /// Replaces the entries between the pinned ones and `cut`.
    pub(super) fn replace(&mut self, cut: usize, head: Vec<Entry>) {
        let (pinned, head_len) = (self.pinned, head.len());
        let origin = self.origins.get(cut.saturating_sub(1)).copied().unwrap_or(self.now);
        self.origins.splice(pinned..cut, std::iter::repeat_n(origin, head_len));
        self.entries.splice(pinned..cut, head);
        let length = self.entries.len();
        self.relink(|entries| (pinned + head_len + entries.saturating_sub(cut)).min(length));
        self.measured = None;
        self.encoded = EncodeCache::default();
    }

    /// The replacement of the dropped entries: what the agent is working on, if no message of others follows it; else
    /// a message of others, if its own messages would follow each other.
    fn head(&self, cut: usize) -> Vec<Entry> {
        let Some((before, after)) = self.entries.split_at_checked(cut) else { return Vec::new() };
        let Some((pinned, dropped)) = before.split_at_checked(self.pinned) else { return Vec::new() };
        let is_others = |entry: &&Entry| matches!(entry, Entry::User { .. });
        if !after.iter().any(|entry| is_others(&entry))
            && let Some(last) = dropped.iter().rfind(is_others)
        {
            return vec![last.clone()];
        }
        if matches!(pinned.last(), Some(Entry::Tool { .. })) {
            return Vec::new();
        }
        let is_replaced = after.first().is_some_and(|entry| is_others(&entry))
            || pinned.last().is_some_and(|entry| is_others(&entry));
        if is_replaced { Vec::new() } else { vec![Entry::user(LEFT_OUT)] }
    }
}

impl Window {
    /// What an entry counts toward its limit.
    pub(super) fn weigh(self, entry: &Entry) -> usize {
        match self {
            Self::All => 0,
            Self::Messages(_) => 1,
            Self::Tokens(_) => tokens(entry),
        }
    }
}

/// What `entries` count toward the limit of `window`, and their most tokens.
fn size_of(window: Window, entries: &[Entry]) -> (usize, InputTokens) {
    let weight = entries.iter().map(|entry| window.weigh(entry)).sum();
    (weight, entries.iter().map(Entry::most_tokens).fold(InputTokens::default(), InputTokens::and))
}

/// Estimated at four ASCII characters or one other character each.
pub(super) fn tokens(entry: &Entry) -> usize {
    let of_text = |text: &str| {
        // Most texts are, and it is found without reading character by character.
        if text.is_ascii() {
            return text.len().div_ceil(4);
        }
        let ascii = text.bytes().filter(u8::is_ascii).count();
        ascii.div_ceil(4) + text.chars().count() - ascii
    };
    let of_json = |value: &Value| of_text(&value.to_string());
    let of_part = |part: &Part| match part {
        Part::Text(text) | Part::Thought(text) => of_text(text),
        Part::Data(value) | Part::Note(value) => of_json(value),
        Part::ToolCall(call) => of_text(&call.tool) + of_json(&call.args),
        // What the common providers count for a picture of medium size.
        Part::Media(_) => 1000,
        Part::ToolResult(answer) => of_text(&answer.result.text()),
        Part::Cut(_) => 0,
    };
    // Four tokens frame a message in the common chat templates.
    4 + entry.parts().iter().map(of_part).sum::<usize>()
}
