//! End modes: who still speaks when a task is complete. Items 16 to 27, 48.

use polylogue::stop::{Counted, LibraryStopReason};
use polylogue::tasks::group_solve::Completion;
use polylogue::tasks::{EndMode, GroupSolve, GroupSolveResult, History, Task};
use polylogue::{Act, Function, Turn};
use polylogue_core::{RunOutcome, StopReason};

use crate::stage::name;
use crate::yacana::table::{Played, lists, one, two};

/// Both agents' replies; a group in which the flagged agents stop by themselves.
async fn play(mode: EndMode, flags: [bool; 2], max: u64, one_says: &[&str], two_says: &[&str]) -> Played {
    let spy = lists(one_says, two_says);
    let flag = |task: polylogue::tasks::Task, flag: bool| if flag { task.self_terminating() } else { task };
    let tasks = [flag(one(&spy), flags[0]), flag(two(&spy), flags[1])];
    Played::of(spy, GroupSolve::new(tasks, mode).max_iterations(max)).await
}

const ONE: [bool; 2] = [true, false];
const TWO: [bool; 2] = [false, true];

// Item 17.
#[tokio::test]
async fn the_first_completion_ends_it_before_the_other_speaks() {
    let played = play(EndMode::FirstCompletion, TWO, 5, &["A1"], &["B1", "B2", "none", "no"]).await;
    assert_eq!(played.knows("one"), ["user P1", "assistant A1"]);
    assert_eq!(played.said(), ["B2"]);
    // Defect 13: the other was not asked any more, but the message is there for later turns.
    assert!(played.chat.messages().any(|line| line.is_seen_by(&name("one")) && line.message.text() == "B2"));
}

// Item 19.
#[tokio::test]
async fn one_last_chat_after_the_first_speaker() {
    let played = play(EndMode::OneLastChat, TWO, 5, &["A1", "A2"], &["B1", "B2", "none", "no"]).await;
    assert_eq!(played.said(), ["B2", "A2"]);
    assert_eq!(played.requests().last().unwrap(), "one: B2");
}

// Items 18 and 20: the last to speak is not asked anything, though it may stop by itself.
#[tokio::test]
async fn one_last_chat_after_the_second_speaker() {
    let one = ["A1", "A2", "none", "no"];
    let played = play(EndMode::OneLastChat, [true, true], 5, &one, &["B1", "B2", "?", "yes", "B3"]).await;
    assert_eq!(played.said(), ["B2", "A2", "B3"]);
    assert_eq!(played.requests().last().unwrap(), "two: A2");
}

// Item 22 [F]: each once more; Yacana lets three speak.
#[tokio::test]
async fn one_last_group_chat_after_the_first_speaker() {
    let two = ["B1", "B2", "none", "no", "B3"];
    let played = play(EndMode::OneLastGroupChat, TWO, 5, &["A1", "A2"], &two).await;
    assert_eq!(played.said(), ["B2", "A2", "B3"]);
    assert_eq!(played.reason(), "the task of two is complete");
}

// Item 21.
#[tokio::test]
async fn one_last_group_chat_after_the_second_speaker() {
    let one = ["A1", "A2", "none", "no", "A3"];
    let played = play(EndMode::OneLastGroupChat, ONE, 5, &one, &["B1", "B2", "B3"]).await;
    assert_eq!(played.said(), ["B2", "A2", "B3", "A3"]);
}

// Item 24.
#[tokio::test]
async fn all_tasks_must_be_complete_and_then_no_agent_speaks() {
    let (one, two) =
        (["A1", "A2", "?", "no", "A3"], ["B1", "B2", "?", "yes", "B3", "?", "yes", "B4", "?", "no"]);
    let played = play(EndMode::AllComplete, [true, true], 5, &one, &two).await;
    assert_eq!(played.said(), ["B2", "A2", "B3", "A3", "B4"]);
    let done = |who, iteration| Completion { who: name(who), iteration };
    assert_eq!(played.solved.complete, [done("one", 1), done("two", 3)]);
}

// Item 25: a task that is complete stays so. It is not asked about again (defect 9).
#[tokio::test]
async fn a_complete_task_is_not_opened_again() {
    let (one, two) = (["A1", "A2", "?", "no", "A3"], ["B1", "B2", "?", "yes", "B3", "?", "yes"]);
    let played = play(EndMode::AllComplete, [true, true], 2, &one, &two).await;
    assert_eq!(played.reason(), "the limit of 2 rounds");
    assert!(played.solved.is_complete(&name("one")) && !played.solved.is_complete(&name("two")));
    let asked = played.requests().iter().filter(|request| *request == "one: REFL").count();
    assert_eq!(asked, 1);
}

// Item 26.
#[tokio::test]
async fn the_limit_holds_in_every_mode() {
    use EndMode::{AllComplete, FirstCompletion, MaxIterations, OneLastChat, OneLastGroupChat};
    for mode in [MaxIterations, FirstCompletion, OneLastChat, OneLastGroupChat, AllComplete] {
        let one = ["A1", "A2", "?", "yes", "A3", "?", "yes"];
        let one = if mode == MaxIterations { &["A1", "A2", "A3"][..] } else { &one };
        let played = play(mode, ONE, 2, one, &["B1", "B2", "B3"]).await;
        assert_eq!(played.said(), ["B2", "A2", "B3", "A3"], "{mode:?}");
        // In its own mode the number of iterations is exact; in all others it is a limit.
        let (reason, ending) = match mode {
            MaxIterations => (
                StopReason::from(LibraryStopReason::CountReached { count: 2, of: Counted::Iterations }),
                RunOutcome::Done,
            ),
            _ => (StopReason::from(LibraryStopReason::Rounds { limit: 2 }), RunOutcome::Limit),
        };
        assert_eq!((reason.outcome(), played.solved.reason), (ending, Some(reason)), "{mode:?}");
        assert_eq!((played.solved.iterations, played.solved.complete.len()), (2, 0));
    }
}

// Item 27, defect 3: the limit comes before the last turns, and the reason says both.
#[tokio::test]
async fn a_completion_at_the_limit_allows_no_last_turn() {
    for mode in [EndMode::OneLastChat, EndMode::OneLastGroupChat] {
        let played = play(mode, ONE, 1, &["A1", "A2", "none", "no"], &["B1", "B2"]).await;
        assert_eq!(played.said(), ["B2", "A2"]);
        assert_eq!(played.reason(), "the task of one is complete, and the limit of 1 round");
        assert!(played.solved.is_complete(&name("one")));
    }
}

// Item 27: within the last iteration another agent can still speak, and then the chat ends by the completion alone.
#[tokio::test]
async fn last_turns_within_the_limit_happen() {
    let two = ["B1", "B2", "none", "no"];
    let played = play(EndMode::OneLastChat, TWO, 1, &["A1", "A2"], &two).await;
    assert_eq!(played.said(), ["B2", "A2"]);
    assert_eq!(played.reason(), "the task of two is complete");
    // Of two last turns, one is within the limit.
    let played = play(EndMode::OneLastGroupChat, TWO, 1, &["A1", "A2"], &two).await;
    assert_eq!(played.said(), ["B2", "A2"]);
    assert_eq!(played.reason(), "the task of two is complete, and the limit of 1 round");
}

// Item 26: a limit that is not reached changes nothing, however high.
#[tokio::test]
async fn the_limit_may_be_as_high_as_one_likes() {
    let two = ["B1", "B2", "none", "no"];
    let played = play(EndMode::FirstCompletion, TWO, u64::MAX, &["A1"], &two).await;
    assert_eq!((played.said(), played.solved.iterations), (vec!["B2".to_owned()], 1));
}

// Item 48 and defect 9: no unnecessary questions are asked, and unnecessary reflections are not made.
#[tokio::test]
async fn no_agent_is_asked_when_only_the_limit_ends_it() {
    let spy = lists(&["A1", "A2"], &["B1", "B2"]);
    let tasks = [one(&spy).self_terminating().keeps_reflections(), two(&spy)];
    let played = Played::of(spy, GroupSolve::new(tasks, EndMode::MaxIterations).max_iterations(1)).await;
    assert_eq!(played.requests(), ["one: P1", "two: P2", "two: A1", "one: B2"]);
    assert!(played.solved.checks.is_empty());
}

// Defect 10 and item 70: the outcome says who was complete when, why it stopped, and what was answered.
#[tokio::test]
async fn the_outcome_is_read_from_the_log() {
    let one = ["A1", "A2", "the list", "maybe", "hm", "A3", "nothing", "No."];
    let played = play(EndMode::FirstCompletion, ONE, 5, &one, &["B1", "B2", "B3"]).await;
    let solved = &played.solved;
    assert_eq!(
        solved.reason,
        Some(StopReason::from(LibraryStopReason::Completed { who: vec![name("one")] }))
    );
    assert_eq!(solved.complete, [Completion { who: name("one"), iteration: 2 }]);
    assert_eq!(solved.iterations, 2);
    let checks: Vec<_> =
        solved.checks.iter().map(|c| (c.iteration, &*c.verdict.reply, c.verdict.unclear)).collect();
    assert_eq!(checks, [(1, "hm", true), (2, "No.", false)]);
    assert_eq!(played.chat.closed().unwrap().1.as_ref(), "A3");
}

// An agent that leaves ends the talk, and so does one that stops it: each for its own reason.
#[tokio::test]
async fn an_agent_that_leaves_or_stops_ends_the_talk() {
    for (act, why) in [
        (Act::Leave("had enough".into()), "one left: had enough"),
        (Act::Stop(StopReason::Stopped { by: "one".into() }), "stopped by one"),
    ] {
        let spy = lists(&[], &["B1", "B2"]);
        let quits = move |turn: &Turn<'_>| {
            let begins = turn.transcript().turns_of(turn.me()) == 0;
            Ok(if begins { Act::say("A1") } else { act.clone() })
        };
        let one = Task::by(Function::new("one", quits).unwrap(), "P1");
        let played = Played::of(spy.clone(), GroupSolve::new([one, two(&spy)], EndMode::MaxIterations)).await;
        assert_eq!((played.reason().as_str(), played.said()), (why, vec!["B2".to_owned()]));
    }
}

// A reopened conversation: all agents see the message, and the tasks are solved once more.
#[tokio::test]
async fn a_reopened_group_continues() {
    let spy = lists(&["A1", "A2", "none", "no", "A3", "A4", "none", "no"], &["B1", "B2", "B3", "B4"]);
    let solve = GroupSolve::new([one(&spy).self_terminating(), two(&spy)], EndMode::FirstCompletion);
    let chat = solve.build("group").unwrap();
    let mut log = crate::stage::log().await;
    chat.run_in(&mut log, "").await.unwrap();
    let more = polylogue::Message::new(polylogue::Name::user(), "Again!");
    chat.continue_with(&mut log, more).await.unwrap();
    let transcript = log.transcript().await.unwrap();
    let solved = GroupSolveResult::from_transcript(&transcript);
    assert_eq!((solved.complete.len(), solved.iterations), (1, 1));
    let knows = crate::yacana::table::lines(&History::from_transcript(&transcript, &name("two")).entries);
    assert_eq!(knows[4..], ["user A2", "user Again!", "user P2", "assistant B3", "user A3", "assistant B4"]);
}

// A summary by a participant whose check has just completed its task is requested, and is not a check.
#[tokio::test]
async fn a_participant_summarizes_after_it_was_asked_about_its_task() {
    let spy = lists(&["A1", "A2", "none", "no", "They agreed."], &["B1", "B2"]);
    let solve = GroupSolve::new([one(&spy).self_terminating(), two(&spy)], EndMode::FirstCompletion);
    let (chat, policy) = solve.into_parts("group").unwrap();
    let policy = polylogue::policies::with_summary_by(policy, name("one"), |_| "Sum up.".into());
    let played = Played::chat(spy, &chat.policy(policy).build().unwrap()).await;
    assert_eq!(played.requests().last().unwrap(), "one: Sum up.");
    let (reason, summary) = played.chat.closed().unwrap();
    assert_eq!((reason.to_string().as_str(), &**summary), ("the task of one is complete", "They agreed."));
}

// Defect 18: a talk is bounded and cancelled from outside, after any request, also within a check, and continues from
// there.
#[tokio::test]
async fn a_talk_that_reached_a_limit_of_the_run_continues_under_a_higher_one() {
    use polylogue::{Limits, Status};
    for calls in 1..10 {
        let spy = lists(&["A1", "A2", "some", "yes", "A3", "none", "no"], &["B1", "B2", "B3"]);
        let solve = GroupSolve::new([one(&spy).self_terminating(), two(&spy)], EndMode::FirstCompletion);
        let chat = solve.build("group").unwrap();
        let limits = |calls| Limits { calls: Some(calls), ..Limits::default() };
        let mut log = crate::stage::log().await.limits(limits(calls));
        let Status::Closed { reason, .. } = chat.run_in(&mut log, "").await.unwrap().status else {
            panic!("{calls}")
        };
        assert_eq!(reason, StopReason::Calls { limit: calls });
        assert_eq!(spy.asked().len() as u64, calls);
        log.reopen().await.unwrap();
        let mut log = log.limits(limits(100));
        let Status::Closed { reason, .. } = chat.resume(&mut log).await.unwrap().status else {
            panic!("{calls}")
        };
        assert_eq!(reason, StopReason::from(LibraryStopReason::Completed { who: vec![name("one")] }));
        assert_eq!(spy.asked().len(), 10, "no request is made twice");
        let knows = crate::yacana::table::lines(
            &History::from_transcript(&log.transcript().await.unwrap(), &name("one")).entries,
        );
        let all = ["user P1", "assistant A1", "user B2", "assistant A2", "user B3", "assistant A3"];
        assert_eq!(knows, all, "{calls}");
    }
}
