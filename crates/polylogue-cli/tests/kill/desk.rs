//! Answers and messages for a server that is killed: each that it has acknowledged is found exactly once.

use std::collections::BTreeMap;
use std::sync::atomic::Ordering;
use std::sync::{Arc, PoisonError};
use std::thread::sleep;
use std::time::{Duration, Instant};

use polylogue_core::{AnyStore, Body, Event, Instruction, LogId, Message, Store as _};
use serde_json::{Value, json};

use crate::place::PATIENCE;
use crate::random::Moment;
use crate::serving::{Client, PATH};

/// A team that asks a person.
pub(crate) const DESK: &str = "
name: desk
agents: [{name: Ann, system: You are at the desk.}, {name: Pat, human: true}]
chat: {participants: [Pat, Ann], pattern: sequential}
";

/// Texts that were acknowledged, each with its conversation.
pub(crate) type Told = BTreeMap<String, LogId>;

impl Client {
    /// Begins conversations at the desk, and sends to each a message while it waits, an answer, and a message while it runs or when
    /// it is closed: each with a key of its own, until it is acknowledged.
    pub(crate) fn tell_until_told(self: &Arc<Self>) {
        for number in 0_u32.. {
            if self.is_enough.load(Ordering::SeqCst) {
                return;
            }
            let body = json!({"team": "desk", "message": format!("Ask about the number {number}.")});
            let head = format!("Idempotency-Key: desk-{number}\r\n");
            let begun = self.ask("POST", PATH, &head, &body.to_string());
            let id = LogId::new(begun["id"].as_str().unwrap()).unwrap();
            let question = self.question_of(&id);
            self.tell(&id, "messages", &format!("Before the answer {number}."), json!({}));
            self.tell(&id, "answers", &format!("The answer {number}."), json!({"question": question}));
            self.tell(&id, "messages", &format!("After the answer {number}."), json!({}));
        }
    }

    /// Sends a text, which names itself as its key, and notes that it was acknowledged.
    fn tell(&self, id: &LogId, what: &str, text: &str, mut body: Value) {
        body["text"] = text.into();
        let head = format!("Idempotency-Key: {text}\r\n");
        self.ask("POST", &format!("{PATH}/{id}/{what}"), &head, &body.to_string());
        self.told().insert(text.to_owned(), id.clone());
    }

    pub(crate) fn told(&self) -> std::sync::MutexGuard<'_, Told> {
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The question that a conversation waits with, as soon as it does.
    fn question_of(&self, id: &LogId) -> Value {
        let begun = Instant::now();
        loop {
            let one = self.ask("GET", &format!("{PATH}/{id}"), "", "");
            if one["state"] == "waiting" {
                return one["questions"][0]["question"].clone();
            }
            assert!(begun.elapsed() < PATIENCE, "nothing is asked: {one}");
            sleep(Duration::from_millis(10));
        }
    }

    /// Waits until the server that runs now has acknowledged one more text: the moment to kill it.
    pub(crate) fn when_more_is_acknowledged(&self) -> Moment {
        let (begun, before) = (Instant::now(), self.told().len());
        while self.told().len() == before {
            assert!(begun.elapsed() < PATIENCE, "nothing more is acknowledged after {before}");
            sleep(Duration::from_millis(1));
        }
        Moment::Start(Duration::ZERO)
    }

    /// Waits until the server that runs now has carried out all that was acknowledged: each exactly once.
    pub(crate) fn check_told(&self) {
        let told = self.told().clone();
        assert!(told.len() > 3, "the desk was told too little: {}", told.len());
        for (text, id) in &told {
            let begun = Instant::now();
            loop {
                let events: Vec<Event> = self
                    .events(id.as_str())
                    .into_iter()
                    .map(|event| serde_json::from_value(event).unwrap())
                    .collect();
                match count(&events, text) {
                    1 => break,
                    0 => {
                        assert!(begun.elapsed() < PATIENCE, "`{text}` of `{id}` was acknowledged and is lost")
                    }
                    more => panic!("`{text}` of `{id}` is there {more} times"),
                }
                sleep(Duration::from_millis(50));
            }
        }
        println!("{} answers and messages were acknowledged, and each is there once", told.len());
    }
}

/// Whether the store has each text that was acknowledged: in its log once, or else in its inbox.
pub(crate) async fn check_stored(store: &AnyStore, told: &Told) {
    for (text, id) in told {
        let events = store.read(id, 0).await.unwrap();
        let waiting = store.inbox(id, 0).await.unwrap();
        let waits = waiting.iter().any(|(_, message)| text_of(&message.instruction) == Some(text.as_str()));
        match count(&events, text) {
            1 => {}
            0 => assert!(waits, "`{text}` of `{id}` was acknowledged, and a kill has lost it"),
            more => panic!("`{text}` of `{id}` is there {more} times after a kill"),
        }
    }
}

/// How often a text was said from outside.
fn count(events: &[Event], text: &str) -> usize {
    let says = |message: &Message| message.text() == text;
    let is_said = |event: &&Event| match &event.body {
        Body::Sent(message) | Body::Reopened { message: Some(message), .. } => says(message),
        Body::InputProvided { text: answer, .. } => **answer == *text,
        _ => false,
    };
    events.iter().filter(is_said).count()
}

fn text_of(instruction: &Instruction) -> Option<&str> {
    match instruction {
        Instruction::Answer { text, .. } => Some(text),
        Instruction::Send(message) => message.parts.iter().find_map(|part| match part {
            polylogue_core::Part::Text(text) => Some(&**text),
            _ => None,
        }),
        _ => None,
    }
}
