//! A log cut anywhere and run again becomes the same log, and no finished model call is repeated: for every end mode,
//! with tools that are called natively and by text, in memory and in `SQLite`.

use std::cell::Cell;

use polylogue::agents::tooling::{ToolCalling, ToolHistory};
use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::tasks::group_solve::Check;
use polylogue::tasks::{EndMode, GroupSolve, Task};
use polylogue::tools::FunctionTool;
use polylogue::tools::GetHistory;
use polylogue::{Assistant, Chat, Human, Tool};
use polylogue_core::{AnyStore, Media};
use polylogue_models::Script;
use polylogue_store::{Memory, Sqlite};
use polylogue_test::cut::{Calls, Cut};
use serde_json::{Value, json};

/// How it ends, after it was cut everywhere.
async fn check(store: &dyn Fn() -> AnyStore, chat: impl Fn(&Calls) -> Chat) -> String {
    let cut = Cut { task: "a game", chat: &chat, store, answer: &|_, _, nth| format!("answer {nth}") };
    let events = cut.everywhere().await.unwrap_or_else(|flaw| panic!("{flaw}"));
    serde_json::to_string(&events.last().unwrap().body).unwrap()
}

fn in_memory() -> AnyStore {
    AnyStore::new(Memory::default())
}

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Pair {
    secret: i64,
    guess: i64,
}

fn compare() -> impl Tool {
    let tool = async |Pair { secret, guess }: Pair| Ok(format!("{:?}", secret.cmp(&guess)));
    FunctionTool::new("compare", "Compares two numbers.", tool).repeatable()
}

/// How an agent calls tools in these tests.
const WAYS: [(ToolCalling, ToolHistory); 4] = [
    (ToolCalling::Native, ToolHistory::Answer),
    (ToolCalling::Schema, ToolHistory::Answer),
    (ToolCalling::Text, ToolHistory::Answer),
    (ToolCalling::Text, ToolHistory::Full),
];

/// A turn in which `who` calls `compare`, makes an error on the way, and says `end`.
fn calling(who: &str, (by, trace): (ToolCalling, ToolHistory), end: &str) -> Vec<Value> {
    let args = json!({"secret": 7, "guess": 3});
    let call = json!({"call": {"tool": "compare", "args": args}}).to_string();
    let (args, said) = (args.to_string(), json!({ "say": end }).to_string());
    let texts = match (by, trace) {
        (ToolCalling::Native, _) => {
            let native =
                json!({"calls": [{"tool": "compare", "args": {"secret": 7, "guess": 3}}, {"tool": "gone"}]});
            return vec![json!({ who: native }), json!({ who: {"think": "hm", "say": end} })];
        }
        (ToolCalling::Schema, _) => vec!["what?", &call, &said],
        (_, ToolHistory::Full) => vec!["I see.", "I see.", "helps", "hm", "yes", "none", &args],
        _ => vec!["I see.", "helps", "hm", "yes", "none", &args, end],
    };
    texts.into_iter().map(|text| json!({ who: text })).collect()
}

/// A turn in which `who` has no use for `compare`.
fn without(who: &str, (by, trace): (ToolCalling, ToolHistory), end: &str) -> Vec<Value> {
    let said = json!({ "say": end }).to_string();
    let texts = match (by, trace) {
        (ToolCalling::Native, _) => vec![end],
        (ToolCalling::Schema, _) => vec![&*said],
        (_, ToolHistory::Full) => vec!["I see.", "I see.", "of no use", "no", end],
        _ => vec!["I see.", "of no use", "no", end],
    };
    texts.into_iter().map(|text| json!({ who: text })).collect()
}

fn says(who: &str, texts: &[&str]) -> Vec<Value> {
    texts.iter().map(|text| json!({ who: text })).collect()
}

fn script(steps: impl IntoIterator<Item = Vec<Value>>) -> Script {
    serde_json::from_value(steps.into_iter().flatten().collect::<Value>()).unwrap()
}

/// Of two, `one` has a tool. The agent that is asked about its task completes it in the end.
fn two(way: (ToolCalling, ToolHistory), mode: EndMode) -> Script {
    let asked = |texts| if mode == EndMode::MaxIterations { Vec::new() } else { says("one", texts) };
    let one = [
        says("one", &["secret"]),
        calling("one", way, "A1"),
        without("one", way, "A2"),
        asked(&["much", "hard to say", "yes"]),
        calling("one", way, "A3"),
        asked(&["nothing", "no"]),
        without("one", way, "A4"),
    ];
    let two = match mode {
        EndMode::AllComplete => &["B1", "B2", "none", "no", "B3", "B4"][..],
        _ => &["B1", "B2", "B3", "B4"],
    };
    script(one.into_iter().chain([says("two", two), says("last", &["in all"])]))
}

/// All there is at once: tasks before and after, a picture, reconciled first messages, kept reflections, a tool.
fn solve(
    calls: &Calls,
    script: &Script,
    (by, trace): (ToolCalling, ToolHistory),
    mode: EndMode,
) -> GroupSolve {
    let agent = |who: &str| Assistant::new(who, calls.through(script.model("test"))).unwrap();
    let picture = Media { media_type: "image/png".into(), url: "https://example.org/a.png".into() };
    let one =
        Task::new(agent("one").tool_calling(by).tool_history(trace), "P1").tool(compare()).media(picture);
    let one = one.self_terminating().keeps_reflections();
    let two = Task::new(agent("two"), "").prompt_from(|about| format!("Play {about}"));
    let two = if mode == EndMode::AllComplete { two.self_terminating() } else { two };
    GroupSolve::new([one, two], mode)
        .before(Task::new(agent("one"), "S").forget())
        .after(Task::new(agent("last"), "Sum up."))
        .reconcile()
        .max_iterations(if mode == EndMode::MaxIterations { 2 } else { 4 })
}

/// Cuts the talk of two that ends so, in every way of calling tools.
async fn two_end(mode: EndMode, reason: &str) {
    for way in WAYS {
        let script = two(way, mode);
        let end = check(&in_memory, |calls| solve(calls, &script, way, mode).build("group").unwrap()).await;
        assert_eq!(end, closed(reason, "in all"), "{way:?}");
    }
}

fn closed(reason: &str, summary: &str) -> String {
    format!(r#"{{"type":"closed","reason":{reason},"summary":"{summary}"}}"#)
}

const ONE_IS_COMPLETE: &str = r#"{"other":{"code":"completed","text":"the task of one is complete","outcome":"done","by_calls":true,"details":{"who":["one"]}}}"#;

#[tokio::test]
async fn the_iteration_limit_of_two_agents() {
    two_end(EndMode::MaxIterations, r#"{"other":{"code":"count_reached","text":"2 of 2 iterations","outcome":"done","details":{"count":2,"of":"iterations"}}}"#).await;
}

#[tokio::test]
async fn the_first_completion_of_two() {
    two_end(EndMode::FirstCompletion, ONE_IS_COMPLETE).await;
}

#[tokio::test]
async fn one_last_chat_of_two() {
    two_end(EndMode::OneLastChat, ONE_IS_COMPLETE).await;
}

#[tokio::test]
async fn one_last_group_chat_of_two() {
    two_end(EndMode::OneLastGroupChat, ONE_IS_COMPLETE).await;
}

#[tokio::test]
async fn the_completion_of_both_agents() {
    two_end(EndMode::AllComplete, r#"{"other":{"code":"completed","text":"the tasks of two and one are complete","outcome":"done","by_calls":true,"details":{"who":["two","one"]}}}"#).await;
}

/// A shorter talk: a database is slow.
async fn two_end_on_disk(mode: EndMode, reason: &str) {
    let is_asked = mode != EndMode::MaxIterations;
    let two =
        if mode == EndMode::AllComplete { &["B1", "B2", "none", "no"][..] } else { &["B1", "B2", "B3"] };
    let call = r#"{"secret": 7, "guess": 3}"#;
    let native: Value =
        serde_json::from_str(&format!(r#"{{"calls": [{{"tool": "compare", "args": {call}}}]}}"#)).unwrap();
    for way in [WAYS[0], WAYS[2]] {
        let calling = |end: &str| match way.0 {
            ToolCalling::Native => vec![json!({ "one": native }), json!({ "one": end })],
            _ => says("one", &["I see.", "helps", "yes", call, end]),
        };
        let asked = if is_asked { says("one", &["none", "no"]) } else { Vec::new() };
        let one = [calling("A1"), calling("A2"), asked, without("one", way, "A3")];
        let script = script(one.into_iter().chain([says("two", two)]));
        let (folder, nth) = (tempfile::tempdir().unwrap(), Cell::new(0));
        let on_disk = || {
            nth.set(nth.get() + 1);
            AnyStore::new(Sqlite::open(folder.path().join(format!("{}.db", nth.get()))).unwrap())
        };
        let end = check(&on_disk, |calls| {
            let agent = |who: &str| Assistant::new(who, calls.through(script.model("test"))).unwrap();
            let one = Task::new(agent("one").tool_calling(way.0), "P1").tool(compare()).self_terminating();
            let two = Task::new(agent("two"), "P2");
            let two = if mode == EndMode::AllComplete { two.self_terminating() } else { two };
            let limit = if is_asked { 3 } else { 1 };
            GroupSolve::new([one, two], mode).max_iterations(limit).build("group").unwrap()
        })
        .await;
        let last = match mode {
            EndMode::OneLastChat => "B3",
            EndMode::OneLastGroupChat => "A3",
            _ => "A2",
        };
        assert_eq!(end, closed(reason, last), "{way:?}");
    }
}

#[tokio::test]
async fn the_limit_in_a_database() {
    two_end_on_disk(EndMode::MaxIterations, r#"{"other":{"code":"count_reached","text":"1 of 1 iteration","outcome":"done","details":{"count":1,"of":"iterations"}}}"#).await;
}

#[tokio::test]
async fn the_first_completion_in_a_database() {
    two_end_on_disk(EndMode::FirstCompletion, ONE_IS_COMPLETE).await;
}

#[tokio::test]
async fn one_last_chat_in_a_database() {
    two_end_on_disk(EndMode::OneLastChat, ONE_IS_COMPLETE).await;
}

#[tokio::test]
async fn one_last_group_chat_in_a_database() {
    two_end_on_disk(EndMode::OneLastGroupChat, ONE_IS_COMPLETE).await;
}

#[tokio::test]
async fn all_complete_in_a_database() {
    two_end_on_disk(EndMode::AllComplete, r#"{"other":{"code":"completed","text":"the tasks of two and one are complete","outcome":"done","by_calls":true,"details":{"who":["two","one"]}}}"#).await;
}

/// Three, of whom `A` has a tool and is asked about its task, and `Pat` is a person.
fn three(calls: &Calls, script: &Script, (by, trace): (ToolCalling, ToolHistory), mode: EndMode) -> Chat {
    let agent = |who: &str| Assistant::new(who, calls.through(script.model("test"))).unwrap();
    let tasks = [
        Task::new(agent("A").tool_calling(by).tool_history(trace), "PA")
            .tool(compare())
            .self_terminating()
            .keeps_reflections(),
        Task::by(Human::new("Pat").unwrap(), "PP"),
        Task::new(agent("B"), "PB"),
    ];
    let limit = if mode == EndMode::MaxIterations { 1 } else { 3 };
    GroupSolve::new(tasks, mode)
        .max_iterations(limit)
        .check(Check::default().structured())
        .build("group")
        .unwrap()
}

#[tokio::test]
async fn every_end_of_three_with_a_person_among_them() {
    use EndMode::{AllComplete, FirstCompletion, MaxIterations, OneLastChat, OneLastGroupChat};
    let complete = r#"{"other":{"code":"completed","text":"the task of A is complete","outcome":"done","by_calls":true,"details":{"who":["A"]}}}"#;
    for (mode, reason, last) in [
        (
            MaxIterations,
            r#"{"other":{"code":"count_reached","text":"1 of 1 iteration","outcome":"done","details":{"count":1,"of":"iterations"}}}"#,
            "b1",
        ),
        (FirstCompletion, complete, "a1"),
        (OneLastChat, complete, "answer 1"),
        (OneLastGroupChat, complete, "a2"),
        (AllComplete, complete, "a1"),
    ] {
        let asked = |texts| if mode == MaxIterations { Vec::new() } else { says("A", texts) };
        for way in WAYS {
            let script = script([
                calling("A", way, "a0"),
                asked(&["much", r#"{"objectives_left": true}"#]),
                without("A", way, "a1"),
                asked(&["none", "I am done", "no"]),
                calling("A", way, "a2"),
                says("B", &["b0", "b1", "b2"]),
            ]);
            let end = check(&in_memory, |calls| three(calls, &script, way, mode)).await;
            let last = if last == "a2" && way.1 == ToolHistory::Full { "Greater" } else { last };
            assert_eq!(end, closed(reason, last), "{mode:?} {way:?}");
        }
    }
}

// Whatever a policy is wrapped in; and an agent whose history was looked up by a tool.
#[tokio::test]
async fn a_wrapped_policy() {
    let history = |who: &str| json!({ who: {"calls": [{"tool": "get_history"}]} });
    let script = script([
        vec![history("one")],
        says("one", &["A1", "A2"]),
        says("two", &["B1"]),
        vec![history("two")],
        says("two", &["B2"]),
    ]);
    let end = check(&in_memory, |calls| {
        let agent = |who: &str| Assistant::new(who, calls.through(script.model("test"))).unwrap();
        let task = |who: &str| Task::new(agent(who), "P").tool(GetHistory::default());
        let solve = GroupSolve::new([task("one"), task("two")], EndMode::MaxIterations);
        let (chat, policy) = solve.into_parts("group").unwrap();
        chat.policy(with_termination(policy, max_turns(3))).build().unwrap()
    })
    .await;
    assert!(end.contains(r#""code":"count_reached","text":"3 of 3 turns","outcome":"done","details":{"count":3,"of":"turns"}"#), "{end}");
}
