//! Section 7.4: who begins, with what, and what both know: both points of view, to the end.

use expect_test::{Expect, expect};
use polylogue::tasks::{EndMode, GroupSolve};

use crate::yacana::table::{Played, lists, one, two};

/// The list of numbers, whose first agent holds its task to be incomplete until the limit of two iterations.
async fn list_of_numbers(change: impl FnOnce(GroupSolve) -> GroupSolve) -> Played {
    let spy = lists(&["A1", "A2", "?", "yes", "A3", "?", "yes"], &["B1", "B2", "B3"]);
    let solve = GroupSolve::new([one(&spy).self_terminating(), two(&spy)], EndMode::FirstCompletion);
    let played = Played::of(spy, change(solve.max_iterations(2))).await;
    assert_eq!((played.reason().as_str(), played.requests().len()), ("the limit of 2 rounds", 10));
    played
}

fn check(played: &Played, table: &Expect) {
    table.assert_eq(&played.table());
}

#[tokio::test]
async fn the_first_message_is_copied() {
    check(
        &list_of_numbers(|solve| solve).await,
        &expect![[r#"
        1  | user P1                  | user P2
        2  | assistant A1             | assistant B1
        3  | user B2                  | user A1
        4  | assistant A2             | assistant B2
        5  | user B3                  | user A2
        6  | assistant A3             | assistant B3
    "#]],
    );
}

#[tokio::test]
async fn the_first_message_is_given() {
    check(
        &list_of_numbers(|solve| solve.shift_content("Let's go")).await,
        &expect![[r#"
        1  | user P1                  | user P2
        2  | assistant A1             | assistant B1
        3  | user B2                  | user Let's go
        4  | assistant A2             | assistant B2
        5  | user B3                  | user A2
        6  | assistant A3             | assistant B3
    "#]],
    );
}

#[tokio::test]
async fn the_first_agent_begins() {
    check(
        &list_of_numbers(|solve| solve.shift_owner("one")).await,
        &expect![[r#"
        1  | user P1                  | user P2
        2  | assistant A1             | assistant B1
        3  | user B1                  | user A2
        4  | assistant A2             | assistant B2
        5  | user B2                  | user A3
        6  | assistant A3             | assistant B3
    "#]],
    );
}

#[tokio::test]
async fn the_first_agent_begins_with_a_message_that_is_given() {
    check(
        &list_of_numbers(|solve| solve.shift_owner("one").shift_content("Let's go")).await,
        &expect![[r#"
        1  | user P1                  | user P2
        2  | assistant A1             | assistant B1
        3  | user Let's go            | user A2
        4  | assistant A2             | assistant B2
        5  | user B2                  | user A3
        6  | assistant A3             | assistant B3
    "#]],
    );
}

#[tokio::test]
async fn first_messages_are_reconciled() {
    check(
        &list_of_numbers(|solve| solve.reconcile()).await,
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
}

#[tokio::test]
async fn first_messages_are_reconciled_and_the_first_agent_begins() {
    check(
        &list_of_numbers(|solve| solve.reconcile().shift_owner("one")).await,
        &expect![[r#"
        1  | user P1                  | user P1
        2  | assistant A1             | assistant A1
        3  | user P2                  | user P2
        4  | assistant B1             | assistant B1
        5  | user B1                  | user A2
        6  | assistant A2             | assistant B2
        7  | user B2                  | user A3
        8  | assistant A3             | assistant B3
    "#]],
    );
}

#[tokio::test]
async fn first_messages_are_reconciled_and_the_first_of_the_talk_is_given() {
    check(
        &list_of_numbers(|solve| solve.reconcile().shift_content("c")).await,
        &expect![[r#"
        1  | user P1                  | user P1
        2  | assistant A1             | assistant A1
        3  | user P2                  | user P2
        4  | assistant B1             | assistant B1
        5  | user B2                  | user c
        6  | assistant A2             | assistant B2
        7  | user B3                  | user A2
        8  | assistant A3             | assistant B3
    "#]],
    );
}
