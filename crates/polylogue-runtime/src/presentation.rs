//! What a conversation shows: its log, folded into typed items.
//!
//! [`Presentation`] is a pure function of the events: the same log gives the same items, whether the events come while they
//! happen or are read afterward, and each text is in one item only. A log has the same text in several events: a model replies,
//! the reply becomes a message, and the message may be the summary of a nested chat. Presenters turn items into lines, Markdown
//! or a page; they decide how an item looks, not which items there are.
//!
//! ```
//! use polylogue_core::{Body, Event, Message, Name, Path, Timestamp};
//! use polylogue_runtime::presentation::{Detail, Kind, Presentation};
//!
//! let body = Body::Message(Message::new(Name::new("Ann")?, "Hello!"));
//! let event = Event { seq: 0, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body };
//! let items = Presentation::of(Detail::Brief, &[event]);
//! let Some(Kind::Message(shown)) = items.first().map(|item| &item.kind) else { panic!("no message") };
//! assert_eq!(shown.message.text(), "Hello!");
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

mod fold;
mod item;
mod said;
#[cfg(test)]
mod tests;
mod turn;
mod value;
mod waiting;

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use polylogue_core::{Audience, Event, Name, Path, PrefixChanges, ToolCall};

pub use item::{HandoffNote, Item, Kind, ResultShown, ShownMessage, ShownToolResult, Source};
use said::Said;
pub use said::SummarySource;
use turn::Turn;
pub use value::{ValueText, result_text, value_text};

/// The key of an open turn: its chat and its participant.
pub type TurnKey = (Path, Name);

/// The level of detail.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Detail {
    /// Shows what a person needs to follow a run.
    #[default]
    Brief,
    /// Shows everything: private prompts and replies, drafts, results of code where they came in.
    Whole,
}

/// Folds events into the items that they show.
#[derive(Debug, Clone, Default)]
pub struct Presentation {
    detail: Detail,
    turns: HashMap<TurnKey, Turn>,
    /// The calls that messages request of others, by chat, who requests, and id.
    requested: HashMap<(Path, Name, String), ToolCall>,
    /// The call of the last handoff, and who hands over, until the next turn of the chat.
    handed: Option<(TurnKey, ShownToolResult)>,
    said: Said,
    prefixes: PrefixChanges,
    /// The models that reply instead of others, by agent.
    fallbacks: HashMap<Name, Arc<str>>,
    /// The agents whose models wrote a call as text, and these models.
    written_calls: HashSet<(Name, Arc<str>)>,
    /// Whether the run is paused.
    is_paused: bool,
    /// Items that later events may make superfluous.
    waiting: Vec<Item>,
    out: Vec<Item>,
}

impl Presentation {
    /// Creates a presentation without events.
    pub fn new(detail: Detail) -> Self {
        Self { detail, ..Self::default() }
    }

    /// Returns all items of a conversation.
    pub fn of(detail: Detail, events: &[Event]) -> Vec<Item> {
        let mut fold = Self::new(detail);
        let mut items: Vec<Item> = events.iter().flat_map(|event| fold.event(event)).collect();
        items.extend(fold.finish());
        items
    }

    /// Returns the audience of the open turn of `key`.
    pub fn audience(&self, key: &TurnKey) -> Audience {
        self.turns.get(key).map(|turn| turn.audience.clone()).unwrap_or_default()
    }

    /// Adds the next event, and returns the items that it shows.
    pub fn event(&mut self, event: &Event) -> Vec<Item> {
        self.fold(event);
        std::mem::take(&mut self.out)
    }

    /// Returns what is left to show when no more events come, such as calls without a result.
    pub fn finish(&mut self) -> Vec<Item> {
        self.release(None);
        let mut keys: Vec<TurnKey> = self.turns.keys().cloned().collect();
        keys.sort();
        keys.iter().for_each(|key| self.late_results(key));
        let mut open: Vec<_> = keys
            .iter()
            .flat_map(|key| self.turn(key).calls.clone().into_iter().map(|call| (key.clone(), call)))
            .collect();
        open.sort_by_key(|(_, (_, time))| *time);
        self.turns.values_mut().for_each(|turn| turn.calls.clear());
        for ((at, who), (call, _)) in open {
            self.put(&at, Kind::CallPending { who, call });
        }
        std::mem::take(&mut self.out)
    }

    fn is_whole(&self) -> bool {
        self.detail == Detail::Whole
    }

    fn turn(&mut self, key: &TurnKey) -> &mut Turn {
        self.turns.entry(key.clone()).or_default()
    }

    fn put(&mut self, at: &Path, kind: Kind) {
        self.out.push(Item { chat: at.clone(), kind });
    }
}
