//! Lists of logs: pages of those that match a query.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::clock::Timestamp;
use super::meta::Parent;
use super::summary::{Progress, Summary};
use crate::{LogId, RunOutcome};

/// An entry of a list of logs, known without reading them.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// The id.
    pub id: LogId,
    /// [`Meta::title`](super::Meta::title).
    pub title: String,
    /// [`Meta::created`](super::Meta::created).
    pub created: Timestamp,
    /// Whether there is a [`Meta::team`](super::Meta::team), which is not loaded.
    pub has_team: bool,
    /// [`Meta::parent`](super::Meta::parent).
    pub parent: Option<Parent>,
    /// The summary of its events.
    pub summary: Summary,
    /// Whether its beginning is damaged, or it has lost events. Other damage is found only by reading all of it.
    pub is_damaged: bool,
    /// Whether its events are [packed](super::Store::archive).
    pub is_archived: bool,
}

/// The state of a conversation in a list.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LogState {
    /// It has not begun, a process runs it or will run it, or it was cancelled or interrupted: [`OpenState`].
    Open,
    /// A person is asked for input.
    Waiting,
    /// It was paused from outside.
    Paused,
    /// Its last turn failed.
    Failed,
    /// It is closed, having reached its goal.
    Done,
    /// It is closed for another reason: a limit, a cancellation, no output.
    Ended,
    /// The log is damaged: [`Listing::is_damaged`].
    Damaged,
}

/// Whether a conversation in [`LogState::Open`] runs, and why not otherwise. Its events alone do not say so.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum OpenState {
    /// A process runs it.
    Running,
    /// It waits for a worker, which continues it now or at a later time.
    Queued,
    /// It was cancelled from outside, and nothing has continued it since.
    Cancelled,
    /// The process that ran it has left it: because of Ctrl-C, a signal or a crash.
    Interrupted,
    /// It has not begun, or is a fork that has only the events it began with, and no worker will continue it.
    New,
}

impl OpenState {
    /// Returns the state as one word, for programs.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Queued => "queued",
            Self::Cancelled => "cancelled",
            Self::Interrupted => "interrupted",
            Self::New => "new",
        }
    }

    /// Returns the state in words, for people.
    pub const fn in_words(self) -> &'static str {
        match self {
            Self::Queued => "waiting for a worker",
            Self::New => "not begun",
            state => state.as_str(),
        }
    }
}

impl Listing {
    /// Creates an entry of which only the id is known.
    pub fn damaged(id: LogId) -> Self {
        let (title, created, summary) = (String::new(), Timestamp::default(), Summary::default());
        let (has_team, is_archived) = (false, false);
        Self { id, title, created, has_team, parent: None, summary, is_damaged: true, is_archived }
    }

    /// Returns the title in lists: the name of the team, and the title that the conversation was given last.
    pub fn shown_title(&self) -> String {
        match &self.summary.title {
            None => self.title.clone(),
            Some(given) => {
                let team = self.title.split_once(' ').map_or(self.title.as_str(), |(team, _)| team);
                format!("{team} {given}").trim_end().to_owned()
            }
        }
    }

    /// Returns the state of the conversation.
    pub fn state(&self) -> LogState {
        if self.is_damaged { LogState::Damaged } else { self.summary.state() }
    }

    /// Returns whether the conversation runs, and why not otherwise, if its [state](Self::state) is [`LogState::Open`]; `None` in other
    /// states. `is_claimed` is whether a process has it open, and `is_queued` whether workers [look at it](super::Queue::is_queued).
    ///
    /// ```
    /// use polylogue_core::{Listing, LogId, OpenState};
    ///
    /// let listing = Listing { is_damaged: false, ..Listing::damaged(LogId::new("k3v9x2").unwrap()) };
    /// assert_eq!(listing.open_state(false, true), Some(OpenState::Queued));
    /// assert_eq!(listing.open_state(false, false), Some(OpenState::New));
    /// ```
    pub fn open_state(&self, is_claimed: bool, is_queued: bool) -> Option<OpenState> {
        let is_as_forked = |parent: &Parent| self.summary.events <= parent.copied();
        let is_new = self.summary.progress == Progress::New || self.parent.as_ref().is_some_and(is_as_forked);
        (self.state() == LogState::Open).then_some(match self.summary.cancelled {
            _ if is_claimed => OpenState::Running,
            _ if is_queued => OpenState::Queued,
            Some(_) => OpenState::Cancelled,
            None if is_new => OpenState::New,
            None => OpenState::Interrupted,
        })
    }
}

impl Summary {
    /// Returns the state of a log that is not damaged.
    pub fn state(&self) -> LogState {
        match &self.progress {
            Progress::Closed(reason) if reason.outcome() == RunOutcome::Done => LogState::Done,
            Progress::Closed(_) => LogState::Ended,
            Progress::Failed(_) => LogState::Failed,
            _ if !self.questions.is_empty() => LogState::Waiting,
            Progress::New | Progress::Open if self.is_paused => LogState::Paused,
            Progress::New | Progress::Open => LogState::Open,
        }
    }
}

/// A query for a list of logs. Default: all.
#[derive(Debug, Clone, Default)]
pub struct ListQuery {
    /// The maximum number of logs; the page says where the next one begins.
    pub limit: Option<usize>,
    /// Only those after this one, as the page before says.
    pub after: Option<Cursor>,
    /// Only those whose id begins with this text.
    pub id: Option<String>,
    /// Only those in one of these states. Default: any.
    pub states: Vec<LogState>,
    /// Only those of the team with this name, or with this title.
    pub team: Option<String>,
    /// Only those in whose [task](Summary::task) or given [title](Summary::title) this text occurs, in upper or lower case.
    pub task: Option<String>,
    /// Only those that were created at this time or later.
    pub since: Option<Timestamp>,
    /// Only forks of this log.
    pub parent: Option<LogId>,
}

/// A position in the list, newest first. It stays valid when logs are created or removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Cursor {
    /// The time of creation.
    pub created: Timestamp,
    /// The id.
    pub id: LogId,
}

impl Cursor {
    /// Returns the cursor as text, for a command or a URL.
    pub fn to_text(&self) -> String {
        format!("{}.{}", self.created.0, self.id)
    }

    /// Parses [`to_text`](Self::to_text); `None` if it is not a cursor.
    pub fn parse(text: &str) -> Option<Self> {
        let (created, id) = text.split_once('.')?;
        Some(Self { created: Timestamp(created.parse().ok()?), id: LogId::new(id).ok()? })
    }
}

impl ListQuery {
    /// Conversations that are neither closed nor waiting for a person: those to resume after a restart.
    pub fn unfinished() -> Self {
        Self { states: vec![LogState::Open, LogState::Failed], ..Self::default() }
    }

    /// Returns whether the query includes a log with this id, as far as the id decides.
    pub fn matches_id(&self, id: &LogId) -> bool {
        self.id.as_ref().is_none_or(|beginning| id.as_str().starts_with(beginning.as_str()))
    }

    /// Returns whether the query lists `listing`.
    pub fn matches(&self, listing: &Listing) -> bool {
        let is_team = |team: &String| {
            listing.title == *team || listing.title.split_once(' ').is_some_and(|(name, _)| name == team)
        };
        let is_after = |cursor: &Cursor| (listing.created, &listing.id) < (cursor.created, &cursor.id);
        let is_child = |id: &LogId| listing.parent.as_ref().is_some_and(|of| of.id == *id);
        self.after.as_ref().is_none_or(is_after)
            && self.matches_id(&listing.id)
            && (self.states.is_empty() || self.states.contains(&listing.state()))
            && self.team.as_ref().is_none_or(is_team)
            && self.task.as_ref().is_none_or(|text| is_found(listing, text))
            && self.since.is_none_or(|since| listing.created >= since)
            && self.parent.as_ref().is_none_or(is_child)
    }
}

/// Whether `text` occurs in what a person knows the conversation by.
fn is_found(listing: &Listing, text: &str) -> bool {
    let title = listing.summary.title.as_deref().or(listing.title.split_once(' ').map(|(_, own)| own));
    contains(&listing.summary.task, text) || title.is_some_and(|title| contains(title, text))
}

fn contains(text: &str, part: &str) -> bool {
    text.to_lowercase().contains(&part.to_lowercase())
}

/// A page of a list.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Page {
    /// The logs, newest first.
    pub logs: Vec<Listing>,
    /// The cursor of the next page; `None` at the end of the list.
    pub next: Option<Cursor>,
}

impl Page {
    /// Returns the page that `query` asks for, of all logs, newest first: sorted by time of creation, then id, both descending.
    /// Takes no more of them than it needs.
    ///
    /// # Errors
    /// The first error of `logs`.
    pub fn of<E>(
        query: &ListQuery,
        logs: impl IntoIterator<Item = std::result::Result<Listing, E>>,
    ) -> std::result::Result<Self, E> {
        let mut page = Self::default();
        for listing in logs {
            let listing = listing?;
            if !query.matches(&listing) {
                continue;
            }
            if query.limit.is_some_and(|limit| page.logs.len() >= limit) {
                let last = page.logs.last();
                page.next = last.map(|last| Cursor { created: last.created, id: last.id.clone() });
                break;
            }
            page.logs.push(listing);
        }
        Ok(page)
    }
}
