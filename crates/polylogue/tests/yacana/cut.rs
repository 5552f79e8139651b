//! A log cut anywhere and run again becomes the same log, and no finished model call is repeated: for every end mode.

use polylogue::solve::Check;
use polylogue::stop::max_turns;
use polylogue::{AnyStore, Assistant, Chat, EndMode, GetHistory, Human, Media, Solve, Task, until};
use polylogue_models::Script;
use polylogue_store::Memory;
use polylogue_test::cut::{Calls, Cut};

async fn check(chat: impl Fn(&Calls) -> Chat) -> String {
    let cut = Cut {
        task: "a game",
        chat: &chat,
        store: &|| AnyStore::new(Memory::default()),
        answer: &|_, _, nth| format!("answer {nth}"),
    };
    let events = cut.everywhere().await.unwrap_or_else(|flaw| panic!("{flaw}"));
    serde_json::to_string(&events.last().unwrap().body).unwrap()
}

/// An agent that thinks, calls a tool, and is asked about its task.
const STEPS: &str = r#"[
    {"one": "secret"}, {"one": {"calls": [{"tool": "get_history"}]}}, {"one": "A1"},
    {"one": {"think": "hm", "say": "A2"}}, {"one": "much"}, {"one": "hard to say"}, {"one": "yes"},
    {"one": {"calls": [{"tool": "get_history"}, {"tool": "gone"}]}}, {"one": "A3"}, {"one": "nothing"}, {"one": "no"},
    {"one": "A4"}, {"one": "A5"},
    {"two": "B1"}, {"two": "B2"}, {"two": "much"}, {"two": "no"}, {"two": "B3"}, {"two": "B4"}, {"two": "B5"},
    {"last": "in all"}]"#;

/// All there is at once: tasks before and after, a picture, reconciled first messages, kept reflections, tools.
fn solve(calls: &Calls, script: &Script, mode: EndMode, two_is_asked: bool) -> Solve {
    let agent = |who: &str| Assistant::new(who, calls.through(script.model("test"))).unwrap();
    let picture = Media { kind: "image/png".into(), url: "https://example.org/a.png".into() };
    let one = Task::new(agent("one").tool(GetHistory::default()), "P1").media(picture);
    let one = one.stops_by_itself().keeps_reflections();
    let two = Task::new(agent("two"), "").prompt_from(|about| format!("Play {about}"));
    let two = if two_is_asked { two.stops_by_itself() } else { two };
    Solve::of([one, two], mode)
        .before(Task::new(agent("one"), "S").forgets())
        .after(Task::new(agent("last"), "Sum up."))
        .reconcile()
        .max_iterations(4)
}

fn steps() -> Script {
    serde_json::from_str(STEPS).unwrap()
}

#[tokio::test]
async fn every_end_of_two() {
    let script = steps();
    let complete = r#""reason":{"completed":{"who":["one"]}},"summary":"in all""#;
    for mode in [EndMode::FirstCompletion, EndMode::OneLastChat, EndMode::OneLastGroupChat] {
        let end = check(|calls| solve(calls, &script, mode, false).chat("room").unwrap()).await;
        assert!(end.contains(complete), "{mode:?}: {end}");
    }
}

#[tokio::test]
async fn all_complete() {
    let script = steps();
    let end = check(|calls| solve(calls, &script, EndMode::AllComplete, true).chat("room").unwrap()).await;
    assert!(end.contains(r#""completed":{"who":["two","one"]}"#), "{end}");
}

#[tokio::test]
async fn the_limit_and_a_wrapped_policy() {
    let script: Script = serde_json::from_str(
        r#"[{"one": "A1"}, {"one": "A2"}, {"one": "A3"}, {"two": "B1"}, {"two": "B2"}, {"two": "B3"}]"#,
    )
    .unwrap();
    let solve = |calls: &Calls| {
        let task =
            |who: &str| Task::new(Assistant::new(who, calls.through(script.model("test"))).unwrap(), "P");
        Solve::of([task("one"), task("two")], EndMode::MaxIterations).max_iterations(2)
    };
    let end = check(|calls| solve(calls).chat("room").unwrap()).await;
    assert!(end.contains(r#""rounds":{"limit":2}"#), "{end}");
    let end = check(|calls| {
        let (chat, policy) = solve(calls).begin("room").unwrap();
        chat.policy(until(max_turns(3), policy)).build().unwrap()
    })
    .await;
    assert!(end.contains(r#""turns":{"limit":3}"#), "{end}");
}

#[tokio::test]
async fn three_with_a_person_among_them() {
    let script: Script = serde_json::from_str(
        r#"[{"A": "a0"}, {"A": "much"}, {"A": "{\"objectives_left\": true}"}, {"A": "a1"}, {"A": "none"}, {"A": "I am done"}, {"A": "no"},
            {"A": "a2"}, {"B": "b0"}, {"B": "b1"}, {"B": "b2"}]"#,
    )
    .unwrap();
    let end = check(|calls| {
        let agent = |who: &str| Assistant::new(who, calls.through(script.model("test"))).unwrap();
        let tasks = [
            Task::new(agent("A"), "PA").stops_by_itself().keeps_reflections(),
            Task::by(Human::new("Pat").unwrap(), "PP"),
            Task::new(agent("B"), "PB"),
        ];
        let solve = Solve::of(tasks, EndMode::OneLastGroupChat).check(Check::default().structured());
        solve.chat("room").unwrap()
    })
    .await;
    assert!(end.contains(r#""reason":{"completed":{"who":["A"]}},"summary":"a2""#), "{end}");
}
