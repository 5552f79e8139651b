//! Conversations that are killed until they are over.

use std::collections::BTreeMap;
use std::process::ExitStatus;
use std::time::{Duration, Instant};

use crate::evidence::{Course, Look};
use crate::place::{Kind, Place, Shows};
use crate::random::{Moment, Random};
use crate::replies::TURNS_EACH;

/// How often programs are killed, for each kind of store.
const KILLS: usize = 200;

#[test]
fn a_conversation_in_sqlite_ends_as_if_it_had_not_been_killed() {
    kill_until_enough(Kind::Sqlite);
}

#[test]
fn a_conversation_in_jsonl_ends_as_if_it_had_not_been_killed() {
    kill_until_enough(Kind::Jsonl);
}

/// Were it otherwise, the tests above would show nothing.
#[test]
fn a_store_that_forgets_is_found_out() {
    let place = Place::new(Kind::Jsonl);
    let mut process = place.start(false, Shows::Events);
    assert_eq!(process.kill(Moment::Request(12, Duration::ZERO)), None);
    let (before, shown) = (Look::at(&place), process.events());
    place.forget_events(6);
    let now = Look::at(&place);
    assert!(now.follows(&before).unwrap_err().ends_with("are left"));
    assert!(now.holds(&shown).unwrap_err().starts_with("an event was shown and is not in the log"));
    let mut process = place.start(true, Shows::Talk);
    expect_done(process.end(), &process.errors());
    assert!(
        before.check_later_requests(&place).unwrap_err().ends_with("was finished and was asked for again")
    );
    let (course, asked_again) = Course::of(&place, &Look::at(&place));
    assert!(course.check(&undisturbed(Kind::Jsonl)).unwrap_err().starts_with("request"));
    assert_eq!(asked_again, 0, "what comes again later is not taken for a call in flight");
    assert!(check_server(&place, 1, 0).unwrap_err().starts_with("1 kills"));
}

fn kill_until_enough(kind: Kind) {
    let mut random = Random::of_environment();
    let undisturbed = undisturbed(kind);
    let mut tally = Tally::default();
    let begun = Instant::now();
    let mut conversations = 0;
    while tally.kills < KILLS {
        conversations += 1;
        let course = killed_repeatedly(kind, &mut random, &mut tally);
        course.and_then(|course| course.check(&undisturbed)).unwrap_or_else(|flaw| {
            panic!("{kind:?}, conversation {conversations}, kill {}: {flaw}", tally.kills)
        });
    }
    println!("{kind:?}: {conversations} conversations in {:?}, {tally:?}", begun.elapsed());
    assert!(tally.asked_again > 0, "no kill met a call in flight: {tally:?}");
    assert!(tally.asked_again < tally.kills, "every kill met a call in flight: {tally:?}");
}

/// The outcome of the kills.
#[derive(Debug, Default)]
struct Tally {
    kills: usize,
    /// Requests that came again.
    asked_again: usize,
    /// Of these, those whose reply had gone out in full before.
    paid_twice: usize,
    /// What had happened last when the program was killed.
    after: BTreeMap<String, usize>,
}

/// The course of an undisturbed conversation.
fn undisturbed(kind: Kind) -> Course {
    let place = Place::new(kind);
    let mut process = place.start(false, Shows::Talk);
    expect_done(process.end(), &process.errors());
    let (course, asked_again) = Course::of(&place, &Look::at(&place));
    let count = |kind: &str| course.events.iter().filter(|event| event["type"] == kind).count();
    assert_eq!((count("message"), asked_again), (2 * TURNS_EACH, 0), "{:#?}", course.events.last());
    assert_eq!(count("tool_returned"), 2 * TURNS_EACH.div_ceil(4));
    assert_eq!(course.events.last().unwrap()["reason"]["other"]["details"]["by"], "Bob");
    assert_eq!(place.server.violations(), [""; 0]);
    course
}

fn expect_done(status: ExitStatus, errors: &str) {
    assert_eq!(status.code(), Some(0), "{status}; it said: {errors}");
}

/// Begins a conversation and kills it until it is over; when there were enough kills, lets it end.
fn killed_repeatedly(kind: Kind, random: &mut Random, tally: &mut Tally) -> Result<Course, String> {
    let place = Place::new(kind);
    let mut look = Look::default();
    let mut kills = 0;
    while !look.is_over() {
        let shows = if random.below(2) == 0 { Shows::Events } else { Shows::Talk };
        let mut process = place.start(look.log.is_some(), shows);
        let ended = match tally.kills < KILLS {
            true => process.kill(Moment::draw(random)),
            false => Some(process.end()),
        };
        let now = Look::at(&place);
        match ended {
            Some(status) => expect_done(status, &process.errors()),
            None => {
                kills += 1;
                tally.kills += 1;
                *tally.after.entry(now.last()).or_default() += 1;
            }
        }
        now.follows(&look)?;
        look.check_later_requests(&place)?;
        if shows == Shows::Events {
            now.holds(&process.events())?;
        }
        look = now;
    }
    resume_once_more(&place, &look)?;
    let (course, asked_again) = Course::of(&place, &look);
    check_server(&place, kills, asked_again)?;
    tally.asked_again += asked_again;
    tally.paid_twice += place.server.duplicates().len();
    Ok(course)
}

/// One that was killed after its last event does not know that it was done: a closed conversation is unchanged.
fn resume_once_more(place: &Place, look: &Look) -> Result<(), String> {
    let mut process = place.start(true, Shows::Talk);
    expect_done(process.end(), &process.errors());
    match Look::at(place) == *look {
        true => Ok(()),
        false => Err("a conversation that was over continued".to_owned()),
    }
}

/// A kill costs at most the one call that was in flight.
fn check_server(place: &Place, kills: usize, asked_again: usize) -> Result<(), String> {
    let (violations, twice) = (place.server.violations(), place.server.duplicates().len());
    if !violations.is_empty() {
        return Err(format!("{violations:?}"));
    }
    if asked_again > kills || twice > asked_again {
        return Err(format!(
            "{kills} kills, {asked_again} requests came again, {twice} were answered in full twice"
        ));
    }
    Ok(())
}
