//! What the tests of this crate share.
#![allow(dead_code, reason = "each test file uses a part of it")]

use std::sync::Arc;

use polylogue::{Log, Message, Name, Transcript};
use polylogue_core::{
    AnyStore, Body, Call, Digest, Event, Finish, LogId, ModelReply, Money, Opening, Outcome, Part, Path,
    Timestamp, TurnRequest, Usage,
};
use polylogue_models::Script;
use polylogue_store::Memory;

pub(crate) fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

pub(crate) fn script(json: &str) -> Script {
    serde_json::from_str(json).unwrap()
}

/// A log in memory, whose clock stands still.
pub(crate) async fn log() -> Log {
    log_in(AnyStore::new(Memory::default()), "test").await
}

pub(crate) async fn log_in(store: AnyStore, id: &str) -> Log {
    Log::create(store, LogId::new(id).unwrap()).await.unwrap().clock(|| Timestamp(0))
}

/// A transcript of lines; the first is the opening. See [`talk_of`].
pub(crate) fn talk(lines: &[(&str, &str)]) -> Transcript {
    let lines: Vec<_> = lines.iter().map(|(who, text)| (*who, *text, "")).collect();
    talk_of(&lines)
}

/// A transcript of lines: who, what, and what they thought. Each turn takes a second, uses 10 tokens and costs a cent;
/// a line that begins with `!` calls that tool as well.
pub(crate) fn talk_of(lines: &[(&str, &str, &str)]) -> Transcript {
    let (_, task, _) = lines[0];
    let opening = Opening {
        participants: vec![name("A"), name("B")],
        task: task.into(),
        messages: vec![Message::text(name(lines[0].0), task)],
        ..Opening::default()
    };
    let mut bodies = vec![(0, Body::Opened(opening))];
    for (turn, (who, text, thought)) in (1..).zip(&lines[1..]) {
        bodies.extend(turn_of(turn, &name(who), text, thought).into_iter().map(|body| (turn * 1000, body)));
    }
    let event = |(seq, (time, body))| {
        Arc::new(Event { seq, at: Path::root(), time: Timestamp(time), ran_ms: time, inbox: None, body })
    };
    let events: Vec<_> = (0..).zip(bodies).map(event).collect();
    Transcript::of(&Path::root(), &events).unwrap()
}

fn turn_of(turn: u64, who: &Name, text: &str, thought: &str) -> Vec<Body> {
    let sample = ModelReply {
        who: who.clone(),
        model: "test:m".into(),
        request: Digest::try_from("0".repeat(32)).unwrap(),
        parts: vec![Part::text(text)],
        finish: Finish::Stop,
        usage: Usage { input: Some(6), output: Some(4), ..Usage::default() },
        cost: Some(Money::dollars(0.01)),
        cached: false,
        asked: None,
        prefix: None,
        uncached_cost: None,
        verbatim: None,
        purpose: polylogue_core::CallPurpose::Turn,
    };
    let mut bodies =
        vec![Body::TurnStarted { turns: vec![TurnRequest::to_all(who.clone())] }, Body::ModelReplied(sample)];
    if let Some(tool) = text.strip_prefix('!') {
        let tool = tool.split(' ').next().unwrap().to_owned();
        let id = format!("c{turn}");
        let call = Call { id: id.clone(), tool, args: serde_json::json!({"q": 1}) };
        bodies.push(Body::ToolCalled { who: who.clone(), call });
        bodies.push(Body::ToolReturned { who: who.clone(), id, outcome: Outcome::done("ok") });
    }
    let parts = vec![Part::Thought(thought.into()), Part::text(text)];
    bodies.push(Body::Message(Message { parts, ..Message::text(who.clone(), "") }));
    bodies
}
