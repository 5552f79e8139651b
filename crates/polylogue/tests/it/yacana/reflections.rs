//! Asking an agent what is left to do: which agent, when, and who reads it. Items 28 to 31, 33 to 36.

use polylogue::tasks::{EndMode, GroupSolve};

use crate::yacana::table::{Played, lines, lists, one, two};

/// Two iterations in which `one` is asked after each of its turns, and has something left to do.
async fn asked_twice(keeps: bool) -> Played {
    let spy = lists(&["A1", "A2", "RA2", "yes", "A3", "RA3", "yes"], &["B1", "B2", "B3"]);
    let one = one(&spy).self_terminating();
    let one = if keeps { one.keeps_reflections() } else { one };
    Played::of(spy.clone(), GroupSolve::new([one, two(&spy)], EndMode::FirstCompletion).max_iterations(2))
        .await
}

const BEFORE: [&str; 4] = ["user P1", "assistant A1", "user B2", "assistant A2"];

// Item 28.
#[tokio::test]
async fn only_self_terminating_agents_are_asked_about_their_task() {
    let played = asked_twice(false).await;
    let of_two: Vec<String> =
        played.requests().into_iter().filter(|asked| asked.starts_with("two")).collect();
    assert_eq!(of_two, ["two: P2", "two: A1", "two: A2"]);
}

// Item 29.
#[tokio::test]
async fn of_two_agents_none_is_asked_about_the_answer_to_its_task() {
    let spy = lists(&["A1", "A2", "?", "yes"], &["B1", "B2", "?", "yes"]);
    let tasks = [one(&spy).self_terminating(), two(&spy).self_terminating()];
    let played = Played::of(spy, GroupSolve::new(tasks, EndMode::FirstCompletion).max_iterations(1)).await;
    assert_eq!(played.requests()[..4], ["one: P1", "two: P2", "two: A1", "two: REFL"]);
    assert!(played.solved.checks.iter().all(|check| check.iteration == 1));
}

// Item 30.
#[tokio::test]
async fn the_speaker_is_asked_twice_before_the_next_speaks() {
    let requests = ["one: B2", "one: REFL", "one: YES/NO", "two: A2", "one: B3", "one: REFL", "one: YES/NO"];
    assert_eq!(asked_twice(false).await.requests()[3..], requests);
}

// Item 31.
#[tokio::test]
async fn the_decision_is_asked_for_with_the_reflection_in_sight() {
    let asked = asked_twice(false).await.spy.asked();
    let shown = [&BEFORE[..], &["user REFL", "assistant RA2", "user YES/NO"]].concat();
    assert_eq!(lines(&asked[5].entries), shown);
}

// Item 33.
#[tokio::test]
async fn a_reflection_leaves_no_trace() {
    let played = asked_twice(false).await;
    assert_eq!(lines(&played.spy.asked()[7].entries), [&BEFORE[..], &["user B3"]].concat());
    assert_eq!(played.knows("one"), [&BEFORE[..], &["user B3", "assistant A3"]].concat());
}

// Item 34.
#[tokio::test]
async fn a_reflection_can_be_kept_where_it_was_made() {
    let played = asked_twice(true).await;
    // Later requests have it, and no yes or no.
    let shown = [&BEFORE[..], &["user REFL", "assistant RA2", "user B3"]].concat();
    assert_eq!(lines(&played.spy.asked()[7].entries), shown);
    assert!(played.knows("one").iter().all(|line| !line.contains("YES/NO") && !line.contains("yes")));
}

// Item 35.
#[tokio::test]
async fn a_history_ends_with_the_reflection_that_is_kept() {
    let knows = asked_twice(true).await.knows("one");
    assert_eq!(knows[knows.len() - 3..], ["assistant A3", "user REFL", "assistant RA3"]);
}

// Item 36.
#[tokio::test]
async fn no_other_agent_reads_a_reflection() {
    for keeps in [false, true] {
        let played = asked_twice(keeps).await;
        let of_two = played.spy.asked().into_iter().filter(|asked| asked.who.as_str() == "two");
        for line in of_two.flat_map(|asked| lines(&asked.entries)).chain(played.knows("two")) {
            assert!(!line.contains("RA") && !line.contains("REFL"), "{line}");
        }
        assert_eq!(played.knows("two")[2..], ["user A1", "assistant B2", "user A2", "assistant B3"]);
    }
}
