//! Messages that are sent from outside in the last turn, or while a person is asked in it: the chat does not end before a turn has
//! followed, as far as its limits allow.

use std::sync::Arc;

use polylogue::policies::{with_summary_by, with_termination};
use polylogue::runs::Report;
use polylogue::stop::{LibraryStopReason, Stop, max_messages, max_turns, says, when};
use polylogue::{
    Act, Chat, Function, Human, Limits, Log, Message, Name, Policy, Status, Step, Transcript, round_robin,
    sequential,
};
use polylogue_core::{
    AnyStore, Body, Event, FinishReason, LogHandle, Money, Part, StopReason, TurnRequest, View, ViewOptions,
};
use polylogue_store::{Memory, Sqlite};

use crate::common::{log, log_in, log_of, name, run_or_resume, stored};

const PRICE: &str = "And the price?";

/// Says how many messages it sees. In its first turn, someone outside sends a message, if there is an outside.
fn counter(who: &str, sends: Option<(LogHandle, &str)>) -> Function {
    let sends = sends.map(|(outside, text)| (outside, Message::new(Name::user(), text)));
    let agent = Function::new(who, move |turn| {
        let seen = turn.transcript().messages().count();
        if let Some((outside, message)) = sends.as_ref().filter(|_| seen <= 2) {
            drop(outside.send(message.clone()));
        }
        Ok(Act::say(format!("I see {seen}")))
    });
    agent.unwrap()
}

/// Ann and Bob. In the first turn of Bob, someone outside sends a message, if there is an outside.
fn pair(policy: impl Policy, sends: Option<(LogHandle, &str)>) -> Chat {
    let chat = Chat::builder("pair").participant(counter("Ann", None)).participant(counter("Bob", sends));
    chat.policy(policy).build().unwrap()
}

async fn begin_or_resume(chat: &Chat, log: &mut Log) -> Status {
    run_or_resume(chat, log, "go").await.unwrap().status
}

/// Runs the chat to its end. Returns its result.
async fn play(chat: &Chat, log: &mut Log) -> String {
    match begin_or_resume(chat, log).await {
        Status::Closed { summary, .. } => summary.to_string(),
        other => panic!("it is not over: {other:?}"),
    }
}

fn told(events: &[Arc<Event>]) -> Vec<String> {
    let tell = |event: &Arc<Event>| match &event.body {
        Body::Message(message) => Some(format!("{}: {}", message.from, message.text())),
        Body::Sent(message) => Some(format!("sent: {}", message.text())),
        Body::Closed { reason, .. } => Some(format!("closed: {reason}")),
        Body::Reopened { sent, .. } => Some(format!("reopened, sent: {sent}")),
        _ => None,
    };
    events.iter().filter_map(tell).collect()
}

fn reopened(events: &[Arc<Event>]) -> usize {
    events.iter().filter(|event| matches!(event.body, Body::Reopened { sent: true, .. })).count()
}

fn bodies(events: &[Arc<Event>]) -> Vec<Body> {
    events.iter().map(|event| event.body.clone()).collect()
}

/// What `who` sees of the chat.
fn seen_by(who: &str, chat: &Transcript) -> String {
    serde_json::to_string(View::of(chat, &name(who), ViewOptions::default()).entries()).unwrap()
}

/// The stores of the tests, and a folder in which one of them is.
fn stores() -> (tempfile::TempDir, [AnyStore; 2]) {
    let folder = tempfile::tempdir().unwrap();
    let on_disk = AnyStore::new(Sqlite::open(folder.path().join("logs.db")).unwrap());
    (folder, [AnyStore::new(Memory::default()), on_disk])
}

/// A log of the first events of `whole` in `store`, as the next process finds it.
async fn cut_at(cut: usize, whole: &[Arc<Event>], store: &AnyStore) -> Log {
    stored(store.clone(), &format!("cut{cut}"), &whole[..cut]).await
}

const SPOKEN: &str = "closed: every participant has spoken";

#[tokio::test]
async fn a_message_in_the_last_turn_is_answered_wherever_the_log_is_cut() {
    let (_folder, stores) = stores();
    for store in stores {
        let mut log = log_in(store.clone(), "whole").await;
        let chat = pair(sequential(), Some((log.handle(), PRICE)));
        assert_eq!(play(&chat, &mut log).await, "I see 5");
        let whole = log.events().await;
        let (first, second) = (["Ann: I see 1", "Bob: I see 2"], ["Ann: I see 4", "Bob: I see 5"]);
        let sent = "sent: And the price?";
        let [ann, bob] = first;
        let all = [ann, bob, sent, SPOKEN, "reopened, sent: true", second[0], second[1], SPOKEN];
        assert_eq!(told(&whole), all);
        let transcript = log.transcript().await.unwrap();
        assert_eq!(transcript.turns(), 2, "turns count from 0 again");
        let lines: Vec<_> = transcript.messages().map(|line| line.message.text().into_owned()).collect();
        assert_eq!(lines, ["go", "I see 1", "I see 2", PRICE, "I see 4", "I see 5"]);
        for who in ["Ann", "Bob"] {
            assert_eq!(seen_by(who, &transcript).matches(PRICE).count(), 1, "{who} sees it once");
        }
        let sent = whole.iter().position(|event| matches!(event.body, Body::Sent(_))).unwrap();
        for cut in 1..=whole.len() {
            let mut log = cut_at(cut, &whole, &store).await;
            let chat = pair(sequential(), Some((log.handle(), PRICE)));
            play(&chat, &mut log).await;
            let again = log.events().await;
            match cut == sent {
                // It was not in the log yet and is not sent again: the conversation does not have it.
                true => assert_eq!(told(&again), [ann, bob, SPOKEN]),
                false => assert_eq!(bodies(&again), bodies(&whole), "cut before event {cut}"),
            }
        }
    }
}

/// Runs Ann and Kim, a person, who is asked in the last turn and says blue, then crimson. `sends` are sent while
/// the first question is open.
async fn answered(log: &mut Log, sends: &[&str]) {
    let chat = Chat::builder("ask").participant(counter("Ann", None)).participant(Human::new("Kim").unwrap());
    let chat = chat.policy(sequential()).build().unwrap();
    let mut status = begin_or_resume(&chat, log).await;
    while let Status::Waiting(questions) = status {
        let events = log.events().await;
        let given = events.iter().filter(|event| matches!(event.body, Body::InputProvided { .. })).count();
        for text in sends.iter().filter(|_| given == 0) {
            log.send(Message::new(Name::user(), *text)).await.unwrap();
        }
        let (at, question) = &questions[0];
        log.answer(at, &question.who, ["blue", "crimson"][given]).await.unwrap();
        status = chat.resume(log).await.unwrap().status;
    }
    assert!(matches!(status, Status::Closed { .. }), "{status:?}");
}

#[tokio::test]
async fn messages_while_the_last_question_is_open_are_answered_wherever_the_log_is_cut() {
    let (_folder, stores) = stores();
    for store in stores {
        let mut log = log_in(store.clone(), "whole").await;
        answered(&mut log, &["Hurry.", PRICE]).await;
        let whole = log.events().await;
        let (ann, blue, crimson) = ("Ann: I see 1", "Kim: blue", "Kim: crimson");
        let (hurry, price, reopens) = ("sent: Hurry.", "sent: And the price?", "reopened, sent: true");
        assert_eq!(
            told(&whole),
            [ann, hurry, price, blue, SPOKEN, reopens, "Ann: I see 5", crimson, SPOKEN],
            "both are answered at once"
        );
        // The answer is part of the turn that was open; what was sent meanwhile follows it.
        let seen = seen_by("Ann", &log.transcript().await.unwrap());
        let at = ["blue", "Hurry.", PRICE, "I see 5", "crimson"].map(|text| seen.find(text).unwrap());
        assert!(at.is_sorted(), "{seen}");
        for cut in 1..=whole.len() {
            let mut log = cut_at(cut, &whole, &store).await;
            answered(&mut log, &[]).await;
            let again = log.events().await;
            match whole[..cut].iter().filter(|event| matches!(event.body, Body::Sent(_))).count() {
                0 => assert_eq!(told(&again), [ann, blue, SPOKEN]),
                1 => {
                    let one = [ann, hurry, blue, SPOKEN, reopens, "Ann: I see 4", crimson, SPOKEN];
                    assert_eq!(told(&again), one);
                }
                _ => assert_eq!(bodies(&again), bodies(&whole), "cut before event {cut}"),
            }
        }
    }
}

/// Two turns, then the end for `reason`.
fn ends_for(reason: StopReason) -> impl Policy {
    move |chat: &Transcript| {
        let turns = usize::try_from(chat.turns()).unwrap();
        match chat.participants().get(turns) {
            Some(who) => Step::Turn(TurnRequest::to_all(who.clone())),
            None => Step::close(reason.clone(), chat),
        }
    }
}

#[tokio::test]
async fn limits_on_time_and_money_hold_and_what_was_stopped_stays_so() {
    let rounds = StopReason::from(LibraryStopReason::Rounds { limit: 1 });
    let tokens = StopReason::Tokens { limit: 1, used: 1, next: None, cut: None };
    for (reason, continues) in [
        (StopReason::Finished, true),
        (StopReason::Turns { limit: 2, next: None }, true),
        (rounds.clone(), true),
        (StopReason::All(vec![StopReason::Finished, rounds.clone()]), true),
        (StopReason::All(vec![rounds, tokens.clone()]), false),
        (tokens, false),
        (StopReason::Cost { limit: Money::default(), spent: Money::default(), next: None, cut: None }, false),
        (StopReason::Time { limit_ms: 1, used_ms: 1 }, false),
        (StopReason::from(LibraryStopReason::Time { limit_ms: 1 }), false),
        (StopReason::Stopped { by: "a person".into() }, false),
        (StopReason::Left { who: name("Ann"), why: "said `exit`".into() }, false),
    ] {
        let mut log = log().await;
        let chat = pair(ends_for(reason.clone()), Some((log.handle(), PRICE)));
        play(&chat, &mut log).await;
        let events = log.events().await;
        assert!(told(&events).contains(&format!("sent: {PRICE}")), "{reason}");
        assert_eq!(reopened(&events), usize::from(continues), "{reason}");
        assert_eq!(log.turns().await, if continues { 4 } else { 2 }, "{reason}");
    }
}

#[tokio::test]
async fn a_message_continues_a_chat_that_its_termination_condition_ends_unless_the_message_met_it() {
    let cases: [(Stop, &str, u64); 5] = [
        (max_turns(2), PRICE, 4),
        // The message itself is the fourth.
        (max_messages(4), PRICE, 5),
        (Stop::from(says("I see 2").whole()) | max_turns(4), PRICE, 6),
        (Stop::from(says("STOP")) | max_turns(9), "STOP", 2),
        // It still holds.
        (when("long", |chat| chat.all_messages().len() >= 3), PRICE, 2),
    ];
    for (stop, text, turns) in cases {
        let mut log = log().await;
        let chat = pair(with_termination(round_robin(), stop), Some((log.handle(), text)));
        play(&chat, &mut log).await;
        let events = log.events().await;
        assert_eq!(log.turns().await, turns, "{:?}", told(&events));
        assert_eq!(reopened(&events), usize::from(turns > 2), "{:?}", told(&events));
    }
    // Every participant has spoken, too.
    let mut log = log().await;
    let chat = pair(with_termination(sequential(), says("STOP")), Some((log.handle(), "STOP")));
    play(&chat, &mut log).await;
    assert_eq!(told(&log.events().await)[2..], ["sent: STOP", "closed: user said `STOP`"]);
}

#[tokio::test]
async fn a_limit_of_the_run_holds_and_the_result_stays_until_it_is_raised() {
    let limits = |turns| Limits { turns: Some(turns), ..Limits::default() };
    let mut log = log().await.limits(limits(2));
    let chat = pair(sequential(), Some((log.handle(), PRICE)));
    assert_eq!(play(&chat, &mut log).await, "I see 2");
    let events = log.events().await;
    assert_eq!(told(&events)[3..], [SPOKEN, "reopened, sent: true", "closed: the limit of 2 turns"]);
    let mut raised = log_of(&events).await.limits(limits(4));
    raised.reopen().await.unwrap();
    assert_eq!(play(&pair(sequential(), None), &mut raised).await, "I see 5");
    let after = told(&raised.events().await);
    assert_eq!(after[6..], ["reopened, sent: false", "Ann: I see 4", "Bob: I see 5", SPOKEN]);
}

#[tokio::test]
async fn a_private_turn_that_sums_up_answers_no_message() {
    let mut log = log().await;
    let summarized = with_summary_by(sequential(), name("Ann"), |_| "Sum up.".into());
    let chat = pair(summarized, Some((log.handle(), PRICE)));
    play(&chat, &mut log).await;
    assert_eq!((reopened(&log.events().await), log.turns().await), (1, 4));
    let transcript = log.transcript().await.unwrap();
    assert_eq!(seen_by("Ann", &transcript).matches(PRICE).count(), 1);
}

#[tokio::test]
async fn a_call_of_an_agent_has_one_reply_whatever_is_sent_meanwhile() {
    let log = log().await;
    let ann = counter("Ann", Some((log.handle(), PRICE)));
    for nth in 1..=2 {
        log.call(&ann, "go").await.unwrap();
        let told = told(&log.events().await);
        let count = |start: &str| told.iter().filter(|line| line.starts_with(start)).count();
        assert_eq!((count("Ann: "), count("sent: "), count("closed: ")), (nth, 1, nth), "{told:?}");
    }
}

fn texts(report: &Report) -> Vec<String> {
    report.messages.iter().map(|message| message.text().into_owned()).collect()
}

#[tokio::test]
async fn the_report_of_the_last_run_begins_with_the_message_for_which_the_chat_was_reopened() {
    let mut log = log().await;
    let chat = pair(sequential(), Some((log.handle(), PRICE)));
    play(&chat, &mut log).await;
    let events = log.events().await;
    let last = Report::of_last_run(&events);
    assert_eq!(texts(&last), [PRICE, "I see 4", "I see 5"]);
    let transcript = log.transcript().await.unwrap();
    assert_eq!(last.messages.len() as u64, transcript.message_count(), "as the chat counts them");
    let all = Report::of_all_runs(&events);
    assert_eq!(texts(&all), ["go", "I see 1", "I see 2", PRICE, "I see 4", "I see 5"]);
    let reopened = events.iter().position(|event| matches!(event.body, Body::Reopened { .. })).unwrap();
    let before = Report::of_last_run(&events[..reopened]);
    assert_eq!((texts(&before), &*before.summary), (texts(&all)[..4].to_vec(), "I see 2"));
    // Reopened and nothing more.
    let begun = Report::of_last_run(&events[..=reopened]);
    assert_eq!((texts(&begun), begun.reason), (vec![PRICE.to_owned()], None));
}

#[tokio::test]
async fn a_result_that_stays_is_reported_as_truncated() {
    let mut log = log().await.limits(Limits { turns: Some(1), ..Limits::default() });
    let outside = log.handle();
    let bob = Function::new("Bob", move |_| {
        drop(outside.send(Message::new(Name::user(), PRICE)));
        Ok(Act::Say(vec![Part::text("half"), Part::Cut(FinishReason::Length)]))
    });
    let chat = Chat::builder("solo").participant(bob.unwrap()).policy(sequential()).build().unwrap();
    assert_eq!(play(&chat, &mut log).await, "half");
    let events = log.events().await;
    assert_eq!(reopened(&events), 1);
    let report = Report::of_last_run(&events);
    assert_eq!((texts(&report), &*report.summary), (vec![PRICE.to_owned()], "half"));
    assert_eq!(report.cut, Some(FinishReason::Length));
}
