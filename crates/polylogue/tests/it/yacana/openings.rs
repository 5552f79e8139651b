//! First messages: which agent receives what, and what both know of each other's tasks. Items 6 to 15.

use polylogue::Assistant;
use polylogue::tasks::{EndMode, GroupSolve, Task};
use polylogue_core::{Media, Part};

use crate::stage::Spy;
use crate::yacana::table::{Played, agent, lines, lists, numbered, one, two};

async fn once(change: impl FnOnce(GroupSolve) -> GroupSolve) -> Played {
    let spy = numbered(2);
    let solve = GroupSolve::new([one(&spy), two(&spy)], EndMode::MaxIterations).max_iterations(1);
    Played::of(spy, change(solve)).await
}

// Items 6 and 11.
#[tokio::test]
async fn the_second_receives_the_answer_of_the_first_and_neither_knows_the_others_task() {
    let played = once(|solve| solve).await;
    assert_eq!(played.knows("one"), ["user P1", "assistant A1", "user B2", "assistant A2"]);
    assert_eq!(played.knows("two"), ["user P2", "assistant B1", "user A1", "assistant B2"]);
}

// Item 7.
#[tokio::test]
async fn the_first_can_receive_the_answer_of_the_second() {
    let spy = numbered(3);
    let solve = GroupSolve::new([one(&spy), two(&spy)], EndMode::MaxIterations).max_iterations(2);
    let played = Played::of(spy, solve.shift_owner("one")).await;
    assert_eq!(
        played.knows("one"),
        ["user P1", "assistant A1", "user B1", "assistant A2", "user B2", "assistant A3"]
    );
    assert_eq!(
        played.knows("two"),
        ["user P2", "assistant B1", "user A2", "assistant B2", "user A3", "assistant B3"]
    );
    assert_eq!(played.requests()[2..], ["one: B1", "two: A2", "one: B2", "two: A3"]);
}

// Item 8.
#[tokio::test]
async fn the_first_message_can_be_any_text() {
    let played = once(|solve| solve.shift_content("Let's go")).await;
    assert_eq!(played.knows("one"), ["user P1", "assistant A1", "user B2", "assistant A2"]);
    assert_eq!(played.knows("two"), ["user P2", "assistant B1", "user Let's go", "assistant B2"]);
}

// Item 9.
#[tokio::test]
async fn the_first_message_can_be_any_text_for_the_first_agent() {
    let played = once(|solve| solve.shift_content("Let's go").shift_owner("one")).await;
    assert_eq!(played.knows("one"), ["user P1", "assistant A1", "user Let's go", "assistant A2"]);
    assert_eq!(played.knows("two"), ["user P2", "assistant B1", "user A2", "assistant B2"]);
}

// An empty text counts as given, and no model is sent an empty one (defect 12).
#[tokio::test]
async fn an_empty_first_message_stands_for_silence() {
    let played = once(|solve| solve.shift_content("")).await;
    assert_eq!(played.knows("two"), ["user P2", "assistant B1", "user Continue.", "assistant B2"]);
}

// Items 12, 13 and 14.
#[tokio::test]
async fn reconciled_first_messages_are_known_to_both_as_their_own() {
    let played = once(GroupSolve::reconcile).await;
    let first = ["user P1", "assistant A1", "user P2", "assistant B1"];
    let (one, two) = (played.knows("one"), played.knows("two"));
    assert_eq!((&one[..4], &two[..4]), (&first.map(String::from)[..], &first.map(String::from)[..]));
    assert_eq!(one[4..], ["user B2", "assistant A2"]);
    assert_eq!(two[4..], ["user B1", "assistant B2"]);
    // The second is asked about its task with the first one's in sight.
    assert_eq!(lines(&played.spy.asked()[1].entries), ["user P1", "assistant A1", "user P2"]);
    // No agent appears to have said what it did not say: it remembers it.
    let said = |who: &str| {
        played.chat.all_messages().iter().filter(|line| line.message.from.as_str() == who).count()
    };
    assert_eq!((said("one"), said("two")), (2, 2));
}

// Section 7.4, reconciled with the other owner.
#[tokio::test]
async fn reconciled_first_messages_and_the_first_agent_begins() {
    let played = once(|solve| solve.reconcile().shift_owner("one")).await;
    let first = ["user P1", "assistant A1", "user P2", "assistant B1"];
    assert_eq!(played.knows("one"), [&first[..], &["user B1", "assistant A2"]].concat());
    assert_eq!(played.knows("two"), [&first[..], &["user A2", "assistant B2"]].concat());
}

// Item 15.
#[tokio::test]
async fn reconciled_first_messages_and_a_custom_text() {
    let played = once(|solve| solve.reconcile().shift_content("c")).await;
    let first = ["user P1", "assistant A1", "user P2", "assistant B1"];
    assert_eq!(played.knows("one"), [&first[..], &["user B2", "assistant A2"]].concat());
    assert_eq!(played.knows("two"), [&first[..], &["user c", "assistant B2"]].concat());
}

// Defect 4: what is copied is the other's answer to its task, whatever else is in its history.
#[tokio::test]
async fn a_system_text_is_never_the_first_message() {
    let spy = lists(&["", "A2"], &["B1", "B2"]);
    let silent = Assistant::new("one", spy.model()).unwrap().system("You are secret.");
    let solve =
        GroupSolve::new([Task::new(silent, "P1"), two(&spy)], EndMode::MaxIterations).max_iterations(1);
    let played = Played::of(spy, solve).await;
    assert_eq!(played.knows("two"), ["user P2", "assistant B1", "user Continue.", "assistant B2"]);
    assert_eq!(played.spy.asked()[3].system.as_deref(), Some("You are secret."));
}

// Item 10: a system text stays in front of everything.
#[tokio::test]
async fn system_texts_stay_in_front() {
    let spy = numbered(2);
    let shown = agent("one", spy.model()).system("Be brief.");
    let solve =
        GroupSolve::new([Task::new(shown, "P1"), two(&spy)], EndMode::MaxIterations).max_iterations(1);
    let played = Played::of(spy, solve).await;
    for asked in played.spy.asked() {
        assert_eq!(asked.system.as_deref(), (asked.who.as_str() == "one").then_some("Be brief."));
    }
}

// A picture is sent once, with the prompt; Yacana attaches it again to every turn.
#[tokio::test]
async fn pictures_of_a_task_are_sent_with_its_prompt_and_reconciled_with_it() {
    let spy: Spy = numbered(2);
    let picture = Media { media_type: "image/png".into(), url: "https://example.org/bat.png".into() };
    let tasks = [one(&spy).media(picture.clone()), two(&spy)];
    let solve = GroupSolve::new(tasks, EndMode::MaxIterations).max_iterations(1).reconcile();
    let played = Played::of(spy, solve).await;
    for asked in played.spy.asked() {
        let pictures: Vec<usize> = (0..asked.entries.len())
            .filter(|&at| asked.entries[at].parts().contains(&Part::Media(picture.clone())))
            .collect();
        assert_eq!(pictures, [0], "{asked:?}");
    }
    assert_eq!(played.knows("two")[..3], ["user P1", "assistant A1", "user P2"]);
}
