//! Tests of when conversations rest.

use super::*;
use polylogue_core::{Listing, LogId, ModelError, ModelErrorKind, OpenState, Timestamp};

#[test]
fn pauses_double_up_to_the_longest() {
    let seconds: Vec<u64> = [0, 1, 2, 3, 8, 9, 100, usize::MAX].map(|n| backoff(n).as_secs()).to_vec();
    assert_eq!(seconds, [5, 5, 10, 20, 600, 600, 600, 600]);
}

fn events(bodies: impl IntoIterator<Item = Body>) -> Vec<Arc<Event>> {
    let event = |(seq, body)| Event {
        seq,
        chat: polylogue_core::Path::root(),
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
    let sent = Body::reopened(Some(polylogue_core::Message::new(polylogue_core::Name::user(), "And now?")));
    for (stopped, said, due) in [
        // The step that was let end has closed the chat.
        (cancelled(), sent.clone(), Due::Now),
        (Body::Paused, sent, Due::Never),
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
    let message = || polylogue_core::Message::new(polylogue_core::Name::user(), "Hurry.");
    let by = polylogue_core::Responder::default();
    let answer = Body::InputProvided { to: polylogue_core::Name::user(), text: "yes".into(), by };
    for said in [Body::Sent(message()), Body::reopened(Some(message())), answer] {
        assert_eq!(Release::before(&events([cancelled(), said.clone()])), None, "{said:?}");
        let paused = events([Body::Paused, said.clone()]);
        assert_eq!(Release::before(&paused), Some(never()), "{said:?}");
        assert_eq!(Release::of_log(&paused, Due::Now, false), Due::Never, "{said:?}");
    }
}

/// The log alone does not say whether the turn of another participant is in progress.
#[test]
fn a_question_keeps_workers_away_only_where_nothing_else_can_continue() {
    let asks = |who: &str, after_ms| {
        let default = Some(polylogue_core::DefaultAnswer { after_ms, text: "no".into() });
        let question = polylogue_core::Question::new(Name::new(who).unwrap(), "?");
        Body::InputRequired(polylogue_core::Question { default, ..question })
    };
    let by = polylogue_core::Responder::default();
    let answer = Body::InputProvided { to: Name::new("Ann").unwrap(), text: "yes".into(), by };
    let sent = Body::Sent(polylogue_core::Message::new(Name::user(), "Hurry."));
    let several = [asks("Ann", 500), asks("Bob", 900)];
    let answered = [&several[..], &[answer]].concat();
    let and_sent = [&answered[..], &[sent]].concat();
    let cancelled = [&several[..], &[Body::Cancelled { now: true }]].concat();
    let at = |ms| Due::At(Timestamp(ms));
    for (bodies, due, waits, rests) in [
        // The first default answer of all that are open.
        (&several[..], Due::Now, true, at(500)),
        (&several[..1], Due::Now, true, at(500)),
        (&several[1..], Due::Now, true, at(900)),
        (&answered[..], Due::Now, true, at(900)),
        // Nothing has run since the answer, or the turn of Cid is in progress.
        (&answered[..], Due::Now, false, Due::Now),
        (&and_sent[..], Due::Now, false, Due::Now),
        (&several[..], Due::Now, false, Due::Now),
        (&several[..], Due::Never, false, at(500)),
        (&cancelled[..], Due::Now, false, Due::Never),
    ] {
        let log = events(bodies.iter().cloned());
        assert_eq!(Release::of_log(&log, due, waits), rests, "{bodies:?}, {due:?}, {waits}");
    }
}

/// Messages wait for the end of a step, and cancellations do not.
#[test]
fn what_was_sent_before_a_cancellation_continues_nothing() {
    let message = polylogue_core::Message::new(polylogue_core::Name::user(), "Hurry.");
    for (cancelled, sent, due) in [(2, 1, Due::Never), (1, 2, Due::Now)] {
        let mut events = events([Body::Cancelled { now: true }, Body::Sent(message.clone())]);
        for (event, number) in events.iter_mut().zip([cancelled, sent]) {
            Arc::make_mut(event).inbox = Some(number);
        }
        let release = Release::after(&Ok(Status::Cancelled), &events, 0, false);
        assert_eq!(release, Release::Until(due));
        assert_eq!(is_stopped(&events), due == Due::Never);
        let id = LogId::new("k3v9x2").unwrap();
        let listing = Listing { is_damaged: false, summary: summary(&events), ..Listing::damaged(id) };
        let word = if due == Due::Never { OpenState::Cancelled } else { OpenState::New };
        assert_eq!(listing.open_state(false, false), Some(word), "lists agree");
    }
}

#[test]
fn a_model_that_must_not_be_called_for_a_while_is_no_failure() {
    let error = ModelError::new(ModelErrorKind::Unavailable, "a:b", "too many requests");
    let inner = Error::Model(error.clone().wait_for(Duration::from_mins(1)));
    let within = Error::Within { at: "Ann".into(), error: Box::new(inner.clone()) };
    for waits in [inner, within] {
        let release = Release::after(&Err(waits), &[], 0, false);
        assert_eq!(release, Release::Until(Due::After(Duration::from_mins(1))));
    }
    // A provider can mean milliseconds.
    let long = Error::Model(error.clone().wait_for(Duration::from_hours(24 * 49)));
    let release = Release::after(&Err(long), &[], 0, false);
    assert_eq!(release, Release::Until(Due::After(Duration::from_hours(24))));
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

#[test]
fn a_database_that_cannot_be_reached_is_no_failure_of_a_conversation() {
    let (place, why) = ("the store".to_owned(), "connection refused".to_owned());
    let error = Error::Store(StoreError::Unreachable { place, why });
    is_no_failure(Error::Within { at: "Ann".into(), error: Box::new(error) });
}

/// A table is missing, for example.
#[test]
fn a_database_that_cannot_be_used_is_no_failure_of_a_conversation() {
    let (place, why) = ("the store".to_owned(), "its schema was changed".to_owned());
    let error = Error::Store(StoreError::Unsuitable { place, why, hint: "restore it".into() });
    is_no_failure(Error::Within { at: "Ann".into(), error: Box::new(error.clone()) });
    let release = Release::failed(&error);
    assert!(
        matches!(&release, Release::ForOthers { why } if why.ends_with("; hint: restore it")),
        "{release:?}"
    );
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
    let again = polylogue_core::Message::new(Name::user(), "Try again.");
    for done in [Body::Resumed, Body::reopened(Some(again))] {
        let after = [next(std::slice::from_ref(&done)), next(&[]), next(&[])];
        assert_eq!(after, [left.clone(), left.clone(), parked.clone()], "{done:?}");
    }
}

#[test]
fn what_may_succeed_later_or_is_not_in_the_log_is_tried_again() {
    let spent = Error::from(ModelError::new(ModelErrorKind::QuotaExceeded, "a:b", "status 402"));
    let log = events([failed("Ann", &refused_key()), failed("Ann", &spent)]);
    let is_tried_again = |release: &Release| matches!(release, Release::Failed { due: Due::After(_), .. });
    let after_spent = Release::after(&Err(spent), &log, 1, false);
    assert!(is_tried_again(&after_spent), "{after_spent:?}");
    // It failed before a turn could: the tries of the store count.
    let unlogged = Release::after(&Err(refused_key()), &log, 2, false);
    assert!(is_tried_again(&unlogged), "{unlogged:?}");
}

#[test]
fn calls_that_were_put_off_are_no_failures_for_the_next_pause() {
    let error = ModelError::new(ModelErrorKind::Unavailable, "a:b", "too many requests");
    let put_off = failed("Ann", &error.clone().postponed_for(Duration::from_mins(1)).into());
    let failed = failed("Ann", &error.into());
    let bodies = [put_off.clone(), failed.clone(), put_off.clone(), put_off, failed];
    assert_eq!(failures(&events(bodies)), 2);
}

const BACKOFF_FIRST: Duration = BACKOFF.0;
