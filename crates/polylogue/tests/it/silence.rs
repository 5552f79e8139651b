//! Silence: turns in which nothing is said, and chats of which nothing came.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use polylogue::layers::human_input::HumanInput;
use polylogue::layers::reply::Stack;
use polylogue::policies::group::{Group, Transitions};
use polylogue::policies::order::{SUMMARY_PROMPT, with_summarizer};
use polylogue::policies::with_termination;
use polylogue::stop::LoopDetector;
use polylogue::stop::{Counted, LibraryStopReason};
use polylogue::stop::{max_messages, max_turns};
use polylogue::{
    Act, AnyModel, Assistant, Chat, Function, Limits, Message, Policy, Status, parallel, round_robin,
    sequential,
};
use polylogue_core::{
    AnyAgent, Body, ChatBuilder, DeltaSink, Event, Media, Model, ModelError, Part, Reply, Request,
    RunOutcome, StopReason,
};

use crate::common::{log, name, run_to_end, script, solo_chat};
use serde_json::json;

/// A model that says nothing, in one of the ways in which models do, and counts how often it is asked.
struct Mute(Vec<Part>, Arc<AtomicUsize>);

impl Model for Mute {
    fn name(&self) -> &str {
        "test:mute"
    }
    async fn complete(&self, _: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        self.1.fetch_add(1, Ordering::Relaxed);
        Ok(Reply { parts: self.0.clone(), ..Reply::new("") })
    }
}

/// Agents without text, and how often their models are called.
struct Silent {
    parts: Vec<Part>,
    asked: Arc<AtomicUsize>,
}

impl Silent {
    fn new(parts: Vec<Part>) -> Self {
        Self { parts, asked: Arc::default() }
    }

    fn model(&self) -> AnyModel {
        AnyModel::new(Mute(self.parts.clone(), Arc::clone(&self.asked)))
    }

    fn agent(&self, name: &str) -> Assistant {
        Assistant::new(name, self.model()).unwrap()
    }

    fn asked(&self) -> usize {
        self.asked.load(Ordering::Relaxed)
    }
}

/// The kinds of replies without text: no content, an empty one, a blank one, reasoning alone.
fn silences() -> Vec<Vec<Part>> {
    let text = |text: &str| vec![Part::text(text)];
    vec![vec![], text(""), text(" \n"), vec![Part::Thought("Hm.".into())]]
}

/// Runs `chat` with one answer to each question.
async fn answered(chat: &Chat, task: &str, answers: &[&str]) -> (StopReason, String, Vec<Arc<Event>>) {
    let mut log = log().await;
    let mut status = chat.run_in(&mut log, task).await.unwrap().status;
    for answer in answers {
        let Status::Waiting(questions) = &status else { panic!("no one is asked: {status:?}") };
        let (at, question) = questions[0].clone();
        log.answer(&at, &question.who, *answer).await.unwrap();
        status = chat.resume(&mut log).await.unwrap().status;
    }
    match status {
        Status::Closed { reason, summary } => (reason, summary.to_string(), log.events().await),
        other => panic!("it is not over: {other:?}"),
    }
}

/// Who said what, and who said nothing.
fn said(events: &[Arc<Event>]) -> Vec<String> {
    let of = |event: &Arc<Event>| match &event.body {
        Body::Message(message) => Some(format!("{}: {}", message.from, message.text())),
        Body::Passed { who } => Some(format!("{who}: -")),
        Body::Stopped { who, .. } => Some(format!("{who} stops")),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

fn pair(silent: &Silent, policy: impl Policy) -> Chat {
    let [ann, bob] = ["Ann", "Bob"].map(|name| silent.agent(name));
    Chat::builder("pair").participant(ann).participant(bob).policy(policy).build().unwrap()
}

fn check_empty(reason: &StopReason, summary: &str, case: &str) {
    assert_eq!(reason.outcome(), RunOutcome::NoOutput, "{case}: {reason}");
    assert!(reason.to_string().starts_with("no participant said anything; "), "{case}: {reason}");
    assert_eq!(summary, "", "{case}");
}

#[tokio::test]
async fn a_silent_chat_ends_without_output_in_every_order() {
    for parts in silences() {
        let orders: Vec<(&str, Box<dyn Policy>)> = vec![
            ("round robin", Box::new(with_termination(round_robin(), LoopDetector::default()))),
            ("sequential", Box::new(sequential())),
            ("sequence of chats", Box::new(sequential())),
            ("parallel", Box::new(parallel())),
            ("group", Box::new(with_termination(Group::round_robin(), LoopDetector::default()))),
            (
                "transitions",
                Box::new(
                    Group::round_robin()
                        .transitions(Transitions::allowed([(name("Ann"), vec![name("Bob")])])),
                ),
            ),
        ];
        for (case, order) in orders {
            let silent = Silent::new(parts.clone());
            let (reason, summary, _) = run_to_end(&pair(&silent, order), "What is 2 + 2?").await;
            check_empty(&reason, &summary, case);
            assert_eq!(silent.asked(), 2, "{case}");
        }
    }
}

#[tokio::test]
async fn a_message_continues_a_chat_that_ended_because_of_silence() {
    let silent = Silent::new(vec![]);
    let chat = pair(&silent, with_termination(round_robin(), LoopDetector::default()));
    let mut log = log().await;
    chat.run_in(&mut log, "What is 2 + 2?").await.unwrap();
    for asked in [2, 4] {
        assert_eq!(silent.asked(), asked);
        let message = Message::new(polylogue::Name::user(), "Please go on.");
        let refused = chat.ends_again_after_message(&log, &Limits::default(), &message).await.unwrap();
        assert_eq!(refused, None, "after {asked} turns");
        let Status::Closed { reason, summary } = chat.continue_with(&mut log, message).await.unwrap().status
        else {
            panic!("it is not over");
        };
        check_empty(&reason, &summary, "continued");
    }
    assert_eq!(silent.asked(), 6, "it takes two turns without words after each message");
}

#[tokio::test]
async fn a_message_to_a_running_chat_ends_a_silence() {
    let mut log = log().await;
    let outside = log.handle();
    let ann = Function::new("Ann", move |turn| {
        if turn.transcript().turns() == 0 {
            outside.send(Message::new(polylogue::Name::user(), "Is anyone there?"));
        }
        Ok(Act::Pass)
    });
    let silent = Silent::new(vec![]);
    let chat = Chat::builder("pair").participant(ann.unwrap()).participant(silent.agent("Bob"));
    let chat = chat.policy(with_termination(round_robin(), LoopDetector::default())).build().unwrap();
    chat.run_in(&mut log, "What is 2 + 2?").await.unwrap();
    // It takes two turns without words after the message.
    assert_eq!(said(&log.events().await), ["Ann: -", "Bob: -", "Ann: -"]);
}

#[tokio::test]
async fn a_silent_debate_ends_without_output_and_not_undecided() {
    let silent = Silent::new(vec![]);
    let debate = polylogue::policies::debate::Debate::between(["red", "blue"]).unwrap();
    let (reason, summary, _) = run_to_end(&pair(&silent, debate), "Which?").await;
    check_empty(&reason, &summary, "debate");
}

fn picture() -> Part {
    Part::Media(Media { media_type: "image/png".into(), url: "data:image/png;base64,QUJD".into() })
}

#[tokio::test]
async fn a_message_of_a_picture_or_a_value_alone_is_a_result_and_stays_what_it_is_outside_of_a_nested_chat() {
    let value = Part::Data(json!({"cats": 2}));
    for (part, words) in [(picture(), "[image/png]"), (value, r#"{"cats":2}"#)] {
        let said = part.clone();
        let painter = Function::new("Painter", move |_| Ok(Act::Say(vec![said.clone()]))).unwrap();
        let silent = Silent::new(vec![]);
        let inner = Chat::builder("inner")
            .participant(painter)
            .participant(silent.agent("Ann"))
            .policy(sequential())
            .build()
            .unwrap();
        let (reason, summary, _) = run_to_end(&inner, "Draw two cats.").await;
        assert_eq!((reason, summary.as_str()), (StopReason::from(LibraryStopReason::AllSpoken), words));
        let outer =
            Chat::builder("outer").participant(inner).participant(silent.agent("Bob")).policy(sequential());
        let (reason, summary, events) = run_to_end(&outer.build().unwrap(), "Draw two cats.").await;
        assert_eq!((reason, summary.as_str()), (StopReason::from(LibraryStopReason::AllSpoken), words));
        let parts = events.iter().rev().find_map(|event| match &event.body {
            Body::Message(message) if message.from == name("inner") => Some(message.parts.clone()),
            _ => None,
        });
        assert_eq!(parts.unwrap(), [part], "it is said once, unchanged");
    }
}

#[tokio::test]
async fn the_picture_next_to_the_text_of_a_result_is_kept() {
    let painter =
        || Function::new("Painter", |_| Ok(Act::Say(vec![Part::text("Two cats."), picture()]))).unwrap();
    let inner = Chat::builder("inner").participant(painter()).policy(sequential()).build().unwrap();
    let outer = Chat::builder("outer").participant(inner).policy(sequential()).build().unwrap();
    let (_, summary, events) = run_to_end(&outer, "Draw two cats.").await;
    assert_eq!(summary, "Two cats.");
    let of = |event: &Arc<Event>| match &event.body {
        Body::Message(message) if message.from == name("inner") => Some(message.parts.clone()),
        _ => None,
    };
    assert_eq!(events.iter().find_map(of).unwrap(), [Part::text("Two cats."), picture()]);
}

#[tokio::test]
async fn a_debate_whose_votes_cannot_be_read_ends_undecided_with_the_last_arguments() {
    let undecided = StopReason::from(LibraryStopReason::Undecided);
    let say = |who: &str| {
        let text = format!("I am {who}.");
        Function::new(who, move |_| Ok(Act::say(text.clone()))).unwrap()
    };
    let debate =
        |rounds| polylogue::policies::debate::Debate::between(["red", "blue"]).unwrap().rounds(rounds);
    for (rounds, summary) in [
        (0, "Undecided (red: 0; blue: 0)"),
        (2, "Undecided (red: 0; blue: 0)\n\nAnn: I am Ann.\n\nBob: I am Bob."),
    ] {
        let chat = Chat::builder("debate")
            .participant(say("Ann"))
            .participant(say("Bob"))
            .policy(debate(rounds))
            .build()
            .unwrap();
        let (reason, result, _) = run_to_end(&chat, "Which?").await;
        assert_eq!((reason, result.as_str()), (undecided.clone(), summary));
    }
}

#[tokio::test]
async fn the_last_message_before_silence_is_the_result() {
    let model = script(r#"[{"Ann": "It is 4."}]"#).model("test");
    let ann = Assistant::new("Ann", AnyModel::new(model)).unwrap();
    let silent = Silent::new(vec![]);
    let chat = Chat::builder("pair")
        .participant(ann)
        .participant(silent.agent("Bob"))
        .policy(sequential())
        .build()
        .unwrap();
    let (reason, summary, _) = run_to_end(&chat, "What is 2 + 2?").await;
    assert_eq!((reason, &*summary), (StopReason::from(LibraryStopReason::AllSpoken), "It is 4."));
}

#[tokio::test]
async fn a_silent_chat_is_not_summarized() {
    let (silent, summing) = (Silent::new(vec![]), Silent::new(vec![Part::text("All was agreed.")]));
    let [ann, bob] = ["Ann", "Bob"].map(|name| silent.agent(name));
    let chat = Chat::builder("pair").participant(ann).participant(bob);
    let chat = with_summarizer(chat, summing.agent("Judge"), SUMMARY_PROMPT, sequential()).build().unwrap();
    let (reason, summary, _) = run_to_end(&chat, "Agree!").await;
    check_empty(&reason, &summary, "reflection");
    assert_eq!(summing.asked(), 0);
}

/// A chat of two silent agents, or of one and a chat like it.
fn nest(silent: &Silent, depth: usize) -> ChatBuilder {
    let chat = Chat::builder(format!("level{depth}")).participant(silent.agent("Ann"));
    let chat = match depth {
        0 => chat.participant(silent.agent("Bob")),
        _ => chat.participant(nest(silent, depth - 1).build().unwrap()),
    };
    chat.policy(with_termination(round_robin(), LoopDetector::default()))
}

#[tokio::test]
async fn silence_in_chats_within_chats_is_noticed_at_once() {
    for parts in silences() {
        let silent = Silent::new(parts);
        let (reason, summary, events) =
            run_to_end(&nest(&silent, 5).build().unwrap(), "What is 2 + 2?").await;
        check_empty(&reason, &summary, "nested");
        assert_eq!(silent.asked(), 7, "every agent is asked once");
        let shown = events.iter().filter(|event| matches!(event.body, Body::Message(_))).count();
        assert_eq!(shown, 0, "no chat passes its task on as its result");
    }
}

#[tokio::test]
async fn the_task_of_a_silent_chat_is_not_carried_over() {
    let silent = Silent::new(vec![]);
    let first = Chat::builder("first").participant(silent.agent("Ann")).policy(sequential()).build().unwrap();
    let echo = Function::new("Echo", |turn| {
        let received = turn.last_message().map(|line| line.message.text().into_owned());
        Ok(Act::say(received.unwrap_or_default()))
    });
    let second = polylogue::policies::carryover::Carryover::message("Go on.")
        .apply_to(Chat::builder("second").participant(echo.unwrap()).policy(sequential()))
        .build()
        .unwrap();
    let chat =
        Chat::builder("work").participant(first).participant(second).policy(sequential()).build().unwrap();
    let (_, summary, _) = run_to_end(&chat, "A secret question").await;
    assert_eq!(summary, "Go on.");
}

/// A model that says its number, and a proxy of a person without a model.
fn proxied(oversight: HumanInput, turns: u64) -> Chat {
    let counting = Function::new("Ann", |turn| {
        Ok(Act::say(format!("reply {}", turn.transcript().turns_of(turn.me()) + 1)))
    });
    let proxy = Stack::new("Bob").unwrap().then(oversight);
    let opening = |task: &str| vec![Message::new(name("Bob"), task)];
    let chat = Chat::builder("pair").participant(counting.unwrap()).participant(proxy).opening(opening);
    chat.policy(with_termination(with_termination(round_robin(), max_turns(turns)), LoopDetector::default()))
        .build()
        .unwrap()
}

// AutoGen sends its default reply, which is empty, and the assistant is asked again.
#[tokio::test]
async fn enter_of_a_person_behind_a_proxy_without_a_model_continues_the_chat() {
    let (reason, summary, events) = answered(&proxied(HumanInput::always(), 5), "hi", &["", ""]).await;
    assert_eq!(said(&events), ["Ann: reply 1", "Bob: -", "Ann: reply 2", "Bob: -", "Ann: reply 3"]);
    assert_eq!(
        (reason, &*summary),
        (StopReason::from(LibraryStopReason::CountReached { count: 5, of: Counted::Turns }), "reply 3")
    );
    let terminate = HumanInput::terminate().max_auto_replies(1);
    let (_, _, events) = answered(&proxied(terminate, 6), "hi", &["", "go"]).await;
    let expected = ["Ann: reply 1", "Bob: -", "Ann: reply 2", "Bob: -", "Ann: reply 3", "Bob: go"];
    assert_eq!(said(&events), expected, "asked at the limit, and not before");
}

#[tokio::test]
async fn an_empty_default_reply_continues_the_chat_and_none_ends_it() {
    let ann = || {
        let ann = Function::new("Ann", |turn| Ok(Act::say(format!("{}", turn.transcript().turns()))));
        ann.unwrap()
    };
    let chat = |bob: Stack| {
        let chat = Chat::builder("pair").participant(ann()).participant(bob);
        chat.policy(with_termination(round_robin(), max_turns(4))).build().unwrap()
    };
    let (reason, _, events) = run_to_end(&chat(Stack::new("Bob").unwrap().otherwise("")), "hi").await;
    assert_eq!(said(&events), ["Ann: 0", "Bob: -", "Ann: 2", "Bob: -"]);
    assert_eq!(reason, StopReason::from(LibraryStopReason::CountReached { count: 4, of: Counted::Turns }));
    let (reason, summary, _) = run_to_end(&chat(Stack::new("Bob").unwrap()), "hi").await;
    assert_eq!((reason, &*summary), (StopReason::from(LibraryStopReason::NoReply { who: name("Bob") }), "0"));
}

#[tokio::test]
async fn a_model_in_a_stack_that_says_nothing_is_silent_and_ends_nothing() {
    let silent = Silent::new(vec![]);
    let bob = Stack::new("Bob").unwrap().then(HumanInput::never()).then(silent.agent("Bob"));
    let ann = Function::new("Ann", |_| Ok(Act::say("Well?")));
    let chat = Chat::builder("pair").participant(ann.unwrap()).participant(bob);
    let chat = chat.policy(with_termination(round_robin(), max_turns(4))).build().unwrap();
    let (reason, _, events) = run_to_end(&chat, "hi").await;
    assert_eq!(said(&events), ["Ann: Well?", "Bob: -", "Ann: Well?", "Bob: -"]);
    assert_eq!(reason, StopReason::from(LibraryStopReason::CountReached { count: 4, of: Counted::Turns }));
}

// Without any message, the next one is asked all the same, and no agent replies to itself.
#[tokio::test]
async fn a_blank_first_message_is_replied_to_by_the_one_it_is_for() {
    let silent = Silent::new(vec![Part::text("What can I do for you?")]);
    let [ann, bob] = ["Ann", "Bob"].map(|name| AnyAgent::new(silent.agent(name)));
    for blank in ["", " \n"] {
        let pair = |name: &str| Chat::builder(name).participant(ann.clone()).participant(bob.clone());
        let policy = || with_termination(round_robin(), max_messages(2));
        let carried = polylogue::policies::carryover::Carryover::message(blank).author(name("Ann"));
        let chat = carried.apply_to(pair("pair")).policy(policy()).build().unwrap();
        let before = silent.asked();
        let (_, summary, events) = run_to_end(&chat, "").await;
        assert_eq!(said(&events), ["Bob: What can I do for you?"]);
        assert_eq!((&*summary, silent.asked() - before), ("What can I do for you?", 1));
    }
}

/// A chat that continues its earlier messages, and ends after two new ones.
fn continuing(ends: impl Policy) -> Chat {
    let ann = Function::new("Ann", |turn| {
        Ok(Act::say(format!("{} lines", turn.transcript().all_messages().len())))
    });
    let talk =
        Chat::builder("talk").participant(ann.unwrap()).continues(name("talk")).policy(ends).build().unwrap();
    solo_chat("outer", talk, 3)
}

#[tokio::test]
async fn inherited_messages_count_neither_as_messages_nor_as_turns() {
    let expected =
        ["Ann: 1 lines", "talk: 1 lines", "Ann: 3 lines", "talk: 3 lines", "Ann: 5 lines", "talk: 5 lines"];
    let (_, _, events) =
        run_to_end(&continuing(with_termination(round_robin(), max_messages(2))), "hi").await;
    assert_eq!(said(&events), expected);
    let (_, _, events) = run_to_end(&continuing(with_termination(round_robin(), max_turns(1))), "hi").await;
    assert_eq!(said(&events), expected);
}

#[tokio::test]
async fn inherited_messages_are_no_result() {
    let nothing = Function::new("Ann", |turn| {
        let at = turn.transcript().at().as_str().ends_with(".1");
        Ok(if at { Act::say("Once.") } else { Act::Pass })
    });
    let talk =
        Chat::builder("talk").participant(nothing.unwrap()).continues(name("talk")).policy(sequential());
    let outer = Chat::builder("outer")
        .participant(talk.build().unwrap())
        .policy(with_termination(round_robin(), max_turns(2)));
    let (_, _, events) = run_to_end(&outer.build().unwrap(), "hi").await;
    assert_eq!(said(&events), ["Ann: Once.", "talk: Once.", "Ann: -", "talk: -"]);
}
