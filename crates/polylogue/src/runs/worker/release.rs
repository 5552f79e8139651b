//! How workers release conversations.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use polylogue_core::{
    Body, Due, Error, Event, LogState, Name, OpenQuestion, Result, Status, StoreError, Summary,
};

/// How a worker releases a conversation after a run: for how long workers leave it alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Release {
    /// It is due again then, or when an inbox message comes.
    Until(Due),
    /// It could not be run. It is tried again at `due`; after several times in a row without an event it is parked, and with [`Due::Never`] at
    /// once.
    Failed {
        /// The time of the next attempt.
        due: Due,
        /// The error.
        why: String,
    },
    /// This worker cannot run it, and others may: it is due for them at once, and was not tried. This one claims it again after
    /// [`BACKOFF`], if no other one has it then, and after twice as long each time.
    ForOthers {
        /// The reason.
        why: String,
    },
    /// Its claim was lost: the worker releases nothing.
    Lost,
}

/// How often a conversation is tried that fails permanently, such as because the provider refuses the key. Each worker leaves it to others, whose keys may be
/// accepted; the last one parks it. So one worker with a wrong key parks nothing that another one can run, and a worker alone gives up after 15 seconds.
pub const PERMANENT_TRIES: usize = 3;

/// The first and the longest pause after a failure.
pub const BACKOFF: (Duration, Duration) = (Duration::from_secs(5), Duration::from_mins(10));

/// The longest wait that a provider or a limit can ask for: a wrong header, such as one in milliseconds, must not put a conversation off for
/// weeks.
const LONGEST_WAIT: Duration = Duration::from_hours(24);

/// Returns the pause after `failures` failures in a row, which doubles each time.
pub fn backoff(failures: usize) -> Duration {
    let doublings = u32::try_from(failures.saturating_sub(1)).unwrap_or(u32::MAX);
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    BACKOFF.0.saturating_mul(factor).min(BACKOFF.1)
}

impl Release {
    /// Decides before a run of the log that has `events`: if a person has [paused or cancelled](is_stopped) it, it is not run but
    /// released until an inbox message comes. `None` if it is to be run.
    pub fn before(events: &[Arc<Event>]) -> Option<Self> {
        is_stopped(events).then_some(Self::Until(Due::Never))
    }

    /// Decides after a run that ended with `status`. The log has `events` now, the first `earlier` of them from before the run.
    ///
    /// A conversation that is closed, or that a person has paused or cancelled, rests until an inbox message comes, one that waits for
    /// people until the first of its questions has its default answer, and one that a [drained](super::Claimed::is_draining) worker
    /// stopped is due at once, as is one that a person has continued before it had stopped. One whose model is not to be called for a while, because of a rate limit, is due after that, and at the latest after a day. One that
    /// fails in the [same way each time](Error::is_permanent) is left to other workers, and parked after [`PERMANENT_TRIES`]; one whose log is
    /// damaged is parked at once. After another failed turn it is due after a pause that grows with the failures since the last reply of a model.
    pub fn after(status: &Result<Status>, events: &[Arc<Event>], earlier: usize, is_draining: bool) -> Self {
        match status {
            Ok(Status::Closed { .. }) => Self::Until(Due::Never),
            Ok(Status::Waiting(_)) => Self::Until(due_of_questions(events)),
            Ok(Status::Cancelled) => {
                let new = events.get(earlier..).unwrap_or_default();
                let is_due = match last_wish(new) {
                    _ if summary(events).is_paused => false,
                    Some(Wish::Stop) => false,
                    // A person has continued it before the step had ended that was let end.
                    Some(Wish::Continue) if new.iter().any(|event| Wish::of(event) == Some(Wish::Stop)) => {
                        true
                    }
                    Some(Wish::Continue) | None => is_draining && !is_stopped(events),
                };
                Self::Until(if is_due { Due::Now } else { Due::Never })
            }
            Err(error) => match wait_of(error) {
                Some(wait) => Self::Until(Due::After(wait.min(LONGEST_WAIT))),
                None if error.is_permanent() && is_refused(events.get(earlier..).unwrap_or_default()) => {
                    Self::refused(error, refusals(events))
                }
                None => Self::failed_after(error, failures(events)),
            },
        }
    }

    /// After a failure that is the same each time: so many in a row.
    fn refused(error: &Error, times: usize) -> Self {
        let why = with_hint(error);
        match times >= PERMANENT_TRIES {
            true => Self::Failed { due: Due::Never, why },
            false => Self::ForOthers { why },
        }
    }

    /// Decides until when workers leave a conversation alone that another process has had open, and that they continue at `due` unless it is
    /// at rest. `waits` is whether its run there ended because all that is open in it waits for people: a log with an open question does not
    /// say so, as another turn can be in progress, or another question can have an answer that no run has taken in.
    pub fn of_log(events: &[Arc<Event>], due: Due, waits: bool) -> Due {
        match summary(events).state() {
            LogState::Done | LogState::Ended | LogState::Paused => Due::Never,
            LogState::Waiting if waits => due_of_questions(events),
            _ if is_stopped(events) => Due::Never,
            LogState::Waiting if due == Due::Never => due_of_questions(events),
            LogState::Waiting | LogState::Open | LogState::Failed | LogState::Damaged => due,
        }
    }

    /// Decides for a conversation that could not be opened, or failed without an event that says so. One that is damaged is parked at once: what
    /// one worker cannot read, no other one can.
    pub fn failed(error: &Error) -> Self {
        Self::failed_after(error, 1)
    }

    fn failed_after(error: &Error, failures: usize) -> Self {
        match error {
            Error::Store(StoreError::Fenced { .. } | StoreError::Replaced { .. }) => Self::Lost,
            // A process of a later version wrote it, and workers of that can run it; or the database cannot be reached from here, or the disk
            // is full, which is no fault of the conversation.
            Error::Store(
                StoreError::UnknownEvent { .. }
                | StoreError::UnknownInstruction { .. }
                | StoreError::Unreachable { .. }
                | StoreError::Full { .. },
            ) => Self::ForOthers { why: error.to_string() },
            // A setting, a table or a right of the database is at fault.
            Error::Store(StoreError::Unsuitable { .. }) => Self::ForOthers { why: with_hint(error) },
            Error::Store(StoreError::Damaged { .. }) => {
                Self::Failed { due: Due::Never, why: with_hint(error) }
            }
            Error::Within { error, .. } => Self::failed_after(error, failures),
            error => Self::Failed { due: Due::After(backoff(failures)), why: with_hint(error) },
        }
    }
}

/// When the first question that is open has its default answer.
fn due_of_questions(events: &[Arc<Event>]) -> Due {
    OpenQuestion::first_default(&OpenQuestion::of(events)).map_or(Due::Never, Due::At)
}

/// How long a model is not to be called, if that is why a turn failed.
fn wait_of(error: &Error) -> Option<Duration> {
    match error {
        Error::Model(error) => error.wait(),
        Error::Within { error, .. } => wait_of(error),
        _ => None,
    }
}

/// Returns whether a person has paused or cancelled a conversation, and nothing has continued it since: workers leave it alone
/// until it is resumed. One that was cancelled is also continued by a message or an answer; those to a paused one are stored
/// until it is resumed.
pub fn is_stopped(events: &[Arc<Event>]) -> bool {
    summary(events).is_stopped()
}

fn summary(events: &[Arc<Event>]) -> Summary {
    Summary::of(events.iter().map(|event| &**event), true)
}

/// What a person wants of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Stop,
    Continue,
}

impl Wish {
    /// What the one wants that an event is of.
    fn of(event: &Event) -> Option<Self> {
        match event.body {
            Body::Paused | Body::Cancelled { .. } => Some(Self::Stop),
            Body::Resumed | Body::Sent(_) | Body::InputProvided { .. } => Some(Self::Continue),
            // A message to a chat that was closed by then. Others are calls of agents.
            Body::Reopened { message: Some(_), .. } if event.chat.is_root() => Some(Self::Continue),
            _ => None,
        }
    }
}

/// The last events first, without messages and answers that were sent before a stop and come after it in the log, because they waited
/// for the end of a step: they continue nothing.
fn wishes(events: &[Arc<Event>]) -> impl Iterator<Item = &Arc<Event>> {
    let stop = events.iter().rev().find(|event| Wish::of(event) == Some(Wish::Stop));
    let stop = stop.and_then(|event| event.inbox);
    events.iter().rev().filter(move |event| {
        let is_earlier = event.inbox.zip(stop).is_some_and(|(own, stop)| own < stop);
        !is_earlier || Wish::of(event) != Some(Wish::Continue)
    })
}

fn last_wish(events: &[Arc<Event>]) -> Option<Wish> {
    wishes(events).find_map(|event| Wish::of(event))
}

/// What went wrong, and how to fix it if that is known, in one line.
fn with_hint(error: &Error) -> String {
    let text = error.hint().iter().fold(error.to_string(), |what, hint| format!("{what}; hint: {hint}"));
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

/// Whether the last run of a conversation, or the last ones, failed in a way that is the same each time until a person changes something.
pub fn is_refused(events: &[Arc<Event>]) -> bool {
    refusals(events) > 0
}

/// How often in a row the turns of an agent failed in a way that is the same each time, since a model has replied or a person has done something
/// about it. Of several agents that fail in one run, the one that failed most often counts.
fn refusals(events: &[Arc<Event>]) -> usize {
    let since = events.iter().rev().take_while(|event| match event.body {
        Body::ModelReplied(_)
        | Body::Resumed
        | Body::Sent(_)
        | Body::InputProvided { .. }
        | Body::LimitsChanged { .. }
        | Body::TeamChanged(_) => false,
        // Others are calls of agents.
        Body::Reopened { .. } => !event.chat.is_root(),
        _ => true,
    });
    let mut of_agents = BTreeMap::<&Name, usize>::new();
    for event in since {
        if let Body::Failed { who, error } = &event.body
            && error.permanent
        {
            *of_agents.entry(who).or_default() += 1;
        }
    }
    of_agents.into_values().max().unwrap_or_default()
}

/// Failed turns since the last reply of a model, without calls that were only put off.
fn failures(events: &[Arc<Event>]) -> usize {
    let since = events.iter().rev().take_while(|event| !matches!(event.body, Body::ModelReplied(_)));
    since.filter(|event| matches!(&event.body, Body::Failed { error, .. } if !error.postponed)).count()
}

#[cfg(test)]
#[path = "release_tests.rs"]
mod tests;
