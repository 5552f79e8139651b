//! At a limit of the whole run, a person is asked to raise it.

use std::sync::Arc;

use crate::common::cents::Cents;
use crate::common::{into_reason, log_in, log_of, run_or_resume};
use polylogue::{AnyModel, Assistant, Chat, Limits, Log, Status, round_robin, sequential};
use polylogue_core::{
    Allowance, AnswerChoice, AnswerEffect, AnyStore, Body, ChatLimits, Event, Instruction, LimitOverrides,
    LimitRaise, Money, OnLimit, OpenQuestion, Path, Question, QuestionKind, RaiseTerms, Responder,
    StopReason, Timestamp,
};
use polylogue_store::Memory;
use polylogue_test::cut::uncharged;

/// Two who talk without end, within the turn of an outer chat.
fn chat(model: &Cents) -> Chat {
    let speaker = |who: &str| Assistant::new(who, AnyModel::new(model.clone())).unwrap();
    let pair = Chat::builder("pair").participant(speaker("A")).participant(speaker("B"));
    let pair = pair.policy(round_robin()).max_turns(40).build().unwrap();
    Chat::builder("team").participant(pair).policy(sequential()).build().unwrap()
}

const ASK: Limits = Limits {
    turns: None,
    calls: None,
    calls_per_run: 1_000,
    tokens: None,
    cost: None,
    time_ms: None,
    reply_tokens: None,
    allow_unknown_price: false,
    depth: 8,
    background: Limits::DEFAULT_BACKGROUND,
    on_limit: OnLimit::Ask,
    raise: RaiseTerms {
        ceiling: Allowance { calls: None, tokens: None, cost: None, time_ms: None },
        timeout_ms: None,
    },
    chat: ChatLimits { turns: None, messages: None, tokens: None, cost: None },
};

async fn asking(limits: Limits) -> Log {
    log_in(AnyStore::new(Memory::default()), "asking").await.limits(limits)
}

/// The log `events` as another process opens it.
async fn reopened(events: &[Arc<Event>], limits: Limits) -> Log {
    let limits = LimitOverrides::last_of(events).unwrap_or_default().apply_to(limits);
    log_of(events).await.limits(limits)
}

fn waiting(status: Status) -> (Path, Question) {
    let Status::Waiting(mut questions) = status else { panic!("{status:?}") };
    assert_eq!(questions.len(), 1);
    questions.remove(0)
}

/// Runs to a question, and answers those that come, until the chat closes.
async fn answered(log: &mut Log, chat: &Chat, answers: &[&str]) -> StopReason {
    let mut status = run_or_resume(chat, log, "go").await.unwrap().status;
    for answer in answers {
        let (at, question) = waiting(status);
        assert!(at.is_root() && question.is_about_limit() && question.who.as_str() == "team");
        log.answer(&at, &question.who, *answer).await.unwrap();
        status = chat.resume(log).await.unwrap().status;
    }
    into_reason(status)
}

fn changed(events: &[Arc<Event>]) -> Vec<LimitOverrides> {
    let limits = |event: &Arc<Event>| match event.body {
        Body::LimitsChanged { limits, .. } => Some(limits),
        _ => None,
    };
    events.iter().filter_map(limits).collect()
}

#[tokio::test]
async fn yes_allows_as_much_again_an_amount_that_much_and_no_ends_the_run() {
    let mut log = asking(Limits { turns: Some(2), ..ASK }).await;
    let chat = chat(&Cents::default());
    let (_, question) = waiting(chat.run_in(&mut log, "go").await.unwrap().status);
    let text = "The run has reached the limit of 2 turns. Allow 2 more turns?";
    assert_eq!((&*question.text, question.kind), (text, QuestionKind::Limit));
    let no = AnswerChoice::new("no", AnswerEffect::End).label("the run");
    assert_eq!(question.choices, [AnswerChoice::new("yes", AnswerEffect::Raise), no]);
    assert_eq!(question.limit.unwrap().example(), "5");
    // Running it without an answer changes nothing.
    let asked = log.events().await;
    waiting(chat.resume(&mut log).await.unwrap().status);
    assert_eq!(log.events().await, asked);
    let ended = answered(&mut log, &chat, &["yes", "3", "no, thanks"]).await;
    assert_eq!(ended, StopReason::Turns { limit: 7, next: None });
    let totals: Vec<_> = changed(&log.events().await).iter().map(|limits| limits.turns).collect();
    assert_eq!((log.turns().await, totals), (7, vec![Some(4), Some(7)]));
}

#[tokio::test]
async fn the_answer_and_the_raise_are_in_the_log_wherever_it_is_cut() {
    let limits = Limits { turns: Some(2), ..ASK };
    let answers = ["yes", "1", "no"];
    let mut whole = asking(limits).await;
    let ended = answered(&mut whole, &chat(&Cents::default()), &answers).await;
    let whole = whole.events().await;
    let bodies = |events: &[Arc<Event>]| -> Vec<String> {
        uncharged(events).iter().map(|event| kind(&event.body)).collect()
    };
    for cut in 1..whole.len() {
        let mut log = reopened(&whole[..cut], limits).await.clock(|| Timestamp(0));
        let given =
            whole[..cut].iter().filter(|event| matches!(event.body, Body::InputProvided { .. })).count();
        assert!(!log.may_have_lost_calls().await.unwrap() || OpenQuestion::of(&whole[..cut]).is_empty());
        let again = match matches!(whole[cut - 1].body, Body::Closed { .. }) {
            true => ended.clone(),
            false => answered(&mut log, &chat(&Cents::default()), &answers[given..]).await,
        };
        assert_eq!(again, ended, "cut before event {cut}");
        if !matches!(whole[cut - 1].body, Body::Closed { .. }) {
            assert_eq!(bodies(&log.events().await), bodies(&whole), "cut before event {cut}");
        }
    }
}

/// An event without the number of its call, which depends on the process.
fn kind(body: &Body) -> String {
    match body {
        Body::ModelReplied(reply) => format!("reply of {}", reply.who),
        Body::Message(message) => format!("message of {}", message.from),
        Body::Closed { reason, .. } => format!("closed: {reason}"),
        other => format!("{other:?}"),
    }
}

#[tokio::test]
async fn no_answer_raises_a_limit_above_the_ceiling_and_there_no_one_is_asked() {
    let raise =
        RaiseTerms { ceiling: Allowance { calls: Some(5), ..Allowance::default() }, timeout_ms: None };
    let model = Cents::default();
    let mut log = asking(Limits { calls: Some(2), raise, ..ASK }).await;
    let chat = chat(&model);
    let ended = answered(&mut log, &chat, &["yes", "1000"]).await;
    assert_eq!((ended, model.made()), (StopReason::Calls { limit: 5 }, 5));
    // What is asked is what is allowed.
    let texts: Vec<_> = log
        .events()
        .await
        .iter()
        .filter_map(|event| match &event.body {
            Body::InputRequired(question) => Some(question.text.to_string()),
            _ => None,
        })
        .collect();
    assert!(
        texts[0].contains("Allow 2 more model calls?") && texts[1].contains("Allow 1 more model call?"),
        "{texts:?}"
    );
}

#[tokio::test]
async fn money_is_never_above_what_was_agreed_and_yes_is_enough_for_the_next_call() {
    let model = Cents::default();
    // A call is reserved at 20 cents and costs 10.
    let mut log = asking(Limits { cost: Some(Money::dollars(0.25)), ..ASK }).await;
    let chat = chat(&model);
    let mut status = chat.run_in(&mut log, "go").await.unwrap().status;
    let mut agreed = Money::dollars(0.25);
    for answer in ["yes", "$0.15", "0.05", "yes", "yes"] {
        assert!(log.usage().await.cost <= agreed, "{:?} of {agreed:?}", log.usage().await.cost);
        let calls = model.made();
        let (at, question) = waiting(status);
        log.answer(&at, &question.who, answer).await.unwrap();
        status = chat.resume(&mut log).await.unwrap().status;
        agreed = changed(&log.events().await).last().unwrap().cost.unwrap();
        assert!(answer != "yes" || model.made() > calls, "a raise by yes lets the next call be sent");
    }
    assert!(log.usage().await.cost <= agreed);
}

#[tokio::test]
async fn no_answer_in_time_is_no_also_in_another_process() {
    let raise = RaiseTerms { timeout_ms: Some(1_000), ..RaiseTerms::default() };
    let limits = Limits { turns: Some(2), raise, ..ASK };
    let mut log = asking(limits).await;
    waiting(chat(&Cents::default()).run_in(&mut log, "go").await.unwrap().status);
    let asked = log.events().await;
    for (now, is_over) in [(999, false), (1_000, true)] {
        let mut log = reopened(&asked, limits).await.clock(move || Timestamp(now));
        let status = chat(&Cents::default()).resume(&mut log).await.unwrap().status;
        assert_eq!(matches!(status, Status::Closed { .. }), is_over, "after {now} ms");
        if is_over {
            assert_eq!(into_reason(status), StopReason::Turns { limit: 2, next: None });
            let by_timeout = |event: &Arc<Event>| {
                matches!(&event.body, Body::InputProvided { by: Responder::Timeout, .. })
            };
            assert!(log.events().await.iter().any(by_timeout));
        }
    }
}

#[tokio::test]
async fn a_run_that_continues_without_asking_ends_at_the_limit_of_its_question_wherever_it_is_cut() {
    let (asks, chat) = (Limits { turns: Some(2), ..ASK }, chat(&Cents::default()));
    let mut log = asking(asks).await;
    waiting(chat.run_in(&mut log, "go").await.unwrap().status);
    let asked = log.events().await;
    let stops = Limits { on_limit: OnLimit::Stop, ..asks };
    let mut log = reopened(&asked, stops).await;
    let ended = StopReason::Turns { limit: 2, next: None };
    assert_eq!(into_reason(chat.resume(&mut log).await.unwrap().status), ended);
    let whole = log.events().await;
    let new: Vec<String> = whole[asked.len()..].iter().map(|event| kind(&event.body)).collect();
    assert_eq!(new.len(), 2, "{new:?}");
    assert!(new[0].contains(r#"text: "stop""#) && new[1] == format!("closed: {ended}"), "{new:?}");
    let mut log = reopened(&whole[..=asked.len()], stops).await;
    assert_eq!(into_reason(chat.resume(&mut log).await.unwrap().status), ended, "cut after the answer");
    assert_eq!(log.events().await.len(), whole.len());
    // A limit that is higher now was raised. The next one ends the run, too.
    let mut log = reopened(&asked, Limits { turns: Some(3), ..stops }).await;
    let next = StopReason::Turns { limit: 3, next: None };
    assert_eq!(into_reason(chat.resume(&mut log).await.unwrap().status), next);
    let events = log.events().await;
    assert!(kind(&events[asked.len()].body).contains(r#"text: "raised""#));
    let asked = events.iter().filter(|event| matches!(event.body, Body::InputRequired(_)));
    assert_eq!(asked.count(), 1, "no person is asked at the next limit");
}

#[tokio::test]
async fn a_limit_that_is_raised_from_outside_answers_its_question() {
    let mut log = asking(Limits { turns: Some(2), ..ASK }).await;
    let chat = chat(&Cents::default());
    waiting(chat.run_in(&mut log, "go").await.unwrap().status);
    let more = LimitOverrides { turns: Some(3), ..LimitOverrides::default() };
    let raised = log.handle().instruct(Instruction::RaiseLimits { more, by: None });
    log.post_inbox().await.unwrap();
    raised.confirmed().await.unwrap();
    assert!(log.questions().await.unwrap().is_empty(), "the question is answered");
    assert_eq!(answered(&mut log, &chat, &["no"]).await, StopReason::Turns { limit: 5, next: None });
    assert_eq!(log.turns().await, 5);
}

/// What is given counts beyond what was used, which can be less than what was allowed: that is no raise.
#[tokio::test]
async fn a_raise_never_lowers_a_limit() {
    let mut log = asking(Limits { turns: Some(2), cost: Some(Money::dollars(9.0)), ..ASK }).await;
    let chat = chat(&Cents::default());
    waiting(chat.run_in(&mut log, "go").await.unwrap().status);
    let more = LimitOverrides { cost: Some(Money::dollars(1.0)), ..LimitOverrides::default() };
    let raised = log.handle().instruct(Instruction::RaiseLimits { more, by: None });
    log.post_inbox().await.unwrap();
    let refused = raised.confirmed().await.unwrap_err().to_string();
    assert!(refused.contains("it would lower the limit of $9.00 to $1."), "{refused}");
    for (more, expected) in [
        (LimitOverrides { tokens: Some(9), ..LimitOverrides::default() }, "the run has no limit on tokens"),
        (LimitOverrides { time_ms: Some(9), ..LimitOverrides::default() }, "the run has no limit on time"),
        (LimitOverrides { calls: Some(9), ..LimitOverrides::default() }, "the limit of 1000 model calls to "),
    ] {
        let raised = log.handle().instruct(Instruction::RaiseLimits { more, by: None });
        log.post_inbox().await.unwrap();
        let refused = raised.confirmed().await.unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    assert_eq!(changed(&log.events().await), []);
    assert_eq!(log.questions().await.unwrap().len(), 1, "the question stays");
}

#[tokio::test]
async fn no_one_is_asked_unless_that_is_set_or_where_no_answer_helps() {
    let model = Cents::default();
    let mut stops = asking(Limits { turns: Some(2), on_limit: OnLimit::Stop, ..ASK }).await;
    let status = chat(&model).run_in(&mut stops, "go").await.unwrap().status;
    assert_eq!(into_reason(status), StopReason::Turns { limit: 2, next: None });
    // A budget that other runs share is not raised with the limits of this run.
    let budget = polylogue_core::Budget::new("batch", Money::dollars(0.25));
    let mut shared = asking(Limits { cost: Some(Money::dollars(9.0)), ..ASK }).await.budget(budget);
    let status = chat(&model).run_in(&mut shared, "go").await.unwrap().status;
    let reason = into_reason(status).to_string();
    assert!(reason.starts_with("the batch has reached the limit of $0.25 ("), "{reason}");
}

#[test]
fn yes_or_an_amount_in_the_unit_of_the_limit_raises_it_and_all_else_does_not() {
    let none = LimitOverrides::default();
    let raise = |more| LimitRaise { reached: StopReason::Finished, more };
    let calls = raise(LimitOverrides { calls: Some(3), ..none });
    assert_eq!(calls.allowed_by(" Yes\n"), Some(calls.more));
    assert_eq!(calls.allowed_by("1,000"), Some(LimitOverrides { calls: Some(1_000), ..none }));
    let cost = raise(LimitOverrides { cost: Some(Money::dollars(1.0)), ..none });
    assert_eq!(cost.allowed_by("$0.50"), Some(LimitOverrides { cost: Some(Money::dollars(0.5)), ..none }));
    let time = raise(LimitOverrides { time_ms: Some(1), ..none });
    assert_eq!(time.allowed_by("5 min"), Some(LimitOverrides { time_ms: Some(300_000), ..none }));
    for (asked, refused) in [
        (
            calls,
            &["", "no", "n", "0", "-1", "1.5", "5,5", "1,0000", ",500", "1234,567", "$1", "yes please"][..],
        ),
        (cost, &["", "inf", "nan", "0", "-2", "$", "0,50"]),
        (time, &["", "5", "0s", "5 years", "99999999999999999999h", "9999999999999999999h"]),
    ] {
        for answer in refused {
            assert_eq!(asked.allowed_by(answer), None, "{answer}");
        }
    }
}
