//! Lists of conversations: in pages, by state, team, time and parent, without reading whole logs.

use polylogue_core::{
    AnyStore, Body, Event, Listing, LogId, Name, RunOutcome, StopReason, Store as _, Timestamp,
};

use crate::Result;

/// Which conversations are listed. Default: all.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// At most so many; the page says where the next one begins.
    pub limit: Option<usize>,
    /// Only those after this one, as the page before says.
    pub after: Option<Cursor>,
    /// Only those in one of these states. Default: any.
    pub states: Vec<StateKind>,
    /// Only those of the team with this name, or with this title.
    pub team: Option<String>,
    /// Only those that were begun at this time or later.
    pub since: Option<Timestamp>,
    /// Only forks of this conversation.
    pub parent: Option<LogId>,
}

/// A place in the list, newest first. It stays valid when conversations are begun or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    created: Timestamp,
    id: LogId,
}

impl Cursor {
    /// As text, for a command or a URL.
    #[must_use]
    pub fn to_text(&self) -> String {
        format!("{}.{}", self.created.0, self.id)
    }

    /// Parses [`to_text`](Self::to_text); `None` if it is no cursor.
    #[must_use]
    pub fn parse(text: &str) -> Option<Self> {
        let (created, id) = text.split_once('.')?;
        Some(Self { created: Timestamp(created.parse().ok()?), id: LogId::new(id).ok()? })
    }
}

/// A page of a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Page {
    /// The conversations, newest first.
    pub conversations: Vec<Listed>,
    /// Where the next page begins; `None` at the end of the list.
    pub next: Option<Cursor>,
}

/// A conversation in a list.
#[derive(Debug, Clone, PartialEq)]
pub struct Listed {
    /// What the store knows of it.
    pub listing: Listing,
    /// Its state, as its last event says.
    pub state: State,
}

/// The state of a conversation.
#[derive(Debug, Clone, PartialEq)]
pub enum State {
    /// It has no event.
    New,
    /// It is neither closed nor waiting nor failed: a process runs it, or it was interrupted.
    Open,
    /// It waits for the answer of a person.
    Waiting(Name),
    /// Its last turn failed. Running it tries again.
    Failed(String),
    /// It is closed.
    Closed(StopReason),
    /// Its beginning or its end is damaged.
    Damaged,
}

/// A kind of [`State`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StateKind {
    /// [`State::New`] and [`State::Open`].
    Open,
    /// [`State::Waiting`].
    Waiting,
    /// [`State::Failed`].
    Failed,
    /// [`State::Closed`], having reached its goal.
    Done,
    /// [`State::Closed`] for another reason: a limit, a cancellation, no output.
    Ended,
    /// [`State::Damaged`].
    Damaged,
}

impl ListQuery {
    /// Conversations that are neither closed nor waiting for a person: those to resume after a restart.
    #[must_use]
    pub fn unfinished() -> Self {
        Self { states: vec![StateKind::Open, StateKind::Failed], ..Self::default() }
    }

    /// Whether it lists a conversation, as far as its state does not matter.
    fn matches(&self, listing: &Listing) -> bool {
        let is_team = |team: &String| {
            listing.title == *team || listing.title.split_once(' ').is_some_and(|(name, _)| name == team)
        };
        self.team.as_ref().is_none_or(is_team)
            && self.since.is_none_or(|since| listing.created >= since)
            && self.parent.as_ref().is_none_or(|id| listing.parent.as_ref().is_some_and(|of| of.id == *id))
            && self
                .after
                .as_ref()
                .is_none_or(|cursor| (listing.created, &listing.id) < (cursor.created, &cursor.id))
    }
}

/// A page of the conversations in `store`.
pub(crate) async fn list(store: &AnyStore, query: &ListQuery) -> Result<Page> {
    let limit = query.limit.unwrap_or(usize::MAX);
    let mut page = Page { conversations: Vec::new(), next: None };
    for listing in store.list().await?.into_iter().filter(|listing| query.matches(listing)) {
        let state = state(store, &listing).await?;
        if !query.states.is_empty() && !query.states.contains(&state.kind()) {
            continue;
        }
        if page.conversations.len() == limit {
            let last = page.conversations.last().map(|last| &last.listing);
            page.next = last.map(|last| Cursor { created: last.created, id: last.id.clone() });
            break;
        }
        page.conversations.push(Listed { listing, state });
    }
    Ok(page)
}

/// The state, as the last event says. Where limits were changed last, the event before says it: such a log, which no
/// process has continued since, is read.
async fn state(store: &AnyStore, listing: &Listing) -> Result<State> {
    let changes_limits = |event: &Event| matches!(event.body, Body::LimitsChanged(_));
    match &listing.last {
        _ if listing.is_damaged => Ok(State::Damaged),
        Some(last) if changes_limits(last) => {
            let events = store.read_intact(&listing.id).await?.events;
            let last = events.into_iter().rfind(|event| !changes_limits(event));
            Ok(State::of(last.as_ref(), listing.has_team))
        }
        last => Ok(State::of(last.as_ref(), listing.has_team)),
    }
}

impl State {
    fn of(last: Option<&Event>, has_team: bool) -> Self {
        match last.map(|event| (&event.body, event.at.is_root())) {
            // Of agents that are called without a chat around them, any chat may be the last to speak.
            Some((Body::Closed { reason, .. }, is_root)) if is_root || !has_team => {
                Self::Closed(reason.clone())
            }
            Some((Body::InputRequired(question), _)) => Self::Waiting(question.who.clone()),
            Some((Body::Failed { error, .. }, _)) => {
                Self::Failed(error.message.lines().next().unwrap_or_default().to_owned())
            }
            Some(_) => Self::Open,
            None => Self::New,
        }
    }

    /// Its kind.
    #[must_use]
    pub fn kind(&self) -> StateKind {
        match self {
            Self::New | Self::Open => StateKind::Open,
            Self::Waiting(_) => StateKind::Waiting,
            Self::Failed(_) => StateKind::Failed,
            Self::Closed(reason) if reason.outcome() == RunOutcome::Done => StateKind::Done,
            Self::Closed(_) => StateKind::Ended,
            Self::Damaged => StateKind::Damaged,
        }
    }
}
