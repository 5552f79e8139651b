//! What rests between two runs or calls is what is folded from the whole log.

use std::pin::pin;
use std::task::{Context, Poll, Waker};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use crate::{
    Agent, AgentCall, AnyModel, ChatBuilder, DeltaSink, Message, Model, ModelCall, ModelError,
    ModelErrorKind, Params, Reply, Request, Timestamp, text_of,
};

/// Instructions for agents. The last one is for calls alone.
const TEXTS: [&str; 9] =
    ["hello", "twice", "all", "pass", "ask", "fail Ann", "fail Ida", "fail Ida anyway", "leave"];

/// Repeats what it was sent last, and how much it was sent; fails when that names its agent.
struct Echo;

impl Model for Echo {
    fn name(&self) -> &'static str {
        "test:echo"
    }
    async fn complete(
        &self,
        request: &Request<'_>,
        _: &mut dyn DeltaSink,
    ) -> std::result::Result<Reply, ModelError> {
        let last = request.entries.last().map(|entry| text_of(entry.parts()).into_owned());
        let last = last.unwrap_or_default();
        if last.contains(&format!("fail {}", request.origin.who)) {
            return Err(ModelError::new(ModelErrorKind::Unavailable, self.name(), "as scripted"));
        }
        Ok(Reply::new(format!("{} of {last}", request.entries.len())))
    }
}

/// Does what the message says, with its helpers.
#[derive(Clone)]
struct Actor {
    name: Name,
    model: AnyModel,
    helpers: Vec<Self>,
}

impl Actor {
    fn new(name: &str, helpers: &[&str]) -> Self {
        let helpers = helpers.iter().map(|name| Self::new(name, &[])).collect();
        Self { name: Name::new(name).unwrap(), model: AnyModel::new(Echo), helpers }
    }
}

impl Agent for Actor {
    fn name(&self) -> &Name {
        &self.name
    }
    async fn act(&self, turn: &mut Turn<'_>) -> Result<Act> {
        let text = turn.message().text().into_owned();
        match &*text {
            "pass" => return Ok(Act::Pass),
            "leave" => return Ok(Act::Leave("as scripted".into())),
            "ask" if self.helpers.is_empty() => {
                return Ok(turn.answer().map_or_else(|| Act::Ask("Which?".into()), Act::say));
            }
            "all" => {
                let calls: Vec<_> =
                    self.helpers.iter().map(|helper| AgentCall::of(helper, "hello")).collect();
                for reply in turn.ask_all(calls).await {
                    reply?;
                }
            }
            _ => {
                for helper in &self.helpers {
                    let reply = turn.ask(helper, &*text).await;
                    if !text.contains("anyway") {
                        reply?;
                    }
                }
            }
        }
        if text == "twice" {
            turn.ask_model(ModelCall::of(&self.model)).await?;
            turn.prompt("Once more.").await?;
        }
        Ok(Act::Say(turn.ask_model(ModelCall::of(&self.model)).await?.parts))
    }
}

/// Nothing here waits for anything outside.
fn done<T>(future: impl Future<Output = T>) -> T {
    let mut future = pin!(future);
    let mut cx = Context::from_waker(Waker::noop());
    let mut poll = |_| match future.as_mut().poll(&mut cx) {
        Poll::Ready(result) => Some(result),
        Poll::Pending => None,
    };
    (0..1_000).find_map(&mut poll).unwrap()
}

fn log() -> Log {
    Log::in_memory().clock(|| Timestamp(0))
}

/// Compares what rests with what the log says.
fn check(log: &Log) {
    let events = done(log.events());
    let mut paths: Vec<Path> = events.iter().map(|event| event.chat.clone()).collect();
    paths.sort_unstable();
    paths.dedup();
    for at in paths.iter().filter(|at| log.is_resting(at)) {
        let mut running = RunningChat::of(log, done(log.take_chat(at)).unwrap());
        let whole = Transcript::from_events(at, &events).unwrap();
        assert_eq!(format!("{:?}", running.transcript), format!("{whole:?}"), "`{at}`");
        for view in &mut running.views {
            view.catch_up(&running.transcript);
            let of_whole = View::of(&whole, view.me(), view.options().clone());
            assert_eq!(view.entries(), of_whole.entries(), "{} in `{at}`", view.me());
            let [kept, folded] =
                [&**view, &of_whole].map(|view| view.digest("m", None, &[], &Params::default()));
            assert_eq!(kept, folded);
        }
        let RunningChat { transcript, views, extent, .. } = running;
        let chat = RestingChat { transcript, views: Some(Box::new(views)), extent: extent.unwrap() };
        log.put_back_chat(chat);
    }
}

/// Answers all questions.
fn answer(log: &mut Log) {
    for (at, question) in done(log.questions()).unwrap() {
        done(log.answer(&at, &question.who, "blue")).unwrap();
        check(log);
    }
}

fn agents() -> [Actor; 3] {
    [Actor::new("Ann", &[]), Actor::new("Bob", &[]), Actor::new("Host", &["Ida", "Jim"])]
}

/// Calls an agent, and answers what it asks.
fn call(log: &mut Log, agent: &Actor, text: &str) -> Result<Message> {
    let mut result = done(log.call(agent, text));
    check(log);
    while matches!(result, Err(Error::Interrupt(Interrupt::Waiting))) {
        answer(log);
        result = done(log.resume_call(agent)).map(Option::unwrap);
        check(log);
    }
    result
}

#[test]
fn a_chat_that_rests_is_extended_by_each_event() {
    let (mut log, agents) = (log(), agents());
    for text in TEXTS {
        for agent in &agents {
            let _ = call(&mut log, agent, text);
        }
    }
    let events = done(log.events());
    let mut chat = done(self::log().take_chat(&Path::root())).unwrap();
    for end in 0..=events.len() {
        chat.catch_up(&events[..end]).unwrap();
        let whole = Transcript::from_events(&Path::root(), &events[..end]).unwrap();
        assert_eq!(format!("{:?}", chat.transcript), format!("{whole:?}"), "{end} events");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    #[test]
    fn what_rests_between_calls_is_what_the_log_says(moves in vec((0..3usize, 0..TEXTS.len()), 1..10)) {
        let (mut log, agents) = (log(), agents());
        for (who, text) in moves {
            let agent = &agents[who];
            if call(&mut log, agent, TEXTS[text]).is_ok() {
                prop_assert!(log.is_resting(&done(log.path_of(&agent.name)).unwrap()), "{}", TEXTS[text]);
            }
        }
    }

    #[test]
    fn what_rests_between_runs_is_what_the_log_says(moves in vec(0..TEXTS.len() - 1, 1..6)) {
        let both = || ["Ann", "Host"].map(|who| TurnRequest::to_all(Name::new(who).unwrap()));
        let policy = move |chat: &Transcript| match chat.turns() {
            0 => Step::Parallel(both().to_vec()),
            2 => Step::Turn(TurnRequest::to_all(Name::new("Bob").unwrap())),
            _ => Step::close(StopReason::Finished, chat),
        };
        let chat = agents().into_iter().fold(Chat::builder("three").policy(policy), ChatBuilder::participant);
        let (mut log, chat) = (log(), chat.build().unwrap());
        for text in moves {
            let before = done(log.events()).len();
            let mut result = match done(log.has_begun()).unwrap() {
                false => done(chat.run_in(&mut log, TEXTS[text])),
                true => done(chat.continue_with(&mut log, TEXTS[text])),
            };
            check(&log);
            while matches!(&result, Ok(run) if !run.questions().is_empty()) {
                answer(&mut log);
                result = done(chat.resume(&mut log));
                check(&log);
            }
            if result.is_ok() {
                // What rolls back the beginning of an inner chat is added by no run: then the next one folds the log.
                let events = done(log.events());
                let folds = events[before..].iter().any(|event| matches!(event.body, Body::RolledBack { .. }));
                prop_assert!(folds || log.is_resting(&Path::root()), "{}", TEXTS[text]);
            } else {
                done(chat.end_open_turns(&mut log)).unwrap();
                done(chat.close(&mut log, "test")).unwrap();
                check(&log);
            }
        }
    }
}
