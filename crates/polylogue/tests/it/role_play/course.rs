//! The course of a conversation: prompts, their number, and their roles in requests.

use polylogue::stop::LibraryStopReason;
use polylogue_core::{Audience, Body, Entry, MessageSource, Part, StopReason, ViewOptions, Window};

use crate::common::name;
use crate::role_play::set::{DONE, agent, play, role_play, said, talk, work};
use crate::stage::Asked;

/// `U` for messages of others, `A` for the agent's own, `T` for an outcome.
fn shape(asked: &Asked) -> String {
    let letter = |entry: &Entry| match entry {
        Entry::User { .. } => 'U',
        Entry::Assistant { .. } => 'A',
        Entry::Tool { .. } => 'T',
        Entry::System { .. } => 'S',
    };
    asked.entries.iter().map(letter).collect()
}

fn text(entry: &Entry) -> String {
    let (Entry::User { parts } | Entry::Assistant { parts, .. } | Entry::System { parts }) = entry else {
        return String::new();
    };
    parts.iter().filter_map(|part| if let Part::Text(text) = part { Some(&**text) } else { None }).collect()
}

fn refs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

/// C01 (72)
#[tokio::test]
async fn the_opening_is_sent_once_and_k_rounds_make_one_and_two_k_calls() {
    let work = work(3);
    let script = talk(&[("Specifier", "Trade wheat.")], &refs(&work));
    let make = |model: &_| {
        role_play(model).specify(agent("Specifier", model)).max_rounds(3).build("role_play").unwrap()
    };
    let came = play(&script, "Trade", make).await;
    assert_eq!(came.reason, StopReason::from(LibraryStopReason::Rounds { limit: 3 }));
    assert_eq!(came.asked.len(), 1 + 2 * 3);
    let openings: Vec<_> =
        came.transcript.messages().filter(|line| line.source == MessageSource::Opening).collect();
    let [opening] = openings[..] else { panic!("{openings:?}") };
    assert_eq!(opening.message.to, Audience::Only(vec![name("Trader")]));
    let opening = opening.message.text();
    for asked in came.asked("Trader") {
        let sent = asked.entries.iter().filter(|entry| text(entry).contains(&*opening)).count();
        assert_eq!(sent, 1, "{asked:?}");
    }
    for asked in came.asked("Python_programmer") {
        assert!(!asked.entries.iter().any(|entry| text(entry).contains(&*opening)), "{asked:?}");
    }
}

/// C01 (72)
#[tokio::test]
async fn the_end_of_the_user_role_saves_the_last_call() {
    let mut work = work(2);
    work.push(DONE.into());
    let script = talk(&[("Specifier", "Trade wheat.")], &refs(&work));
    let make = |model: &_| role_play(model).specify(agent("Specifier", model)).build("role_play").unwrap();
    let came = play(&script, "Trade", make).await;
    assert_eq!(came.asked.len(), 1 + 2 * 3 - 1);
}

/// C02 (73)
#[tokio::test]
async fn each_reads_the_other_as_user_and_itself_as_assistant() {
    let work = work(3);
    let came = said(&refs(&work), |role_play| role_play.max_rounds(3)).await;
    let shapes = |who| came.asked(who).into_iter().map(shape).collect::<Vec<_>>();
    assert_eq!(shapes("Trader"), ["U", "UAU", "UAUAU"]);
    assert_eq!(shapes("Python_programmer"), ["U", "UAU", "UAUAU"]);
    let last = came.asked("Python_programmer")[2];
    let texts: Vec<_> = last.entries.iter().map(text).collect();
    assert_eq!(texts, work[..5]);
}

/// C03 (74): another log is a new start; nothing is said before it runs, and no agent remembers another one.
#[tokio::test]
async fn building_a_chat_calls_no_model_and_has_no_memory() {
    let work = work(1);
    let spy = crate::stage::Spy::on(crate::stage::script(&talk(&[], &refs(&work))));
    let chat = role_play(&spy.model()).max_rounds(1).build("role_play").unwrap();
    assert!(spy.asked().is_empty());
    for _ in 0..2 {
        crate::stage::run(&chat, "Trade").await;
    }
    let asked = spy.asked();
    assert_eq!(asked.len(), 4);
    assert_eq!(asked[0].entries, asked[2].entries);
    assert_eq!(asked[1].entries, asked[3].entries);
}

/// C17 (88)
#[tokio::test]
async fn a_window_keeps_the_system_text_and_the_last_messages() {
    let work = work(6);
    let script = talk(&[], &refs(&work));
    let make = |model: &_| {
        let options = ViewOptions { window: Window::Messages(4), ..ViewOptions::default() };
        let programmer = agent("Python_programmer", model).view(options);
        polylogue::tasks::RolePlay::new(programmer, agent("Trader", model))
            .max_rounds(6)
            .build("role_play")
            .unwrap()
    };
    let came = play(&script, "Trade", make).await;
    let asked = came.asked("Python_programmer");
    let last = asked[5];
    assert!(last.entries.len() <= 4, "{}", shape(last));
    assert!(last.system.as_ref().unwrap().starts_with("===== RULES OF THE ASSISTANT ====="));
    assert_eq!(text(last.entries.last().unwrap()), work[10]);
}

/// A message of a person at the end is seen by both, and the user role continues.
#[tokio::test]
async fn a_finished_role_play_continues_with_a_message() {
    let said: Vec<String> = work(2);
    let model = crate::stage::script(&talk(&[], &refs(&said)));
    let chat = role_play(&model).max_rounds(1).build("role_play").unwrap();
    let mut log = crate::stage::log().await;
    chat.run_in(&mut log, "Trade").await.unwrap();
    chat.continue_with(&mut log, "Now with fees, too").await.unwrap();
    let events = log.events().await;
    let said = events.iter().filter_map(|event| match &event.body {
        Body::Message(message) => Some(message.from.as_str()),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), ["Trader", "Python_programmer", "Trader", "Python_programmer"]);
    let closed = log.transcript().await.unwrap().closed().map(|(reason, _)| reason.clone());
    assert_eq!(closed, Some(StopReason::from(LibraryStopReason::Rounds { limit: 1 })));
}
