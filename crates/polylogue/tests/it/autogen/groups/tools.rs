//! Tools in a group, and clearing its history: items 85 and 89.

use polylogue::layers::executor::Executor;
use polylogue::layers::human_input::HumanInput;
use polylogue::layers::reply::{Stack, from_fn};
use polylogue::policies::group::{Selected, Transitions};
use polylogue::policies::with_termination;
use polylogue::stop::{max_turns, says};
use polylogue::tools::FunctionTool;
use polylogue::{Group, Name, Tool};
use polylogue_core::{Chooser, ToolError};

use super::*;
use crate::autogen::people::talk;
use crate::stage::{Spy, closed};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Number {
    of: i64,
}

fn tool(which: &str, by: fn(i64) -> i64) -> impl Tool + use<> {
    let compute = move |args: Number| std::future::ready(Ok::<_, ToolError>(by(args.of).to_string()));
    FunctionTool::new(which, "Computes.", compute)
}

/// Who runs a tool, and says something when there is nothing to run.
fn runner(who: &str, which: &str, by: fn(i64) -> i64) -> Stack {
    Stack::new(who).unwrap().then(Executor::new().tool(tool(which, by))).otherwise("Nothing to run")
}

/// Ann, who is offered tools and speaks by a script, Bob, who talks, and Two and Three, who run tools.
fn tooled(spy: &Spy, policy: impl Policy) -> Chat {
    let ann = Assistant::new("Ann", spy.model()).unwrap();
    let offered = ["double", "triple", "cube"].map(|which| tool(which, |n| n).spec().clone());
    Chat::builder("group")
        .participant(speaker("Bob"))
        .participant(offered.into_iter().fold(ann, Assistant::suggest_tool))
        .participant(runner("Two", "double", |n| n * 2))
        .participant(runner("Three", "triple", |n| n * 3))
        .policy(policy)
        .build()
        .unwrap()
}

fn owned(group: Group) -> Group {
    group.tool_owner(&name("Two"), ["double"]).tool_owner(&name("Three"), ["triple"])
}

// Item 85, trap T12: the transitions allow none of it, since running tools is not a choice.
#[tokio::test]
async fn a_call_goes_to_the_owner_of_the_tool_and_the_outcome_back_to_the_caller() {
    let spy = Spy::on(script(
        r#"[{"Ann": {"say": "Let me see.", "calls": [{"tool": "triple", "args": {"of": 4}}]}}, {"Ann": "It is 12."}]"#,
    ));
    let graph = Transitions::allowed([(name("Bob"), vec![name("Ann")]), (name("Ann"), vec![])]);
    let (status, events) = run(&tooled(&spy, owned(Group::round_robin()).transitions(graph)), "hi").await;
    assert_eq!(speakers(&events), "user Bob Ann Three Ann");
    assert_eq!(closed(&status), ("no participant may speak after Ann".into(), "It is 12.".into()));
    let by: Vec<Chooser> = choices(&events).into_iter().map(|choice| choice.by).collect();
    assert_eq!(by, [Chooser::Order, Chooser::Order, Chooser::Tools, Chooser::Tools]);
    let entries = sent(&spy.asked()[1].entries);
    assert_eq!(entries[2..], ["assistant: Let me see.", "triple: 12"]);
}

// Item 85, trap T12: every call is answered.
#[tokio::test]
async fn calls_of_two_participants_tools_are_all_answered() {
    let spy = Spy::on(script(
        r#"[{"Ann": {"calls": [{"tool": "double", "args": {"of": 1}}, {"tool": "triple", "args": {"of": 1}}]}},
            {"Ann": "2 and 3. DONE"}]"#,
    ));
    let chat = tooled(&spy, with_termination(owned(Group::round_robin()), says("DONE")));
    let (_, events) = run(&chat, "hi").await;
    assert_eq!(speakers(&events), "user Bob Ann Two Three Ann");
    assert_eq!(sent(&spy.asked()[1].entries)[3..], ["double: 2", "triple: 3"]);
}

// Item 85, trap T13: no participant can run it, and the conversation continues.
#[tokio::test]
async fn a_call_that_no_participant_can_run_is_reported_to_the_caller() {
    let spy = Spy::on(script(
        r#"[{"Ann": {"calls": [{"tool": "cube", "args": {"of": 1}}]}}, {"Ann": {"calls": [{"tool": "cube"}]}},
            {"Ann": "never mind"}]"#,
    ));
    let chat = tooled(&spy, with_termination(owned(Group::round_robin()), says("never mind") | max_turns(9)));
    let (_, events) = run(&chat, "hi").await;
    // The error is sent once; after another call, the others continue.
    assert_eq!(speakers(&events), "user Bob Ann Ann Two Three Bob Ann");
    let shown = sent(&spy.asked()[1].entries);
    assert_eq!(shown[3], "cube: This call was not made.");
    let last = "user: Nobody here runs the tool `cube`. There are `double` (Two) and `triple` (Three).";
    assert_eq!(shown.last().unwrap(), last);
}

// Trap T14: a custom rule need not know of tools.
#[tokio::test]
async fn a_custom_rule_is_not_asked_while_tools_run() {
    let spy =
        Spy::on(script(r#"[{"Ann": {"calls": [{"tool": "double", "args": {"of": 5}}]}}, {"Ann": "10"}]"#));
    let rule = |chat: &Transcript, _: &[Name]| match chat.last_speaker() {
        None => name("Ann").into(),
        Some(who) => {
            assert_eq!(*who, "Ann");
            Selected::End
        }
    };
    let (status, events) = run(&tooled(&spy, owned(Group::custom(rule))), "hi").await;
    assert_eq!(speakers(&events), "user Ann Two Ann");
    assert_eq!(closed(&status).1, "10");
}

// Item 85: a participant that only runs tools is a private agent, and is never selected to speak.
#[tokio::test]
async fn the_owner_of_tools_can_be_a_private_agent() {
    let model = script(
        r#"[{"Ann": {"calls": [{"tool": "double", "args": {"of": 5}}]}}, {"Ann": "10"}, {"Ann": "bye"}]"#,
    );
    let ann = assistant("Ann", &model).suggest_tool(tool("double", |n| n).spec().clone());
    let chat = Chat::builder("group")
        .participant(ann)
        .participant(speaker("Bob"))
        .private_agent(runner("Two", "double", |n| n * 2))
        .policy(with_termination(Group::round_robin().tool_owner(&name("Two"), ["double"]), max_turns(5)))
        .build()
        .unwrap();
    assert_eq!(speakers(&run(&chat, "hi").await.1), "user Ann Two Ann Bob Ann");
}

/// Ann and Bob talk by models, and Me, a person, may clear the history; the answers of Me, then what was sent to Bob
/// last.
async fn cleared(answers: &[&str]) -> (Vec<String>, Vec<String>, Vec<String>) {
    let (ann, bob) = (
        Spy::on(script(r#"[{"Ann": "a1"}, {"Ann": "a2"}]"#)),
        Spy::on(script(r#"[{"Bob": "b1"}, {"Bob": "b2"}]"#)),
    );
    let me = Stack::new("Me").unwrap().then(HumanInput::always().clear_command());
    let chat = Chat::builder("group")
        .participant(Assistant::new("Ann", ann.model()).unwrap())
        .participant(Assistant::new("Bob", bob.model()).unwrap())
        .participant(me.then(from_fn(|_| Ok(Some(Act::say("auto"))))))
        .policy(with_termination(Group::round_robin(), max_turns(5)))
        .build()
        .unwrap();
    let (_, events) = talk(&chat, "hi", answers).await;
    let said = folded(&events).messages().map(|line| line.message.text().into_owned()).collect();
    (said, sent(&ann.asked()[1].entries), sent(&bob.asked()[1].entries))
}

// Item 89: plain, with an agent, with a number, with both. What was said before is out of sight, and in the log.
#[tokio::test]
async fn a_person_clears_the_history_of_the_group() {
    let (said, ann, bob) = cleared(&["clear history and go on"]).await;
    assert_eq!(said, ["hi", "a1", "b1", "and go on", "a2", "b2"]);
    assert_eq!(ann.last().unwrap(), "user: Me: and go on");
    for view in [&ann, &bob] {
        assert!(!view.iter().any(|entry| entry.contains("a1") || entry.contains("b1")), "{view:?}");
    }
}

// Item 89.
#[tokio::test]
async fn a_person_clears_the_history_of_one_participant() {
    let (said, ann, bob) = cleared(&["Clear History Ann. Once more, please"]).await;
    assert_eq!(said[3], "Once more, please");
    assert!(!ann.iter().any(|entry| entry.contains("a1") || entry.contains("b1")), "{ann:?}");
    assert!(bob.iter().any(|entry| entry.contains("a1")), "{bob:?}");
}

// Item 89.
#[tokio::test]
async fn a_person_keeps_some_of_the_history() {
    let (_, ann, bob) = cleared(&["clear history 1 and go on"]).await;
    for view in [&ann, &bob] {
        assert!(!view.iter().any(|entry| entry.contains("hi")), "{view:?}");
        assert!(view.iter().any(|entry| entry.contains("b1")), "{view:?}");
    }
    let (_, ann, bob) = cleared(&["clear history 1 Bob and go on"]).await;
    assert!(ann.iter().any(|entry| entry.contains("hi")), "{ann:?}");
    assert!(!bob.iter().any(|entry| entry.contains("hi")), "{bob:?}");
}

// Item 89: a call and its result are kept or dropped together; the scripted model refuses a request where they are not.
#[tokio::test]
async fn clearing_keeps_calls_and_results_together() {
    for command in ["clear history 1 go on", "clear history 2 go on", "clear history 3 go on"] {
        let spy = Spy::on(script(
            r#"[{"Ann": {"say": "asks", "calls": [{"tool": "double", "args": {"of": 5}}]}}, {"Ann": "ten"}, {"Ann": "end"}]"#,
        ));
        let me = Stack::new("Me").unwrap().then(HumanInput::always().clear_command());
        let chat = Chat::builder("group")
            .participant(
                Assistant::new("Ann", spy.model())
                    .unwrap()
                    .suggest_tool(tool("double", |n| n).spec().clone()),
            )
            .participant(me.then(from_fn(|_| Ok(None))))
            .participant(runner("Two", "double", |n| n * 2))
            .policy(with_termination(Group::round_robin().tool_owner(&name("Two"), ["double"]), says("end")))
            .build()
            .unwrap();
        let (_, events) = talk(&chat, "hi", &[command]).await;
        assert_eq!(speakers(&events), "user Ann Two Ann Me Two Ann", "{command}");
        let kept = sent(&spy.asked()[2].entries);
        let calls = kept.iter().filter(|entry| **entry == "assistant: asks").count();
        let results = kept.iter().filter(|entry| **entry == "double: 10").count();
        assert_eq!(calls, results, "{command}: {kept:?}");
    }
}
