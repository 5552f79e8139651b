//! What a conversation shows: its log, folded into typed items.
//!
//! [`Presentation`] is a pure function of the events: the same log gives the same items, whether the events come while they
//! happen or are read afterwards, and each text is in one item only. A log has the same text in several events: a model replies,
//! the reply becomes a message, and the message may be the summary of a nested chat. Presenters turn items into lines, Markdown
//! or anything else; they decide how something looks, not what is shown.

mod fold;
mod item;
#[cfg(test)]
mod tests;
mod turn;
mod value;

use std::collections::HashMap;

use polylogue_core::{Audience, Call, Event, Name, Path};

pub(crate) use item::{HandoffNote, Item, Kind, ResultShown, Returned, Said, Source};
use turn::Turn;
pub(crate) use value::{Told, result_text, told};

/// A chat and one of its participants.
pub(crate) type Key = (Path, Name);

/// How much is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Detail {
    /// What one follows a run by.
    Brief,
    /// Everything: private prompts and replies, drafts, results of code where they came in.
    Whole,
}

/// Folds events into the items that they show.
#[derive(Debug, Clone)]
pub(crate) struct Presentation {
    detail: Detail,
    turns: HashMap<Key, Turn>,
    /// The calls that messages request of others, by chat, who requests, and id.
    requested: HashMap<(Path, Name, String), Call>,
    /// The note of the last handoff, and who hands over.
    handed: Option<(Key, String)>,
    /// The text of the last message.
    last_said: String,
    /// An item that the next event may make superfluous.
    waiting: Option<Item>,
    out: Vec<Item>,
}

impl Presentation {
    pub(crate) fn new(detail: Detail) -> Self {
        Self {
            detail,
            turns: HashMap::new(),
            requested: HashMap::new(),
            handed: None,
            last_said: String::new(),
            waiting: None,
            out: Vec::new(),
        }
    }

    /// All items of a conversation.
    pub(crate) fn of(detail: Detail, events: &[Event]) -> Vec<Item> {
        let mut fold = Self::new(detail);
        let mut items: Vec<Item> = events.iter().flat_map(|event| fold.event(event)).collect();
        items.extend(fold.finish());
        items
    }

    /// The audience of the open turn of `key`.
    pub(crate) fn audience(&self, key: &Key) -> Audience {
        self.turns.get(key).map(|turn| turn.audience.clone()).unwrap_or_default()
    }

    /// The items of the next event.
    pub(crate) fn event(&mut self, event: &Event) -> Vec<Item> {
        self.fold(event);
        std::mem::take(&mut self.out)
    }

    /// What is left to show when no more events come, such as calls without a result.
    pub(crate) fn finish(&mut self) -> Vec<Item> {
        self.release(None);
        let mut keys: Vec<Key> = self.turns.keys().cloned().collect();
        keys.sort();
        keys.iter().for_each(|key| self.late_results(key));
        let mut open: Vec<_> = keys
            .iter()
            .flat_map(|key| self.turn(key).calls.clone().into_iter().map(|call| (key.clone(), call)))
            .collect();
        open.sort_by_key(|(_, (_, time))| *time);
        self.turns.values_mut().for_each(|turn| turn.calls.clear());
        for ((at, who), (call, _)) in open {
            self.put(&at, Kind::Unfinished { who, call });
        }
        std::mem::take(&mut self.out)
    }

    fn is_whole(&self) -> bool {
        self.detail == Detail::Whole
    }

    fn turn(&mut self, key: &Key) -> &mut Turn {
        self.turns.entry(key.clone()).or_default()
    }

    fn put(&mut self, at: &Path, kind: Kind) {
        self.out.push(Item { at: at.clone(), kind });
    }
}
