//! Turns that a limit left open, when the conversation continues under a higher one.

use std::sync::Arc;

use polylogue::{Act, AnyModel, Assistant, Chat, Function, Limits, Name, parallel};
use polylogue_core::{AnyAgent, Body, Event, LimitOverrides, Message};

use crate::common::{log_of, script};

fn calls(calls: u64) -> Limits {
    Limits { calls: Some(calls), ..Limits::default() }
}

/// What agents were called with, and what was said in the outermost chat.
fn story(events: &[Arc<Event>]) -> (Vec<String>, Vec<String>) {
    let asked = events.iter().filter_map(|event| match &event.body {
        Body::Reopened { message: Some(message), .. } if !event.at.is_root() => {
            Some(message.plain().into_owned())
        }
        _ => None,
    });
    let said = events.iter().filter_map(|event| match &event.body {
        Body::Message(message) if event.at.is_root() => {
            Some(format!("{}: {}", message.from, message.plain()))
        }
        _ => None,
    });
    (asked.collect(), said.collect())
}

/// In parallel, Ann says something, and Ref asks Crit twice about the message that he replies to.
fn panel() -> Chat {
    let script = script(
        r#"[{"Ann": "One."}, {"Crit": "Better."}, {"Crit": "Good."}, {"Ann": "Two."}, {"Crit": "Better."}, {"Crit": "Good."}]"#,
    );
    let assistant = |who: &str| Assistant::new(who, AnyModel::new(script.model("test"))).unwrap();
    let crit = AnyAgent::new(assistant("Crit"));
    let referee = Function::calling("Ref", [crit.clone()], move |turn| {
        let crit = crit.clone();
        Box::pin(async move {
            let message = turn.message();
            turn.ask(&crit, message.clone()).await?;
            Ok(Act::Say(turn.ask(&crit, message).await?.parts))
        })
    });
    Chat::named("panel")
        .participant(assistant("Ann"))
        .participant(referee.unwrap())
        .policy(parallel())
        .build()
        .unwrap()
}

/// The run ends at its limit when Ann has spoken and Ref has not: he still replies to what he replied to before.
#[tokio::test]
async fn a_parallel_turn_sees_the_chat_as_it_was_when_it_began() {
    for message in [None, Some("More.")] {
        let mut log = log_of(&[]).await.limits(calls(2));
        panel().run_in(&mut log, "Go.").await.unwrap();
        assert_eq!(story(&log.events().await).1, ["Ann: One."]);
        let continues = match message {
            None => log.reopen_for(LimitOverrides { calls: Some(18), ..LimitOverrides::default() }).await,
            Some(message) => log.continue_with(Message::text(Name::user(), message)).await,
        };
        continues.unwrap();
        let reopened = log.events().await;
        let resumed = async |prefix: &[Arc<Event>]| {
            let mut log = log_of(prefix).await.limits(calls(20));
            panel().resume(&mut log).await.unwrap();
            log.events().await
        };
        let whole = resumed(&reopened).await;
        let (asked, said) = story(&whole);
        assert_eq!(asked[..2], ["Go.", "Go."], "{message:?}");
        assert_eq!(said[..2], ["Ann: One.", "Ref: Good."], "{message:?}");
        for cut in reopened.len()..whole.len() {
            let again = resumed(&whole[..cut]).await;
            assert_eq!(story(&again), (asked.clone(), said.clone()), "{message:?}, cut before event {cut}");
        }
    }
}
