//! The worked histories: both points of view.

use expect_test::{Expect, expect};
use polylogue::tasks::{EndMode, GroupSolve, History, Task};

use crate::yacana::table::{Played, agent, lists, numbered, one, two};

#[track_caller]
fn check(played: &Played, table: &Expect) {
    table.assert_eq(&played.table());
}

// Items 1, 4, 5, 6, 10, 11 and 29.
#[tokio::test]
async fn two_plain_tasks_and_one_iteration() {
    let spy = numbered(2);
    let solve = GroupSolve::new([one(&spy), two(&spy)], EndMode::MaxIterations).max_iterations(1);
    let played = Played::of(spy, solve).await;
    check(
        &played,
        &expect![[r#"
        1  | user P1                  | user P2
        2  | assistant A1             | assistant B1
        3  | user B2                  | user A1
        4  | assistant A2             | assistant B2
    "#]],
    );
    assert_eq!(played.requests(), ["one: P1", "two: P2", "two: A1", "one: B2"]);
    assert_eq!(played.reason(), "1 of 1 iteration");
}

// Item 2: the default is five iterations.
#[tokio::test]
async fn amusement_park() {
    let spy = numbered(6);
    let solve = GroupSolve::new([one(&spy), two(&spy)], EndMode::MaxIterations);
    let played = Played::of(spy, solve).await;
    check(
        &played,
        &expect![[r#"
        1  | user P1                  | user P2
        2  | assistant A1             | assistant B1
        3  | user B2                  | user A1
        4  | assistant A2             | assistant B2
        5  | user B3                  | user A2
        6  | assistant A3             | assistant B3
        7  | user B4                  | user A3
        8  | assistant A4             | assistant B4
        9  | user B5                  | user A4
        10 | assistant A5             | assistant B5
        11 | user B6                  | user A5
        12 | assistant A6             | assistant B6
    "#]],
    );
    assert_eq!((played.requests().len(), played.solved.iterations), (12, 5));
    let requests = ["one: P1", "two: P2", "two: A1", "one: B2", "two: A2", "one: B3", "two: A3"];
    assert_eq!(played.requests()[..7], requests);
}

// Item 3, and item 4 for all of them: every answer is, byte for byte, the next input of the other.
#[tokio::test]
async fn amusement_park_with_ten_iterations() {
    let spy = numbered(11);
    let solve = GroupSolve::new([one(&spy), two(&spy)], EndMode::MaxIterations).max_iterations(10);
    let played = Played::of(spy, solve).await;
    let (one, two) = (played.knows("one"), played.knows("two"));
    assert_eq!((one.len(), two.len()), (22, 22));
    for turn in 2..=10 {
        assert_eq!(one[2 * turn - 2], format!("user B{turn}"));
        assert_eq!(two[2 * turn], format!("user A{turn}"));
    }
}

fn secret(spy: &crate::stage::Spy) -> Task {
    Task::new(agent("one", spy.model()), "S")
}

// Items 10, 16, 28, 30 and 33.
#[tokio::test]
async fn guess_the_number_until_the_first_completion() {
    let spy = lists(&["R", "A1", "A2", "nothing", "no"], &["B1", "B2"]);
    let solve = GroupSolve::new([one(&spy).self_terminating(), two(&spy)], EndMode::FirstCompletion);
    let played = Played::of(spy.clone(), solve.before(secret(&spy))).await;
    check(
        &played,
        &expect![[r#"
        1  | user S                   | user P2
        2  | assistant R              | assistant B1
        3  | user P1                  | user A1
        4  | assistant A1             | assistant B2
        5  | user B2                  | -
        6  | assistant A2             | -
    "#]],
    );
    let requests = ["one: S", "one: P1", "two: P2", "two: A1", "one: B2", "one: REFL", "one: YES/NO"];
    assert_eq!(played.requests(), requests);
    assert_eq!(played.reason(), "the task of one is complete");
}

// Items 18 and 20.
#[tokio::test]
async fn guess_the_number_and_one_last_chat() {
    let spy = lists(
        &["R", "A1", "A2", "some", "yes", "A3", "some", "yes", "A4", "none", "no"],
        &["B1", "B2", "B3", "B4", "B5"],
    );
    let solve = GroupSolve::new([one(&spy).self_terminating(), two(&spy)], EndMode::OneLastChat);
    let played = Played::of(spy.clone(), solve.before(secret(&spy))).await;
    check(
        &played,
        &expect![[r#"
        1  | user S                   | user P2
        2  | assistant R              | assistant B1
        3  | user P1                  | user A1
        4  | assistant A1             | assistant B2
        5  | user B2                  | user A2
        6  | assistant A2             | assistant B3
        7  | user B3                  | user A3
        8  | assistant A3             | assistant B4
        9  | user B4                  | user A4
        10 | assistant A4             | assistant B5
    "#]],
    );
    assert_eq!(played.requests().len(), 16);
    assert_eq!(played.reason(), "the task of one is complete");
}

// Item 21. No agent is asked again after the completion (defect 9).
#[tokio::test]
async fn guess_the_number_and_one_last_group_chat() {
    let spy = lists(&["R", "A1", "A2", "none", "no", "A3"], &["B1", "B2", "B3"]);
    let solve = GroupSolve::new([one(&spy).self_terminating(), two(&spy)], EndMode::OneLastGroupChat);
    let played = Played::of(spy.clone(), solve.before(secret(&spy))).await;
    check(
        &played,
        &expect![[r#"
        1  | user S                   | user P2
        2  | assistant R              | assistant B1
        3  | user P1                  | user A1
        4  | assistant A1             | assistant B2
        5  | user B2                  | user A2
        6  | assistant A2             | assistant B3
        7  | user B3                  | -
        8  | assistant A3             | -
    "#]],
    );
    assert_eq!(played.requests().last().unwrap(), "one: B3");
}

// Items 24 and 29: the answers to the tasks are not asked about, though B1 says all.
#[tokio::test]
async fn counting_until_all_are_complete() {
    let spy = lists(
        &["A1", "A2", "?", "yes", "A3", "?", "no"],
        &["B1", "B2", "?", "yes", "B3", "?", "yes", "B4", "?", "no"],
    );
    let tasks = [one(&spy).self_terminating(), two(&spy).self_terminating()];
    let played = Played::of(spy.clone(), GroupSolve::new(tasks, EndMode::AllComplete)).await;
    check(
        &played,
        &expect![[r#"
        1  | user P1                  | user P2
        2  | assistant A1             | assistant B1
        3  | user B2                  | user A1
        4  | assistant A2             | assistant B2
        5  | user B3                  | user A2
        6  | assistant A3             | assistant B3
        7  | -                        | user A3
        8  | -                        | assistant B4
    "#]],
    );
    assert_eq!(played.requests().len(), 17);
    assert_eq!(played.reason(), "the tasks of one and two are complete");
}

// Item 26.
#[tokio::test]
async fn list_of_numbers_that_is_never_complete() {
    let spy = lists(&["A1", "A2", "?", "yes", "A3", "?", "yes", "A4", "?", "yes"], &["B1", "B2", "B3", "B4"]);
    let solve = GroupSolve::new([one(&spy).self_terminating(), two(&spy)], EndMode::FirstCompletion);
    let played = Played::of(spy, solve.max_iterations(3)).await;
    check(
        &played,
        &expect![[r#"
        1  | user P1                  | user P2
        2  | assistant A1             | assistant B1
        3  | user B2                  | user A1
        4  | assistant A2             | assistant B2
        5  | user B3                  | user A2
        6  | assistant A3             | assistant B3
        7  | user B4                  | user A3
        8  | assistant A4             | assistant B4
    "#]],
    );
    assert_eq!(played.requests().len(), 14);
    assert_eq!(played.reason(), "the limit of 3 rounds");
}

// Items 12 to 14, 34 and 35.
#[tokio::test]
async fn bat_and_ball_with_reflections_that_are_kept() {
    let spy = lists(&["A1", "A2", "RA2", "yes", "A3", "RA3", "no"], &["B1", "B2", "B3"]);
    let one = one(&spy).self_terminating().keeps_reflections();
    let solve = GroupSolve::new([one, two(&spy)], EndMode::FirstCompletion).reconcile();
    let played = Played::of(spy, solve).await;
    check(
        &played,
        &expect![[r#"
        1  | user P1                  | user P1
        2  | assistant A1             | assistant A1
        3  | user P2                  | user P2
        4  | assistant B1             | assistant B1
        5  | user B2                  | user B1
        6  | assistant A2             | assistant B2
        7  | user REFL                | user A2
        8  | assistant RA2            | assistant B3
        9  | user B3                  | -
        10 | assistant A3             | -
        11 | user REFL                | -
        12 | assistant RA3            | -
    "#]],
    );
    assert_eq!(played.requests().len(), 10);
}

// The same without reflections: item 33.
#[tokio::test]
async fn bat_and_ball_with_reflections_that_are_not_kept() {
    let spy = lists(&["A1", "A2", "RA2", "yes", "A3", "RA3", "no"], &["B1", "B2", "B3"]);
    let solve =
        GroupSolve::new([one(&spy).self_terminating(), two(&spy)], EndMode::FirstCompletion).reconcile();
    let played = Played::of(spy, solve).await;
    check(
        &played,
        &expect![[r#"
        1  | user P1                  | user P1
        2  | assistant A1             | assistant A1
        3  | user P2                  | user P2
        4  | assistant B1             | assistant B1
        5  | user B2                  | user B1
        6  | assistant A2             | assistant B2
        7  | user B3                  | user A2
        8  | assistant A3             | assistant B3
    "#]],
    );
    assert_eq!(played.requests().len(), 10);
}

// Section 7.6, without a tool: the first message gives the secret away, and the limit comes first.
#[tokio::test]
async fn guess_up_to_twenty_without_a_tool() {
    let spy = lists(
        &["A1: 14", "A2", "A3", "A4", "A5", "A6"],
        &["B1", "B2", "?", "yes", "B3", "?", "yes", "B4", "?", "yes", "B5", "?", "yes", "B6", "?", "yes"],
    );
    let tasks = [one(&spy), two(&spy).self_terminating()];
    let played = Played::of(spy.clone(), GroupSolve::new(tasks, EndMode::FirstCompletion)).await;
    check(
        &played,
        &expect![[r#"
        1  | user P1                  | user P2
        2  | assistant A1: 14         | assistant B1
        3  | user B2                  | user A1: 14
        4  | assistant A2             | assistant B2
        5  | user B3                  | user A2
        6  | assistant A3             | assistant B3
        7  | user B4                  | user A3
        8  | assistant A4             | assistant B4
        9  | user B5                  | user A4
        10 | assistant A5             | assistant B5
        11 | user B6                  | user A5
        12 | assistant A6             | assistant B6
    "#]],
    );
    assert_eq!(played.requests().len(), 22);
    assert_eq!(played.reason(), "the limit of 5 rounds");
}

// What is printed of each side is what its model was sent and answered: every request about a task is a beginning of
// it.
#[tokio::test]
async fn histories_are_what_the_models_were_sent() {
    let spy = lists(&["R", "A1", "A2", "RA2", "yes", "A3", "RA3", "no"], &["B1", "B2", "B3", "B4"]);
    let one = one(&spy).self_terminating().keeps_reflections();
    let solve = GroupSolve::new([one, two(&spy)], EndMode::OneLastChat).reconcile();
    let played = Played::of(spy.clone(), solve.before(secret(&spy))).await;
    let mut last = [0, 0];
    for asked in played.spy.asked() {
        let history = History::from_transcript(&played.chat, &asked.who).entries;
        let decides = asked.params.temperature == Some(polylogue::tasks::group_solve::Check::TEMPERATURE);
        if !decides {
            assert_eq!(asked.entries, history[..asked.entries.len()], "{}", asked.who);
            last[usize::from(asked.who.as_str() == "two")] = asked.entries.len();
        }
    }
    for (side, sent) in ["one", "two"].into_iter().zip(last) {
        assert_eq!(played.knows(side).len(), sent + 1, "{side}");
    }
}
