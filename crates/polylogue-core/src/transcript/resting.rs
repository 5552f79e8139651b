//! Chats that rest between two runs or calls. The next one extends what the last one had folded, so that it costs what is new, however
//! long the log is.

use std::any::Any;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use super::{Transcript, counts_at_end};
use crate::{Body, Event, Log, Path, ResourceKey, Result};

/// How many chats rest in a log at most. One that has rested longer than all of them is folded from the whole log when it continues.
const MOST: usize = 64;

static RESTING: LazyLock<ResourceKey> = LazyLock::new(ResourceKey::new);

/// The chats that rest in a log, the one that has rested longest first.
type RestingChats = Mutex<Vec<RestingChat>>;

/// How many events of a log a transcript has. Events are only ever appended, so the others are those that follow.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Extent {
    /// It has all of the chat among the first so many events of the log.
    known: usize,
    /// How many of the chat a run has added since.
    pub(crate) added: usize,
}

/// A chat between two runs or calls: always what is folded from the log.
#[derive(Default)]
pub(crate) struct RestingChat {
    pub(crate) transcript: Transcript,
    /// What a run has folded from the transcript: the views of its agents. Nothing after a rollback, by which the transcript does not only
    /// grow.
    pub(crate) views: Option<Box<dyn Any + Send>>,
    pub(crate) extent: Extent,
}

impl RestingChat {
    fn new(at: Path) -> Self {
        Self { transcript: Transcript::new(at), ..Self::default() }
    }

    /// Adds an event that was just appended.
    pub(crate) fn add(&mut self, event: Arc<Event>) -> Result<(), String> {
        self.extent.added += 1;
        self.transcript.apply(event)
    }

    /// Adds the events that follow in the log `events`.
    pub(crate) fn catch_up(&mut self, events: &[Arc<Event>]) -> Result<(), String> {
        for event in events.get(self.extent.known..).unwrap_or_default() {
            let is_own = event.chat == *self.transcript.at();
            if is_own && matches!(event.body, Body::RolledBack { .. }) {
                self.views = None;
            }
            if is_own || event.chat.is_within(self.transcript.at()) {
                self.transcript.apply(Arc::clone(event))?;
            }
        }
        self.extent = Extent { known: events.len(), added: 0 };
        Ok(())
    }

    /// Adds the charges of calls, which no run adds. Returns whether the transcript is that of the log `events` then: whether a run has
    /// added all other events. Their order makes no difference once their turns are over.
    fn completes(&mut self, events: &[Arc<Event>]) -> bool {
        if !self.transcript.background.is_empty() {
            return false;
        }
        let at = self.transcript.at();
        let counts = |event: &&Arc<Event>| {
            event.chat == *at || (event.chat.is_within(at) && counts_at_end(&event.body))
        };
        let new = events.get(self.extent.known..).unwrap_or_default().iter().filter(counts);
        let is_charge = |event: &&Arc<Event>| matches!(event.body, Body::Charged(_));
        let charges: Vec<Arc<Event>> = new.clone().filter(is_charge).cloned().collect();
        // What was used before the chat was opened last is counted there, and the charges of an open turn have their places in it.
        let opened = self.transcript.opened;
        let is_late = self.transcript.open.is_empty() && charges.iter().all(|charge| charge.seq > opened);
        if new.count() != self.extent.added + charges.len() || !(charges.is_empty() || is_late) {
            return false;
        }
        self.extent = Extent { known: events.len(), added: 0 };
        charges.into_iter().all(|charge| self.transcript.apply(charge).is_ok())
    }
}

impl Log {
    /// Takes out the chat `at`, with all events of the log: as it rested, or folded from the first event on.
    pub(crate) async fn take_chat(&self, at: &Path) -> Result<RestingChat> {
        let mut chat = self.rested_chat(at).unwrap_or_else(|| RestingChat::new(at.clone()));
        self.catch_up_chat(&mut chat).await?;
        Ok(chat)
    }

    /// Takes out the chat `at` as it rested.
    fn rested_chat(&self, at: &Path) -> Option<RestingChat> {
        let resting = self.resting();
        let mut chats = lock(&resting);
        let index = chats.iter().position(|chat| chat.transcript.at() == at)?;
        Some(chats.remove(index))
    }

    /// Adds the events of the log that `chat` does not have.
    pub(crate) async fn catch_up_chat(&self, chat: &mut RestingChat) -> Result<()> {
        let buffer = self.buffer.lock().await;
        chat.catch_up(&buffer.events).map_err(|flaw| self.invalid(&flaw))
    }

    /// Puts back a chat that has all events of the log.
    pub(crate) fn put_back_chat(&self, chat: RestingChat) {
        let resting = self.resting();
        let mut chats = lock(&resting);
        chats.retain(|other| other.transcript.at() != chat.transcript.at());
        if chats.len() >= MOST {
            chats.remove(0);
        }
        chats.push(chat);
    }

    /// Keeps a chat whose run has ended or waits for people, for the next one. Does nothing if the run does not have all events: then the
    /// next one folds the log.
    pub(crate) async fn rest_chat(&self, mut chat: RestingChat) {
        let buffer = self.buffer.lock().await;
        if chat.completes(&buffer.events) {
            drop(buffer);
            // Those of outer chats are others in the next run.
            chat.transcript.inherit(Vec::new(), 0);
            self.put_back_chat(chat);
        }
    }

    /// Reads the transcript of the chat `at`.
    pub(crate) async fn read_chat<T>(&self, at: &Path, read: impl FnOnce(&Transcript) -> T) -> Result<T> {
        let chat = self.take_chat(at).await?;
        let result = read(&chat.transcript);
        self.put_back_chat(chat);
        Ok(result)
    }

    /// Whether the chat `at` rests.
    #[cfg(test)]
    pub(crate) fn is_resting(&self, at: &Path) -> bool {
        lock(&self.resting()).iter().any(|chat| chat.transcript.at() == at)
    }

    fn resting(&self) -> Arc<RestingChats> {
        self.resources().of(&RESTING, RestingChats::default)
    }
}

fn lock(chats: &RestingChats) -> MutexGuard<'_, Vec<RestingChat>> {
    chats.lock().unwrap_or_else(PoisonError::into_inner)
}
