//! Messages that come while the last question is open: they are answered before the conversation ends.

use polylogue_core::{Body, Message, Name, Responder, Status};
use polylogue_runtime::fork::ForkPoint;
use polylogue_runtime::{Conversation, OpenOptions, Resumed};

use crate::conversations::{messages, world};

const SHOP: &str = "
name: shop
task: Sell.
agents: [{name: Ann}, {name: Pat, human: true}]
chat: {participants: [Ann, Pat], pattern: sequential}
script: [{Ann: Which color?}, {Ann: Twelve.}]
";

/// Runs it until Pat is asked, and answers.
async fn answer(conversation: &Conversation, text: &str) {
    let Status::Waiting(questions) = conversation.run().await.unwrap() else { panic!("Pat is not asked") };
    let (at, question) = &questions[0];
    conversation.answer(at, &question.who, text, Responder::Unnamed).await.unwrap();
}

#[tokio::test]
async fn a_message_while_the_last_question_is_open_is_answered_also_in_a_fork_of_the_end() {
    let world = world(SHOP).await;
    let conversation = world.runtime.begin(&world.team.run()).await.unwrap();
    assert!(matches!(conversation.run().await.unwrap(), Status::Waiting(_)));
    conversation.send(Message::new(Name::user(), "What does it cost?")).await.unwrap();
    answer(&conversation, "Blue.").await;
    answer(&conversation, "Thanks.").await;
    let Status::Closed { summary, .. } = conversation.run().await.unwrap() else { panic!("not closed") };
    assert_eq!(&*summary, "Thanks.");
    assert!(matches!(conversation.resume(None).await.unwrap(), Resumed::Done(_)));
    let events = conversation.events().await;
    let all = ["Which color?", "What does it cost?", "Blue.", "Twelve.", "Thanks."];
    assert_eq!(messages(&events), all);
    let count = |is: fn(&Body) -> bool| events.iter().filter(|event| is(&event.body)).count();
    assert_eq!(count(|body| matches!(body, Body::Closed { .. })), 2);
    assert_eq!(count(|body| matches!(body, Body::Reopened { sent: true, .. })), 1);

    // As a process leaves it that dies between the end and what follows.
    let reopened = events.iter().find(|event| matches!(event.body, Body::Reopened { .. })).unwrap();
    let point = ForkPoint { event: Some(reopened.seq), ..ForkPoint::default() };
    let fork = world.runtime.fork(conversation.id(), &point).await.unwrap().id;
    let forked = world.runtime.open(&fork, &world.team, OpenOptions::default()).await.unwrap();
    assert_eq!(forked.resume(None).await.unwrap(), Resumed::Continues);
    answer(&forked, "Thanks.").await;
    assert!(matches!(forked.run().await.unwrap(), Status::Closed { .. }));
    assert_eq!(messages(&forked.events().await), all);
}
