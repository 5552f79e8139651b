//! What a run costs, and for what: items 46 and 47.

use std::sync::Arc;

use polylogue::policies::order::{SUMMARY_PROMPT, with_summarizer};
use polylogue::policies::{Selector, with_termination};
use polylogue::runs::Report;
use polylogue::runs::report::Purpose;
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, Group, Limits, Message, Name, round_robin, sequential};
use polylogue_core::{
    CacheSavings, DeltaSink, Event, Model, ModelError, Money, Reply, Request, TotalUsage, Usage,
};
use polylogue_models::Cache;

use crate::stage::{log, name, run, script};

/// A model at a cent for every call of known size.
struct Priced(AnyModel);

impl Model for Priced {
    fn name(&self) -> &str {
        self.0.name()
    }
    async fn complete(&self, request: &Request<'_>, deltas: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        self.0.complete(request, deltas).await
    }
    fn cost(&self, usage: &Usage) -> Option<Money> {
        usage.total().map(|_| Money::dollars(0.01))
    }
}

/// A priced model in which every agent named says its own name each time, for 7 tokens read and 3 written.
fn model(who: &[&str]) -> AnyModel {
    let step =
        |who: &&str| format!(r#"{{"{who}": {{"say": "{who}", "usage": {{"input": 7, "output": 3}}}}}}"#);
    let steps: Vec<String> = (0..9).flat_map(|_| who.iter().map(step)).collect();
    AnyModel::new(Priced(script(&format!("[{}]", steps.join(", ")))))
}

fn assistant(who: &str, model: &AnyModel) -> Assistant {
    Assistant::new(who, model.clone()).unwrap()
}

/// The usage of so many calls, none of them from a cache.
fn usage(calls: u64) -> CacheSavings {
    let cost = Money { picodollars: calls * Money::dollars(0.01).picodollars };
    CacheSavings { calls, tokens: 10 * calls, cost }
}

/// Without replies from a cache.
fn spent(usage: &TotalUsage) -> CacheSavings {
    CacheSavings { calls: usage.calls, tokens: usage.tokens(), cost: usage.cost }
}

#[tokio::test]
async fn a_cached_reply_adds_only_to_what_it_would_have_cost() {
    // item 46, trap T28
    let cache = Cache::memory();
    let chat = || {
        let [ann, bob] =
            ["Ann", "Bob"].map(|who| assistant(who, &AnyModel::new(cache.around(model(&[who])))));
        let policy = with_termination(round_robin(), max_turns(2));
        Chat::builder("pair").participant(ann).participant(bob).policy(policy).build().unwrap()
    };
    let first = Report::of_last_run(&run(&chat(), "go").await.1);
    assert_eq!((spent(&first.usage), first.usage.saved), (usage(2), usage(0)));
    let second = Report::of_last_run(&run(&chat(), "go").await.1);
    assert_eq!((spent(&second.usage), second.usage.saved), (usage(0), usage(2)));
    assert_eq!(second.messages, first.messages);
    // Per model, too.
    assert_eq!(second.usage_of(|row| &*row.model == "script:test").saved, usage(2));
    assert_eq!(second.usage_of(|row| &*row.model == "other:model"), TotalUsage::default());
}

#[tokio::test]
async fn without_a_cache_every_call_is_made() {
    // trap T28: there is none unless one is made
    let chat = || {
        let chat = Chat::builder("solo").participant(assistant("Ann", &model(&["Ann"])));
        chat.policy(sequential()).build().unwrap()
    };
    for _ in 0..2 {
        let report = Report::of_last_run(&run(&chat(), "go").await.1);
        assert_eq!(spent(&report.usage), usage(1));
    }
}

/// A group with a selector and a nested chat, both with summaries.
fn group() -> Chat {
    let model = model(&["Ann", "Inner", "Picker", "Summary", "Inners_summary"]);
    let inner = Chat::builder("Bob").participant(assistant("Inner", &model));
    let inner = with_summarizer(inner, assistant("Inners_summary", &model), SUMMARY_PROMPT, sequential())
        .build()
        .unwrap();
    let picker = Selector::new("Picker", picks()).unwrap();
    let group =
        Chat::builder("group").participant(assistant("Ann", &model)).participant(inner).private_agent(picker);
    let policy = with_termination(Group::select_by_name(name("Picker")), max_turns(2));
    with_summarizer(group, assistant("Summary", &model), SUMMARY_PROMPT, policy).build().unwrap()
}

/// Selects Ann and Bob by turns.
fn picks() -> AnyModel {
    let step = |who| format!(r#"{{"Picker": {{"say": "{who}", "usage": {{"input": 7, "output": 3}}}}}}"#);
    let steps: Vec<String> = ["Ann", "Bob", "Ann", "Bob"].iter().map(step).collect();
    AnyModel::new(Priced(script(&format!("[{}]", steps.join(", ")))))
}

/// The rows of a report: where, who, for what, and how many calls.
fn rows(report: &Report) -> Vec<String> {
    let shown = |row: &polylogue::runs::report::Row| {
        format!("{:8} {} {:?} {}", row.chat.as_str(), row.who, row.purpose, row.usage.calls)
    };
    report.rows.iter().map(shown).collect()
}

#[tokio::test]
async fn every_call_of_a_run_is_attributed_and_no_other() {
    // item 47, trap T7
    let chat = group();
    let mut log = log().await;
    chat.run_in(&mut log, "go").await.unwrap();
    let once = [
        "         Ann Speaking 1",
        "         Picker Private 2",
        "         Summary Private 1",
        "/Bob.1   Inner Nested 1",
        "/Bob.1   Inners_summary Private 1",
    ];
    let first = Report::of_last_run(&log.events().await);
    assert_eq!(rows(&first), once);
    assert_eq!(spent(&first.usage), usage(6));
    assert_eq!(first.usage_of(|row| row.purpose == Purpose::Private).calls, 4);
    assert_eq!(first.usage, log.usage().await);

    chat.continue_with(&mut log, Message::new(Name::user(), "more")).await.unwrap();
    let events = log.events().await;
    let second = Report::of_last_run(&events);
    assert_eq!(rows(&second).iter().map(|row| row.replace("Bob.2", "Bob.1")).collect::<Vec<_>>(), once);
    let all = Report::of_all_runs(&events);
    assert_eq!((second.usage.calls, all.usage.calls), (6, 12));
    assert_eq!(all.usage, log.usage().await);
}

#[tokio::test]
async fn a_chat_in_a_private_turn_is_private_with_all_that_is_within() {
    // trap T7
    let model = model(&["Ann", "Deep"]);
    let deep =
        Chat::builder("deep").participant(assistant("Deep", &model)).policy(sequential()).build().unwrap();
    let judge = Chat::builder("judge").participant(deep).policy(sequential()).build().unwrap();
    let chat = Chat::builder("solo").participant(assistant("Ann", &model));
    let chat = with_summarizer(chat, judge, SUMMARY_PROMPT, sequential()).build().unwrap();
    let (_, events): (_, Vec<Arc<Event>>) = run(&chat, "go").await;
    let report = Report::of_last_run(&events);
    assert_eq!(rows(&report), ["         Ann Speaking 1", "/judge.1/deep.1 Deep Private 1"]);
    assert_eq!(&*report.summary, "Deep");
    // Seen from within, it is nested.
    let [judge] = &Report::chats(&events)[..] else { panic!("one chat took part") };
    assert_eq!(rows(judge), ["/judge.1/deep.1 Deep Nested 1"]);
    assert_eq!((judge.chat.as_str(), &*judge.summary, judge.messages.len()), ("/judge.1", "Deep", 2));
}

#[tokio::test]
async fn a_turn_that_a_limit_left_open_is_of_the_run_that_finishes_it() {
    // trap T7
    let model = model(&["Ann", "Summary"]);
    let chat = Chat::builder("solo").participant(assistant("Ann", &model));
    let chat =
        with_summarizer(chat, assistant("Summary", &model), SUMMARY_PROMPT, sequential()).build().unwrap();
    let mut log = log().await.limits(Limits { calls: Some(1), ..Limits::default() });
    chat.run_in(&mut log, "go").await.unwrap();
    assert_eq!(rows(&Report::of_last_run(&log.events().await)), ["         Ann Speaking 1"]);
    let mut log = log.limits(Limits::default());
    chat.continue_with(&mut log, Message::new(Name::user(), "more")).await.unwrap();
    let report = Report::of_last_run(&log.events().await);
    assert_eq!(rows(&report), ["         Ann Speaking 1", "         Summary Private 2"]);
}

#[test]
fn a_report_of_nothing_is_empty() {
    let report = Report::of_last_run(&[]);
    assert_eq!((report.reason, report.messages.len(), report.rows.len()), (None, 0, 0));
}
