//! Invariants 6 and 7 for sequences, graphs of chats and nested replies, with people and tools in them: a log cut anywhere and
//! run again becomes the same log.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::common::{cut_with_answers, log_of, name, run_or_resume, script};
use polylogue::Message;
use polylogue::layers::reply::{Stack, Trigger, when};
use polylogue::layers::{Nested, OuterContext};
use polylogue::policies::order::SUMMARY_PROMPT;
use polylogue::policies::with_summary;
use polylogue::policies::{
    Carryover, Dag, WithCarryover, last_message_without, with_summary_by, with_termination,
};
use polylogue::stop::max_turns;
use polylogue::tools::GetHistory;
use polylogue::{Agent, Assistant, Chat, Human, Status, round_robin, sequential};
use polylogue_core::{AnyAgent, Body, Event};
use polylogue_models::Script;
use polylogue_test::cut::Calls;

async fn check(chat: impl Fn(&Calls) -> Chat, answers: &[&'static str]) -> Vec<Arc<Event>> {
    cut_with_answers("go", chat, answers).await
}

fn assistant(who: &str, calls: &Calls, script: &Script) -> AnyAgent {
    let model = calls.through(script.model("test"));
    AnyAgent::new(Assistant::new(who, model).unwrap().tool(GetHistory::default()))
}

fn human(who: &str) -> AnyAgent {
    AnyAgent::new(Human::new(who).unwrap())
}

/// A chat of `agents` in which the first says `carry`, and then `turns` turns are taken.
fn chat_of(chat: &str, agents: &[&AnyAgent], turns: u64, carry: &Carryover) -> Chat {
    let builder = agents.iter().fold(Chat::builder(chat), |chat, agent| chat.participant((*agent).clone()));
    let carry = carry.clone().author(agents[0].name().clone());
    let policy =
        with_summary(with_termination(round_robin(), max_turns(turns)), last_message_without("TERMINATE"));
    carry.apply_to(builder).policy(policy).build().unwrap()
}

fn said(events: &[Arc<Event>], at: &str) -> Vec<String> {
    let here = events.iter().filter(|event| event.chat.as_str() == at);
    let said = here.filter_map(|event| match &event.body {
        Body::Opened(opening) => opening.messages.last(),
        Body::Message(message) => Some(message),
        _ => None,
    });
    said.map(|message| format!("{}: {}", message.from, message.text())).collect()
}

#[tokio::test]
async fn a_sequence_with_a_person_a_tool_a_continued_history_and_a_skipped_chat() {
    let script = script(
        r#"[{"Bob": {"say": "Let me look", "calls": [{"tool": "get_history"}]}}, {"Bob": "one TERMINATE"},
            {"Ann": "more?"}, {"Bob": "two"}, {"Bob": "three"}, {"Judge": "all in all"}]"#,
    );
    let chat = |calls: &Calls| {
        let [ann, bob, judge] = ["Ann", "Bob", "Judge"].map(|who| assistant(who, calls, &script));
        let kept = Chat::builder("again").participant(ann.clone()).participant(bob.clone());
        let kept = Carryover::message("And now?").author(name("Ann")).apply_to(kept);
        let kept = kept
            .continues(name("first"))
            .policy(with_termination(round_robin(), max_turns(1)))
            .build()
            .unwrap();
        let skipped = chat_of("skipped", &[&ann, &bob], 9, &Carryover::task());
        Chat::builder("work")
            .participant(chat_of("first", &[&ann, &bob], 3, &Carryover::task()))
            .participant(WithCarryover::new(skipped, Carryover::custom(|_, _| String::new())))
            .participant(chat_of(
                "asked",
                &[&human("Me"), &human("You")],
                2,
                &Carryover::message("Well?").context("note"),
            ))
            .participant(kept)
            .private_agent(judge)
            .policy(with_summary_by(sequential(), name("Judge"), |_| SUMMARY_PROMPT.into()))
            .build()
            .unwrap()
    };
    let log = check(chat, &["fine", ""]).await;
    assert_eq!(
        said(&log, ""),
        ["user: go", "first: two", "asked: fine", "again: three", "Judge: all in all"]
    );
    assert_eq!(said(&log, "/asked.1"), ["Me: Well?\nContext: \nnote\ntwo", "You: fine"]);
    assert_eq!(said(&log, "/again.1")[0], "Ann: And now?\nContext: \ntwo\nfine");
    assert!(said(&log, "/skipped.1").is_empty());
}

#[tokio::test]
async fn a_graph_of_chats_with_a_person_and_a_tool() {
    let script = script(
        r#"[{"Bob": {"calls": [{"tool": "get_history"}]}}, {"Bob": "facts"}, {"Cid": "prices"}, {"Dora": "report"}]"#,
    );
    let chat = |calls: &Calls| {
        let [bob, cid, dora] = ["Bob", "Cid", "Dora"].map(|who| assistant(who, calls, &script));
        let order = Dag::new([
            ("facts", vec![]),
            ("prices", vec![]),
            ("wishes", vec![]),
            ("report", vec!["facts", "prices", "wishes"]),
        ]);
        let order = order.unwrap();
        let me = human("Me");
        Chat::builder("work")
            .participant(chat_of(
                "report",
                &[&me, &dora],
                1,
                &Carryover::message("Report").dependencies_of(&order),
            ))
            .participant(chat_of("facts", &[&cid, &bob], 1, &Carryover::task()))
            .participant(chat_of("prices", &[&bob, &cid], 1, &Carryover::task()))
            .participant(chat_of("wishes", &[&bob, &me], 1, &Carryover::task()))
            .policy(order)
            .build()
            .unwrap()
    };
    let log = check(chat, &["soon"]).await;
    assert_eq!(said(&log, "/report.1"), ["Me: Report\nContext: \nfacts\nprices\nsoon", "Dora: report"]);
}

/// The log of `chat` that begins with `prefix`.
async fn from(prefix: &[Arc<Event>], chat: &Chat) -> Vec<Arc<Event>> {
    let mut log = log_of(prefix).await;
    let run = run_or_resume(chat, &mut log, "go").await.unwrap();
    assert!(matches!(run.status, Status::Closed { .. }));
    log.events().await
}

/// What happened in each chat, apart from the others.
fn apart(events: &[Arc<Event>]) -> BTreeMap<String, Vec<Body>> {
    let mut chats: BTreeMap<String, Vec<Body>> = BTreeMap::new();
    for event in polylogue_test::cut::uncharged(events) {
        chats.entry(event.chat.to_string()).or_default().push(event.body.clone());
    }
    chats
}

/// Chats that run at the same time are in the log as it happened, and after a cut it may happen at another pace.
#[tokio::test(start_paused = true)]
async fn what_is_said_in_chats_at_the_same_time_does_not_depend_on_who_is_faster() {
    let script = script(
        r#"[{"Bob": {"say": "b1", "delay_ms": 30}}, {"Ann": {"say": "a1", "delay_ms": 10}},
            {"Bob": {"say": "b2", "delay_ms": 10}}, {"Cid": {"say": "c1", "delay_ms": 20}},
            {"Dan": {"say": "d1", "delay_ms": 20}}, {"Cid": {"say": "c2", "delay_ms": 20}}, {"Eve": "e1"}]"#,
    );
    let order = Dag::new([("one", vec![]), ("two", vec![]), ("end", vec!["two", "one"])]).unwrap();
    let calls = Calls::default();
    let [ann, bob, cid, dan, eve] =
        ["Ann", "Bob", "Cid", "Dan", "Eve"].map(|who| assistant(who, &calls, &script));
    let chat = Chat::builder("work")
        .participant(chat_of("one", &[&ann, &bob], 3, &Carryover::task()))
        .participant(chat_of("two", &[&dan, &cid], 3, &Carryover::task()))
        .participant(chat_of("end", &[&ann, &eve], 1, &Carryover::task().dependencies_of(&order)))
        .policy(order)
        .build()
        .unwrap();
    let whole = from(&[], &chat).await;
    assert_eq!(said(&whole, "/end.1")[0], "Ann: go\nContext: \nb2\nc2");
    for cut in 1..whole.len() {
        let before = calls.made();
        let again = from(&whole[..cut], &chat).await;
        assert_eq!(apart(&whole), apart(&again), "cut before event {cut}");
        let left = whole[cut..].iter().filter(|event| matches!(event.body, Body::ModelReplied(_))).count();
        assert_eq!(calls.made() - before, left as u64, "no call is made twice");
    }
}

#[tokio::test]
async fn a_reply_worked_out_in_a_chat_with_a_person_and_a_reflection() {
    let script = script(
        r#"[{"Sam": "They want a poem."}, {"Poet": {"calls": [{"tool": "get_history"}]}}, {"Poet": "a poem"},
            {"Clerk": "as I said"}]"#,
    );
    let chat = |calls: &Calls| {
        let [poet, sam, clerk] = ["Poet", "Sam", "Clerk"].map(|who| assistant(who, calls, &script));
        let inner = Chat::builder("inner")
            .participant(chat_of("poem", &[&clerk, &poet], 1, &Carryover::task()))
            .participant(chat_of("check", &[&clerk, &human("Me")], 1, &Carryover::message("Is it good?")))
            .policy(sequential())
            .build()
            .unwrap();
        let nested =
            Nested::new(inner).context(OuterContext::summarized_by(sam, "What do they want?").unwrap());
        let asks = Trigger::received(|line| line.message.text().contains("please"));
        let stack = Stack::new("Clerk").unwrap().then(when(asks, nested)).then(clerk);
        Chat::builder("desk")
            .participant(human("Guest"))
            .participant(stack)
            .policy(with_termination(round_robin(), max_turns(4)))
            .opening(|_| Vec::<Message>::new())
            .build()
            .unwrap()
    };
    let log = check(chat, &["a poem please", "very good", "and now?"]).await;
    assert_eq!(
        said(&log, ""),
        ["Guest: a poem please", "Clerk: very good", "Guest: and now?", "Clerk: as I said"]
    );
    assert_eq!(said(&log, "/Clerk.1"), ["user: Guest: a poem please", "Sam: They want a poem."]);
    let begins = "user: a poem please\nContext: \nThey want a poem.";
    assert_eq!(said(&log, "/Clerk.1.2")[0], begins);
}

#[tokio::test]
async fn a_person_who_reflects_is_waited_for() {
    let script = script(r#"[{"Poet": "a poem"}]"#);
    let chat = |calls: &Calls| {
        let poet = assistant("Poet", calls, &script);
        let inner = Chat::builder("inner").participant(poet).policy(sequential()).build().unwrap();
        let nested = Nested::new(inner)
            .message(OuterContext::summarized_by(human("Me"), "What is it about?").unwrap());
        let stack = Stack::new("Clerk").unwrap().then(nested);
        Chat::builder("desk").participant(stack).policy(sequential()).build().unwrap()
    };
    let log = check(chat, &["about rain"]).await;
    assert_eq!(said(&log, "/Clerk.1.2"), ["user: about rain", "Poet: a poem"]);
}
