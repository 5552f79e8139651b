//! What is refused before anyone is asked anything. Items 42 to 47 and 54; defect 11.

use polylogue::tasks::group_solve::Check;
use polylogue::tasks::{EndMode, GroupSolve, Task};
use polylogue::{Act, Function};
use polylogue_core::Media;

use crate::stage::{Spy, log, script};
use crate::yacana::table::{Played, agent, numbered, one, two};

#[track_caller]
fn refused(solve: GroupSolve, why: &str) {
    let error = solve.build("group").unwrap_err().to_string();
    assert!(error.starts_with(why), "{error}");
}

fn unused() -> Spy {
    Spy::on(script("[]"))
}

// Item 42.
#[test]
fn a_group_that_ends_by_a_completion_needs_a_self_terminating_task() {
    use EndMode::{AllComplete, FirstCompletion, OneLastChat, OneLastGroupChat};
    let spy = unused();
    for mode in [FirstCompletion, OneLastChat, OneLastGroupChat, AllComplete] {
        refused(
            GroupSolve::new([one(&spy), two(&spy)], mode),
            "the group ends when a task is complete, but asks no agent",
        );
    }
}

// Items 43 and 44.
#[test]
fn a_group_has_two_tasks_and_an_iteration() {
    let spy = unused();
    refused(GroupSolve::new([one(&spy)], EndMode::MaxIterations), "a group needs at least 2 tasks");
    let none = GroupSolve::new([one(&spy), two(&spy)], EndMode::MaxIterations).max_iterations(0);
    refused(none, "a group needs at least 1 iteration");
    assert_eq!(polylogue::tasks::tasks("none", []).unwrap_err().to_string(), "`none` has no participants");
}

// Item 45: what was refused can be put right and used, a chat can be run any number of times, but a log begins once.
#[tokio::test]
async fn settings_can_be_corrected_after_an_error() {
    let spy = numbered(2);
    let solve = GroupSolve::new([one(&spy), two(&spy)], EndMode::MaxIterations).max_iterations(0);
    assert!(solve.clone().build("group").is_err());
    let chat = solve.max_iterations(1).build("group").unwrap();
    for _ in 0..2 {
        let played = Played::chat(spy.clone(), &chat).await;
        assert_eq!(played.knows("one").len(), 4);
    }
    let mut log = log().await;
    chat.run_in(&mut log, "").await.unwrap();
    let error = chat.run_in(&mut log, "").await.unwrap_err().to_string();
    assert_eq!(error, "the conversation `test` has already begun");
}

// Item 46.
#[test]
fn the_first_message_is_for_one_of_the_two() {
    let spy = unused();
    let solve = GroupSolve::new([one(&spy), two(&spy)], EndMode::MaxIterations).shift_owner("three");
    refused(solve, "unknown agent `three` as the recipient of the first message");
}

// Item 47.
#[test]
fn settings_of_two_are_refused_for_three() {
    let spy = unused();
    let three = || {
        GroupSolve::new(
            ["a", "b", "c"].map(|who| Task::new(agent(who, spy.model()), "P")),
            EndMode::MaxIterations,
        )
    };
    for solve in [three().shift_owner("a"), three().shift_content("x"), three().reconcile()] {
        refused(
            solve,
            "the group sets the recipient or the text of the first message, or reconciles first messages, but has more than two",
        );
    }
    assert!(three().build("group").is_ok());
}

// Item 54.
#[test]
fn no_agent_talks_to_itself() {
    let spy = unused();
    refused(
        GroupSolve::new([one(&spy), one(&spy)], EndMode::MaxIterations),
        "the agent `one` is listed twice",
    );
}

#[test]
fn settings_that_a_task_cannot_have_are_refused() {
    let spy = unused();
    let group = |task: Task| GroupSolve::new([task, two(&spy)], EndMode::MaxIterations);
    refused(
        group(one(&spy).forget()),
        "the task of `one` forgets, but the agents of a group need its messages",
    );
    refused(
        group(one(&spy).keeps_reflections()),
        "the task of `one` keeps reflections, but is never reflected on",
    );
    let person = || Task::by(Function::new("one", |_| Ok(Act::Pass)).unwrap(), "P1");
    refused(
        group(person().self_terminating()),
        "the task of `one` stops by itself, but `one` does not speak by a model",
    );
    refused(group(person().output_schema(serde_json::json!({}))), "the task of `one` has a schema, but");
    refused(group(person().forget()), "the task of `one` forgets, but `one` does not speak by a model");
    refused(
        group(person().keeps_reflections()),
        "the task of `one` keeps reflections, but is never reflected on",
    );
    refused(group(Task::new(agent("one", spy.model()), " \n")), "the task of `one` has no prompt");
    let media = Media { media_type: "image/png".into(), url: "https://example.org/a.png".into() };
    assert!(group(person().media(media)).build("group").is_ok());
    let same = group(one(&spy).self_terminating()).check(Check::default().words("no", "No"));
    refused(
        same,
        "the decision on whether a task is complete is invalid: `no` and `No` are not two different words",
    );
    let named = ["a", "TaskManager", "c"].map(|who| Task::new(agent(who, spy.model()), "P"));
    refused(
        GroupSolve::new(named, EndMode::MaxIterations),
        "the group has an agent named `TaskManager`, but gives its tasks by this name",
    );
}

#[test]
fn what_only_happens_in_a_group_is_refused_for_a_task_alone() {
    let spy = unused();
    let group = || GroupSolve::new([one(&spy), two(&spy)], EndMode::MaxIterations);
    let flagged = "the task of `one` stops by itself, but is solved alone, where it is not asked";
    refused(group().before(one(&spy).self_terminating()), flagged);
    refused(group().after(one(&spy).self_terminating()), flagged);
    refused(
        group().after(two(&spy).keeps_reflections()),
        "the task of `two` keeps reflections, but is solved alone, where it is not asked",
    );
    let error = polylogue::tasks::tasks("alone", [one(&spy).self_terminating()]).unwrap_err();
    assert!(error.to_string().starts_with(flagged), "{error}");
}

#[test]
fn a_question_that_asks_nothing_is_refused() {
    let spy = unused();
    let group = |check| {
        GroupSolve::new([one(&spy).self_terminating(), two(&spy)], EndMode::FirstCompletion).check(check)
    };
    for check in
        [Check::default().reflection(" "), Check::default().decision(""), Check::default().again("\n")]
    {
        refused(group(check), "the question to an agent about its task is blank");
    }
    for (temperature, shown) in [(-0.1, "-0.1"), (f64::NAN, "NaN"), (2.1, "2.1")] {
        let why = format!("the temperature of a decision is invalid: {shown} is not between 0 and 2");
        refused(group(Check::default().temperature(Some(temperature))), &why);
    }
}
