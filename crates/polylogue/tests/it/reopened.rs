//! Turns that a limit left open, when the conversation continues under a higher one.

use std::sync::Arc;

use polylogue::tools::agent_tool::AgentTool;
use polylogue::{Act, AnyModel, Assistant, Chat, Function, Human, Limits, Log, Name, parallel, sequential};
use polylogue_core::{
    Allowance, AnyAgent, Body, Error, Event, Interrupt, LimitOverrides, Message, Path, Progress, RunOutcome,
    StopReason, Summary,
};

use crate::common::{log_of, name, script};

fn calls(calls: u64) -> Limits {
    Limits { calls: Some(calls), ..Limits::default() }
}

/// What agents were called with, and what was said in the outermost chat.
fn story(events: &[Arc<Event>]) -> (Vec<String>, Vec<String>) {
    let asked = events.iter().filter_map(|event| match &event.body {
        Body::Reopened { message: Some(message), .. } if !event.chat.is_root() => {
            Some(message.text().into_owned())
        }
        _ => None,
    });
    let said = events.iter().filter_map(|event| match &event.body {
        Body::Message(message) if event.chat.is_root() => {
            Some(format!("{}: {}", message.from, message.text()))
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
    Chat::builder("panel")
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
            Some(message) => log.continue_with(Message::new(Name::user(), message)).await,
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

/// How far it got, as lists have it.
async fn progress(log: &Log) -> Progress {
    let events = log.events().await;
    Summary::of(events.iter().map(|event| &**event), true).progress
}

#[tokio::test]
async fn an_answer_to_a_turn_that_a_limit_left_open_does_not_reopen_the_conversation() {
    let bob = Assistant::new("Bob", AnyModel::new(script(r#"[{"Bob": "Hi."}]"#).model("test"))).unwrap();
    let chat = Chat::builder("panel").participant(Human::new("Pat").unwrap()).participant(bob);
    let chat = chat.policy(parallel()).build().unwrap();
    let mut log = log_of(&[]).await.limits(calls(0));
    chat.run_in(&mut log, "Go.").await.unwrap();
    assert_eq!(progress(&log).await, Progress::Closed(StopReason::Calls { limit: 0 }));
    log.answer(&Path::root(), &name("Pat"), "Hello.").await.unwrap();
    assert_eq!(progress(&log).await, Progress::Closed(StopReason::Calls { limit: 0 }));
    let mut log = log_of(&log.events().await).await.limits(calls(5));
    log.reopen().await.unwrap();
    assert_eq!(progress(&log).await, Progress::Open);
    chat.resume(&mut log).await.unwrap();
    let progress = progress(&log).await;
    let is_done = matches!(&progress, Progress::Closed(reason) if reason.outcome() == RunOutcome::Done);
    assert!(is_done, "{progress:?}");
    assert_eq!(story(&log.events().await).1, ["Pat: Hello.", "Bob: Hi."]);
}

/// Kim, who needs several model calls for a reply.
fn kim() -> Assistant {
    let model = script(
        r#"[{"Kim": {"calls": [{"tool": "echo", "args": {"task": "one"}, "id": "c1"}]}},
            {"Kim": {"say": "To the second.", "expect": {"last": "Second?"}}}]"#,
    );
    let echo = Function::new("echo", |turn| Ok(Act::say(turn.message().text().into_owned()))).unwrap();
    let kim = Assistant::new("Kim", AnyModel::new(model.model("test"))).unwrap();
    kim.agent_tool(AgentTool::agent(echo).description("Repeats."))
}

/// Host, who calls Kim and continues without a reply if there is none.
fn office() -> Chat {
    let kim = AnyAgent::new(kim());
    let host = Function::calling("Host", [kim.clone()], move |turn| {
        let kim = kim.clone();
        Box::pin(async move {
            let message = turn.message();
            match turn.ask(&kim, message).await {
                Ok(reply) => Ok(Act::Say(reply.parts)),
                Err(Error::Interrupt(Interrupt::Ended { .. })) => Ok(Act::say("No reply.")),
                Err(error) => Err(error),
            }
        })
    });
    Chat::builder("office").participant(host.unwrap()).policy(sequential()).build().unwrap()
}

/// Kim's own limit ended the first call in the middle of her turn. After it is raised, the second call is answered.
#[tokio::test]
async fn a_call_after_one_that_ended_at_a_limit_of_the_agent_gets_its_own_reply() {
    let under = |log: Log, most: u64| {
        log.agent_limits([(name("Kim"), Allowance { calls: Some(most), ..Allowance::default() })])
    };
    let mut log = under(log_of(&[]).await, 1);
    office().run_in(&mut log, "First?").await.unwrap();
    assert_eq!(story(&log.events().await).1, ["Host: No reply."]);
    log.continue_with(Message::new(Name::user(), "Second?")).await.unwrap();
    let reopened = log.events().await;
    let resumed = async |prefix: &[Arc<Event>]| {
        let mut log = under(log_of(prefix).await, 8);
        office().resume(&mut log).await.unwrap();
        log.events().await
    };
    let whole = resumed(&reopened).await;
    let expected = story(&whole);
    assert_eq!(expected.1, ["Host: No reply.", "Host: To the second."]);
    for cut in reopened.len()..whole.len() {
        assert_eq!(story(&resumed(&whole[..cut]).await), expected, "cut before event {cut}");
    }
}
