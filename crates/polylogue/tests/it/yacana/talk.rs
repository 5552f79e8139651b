//! What each of two agents receives from the other. Items 2, 4, 5 and 10.

use polylogue::tasks::{EndMode, GroupSolve, Task};

use crate::yacana::table::{Played, agent, lists, numbered, one, two};

// Item 2.
#[tokio::test]
async fn the_default_is_five_iterations() {
    let spy = numbered(6);
    let solve = GroupSolve::new([one(&spy), two(&spy)], EndMode::MaxIterations);
    let played = Played::of(spy, solve).await;
    assert_eq!((played.knows("one").len(), played.knows("two").len()), (12, 12));
    assert_eq!((played.solved.iterations, played.reason().as_str()), (5, "5 of 5 iterations"));
}

// Item 4.
#[tokio::test]
async fn an_answer_is_sent_byte_for_byte() {
    let odd = [" The secret\tis: 2 \n\n", "\r\n宿題 e\u{301} \u{200b}", "`no`\u{0}\n"];
    let spy = lists(&[odd[0], odd[1]], &["B1", odd[2]]);
    let solve = GroupSolve::new([one(&spy), two(&spy)], EndMode::MaxIterations).max_iterations(1);
    let played = Played::of(spy, solve).await;
    let shown = |at: usize| {
        polylogue_core::text_of(played.spy.asked()[at].entries.last().unwrap().parts()).into_owned()
    };
    assert_eq!((shown(2).as_str(), shown(3).as_str()), (odd[0], odd[2]));
}

// Item 5; defect 13: it is in the chat all the same.
#[tokio::test]
async fn the_last_answer_is_sent_to_no_agent() {
    let spy = numbered(2);
    let solve = GroupSolve::new([one(&spy), two(&spy)], EndMode::MaxIterations).max_iterations(1);
    let played = Played::of(spy, solve).await;
    assert!(played.knows("two").iter().all(|line| !line.contains("A2")));
    assert!(played.requests().iter().all(|request| !request.contains("A2")));
    assert_eq!(played.said(), ["B2", "A2"]);
    assert_eq!(played.chat.closed().unwrap().1.as_ref(), "A2");
}

// Item 10.
#[tokio::test]
async fn earlier_tasks_of_both_stay_in_front() {
    let spy = lists(&["R1", "A1", "A2"], &["R2", "B1", "B2"]);
    let alone = |who: &str, prompt: &str| Task::new(agent(who, spy.model()).system("Be brief."), prompt);
    let solve = GroupSolve::new([one(&spy), two(&spy)], EndMode::MaxIterations).max_iterations(1);
    let solve = solve.before(alone("one", "S1")).before(alone("two", "S2"));
    let played = Played::of(spy.clone(), solve).await;
    assert_eq!(played.knows("one")[..4], ["user S1", "assistant R1", "user P1", "assistant A1"]);
    assert_eq!(played.knows("two")[..4], ["user S2", "assistant R2", "user P2", "assistant B1"]);
    assert_eq!(played.requests()[..4], ["one: S1", "two: S2", "one: P1", "two: P2"]);
}
