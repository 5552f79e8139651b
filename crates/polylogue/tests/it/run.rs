//! Runs that end, fail, are cancelled, are watched and continue.

use crate::common;

use std::sync::Arc;

use crate::common::{log, log_in, log_of, name, script};
use expect_test::{Expect, expect};
use polylogue::policies::{with_summary, with_termination};
use polylogue::stop::{Counted, LibraryStopReason};
use polylogue::stop::{max_turns, says};
use polylogue::tools::GetHistory;
use polylogue::{
    Act, Agent, AnyModel, Assistant, Chat, Error, Function, Human, Limits, Log, Message, Name, Status, Step,
    Tool, Transcript, Turn, Update, round_robin, sequential,
};
use polylogue_core::{
    AllowanceOwner, AnyStore, AnyTool, Body, ConfigError, Delta, Fault, Interrupt, LogId, Money, Part,
    StopReason, ToolCall, ToolCx, ToolError, ToolResult, ToolSpec, TurnRequest,
};
use polylogue_models::Script;
use polylogue_store::Memory;
use polylogue_test::print::transcript;
use serde_json::{Value, json};

fn assistant(who: &str, script: &Script) -> Assistant {
    Assistant::new(who, AnyModel::new(script.model("test"))).unwrap()
}

fn pair(script: &Script, stop: impl polylogue::stop::Condition) -> Chat {
    let chat = Chat::builder("pair").participant(assistant("A", script)).participant(assistant("B", script));
    chat.policy(with_termination(round_robin(), stop)).build().unwrap()
}

async fn printed(log: &Log) -> String {
    let events: Vec<_> = log.events().await.iter().map(|event| (**event).clone()).collect();
    transcript(&events)
}

async fn check(chat: &Chat, task: &str, expected: Expect) {
    let mut log = log().await;
    chat.run_in(&mut log, task).await.unwrap();
    expected.assert_eq(&printed(&log).await);
}

#[tokio::test]
async fn two_agents_speak_in_turn_until_a_text_is_said() {
    let script = script(r#"[{"A": "one"}, {"B": "two"}, {"A": "DONE"}]"#);
    let chat = pair(&script, says("DONE") | max_turns(9));
    check(
        &chat,
        "count",
        expect![[r#"
            0 opened [A, B] "count" | user: count
            1 turn A
            2 script:test replies to A (stop, $0.00): one
            3 A says: one
            4 turn B
            5 script:test replies to B (stop, $0.00): two
            6 B says: two
            7 turn A
            8 script:test replies to A (stop, $0.00): DONE
            9 A says: DONE
            10 closed (A said `DONE`): DONE
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_participant_who_opens_the_chat_has_spoken() {
    let script = script(r#"[{"B": "hello"}]"#);
    let opening = |task: &str| vec![Message::new(Name::new("A").unwrap(), task)];
    let chat = Chat::builder("pair")
        .participant(assistant("A", &script))
        .participant(assistant("B", &script))
        .opening(opening);
    let chat = chat.policy(with_termination(round_robin(), max_turns(1))).build().unwrap();
    check(
        &chat,
        "hi",
        expect![[r#"
            0 opened [A, B] "hi" | A: hi
            1 turn B
            2 script:test replies to B (stop, $0.00): hello
            3 B says: hello
            4 closed (1 of 1 turn): hello
        "#]],
    )
    .await;
}

#[tokio::test]
async fn a_chat_without_an_end_meets_its_cap() {
    let parrot = Function::new("P", |turn| Ok(Act::say(turn.transcript().turns().to_string()))).unwrap();
    let chat = Chat::builder("solo").participant(parrot).policy(round_robin()).build().unwrap();
    let status = chat.run_in(&mut log().await, "go").await.unwrap().status;
    assert_eq!(
        status,
        Status::Closed {
            reason: StopReason::Turns { limit: Chat::DEFAULT_MAX_TURNS, next: None },
            summary: "99".into()
        }
    );
}

#[tokio::test]
async fn a_policy_with_endless_private_turns_is_a_bug_and_ends() {
    let echo = Function::new("E", |_| Ok(Act::say("x"))).unwrap();
    let policy = |_: &Transcript| Step::Turn(TurnRequest::private(Name::new("E").unwrap(), "again"));
    let chat = Chat::builder("solo").participant(echo).policy(policy).max_turns(2).build().unwrap();
    let error = chat.run_in(&mut log().await, "go").await.unwrap_err();
    assert_eq!(
        (error.fault(), error.to_string().as_str()),
        (Fault::Bug, "the policy of `solo` requests private turns without end")
    );
}

#[test]
fn bad_definitions_are_refused_with_a_clear_error() {
    let f = |name: &str| Function::new(name, |_| Ok(Act::Pass)).unwrap();
    let error = |chat: polylogue_core::ChatBuilder| chat.build().unwrap_err().to_string();
    assert_eq!(
        error(Chat::builder("c").participant(f("A")).participant(f("A")).policy(round_robin())),
        "two agents of `c` are named `A`"
    );
    assert_eq!(error(Chat::builder("c").policy(round_robin())), "`c` has no participants");
    assert_eq!(error(Chat::builder("c").participant(f("A"))), "`c` has no policy");
    assert!(
        error(Chat::builder("c").participant(f("user")).policy(round_robin()))
            .contains("the author of the task")
    );
    let bad = Chat::builder("my/chat").participant(f("A")).policy(round_robin()).build().unwrap_err();
    assert_eq!(bad.hint().as_deref(), Some("use `my_chat`"));
}

#[tokio::test]
async fn a_policy_that_requests_an_unknown_participant_is_reported() {
    let policy = |_: &Transcript| Step::Turn(TurnRequest::to_all(Name::new("Absent").unwrap()));
    let chat = Chat::builder("c")
        .participant(Function::new("A", |_| Ok(Act::Pass)).unwrap())
        .policy(policy)
        .build()
        .unwrap();
    let error = chat.run_in(&mut log().await, "go").await.unwrap_err().to_string();
    assert_eq!(error, "the policy of `c` gives a turn to `Absent`, who is not a participant");
}

#[tokio::test]
async fn a_failed_turn_is_logged_and_retried_on_resuming() {
    let store = AnyStore::new(Memory::default());
    let script =
        script(r#"[{"A": "one"}, {"B": {"error": {"status": 503, "message": "overloaded"}}}, {"B": "two"}]"#);
    let mut log = log_in(store.clone(), "x").await;
    let error = pair(&script, max_turns(2)).run_in(&mut log, "go").await.unwrap_err();
    assert_eq!(error.fault(), Fault::Provider);
    assert!(printed(&log).await.contains("B fails"), "{}", printed(&log).await);
    log.release().await.unwrap();

    let mut log = Log::open(store, LogId::new("x").unwrap()).await.unwrap();
    let status = pair(&script, max_turns(2)).resume(&mut log).await.unwrap().status;
    assert_eq!(
        status,
        Status::Closed {
            reason: StopReason::from(LibraryStopReason::CountReached { count: 2, of: Counted::Turns }),
            summary: "two".into()
        }
    );
}

#[tokio::test]
async fn a_limit_of_the_whole_run_met_in_an_inner_chat_closes_the_outermost_and_can_be_raised() {
    let script = script(r#"[{"A": "one"}, {"B": "two"}, {"A": "three"}, {"B": "four"}]"#);
    let chat = || {
        Chat::builder("house").participant(pair(&script, max_turns(4))).policy(sequential()).build().unwrap()
    };
    let mut log = log().await.limits(Limits { calls: Some(2), ..Limits::default() });
    let status = chat().run_in(&mut log, "go").await.unwrap().status;
    assert_eq!(status, Status::Closed { reason: StopReason::Calls { limit: 2 }, summary: "".into() });
    log.reopen().await.unwrap();
    let mut log = log.limits(Limits { calls: Some(9), ..Limits::default() });
    let status = chat().resume(&mut log).await.unwrap().status;
    assert_eq!(
        status,
        Status::Closed {
            reason: LibraryStopReason::Replied { who: name("pair") }.into(),
            summary: "four".into()
        }
    );
    assert_eq!(log.usage().await.calls, 4, "no call was made twice");
}

#[tokio::test]
async fn turns_are_counted_over_all_chats() {
    let script = script(r#"[{"A": "one"}, {"B": "two"}, {"A": "three"}, {"C": "four"}]"#);
    let house =
        Chat::builder("house").participant(pair(&script, max_turns(3))).participant(assistant("C", &script));
    let chat = house.policy(sequential()).build().unwrap();
    let mut log = log().await.limits(Limits { turns: Some(2), ..Limits::default() });
    let status = chat.run_in(&mut log, "go").await.unwrap().status;
    assert_eq!(
        status,
        Status::Closed { reason: StopReason::Turns { limit: 2, next: None }, summary: "".into() }
    );
    log.reopen().await.unwrap();
    let mut log = log.limits(Limits { turns: Some(4), ..Limits::default() });
    let status = chat.resume(&mut log).await.unwrap().status;
    assert_eq!(
        status,
        Status::Closed { reason: LibraryStopReason::AllSpoken.into(), summary: "four".into() }
    );
    assert_eq!(log.turns().await, 4);
}

#[tokio::test]
async fn chats_are_nested_no_deeper_than_the_limit() {
    let script = script(r#"[{"A": "one"}]"#);
    let mut chat =
        Chat::builder("c0").participant(assistant("A", &script)).policy(sequential()).build().unwrap();
    for depth in 1..4 {
        chat = Chat::builder(format!("c{depth}")).participant(chat).policy(sequential()).build().unwrap();
    }
    let mut log = log().await.limits(Limits { depth: 2, ..Limits::default() });
    let status = chat.run_in(&mut log, "go").await.unwrap().status;
    assert!(matches!(status, Status::Closed { reason: StopReason::Depth { limit: 2 }, .. }), "{status:?}");
}

struct Metered(Option<Money>);

impl polylogue_core::Model for Metered {
    fn name(&self) -> &str {
        "test:metered"
    }
    async fn complete(
        &self,
        _: &polylogue_core::Request<'_>,
        _: &mut dyn polylogue_core::DeltaSink,
    ) -> Result<polylogue_core::Reply, polylogue_core::ModelError> {
        Ok(polylogue_core::Reply::new("word"))
    }
    fn cost(&self, _: &polylogue_core::Usage) -> Option<Money> {
        self.0
    }
}

async fn under_budget(cost: Option<Money>) -> (Status, u64) {
    let agent = Assistant::new("A", AnyModel::new(Metered(cost))).unwrap();
    let chat = Chat::builder("c").participant(agent).policy(round_robin()).build().unwrap();
    let mut log = log().await.limits(Limits { cost: Some(Money::dollars(0.10)), ..Limits::default() });
    let status = chat.run_in(&mut log, "go").await.unwrap().status;
    (status, log.usage().await.calls)
}

#[tokio::test]
async fn a_budget_is_held() {
    let (status, calls) = under_budget(Some(Money::dollars(0.04))).await;
    let (limit, spent) = (Money::dollars(0.10), Money::dollars(0.08));
    let reason = StopReason::Cost { limit, spent, next: Some(Money::dollars(0.04)), cut: None };
    assert_eq!((status, calls), (Status::Closed { reason, summary: "word".into() }, 2));
}

#[tokio::test]
async fn under_a_budget_a_call_of_unknown_cost_is_the_last() {
    let (status, calls) = under_budget(None).await;
    let reason = StopReason::UnknownPrice { model: "test:metered".into() };
    let of_agent =
        StopReason::Allowance { of: AllowanceOwner::Agent(name("A")), limit: Box::new(reason.clone()) };
    assert_eq!((status, calls), (Status::Closed { reason, summary: "word".into() }, 1));
    let said = "the agent `A` has a limit on cost, but what a call of `test:metered` cost is unknown";
    assert_eq!(of_agent.to_string(), said);
}

#[tokio::test]
async fn a_run_cancelled_after_its_step_continues_later() {
    let script = script(r#"[{"A": {"say": "one", "delay_ms": 20}}, {"B": "two"}]"#);
    let chat = pair(&script, max_turns(2));
    let mut log = log().await;
    log.cancellation().cancel_after_step();
    assert_eq!(chat.run_in(&mut log, "go").await.unwrap().status, Status::Cancelled);
    log.cancellation().clear();
    let cancel = log.cancellation();
    let stop = async {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
        cancel.cancel_after_step();
    };
    let (status, ()) = tokio::join!(chat.resume(&mut log), stop);
    assert_eq!(status.unwrap().status, Status::Cancelled);
    assert!(printed(&log).await.ends_with("A says: one\n"), "the step was finished");
    log.cancellation().clear();
    assert!(matches!(chat.resume(&mut log).await.unwrap().status, Status::Closed { .. }));
}

#[tokio::test]
async fn a_conversation_can_be_ended_permanently_from_outside() {
    let script = script(r#"[{"A": "one"}, {"B": "two"}]"#);
    let chat = pair(&script, max_turns(2));
    let mut log = log().await;
    assert!(chat.close(&mut log, "absent").await.is_err(), "it has not begun");
    log.cancellation().cancel_after_step();
    chat.run_in(&mut log, "go").await.unwrap();
    log.cancellation().clear();
    chat.close(&mut log, "the owner").await.unwrap();
    let status = chat.resume(&mut log).await.unwrap().status;
    assert_eq!(
        status,
        Status::Closed { reason: StopReason::Stopped { by: "the owner".into() }, summary: "".into() }
    );
}

#[tokio::test]
async fn a_run_stopped_at_once_breaks_off_the_call_and_makes_it_again_later() {
    let script = script(r#"[{"A": {"say": "one", "delay_ms": 60000}}]"#);
    let mut log = log().await;
    let cancel = log.cancellation();
    let stop = async {
        tokio::task::yield_now().await;
        cancel.cancel_now();
    };
    let chat = pair(&script, max_turns(1));
    let (status, ()) = tokio::join!(chat.run_in(&mut log, "go"), stop);
    assert_eq!(status.unwrap().status, Status::Cancelled);
    assert!(printed(&log).await.ends_with("turn A\n2 A charges 1 Cancelled of script:test\n"));
    log.cancellation().clear();
    let quick = common::script(r#"[{"A": "one"}]"#);
    assert!(matches!(
        pair(&quick, max_turns(1)).resume(&mut log).await.unwrap().status,
        Status::Closed { .. }
    ));
}

/// A tool that keeps a tally outside the log, fails on request, and can take forever.
struct Tally(ToolSpec, Arc<std::sync::atomic::AtomicU64>);

impl Tally {
    fn new(repeatable: bool) -> Self {
        let (name, description) = ("tally", "Counts.");
        let parameters = json!({"type": "object"});
        Self(ToolSpec { repeatable, ..ToolSpec::new(name, description, parameters) }, Arc::default())
    }
}

impl Tool for Tally {
    fn spec(&self) -> &ToolSpec {
        &self.0
    }
    async fn call(&self, args: Value, _: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        self.1.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        match args.get("how").and_then(Value::as_str) {
            Some("panic") => panic!("broken"),
            Some("fail") => Err("out of ink".into()),
            Some("hang") => std::future::pending().await,
            _ => Ok(ToolResult::done("counted")),
        }
    }
}

#[tokio::test]
async fn every_call_is_answered_when_a_tool_fails() {
    let script = script(
        r#"[{"A": {"calls": [{"tool": "tally", "args": {"how": "panic"}}, {"tool": "tally", "args": {"how": "fail"}},
            {"tool": "tally", "args": "{broken"}, {"tool": "no such\ntool!", "args": {}}, {"tool": "tally"}]}},
            {"A": "well"}]"#,
    );
    let chat =
        Chat::builder("c").participant(assistant("A", &script).tool(Tally::new(false))).policy(sequential());
    let mut log = log().await;
    chat.build().unwrap().run_in(&mut log, "go").await.unwrap();
    let outcomes: Vec<String> = log
        .events()
        .await
        .iter()
        .filter_map(|event| match &event.body {
            Body::ToolReturned { id, result: outcome, .. } => Some(format!("{id}: {}", outcome.text())),
            _ => None,
        })
        .collect();
    expect![[r#"
        A-0-0: The tool `tally` crashed; this is a fault of the tool.
        A-0-1: out of ink
        A-0-2: The arguments of `tally` must be a JSON object; got: "{broken"
        A-0-3: There is no tool `no_such_tool_`. There is `tally`.
        A-0-4: counted"#]]
    .assert_eq(&outcomes.join("\n"));
}

async fn resumed_in_a_tool_call(repeatable: bool) -> (u64, String) {
    let script = script(r#"[{"A": {"calls": [{"tool": "tally", "args": {"how": "hang"}}]}}, {"A": "well"}]"#);
    let chat = |agent: Assistant| Chat::builder("c").participant(agent).policy(sequential()).build().unwrap();
    let mut log = log().await;
    let cancel = log.cancellation();
    let stop = async {
        tokio::task::yield_now().await;
        cancel.cancel_now();
    };
    let slow = chat(assistant("A", &script).tool(Tally::new(repeatable)));
    let (status, ()) = tokio::join!(slow.run_in(&mut log, "go"), stop);
    assert_eq!(status.unwrap().status, Status::Cancelled);
    log.cancellation().clear();
    let again = Tally::new(repeatable);
    let tally = Arc::clone(&again.1);
    chat(assistant("A", &script).tool(Quick(again))).resume(&mut log).await.unwrap();
    (tally.load(std::sync::atomic::Ordering::Relaxed), printed(&log).await)
}

/// The same tool, which answers at once.
struct Quick(Tally);

impl Tool for Quick {
    fn spec(&self) -> &ToolSpec {
        self.0.spec()
    }
    async fn call(&self, _: Value, cx: &ToolCx<'_>) -> Result<ToolResult, ToolError> {
        self.0.call(json!({}), cx).await
    }
}

#[tokio::test]
async fn a_call_in_flight_is_repeated_only_if_its_tool_says_so() {
    let (calls, log) = resumed_in_a_tool_call(true).await;
    assert_eq!(calls, 1, "{log}");
    assert!(log.contains("counted") && log.matches("A calls").count() == 1, "{log}");
    let (calls, log) = resumed_in_a_tool_call(false).await;
    assert_eq!(calls, 0, "{log}");
    assert!(log.contains("outcome of this call is unknown"), "{log}");
}

/// Makes two calls, one after the other, and gives both the same id.
struct OneId(AnyTool);

impl Agent for OneId {
    fn name(&self) -> &Name {
        static NAME: std::sync::LazyLock<Name> = std::sync::LazyLock::new(|| Name::new("A").unwrap());
        &NAME
    }
    async fn act(&self, turn: &mut Turn<'_>) -> polylogue::Result<Act> {
        let mut results = Vec::new();
        for how in ["count", "fail"] {
            let call = ToolCall { id: "1".into(), tool: "tally".into(), args: json!({"how": how}) };
            let outcomes = turn.call_tools(std::slice::from_ref(&self.0), &[call]).await?;
            results.extend(outcomes.iter().map(|outcome| outcome.text().into_owned()));
        }
        Ok(Act::say(results.join(", ")))
    }
}

#[tokio::test]
async fn a_call_with_the_id_of_an_earlier_one_is_not_made_again_and_has_its_own_result() {
    let chat = |tally: Tally| {
        Chat::builder("c").participant(OneId(AnyTool::new(tally))).policy(sequential()).build().unwrap()
    };
    let mut whole = log().await;
    assert_eq!(chat(Tally::new(false)).run_in(&mut whole, "go").await.unwrap().text(), "counted, out of ink");
    let whole = whole.events().await;
    let bodies = |events: &[Arc<polylogue_core::Event>]| -> Vec<Body> {
        events.iter().map(|event| event.body.clone()).collect()
    };
    let count = |events: &[Arc<polylogue_core::Event>], is: fn(&Body) -> bool| {
        events.iter().filter(|event| is(&event.body)).count() as u64
    };
    let begun = |events: &[Arc<_>]| count(events, |body| matches!(body, Body::ToolCalled { .. }));
    let ended = |events: &[Arc<_>]| count(events, |body| matches!(body, Body::ToolReturned { .. }));
    // Where no call is in flight.
    for cut in (1..whole.len()).filter(|cut| begun(&whole[..*cut]) == ended(&whole[..*cut])) {
        let tally = Tally::new(false);
        let made = Arc::clone(&tally.1);
        let mut log = log_of(&whole[..cut]).await;
        chat(tally).resume(&mut log).await.unwrap();
        let left = 2 - ended(&whole[..cut]);
        assert_eq!(made.load(std::sync::atomic::Ordering::Relaxed), left, "cut before event {cut}");
        assert_eq!(bodies(&log.events().await), bodies(&whole), "cut before event {cut}");
    }
}

#[tokio::test]
async fn a_model_that_only_calls_tools_is_prompted_to_answer() {
    let call = r#"{"A": {"say": "once more", "calls": [{"tool": "get_history"}]}}"#;
    let script = script(&format!("[{call}, {call}, {call}]"));
    let agent = assistant("A", &script).tool(GetHistory::default()).max_tool_rounds(2);
    let chat = Chat::builder("c").participant(agent).policy(sequential()).build().unwrap();
    check(&chat, "go", expect![[r#"
        0 opened [A] "go" | user: go
        1 turn A
        2 script:test replies to A (calls, $0.00): once more | call get_history {} #A-0-0
        3 A calls get_history {} #A-0-0
        4 A gets #A-0-0: user: go
        5 script:test replies to A (calls, $0.00): once more | call get_history {} #A-1-0
        6 A calls get_history {} #A-1-0
        7 A gets #A-1-0: user: go
        8 A is prompted: You have used all tool calls of this turn. Answer now with what you know, without calling a tool.
        9 script:test replies to A (calls, $0.00): once more | call get_history {} #A-2-0
        10 A says: once more
        11 closed (A replied): once more
    "#]])
    .await;
}

#[tokio::test]
async fn a_watcher_sees_events_and_pieces_in_order() {
    let script = script(r#"[{"A": {"think": "well", "say": "one two", "pace": 10000}}]"#);
    let mut log = log().await;
    let mut watch = log.subscribe().await;
    pair(&script, max_turns(1)).run_in(&mut log, "go").await.unwrap();
    drop(log);
    let mut seen = Vec::new();
    while let Some(signal) = watch.next().await {
        seen.push(match signal {
            Update::Event(event) => format!("{}", event.seq),
            Update::Delta { who, delta: Delta::Text(text), .. } => format!("{who}:{text}"),
            Update::Delta { delta: Delta::Thought(text), .. } => format!("({text})"),
            other => panic!("{other:?}"),
        });
    }
    assert_eq!(seen, ["0", "1", "(well)", "A:one ", "A:two", "2", "3", "4"]);
}

#[tokio::test]
async fn a_slow_subscriber_never_slows_the_run_and_learns_what_it_missed() {
    let parrot = Function::new("P", |_| Ok(Act::say("x"))).unwrap();
    let chat =
        Chat::builder("solo").participant(parrot).policy(round_robin()).max_turns(3000).build().unwrap();
    let mut log = log().await;
    let mut watch = log.subscribe().await;
    chat.run_in(&mut log, "go").await.unwrap();
    let Some(Update::Missed { updates, seq: 0 }) = watch.next().await else { panic!("nothing was missed") };
    let Some(Update::Event(event)) = watch.next().await else { panic!("no event follows") };
    assert_eq!(event.seq, updates, "what was missed can be read from the log");
    assert_eq!(log.events().await[0].seq, 0);
}

#[tokio::test]
async fn a_person_is_never_waited_for_and_can_only_answer_what_is_asked() {
    let script = script(r#"[{"A": "hello"}]"#);
    let chat =
        Chat::builder("desk").participant(Human::new("Me").unwrap()).participant(assistant("A", &script));
    let chat = chat.policy(with_termination(round_robin(), max_turns(2))).build().unwrap();
    let mut log = log().await;
    let Status::Waiting(questions) = chat.run_in(&mut log, "go").await.unwrap().status else {
        panic!("waits for no one")
    };
    let (at, question) = &questions[0];
    assert!(
        question.text.contains("Me") && question.choices.iter().any(|choice| &*choice.answer == "exit"),
        "{question:?}"
    );
    assert_eq!(
        chat.resume(&mut log).await.unwrap().status,
        Status::Waiting(questions.clone()),
        "still waiting"
    );
    assert!(log.answer(at, &name("A"), "hi").await.is_err(), "A has no open question");
    log.answer(at, &question.who, "hi").await.unwrap();
    assert!(log.answer(at, &question.who, "again").await.is_err(), "it is answered");
    let status = chat.resume(&mut log).await.unwrap().status;
    assert_eq!(
        status,
        Status::Closed {
            reason: StopReason::from(LibraryStopReason::CountReached { count: 2, of: Counted::Turns }),
            summary: "hello".into()
        }
    );
}

#[tokio::test]
async fn summaries_can_be_computed() {
    let script = script(r#"[{"A": "one"}, {"B": "two"}]"#);
    let policy = with_summary(with_termination(round_robin(), max_turns(2)), |chat| {
        format!("{} messages", chat.message_count())
    });
    let chat = Chat::builder("c")
        .participant(assistant("A", &script))
        .participant(assistant("B", &script))
        .policy(policy);
    let status = chat.build().unwrap().run_in(&mut log().await, "go").await.unwrap().status;
    assert_eq!(
        status,
        Status::Closed {
            reason: StopReason::from(LibraryStopReason::CountReached { count: 2, of: Counted::Turns }),
            summary: "3 messages".into()
        }
    );
}

#[tokio::test]
async fn a_log_belongs_to_one_chat() {
    let script = script(r#"[{"A": "one"}, {"B": "two"}]"#);
    let mut log = log().await;
    assert!(
        pair(&script, max_turns(1)).resume(&mut log).await.unwrap_err().to_string().contains("has not begun")
    );
    pair(&script, max_turns(1)).run_in(&mut log, "go").await.unwrap();
    assert!(
        pair(&script, max_turns(1))
            .run_in(&mut log, "go")
            .await
            .unwrap_err()
            .to_string()
            .contains("has already begun")
    );
    let other =
        Chat::builder("c").participant(Function::new("Z", |_| Ok(Act::Pass)).unwrap()).policy(sequential());
    let error = other.build().unwrap().resume(&mut log).await.unwrap_err().to_string();
    assert_eq!(error, "the log belongs to another chat: `c` has no participant `A`");
}

#[tokio::test]
async fn a_log_that_is_no_conversation_is_refused_with_the_event_that_cannot_be() {
    let said = || Body::Message(Message::new(name("A"), "hi"));
    let opened = Body::Opened(polylogue_core::Opening {
        participants: vec![name("A"), name("B")],
        task: "go".into(),
        ..polylogue_core::Opening::default()
    });
    let turn_started = |who: &str| Body::TurnStarted { turns: vec![TurnRequest::to_all(name(who))] };
    let answered = Body::InputProvided { to: name("A"), text: "x".into(), by: Default::default() };
    for (bodies, flaw) in [
        (vec![opened.clone(), said()], "event 1: it is not `A`'s turn"),
        (vec![opened.clone(), opened.clone()], "event 1: the chat is open already"),
        (vec![opened.clone(), turn_started("A"), turn_started("B")], "event 2: it is still `A`'s turn"),
        (vec![opened.clone(), turn_started("A"), answered], "event 2: nothing was asked"),
    ] {
        let event = |(seq, body)| {
            let (at, time) = (polylogue_core::Path::root(), polylogue_core::Timestamp(0));
            Arc::new(polylogue_core::Event { seq, chat: at, time, ran_ms: 0, inbox: None, body })
        };
        let events: Vec<_> = (0..).zip(bodies).map(event).collect();
        let mut log = log_of(&events).await;
        let error = pair(&Script::default(), max_turns(1)).resume(&mut log).await.unwrap_err();
        assert_eq!(error.to_string(), format!("the log of `test` is not a valid conversation: {flaw}"));
    }
}

#[tokio::test]
async fn a_run_dropped_half_way_continues_in_the_same_process() {
    let script = script(r#"[{"A": "one"}, {"B": {"say": "two", "delay_ms": 200}}]"#);
    let chat = pair(&script, max_turns(2));
    let mut log = log().await;
    let limit = std::time::Duration::from_millis(1);
    assert!(tokio::time::timeout(limit, chat.run_in(&mut log, "go")).await.is_err());
    assert!(matches!(chat.resume(&mut log).await.unwrap().status, Status::Closed { .. }));
    assert_eq!(log.usage().await.calls, 2);
}

#[tokio::test]
async fn ids_that_a_model_uses_again_are_made_unique() {
    let call =
        |id: &str| Part::ToolCall(ToolCall { id: id.into(), tool: "get_history".into(), args: json!({}) });
    let replies = vec![vec![call("c"), call("c"), call("")], vec![call("c")], vec![Part::text("well")]];
    let agent = Assistant::new("A", AnyModel::new(Replies(replies))).unwrap().tool(GetHistory::default());
    let mut log = log().await;
    Chat::builder("c")
        .participant(agent)
        .policy(sequential())
        .build()
        .unwrap()
        .run_in(&mut log, "go")
        .await
        .unwrap();
    let ids: Vec<String> = log
        .events()
        .await
        .iter()
        .filter_map(|event| match &event.body {
            Body::ToolCalled { call, .. } => Some(call.id.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(ids, ["c", "c-2", "unnamed", "c-3"]);
}

/// Replies with raw parts, and checks every request.
struct Replies(Vec<Vec<Part>>);

impl polylogue_core::Model for Replies {
    fn name(&self) -> &str {
        "test:replies"
    }
    async fn complete(
        &self,
        request: &polylogue_core::Request<'_>,
        _: &mut dyn polylogue_core::DeltaSink,
    ) -> Result<polylogue_core::Reply, polylogue_core::ModelError> {
        request.check().unwrap();
        let parts = self.0[usize::try_from(request.origin.nth).unwrap()].clone();
        Ok(polylogue_core::Reply { parts, ..polylogue_core::Reply::new("") })
    }
}

#[test]
fn errors_say_whose_fault_they_are() {
    assert_eq!(Error::from(ConfigError::missing("`Ann`", "model")).fault(), Fault::Config);
    assert_eq!(Error::Interrupt(Interrupt::Limit(StopReason::Calls { limit: 1 })).fault(), Fault::Limit);
}
