//! Tracks which participants have read content from outside.

use std::sync::Arc;

use crate::{Audience, BackgroundResult, Body, Event, Message, Name, Path};

/// The maximum number of sources that a message names.
const MAX_SOURCES: usize = 8;

/// Which participants of which chats have read content from outside.
///
/// Conservative: a participant has read everything it could see, and passes it on with everything it says afterward.
#[derive(Debug, Default)]
pub(crate) struct Origins(Vec<Origin>);

#[derive(Debug, PartialEq, Eq)]
struct Origin {
    seq: u64,
    at: Path,
    readers: Audience,
    source: Arc<str>,
}

impl Origins {
    /// Records an event.
    pub(crate) fn add(&mut self, event: &Event) {
        let (seq, at) = (event.seq, &event.chat);
        match &event.body {
            Body::ToolReturned { who, result: outcome, .. } => {
                if let Some(source) = &outcome.outside {
                    self.push(seq, at, Audience::Only(vec![who.clone()]), source);
                }
            }
            Body::Message(message) | Body::Posted(message) | Body::Sent(message) => {
                self.said(seq, at, message);
            }
            Body::BackgroundEnded(BackgroundResult { who, number, .. }) => {
                for source in self.read_within(&at.background(who, *number)) {
                    self.push(seq, at, Audience::Only(vec![who.clone()]), &source);
                }
            }
            Body::Reopened { message, .. } => message.iter().for_each(|message| self.said(seq, at, message)),
            Body::Opened(opening) => {
                opening.messages.iter().for_each(|message| self.said(seq, at, message));
                // The task is derived from what the participant that runs the chat has read.
                for source in self.around(at) {
                    self.push(seq, at, Audience::All, &source);
                }
            }
            _ => {}
        }
    }

    fn said(&mut self, seq: u64, at: &Path, message: &Message) {
        let readers = match &message.to {
            Audience::All => Audience::All,
            Audience::Only(names) => Audience::Only(names.iter().chain([&message.from]).cloned().collect()),
        };
        for source in &message.outside {
            self.push(seq, at, readers.clone(), source);
        }
    }

    fn push(&mut self, seq: u64, at: &Path, readers: Audience, source: &Arc<str>) {
        let is_known =
            |known: &Origin| known.at == *at && known.readers == readers && known.source == *source;
        if !self.0.iter().any(is_known) {
            self.0.push(Origin { seq, at: at.clone(), readers, source: Arc::clone(source) });
        }
    }

    /// The sources of what `who` has read in the chat `at` before the event `before`, including chats within its
    /// turns.
    pub(crate) fn read_by(&self, at: &Path, who: &Name, before: Option<u64>) -> Vec<Arc<str>> {
        let is_read = |origin: &&Origin| {
            before.is_none_or(|before| origin.seq < before)
                && ((origin.at == *at && origin.readers.includes(who)) || origin.at.is_of_turn(at, who))
        };
        first(self.0.iter().filter(is_read))
    }

    /// The sources of what was read in the chat `at` and in chats within it.
    fn read_within(&self, at: &Path) -> Vec<Arc<str>> {
        first(self.0.iter().filter(|origin| origin.at == *at || origin.at.is_within(at)))
    }

    /// The sources of all that was read in the chat `at`, which the policy's messages derive from.
    fn read_in(&self, at: &Path) -> Vec<Arc<str>> {
        first(self.0.iter().filter(|origin| origin.at == *at))
    }

    /// The sources of what the participants have read that run the chat `at` in their turn.
    fn around(&self, at: &Path) -> Vec<Arc<str>> {
        let Some(outer) = at.ancestors().next() else { return Vec::new() };
        match at.owner() {
            Some(who) => self.read_by(&outer, &who, None),
            None => self.read_in(&outer),
        }
    }

    /// Adds to the messages of `body` the sources of what their authors have read.
    pub(crate) fn mark(&self, at: &Path, body: &mut Body) {
        match body {
            Body::Message(message) => message.outside = self.read_by(at, &message.from, None),
            Body::Posted(message) if message.outside.is_empty() => message.outside = self.read_in(at),
            Body::Opened(opening) => {
                let sources = self.around(at);
                for message in opening.messages.iter_mut().filter(|message| message.outside.is_empty()) {
                    message.outside.clone_from(&sources);
                }
            }
            _ => {}
        }
    }
}

/// The sources of the first origins, each once.
fn first<'o>(origins: impl Iterator<Item = &'o Origin>) -> Vec<Arc<str>> {
    let mut sources: Vec<Arc<str>> = Vec::new();
    for origin in origins {
        if sources.len() == MAX_SOURCES {
            break;
        }
        if !sources.contains(&origin.source) {
            sources.push(Arc::clone(&origin.source));
        }
    }
    sources
}
