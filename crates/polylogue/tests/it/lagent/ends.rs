//! Calls that do not come to their end: stopped, given up, cut in the middle of being undone; and texts as they grow.

use std::sync::Arc;

use polylogue::agents::session::{ReplyStream, Stage};
use polylogue::{Act, Chat, Error, Function, Session, sequential};
use polylogue_core::{AnyAgent, Body, Event, Interrupt};
use polylogue_test::cut::uncharged;

use crate::common::log_of;
use crate::lagent::parts::{Blogger, agent, session};
use crate::stage::{run, script};

async fn session_of(events: &[Arc<Event>]) -> Session {
    Session::from_log(log_of(events).await)
}

/// L12, at every cut: a call that is given up leaves the session as it was before it, or as it was after.
#[tokio::test]
async fn whatever_the_cut_a_call_that_is_given_up_leaves_nothing() {
    let model = script(
        r#"[{"writer": "w1"}, {"critic": "c1"}, {"writer": "w2"}, {"writer": "w3"}, {"critic": {"error": {"message": "gone"}}},
            {"writer": "w4"}, {"critic": "c2"}, {"writer": "w5"}]"#,
    );
    let blogger = Blogger::new("blogger", &model, 1);
    let session = session().await;
    let mut states = vec![session.state(&blogger).await.unwrap()];
    for text in ["a", "b", "c"] {
        let _ = session.call(&blogger, text).await;
        states.push(session.state(&blogger).await.unwrap());
    }
    assert_eq!(states[1], states[2]);
    let events = session.log().events().await;
    for cut in 0..events.len() {
        let session = session_of(&events[..cut]).await;
        let was_open = session.roll_back(&blogger).await.unwrap();
        let state = session.state(&blogger).await.unwrap();
        assert!(states.contains(&state), "cut before {cut}, {:?}: {state:?}", events[cut]);
        assert!(!session.roll_back(&blogger).await.unwrap());
        assert_eq!(session.resume(&blogger).await.unwrap(), None);
        let begun = events[..cut].iter().rfind(|event| event.chat.is_root());
        let over = |event: &&Arc<Event>| {
            matches!(event.body, Body::Closed { .. } | Body::RolledBack { .. } | Body::Opened(_))
        };
        assert_eq!(was_open, begun.is_some_and(|event| !over(&event)), "cut before {cut}");
    }
}

/// C15.
#[tokio::test]
async fn a_cancelled_call_continues_later() {
    let bot = agent("bot", &script(r#"[{"bot": {"say": "one", "delay_ms": 60000}}, {"bot": "two"}]"#));
    let session = Arc::new(session().await);
    session.call(&AnyAgent::new(Function::new("first", |_| Ok(Act::say("hi"))).unwrap()), "x").await.unwrap();
    let cancel = session.log().cancellation();
    let calling = tokio::spawn({
        let (session, bot) = (Arc::clone(&session), bot.clone());
        async move { session.call(&bot, "go").await }
    });
    while session.log().events().await.len() < 8 {
        tokio::task::yield_now().await;
    }
    cancel.cancel_now();
    assert!(matches!(calling.await.unwrap(), Err(Error::Interrupt(Interrupt::Cancelled))));
    let error = session.call(&bot, "other").await.unwrap_err();
    assert!(error.to_string().contains("the conversation `test` has an open call"), "{error}");
    let other = agent("other", &script("[]"));
    let error = session.resume(&other).await.unwrap_err().to_string();
    assert!(error.contains("belongs to another agent than `other`"), "{error}");
    let fresh = session_of(&session.log().events().await).await;
    let quick = agent("bot", &script(r#"[{"bot": "one"}]"#));
    assert_eq!(fresh.resume(&quick).await.unwrap().unwrap().text(), "one");
}

/// An agent that left a chat is back when it is called again; its work in a chat starts with the turn request.
#[tokio::test]
async fn an_agent_that_left_is_back_when_it_is_called_again() {
    #[derive(Clone)]
    struct Twice(polylogue::Name, AnyAgent);
    impl polylogue::Agent for Twice {
        fn name(&self) -> &polylogue::Name {
            &self.0
        }
        async fn act(&self, turn: &mut polylogue::Turn<'_>) -> polylogue::Result<Act> {
            let first = turn.ask(&self.1, "leave").await;
            assert!(matches!(first, Err(Error::Interrupt(Interrupt::Ended { .. }))), "{first:?}");
            Ok(Act::Say(turn.ask(&self.1, turn.message()).await?.parts))
        }
    }
    let act = |turn: &polylogue::Turn<'_>| match &*turn.message().text() {
        "leave" => Ok(Act::Leave("tired".into())),
        text => Ok(Act::say(format!("heard {text}"))),
    };
    let twice = Twice("twice".try_into().unwrap(), AnyAgent::new(Function::new("bot", act).unwrap()));
    assert_eq!(session().await.call(&twice, "stay").await.unwrap().text(), "heard stay");
    let chat = Chat::builder("group").participant(twice).policy(sequential()).build().unwrap();
    let (_, events) = run(&chat, "stay").await;
    assert!(
        events
            .iter()
            .any(|event| matches!(&event.body, Body::Closed { summary, .. } if &**summary == "heard stay"))
    );
}

async fn follow(mut reply_stream: ReplyStream) -> Vec<(Stage, String, String)> {
    let mut seen = Vec::new();
    while let Some(update) = reply_stream.next().await {
        let done = update.stage == Stage::Done && update.chat.is_root();
        seen.push((update.stage, update.text, update.delta));
        if done {
            break;
        }
    }
    seen
}

/// L44: cumulative texts and deltas, then the whole once; only the whole is remembered.
#[tokio::test]
async fn texts_grow_by_pieces_and_only_the_whole_is_remembered() {
    let bot = agent(
        "bot",
        &script(
            r#"[{"bot": {"say": "Let me see.", "calls": [{"tool": "get_history"}]}}, {"bot": "one two three"}]"#,
        ),
    );
    let bot = bot.tool(polylogue::tools::GetHistory::default());
    let session = session().await;
    let following = tokio::spawn(follow(session.reply_stream().await));
    session.call(&bot, "go").await.unwrap();
    let seen = following.await.unwrap();
    let at = |stage: Stage| seen.iter().position(|(other, ..)| *other == stage).unwrap();
    assert!(at(Stage::Writing) < at(Stage::Calling) && at(Stage::Calling) < at(Stage::Returned));
    assert_eq!(seen.last().unwrap(), &(Stage::Done, "one two three".to_owned(), String::new()));
    assert_eq!(seen.iter().filter(|(stage, ..)| *stage == Stage::Done).count(), 1);
    let mut text = String::new();
    for (_, cumulative, delta) in
        seen[at(Stage::Returned) + 1..].iter().filter(|(stage, ..)| *stage == Stage::Writing)
    {
        text.push_str(delta);
        assert_eq!(*cumulative, text);
    }
    assert_eq!(text, "one two three");
    let state = session.state(&bot).await.unwrap();
    assert_eq!(state.get("memory").unwrap().last().unwrap().text(), "one two three");
}

/// Retries a failed call, and asks another agent when that fails, too.
#[derive(Clone)]
struct Stubborn(polylogue::Name, polylogue::Assistant, polylogue::Assistant);

impl polylogue::Agent for Stubborn {
    fn name(&self) -> &polylogue::Name {
        &self.0
    }
    async fn act(&self, turn: &mut polylogue::Turn<'_>) -> polylogue::Result<Act> {
        for _ in 0..2 {
            if let Ok(reply) = turn.ask(&self.1, turn.message()).await {
                return Ok(Act::Say(reply.parts));
            }
        }
        let reply = turn.ask(&self.2, turn.message()).await?;
        let first = turn.ask(&self.1, reply).await?;
        Ok(Act::Say(first.parts))
    }
}

/// An agent that continues after an error does the same when it is resumed, and the failed call is in no view.
#[tokio::test]
async fn an_agent_that_survives_a_failure_survives_it_again() {
    let steps = r#"[{"bad": {"error": {"message": "gone"}}}, {"bad": {"error": {"message": "gone again"}}}, {"good": "g"},
        {"bad": {"say": "back", "expect": {"last": "g"}}}]"#;
    let model = script(steps);
    let stubborn = Stubborn("stubborn".try_into().unwrap(), agent("bad", &model), agent("good", &model));
    let session = session().await;
    assert_eq!(session.call(&stubborn, "go").await.unwrap().text(), "back");
    let state = session.state(&stubborn).await.unwrap();
    let received: Vec<_> = state.get("bad.memory").unwrap().iter().map(|message| message.text()).collect();
    assert_eq!(received, ["g", "back"]);
    let events = session.log().events().await;
    let undone = events.iter().filter(|event| matches!(event.body, Body::RolledBack { .. })).count();
    assert_eq!(undone, 2);
    let mut cuts = 0;
    for cut in 3..events.len() {
        // Between a failure and the agent's next step, its continuation is not logged yet: then the call is retried.
        let last = events[..cut]
            .iter()
            .rfind(|event| matches!(event.body, Body::Failed { .. } | Body::RolledBack { .. }));
        if last.is_some_and(|event| matches!(event.body, Body::Failed { .. })) {
            continue;
        }
        cuts += 1;
        let fresh = session_of(&events[..cut]).await;
        let reply = fresh.resume(&stubborn).await.unwrap();
        assert!(reply.is_none_or(|reply| reply.text() == "back"));
        assert_eq!(
            uncharged(&fresh.log().events().await),
            uncharged(&events),
            "cut before {cut}, {:?}",
            events[cut]
        );
    }
    assert!(cuts > 15, "{cuts}");
}
