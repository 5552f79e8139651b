//! Turns that are background tasks, in every pattern that has them, and limits on tasks of parallel turns.

use std::sync::{Arc, Mutex};

use polylogue::layers::BackgroundTurns;
use polylogue::policies::{Dag, Selector, with_late_joiner, with_termination};
use polylogue::stop::{self, LoopDetector, Stop, max_turns};
use polylogue::{
    Act, Agent, Chat, Function, Graph, Group, Log, Name, Result, Turn, parallel, round_robin, sequential,
};
use polylogue_core::{
    Allowance, AnyAgent, AnyStore, BackgroundStart, BackgroundStatus, Body, Chooser, Claim, Event,
    Instruction, JoinHistory, Limits, LogHandle, LogId, Message, Status, Store as _, StoreError,
    StoreWrapper, Timestamp,
};
use polylogue_store::Memory;

use crate::beyond::stage::{Cast, events, name, play, played_from};
use crate::common::{log_of, run_or_resume};

/// A chat of `who`, of whom those of `background` have their turns in the background.
fn chat(cast: &Cast<'_>, who: &[&str], background: &[&str]) -> polylogue_core::ChatBuilder {
    who.iter().fold(Chat::builder("main"), |chat, who| {
        let agent = cast.assistant(who);
        match background.contains(who) {
            true => chat.participant(BackgroundTurns::new(agent)),
            false => chat.participant(agent),
        }
    })
}

/// The messages and the ends of turns without one, in order.
fn said(events: &[Arc<Event>]) -> Vec<String> {
    let root = events.iter().filter(|event| event.chat.is_root());
    let line = |event: &Arc<Event>| match &event.body {
        Body::Message(message) => Some(format!("{}: {}", message.from, message.text())),
        Body::Passed { who } => Some(format!("{who} passes")),
        Body::BackgroundEnded(end) => Some(format!("{} {}", end.id, end.status)),
        Body::Closed { reason, .. } => Some(format!("closed: {reason}")),
        _ => None,
    };
    root.filter_map(line).collect()
}

#[tokio::test]
async fn the_conversation_continues_and_the_result_is_said_when_it_is_there() {
    let script = r#"[{"Ann": "Facts."}, {"Bob": "Fine."}, {"Cid": "Good."}]"#;
    let expected = [
        "Ann passes",
        "Bob: Fine.",
        "Cid: Good.",
        "Ann-1 completed",
        "Ann: Facts.",
        "closed: every participant has spoken",
    ];
    for pattern in ["sequential", "parallel"] {
        let events = cut_anywhere(script, |cast| {
            let chat = chat(cast, &["Ann", "Bob", "Cid"], &["Ann"]);
            if pattern == "sequential" { chat.policy(sequential()) } else { chat.policy(parallel()) }
                .build()
                .unwrap()
        })
        .await;
        assert_eq!(said(&events), expected, "{pattern}");
    }
}

#[tokio::test]
async fn it_receives_what_it_can_see_as_one_text() {
    let script = r#"[{"Bob": "Rain?"}, {"Ann": "Facts."}]"#;
    let text =
        play(script, |cast| chat(cast, &["Bob", "Ann"], &["Ann"]).policy(sequential()).build().unwrap())
            .await;
    assert!(text.contains("Ann starts Ann-1 in the background: user: task\\n\\nBob: Rain?"), "{text}");
}

/// Plays a conversation whole and from each of its events, whose order depends on when results are there: every result is said once, and
/// nothing that was before is changed.
async fn cut_anywhere(script: &str, chat: impl Fn(&Cast<'_>) -> Chat) -> Vec<Arc<Event>> {
    let whole = played_from(&[], script, &chat).await;
    for cut in 0..whole.len() {
        let again = played_from(&whole[..cut], script, &chat).await;
        assert_eq!(again[..cut], whole[..cut]);
        let count = |is: &dyn Fn(&Body) -> bool| again.iter().filter(|event| is(&event.body)).count();
        let ended = count(
            &|body| matches!(body, Body::BackgroundEnded(end) if end.status == BackgroundStatus::Completed),
        );
        let facts = |message: &Message| message.from == name("Ann") && message.text().starts_with("Facts");
        let said = again.iter().filter(|event| event.chat.is_root());
        let said =
            said.filter(|event| matches!(&event.body, Body::Message(message) if facts(message))).count();
        assert!(ended > 0 && said == ended, "cut before event {cut}: {:?}", self::said(&again));
    }
    whole
}

/// In turn: who works says nothing more until the result is there, and the order continues after whose turn it was.
#[tokio::test]
async fn turns_in_order_continue_meanwhile() {
    let steps = (0..12).map(|nth| format!(r#"{{"Bob": "One {nth}."}}, {{"Ann": "Facts {nth}."}}"#));
    let script = format!("[{}]", steps.collect::<Vec<_>>().join(", "));
    let events = cut_anywhere(&script, |cast| {
        let chat = chat(cast, &["Ann", "Bob"], &["Ann"]);
        chat.policy(with_termination(round_robin(), max_turns(9))).build().unwrap()
    })
    .await;
    let said = said(&events);
    let place = |line: &str| {
        said.iter().position(|said| said == line).unwrap_or_else(|| panic!("{line} in {said:?}"))
    };
    assert!(place("Ann passes") < place("Bob: One 0."), "{said:?}");
    assert_eq!(place("Ann-1 completed") + 1, place("Ann: Facts 0."), "{said:?}");
}

/// Where Bob finds the log of his conversation.
type Outside = Arc<Mutex<Option<LogHandle>>>;

/// Bob, during whose turn the results of others come. In his first turn he is chosen as the next speaker, if there is an `outside`.
fn bob(outside: &Outside) -> Function {
    let outside = Arc::clone(outside);
    let bob = Function::calling("Bob", [], move |turn| {
        let is_first = turn.transcript().turns_of(turn.me()) == 0;
        let log = outside.lock().unwrap().clone().filter(|_| is_first);
        Box::pin(async move {
            for _ in 0..32 {
                tokio::task::yield_now().await;
            }
            if let Some(log) = log {
                drop(log.instruct(Instruction::NextSpeaker { who: name("Bob") }));
            }
            Ok(Act::say("Call the lawyer."))
        })
    });
    bob.unwrap()
}

/// Ann, who works in the background, Bob and Cid, in turn; Lex can join.
fn office(outside: &Outside) -> Chat {
    let says = |who: &str, text: &'static str| Function::new(who, move |_| Ok(Act::say(text))).unwrap();
    let policy = with_late_joiner(round_robin(), name("Lex"), stop::says("lawyer"), JoinHistory::All);
    Chat::builder("office")
        .participant(BackgroundTurns::new(says("Ann", "Facts.")))
        .participant(bob(outside))
        .participant(says("Cid", "Good."))
        .late_joiner(says("Lex", "Here I am."))
        .policy(with_termination(policy, max_turns(6)))
        .build()
        .unwrap()
}

/// The events from `prefix` to the end; without one, Bob is chosen in his first turn, if he `is_chosen`.
async fn worked(prefix: &[Arc<Event>], is_chosen: bool) -> Vec<Arc<Event>> {
    let outside = Outside::default();
    let mut log = log_of(prefix).await;
    if is_chosen {
        *outside.lock().unwrap() = Some(log.handle());
    }
    let chat = office(&outside);
    let run = run_or_resume(&chat, &mut log, "task").await.unwrap();
    assert!(matches!(run.status, Status::Closed { .. }));
    log.events().await
}

/// A result is said before the next turn, and nothing else is lost because of that.
#[tokio::test]
async fn a_late_joiner_joins_and_a_chosen_speaker_speaks_though_a_result_comes_first() {
    let whole = worked(&[], true).await;
    let begins = |event: &&Arc<Event>| event.chat.is_root() && matches!(event.body, Body::TurnStarted { .. });
    let is_result = |event: &&Arc<Event>| match &event.body {
        Body::TurnStarted { turns } => {
            turns[0].choice.as_ref().is_some_and(|choice| choice.by == Chooser::Background)
        }
        _ => false,
    };
    let lines = said(&whole);
    let expected = ["Ann passes", "Bob: Call the lawyer.", "Ann-1 completed", "Ann: Facts.", "Bob: Call"];
    assert!(expected.iter().zip(&lines).all(|(line, said)| said.starts_with(line)), "{lines:?}");
    for cut in 0..=whole.len() {
        let events = worked(&whole[..cut], false).await;
        let lawyer = events.iter().position(
            |event| matches!(&event.body, Body::Message(message) if message.text().contains("lawyer")),
        );
        let after = &events[lawyer.unwrap()..];
        let joined = after.iter().position(|event| matches!(event.body, Body::Joined { .. })).unwrap();
        assert!(
            !after[..joined].iter().any(|event| begins(&event)),
            "cut before event {cut}: {:?}",
            said(&events)
        );
        let chosen = events.iter().position(|event| matches!(event.body, Body::NextSpeaker { .. }));
        let Some(chosen) = chosen else { continue };
        let next = events[chosen..].iter().filter(begins).find(|event| !is_result(event)).unwrap();
        let Body::TurnStarted { turns } = &next.body else { unreachable!() };
        let by = turns[0].choice.as_ref().map(|choice| &choice.by);
        assert_eq!((&turns[0].who, by), (&name("Bob"), Some(&Chooser::User)), "cut before event {cut}");
    }
}

/// What depends on it waits for it, and nothing else does.
#[tokio::test]
async fn nodes_of_a_graph_that_depend_on_it_wait_for_its_result() {
    let script = r#"[{"Start": "Go."}, {"Facts": "Purr."}, {"Style": "Short."}, {"Title": "Cats"}, {"Writer": "Cats purr."}]"#;
    let names = ["Start", "Facts", "Style", "Title", "Writer"];
    let edges = [
        ("Start", "Facts"),
        ("Start", "Style"),
        ("Style", "Title"),
        ("Facts", "Writer"),
        ("Title", "Writer"),
    ];
    let graph =
        edges.iter().fold(Graph::builder(names).starts_with("Start"), |graph, edge| graph.edge(*edge));
    let graph = graph.build().unwrap();
    let by_graph =
        events(script, |cast| chat(cast, &names, &["Facts"]).policy(graph.clone()).build().unwrap()).await;
    let dag = [
        ("Start", vec![]),
        ("Facts", vec!["Start"]),
        ("Style", vec!["Start"]),
        ("Title", vec!["Style"]),
        ("Writer", vec!["Facts", "Title"]),
    ];
    let by_dag = events(script, |cast| {
        chat(cast, &names, &["Facts"]).policy(Dag::new(dag.clone()).unwrap()).build().unwrap()
    })
    .await;
    for events in [by_graph, by_dag] {
        let said = said(&events);
        let expected = [
            "Start: Go.", "Facts passes", "Style: Short.", "Title: Cats", "Facts-1 completed",
            "Facts: Purr.", "Writer: Cats purr.",
        ];
        let mut rest = said.iter();
        assert!(expected.iter().all(|line| rest.any(|said| said == line)) || is_early(&said), "{said:?}");
        assert_eq!(said.iter().filter(|line| line.starts_with("Writer")).count(), 1, "{said:?}");
        let place = |line: &str| said.iter().position(|said| said == line).unwrap();
        assert!(
            place("Facts: Purr.") < place("Writer: Cats purr.")
                && place("Title: Cats") < place("Writer: Cats purr.")
        );
    }
}

/// The result can be there before the title.
fn is_early(said: &[String]) -> bool {
    let place = |line: &str| said.iter().position(|said| said == line);
    place("Facts: Purr.") < place("Title: Cats")
}

#[tokio::test]
async fn a_model_that_selects_speakers_hears_the_result() {
    let steps = (0..12).map(|nth| {
        let who = if nth == 0 { "Ann" } else { "Bob" };
        format!(r#"{{"selector": "{who}"}}, {{"Bob": "So {nth}?"}}"#)
    });
    let script = format!(r#"[{{"Ann": "Facts."}}, {}]"#, steps.collect::<Vec<_>>().join(", "));
    let events = cut_anywhere(&script, |cast| {
        let selector = Selector::new("selector", cast.model()).unwrap();
        let chat = chat(cast, &["Ann", "Bob"], &["Ann"]);
        chat.policy(with_termination(Group::select_by(selector), max_turns(6))).build().unwrap()
    })
    .await;
    let selected = |event: &Arc<Event>| match &event.body {
        Body::TurnStarted { turns } => turns.iter().any(|turn| turn.to.is_private()),
        _ => false,
    };
    // A speaker whom the model has selected speaks before the result is said.
    for (at, _) in events.iter().enumerate().filter(|(_, event)| selected(event)) {
        let next = events[at + 1..].iter().filter(|event| event.chat.is_root());
        let next = next.filter_map(|event| match &event.body {
            Body::TurnStarted { turns } => Some(turns[0].choice.clone()),
            _ => None,
        });
        let choice = next.flatten().next();
        assert!(choice.is_none_or(|choice| choice.by != Chooser::Background), "{:?}", said(&events));
    }
}

#[tokio::test]
async fn a_failure_leads_to_a_turn_without_a_message() {
    let script = r#"[{"Bob": "Fine."}]"#;
    let events = events(script, |cast| {
        let silent = Function::new("Ann", |_| Ok(Act::Pass)).unwrap();
        let chat = Chat::builder("main")
            .participant(BackgroundTurns::new(silent))
            .participant(cast.assistant("Bob"));
        chat.policy(sequential()).build().unwrap()
    })
    .await;
    let expected =
        ["Ann passes", "Bob: Fine.", "Ann-1 failed", "Ann passes", "closed: every participant has spoken"];
    assert_eq!(said(&events), expected);
}

/// A turn that became a background task is no empty reply: those after one that fails have their turns.
#[tokio::test]
async fn a_failure_is_not_two_empty_replies() {
    let script = r#"[{"Bob": "Fine."}]"#;
    let graph = Graph::builder(["Ann", "Bob"]).starts_with("Ann").edge(("Ann", "Bob")).build().unwrap();
    let events = played_from(&[], script, |cast| {
        let silent = Function::new("Ann", |_| Ok(Act::Pass)).unwrap();
        let chat = Chat::builder("main")
            .participant(BackgroundTurns::new(silent))
            .participant(cast.assistant("Bob"));
        chat.policy(with_termination(graph.clone(), Stop::from(LoopDetector::default()))).build().unwrap()
    })
    .await;
    let expected =
        ["Ann passes", "Ann-1 failed", "Ann passes", "Bob: Fine.", "closed: the graph is complete"];
    assert_eq!(said(&events), expected);
}

/// Where everyone works in the background, the chat waits, and what ends it is not that no one said anything meanwhile.
#[tokio::test]
async fn a_chat_in_which_all_work_does_not_end_as_a_loop() {
    let script = r#"[{"Ann": "Facts."}, {"Bob": "Fine."}]"#;
    let events = played_from(&[], script, |cast| {
        let chat = chat(cast, &["Ann", "Bob"], &["Ann", "Bob"]).max_turns(2);
        chat.policy(with_termination(round_robin(), Stop::from(LoopDetector::default()))).build().unwrap()
    })
    .await;
    let said = said(&events);
    assert_eq!(said.last().map(String::as_str), Some("closed: the limit of 2 turns"), "{said:?}");
}

#[tokio::test]
async fn it_is_cancelled_with_its_chat_and_paid_for_by_it() {
    let script = r#"[{"Ann": "Facts."}, {"Bob": "One."}, {"Bob": "Two."}]"#;
    // One call is all that there is, to whichever of both.
    let limited = played_from(&[], script, |cast| {
        let limits = Allowance { calls: Some(1), ..Allowance::default() };
        chat(cast, &["Ann", "Bob"], &["Ann"]).policy(sequential()).limits(limits).build().unwrap()
    })
    .await;
    let calls = limited.iter().filter(|event| matches!(event.body, Body::ModelReplied(_))).count();
    assert_eq!(calls, 1, "{:?}", said(&limited));
    let text = said(&limited).join("\n");
    assert!(text.contains("Ann-1 cancelled") || text.contains("Ann-1 failed"), "{text}");
}

/// Where no background task may begin, it is a turn like any other.
#[tokio::test]
async fn a_turn_that_may_not_be_a_background_task_is_one_as_any_other() {
    let script = r#"[{"Ann": "Facts."}, {"Bob": "Fine."}]"#;
    let events = events(script, |cast| {
        chat(cast, &["Ann", "Bob"], &["Ann"]).max_background(0).policy(sequential()).build().unwrap()
    })
    .await;
    assert_eq!(said(&events), ["Ann: Facts.", "Bob: Fine.", "closed: every participant has spoken"]);
}

/// A store whose writes take a while.
struct SlowStore(AnyStore);

impl StoreWrapper for SlowStore {
    fn inner(&self) -> &AnyStore {
        &self.0
    }

    async fn append(&self, claim: &Claim, batch: &[Arc<Event>]) -> std::result::Result<(), StoreError> {
        for _ in 0..8 {
            tokio::task::yield_now().await;
        }
        self.0.append(claim, batch).await
    }
}

/// Starts one background task, after `waits` others have had their turn to run.
struct Starter {
    name: Name,
    waits: usize,
}

impl Agent for Starter {
    fn name(&self) -> &Name {
        &self.name
    }

    fn background_agent(&self, _: &str) -> Option<AnyAgent> {
        Some(AnyAgent::new(Function::new("worker", |_| Ok(Act::say("done"))).unwrap()))
    }

    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        for _ in 0..self.waits {
            tokio::task::yield_now().await;
        }
        Ok(match turn.start_background("worker", "work", 4).await? {
            BackgroundStart::Started(_) => Act::say("started"),
            BackgroundStart::Refused(why) => Act::Say(vec![polylogue_core::Part::text(why)]),
        })
    }
}

/// Turns that wait for the same write do not all see the number of tasks before it.
#[tokio::test]
async fn turns_at_the_same_time_do_not_pass_the_limit_on_background_tasks() {
    for (of_chat, of_run, limit) in [(2, 9, "of this chat"), (9, 2, "of this run")] {
        for waits in 0..6 {
            let starters = (0..8).map(|nth| Starter {
                name: name(&format!("A{nth}")),
                waits: if nth == 0 { 0 } else { waits },
            });
            let chat = starters
                .fold(Chat::builder("main").max_background(of_chat), |chat, agent| chat.participant(agent));
            let chat = chat.policy(parallel()).build().unwrap();
            let store = AnyStore::new(SlowStore(Memory::new().into()));
            let log = Log::create(store, LogId::new("slow").unwrap()).await.unwrap().clock(|| Timestamp(0));
            let mut log = log.limits(Limits { background: of_run, ..Limits::default() });
            let run = chat.run_in(&mut log, "task").await.unwrap();
            let (mut open, mut most, mut refused) = (0, 0, 0);
            for event in run.events() {
                match &event.body {
                    Body::BackgroundStarted(_) => open += 1,
                    Body::BackgroundEnded(_) => open -= 1,
                    Body::Message(message) => refused += usize::from(message.text().contains(limit)),
                    _ => {}
                }
                most = most.max(open);
            }
            assert_eq!(most, 2, "{waits} {limit}");
            assert!(refused > 0, "{waits} {limit}");
        }
    }
}
