//! Message in, message out: agents called directly in a session.

use std::sync::Arc;

use polylogue::{Error, Session};
use polylogue_core::{Body, Entry, Part};

use crate::lagent::parts::{Blogger, agent, session};
use crate::stage::{Spy, name, script};

fn texts(entries: &[Entry]) -> Vec<(&'static str, String)> {
    let text = |entry: &Entry| match entry {
        Entry::User { parts } => ("user", polylogue_core::text_of(parts).into_owned()),
        Entry::Assistant { parts, .. } => ("assistant", polylogue_core::text_of(parts).into_owned()),
        Entry::System { parts } => ("system", polylogue_core::text_of(parts).into_owned()),
        Entry::Tool { result: outcome, .. } => ("tool", outcome.text().into_owned()),
    };
    entries.iter().map(text).collect()
}

/// L01.
#[tokio::test]
async fn a_text_is_a_message_of_the_user() {
    let bot = agent("bot", &script(r#"[{"bot": "hello"}]"#));
    let session = session().await;
    session.call(&bot, "hi").await.unwrap();
    let state = session.state(&bot).await.unwrap();
    let memory = state.get("memory").unwrap();
    assert_eq!(memory[0].from, "user");
    assert_eq!(memory[0].text(), "hi");
    assert_eq!(memory.len(), 2);
}

/// L02, C02.
#[tokio::test]
async fn the_second_call_holds_the_first_with_its_own_reply_as_assistant() {
    let spy = Spy::on(script(r#"[{"bot": "one"}, {"bot": "two"}]"#));
    let bot = agent("bot", &spy.model());
    let session = session().await;
    session.call(&bot, "a").await.unwrap();
    assert_eq!(session.call(&bot, "b").await.unwrap().text(), "two");
    let asked = spy.asked();
    assert_eq!(asked[1].system.as_deref(), Some("I am bot."));
    let expected =
        [("user", "a"), ("assistant", "one"), ("user", "b")].map(|(role, text)| (role, text.to_owned()));
    assert_eq!(texts(&asked[1].entries), expected);
}

/// L04, L10: the sender is in the message; a peer's messages are user messages.
#[tokio::test]
async fn a_reply_is_signed_and_peers_are_users() {
    let spy = Spy::on(script(r#"[{"writer": "draft"}, {"critic": "bad"}]"#));
    let (writer, critic) = (agent("writer", &spy.model()), agent("critic", &spy.model()));
    let session = session().await;
    let draft = session.call(&writer, "go").await.unwrap();
    assert_eq!(draft.from, "writer");
    session.call(&critic, draft).await.unwrap();
    assert_eq!(texts(&spy.asked()[1].entries), [("user", "draft".to_owned())]);
    let state = session.state(&critic).await.unwrap();
    assert_eq!(state.get("memory").unwrap()[0].from, "writer");
}

/// L11, Z01: how an agent is called this once is up to the value that is given.
#[tokio::test]
async fn parameters_of_one_call_leave_the_next_alone() {
    let spy = Spy::on(script(r#"[{"bot": "1"}, {"bot": "2"}, {"bot": "3"}]"#));
    let cool = polylogue_core::Params { temperature: Some(0.2), ..Default::default() };
    let bot = agent("bot", &spy.model()).params(cool.clone());
    let session = session().await;
    session.call(&bot, "a").await.unwrap();
    let once = polylogue_core::Params {
        temperature: Some(1.0),
        stop: vec!["x".into()],
        ..bot.model_params().clone()
    };
    session.call(&bot.clone().params(once), "b").await.unwrap();
    session.call(&bot, "c").await.unwrap();
    let asked: Vec<_> =
        spy.asked().into_iter().map(|asked| (asked.params.temperature, asked.params.stop)).collect();
    assert_eq!(asked, [(Some(0.2), vec![]), (Some(1.0), vec!["x".to_owned()]), (Some(0.2), vec![])]);
}

/// L12: a failed call is in the log, undone, and in no later view.
#[tokio::test]
async fn a_failed_call_leaves_the_session_as_it_was() {
    let spy = Spy::on(script(
        r#"[{"writer": "w1"}, {"critic": "c1"}, {"writer": "w2"}, {"writer": "w3"}, {"critic": {"error": {"message": "gone"}}},
            {"writer": "w4"}, {"critic": "c2"}, {"writer": "w5"}]"#,
    ));
    let blogger = Blogger::new("blogger", &spy.model(), 1);
    let session = session().await;
    session.call(&blogger, "a").await.unwrap();
    let before = session.state(&blogger).await.unwrap();
    let error = session.call(&blogger, "b").await.unwrap_err();
    assert!(matches!(&error, Error::Within { at, .. } if at == "blogger.critic"), "{error:?}");
    assert!(error.to_string().contains("gone"));
    assert_eq!(session.state(&blogger).await.unwrap(), before);
    assert_eq!(session.call(&blogger, "b").await.unwrap().text(), "w5");
    let last = spy.asked().pop().unwrap();
    assert!(!texts(&last.entries).iter().any(|(_, text)| text == "w3"), "{:?}", last.entries);
    assert_eq!(texts(&last.entries).iter().filter(|(_, text)| text == "b").count(), 1);
    let events = session.log().events().await;
    assert_eq!(events.iter().filter(|event| matches!(event.body, Body::Failed { .. })).count(), 1);
    assert_eq!(session.log().usage().await.calls, 7);
}

#[tokio::test]
async fn a_first_call_that_fails_leaves_an_empty_session() {
    let bot = agent("bot", &script(r#"[{"bot": {"error": {"message": "gone"}}}, {"bot": "here"}]"#));
    let session = session().await;
    let error = session.call(&bot, "a").await.unwrap_err();
    assert!(matches!(error, Error::Model(_)), "the called agent is known: {error}");
    assert!(session.state(&bot).await.unwrap().get("memory").unwrap().is_empty());
    assert_eq!(session.call(&bot, "b").await.unwrap().text(), "here");
    assert_eq!(session.state(&bot).await.unwrap().get("memory").unwrap().len(), 2);
}

/// L15, Z08.
#[tokio::test]
async fn sessions_at_the_same_time_know_nothing_of_each_other() {
    let blogger =
        Blogger::new("blogger", &script(r#"[{"writer": "w1"}, {"critic": "c"}, {"writer": "w2"}]"#), 1);
    let topics = ["AI", "Biotechnology", "New Energy", "Video Games", "Pop Music"];
    let mut running = tokio::task::JoinSet::new();
    for topic in topics {
        let blogger = blogger.clone();
        running.spawn(async move {
            let session = session().await;
            session.call(&blogger, topic).await.unwrap();
            (topic, serde_json::to_string(&session.state(&blogger).await.unwrap()).unwrap())
        });
    }
    while let Some(done) = running.join_next().await {
        let (topic, state) = done.unwrap();
        for other in topics {
            assert_eq!(state.contains(other), other == topic, "{topic}: {state}");
        }
    }
}

/// L16.
#[tokio::test]
async fn calls_in_one_session_are_made_one_after_the_other() {
    let bot = agent(
        "bot",
        &script(
            r#"[{"bot": {"say": "1", "delay_ms": 20}}, {"bot": "2"}, {"bot": {"say": "3", "delay_ms": 5}}]"#,
        ),
    );
    let session: Arc<Session> = Arc::new(session().await);
    let mut running = tokio::task::JoinSet::new();
    for text in ["a", "b", "c"] {
        let (session, bot) = (Arc::clone(&session), bot.clone());
        running.spawn(async move { session.call(&bot, text).await.unwrap() });
    }
    while let Some(done) = running.join_next().await {
        done.unwrap();
    }
    let state = session.state(&bot).await.unwrap();
    let who: Vec<_> = state.get("memory").unwrap().iter().map(|message| message.from.to_string()).collect();
    assert_eq!(who, ["user", "bot", "user", "bot", "user", "bot"]);
}

/// L42.
#[tokio::test]
async fn a_writer_and_a_critic_make_a_call_each_per_round_and_one_more() {
    let spy = Spy::on(script(
        r#"[{"writer": "w1"}, {"critic": "c1"}, {"writer": "w2"}, {"critic": "c2"}, {"writer": "w3"}]"#,
    ));
    let mut blogger = Blogger::new("blogger", &spy.model(), 2);
    let mut options = polylogue_core::ViewOptions::default();
    options.prefix.insert(name("writer"), "Reflect on this:".into());
    blogger.critic = blogger.critic.view(options);
    let session = session().await;
    assert_eq!(session.call(&blogger, "roses").await.unwrap().text(), "w3");
    let asked = spy.asked();
    assert_eq!(asked.len(), 5);
    for asked in asked {
        let prefixed = texts(&asked.entries).iter().any(|(_, text)| text.starts_with("Reflect on this:\n\n"));
        assert_eq!(prefixed, asked.who == "critic");
    }
}

/// C16: an agent with nothing to say says nothing.
#[tokio::test]
async fn a_blank_reply_has_no_parts() {
    let passes = polylogue::Function::new("bot", |_| Ok(polylogue::Act::Pass)).unwrap();
    let blank = agent("bot", &script(r#"[{"bot": " \n"}]"#));
    for bot in [polylogue_core::AnyAgent::new(passes), polylogue_core::AnyAgent::new(blank)] {
        let reply = session().await.call(&bot, "hi").await.unwrap();
        assert_eq!(reply.parts, Vec::<Part>::new());
        assert_eq!(reply.from, "bot");
    }
}

#[tokio::test]
async fn an_agent_that_ends_instead_of_replying_says_why() {
    let bot = polylogue::Function::new("bot", |_| Ok(polylogue::Act::Leave("tired".into()))).unwrap();
    let bot = polylogue_core::AnyAgent::new(bot);
    let session = session().await;
    let error = session.call(&bot, "hi").await.unwrap_err();
    assert!(error.to_string().contains("`bot` did not reply"), "{error}");
    assert!(error.to_string().contains("tired"), "{error}");
    assert!(session.state(&bot).await.unwrap().get("memory").unwrap().is_empty());
}
