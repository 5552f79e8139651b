//! Three agents and more. Items 23 and 49 to 53.

use expect_test::expect;
use polylogue::tasks::group_solve::Completion;
use polylogue::tasks::{EndMode, GroupSolve, Task};

use crate::stage::{Spy, name, script};
use crate::yacana::table::{Played, agent, lines, words};

/// A group of `A`, `B` and `C`, of which these are self-terminating.
fn group(spy: &Spy, flagged: &str, mode: EndMode) -> GroupSolve {
    let task = |who: &str| {
        let task = Task::new(agent(who, spy.model()), format!("P{who}"));
        if flagged.contains(who) { task.self_terminating() } else { task }
    };
    GroupSolve::new(["A", "B", "C"].map(task), mode)
}

fn spy(json: &str) -> Spy {
    Spy::on(script(json))
}

// Items 49 and 50.
#[tokio::test]
async fn every_agent_sees_all_messages_and_its_own_as_assistant() {
    let spy = spy(r#"[{"A": "a0"}, {"B": "b0"}, {"C": "c0"}, {"A": "a1"}, {"B": "b1"}, {"C": "c1"}]"#);
    let played = Played::of(spy.clone(), group(&spy, "", EndMode::MaxIterations).max_iterations(1)).await;
    assert_eq!(played.spy.asked().len(), 6);
    let knows = played.knows("C");
    assert_eq!(knows.len(), 14);
    assert!(knows[0].starts_with("user TaskManager: This is a conversation of several speakers"));
    assert!(knows[0].contains("you are `C`. The others are A, B."));
    expect![[r#"
        assistant I am C, and I speak only as C. I am ready for my task.
        user TaskManager: A: this is your main task: `PA`
        user A: a0
        user TaskManager: B: this is your main task: `PB`
        user B: b0
        user TaskManager: C: this is your main task: `PC`
        assistant c0
        user TaskManager: A, it's your turn to speak now.
        user A: a1
        user TaskManager: B, it's your turn to speak now.
        user B: b1
        user TaskManager: C, it's your turn to speak now.
        assistant c1"#]]
    .assert_eq(&knows[1..].join("\n"));
    // The histories of those who spoke before hold the rest of the iteration, too.
    assert_eq!(["A", "B", "C"].map(|who| played.knows(who).len()), [14, 14, 14]);
    assert_eq!(played.knows("A").last().unwrap(), "user C: c1");
    // The same in the same order for every agent, names apart.
    let view = |who: &str| {
        let entries =
            polylogue_core::View::of(&played.chat, &name(who), polylogue_core::ViewOptions::default())
                .entries()
                .to_vec();
        let shown = |line: &str| line.trim_start_matches(['A', 'B', 'C', ':', ' ']).to_owned();
        words(&lines(&entries))[2..].iter().map(|line| shown(line)).collect::<Vec<_>>()
    };
    assert_eq!(view("A"), view("B"));
    assert_eq!(view("B"), view("C"));
}

// Item 51.
#[tokio::test]
async fn the_question_about_objectives_comes_from_who_gives_the_tasks() {
    let spy = spy(r#"[{"A": "a0"}, {"A": "?"}, {"A": "no"}]"#);
    let played = Played::of(spy.clone(), group(&spy, "A", EndMode::FirstCompletion)).await;
    assert_eq!(played.requests()[1..], ["A: TaskManager: REFL", "A: YES/NO"]);
}

// Item 52, defect 1: a task may be complete with the answer to it.
#[tokio::test]
async fn a_completion_in_the_first_round_ends_it() {
    let first = spy(r#"[{"A": "a0"}, {"B": "b0"}, {"B": "?"}, {"B": "no"}]"#);
    let played = Played::of(first.clone(), group(&first, "B", EndMode::FirstCompletion)).await;
    assert_eq!(
        (played.said(), played.reason()),
        (vec!["a0".into(), "b0".into()], "the task of B is complete".into())
    );
    assert_eq!(played.solved.complete, [Completion { who: name("B"), iteration: 0 }]);
    let last = spy(r#"[{"A": "a0"}, {"B": "b0"}, {"B": "?"}, {"B": "no"}, {"C": "c0"}]"#);
    let played = Played::of(last.clone(), group(&last, "B", EndMode::OneLastChat)).await;
    assert_eq!(played.said(), ["a0", "b0", "c0"]);
    let all = spy(r#"[{"A": "a0"}, {"A": "?"}, {"A": "no"}, {"B": "b0"}, {"B": "?"}, {"B": "no"}]"#);
    let played = Played::of(all.clone(), group(&all, "AB", EndMode::AllComplete)).await;
    assert_eq!(played.reason(), "the tasks of A and B are complete");
}

// Item 23, defect 2: each once more, whichever was complete.
#[tokio::test]
async fn one_last_group_chat_is_one_turn_of_every_agent() {
    let spy = spy(
        r#"[{"A": "a0"}, {"B": "b0"}, {"B": "?"}, {"B": "yes"}, {"C": "c0"}, {"A": "a1"}, {"B": "b1"}, {"B": "?"},
            {"B": "no"}, {"C": "c1"}, {"A": "a2"}, {"B": "b2"}]"#,
    );
    let played = Played::of(spy.clone(), group(&spy, "B", EndMode::OneLastGroupChat)).await;
    assert_eq!(played.said(), ["a0", "b0", "c0", "a1", "b1", "c1", "a2", "b2"]);
    assert_eq!(played.solved.iterations, 2);
}

/// Three who speak once with their tasks and then in turn; `B` is asked after each turn, and complete in this
/// iteration.
async fn ended(mode: EndMode, max: u64, complete_in: u64) -> (Vec<String>, String) {
    let mut steps = Vec::new();
    for nth in 0..=max {
        steps.extend(
            ["A", "B", "C"].map(|who| serde_json::json!({who: format!("{}{nth}", who.to_lowercase())})),
        );
        let decision = if nth == complete_in { "no" } else { "yes" };
        steps.extend(["?", decision].map(|text| serde_json::json!({"B": text})));
    }
    // Who is not asked any more has nothing but its words left.
    let decided = |step: &serde_json::Value| step["B"] == "?" || step["B"] == "yes";
    let end = 5 * (usize::try_from(complete_in).unwrap() + 1);
    let steps: Vec<_> = steps
        .into_iter()
        .enumerate()
        .filter(|(at, step)| *at < end || !decided(step))
        .map(|(_, step)| step)
        .collect();
    let spy = spy(&serde_json::Value::from(steps).to_string());
    let played = Played::of(spy.clone(), group(&spy, "B", mode).max_iterations(max)).await;
    (played.said(), played.reason())
}

// Section 3.5 for three: the next in the list speaks last; and item 27: the limit comes first.
#[tokio::test]
async fn every_end_mode_of_three_agents() {
    use EndMode::{AllComplete, FirstCompletion, OneLastChat, OneLastGroupChat};
    let complete = "the task of B is complete";
    for (mode, more) in [(FirstCompletion, 0), (AllComplete, 0), (OneLastChat, 1), (OneLastGroupChat, 3)] {
        let (said, reason) = ended(mode, 3, 1).await;
        assert_eq!((said.len(), reason.as_str()), (5 + more, complete), "{mode:?}");
        assert_eq!(said[4], "b1");
    }
    let (said, reason) = ended(OneLastGroupChat, 1, 1).await;
    assert_eq!(said, ["a0", "b0", "c0", "a1", "b1", "c1"]);
    assert_eq!(reason, format!("{complete}, and the limit of 1 round"));
}

// Item 53.
#[tokio::test]
async fn reflections_are_kept_by_their_owner_alone() {
    let spy = spy(
        r#"[{"A": "a0"}, {"B": "b0"}, {"B": "left: x"}, {"B": "yes"}, {"C": "c0"}, {"A": "a1"}, {"B": "b1"},
            {"B": "left: none"}, {"B": "no"}]"#,
    );
    let task = |who: &str| Task::new(agent(who, spy.model()), format!("P{who}"));
    let tasks = [task("A"), task("B").self_terminating().keeps_reflections(), task("C")];
    let played = Played::of(spy.clone(), GroupSolve::new(tasks, EndMode::FirstCompletion)).await;
    let of = |who: &str| played.knows(who).iter().filter(|line| line.contains("left: ")).count();
    assert_eq!((of("A"), of("B"), of("C")), (0, 2, 0));
    let knows = played.knows("B");
    let at = knows.iter().position(|line| line == "assistant b0").unwrap();
    assert_eq!(knows[at + 1..at + 3], ["user TaskManager: REFL", "assistant left: x"]);
}

// Who only solves a task alone neither hears the talk nor adds names to it.
#[tokio::test]
async fn an_agent_with_only_solo_tasks_sees_nothing_of_the_talk() {
    let spy = spy(r#"[{"one": "A1"}, {"one": "A2"}, {"two": "B1"}, {"two": "B2"}, {"judge": "fine"}]"#);
    let (one, two) = (crate::yacana::table::one(&spy), crate::yacana::table::two(&spy));
    let judge = Task::new(agent("judge", spy.model()), "PJ");
    let solve = GroupSolve::new([one, two], EndMode::MaxIterations).max_iterations(1).after(judge);
    let played = Played::of(spy, solve).await;
    assert_eq!(played.knows("judge"), ["user PJ", "assistant fine"]);
    assert_eq!(played.knows("one"), ["user P1", "assistant A1", "user B2", "assistant A2"]);
    assert_eq!(played.chat.closed().unwrap().1.as_ref(), "fine");
}
