//! A person raises limits at which the outermost chat ends by itself, while it is open.

use std::sync::{Arc, Mutex};

use crate::common::{log_of, name};
use polylogue::policies::until;
use polylogue::round_robin;
use polylogue::stop::{Stop, max_messages, max_turns};
use polylogue_core::{
    Act, Agent, Body, Chat, ChatLimits, Event, Instruction, LimitOverrides, Limits, Log, LogHandle, Name,
    Result, Status, Turn,
};

/// Where an agent of the test finds the log whose limits are raised.
type Outside = Arc<Mutex<Option<LogHandle>>>;

/// Says its name. In its first turn, someone outside raises limits, if there is an outside.
struct Speaker(Name, Outside, LimitOverrides);

impl Agent for Speaker {
    fn name(&self) -> &Name {
        &self.0
    }
    async fn act(&self, _: &mut Turn<'_>) -> Result<Act> {
        let outside = self.1.lock().unwrap().take();
        if let Some(outside) = outside {
            // Whether it was done is in the log.
            let _ = outside.instruct(Instruction::RaiseLimits(self.2)).confirmed().await;
        }
        Ok(Act::say(self.0.as_str()))
    }
}

fn turns(turns: u64) -> LimitOverrides {
    LimitOverrides { turns: Some(turns), ..LimitOverrides::default() }
}

/// Two who speak in turn until `stop`. While the second one speaks for the first time, `more` is allowed.
async fn played(stop: Stop, limits: Limits, more: LimitOverrides, prefix: &[Arc<Event>]) -> Log {
    let (outside, none) = (Outside::default(), Outside::default());
    let mut log = log_of(prefix).await.limits(limits);
    if prefix.is_empty() {
        *outside.lock().unwrap() = Some(log.handle());
    }
    let (a, b) = (Speaker(name("A"), none, more), Speaker(name("B"), outside, more));
    let chat =
        Chat::named("pair").participant(a).participant(b).policy(until(stop, round_robin())).build().unwrap();
    let run = match prefix {
        [] => chat.run_in(&mut log, "go").await,
        _ => chat.resume(&mut log).await,
    };
    let status = run.unwrap().status;
    assert!(matches!(status, Status::Closed { .. }), "{status:?}");
    log
}

fn bodies(events: &[Arc<Event>]) -> Vec<Body> {
    events.iter().map(|event| event.body.clone()).collect()
}

#[tokio::test]
async fn a_limit_of_the_chat_itself_is_raised_in_its_last_turn_and_the_log_can_be_cut_anywhere() {
    let none = ChatLimits::default();
    type NewStop = fn() -> Stop;
    let stops: [(NewStop, ChatLimits, Option<u64>); 3] = [
        (|| max_turns(2), ChatLimits { turns: Some(2), ..none }, None),
        (|| max_messages(3), ChatLimits { turns: Some(90), messages: Some(3), ..none }, None),
        // With a limit of the run, both are raised.
        (|| max_turns(2), ChatLimits { turns: Some(2), ..none }, Some(3)),
    ];
    for (stop, chat, of_run) in stops {
        let limits = Limits { chat, turns: of_run, ..Limits::default() };
        let log = played(stop(), limits, turns(4), &[]).await;
        assert_eq!(log.turns().await, 5, "1 turn was over, and 4 more are allowed");
        let whole = log.events().await;
        let raised = |event: &Arc<Event>| matches!(event.body, Body::LimitsChanged { .. });
        let at = whole.iter().position(raised).unwrap();
        let of_run = of_run.map_or_else(LimitOverrides::default, |_| turns(5));
        assert_eq!(whole[at].body, Body::LimitsChanged { limits: of_run, more: turns(4) });
        for cut in 1..whole.len() {
            let raised = LimitOverrides::last_of(&whole[..cut]).unwrap_or_default();
            let again = played(stop(), raised.over(limits), turns(4), &whole[..cut]).await;
            if cut <= at {
                assert_eq!(again.turns().await, 2, "cut before event {cut}");
            } else {
                assert_eq!(bodies(&again.events().await), bodies(&whole), "cut before event {cut}");
            }
        }
    }
}

#[tokio::test]
async fn what_would_raise_no_limit_of_the_chat_is_refused() {
    let chat = ChatLimits { turns: Some(4), ..ChatLimits::default() };
    let tokens = LimitOverrides { tokens: Some(5_000), ..LimitOverrides::default() };
    for (more, why) in [
        (turns(1), "it would lower the limit of 4 turns to 2 turns"),
        (tokens, "the run has no limit on tokens that could be raised"),
    ] {
        let log = played(max_turns(4), Limits { chat, ..Limits::default() }, more, &[]).await;
        assert_eq!(log.turns().await, 4);
        let events = log.events().await;
        let refused = events.iter().find_map(|event| match &event.body {
            Body::Refused { why, .. } => Some(why),
            _ => None,
        });
        assert!(refused.unwrap().starts_with(why), "{refused:?}");
        assert_eq!(LimitOverrides::last_of(&events), None);
    }
}
