//! Why runs end, and what is left of those that fail: items 38 to 41, and 17 and 35 as far as reports go.

use std::sync::Arc;

use polylogue::layers::HumanInput;
use polylogue::layers::reply::Stack;
use polylogue::policies::group::Transitions;
use polylogue::policies::with_termination;
use polylogue::runs::Report;
use polylogue::stop::LoopDetector;
use polylogue::stop::{matches, max_messages, max_time_ms, max_tokens, max_turns, says, when};
use polylogue::{
    Act, Agent, Assistant, Chat, Function, Group, Human, Limits, Message, Policy, Status, Transcript,
    parallel, round_robin, sequential,
};
use polylogue_core::{AnyAgent, Event, Fault, Media, Money, Part, Timestamp, ToolCall};
use serde_json::json;

use crate::common::pair_chat;
use crate::stage::{closed, log, name, run, script};

/// An agent that says `text` repeatedly.
fn parrot(who: &str, text: &'static str) -> impl Agent {
    Function::new(who, move |_| Ok(Act::say(text))).unwrap()
}

/// Ann, who says `text`, and Bob, who says "well", in turn until `stop`.
fn pair(text: &'static str, stop: impl polylogue::stop::Condition) -> Chat {
    let chat = Chat::builder("pair").participant(parrot("Ann", text)).participant(parrot("Bob", "well"));
    chat.policy(with_termination(round_robin(), stop)).build().unwrap()
}

async fn why(chat: &Chat, task: &str) -> String {
    closed(&run(chat, task).await.0).0
}

#[tokio::test]
async fn a_termination_message_is_the_word_alone_unless_it_is_said_otherwise() {
    // item 38
    let whole = || says("TERMINATE").whole() | max_turns(2);
    assert_eq!(why(&pair("TERMINATE", whole()), "go").await, "Ann said `TERMINATE`");
    assert_eq!(why(&pair(" TERMINATE\n", whole()), "go").await, "Ann said `TERMINATE`");
    assert_eq!(why(&pair("ok TERMINATE", whole()), "go").await, "2 of 2 turns");
    assert_eq!(
        why(&pair("ok TERMINATE", says("TERMINATE") | max_turns(2)), "go").await,
        "Ann said `TERMINATE`"
    );
    // Not because of the task (trap T41), nor of a message of another agent.
    assert_eq!(why(&pair("well", says("TERMINATE") | max_turns(2)), "TERMINATE").await, "2 of 2 turns");
    let bob = says("TERMINATE").by(name("Bob"));
    assert_eq!(why(&pair("TERMINATE", bob | max_turns(2)), "go").await, "2 of 2 turns");
}

#[tokio::test]
async fn conditions_on_text_do_not_fail_on_messages_without_text() {
    // item 39, trap T1
    let media = Media { media_type: "image/png".into(), url: "data:image/png;base64,AA==".into() };
    let call = ToolCall { id: "c".into(), tool: "TERMINATE".into(), args: json!({"x": "TERMINATE"}) };
    for part in [
        Part::Media(media),
        Part::Data(json!("TERMINATE")),
        Part::ToolCall(call),
        Part::Thought("TERMINATE".into()),
    ] {
        let mute = Function::new("Ann", move |_| Ok(Act::Say(vec![part.clone()]))).unwrap();
        let stop = says("TERMINATE")
            | matches("TERMINATE", Vec::new()).unwrap()
            | when("mine", |chat| chat.last().is_some_and(|line| line.message.text().contains("TERMINATE")))
            | max_turns(1);
        let chat = Chat::builder("c")
            .participant(mute)
            .policy(with_termination(round_robin(), stop))
            .build()
            .unwrap();
        // Of what is not text, only what can be shown is something that was said.
        let why = why(&chat, "go").await;
        assert!(["1 of 1 turn", "no participant said anything; 1 of 1 turn"].contains(&&*why), "{why}");
    }
}

fn solo(agent: impl Agent, policy: impl Policy) -> Chat {
    Chat::builder("solo").participant(agent).policy(policy).build().unwrap()
}

fn metered() -> Assistant {
    let step = r#"{"Ann": {"say": "well", "usage": {"input": 160, "output": 40}}}"#;
    Assistant::new("Ann", script(&format!("[{step}, {step}, {step}]"))).unwrap()
}

fn graph() -> Group {
    Group::round_robin().transitions(Transitions::allowed([(name("Ann"), vec![name("Bob")])]))
}

/// Every way to end that needs no person, with the reason it gives.
fn endings() -> Vec<(Chat, Limits, &'static str)> {
    let none = Limits::default();
    let say = |text| parrot("Ann", text);
    let leaves = || Function::new("Ann", |_| Ok(Act::Leave("I am tired".into()))).unwrap();
    let both = says("well").by(name("Ann")) & max_turns(2);
    let group = Chat::builder("group")
        .participant(say("x"))
        .participant(parrot("Bob", "y"))
        .policy(graph())
        .build()
        .unwrap();
    let never = HumanInput::never().max_auto_replies(1);
    let layered = Stack::new("Ann").unwrap().then(never).then(AnyAgent::new(say("x")));
    let nested = (0..2).fold(solo(say("x"), sequential()), |chat, depth| {
        Chat::builder(format!("c{depth}")).participant(chat).policy(sequential()).build().unwrap()
    });
    vec![
        (solo(say("x"), sequential()), none, "Ann replied"),
        (solo(say("x"), parallel()), none, "Ann replied"),
        (pair("DONE", says("DONE")), none, "Ann said `DONE`"),
        (pair("DONE 7", matches(r"\d", Vec::new()).unwrap()), none, r"Ann's message matched `\d`"),
        (pair("x", when("enough", |chat| chat.turns() > 2)), none, "the condition `enough` held"),
        (pair("x", max_turns(3)), none, "3 of 3 turns"),
        (pair("x", max_messages(3)), none, "3 of 3 messages"),
        (pair("well", both), none, "Ann said `well`, and 2 of 2 turns"),
        (pair("x", LoopDetector::default()), none, "loop detected: nearly the same messages repeatedly"),
        (
            solo(metered(), with_termination(round_robin(), max_tokens(150))),
            none,
            "the limit of 150 tokens (200 used)",
        ),
        (solo(metered(), round_robin()), Limits { calls: Some(2), ..none }, "the limit of 2 model calls"),
        (
            solo(metered(), round_robin()),
            Limits { tokens: Some(200), ..none },
            "the limit of 200 tokens (200 used)",
        ),
        (
            solo(metered(), round_robin()),
            Limits { cost: Some(Money::default()), ..none },
            "the limit of $0.00 ($0.00 spent)",
        ),
        (solo(say("x"), round_robin()), Limits { turns: Some(3), ..none }, "the limit of 3 turns"),
        (solo(say("x"), round_robin()), none, "the limit of 100 turns"),
        (nested, Limits { depth: 1, ..none }, "the limit of 1 level of chats within chats"),
        (solo(leaves(), round_robin()), none, "no participant is left; Ann left last: I am tired"),
        (group, none, "no participant may speak after Bob"),
        (solo(layered, round_robin()), none, "Ann's limit of 1 reply without human input"),
        (
            solo(Stack::new("Ann").unwrap(), round_robin()),
            none,
            "no participant said anything; Ann has no reply",
        ),
    ]
}

#[tokio::test]
async fn every_way_to_end_gives_a_reason_that_a_program_can_read() {
    // item 40, trap T17
    for (chat, limits, expected) in endings() {
        let mut log = log().await.limits(limits);
        let status = chat.run_in(&mut log, "go").await.unwrap().status;
        let Status::Closed { reason, .. } = &status else { panic!("{expected}: {status:?}") };
        assert_eq!(reason.to_string(), expected);
        assert_eq!(Report::of_last_run(&log.events().await).reason.as_ref(), Some(reason));
        let read = serde_json::from_str(&serde_json::to_string(reason).unwrap()).unwrap();
        assert_eq!(*reason, read, "a program reads the same");
    }
}

#[tokio::test]
async fn time_and_people_and_the_owner_end_a_run_for_a_reason_too() {
    // item 40, trap T17
    let seconds = std::sync::atomic::AtomicU64::new(0);
    let tick = move || Timestamp(seconds.fetch_add(1000, std::sync::atomic::Ordering::SeqCst));
    let status =
        pair("x", max_time_ms(5_000)).run_in(&mut log().await.clock(tick), "go").await.unwrap().status;
    assert_eq!(closed(&status).0, "the limit of 5 s");

    let human = Stack::new("Me").unwrap().then(HumanInput::always());
    let chat = Chat::builder("pair")
        .participant(human)
        .participant(parrot("Bob", "well"))
        .policy(round_robin())
        .build()
        .unwrap();
    let (status, _) = answered(&chat, &["exit"]).await;
    assert_eq!(closed(&status).0, "Me left: said `exit`");

    let mut log = log().await;
    log.cancellation().cancel_after_step();
    let chat = pair("x", max_turns(3));
    chat.run_in(&mut log, "go").await.unwrap();
    chat.close(&mut log, "the owner").await.unwrap();
    assert_eq!(closed(&chat.resume(&mut log).await.unwrap().status).0, "stopped by the owner");
}

/// Runs `chat` and gives the answers, one for each question.
async fn answered(chat: &Chat, answers: &[&'static str]) -> (Status, Vec<Arc<Event>>) {
    let mut log = log().await;
    let mut status = chat.run_in(&mut log, "go").await.unwrap().status;
    for answer in answers {
        let Status::Waiting(questions) = &status else { break };
        let (at, question) = &questions[0];
        let (at, who) = (at.clone(), question.who.clone());
        log.answer(&at, &who, *answer).await.unwrap();
        status = chat.resume(&mut log).await.unwrap().status;
    }
    (status, log.events().await)
}

#[tokio::test]
async fn a_failure_leaves_the_messages_so_far_and_says_whose_it_is() {
    // items 17 and 40, trap T36
    let failing = r#"[{"Ann": "one"}, {"Bob": {"error": {"status": 503, "message": "overloaded"}}}]"#;
    let agents = ["Ann", "Bob"].map(|who| Assistant::new(who, script(failing)).unwrap());
    let [ann, bob] = agents;
    let chat = Chat::builder("pair").participant(ann).participant(bob).policy(round_robin()).build().unwrap();
    let house = Chat::builder("house").participant(chat).policy(sequential()).build().unwrap();
    let mut log = log().await;
    let error = house.run_in(&mut log, "go").await.unwrap_err();
    assert_eq!(error.fault(), Fault::Provider);
    let report = Report::of_last_run(&log.events().await);
    assert_eq!((report.reason.clone(), &*report.summary), (None, ""));
    let [failed] = &report.failures[..] else { panic!("{:?}", report.failures) };
    assert_eq!((failed.chat.as_str(), failed.who.as_str()), ("/pair.1", "Bob"));
    assert_eq!((failed.error.fault, &*failed.error.message), (Fault::Provider, "script:test: overloaded"));
    assert_eq!((report.messages.len(), report.usage.calls), (1, 1));
}

#[tokio::test]
async fn agents_with_nothing_to_say_stop_after_the_first_empty_reply() {
    // item 41, trap T2
    let idle = |who| Stack::new(who).unwrap();
    let chat = Chat::builder("pair").participant(idle("Ann")).participant(idle("Bob")).policy(round_robin());
    let chat = chat.opening(|task| vec![Message::new(name("Ann"), task)]).build().unwrap();
    let (status, events) = run(&chat, "hi").await;
    assert_eq!(closed(&status), ("no participant said anything; Bob has no reply".into(), String::new()));
    assert_eq!(Transcript::from_events(&polylogue_core::Path::root(), &events).unwrap().turns(), 1);
}

#[tokio::test]
async fn what_every_person_answers_is_in_the_report_with_their_name_and_the_question() {
    // item 35, trap T8
    let me = Human::new("Me").unwrap().question("Well?");
    let inner = Chat::builder("inner").participant(Human::new("You").unwrap().question("And you?"));
    let inner = inner.policy(sequential()).build().unwrap();
    let chat = pair_chat("talk", me, inner, 3);
    let (_, events) = answered(&chat, &["fine", "", "bye"]).await;
    let reported = |report: &Report| -> Vec<String> {
        let as_text = |a: &polylogue::runs::report::Answer| {
            format!("{} {} `{}` `{}`", a.chat, a.who, a.question, a.text)
        };
        report.answers.iter().map(as_text).collect()
    };
    let report = Report::of_last_run(&events);
    assert_eq!(reported(&report), [" Me `Well?` `fine`", "/inner.1 You `And you?` ``", " Me `Well?` `bye`"]);
    assert!(report.questions.is_empty());

    let (status, events) = answered(&chat, &["fine"]).await;
    assert!(matches!(status, Status::Waiting(_)));
    let report = Report::of_last_run(&events);
    assert_eq!((report.reason.is_none(), report.answers.len()), (true, 1));
    let (at, question) = &report.questions[0];
    assert_eq!((at.as_str(), question.who.as_str(), &*question.text), ("/inner.1", "You", "And you?"));
}
