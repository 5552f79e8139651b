//! Messages that are sent into a conversation from outside, while it runs and while it waits.
#![allow(clippy::unwrap_used, clippy::panic, clippy::indexing_slicing, reason = "these are tests")]

use std::sync::{Arc, Mutex};

use polylogue_core::{
    Act, Agent, AnyStore, Body, Chat, Event, Log, LogHandle, LogId, Message, Meta, Name, Path, Result,
    Status, Step, StopReason, Store, Timestamp, Transcript, Turn, TurnRequest, View, ViewOptions,
};
use polylogue_store::Memory;

/// Where an agent of the test finds the log that it sends to.
type Outside = Arc<Mutex<Option<LogHandle>>>;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

/// Says how many messages it sees. In its first turn, someone outside sends a message, if there is an outside.
struct Counter(Name, Option<Outside>);

impl Agent for Counter {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        if turn.transcript().turns_of(&self.0) == 0
            && let Some(outside) = &self.1
        {
            let outside = outside.lock().unwrap();
            outside.as_ref().unwrap().send(Message::text(Name::user(), "wait, DONE is not enough"));
        }
        let seen = turn.transcript().messages().count();
        Ok(Act::say(format!("I see {seen}")))
    }
}

/// Asks a person in its turn.
struct Asking(Name);

impl Agent for Asking {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        Ok(match turn.answer() {
            Some(answer) => Act::say(answer),
            None => Act::Ask("what now?".into()),
        })
    }
}

/// Takes turns four times.
fn in_turn(chat: &Transcript) -> Step {
    match chat.turns() {
        turns if turns >= 4 => Step::close(StopReason::Turns { limit: 4, next: None }, chat),
        turns => {
            let who = &chat.participants()[usize::try_from(turns).unwrap() % chat.participants().len()];
            Step::Turn(TurnRequest::to_all(who.clone()))
        }
    }
}

fn counters(outside: &Outside) -> Chat {
    let (a, b) = (Counter(name("A"), Some(Arc::clone(outside))), Counter(name("B"), None));
    Chat::named("count").participant(a).participant(b).policy(in_turn).build().unwrap()
}

async fn log_of(prefix: &[Arc<Event>]) -> Log {
    let store = AnyStore::new(Memory::default());
    let claim = store.create(&LogId::new("sent").unwrap(), &Meta::default()).await.unwrap();
    let id = claim.id.clone();
    store.append(&claim, prefix).await.unwrap();
    store.release(claim).await.unwrap();
    Log::open(store, id).await.unwrap().clock(|| Timestamp(0))
}

async fn play(prefix: &[Arc<Event>]) -> Vec<Arc<Event>> {
    let outside = Outside::default();
    let mut log = log_of(prefix).await;
    *outside.lock().unwrap() = Some(log.handle());
    let chat = counters(&outside);
    let status = match prefix {
        [] => chat.run_in(&mut log, "go").await,
        _ => chat.resume(&mut log).await,
    };
    let status = status.unwrap().status;
    assert!(matches!(status, Status::Closed { .. }), "{status:?}");
    log.events().await
}

fn kinds(events: &[Arc<Event>]) -> Vec<String> {
    let text = |message: &Message| message.plain().into_owned();
    let kind = |event: &Arc<Event>| match &event.body {
        Body::Message(message) => format!("{}: {}", message.from, text(message)),
        Body::Sent(message) => format!("sent: {}", text(message)),
        _ => String::new(),
    };
    events.iter().map(kind).filter(|kind| !kind.is_empty()).collect()
}

#[tokio::test]
async fn a_message_to_a_running_conversation_is_seen_from_the_next_turn_on() {
    let events = play(&[]).await;
    // The task, then the message of A and the one from outside, then one more with each turn.
    assert_eq!(
        kinds(&events),
        ["A: I see 1", "sent: wait, DONE is not enough", "B: I see 3", "A: I see 4", "B: I see 5"]
    );
    let chat = Transcript::of(&Path::root(), &events).unwrap();
    assert_eq!(chat.turns(), 4, "it is not a turn");
    let view = View::of(&chat, &name("B"), ViewOptions::default());
    let whole = serde_json::to_string(&view.entries()).unwrap();
    assert!(whole.find("I see 1").unwrap() < whole.find("DONE is not enough").unwrap(), "{whole}");
}

#[tokio::test]
async fn a_log_that_was_cut_anywhere_continues_as_it_went() {
    let whole = play(&[]).await;
    let sent = whole.iter().position(|event| matches!(event.body, Body::Sent(_))).unwrap();
    for cut in 1..whole.len() {
        let again = play(&whole[..cut]).await;
        let bodies =
            |events: &[Arc<Event>]| events.iter().map(|event| event.body.clone()).collect::<Vec<_>>();
        match cut == sent {
            // It was not in the log yet and is not sent again: the conversation does not have it.
            true => assert_eq!(kinds(&again), ["A: I see 1", "B: I see 2", "A: I see 3", "B: I see 4"]),
            false => assert_eq!(bodies(&whole), bodies(&again), "cut before event {cut}"),
        }
    }
}

#[tokio::test]
async fn a_message_to_a_waiting_conversation_takes_effect_when_the_turn_is_over() {
    let chat = || {
        let (a, b) = (Asking(name("A")), Counter(name("B"), None));
        Chat::named("ask").participant(a).participant(b).policy(in_turn).build().unwrap()
    };
    let mut log = log_of(&[]).await;
    let Status::Waiting(questions) = chat().run_in(&mut log, "go").await.unwrap().status else {
        panic!("not waiting")
    };
    log.send(Message::text(Name::user(), "hurry")).await.unwrap();
    let within = log.transcript().await.unwrap();
    assert_eq!(within.messages().count(), 1, "the turn is open");
    let before = log.events().await;
    // Another process continues it.
    drop(log);
    let mut log = log_of(&before).await;
    let (at, question) = &questions[0];
    log.answer(at, &question.who, "nothing").await.unwrap();
    let Status::Waiting(_) = chat().resume(&mut log).await.unwrap().status else { panic!("not waiting") };
    let events = log.events().await;
    assert_eq!(kinds(&events), ["sent: hurry", "A: nothing", "B: I see 3"]);
    let lines: Vec<String> = log
        .transcript()
        .await
        .unwrap()
        .lines()
        .iter()
        .map(|line| line.message.plain().into_owned())
        .collect();
    assert_eq!(lines, ["go", "nothing", "hurry", "I see 3"]);
}

#[tokio::test]
async fn a_message_to_a_closed_conversation_reopens_it_and_one_that_has_not_begun_takes_none() {
    let mut log = log_of(&play(&[]).await).await;
    log.send(Message::text(Name::user(), "more")).await.unwrap();
    assert!(matches!(&log.events().await.last().unwrap().body, Body::Reopened { message: Some(_), .. }));
    let error = log_of(&[]).await.send(Message::text(Name::user(), "hello")).await.unwrap_err();
    assert_eq!(error.to_string(), "the conversation `sent` has not begun");
}
