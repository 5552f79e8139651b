//! Watching a run while it happens.

use std::sync::{Arc, OnceLock};

use tokio::sync::broadcast;
use tokio::sync::broadcast::error::RecvError;

use crate::{DeltaRef, DeltaSink, Event, Name, Path};

/// What a watcher of a run is told.
#[derive(Debug, Clone, PartialEq)]
#[non_exhaustive]
pub enum Update {
    /// Something was appended to the log.
    Event(Arc<Event>),
    /// A piece of a reply arrived. Pieces are never stored; the whole reply follows as an event.
    Delta {
        /// The chat.
        at: Path,
        /// The agent whose model writes.
        who: Name,
        /// The piece.
        delta: Delta,
    },
    /// The watcher was too slow: so many signals were dropped. Events can be read again from the store, from
    /// `seq` on.
    Missed {
        /// How many signals were dropped.
        updates: u64,
        /// The first event that may be among them.
        seq: u64,
    },
}

/// A piece of a reply: an owned [`Delta`].
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Delta {
    /// A piece of text.
    Text(String),
    /// A piece of reasoning.
    Thought(String),
    /// A piece of a tool call.
    Call {
        /// Which call of the reply, from 0.
        index: usize,
        /// The tool's name, with the call's first piece.
        tool: Option<String>,
        /// A piece of the arguments' JSON.
        args: String,
    },
    /// The reply broke off and begins anew: forget the pieces so far.
    Restart,
}

impl From<DeltaRef<'_>> for Delta {
    fn from(delta: DeltaRef<'_>) -> Self {
        match delta {
            DeltaRef::Text(text) => Self::Text(text.to_owned()),
            DeltaRef::Thought(text) => Self::Thought(text.to_owned()),
            DeltaRef::Call { index, tool, args } => {
                Self::Call { index, tool: tool.map(str::to_owned), args: args.to_owned() }
            }
            DeltaRef::Restart => Self::Restart,
        }
    }
}

/// A watcher's end. A slow watcher never slows the run: it loses signals, and is told so.
#[derive(Debug)]
pub struct Subscription {
    updates: broadcast::Receiver<Update>,
    next_seq: u64,
}

impl Subscription {
    /// The next signal; `None` when the log is dropped.
    pub async fn next(&mut self) -> Option<Update> {
        match self.updates.recv().await {
            Ok(signal) => {
                if let Update::Event(event) = &signal {
                    self.next_seq = event.seq + 1;
                }
                Some(signal)
            }
            Err(RecvError::Lagged(signals)) => Some(Update::Missed { updates: signals, seq: self.next_seq }),
            Err(RecvError::Closed) => None,
        }
    }
}

/// The log's end.
#[derive(Debug, Clone)]
pub(crate) struct Publisher(Arc<OnceLock<broadcast::Sender<Update>>>);

impl Publisher {
    /// How many signals a watcher may lag behind: a long reply in small pieces, at about 100 bytes each.
    const CAPACITY: usize = 4096;

    /// The channel is made when the first watcher comes: it has room for all its signals from the start, and ten
    /// thousand unwatched runs need none of it.
    pub(crate) fn new() -> Self {
        Self(Arc::new(OnceLock::new()))
    }

    pub(crate) fn subscribe(&self, next_seq: u64) -> Subscription {
        let sender = self.0.get_or_init(|| broadcast::Sender::new(Self::CAPACITY));
        Subscription { updates: sender.subscribe(), next_seq }
    }

    pub(crate) fn event(&self, event: &Arc<Event>) {
        self.send(|| Update::Event(Arc::clone(event)));
    }

    /// Makes the signal only if somebody watches.
    fn send(&self, signal: impl FnOnce() -> Update) {
        if let Some(sender) = self.0.get().filter(|sender| sender.receiver_count() > 0) {
            // Fails only if the last watcher left just now.
            let _ = sender.send(signal());
        }
    }

    /// Passes on the pieces of the reply that `who` gets at `at`.
    pub(crate) fn deltas<'a>(&'a self, at: &'a Path, who: &'a Name) -> PublishedDeltas<'a> {
        PublishedDeltas { live: self, at, who }
    }
}

pub(crate) struct PublishedDeltas<'a> {
    live: &'a Publisher,
    at: &'a Path,
    who: &'a Name,
}

impl DeltaSink for PublishedDeltas<'_> {
    fn push(&mut self, delta: DeltaRef<'_>) {
        self.live.send(|| Update::Delta { at: self.at.clone(), who: self.who.clone(), delta: delta.into() });
    }
}
