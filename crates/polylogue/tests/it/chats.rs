//! Chats in the kernel: suggested tools, ends by participants, joining, clearing, reopening.

use std::sync::Arc;

use crate::common::{cut_everywhere, cut_with_answers, log, name, pair_chat, script};
use expect_test::{Expect, expect};
use polylogue::policies::{with_summary_by, with_termination};
use polylogue::stop::LibraryStopReason;
use polylogue::stop::{max_turns, says};
use polylogue::{
    Act, Agent, Assistant, Chat, Error, Function, Human, Message, Name, Policy, Result, Step, Tool,
    Transcript, Turn, round_robin, sequential,
};
use polylogue_core::Status;
use polylogue_core::{
    Event, ExecutedCall, HistoryEntry, Interrupt, JoinHistory, Part, StopReason, ToolCall, ToolCx, ToolError,
    ToolResult, ToolSpec, TurnRequest, View, ViewOptions,
};
use polylogue_models::Script;
use polylogue_test::cut::Calls;
use polylogue_test::print::transcript;
use serde_json::{Value, json};

fn assistant(who: &str, calls: &Calls, script: &Script) -> Assistant {
    Assistant::new(who, calls.through(script.model("test"))).unwrap()
}

/// Runs the chat whole, cuts its log everywhere, and compares the log.
async fn check(chat: impl Fn(&Calls) -> Chat, answers: &[&'static str], log: Expect) -> Vec<Arc<Event>> {
    let events = cut_with_answers("go", chat, answers).await;
    log.assert_eq(&transcript(&events));
    events
}

fn view(events: &[Arc<Event>], who: &str) -> String {
    let chat = Transcript::from_events(&polylogue_core::Path::root(), events).unwrap();
    let view = View::of(&chat, &name(who), ViewOptions::default());
    let lines: Vec<String> = view.entries().iter().map(|e| serde_json::to_string(e).unwrap()).collect();
    lines.join("\n")
}

/// Calls a tool that it does not run, and repeats its outcome.
fn caller() -> impl Agent {
    Function::new("Caller", |turn: &Turn<'_>| {
        let call = ToolCall { id: "c1".into(), tool: "add".into(), args: json!({"a": 1}) };
        Ok(match turn.transcript().turns_of(turn.me()) {
            0 => Act::Say(vec![Part::text("Let me see"), Part::ToolCall(call)]),
            _ => Act::say("Done"),
        })
    })
    .unwrap()
}

/// Answers whatever is asked for.
fn runner() -> impl Agent {
    Function::new("Runner", |turn: &Turn<'_>| {
        let answer = |(to, call): &(Name, ToolCall)| {
            let (id, tool, outcome) = (call.id.clone(), call.tool.clone(), ToolResult::done("42"));
            Part::ToolResult(ExecutedCall { to: to.clone(), id, tool, result: outcome })
        };
        Ok(Act::Say(turn.transcript().pending_calls().iter().map(answer).collect()))
    })
    .unwrap()
}

#[tokio::test]
async fn a_call_that_another_agent_runs_is_paired_for_the_caller_and_text_for_the_others() {
    let chat = |_: &Calls| {
        let policy = with_termination(round_robin(), max_turns(3));
        Chat::builder("group").participant(caller()).participant(runner()).policy(policy).build().unwrap()
    };
    let events = check(
        chat,
        &[],
        expect![[r#"
            0 opened [Caller, Runner] "go" | user: go
            1 turn Caller
            2 Caller says: Let me see | call add {"a":1} #c1
            3 turn Runner
            4 Runner says: add #c1 of Caller: 42
            5 turn Caller
            6 Caller says: Done
            7 closed (3 of 3 turns): Done
        "#]],
    )
    .await;
    expect![[r#"
        {"role":"user","parts":[{"text":"go"}]}
        {"role":"assistant","parts":[{"text":"Let me see"},{"call":{"id":"c1","tool":"add","args":{"a":1}}}]}
        {"role":"tool","id":"c1","tool":"add","result":{"status":"done","parts":[{"text":"42"}]}}
        {"role":"assistant","parts":[{"text":"Done"}]}"#]]
    .assert_eq(&view(&events, "Caller"));
    expect![[r#"
        {"role":"user","parts":[{"text":"go"}]}
        {"role":"user","parts":[{"text":"Let me see"},{"text":"(calls `add` with {\"a\":1})"}]}
        {"role":"assistant","parts":[{"text":"(`add` returned: 42)"}]}
        {"role":"user","parts":[{"text":"Done"}]}"#]]
    .assert_eq(&view(&events, "Runner"));
}

#[tokio::test]
async fn a_participant_ends_the_chat_and_it_is_still_summarized() {
    let script = script(r#"[{"A": "one"}, {"Judge": "It was short."}]"#);
    let chat = |calls: &Calls| {
        let quits = Function::new("B", |turn: &Turn<'_>| {
            Ok(Act::Stop(StopReason::from(LibraryStopReason::NoReply { who: turn.me().clone() })))
        });
        Chat::builder("group")
            .participant(assistant("A", calls, &script))
            .participant(quits.unwrap())
            .private_agent(assistant("Judge", calls, &script))
            .policy(with_summary_by(round_robin(), name("Judge"), |_| "Sum up.".into()))
            .build()
            .unwrap()
    };
    check(
        chat,
        &[],
        expect![[r#"
            0 opened [A, B] "go" | user: go
            1 turn A
            2 script:test replies to A (stop, $0.00): one
            3 A says: one
            4 turn B
            5 B ends the chat: B has no reply
            6 turn Judge in private "Sum up."
            7 script:test replies to Judge (stop, $0.00): It was short.
            8 Judge says in private: It was short.
            9 closed (B has no reply): It was short.
        "#]],
    )
    .await;
}

#[tokio::test]
async fn no_message_is_sent_after_a_participant_ended_the_chat_whatever_the_policy_wants() {
    let stops = Function::new("A", |_: &Turn<'_>| {
        Ok(Act::Stop(StopReason::from(LibraryStopReason::Condition { name: "enough".into() })))
    })
    .unwrap();
    let deaf = |chat: &Transcript| Step::Turn(TurnRequest::to_all(chat.participants()[0].clone()));
    let chat = Chat::builder("group").participant(stops).policy(deaf).build().unwrap();
    let status = chat.run("go").await.unwrap().status;
    let reason = StopReason::from(LibraryStopReason::Condition { name: "enough".into() });
    let reason = StopReason::NoOutput { ended: Box::new(reason) };
    assert_eq!(status, Status::Closed { reason, summary: "".into() });
}

/// C joins after the first turn of A, and leaves; B is there all the time.
fn with_joining(sees: JoinHistory) -> impl Policy {
    move |chat: &Transcript| {
        let c = name("C");
        if chat.turns() == 1 && chat.late_joiners().any(|name| *name == c) {
            return Step::Admit { who: c, sees };
        }
        with_termination(round_robin(), max_turns(4)).next(chat)
    }
}

#[tokio::test]
async fn who_joins_later_sees_what_was_said_before_or_only_what_is_new() {
    let said = |text: &'static str| move |_: &Turn<'_>| Ok(Act::say(text));
    for (sees, first) in [(JoinHistory::All, "go"), (JoinHistory::New, "b1")] {
        let chat = move |_: &Calls| {
            Chat::builder("group")
                .participant(Function::new("A", said("a1")).unwrap())
                .participant(Function::new("B", said("b1")).unwrap())
                .late_joiner(Function::new("C", said("c1")).unwrap())
                .policy(with_joining(sees))
                .build()
                .unwrap()
        };
        let events = cut_everywhere("go", chat).await;
        let view = view(&events, "C");
        assert!(view.lines().next().unwrap().contains(first), "{view}");
        assert_eq!(
            view.contains("a1"),
            sees == JoinHistory::All || view.matches("a1").count() == 1,
            "{view}"
        );
    }
}

#[tokio::test]
async fn a_policy_that_admits_or_requests_an_unknown_participant_is_refused() {
    let idle = |who: &str| Function::new(who, |_: &Turn<'_>| Ok(Act::Pass)).unwrap();
    let steps: [fn() -> Step; 2] = [
        || Step::Admit { who: Name::new("A").unwrap(), sees: JoinHistory::All },
        || Step::Turn(TurnRequest::to_all(Name::new("C").unwrap())),
    ];
    for (step, flaw) in steps.into_iter().zip(["who is not waiting to join", "who has not joined"]) {
        let policy = move |_: &Transcript| step();
        let chat = Chat::builder("group")
            .participant(idle("A"))
            .late_joiner(idle("C"))
            .policy(policy)
            .build()
            .unwrap();
        let error = chat.run("go").await.unwrap_err();
        assert!(matches!(&error, Error::Config(cause) if cause.to_string().contains(flaw)), "{error}");
    }
}

/// Puts everything but the last message out of B's sight, and asks a person meanwhile.
struct Cleaner(Name);

impl Agent for Cleaner {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let Some(answer) = turn.answer() else { return Ok(Act::Ask("What now?".into())) };
        turn.clear_history(Some(name("B")), 1).await?;
        let Some(more) = turn.answer() else { return Ok(Act::Ask("And then?".into())) };
        Ok(Act::say(format!("{answer}, {more}")))
    }
}

#[tokio::test]
async fn a_history_is_cleared_out_of_one_sight_and_stays_in_the_log() {
    let script = script(r#"[{"A": "one"}, {"B": {"say": "two", "expect": {"last": "clean, again"}}}]"#);
    let chat = |calls: &Calls| {
        Chat::builder("group")
            .participant(assistant("A", calls, &script))
            .participant(Cleaner(name("H")))
            .participant(assistant("B", calls, &script))
            .policy(sequential())
            .build()
            .unwrap()
    };
    let events = check(
        chat,
        &["clean", "again"],
        expect![[r#"
            0 opened [A, H, B] "go" | user: go
            1 turn A
            2 script:test replies to A (stop, $0.00): one
            3 A says: one
            4 turn H
            5 H asks: What now?
            6 H is answered: clean
            7 H clears the history of B, keeping 1
            8 H asks: And then?
            9 H is answered: again
            10 H says: clean, again
            11 turn B
            12 script:test replies to B (stop, $0.00): two
            13 B says: two
            14 closed (every participant has spoken): two
        "#]],
    )
    .await;
    expect![[r#"
        {"role":"user","parts":[{"text":"A: one"}]}
        {"role":"user","parts":[{"text":"H: clean, again"}]}
        {"role":"assistant","parts":[{"text":"two"}]}"#]]
    .assert_eq(&view(&events, "B"));
    assert_eq!(view(&events, "A").lines().count(), 4);
}

#[tokio::test]
async fn a_reopened_chat_has_new_counts_and_the_old_memory() {
    let script = script(r#"[{"A": "one"}, {"B": "two"}, {"A": "three"}, {"B": "four"}]"#);
    let calls = Calls::default();
    let chat = Chat::builder("group")
        .participant(assistant("A", &calls, &script))
        .participant(assistant("B", &calls, &script))
        .introduction("A and B are here.")
        .policy(with_termination(round_robin(), max_turns(2)))
        .build()
        .unwrap();
    let mut log = log().await;
    chat.run_in(&mut log, "go").await.unwrap();
    let early = log.events().await.len();
    chat.continue_with(&mut log, Message::new(Name::user(), "and now?")).await.unwrap();
    let events = log.events().await;
    expect![[r#"
        8 reopened user: and now?
        9 turn A
        10 script:test replies to A (stop, $0.00): three
        11 A says: three
        12 turn B
        13 script:test replies to B (stop, $0.00): four
        14 B says: four
        15 closed (2 of 2 turns): four
    "#]]
    .assert_eq(&transcript(&events[early..]));
    expect![[r#"
        {"role":"user","parts":[{"text":"A and B are here."}]}
        {"role":"user","parts":[{"text":"go"}]}
        {"role":"assistant","parts":[{"text":"one"}]}
        {"role":"user","parts":[{"text":"two"}]}
        {"role":"user","parts":[{"text":"and now?"}]}
        {"role":"assistant","parts":[{"text":"three"}]}
        {"role":"user","parts":[{"text":"four"}]}"#]]
    .assert_eq(&view(&events, "A"));
    log.reopen().await.unwrap();
    let error = chat.continue_with(&mut log, Message::new(Name::user(), "?")).await.unwrap_err();
    assert_eq!(error.to_string(), "the conversation `test` is not over");
}

#[tokio::test]
async fn a_nested_chat_continues_its_own_history_or_that_of_another() {
    let script = script(
        r#"[{"A": "a1"}, {"A": {"say": "a2", "expect": {"last": "more"}}},
            {"A": {"say": "a3", "expect": {"last": "a2"}}}]"#,
    );
    let chat = |calls: &Calls| {
        let inner = |who: &str, from: &str| {
            Chat::builder(who)
                .participant(assistant("A", calls, &script))
                .continues(name(from))
                .policy(sequential())
                .build()
                .unwrap()
        };
        let says = |_: &Turn<'_>| Ok(Act::say("more"));
        let policy = |chat: &Transcript| match chat.turns() {
            0 | 2 => Step::Turn(TurnRequest::to_all(name("inner"))),
            1 => Step::Turn(TurnRequest::to_all(name("B"))),
            3 => Step::Turn(TurnRequest::to_all(name("other"))),
            _ => Step::close(StopReason::Finished, chat),
        };
        Chat::builder("group")
            .participant(inner("inner", "inner"))
            .participant(Function::new("B", says).unwrap())
            .participant(inner("other", "inner"))
            .policy(policy)
            .build()
            .unwrap()
    };
    let events = check(
        chat,
        &[],
        expect![[r#"
            0 opened [inner, B, other] "go" | user: go
            1 turn inner
            2 /inner.1 opened [A] "go" | user: go
            3 /inner.1 turn A
            4 /inner.1 script:test replies to A (stop, $0.00): a1
            5 /inner.1 A says: a1
            6 /inner.1 closed (A replied): a1
            7 inner says: a1
            8 turn B
            9 B says: more
            10 turn inner
            11 /inner.2 opened [A] "more" | user: go | A: a1 | user: more
            12 /inner.2 turn A
            13 /inner.2 script:test replies to A (stop, $0.00): a2
            14 /inner.2 A says: a2
            15 /inner.2 closed (A replied): a2
            16 inner says: a2
            17 turn other
            18 /other.1 opened [A] "a2" | user: go | A: a1 | user: more | A: a2 | user: a2
            19 /other.1 turn A
            20 /other.1 script:test replies to A (stop, $0.00): a3
            21 /other.1 A says: a3
            22 /other.1 closed (A replied): a3
            23 other says: a3
            24 closed (the chat is complete): a3
        "#]],
    )
    .await;
    assert_eq!(events.len(), 25);
}

/// Runs two chats in one turn, the second with the result of the first.
struct Twice(Name, Chat, Chat);

impl Agent for Twice {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let mut task = "first".to_owned();
        for chat in [&self.1, &self.2] {
            match turn.run(chat, &task).await? {
                Status::Closed { summary, .. } => task = summary.to_string(),
                Status::Waiting(_) => return Ok(Act::Wait),
                Status::Cancelled => return Err(Interrupt::Cancelled.into()),
            }
        }
        Ok(Act::say(task))
    }
}

#[tokio::test]
async fn a_turn_runs_several_chats_one_after_the_other_with_people_in_them() {
    let script = script(r#"[{"A": "a1"}]"#);
    let chat = |calls: &Calls| {
        let one = Chat::builder("one")
            .participant(assistant("A", calls, &script))
            .policy(sequential())
            .build()
            .unwrap();
        let two = Chat::builder("two")
            .participant(Human::new("Ann").unwrap())
            .policy(sequential())
            .build()
            .unwrap();
        let stop = with_termination(round_robin(), says("yes"));
        Chat::builder("group").participant(Twice(name("T"), one, two)).policy(stop).build().unwrap()
    };
    check(
        chat,
        &["yes"],
        expect![[r#"
            0 opened [T] "go" | user: go
            1 turn T
            2 /T.1 opened [A] "first" | user: first
            3 /T.1 turn A
            4 /T.1 script:test replies to A (stop, $0.00): a1
            5 /T.1 A says: a1
            6 /T.1 closed (A replied): a1
            7 /T.1.2 opened [Ann] "a1" | user: a1
            8 /T.1.2 turn Ann
            9 /T.1.2 Ann asks: Ann, it is your turn.
            10 /T.1.2 Ann is answered: yes
            11 /T.1.2 Ann says: yes
            12 /T.1.2 closed (Ann replied): yes
            13 T says: yes
            14 closed (T said `yes`): yes
        "#]],
    )
    .await;
}

/// A tool whose outcome is the last of the turn, unless it fails.
struct Finish(ToolSpec);

impl Tool for Finish {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        match args.get("answer") {
            Some(Value::String(answer)) => Ok(ToolResult::done(&**answer)),
            _ => Err("`answer` is missing".into()),
        }
    }
}

#[tokio::test]
async fn a_tool_that_ends_the_turn_ends_it_when_it_worked() {
    let script = script(
        r#"[{"A": {"calls": [{"tool": "finish"}]}}, {"A": {"calls": [{"tool": "finish", "args": {"answer": "42"}}]}}]"#,
    );
    let chat = |calls: &Calls| {
        let finish =
            Finish(ToolSpec::new("finish", "Ends.", json!({"type": "object"})).repeatable().ends_turn());
        Chat::builder("group")
            .participant(assistant("A", calls, &script).tool(finish))
            .policy(sequential())
            .build()
            .unwrap()
    };
    check(
        chat,
        &[],
        expect![[r#"
            0 opened [A] "go" | user: go
            1 turn A
            2 script:test replies to A (calls, $0.00): call finish {} #A-0-0
            3 A calls finish {} #A-0-0
            4 A gets #A-0-0 failed: `answer` is missing
            5 script:test replies to A (calls, $0.00): call finish {"answer":"42"} #A-1-0
            6 A calls finish {"answer":"42"} #A-1-0
            7 A gets #A-1-0: 42
            8 A says: 42
            9 closed (A replied): 42
        "#]],
    )
    .await;
}

#[tokio::test]
async fn an_agent_that_forgets_private_turns_sees_none_of_them() {
    let script = script(r#"[{"S": "A"}, {"A": "one"}, {"S": "B"}]"#);
    let chat = |calls: &Calls| {
        let options = ViewOptions { forget_private_turns: true, ..ViewOptions::default() };
        let policy = |chat: &Transcript| {
            let asked = chat.private_turns_of(&name("S")) > 0;
            match (chat.turns(), asked) {
                (_, false) => Step::Turn(TurnRequest::private(name("S"), "Who is next?")),
                (0, true) => Step::Turn(TurnRequest::to_all(name("A"))),
                _ => Step::close(StopReason::Finished, chat),
            }
        };
        Chat::builder("group")
            .participant(assistant("A", calls, &script))
            .private_agent(assistant("S", calls, &script).view(options))
            .policy(policy)
            .build()
            .unwrap()
    };
    let events = cut_everywhere("go", chat).await;
    let chat = Transcript::from_events(&polylogue_core::Path::root(), &events[..events.len() - 2]).unwrap();
    let view =
        View::of(&chat, &name("S"), ViewOptions { forget_private_turns: true, ..ViewOptions::default() });
    let texts: Vec<String> =
        view.entries().iter().map(|e| polylogue_core::text_of(e.parts()).into_owned()).collect();
    assert_eq!(texts, ["user: go", "A: one", "Who is next?"]);
}

/// Decides in several steps, and remembers only the result.
struct Forgetful(Assistant);

impl Agent for Forgetful {
    fn name(&self) -> &Name {
        self.0.name()
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        turn.prompt("Write the arguments as JSON.").await?;
        self.0.act(turn).await?;
        let words = vec![
            HistoryEntry::Sent("I can use the tool.".into()),
            HistoryEntry::Received("It returned 3.".into()),
        ];
        turn.remember(words).await?;
        Ok(Act::say("It returned 3."))
    }
}

#[tokio::test]
async fn an_agent_replaces_its_history_of_a_turn_and_others_see_its_message() {
    let script = script(r#"[{"A": "{}"}, {"B": "b1"}, {"A": {"say": "{}", "expect": {"last": "JSON"}}}]"#);
    let chat = |calls: &Calls| {
        pair_chat("group", Forgetful(assistant("A", calls, &script)), assistant("B", calls, &script), 3)
    };
    let events = check(
        chat,
        &[],
        expect![[r#"
            0 opened [A, B] "go" | user: go
            1 turn A
            2 A is prompted: Write the arguments as JSON.
            3 script:test replies to A (stop, $0.00): {}
            4 A replaces its history of the turn: sent I can use the tool. | received It returned 3.
            5 A says: It returned 3.
            6 turn B
            7 script:test replies to B (stop, $0.00): b1
            8 B says: b1
            9 turn A
            10 A is prompted: Write the arguments as JSON.
            11 script:test replies to A (stop, $0.00): {}
            12 A replaces its history of the turn: sent I can use the tool. | received It returned 3.
            13 A says: It returned 3.
            14 closed (3 of 3 turns): It returned 3.
        "#]],
    )
    .await;
    expect![[r#"
        {"role":"user","parts":[{"text":"go"}]}
        {"role":"assistant","parts":[{"text":"I can use the tool."}]}
        {"role":"user","parts":[{"text":"It returned 3."}]}
        {"role":"user","parts":[{"text":"b1"}]}
        {"role":"assistant","parts":[{"text":"I can use the tool."}]}
        {"role":"user","parts":[{"text":"It returned 3."}]}"#]]
    .assert_eq(&view(&events, "A"));
    assert!(view(&events, "B").contains("It returned 3."));
}
