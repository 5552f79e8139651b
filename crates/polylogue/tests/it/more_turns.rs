//! Conversations that a limit ended and that continue for more, and limits on turns that run in parallel.

use std::sync::Arc;

use crate::common::{log, log_in, log_of, name, script, talk};
use polylogue::policies::with_termination;
use polylogue::stop::{LibraryStopReason, Stop, max_cost, max_messages, max_tokens, max_turns, says};
use polylogue::{
    Act, AnyModel, Assistant, Chat, Function, Graph, Limits, Log, Message, Policy, Status, Step, Transcript,
    parallel, round_robin,
};
use polylogue_core::{
    AnyStore, Body, Condition, Event, LimitOverrides, Money, Part, Path, StopReason, Timestamp, TurnRequest,
};
use polylogue_models::Script;
use polylogue_store::Memory;
use polylogue_test::cut::uncharged;

fn words() -> Script {
    script(
        r#"[{"A": "1"}, {"B": "2"}, {"A": "3"}, {"B": "4"}, {"A": "5"}, {"B": "6"}, {"A": "7"}, {"B": "8"}]"#,
    )
}

fn pair(policy: impl Policy, most: u64) -> Chat {
    let script = words();
    let speaker = |who: &str| Assistant::new(who, AnyModel::new(script.model("test"))).unwrap();
    let chat = Chat::builder("pair").participant(speaker("A")).participant(speaker("B"));
    chat.policy(policy).max_turns(most).build().unwrap()
}

const fn turns(more: u64) -> LimitOverrides {
    LimitOverrides {
        turns: Some(more),
        calls: None,
        tokens: None,
        cost: None,
        time_ms: None,
        reply_tokens: None,
        on_limit: None,
    }
}

/// Runs the chat to its end, then for 3 turns more.
async fn continued(chat: &Chat, log: &mut Log) -> StopReason {
    chat.run_in(log, "go").await.unwrap();
    assert_eq!(log.turns().await, 2);
    let (limits, none) = (Limits::default(), LimitOverrides::default());
    assert!(chat.ends_again(log, &limits, none).await.unwrap().is_some(), "without more, it ends at once");
    assert_eq!(chat.ends_again(log, &limits, turns(3)).await.unwrap(), None);
    log.reopen_for(turns(3)).await.unwrap();
    let Status::Closed { reason, .. } = chat.resume(log).await.unwrap().status else { panic!() };
    assert_eq!(log.turns().await, 5);
    reason
}

#[tokio::test]
async fn a_chat_that_counts_its_turns_continues_for_more_of_them() {
    let stops: [fn() -> Stop; 4] = [
        || max_turns(2),
        || max_messages(3),
        || Stop::from(says("DONE")) | max_turns(2),
        || Stop::from(says("2")) & max_turns(2),
    ];
    for stop in stops {
        let chat = pair(with_termination(round_robin(), stop()), 100);
        let reason = continued(&chat, &mut log().await).await;
        assert!(reason.to_string().contains(" of "), "{reason}");
    }
    let reason = continued(&pair(round_robin(), 2), &mut log().await).await;
    assert_eq!(reason, StopReason::Turns { limit: 5, next: None });
}

#[tokio::test]
async fn what_was_allowed_is_in_the_log_wherever_it_is_cut() {
    let chat = || pair(with_termination(round_robin(), max_turns(2)), 100);
    let mut whole = log().await;
    continued(&chat(), &mut whole).await;
    let whole = whole.events().await;
    let reopened = whole.iter().position(|event| matches!(event.body, Body::Reopened { .. })).unwrap();
    for cut in reopened + 1..=whole.len() {
        let mut log = log_of(&whole[..cut]).await;
        chat().resume(&mut log).await.unwrap();
        let bodies = |events: &[Arc<Event>]| -> Vec<Body> {
            uncharged(events).iter().map(|event| event.body.clone()).collect()
        };
        assert_eq!(bodies(&log.events().await), bodies(&whole), "cut before event {cut}");
    }
}

/// The transcript after `body` in the outermost chat.
fn after(mut chat: Transcript, body: Body) -> Transcript {
    let seq = chat.events().last().unwrap().seq + 1;
    chat.apply(Arc::new(Event { seq, chat: Path::root(), time: Timestamp(0), ran_ms: 0, inbox: None, body }))
        .unwrap();
    chat
}

#[test]
fn more_tokens_and_money_are_allowed_and_a_message_counts_both_from_0() {
    // Two turns of 10 tokens and a cent.
    let chat = talk(&[("user", "go"), ("A", "1"), ("B", "2")]);
    let (tokens, cost) = (max_tokens(20), max_cost(Money::dollars(0.02)));
    assert!(tokens.now(&chat).is_some() && cost.now(&chat).is_some());
    let more =
        LimitOverrides { tokens: Some(1), cost: Some(Money::dollars(0.01)), ..LimitOverrides::default() };
    let reopened = after(chat.clone(), Body::Reopened { message: None, more, sent: false });
    assert!(tokens.now(&reopened).is_none() && cost.now(&reopened).is_none());
    assert_eq!((reopened.raised().tokens, reopened.raised().cost), (21, Money::dollars(0.03)));
    let asked = after(reopened, Body::reopened(Some(Message::new(name("user"), "more"))));
    assert_eq!((asked.tokens(), asked.cost(), asked.raised().tokens), (0, Money::default(), 0));
    assert!(tokens.now(&asked).is_none() && cost.now(&asked).is_none());
}

/// Rounds in which all speak at once.
fn rounds(chat: &Transcript) -> Step {
    Step::Parallel(chat.participants().iter().cloned().map(TurnRequest::to_all).collect())
}

fn says_yes(who: &str) -> Function {
    Function::new(who, |_| Ok(Act::Say(vec![Part::text("yes")]))).unwrap()
}

#[tokio::test]
async fn a_round_in_parallel_that_does_not_fit_does_not_begin() {
    let four = |most: u64| {
        let chat = ["A", "B", "C", "D"]
            .into_iter()
            .fold(Chat::builder("four"), |chat, who| chat.participant(says_yes(who)));
        chat.policy(rounds).max_turns(most).build().unwrap()
    };
    for (limit, taken) in [(2, 0), (4, 4), (6, 4), (8, 8)] {
        let next = (taken < limit).then_some(4);
        // As a limit of the run, and as one of the chat.
        for (turns, most) in [(Some(limit), 100), (None, limit)] {
            let mut log = log().await.limits(Limits { turns, ..Limits::default() });
            let Status::Closed { reason, .. } = four(most).run_in(&mut log, "go").await.unwrap().status
            else {
                panic!()
            };
            assert_eq!((log.turns().await, &reason), (taken, &StopReason::Turns { limit, next }));
            assert!(next.is_none() || reason.to_string().contains("4 parallel turns"), "{reason}");
        }
    }
}

#[tokio::test]
async fn chats_in_parallel_take_no_more_turns_together_than_are_allowed() {
    let inner = |who: &str| {
        let chat = Chat::builder(who).participant(says_yes("X")).participant(says_yes("Y"));
        chat.policy(with_termination(round_robin(), max_turns(4))).build().unwrap()
    };
    for limit in 1..=12 {
        let chat = ["P", "Q", "R"]
            .into_iter()
            .fold(Chat::builder("three"), |chat, who| chat.participant(inner(who)));
        let chat = chat.policy(with_termination(rounds, max_turns(3))).build().unwrap();
        let mut log = log_in(AnyStore::new(Memory::default()), "nested").await;
        log = log.limits(Limits { turns: Some(limit), ..Limits::default() });
        chat.run_in(&mut log, "go").await.unwrap();
        let said = |event: &&Arc<Event>| !event.chat.is_root() && matches!(event.body, Body::Message(_));
        let taken = log.events().await.iter().filter(said).count() as u64;
        // A round of three does not begin under a limit of two.
        assert_eq!(taken, if limit < 3 { 0 } else { limit }, "under {limit}");
    }
}

/// Two agents that end the chat in their first turns, and one that does not.
fn of_stoppers(policy: impl Policy) -> Chat {
    let stopper = |who: &str| {
        let agent = Function::new(who, |turn| match turn.transcript().turns_begun_by(turn.me()) {
            1 => Ok(Act::Stop(LibraryStopReason::Rounds { limit: 1 }.into())),
            _ => Ok(Act::say("done")),
        });
        agent.unwrap()
    };
    let last = Function::new("C", |_| Ok(Act::say("end"))).unwrap();
    let chat = Chat::builder("group").participant(stopper("A")).participant(stopper("B")).participant(last);
    chat.policy(policy).build().unwrap()
}

#[tokio::test]
async fn all_agents_that_ended_the_chat_have_another_turn_when_it_continues() {
    let graph = Graph::builder(["A", "B", "C"]).edge(("A", "C")).edge(("B", "C")).build().unwrap();
    let bodies = |events: &[Arc<Event>]| events.iter().map(|event| event.body.clone()).collect::<Vec<_>>();
    for (chat, said) in [
        (of_stoppers(parallel()), ["C: end", "A: done", "B: done"]),
        (of_stoppers(graph), ["A: done", "B: done", "C: end"]),
    ] {
        let mut first = log().await;
        chat.run_in(&mut first, "go").await.unwrap();
        first.reopen().await.unwrap();
        let reopened = first.events().await.len();
        chat.resume(&mut first).await.unwrap();
        let whole = first.events().await;
        for cut in reopened..=whole.len() {
            let mut log = log_of(&whole[..cut]).await;
            chat.resume(&mut log).await.unwrap();
            let transcript = log.transcript().await.unwrap();
            let line = |text: &Message| format!("{}: {}", text.from, text.text());
            assert_eq!(transcript.replies().map(|reply| line(&reply.message)).collect::<Vec<_>>(), said);
            assert_eq!(bodies(&log.events().await), bodies(&whole), "cut before event {cut}");
        }
    }
}
