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
    /// stopped is due at once, as is one that a person has continued before it had stopped. One whose model is not to be called for a while, because of a rate limit, is due after that. One that
    /// fails in the [same way each time](Error::is_permanent) is left to other workers, and parked after [`PERMANENT_TRIES`]; one whose log is
    /// damaged is parked at once. After another failed turn it is due after a pause that grows with the failures since the last reply of a model.
    pub fn after(status: &Result<Status>, events: &[Arc<Event>], earlier: usize, is_draining: bool) -> Self {
        match status {
            Ok(Status::Closed { .. }) => Self::Until(Due::Never),
            Ok(Status::Waiting(_)) => Self::Until(due_of_questions(events)),
            Ok(Status::Cancelled) => {
                let new = events.get(earlier..).unwrap_or_default();
                let is_due = match last_wish(new) {
                    _ if is_paused(events) => false,
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
                Some(wait) => Self::Until(Due::After(wait)),
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
        match Summary::of(events.iter().map(|event| &**event), true).state() {
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
            // A process of a later version wrote it, and workers of that can run it; or the disk is full, which is no fault of the conversation.
            Error::Store(
                StoreError::UnknownEvent { .. }
                | StoreError::UnknownInstruction { .. }
                | StoreError::Full { .. },
            ) => Self::ForOthers { why: error.to_string() },
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
    let last = wishes(events).find_map(|event| match event.body {
        Body::TurnStarted { .. } | Body::Reopened { .. } => Some(Wish::Continue),
        _ => Wish::of(event),
    });
    is_paused(events) || last == Some(Wish::Stop)
}

fn is_paused(events: &[Arc<Event>]) -> bool {
    Summary::of(events.iter().map(|event| &**event), true).is_paused
}

/// What a person wants of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Wish {
    Stop,
    Continue,
}

impl Wish {
    /// What the one wants that an event is of.
    const fn of(event: &Event) -> Option<Self> {
        match event.body {
            Body::Paused | Body::Cancelled { .. } => Some(Self::Stop),
            Body::Resumed | Body::Sent(_) | Body::InputProvided { .. } => Some(Self::Continue),
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
    let since = events.iter().rev().take_while(|event| {
        !matches!(
            event.body,
            Body::ModelReplied(_)
                | Body::Resumed
                | Body::Sent(_)
                | Body::InputProvided { .. }
                | Body::LimitsChanged { .. }
                | Body::TeamChanged(_)
        )
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
mod tests {
    use polylogue_core::{ModelError, ModelErrorKind, Timestamp};

    use super::*;

    #[test]
    fn pauses_double_up_to_the_longest() {
        let seconds: Vec<u64> = [0, 1, 2, 3, 8, 9, 100, usize::MAX].map(|n| backoff(n).as_secs()).to_vec();
        assert_eq!(seconds, [5, 5, 10, 20, 600, 600, 600, 600]);
    }

    fn events(bodies: impl IntoIterator<Item = Body>) -> Vec<Arc<Event>> {
        let event = |(seq, body)| Event {
            seq,
            at: polylogue_core::Path::root(),
            time: Timestamp(0),
            ran_ms: 0,
            inbox: None,
            body,
        };
        (0..).zip(bodies).map(|numbered| Arc::new(event(numbered))).collect()
    }

    #[test]
    fn what_a_person_has_stopped_is_left_alone_and_what_a_drain_stops_continues() {
        let cancelled = || Body::Cancelled { now: true };
        let never = || Release::Until(Due::Never);
        // The events before a run, those of it, and when it is due if the worker was drained.
        let cases = [
            (vec![], vec![], Release::Until(Due::Now)),
            (vec![Body::Resumed], vec![], Release::Until(Due::Now)),
            (vec![], vec![Body::Paused], never()),
            (vec![], vec![cancelled()], never()),
            // What the step that was let end says after it.
            (vec![], vec![cancelled(), Body::reopened(None)], never()),
            // Earlier ones were continued by this run.
            (vec![cancelled()], vec![Body::Resumed], Release::Until(Due::Now)),
        ];
        // What a person says before the step has ended that was let end.
        let answered = Body::InputProvided {
            to: polylogue_core::Name::user(),
            text: "yes".into(),
            by: polylogue_core::Responder::person(None),
        };
        for (stopped, said, due) in [
            (Body::Paused, Body::Resumed, Due::Now),
            (cancelled(), Body::Resumed, Due::Now),
            (cancelled(), answered.clone(), Due::Now),
            // It waits for the resumption.
            (Body::Paused, answered, Due::Never),
        ] {
            let events = events([stopped, Body::reopened(None), said]);
            for is_draining in [true, false] {
                let release = Release::after(&Ok(Status::Cancelled), &events, 0, is_draining);
                assert_eq!(release, Release::Until(due), "{events:?}");
            }
        }
        for (before, during, release) in cases {
            let text = format!("{before:?} {during:?}");
            let earlier = before.len();
            let events = events(before.into_iter().chain(during));
            let cancelled = Ok(Status::Cancelled);
            assert_eq!(Release::after(&cancelled, &events, earlier, true), release, "{text}");
            assert_eq!(Release::after(&cancelled, &events, earlier, false), never(), "{text}");
        }
        for stopped in [Body::Paused, cancelled()] {
            assert_eq!(Release::before(&events([Body::reopened(None), stopped.clone()])), Some(never()));
            assert_eq!(Release::before(&events([stopped, Body::Resumed])), None);
        }
        // What is said meanwhile continues what was cancelled, and waits where it was paused.
        let message = || polylogue_core::Message::text(polylogue_core::Name::user(), "Hurry.");
        let by = polylogue_core::Responder::default();
        let answer = Body::InputProvided { to: polylogue_core::Name::user(), text: "yes".into(), by };
        for said in [Body::Sent(message()), Body::reopened(Some(message())), answer] {
            assert_eq!(Release::before(&events([cancelled(), said.clone()])), None, "{said:?}");
            let paused = events([Body::Paused, said.clone()]);
            assert_eq!(Release::before(&paused), Some(never()), "{said:?}");
            assert_eq!(Release::of_log(&paused), Some(Due::Never), "{said:?}");
        }
    }

    /// Messages wait for the end of a step, and cancellations do not.
    #[test]
    fn what_was_sent_before_a_cancellation_continues_nothing() {
        let message = polylogue_core::Message::text(polylogue_core::Name::user(), "Hurry.");
        for (cancelled, sent, due) in [(2, 1, Due::Never), (1, 2, Due::Now)] {
            let mut events = events([Body::Cancelled { now: true }, Body::Sent(message.clone())]);
            for (event, number) in events.iter_mut().zip([cancelled, sent]) {
                Arc::make_mut(event).inbox = Some(number);
            }
            let release = Release::after(&Ok(Status::Cancelled), &events, 0, false);
            assert_eq!(release, Release::Until(due));
            assert_eq!(is_stopped(&events), due == Due::Never);
        }
    }

    #[test]
    fn a_model_that_must_not_be_called_for_a_while_is_no_failure() {
        let error = ModelError::new(ModelErrorKind::Refused, "a:b", "too many requests");
        let inner = Error::Model(error.clone().wait_for(Duration::from_mins(1)));
        let within = Error::Within { at: "Ann".into(), error: Box::new(inner.clone()) };
        for waits in [inner, within] {
            let release = Release::after(&Err(waits), &[], 0, false);
            assert_eq!(release, Release::Until(Due::After(Duration::from_mins(1))));
        }
        let release = Release::after(&Err(Error::Model(error)), &[], 0, false);
        assert!(matches!(release, Release::Failed { due: Due::After(BACKOFF_FIRST), .. }), "{release:?}");
    }

    /// W43: while a cluster is updated, workers of both versions have the same database.
    #[test]
    fn what_a_later_version_has_written_is_left_to_its_workers() {
        let (place, kind) = ("`a` in the store".to_owned(), "hologram_shown".to_owned());
        is_no_failure(Error::Store(StoreError::UnknownEvent { place, seq: 7, kind }));
        let (place, kind) = ("the inbox of `a` in the store".to_owned(), "dim".to_owned());
        is_no_failure(Error::Store(StoreError::UnknownInstruction { place, number: 7, kind }));
    }

    #[test]
    fn what_is_damaged_is_parked_at_once_with_the_hint() {
        let damaged = StoreError::Damaged { place: "`a` in the store".into(), why: "torn".into(), intact: 3 };
        let error = Error::Within { at: "Ann".into(), error: Box::new(damaged.into()) };
        for release in [Release::failed(&error), Release::after(&Err(error.clone()), &[], 0, false)] {
            let Release::Failed { due: Due::Never, why } = &release else { panic!("{release:?}") };
            assert!(why.contains("3 events are intact; hint: ") && why.contains("--repair"), "{why}");
        }
    }

    /// W21.
    #[test]
    fn a_full_disk_is_no_failure_of_a_conversation() {
        let error = Error::Store(StoreError::Full { place: "the store".into() });
        is_no_failure(Error::Within { at: "Ann".into(), error: Box::new(error) });
    }

    /// Such a conversation is not parked, however often that happens.
    #[track_caller]
    fn is_no_failure(error: Error) {
        for release in [Release::failed(&error), Release::after(&Err(error.clone()), &[], 0, false)] {
            assert!(matches!(release, Release::ForOthers { .. }), "{error}: {release:?}");
        }
    }

    fn failed(who: &str, error: &Error) -> Body {
        Body::Failed { who: Name::new(who).unwrap(), error: polylogue_core::Failure::from(error) }
    }

    /// As if the provider had refused the key.
    fn refused_key() -> Error {
        let error = ModelError::new(ModelErrorKind::Config, "a:b", "status 401").hint("check the key");
        Error::Within { at: "Ann".into(), error: Box::new(error.into()) }
    }

    #[test]
    fn what_fails_permanently_is_left_to_other_workers_and_parked_with_the_hint_at_last() {
        let (error, mut bodies) = (refused_key(), Vec::new());
        let why = "`Ann`: a:b: status 401; hint: check the key".to_owned();
        let mut next = |before: &[Body]| {
            bodies.extend_from_slice(before);
            // Two agents with one key.
            let earlier = bodies.len();
            bodies.extend([failed("Ann", &error), failed("Bob", &error)]);
            Release::after(&Err(error.clone()), &events(bodies.clone()), earlier, false)
        };
        let parked = Release::Failed { due: Due::Never, why: why.clone() };
        let left = Release::ForOthers { why };
        let after = [next(&[]), next(&[]), next(&[]), next(&[])];
        assert_eq!(after, [left.clone(), left.clone(), parked.clone(), parked.clone()]);
        // Those of before do not count when a person has done something about it.
        assert_eq!([next(&[Body::Resumed]), next(&[]), next(&[])], [left.clone(), left, parked]);
    }

    #[test]
    fn what_may_succeed_later_or_is_not_in_the_log_is_tried_again() {
        let spent = Error::from(ModelError::new(ModelErrorKind::Spent, "a:b", "status 402"));
        let log = events([failed("Ann", &refused_key()), failed("Ann", &spent)]);
        let is_tried_again =
            |release: &Release| matches!(release, Release::Failed { due: Due::After(_), .. });
        let after_spent = Release::after(&Err(spent), &log, 1, false);
        assert!(is_tried_again(&after_spent), "{after_spent:?}");
        // It failed before a turn could: the tries of the store count.
        let unlogged = Release::after(&Err(refused_key()), &log, 2, false);
        assert!(is_tried_again(&unlogged), "{unlogged:?}");
    }

    #[test]
    fn calls_that_were_put_off_are_no_failures_for_the_next_pause() {
        let error = ModelError::new(ModelErrorKind::Refused, "a:b", "too many requests");
        let put_off = failed("Ann", &error.clone().postponed_for(Duration::from_mins(1)).into());
        let failed = failed("Ann", &error.into());
        let bodies = [put_off.clone(), failed.clone(), put_off.clone(), put_off, failed];
        assert_eq!(failures(&events(bodies)), 2);
    }

    const BACKOFF_FIRST: Duration = BACKOFF.0;
}
