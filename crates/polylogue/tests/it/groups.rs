//! Invariants 6 and 7 for group chats: a log cut anywhere and run again becomes the same log.

use crate::common::{cut_with_answers, log_of, name, script};
use polylogue::layers::executor::Executor;
use polylogue::layers::human_input::HumanInput;
use polylogue::layers::reply::Stack;
use polylogue::policies::group::{HumanSelector, Method, Repeat, Selected, Transitions, introduce};
use polylogue::policies::{Selector, with_late_joiner, with_termination};
use polylogue::stop::{Counted, LibraryStopReason};
use polylogue::stop::{max_messages, max_turns, says};
use polylogue::tools::FunctionTool;
use polylogue::{Act, Assistant, Chat, Function, Group, Human, Limits, Name, Status, Tool, Transcript};
use polylogue_core::{ChatBuilder, JoinHistory, LimitOverrides, StopReason, ToolError};
use polylogue_test::cut::Calls;

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    of: i64,
}

/// Cuts the log everywhere; `answers` are those of the people, in order.
async fn check(chat: impl Fn(&Calls) -> Chat, answers: &[&str]) -> String {
    polylogue_test::print::transcript(&cut_with_answers("go", chat, answers).await)
}

/// Says its name and how much was said.
fn speaker(who: &str) -> Function {
    Function::new(who, |turn| Ok(Act::say(format!("{} {}", turn.me(), turn.transcript().message_count()))))
        .unwrap()
}

/// A chat of Ann, Bob and Cid, who are functions.
fn trio() -> ChatBuilder {
    Chat::builder("group").participant(speaker("Ann")).participant(speaker("Bob")).participant(speaker("Cid"))
}

#[tokio::test]
async fn round_robin_random_and_transitions() {
    let one_after = |a: &str, b: &str| (name(a), vec![name(b)]);
    let graph = || Transitions::allowed([one_after("Ann", "Cid"), one_after("Cid", "Ann")]);
    let round =
        |_: &Calls| trio().policy(with_termination(Group::round_robin(), max_messages(6))).build().unwrap();
    let chance = |_: &Calls| {
        trio()
            .policy(with_termination(Group::random(Some(7)).repeat(Repeat::No), max_turns(8)))
            .build()
            .unwrap()
    };
    let ring = move |_: &Calls| {
        trio()
            .policy(with_termination(Group::round_robin().transitions(graph()), max_turns(4)))
            .build()
            .unwrap()
    };
    check(round, &[]).await;
    check(chance, &[]).await;
    check(ring, &[]).await;
}

#[tokio::test]
async fn a_person_who_chooses_and_answers_garbage() {
    let chat = |_: &Calls| {
        let policy = with_termination(Group::select_by_name(name("chair")), max_turns(4));
        trio().private_agent(HumanSelector::new("chair").unwrap()).policy(policy).build().unwrap()
    };
    let log = check(chat, &["2", "9", "absent", "", "Zoe", "ann please"]).await;
    assert!(log.contains("selected no participant"), "{log}");
}

#[tokio::test]
async fn a_model_that_chooses_after_corrections_or_not_at_all() {
    let script = script(
        r#"[{"sel": "Bob"}, {"sel": "Ann and Bob"}, {"sel": "absent"}, {"sel": "Cid"}, {"sel": "?"}, {"sel": ""},
            {"sel": "Ann or Cid"}]"#,
    );
    let chat = |calls: &Calls| {
        let selector = Selector::new("sel", calls.through(script.model("test"))).unwrap();
        let policy = with_termination(Group::select_by_name(name("sel")), max_turns(3));
        trio().private_agent(selector).introduction_of(introduce).policy(policy).build().unwrap()
    };
    let log = check(chat, &[]).await;
    assert!(log.contains("selected no participant in 3 replies"), "{log}");
}

/// Its reply would be for a turn that may not begin.
#[tokio::test]
async fn no_speaker_is_selected_when_no_turn_is_left() {
    let script = script(r#"[{"sel": "Bob"}, {"sel": "Cid"}, {"sel": "Ann"}]"#);
    let selector = Selector::new("sel", script.model("test")).unwrap();
    let chat = trio().private_agent(selector).policy(Group::select_by_name(name("sel"))).build().unwrap();
    let limits = Limits { turns: Some(2), ..Limits::default() };
    let mut log = log_of(&[]).await.limits(limits);
    let limit = StopReason::Turns { limit: 2, next: None };
    let ended = chat.run_in(&mut log, "go").await.unwrap();
    assert_eq!((ended.stop_reason(), log.calls().await[&name("sel")]), (Some(&limit), 2));
    // Before it asks again, a resumption knows that nothing would follow.
    let (none, more) = (LimitOverrides::default(), LimitOverrides { turns: Some(1), ..Default::default() });
    assert_eq!(chat.ends_again(&log, &limits, none).await.unwrap(), Some(limit));
    let raised = log.limits_beyond(more).await.apply_to(limits);
    assert_eq!(chat.ends_again(&log, &raised, more).await.unwrap(), None);
    log.reopen_for(more).await.unwrap();
    let mut log = log.limits(raised);
    chat.resume(&mut log).await.unwrap();
    assert_eq!((log.turns().await, log.calls().await[&name("sel")]), (3, 3));
}

#[tokio::test]
async fn tools_that_two_others_run() {
    let script = script(
        r#"[{"Ann": {"say": "Both.", "calls": [{"tool": "double", "args": {"of": 2}}, {"tool": "square", "args": {"of": 3}}]}},
            {"Ann": {"calls": [{"tool": "cube", "args": {"of": 1}}]}}, {"Ann": "DONE"}]"#,
    );
    let tool = |which: &str, by: fn(i64) -> i64| {
        let compute = move |args: Number| std::future::ready(Ok::<_, ToolError>(by(args.of)));
        FunctionTool::new(which, "Computes.", compute).repeatable()
    };
    let runner = move |who: &str, which: &str, by| {
        Stack::new(who).unwrap().then(HumanInput::always()).then(Executor::new().tool(tool(which, by)))
    };
    let chat = move |calls: &Calls| {
        let ann = Assistant::new("Ann", calls.through(script.model("test"))).unwrap();
        let offered = ["double", "square", "cube"].map(|which| tool(which, |n| n).spec().clone());
        let ann = offered.into_iter().fold(ann, Assistant::suggest_tool);
        let group =
            Group::round_robin().tool_owner(&name("Two"), ["double"]).tool_owner(&name("Three"), ["square"]);
        Chat::builder("group")
            .participant(ann)
            .participant(speaker("Bob"))
            .private_agent(runner("Two", "double", |n| n * 2))
            .private_agent(runner("Three", "square", |n| n * n))
            .policy(with_termination(group, says("DONE")))
            .build()
            .unwrap()
    };
    let log = check(chat, &["", ""]).await;
    assert!(log.contains("Two says: double #Ann-0-0 of Ann: 4"), "{log}");
    assert!(log.contains("Three says: square #Ann-0-1 of Ann: 9"), "{log}");
    assert!(log.contains("Nobody here runs the tool `cube`"), "{log}");
}

#[tokio::test]
async fn people_who_join_and_leave() {
    let policy = || {
        let rule = |chat: &Transcript, of: &[Name]| match chat.last_speaker() {
            Some(who) if *who == "Ann" => {
                of.iter().find(|name| **name == "Me").cloned().map_or(Selected::End, Selected::Name)
            }
            _ => Method::RoundRobin.into(),
        };
        let group = with_late_joiner(Group::custom(rule), name("Me"), says("Bob 1"), JoinHistory::All);
        with_termination(with_late_joiner(group, name("You"), max_turns(3), JoinHistory::New), max_turns(9))
    };
    let chat = move |_: &Calls| {
        Chat::builder("group")
            .participant(speaker("Bob"))
            .participant(speaker("Ann"))
            .late_joiner(Human::new("Me").unwrap())
            .late_joiner(Human::new("You").unwrap())
            .policy(policy())
            .build()
            .unwrap()
    };
    let log = check(chat, &["hello", "hi", "exit", "exit"]).await;
    assert!(log.contains("Me joins") && log.contains("You joins") && log.contains("You leaves"), "{log}");
}

#[test]
fn five_thousand_messages_need_no_stack() {
    let long = || {
        let policy = with_termination(Group::round_robin(), max_messages(5_000));
        let chat = Chat::builder("pair")
            .participant(speaker("Ann"))
            .participant(speaker("Bob"))
            .policy(policy)
            .max_turns(5_000);
        let chat = chat.build().unwrap();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async { chat.run("go").await.unwrap().status })
    };
    let thread = std::thread::Builder::new().stack_size(384 * 1024).spawn(long).unwrap();
    let Status::Closed { reason, .. } = thread.join().unwrap() else { panic!("it is over") };
    assert_eq!(
        reason,
        StopReason::from(LibraryStopReason::CountReached { count: 5_000, of: Counted::Messages })
    );
}
