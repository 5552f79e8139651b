//! Turns that are given up while chats, calls and background tasks in them are open.

use polylogue::tools::agent_tool::AgentTool;
use polylogue::{
    Act, AnyModel, Assistant, Chat, Function, Human, Message, Name, Status, parallel, sequential,
};
use polylogue_core::{AnyAgent, Log, MessageSource, Summary};

use crate::common::{log, script};

/// Calls a person and repeats the answer.
fn host() -> Function {
    let kim = AnyAgent::new(Human::new("Kim").unwrap());
    Function::calling("Host", [kim.clone()], move |turn| {
        let kim = kim.clone();
        Box::pin(async move { Ok(Act::Say(turn.ask(&kim, "Which color?").await?.parts)) })
    })
    .unwrap()
}

/// Who is asked, and where, also by the summary for lists.
async fn asked(log: &Log) -> Vec<String> {
    let events = log.events().await;
    let summary = Summary::of(events.iter().map(|event| &**event), true);
    let listed: Vec<String> = summary.questions.iter().map(|(at, who)| format!("{at}: {who}")).collect();
    let questions = log.questions().await.unwrap();
    let open: Vec<String> =
        questions.iter().map(|(at, question)| format!("{at}: {}", question.who)).collect();
    assert_eq!(open, listed);
    open
}

#[tokio::test]
async fn a_person_whom_a_given_up_turn_called_is_asked_again_by_the_next_one() {
    // Where another one has said something, the turn is passed, and otherwise rolled back.
    for others in [&["Ann"][..], &[]] {
        let chat = others.iter().fold(Chat::builder("main"), |chat, who| {
            chat.participant(Function::new(who, |_| Ok(Act::say("42"))).unwrap())
        });
        let chat = chat.participant(host()).policy(parallel()).build().unwrap();
        let mut log = log().await;
        chat.run_in(&mut log, "go").await.unwrap();
        assert_eq!(asked(&log).await, ["/Host/Kim: Kim"], "{others:?}");
        chat.end_open_turns(&mut log).await.unwrap();
        assert!(asked(&log).await.is_empty(), "{others:?}");

        chat.close(&mut log, "user").await.unwrap();
        let again = Message::new(Name::user(), "again");
        let Status::Waiting(questions) = chat.continue_with(&mut log, again).await.unwrap().status else {
            panic!("no one is asked: {others:?}")
        };
        assert_eq!(asked(&log).await, ["/Host/Kim: Kim"], "{others:?}");
        let (at, question) = &questions[0];
        log.answer(at, &question.who, "blue").await.unwrap();
        chat.resume(&mut log).await.unwrap();
        let transcript = log.transcript().await.unwrap();
        let last = transcript.last().unwrap();
        assert_eq!((last.message.from.as_str(), &*last.message.text()), ("Host", "blue"), "{others:?}");
        // The call that no one waits for any more is forgotten.
        let called = log.transcript_of(at).await.unwrap();
        assert_eq!(
            called.all_messages().iter().filter(|line| line.source == MessageSource::Opening).count(),
            1
        );
    }
}

#[tokio::test]
async fn a_question_of_a_background_task_is_open_as_long_as_the_turn_that_started_the_task_counts() {
    let calls = r#"{"Ann": {"calls": [{"tool": "boss", "args": {"task": "May I?"}, "id": "c1"}]}}"#;
    for (script_of_all, left) in [
        // Only the turn of Bob fails, and is rolled back.
        (format!(r#"[{calls}, {{"Ann": "I ask."}}]"#), &["/Ann.b1: Boss"][..]),
        // The second call of Ann fails, and her turn is rolled back.
        (format!("[{calls}]"), &[]),
    ] {
        let model = AnyModel::new(script(&script_of_all).model("test"));
        let boss = AgentTool::agent(Human::new("Boss").unwrap()).named("boss").background();
        let chat = Chat::builder("main")
            .participant(Assistant::new("Ann", model.clone()).unwrap().agent_tool(boss))
            .participant(Assistant::new("Bob", model).unwrap())
            .policy(sequential())
            .build()
            .unwrap();
        let mut log = log().await;
        chat.run_in(&mut log, "go").await.unwrap_err();
        assert_eq!(asked(&log).await, ["/Ann.b1: Boss"], "{script_of_all}");
        chat.end_open_turns(&mut log).await.unwrap();
        assert_eq!(asked(&log).await, left, "{script_of_all}");
    }
}

#[tokio::test]
async fn a_message_that_was_sent_in_a_turn_that_is_rolled_back_stays() {
    let kim = Human::new("Kim").unwrap();
    let chat = Chat::builder("main").participant(kim).policy(sequential()).build().unwrap();
    let mut log = log().await;
    chat.run_in(&mut log, "go").await.unwrap();
    log.send(Message::new(Name::user(), "hurry")).await.unwrap();
    chat.end_open_turns(&mut log).await.unwrap();
    assert_eq!(log.transcript().await.unwrap().last().unwrap().message.text(), "hurry");
}
