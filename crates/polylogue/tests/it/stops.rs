//! Termination conditions.

use crate::common::{name, talk, talk_of};
use polylogue::stop::LoopDetector;
use polylogue::stop::{
    self, Condition as _, Stop, max_cost, max_messages, max_time_ms, max_tokens, max_turns, says, when,
};
use polylogue::stop::{Counted, LibraryStopReason};
use polylogue_core::{Money, RunOutcome, StopReason};

fn now(stop: impl polylogue::stop::Condition, lines: &[(&str, &str)]) -> Option<StopReason> {
    stop.now(&talk(lines))
}

fn mentioned(text: &str, by: &str) -> Option<StopReason> {
    Some(StopReason::from(LibraryStopReason::Mentioned { text: text.into(), by: name(by) }))
}

#[test]
fn text_ends_a_chat_when_it_is_said_and_never_because_of_the_task() {
    assert_eq!(now(says("DONE"), &[("user", "say DONE")]), None);
    assert_eq!(now(says("DONE"), &[("user", "x"), ("A", "we are DONE here")]), mentioned("DONE", "A"));
    assert_eq!(now(says("DONE"), &[("user", "x"), ("A", "DONE"), ("B", "go on")]), None, "only news count");
}

#[test]
fn a_whole_message_is_more_than_a_mention() {
    assert_eq!(now(says("DONE").whole(), &[("user", "x"), ("A", "we are DONE here")]), None);
    assert_eq!(now(says("DONE").whole(), &[("user", "x"), ("A", " DONE\n")]), mentioned("DONE", "A"));
}

#[test]
fn only_named_participants_can_end_a_chat_by_text() {
    let stop = || says("DONE").by(name("B"));
    assert_eq!(now(stop(), &[("user", "x"), ("A", "DONE")]), None);
    assert_eq!(now(stop(), &[("user", "x"), ("B", "DONE")]), mentioned("DONE", "B"));
}

#[test]
fn a_stop_text_within_reasoning_does_not_end_the_chat() {
    let chat = talk_of(&[("user", "x", ""), ("A", "not yet", "DONE")]);
    assert_eq!(Stop::from(says("DONE")).now(&chat), None);
}

#[test]
fn regular_expressions_end_a_chat_and_bad_ones_are_refused() {
    let stop = stop::matches(r"(?i)^score: \d+$", vec![name("A")]).unwrap();
    assert_eq!(now(stop.clone(), &[("user", "x"), ("B", "Score: 3")]), None);
    let matched = now(stop, &[("user", "x"), ("A", "Score: 3")]).unwrap();
    assert_eq!(matched.to_string(), r"A's message matched `(?i)^score: \d+$`");
    assert!(stop::matches("(", vec![]).is_err());
}

#[test]
fn counts_end_a_chat() {
    let lines = [("user", "x"), ("A", "1"), ("B", "2")];
    assert_eq!(
        now(max_turns(2), &lines),
        Some(StopReason::from(LibraryStopReason::CountReached { count: 2, of: Counted::Turns }))
    );
    assert_eq!(now(max_turns(3), &lines), None);
    assert_eq!(
        now(max_messages(3), &lines),
        Some(StopReason::from(LibraryStopReason::CountReached { count: 3, of: Counted::Messages }))
    );
    assert_eq!(now(max_messages(4), &lines), None);
}

#[test]
fn tokens_money_and_time_end_a_chat() {
    // Each turn of `talk` uses 10 tokens and a cent, and takes a second.
    let lines = [("user", "x"), ("A", "1"), ("B", "2")];
    assert_eq!(
        now(max_tokens(20), &lines),
        Some(StopReason::Tokens { limit: 20, used: 20, next: None, cut: None })
    );
    assert_eq!(now(max_tokens(21), &lines), None);
    let (limit, spent) = (Money::dollars(0.015), Money::dollars(0.02));
    assert_eq!(now(max_cost(limit), &lines), Some(StopReason::Cost { limit, spent, next: None, cut: None }));
    assert_eq!(now(max_cost(limit), &lines).unwrap().outcome(), RunOutcome::Budget);
    assert_eq!(
        now(max_time_ms(2000), &lines),
        Some(StopReason::from(LibraryStopReason::Time { limit_ms: 2000 }))
    );
    assert_eq!(now(max_time_ms(2001), &lines), None);
}

#[test]
fn own_conditions_end_a_chat_by_name() {
    let long = || when("long enough", |chat| chat.message_count() > 2);
    assert_eq!(now(long(), &[("user", "x"), ("A", "1")]), None);
    let reason = now(long(), &[("user", "x"), ("A", "1"), ("B", "2")]).unwrap();
    assert_eq!(reason, StopReason::from(LibraryStopReason::Condition { name: "long enough".into() }));
}

#[test]
fn either_condition_ends_a_chat_and_the_first_given_is_the_reason() {
    let stop = || says("DONE") | max_turns(1);
    assert_eq!(now(stop(), &[("user", "x"), ("A", "DONE")]), mentioned("DONE", "A"));
    assert_eq!(
        now(stop(), &[("user", "x"), ("A", "hm")]),
        Some(StopReason::from(LibraryStopReason::CountReached { count: 1, of: Counted::Turns }))
    );
}

#[test]
fn both_conditions_end_a_chat_also_when_one_held_before() {
    let stop = || says("A done") & says("B done");
    let mut lines = vec![("user", "x"), ("A", "A done")];
    assert_eq!(now(stop(), &lines), None);
    lines.extend([("B", "hm"), ("A", "well"), ("B", "B done")]);
    let reason = now(stop(), &lines).unwrap();
    assert_eq!(reason.to_string(), "A said `A done`, and B said `B done`");
    lines.push(("A", "more"));
    assert_eq!(now(stop(), &lines), None, "something has to hold now");
}

fn circle(lines: &[(&str, &str)]) -> Option<String> {
    match now(LoopDetector::default(), lines) {
        Some(StopReason::LoopDetected { pattern, evidence, .. }) => {
            assert!(!evidence.is_empty() && evidence.is_sorted(), "{evidence:?}");
            Some(pattern.to_string())
        }
        None => None,
        other => panic!("{other:?}"),
    }
}

#[test]
fn nearly_the_same_messages_repeatedly_are_a_circle() {
    let round = [("A", "I fully agree with you, my friend!"), ("B", "And I agree with you as well.")];
    let mut lines = vec![("user", "x")];
    for _ in 0..3 {
        lines.extend(round);
    }
    assert_eq!(circle(&lines), None, "said three times is repeated twice");
    lines.extend(round);
    assert_eq!(circle(&lines), Some("repetition".into()));
}

#[test]
fn one_side_that_makes_progress_is_no_loop() {
    let numbers: Vec<String> = (0..20).map(|n| format!("The next number is {n}")).collect();
    let mut lines = vec![("user", "x")];
    for number in &numbers {
        lines.extend([("A", number.as_str()), ("B", "Go on, please")]);
        assert_eq!(circle(&lines), None);
    }
}

#[test]
fn endless_farewells_are_a_loop() {
    let mut lines = vec![("user", "x"), ("A", "The result is 42.")];
    lines.extend([("B", "Thanks a lot!"), ("A", "You're welcome, bye!"), ("B", "Goodbye!")]);
    assert_eq!(circle(&lines), None);
    lines.push(("A", "Take care, and have a nice day."));
    assert_eq!(circle(&lines), Some("farewells".into()));
}

#[test]
fn consecutive_silent_turns_count_as_a_loop() {
    assert_eq!(circle(&[("user", "x"), ("A", "hi"), ("B", "")]), None);
    assert_eq!(circle(&[("user", "x"), ("A", "hi"), ("B", ""), ("A", " \n")]), Some("silence".into()));
}

#[test]
fn loop_detection_can_be_tuned_and_disabled() {
    let silent = [("user", "x"), ("A", ""), ("B", ""), ("A", "")];
    assert_eq!(now(LoopDetector { silence: 0, ..LoopDetector::default() }, &silent), None);
    assert_eq!(now(LoopDetector { silence: 4, ..LoopDetector::default() }, &silent), None);
    assert!(now(LoopDetector { silence: 3, ..LoopDetector::default() }, &silent).is_some());
}
