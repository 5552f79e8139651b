//! Invariants 6 and 7 for agents made of layers: a log cut anywhere and run again becomes the same log.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::common::{cut_with_answers, log_of, name, script};
use polylogue::layers::hook::{HookedModel, before_send, map_text};
use polylogue::layers::reply::{MessageKind, Trigger, from_fn, when};
use polylogue::layers::{Executor, HumanInput, Stack};
use polylogue::policies::{with_summary_by, with_termination};
use polylogue::stop::{max_turns, says};
use polylogue::tools::FunctionTool;
use polylogue::{
    Act, Agent, AnyModel, Assistant, Chat, Function, Human, Log, Policy, Tool, parallel, round_robin,
    sequential,
};
use polylogue_core::Body;
use polylogue_models::Script;
use polylogue_test::cut::Calls;
use polylogue_test::print::transcript;
use serde_json::Value;

fn assistant(who: &str, calls: &Calls, script: &Script) -> Assistant {
    Assistant::new(who, calls.through(script.model("test"))).unwrap()
}

fn chat(members: (impl Agent, impl Agent), policy: impl Policy) -> Chat {
    Chat::builder("pair").participant(members.0).participant(members.1).policy(policy).build().unwrap()
}

/// Cuts the conversation everywhere, with one answer to each question in turn; returns the log as text.
async fn check(chat: impl Fn(&Calls) -> Chat, answers: &[&'static str]) -> String {
    let text = transcript(&cut_with_answers("begin", chat, answers).await);
    let asked = text.matches(" is answered: ").count();
    assert_eq!(asked, answers.len(), "everyone who was to be asked was asked\n{text}");
    text
}

#[tokio::test]
async fn human_input_in_every_mode() {
    let script = script(
        r#"[{"Ann": "a1"}, {"Ann": "TERMINATE"}, {"Ann": "a3"}, {"Ann": "a4"}, {"Ann": "TERMINATE"}, {"Ann": "a6"},
            {"Bob": "b1"}, {"Bob": "b2"}, {"Bob": "b3"}, {"Bob": "b4"}]"#,
    );
    let pair = |oversight: HumanInput| {
        let script = &script;
        move |calls: &Calls| {
            let bob =
                Stack::new("Bob").unwrap().then(oversight.clone()).then(assistant("Bob", calls, script));
            chat((assistant("Ann", calls, script), bob), with_termination(round_robin(), max_turns(12)))
        }
    };
    let text = check(pair(HumanInput::always()), &["", "go on", "", " mine ", ""]).await;
    assert!(text.contains("closed (Ann said `TERMINATE`)"), "{text}");
    let text = check(pair(HumanInput::always()), &["Exit"]).await;
    assert!(text.contains("closed (Bob left: said `exit`)"), "{text}");
    let limited = HumanInput::terminate().max_auto_replies(1);
    let text = check(pair(limited.clone()), &["go on", "", "EXIT"]).await;
    assert!(text.contains("closed (Bob left: said `exit`)"), "{text}");
    let text = check(pair(limited), &["go on", "", ""]).await;
    assert!(text.contains("closed (Ann said `TERMINATE`)"), "{text}");
    let text = check(pair(HumanInput::never()), &[]).await;
    assert!(text.contains("closed (Ann said `TERMINATE`)"), "{text}");
    let text = check(pair(HumanInput::never().max_auto_replies(2).terminate_on(says("nothing"))), &[]).await;
    assert!(text.contains("closed (Bob's limit of 2 replies"), "{text}");
}

fn echo() -> impl Tool {
    FunctionTool::new("echo", "Says it again.", async |args: Value| Ok(args)).repeatable()
}

#[tokio::test]
async fn a_caller_an_executor_and_a_person_who_interrupts() {
    let script = script(
        r#"[{"Ann": {"say": "Both", "calls": [{"tool": "echo", "args": {"a": 1}}, {"tool": "own"}, {"tool": "gone"}]}},
            {"Ann": {"calls": [{"tool": "echo", "args": "{\"a\": \"x\ny\"}"}, {"tool": "echo", "args": "no"}]}},
            {"Ann": {"calls": [{"tool": "echo"}]}}, {"Ann": "done"}, {"Ann": "They echoed."}]"#,
    );
    let own = || FunctionTool::new("own", "Is the caller's own.", async |(): ()| Ok("mine")).repeatable();
    let text = check(
        |calls| {
            let ann = assistant("Ann", calls, &script).tool(own()).suggest_tool(echo().spec().clone());
            let bob =
                Stack::new("Bob").unwrap().then(HumanInput::always()).then(Executor::new().tool(echo()));
            let policy =
                with_summary_by(with_termination(round_robin(), says("done").whole()), name("Ann"), |_| {
                    "Sum up.".into()
                });
            chat((ann, bob), policy)
        },
        &["", "", "no more of that"],
    )
    .await;
    assert!(text.contains("echo #Ann-0-0 of Ann: {\"a\":1}\n"), "{text}");
    assert!(text.contains("echo #Ann-2-0 of Ann: USER INTERRUPTED | no more of that\n"), "{text}");
    assert!(text.ends_with("closed (Ann said `done`): They echoed.\n"), "{text}");
}

#[tokio::test]
async fn a_person_who_clears_the_history() {
    let script = script(r#"[{"Ann": "a1"}, {"Ann": "a2"}, {"Ann": "a3"}, {"Bob": "b1"}]"#);
    let text = check(
        |calls| {
            let oversight = HumanInput::always().clear_command();
            let bob = Stack::new("Bob").unwrap().then(oversight).then(assistant("Bob", calls, &script));
            chat((assistant("Ann", calls, &script), bob), with_termination(round_robin(), max_turns(6)))
        },
        &["clear history", "clear history 1 Ann.", "again", "clear history 2", "", "exit"],
    )
    .await;
    assert!(text.contains("Bob clears the history of Ann, keeping 1"), "{text}");
    assert!(text.contains("Bob says: b1"), "{text}");
}

#[tokio::test]
async fn layers_of_all_kinds_with_people_on_two_levels() {
    let script = script(r#"[{"Ann": "help me"}, {"Ann": "thanks"}, {"Bob": "at last"}, {"Clerk": "c1"}]"#);
    let text = check(
        |calls| {
            let office = Chat::builder("office")
                .participant(assistant("Clerk", calls, &script))
                .participant(Human::new("Expert").unwrap())
                .policy(sequential())
                .build()
                .unwrap();
            let helps = Trigger::kind(MessageKind::Text)
                & Trigger::received(|line| line.message.text().contains("help"));
            let bob = Stack::new("Bob")
                .unwrap()
                .then(HumanInput::always())
                .then(when(helps, office))
                .then(from_fn(|turn| Ok((turn.transcript().turns() > 9).then_some(Act::Pass))))
                .then(assistant("Bob", calls, &script));
            chat((assistant("Ann", calls, &script), bob), with_termination(round_robin(), max_turns(4)))
        },
        &["", "the expert's word", ""],
    )
    .await;
    assert!(text.contains("Bob says: the expert's word") && text.contains("Bob says: at last"), "{text}");
}

#[tokio::test]
async fn people_asked_at_the_same_time() {
    let text = check(
        |_| {
            let person = |who| Stack::new(who).unwrap().then(HumanInput::always()).otherwise("auto");
            chat((person("Ann"), person("Bob")), parallel())
        },
        &["mine", ""],
    )
    .await;
    assert!(text.contains("Ann says: mine") && text.contains("Bob says: auto"), "{text}");
}

#[tokio::test]
async fn hooks_on_what_is_read_replied_and_sent() {
    let script = script(r#"[{"Ann": "one"}, {"Ann": "two"}]"#);
    let text = check(
        |calls| {
            let model = HookedModel::new(calls.through(script.model("test")))
                .on_received(map_text(|text| text.to_uppercase()))
                .on_reply(|reply| polylogue_core::Reply {
                    parts: map_text(|text| format!("<{text}>"))(reply.parts),
                    ..reply
                });
            let ann = Assistant::new("Ann", AnyModel::new(model)).unwrap();
            let ann = before_send(ann, |parts, turn| {
                map_text(|text| format!("{text} {}", turn.transcript().turns()))(parts)
            });
            let bob = Function::new("Bob", |_| Ok(Act::say("more"))).unwrap();
            chat((ann, bob), with_termination(round_robin(), max_turns(3)))
        },
        &[],
    )
    .await;
    assert!(text.contains("Ann says: <one> 0\n") && text.contains("Ann says: <two> 2\n"), "{text}");
}

/// Resumes `chat` in a fresh log of the first `events` events of `log`.
async fn resumed(chat: &Chat, log: &Log, events: usize) -> String {
    let mut log = log_of(&log.events().await[..events]).await;
    chat.resume(&mut log).await.unwrap();
    transcript(&log.events().await)
}

// A tool that was running when the process died, and is not repeatable, is not repeated: its caller gets an error.
#[tokio::test]
async fn a_call_that_an_executor_was_making_is_not_made_again() {
    let ran = Arc::new(AtomicU64::new(0));
    let count = Arc::clone(&ran);
    let pay = FunctionTool::new("pay", "Pays.", move |(): ()| {
        let before = count.fetch_add(1, Ordering::Relaxed);
        async move { Ok(before) }
    });
    let script = script(r#"[{"Ann": {"calls": [{"tool": "pay"}]}}]"#);
    let ann = assistant("Ann", &Calls::default(), &script).suggest_tool(pay.spec().clone());
    let bob = Stack::new("Bob").unwrap().then(Executor::new().tool(pay));
    let chat = chat((ann, bob), sequential());
    let mut log = Log::in_memory();
    chat.run_in(&mut log, "begin").await.unwrap();
    let events = log.events().await;
    let called = events.iter().position(|event| matches!(event.body, Body::ToolCalled { .. })).unwrap();
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    let text = resumed(&chat, &log, called + 1).await;
    assert_eq!(ran.load(Ordering::Relaxed), 1);
    assert!(text.contains("Bob gets #Ann-0-0 unknown: The outcome of this call is unknown"), "{text}");
    assert!(text.contains("Bob says: pay #Ann-0-0 of Ann: The outcome of this call is unknown"), "{text}");
    assert!(resumed(&chat, &log, called).await.contains("Bob says: pay #Ann-0-0 of Ann: 1\n"));
}
