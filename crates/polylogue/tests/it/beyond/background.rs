//! Background tasks: agents and chats that work next to the conversation.

use std::sync::Arc;

use polylogue::tools::agent_tool::AgentTool;
use polylogue::tools::state::{self, SetState};
use polylogue::{Act, AnyModel, Assistant, Chat, Function, Human, round_robin, sequential};
use polylogue_core::{
    Allowance, AllowanceOwner, AnyStore, Body, Budget, Error, Event, LimitOverrides, Limits, Log, LogId,
    OpenBackground, StopReason,
};
use polylogue_models::Script;
use polylogue_store::Memory;
use polylogue_test::cut::uncharged;

use crate::beyond::stage::{Cast, events_with, log, name, play, played_from, print};
use crate::common::log_of;

/// Eve, who looks things up.
fn research(cast: &Cast<'_>) -> AgentTool {
    let chat =
        Chat::builder("research").participant(cast.assistant("Eve")).policy(sequential()).build().unwrap();
    AgentTool::chat(chat).description("Finds out.").background()
}

/// An agent that repeats its message.
fn echo(who: &str) -> AgentTool {
    let echo = Function::new(who, |turn| Ok(Act::say(turn.message().text().into_owned()))).unwrap();
    AgentTool::agent(echo).description("Repeats.").background()
}

/// A person, who has not answered.
fn boss() -> AgentTool {
    AgentTool::agent(Human::new("Boss").unwrap()).named("boss").background()
}

fn alone(ann: Assistant) -> Chat {
    Chat::builder("main").participant(ann).policy(sequential()).build().unwrap()
}

fn has(text: &str, lines: &[&str]) {
    let mut rest = text;
    for line in lines {
        let Some(at) = rest.find(line) else { panic!("{line:?} does not follow in\n{text}") };
        rest = &rest[at + line.len()..];
    }
}

#[tokio::test]
async fn the_conversation_continues_and_the_result_is_posted_at_its_end() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "research", "args": {"task": "cats?"}, "id": "c1"}]}},
        {"Ann": "I look it up."}, {"Bob": "Fine."}, {"Eve": "Cats purr."}, {"Ann": "They purr."}]"#;
    let text = play(script, |cast| {
        Chat::builder("main")
            .participant(cast.assistant("Ann").agent_tool(research(cast)))
            .participant(cast.assistant("Bob"))
            .policy(sequential())
            .build()
            .unwrap()
    })
    .await;
    has(
        &text,
        &[
            "Ann starts research-1 in the background: cats?",
            "Ann calls research {\"task\":\"cats?\"} #c1",
            "Ann gets #c1: Background task `research-1` has started.",
            "Ann says: I look it up.",
            "Bob says: Fine.",
            "/Ann.b1/research.1 closed",
            "research-1 of Ann completed, posted: Cats purr.",
            "turn Ann",
            "Ann says: They purr.",
            "closed (every participant has spoken): They purr.",
        ],
    );
}

/// So that a list does not fill the history of an agent with many tasks.
#[tokio::test]
async fn a_list_of_many_tasks_has_the_latest() {
    let start = |nth: usize| {
        let (tool, task) = (["one", "two"][nth % 2], format!("{nth} {}", "x".repeat(120)));
        format!(r#"{{"tool": "{tool}", "args": {{"task": "{task}"}}, "id": "s{nth}"}}"#)
    };
    let round = |nth: usize| {
        let starts: Vec<String> = (4 * nth..4 * nth + 4).map(start).collect();
        let wait = format!(r#"{{"tool": "wait_for_task", "args": {{}}, "id": "w{nth}"}}"#);
        format!(r#"{{"Ann": {{"calls": [{}, {wait}]}}}}"#, starts.join(", "))
    };
    let rounds: Vec<String> = (0..4).map(round).collect();
    let list = r#"{"Ann": {"calls": [{"tool": "list_tasks", "args": {}, "id": "l"}]}}, {"Ann": "Done."}"#;
    let script = format!("[{}, {list}]", rounds.join(", "));
    let text =
        play(&script, |cast| alone(cast.assistant("Ann").agent_tool(echo("one")).agent_tool(echo("two"))))
            .await;
    has(&text, &["Earlier tasks, which have ended, are not listed.", "- two-16: completed. Task: 15 x"]);
    assert!(!text.contains("- one-1: completed"), "{text}");
}

#[tokio::test]
async fn an_agent_waits_for_its_task_in_its_turn() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "one", "args": {"task": "1"}, "id": "c1"}, {"tool": "two", "args": {"task": "2"}, "id": "c2"}]}},
        {"Ann": {"calls": [{"tool": "list_tasks", "args": {}, "id": "c3"}]}},
        {"Ann": {"calls": [{"tool": "wait_for_task", "args": {"task": "two-2"}, "id": "c4"}]}},
        {"Ann": {"calls": [{"tool": "wait_for_task", "args": {}, "id": "c5"}]}},
        {"Ann": {"calls": [{"tool": "wait_for_task", "args": {"task": "two-2"}, "id": "c6"},
                           {"tool": "cancel_task", "args": {"task": "three"}, "id": "c7"},
                           {"tool": "list_tasks", "args": {}, "id": "c8"}]}},
        {"Ann": "Both."}]"#;
    let text =
        play(script, |cast| alone(cast.assistant("Ann").agent_tool(echo("one")).agent_tool(echo("two"))))
            .await;
    has(
        &text,
        &[
            "Ann gets #c3: - one-1: running. Task: 1\\n- two-2: running. Task: 2",
            "two-2 of Ann completed, awaited: 2",
            "Ann gets #c4: Background task `two-2` has completed. Its result:\\n\\n2",
            "one-1 of Ann completed, awaited: 1",
            "Ann gets #c5: Background task `one-1` has completed. Its result:\\n\\n1",
            "Ann gets #c6 failed: no background task `two-2` is running; running: none",
            "Ann gets #c7 failed: no background task `three` is running; running: none",
            "Ann gets #c8: - one-1: completed. Task: 1\\n- two-2: completed. Task: 2",
            "Ann says: Both.",
            "closed",
        ],
    );
    assert!(!text.contains("posted:"), "{text}");
}

#[tokio::test]
async fn a_task_is_cancelled_by_its_agent() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "boss", "args": {"task": "May I?"}, "id": "c1"}]}},
        {"Ann": {"calls": [{"tool": "cancel_task", "args": {"task": "boss-1"}, "id": "c2"}]}},
        {"Ann": "Never mind."}]"#;
    let text = play(script, |cast| alone(cast.assistant("Ann").agent_tool(boss()))).await;
    has(
        &text,
        &[
            "boss-1 of Ann cancelled, awaited: the agent that started it cancelled it",
            "Ann gets #c2: Background task `boss-1` was cancelled:",
            "closed",
        ],
    );
}

#[tokio::test]
async fn failures_are_results() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "silent", "args": {"task": "1"}, "id": "c1"}, {"tool": "leaver", "args": {"task": "2"}, "id": "c2"},
                           {"tool": "silent", "args": {}, "id": "c3"}]}},
        {"Ann": "Started."}, {"Ann": "All failed."}]"#;
    let text =
        play(script, |cast| {
            let silent = Function::new("silent", |_| Ok(Act::Pass)).unwrap();
            let leaver = Function::new("leaver", |turn| {
                Ok(Act::Stop(StopReason::Left { who: turn.me().clone(), why: "had enough".into() }))
            });
            let agents = [silent, leaver.unwrap()];
            alone(agents.into_iter().fold(cast.assistant("Ann"), |ann, agent| {
                ann.agent_tool(AgentTool::agent(agent).background())
            }))
        })
        .await;
    has(
        &text,
        &[
            "Ann gets #c3 failed: `task` must be a text",
            "Ann says: Started.",
            "silent-1 of Ann failed, posted: it ended without a result",
            "leaver-2 of Ann failed, posted: it ended without a result: leaver left: had enough",
            "Ann says: All failed.",
        ],
    );
}

/// A task that fails is tried again by the next process as long as its result is not posted, so the log is not cut here.
#[tokio::test]
async fn an_error_is_a_result_and_usage_counts() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "broken", "args": {"task": "1"}, "id": "c1"}, {"tool": "Eve", "args": {"task": "2"}, "id": "c2"}]}},
        {"Ann": "Started."}, {"Eve": "Two."}, {"Ann": "One failed."}]"#;
    let script: Script = serde_json::from_str(script).unwrap();
    let assistant = |who: &str| Assistant::new(who, script.model("test")).unwrap();
    let broken = Function::new("broken", |_| Err(Error::agent("no ink"))).unwrap();
    let ann = assistant("Ann").agent_tool(AgentTool::agent(broken).background());
    let chat = alone(ann.agent_tool(AgentTool::agent(assistant("Eve")).background()));
    let mut log = log().await;
    let run = chat.run_in(&mut log, "task").await.unwrap();
    let text = print(run.events());
    has(&text, &["broken-1 of Ann failed, posted: `Ann.b1`: no ink", "Ann says: One failed."]);
    has(&text, &["Eve-2 of Ann completed, posted: Two.", "Ann says: One failed."]);
    let transcript = log.transcript().await.unwrap();
    assert_eq!((run.usage.calls, transcript.usage().calls), (4, 4));
    assert_eq!(transcript.background_tasks().len(), 2);
}

#[tokio::test]
async fn a_task_that_passes_a_limit_fails_and_the_chat_continues() {
    let text = r#"[{"Ann": {"calls": [{"tool": "Eve", "args": {"task": "1"}, "id": "c1"}]}}, {"Ann": "Started."}, {"Ann": "No money."},
                   {"Eve": "One."}, {"Eve": "Two."}]"#;
    let script: Script = serde_json::from_str(text).unwrap();
    let limits = Allowance { calls: Some(1), ..Allowance::default() };
    let eve = Assistant::new("Eve", script.model("test")).unwrap();
    let talk = Chat::builder("talk")
        .participant(eve)
        .policy(round_robin())
        .max_turns(5)
        .limits(limits)
        .build()
        .unwrap();
    let ann = Assistant::new("Ann", script.model("test")).unwrap();
    let chat = alone(ann.agent_tool(AgentTool::chat(talk).named("Eve").background()));
    let mut log = log().await;
    let run = chat.run_in(&mut log, "task").await.unwrap();
    let text = print(run.events());
    has(
        &text,
        &[
            "closed (the chat `talk` has reached the limit of 1 model call): One.",
            "Eve-1 of Ann completed, posted: One.",
            "Ann says: No money.",
        ],
    );
    // A limit of the starting agent, which pays for its tasks: the task fails.
    let eve = Assistant::new("Eve", script.model("test")).unwrap();
    let talk = Chat::builder("talk").participant(eve).policy(round_robin()).max_turns(2).build().unwrap();
    let ann = Assistant::new("Ann", script.model("test")).unwrap();
    let chat = alone(ann.agent_tool(AgentTool::chat(talk).named("Eve").background()));
    let limits = Allowance { calls: Some(3), ..Allowance::default() };
    let mut log = self::log().await.agent_limits([(name("Ann"), limits)]);
    let run = chat.run_in(&mut log, "task").await.unwrap();
    let text = print(run.events());
    has(
        &text,
        &[
            "Eve-1 of Ann failed, posted: the agent `Ann` has reached the limit of 3 model calls",
            "closed (the agent `Ann` has reached the limit of 3 model calls)",
        ],
    );
    assert_eq!(run.usage.calls, 3);
}

#[tokio::test]
async fn a_task_at_a_limit_of_the_run_or_of_a_shared_budget_continues_under_a_higher_one() {
    let text = r#"[{"Ann": {"calls": [{"tool": "Eve", "args": {"task": "1"}, "id": "c1"}]}}, {"Ann": "Started."}, {"Ann": "No money."},
                   {"Eve": "One."}]"#;
    let script: Script = serde_json::from_str(text).unwrap();
    for is_shared in [false, true] {
        let allowing = |log: Log, calls| match is_shared {
            true => {
                log.budget(Budget::new("batch", Allowance { calls: Some(calls), ..Allowance::default() }))
            }
            false => log.limits(Limits { calls: Some(calls), ..Limits::default() }),
        };
        let eve = Assistant::new("Eve", script.model("test")).unwrap();
        let ann = Assistant::new("Ann", script.model("test")).unwrap();
        let chat = alone(ann.agent_tool(AgentTool::agent(eve).background()));
        let store = AnyStore::new(Memory::new());
        let log = Log::create(store.clone(), LogId::new("test").unwrap()).await.unwrap();
        let mut log = allowing(log, 2);
        let run = chat.run_in(&mut log, "task").await.unwrap();
        let limit = StopReason::Calls { limit: 2 };
        let of = AllowanceOwner::Shared("batch".into());
        let ended = match is_shared {
            true => StopReason::Allowance { of, limit: Box::new(limit) },
            false => limit,
        };
        assert_eq!(run.stop_reason(), Some(&ended));
        assert!(!print(run.events()).contains("Eve-1 of Ann"), "{}", print(run.events()));
        drop(log);
        let log = Log::open(store, LogId::new("test").unwrap()).await.unwrap();
        let mut log = allowing(log, 9);
        log.reopen().await.unwrap();
        let run = chat.resume(&mut log).await.unwrap();
        has(&print(run.events()), &["Eve-1 of Ann completed, posted: One.", "Ann says: No money.", "closed"]);
    }
}

#[tokio::test]
async fn a_person_in_a_task_is_waited_for_when_nothing_else_is_to_do() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "boss", "args": {"task": "May I?"}, "id": "c1"}]}},
        {"Ann": "Asked."}, {"Bob": "Good."}, {"Ann": "I may."}]"#;
    let events = events_with(script, &|_| "Yes.", |cast| {
        Chat::builder("main")
            .participant(cast.assistant("Ann").agent_tool(boss()))
            .participant(cast.assistant("Bob"))
            .policy(sequential())
            .build()
            .unwrap()
    })
    .await;
    has(
        &print(&events),
        &[
            "Bob says: Good.",
            "Boss is answered: Yes.",
            "boss-1 of Ann completed, posted: Yes.",
            "Ann says: I may.",
        ],
    );
}

/// A conversation that waits for a person is run again with the answer.
#[tokio::test]
async fn a_result_that_came_while_a_person_was_asked_is_posted_before_the_next_turn() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "echo", "args": {"task": "cats?"}, "id": "c1"}]}},
        {"Ann": "I look it up."}, {"Ann": "They purr."}]"#;
    let events = events_with(script, &|_| "Well?", |cast| {
        Chat::builder("main")
            .participant(cast.assistant("Ann").agent_tool(echo("echo")))
            .participant(Human::new("Pat").unwrap())
            .policy(round_robin())
            .max_turns(3)
            .build()
            .unwrap()
    })
    .await;
    let lines = [
        "Pat is answered: Well?",
        "echo-1 of Ann completed, posted: cats?",
        "turn Ann",
        "Ann says: They purr.",
    ];
    has(&print(&events), &lines);
}

#[tokio::test]
async fn tasks_end_with_their_chat() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "boss", "args": {"task": "May I?"}, "id": "c1"}]}},
        {"Ann": "I asked."}, {"Bob": "No time."}]"#;
    // Where the chat is at its limit, and where it is to end without them.
    let limited = |cast: &Cast<'_>| {
        let builder = Chat::builder("main").participant(cast.assistant("Ann").agent_tool(boss()));
        builder.participant(cast.assistant("Bob")).policy(round_robin()).max_turns(2).build().unwrap()
    };
    let ended = |cast: &Cast<'_>| {
        Chat::builder("main")
            .participant(cast.assistant("Ann").agent_tool(boss()))
            .participant(cast.assistant("Bob"))
            .policy(sequential())
            .open_background(OpenBackground::Cancel)
            .build()
            .unwrap()
    };
    for text in [play(script, limited).await, play(script, ended).await] {
        has(
            &text,
            &[
                "Bob says: No time.",
                "boss-1 of Ann cancelled, posted: the chat of the agent that started it ended",
                "closed",
            ],
        );
        assert!(!text.contains("completed"), "{text}");
    }
}

/// The chat ends at its limit in the middle of Ann's turn, and cancels her task. The turn continues when the chat is reopened: nothing is
/// left to wait for.
#[tokio::test]
async fn a_turn_that_continues_in_a_reopened_chat_does_not_wait_for_a_cancelled_task() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "boss", "args": {"task": "May I?"}, "id": "c1"}]}},
        {"Ann": {"calls": [{"tool": "wait_for_task", "args": {"task": "boss-1"}, "id": "c2"}]}},
        {"Ann": {"calls": [{"tool": "list_tasks", "args": {}, "id": "c3"}]}},
        {"Ann": {"calls": [{"tool": "boss", "args": {"task": "And now?"}, "id": "c4"}]}},
        {"Ann": {"calls": [{"tool": "cancel_task", "args": {"task": "boss-2"}, "id": "c5"}]}},
        {"Ann": "I do not ask."}]"#;
    let chat = |cast: &Cast<'_>| {
        let ann = cast.assistant("Ann").agent_tool(boss()).max_background(1);
        let calls = Allowance { calls: Some(1), ..Allowance::default() };
        Chat::builder("main").participant(ann).limits(calls).policy(sequential()).build().unwrap()
    };
    let mut log = log_of(&played_from(&[], script, chat).await).await;
    log.reopen_for(LimitOverrides { calls: Some(8), ..LimitOverrides::default() }).await.unwrap();
    let reopened = log.events().await;
    // The events of the tasks come between these as they happen.
    let of_ann = |events: &[Arc<Event>]| {
        let mut events = uncharged(events);
        events.retain(|event| event.chat.is_root());
        print(&events)
    };
    let whole = played_from(&reopened, script, chat).await;
    let text = of_ann(&whole);
    has(
        &text,
        &[
            "Ann gets #c1: Background task `boss-1` has started.",
            "boss-1 of Ann cancelled, posted",
            "closed (the chat `main` has reached the limit of 1 model call)",
            "Ann gets #c2 failed: no background task `boss-1` is running; running: none",
            "Ann gets #c3: - boss-1: cancelled. Task: May I?",
            "Ann gets #c4: Background task `boss-2` has started.",
            "Ann gets #c5: Background task `boss-2` was cancelled",
            "Ann says: I do not ask.",
        ],
    );
    for cut in reopened.len()..whole.len() {
        let again = played_from(&whole[..cut], script, chat).await;
        assert_eq!(of_ann(&again), text, "cut before event {cut}");
    }
}

/// Ann waits for all of her tasks. One has ended, and the other one ends with the chat, which is closed from outside.
#[tokio::test]
async fn the_result_of_an_awaited_task_is_not_lost_when_the_chat_is_closed_and_reopened() {
    let script: Script = serde_json::from_str(
        r#"[{"Ann": {"calls": [{"tool": "echo", "args": {"task": "dogs?"}, "id": "c1"},
                               {"tool": "boss", "args": {"task": "May I?"}, "id": "c2"}]}},
            {"Ann": {"calls": [{"tool": "wait_for_task", "args": {}, "id": "c3"}]}}, {"Ann": "Dogs."}]"#,
    )
    .unwrap();
    let ann = Assistant::new("Ann", script.model("test")).unwrap();
    let chat = alone(ann.agent_tool(echo("echo")).agent_tool(boss()));
    let mut log = log().await;
    let waiting = chat.run_in(&mut log, "task").await.unwrap();
    assert_eq!(waiting.questions().len(), 1, "{:?}", waiting.status);
    chat.close(&mut log, "Pat").await.unwrap();
    log.reopen().await.unwrap();
    chat.resume(&mut log).await.unwrap();
    has(
        &print(&log.events().await),
        &[
            "echo-1 of Ann completed, awaited: dogs?",
            "boss-2 of Ann cancelled, posted",
            "reopened",
            "Ann gets #c3: Background task `echo-1` has completed. Its result:\\n\\ndogs?",
            "Ann says: Dogs.",
        ],
    );
}

/// Ann's model fails after she awaited a task that set a value, and her turn is given up: the task is open again, with all that it did.
#[tokio::test]
async fn a_task_that_a_given_up_turn_awaited_keeps_what_it_did() {
    let script: Script = serde_json::from_str(
        r#"[{"Ann": {"calls": [{"tool": "desk", "args": {"task": "Decide."}, "id": "c1"}]}}, {"Ann": "They decide."},
            {"Eve": {"calls": [{"tool": "set_state", "args": {"key": "color", "value": "blue"}}]}}, {"Eve": "Blue?"},
            {"Ann": {"calls": [{"tool": "wait_for_task", "args": {}, "id": "c2"}]}}, {"Ann": {"error": {"message": "down"}}},
            {"Ann": {"calls": [{"tool": "list_tasks", "args": {}, "id": "c3"}]}}, {"Ann": "It is decided."}]"#,
    )
    .unwrap();
    let assistant = |who: &str| Assistant::new(who, AnyModel::new(script.model("test"))).unwrap();
    let desk = Chat::builder("desk").participant(assistant("Eve").tool(SetState::new()));
    let desk = desk.participant(Human::new("Boss").unwrap()).policy(sequential()).build().unwrap();
    let ann = assistant("Ann").agent_tool(AgentTool::chat(desk).description("Decides.").background());
    let chat = Chat::builder("main").participant(ann).policy(round_robin()).max_turns(2).build().unwrap();
    let mut log = log().await;
    let waiting = chat.run_in(&mut log, "task").await.unwrap();
    let [(at, question)] = waiting.questions() else { panic!("{:?}", waiting.questions()) };
    log.answer(at, &question.who, "Yes.").await.unwrap();
    chat.resume(&mut log).await.unwrap_err();
    let awaited = |events: &[Arc<Event>]| print(events).contains("desk-1 of Ann completed, awaited");
    assert!(awaited(&log.events().await), "{}", print(&log.events().await));
    chat.end_open_turns(&mut log).await.unwrap();

    let mut log = log_of(&log.events().await).await;
    chat.resume(&mut log).await.unwrap();
    let (events, transcript) = (log.events().await, log.transcript().await.unwrap());
    assert_eq!(state::get(&transcript, "color"), Some("blue".into()));
    let replies = events.iter().filter(|event| matches!(event.body, Body::ModelReplied(_))).count();
    assert_eq!(transcript.usage().calls, replies as u64, "{}", print(&events));
}

#[tokio::test]
async fn tasks_start_tasks_and_run_in_parallel() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "Eve", "args": {"task": "cats?"}, "id": "c1"}, {"tool": "echo", "args": {"task": "dogs?"}, "id": "c2"},
                           {"tool": "echo", "args": {"task": "birds?"}, "id": "c3"}]}},
        {"Ann": "Three at once."},
        {"Eve": {"calls": [{"tool": "echo", "args": {"task": "purr?"}, "id": "e1"}]}}, {"Eve": "Wait."}, {"Eve": "They purr."},
        {"Ann": "Thanks."}]"#;
    let text = play(script, |cast| {
        let eve = cast.assistant("Eve").agent_tool(echo("echo"));
        alone(cast.assistant("Ann").agent_tool(AgentTool::agent(eve).background()).agent_tool(echo("echo")))
    })
    .await;
    has(
        &text,
        &[
            "/Ann.b1 Eve starts echo-1 in the background: purr?",
            "/Ann.b1 echo-1 of Eve completed, posted: purr?",
            "/Ann.b1 Eve says: They purr.",
        ],
    );
    for ended in [
        "Eve-1 of Ann completed, posted: They purr.",
        "echo-2 of Ann completed, posted: dogs?",
        "echo-3 of Ann completed, posted: birds?",
    ] {
        has(&text, &["Ann says: Three at once.", ended, "Ann says: Thanks."]);
    }
}

#[tokio::test]
async fn too_many_are_refused() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "echo", "args": {"task": "1"}, "id": "c1"}, {"tool": "echo", "args": {"task": "2"}, "id": "c2"}]}},
        {"Ann": "One."}, {"Ann": "Done."}]"#;
    let of_agent =
        play(script, |cast| alone(cast.assistant("Ann").agent_tool(echo("echo")).max_background(1))).await;
    has(
        &of_agent,
        &["#c2 failed: No background task was started: 1 background task is open, the limit of this agent"],
    );
    let of_chat = play(script, |cast| {
        let ann = cast.assistant("Ann").agent_tool(echo("echo"));
        Chat::builder("main").participant(ann).policy(sequential()).max_background(1).build().unwrap()
    })
    .await;
    has(
        &of_chat,
        &["#c2 failed: No background task was started: 1 background task is open, the limit of this chat"],
    );
}
