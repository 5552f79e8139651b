//! Events that chats around and within a chat share with it: tool calls, and values in messages.
//!
//! State of a whole team is a fold over these events. Their order does not depend on which of several parallel turns
//! was faster: those of a turn are added when it ends, in the order of the turns.

use std::sync::Arc;

use super::Transcript;
use crate::{Body, Event, Message, Part};

/// Whether outer and nested chats see it.
pub(crate) fn is_shared(body: &Body) -> bool {
    let has_value = |message: &Message| message.parts.iter().any(|part| matches!(part, Part::Data(_)));
    match body {
        Body::ToolCalled { .. } | Body::ToolReturned { .. } => true,
        Body::Message(message)
        | Body::Posted(message)
        | Body::Sent(message)
        | Body::Reopened { message: Some(message), sent: false, .. } => has_value(message),
        Body::Opened(opening) => opening.messages.iter().any(has_value),
        _ => false,
    }
}

/// The shared ones of `events` in the order of the log, each once.
pub(crate) fn in_order<'e>(events: impl IntoIterator<Item = &'e Arc<Event>>) -> Vec<Arc<Event>> {
    let mut shared: Vec<Arc<Event>> =
        events.into_iter().filter(|event| is_shared(&event.body)).cloned().collect();
    shared.sort_by_key(|event| event.seq);
    shared.dedup_by_key(|event| event.seq);
    shared
}

impl Transcript {
    /// Returns the shared events known here: tool calls, their results, and messages with values ([`Part::Data`]) of this
    /// chat, of chats within it, and of outer chats before this one began. Parallel events of other chats are not included yet.
    pub fn shared(&self) -> impl Iterator<Item = &Arc<Event>> {
        let known = self.known_until;
        let own = self.shared.iter().map(|(_, event)| event);
        self.inherited.iter().chain(own.filter(move |event| known.is_none_or(|seq| event.seq > seq)))
    }

    /// Adds the shared events of outer chats; of this chat itself, only those before `began`.
    pub(crate) fn inherit(&mut self, mut events: Vec<Arc<Event>>, began: u64) {
        let is_own = |event: &Arc<Event>| event.chat == self.at || event.chat.is_within(&self.at);
        events.retain(|event| !is_own(event) || event.seq < began);
        self.known_until = events.iter().filter(|event| is_own(event)).map(|event| event.seq).max();
        self.inherited = events;
    }

    /// Copies what another transcript of this chat, which goes further, inherited, and its background tasks: turns know themselves what of
    /// these is still to come.
    pub(crate) fn inherit_from(&mut self, other: &Self) {
        (self.inherited, self.known_until) = (other.inherited.clone(), other.known_until);
        self.background.clone_from(&other.background);
        self.background_begun.clone_from(&other.background_begun);
    }

    /// Records an event of this chat outside of turns.
    pub(super) fn share(&mut self, event: &Arc<Event>) {
        self.share_all(is_shared(&event.body).then(|| Arc::clone(event)));
    }

    /// Records shared events, which become visible with the next event of this chat.
    pub(super) fn share_all(&mut self, events: impl IntoIterator<Item = Arc<Event>>) {
        let before = self.events.len();
        self.shared.extend(events.into_iter().map(|event| (before, event)));
    }

    /// Records an event of a nested chat. It is added when the turn ends in which it happened.
    pub(super) fn within(&mut self, event: &Arc<Event>) {
        if let Body::RolledBack { since } = event.body {
            let stays = |other: &Arc<Event>| other.chat != event.chat || other.seq < since;
            self.open.iter_mut().for_each(|turn| turn.within.retain(stays));
            return;
        }
        if !is_shared(&event.body) {
            return;
        }
        let path = event.chat.as_str().strip_prefix(self.at.as_str()).unwrap_or_default();
        let first = path.trim_start_matches('/').split('/').next().unwrap_or_default();
        let who = first.split('.').next().unwrap_or_default();
        let named = self.open.iter().position(|turn| turn.request.who.as_str() == who);
        // The path of an agent's calls contains the name of the caller, the only one with an open turn here.
        if let Some(turn) = named.or(Some(0)).and_then(|at| self.open.get_mut(at)) {
            turn.within.push(Arc::clone(event));
        }
    }
}
