//! Conversations of 2,000 turns through small and large windows: facts that are said early are known late.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use polylogue::agents::compaction::Compaction;
use polylogue::kernel::data::ToolSpec;
use polylogue::{Act, AnyModel, Assistant, Chat, Function, Limits, round_robin, stop};
use polylogue_core::{
    Body, DeltaSink, Entry, Event, FinishReason, Model, ModelError, ModelErrorKind, Part, Reply, Request,
    ToolCall, ToolResult, Usage, text_of,
};
use polylogue_test::tool::tool_of;
use serde_json::json;

use crate::beyond::stage::log;

/// How many facts are said, one in each of the first messages of others.
const FACTS: u64 = 20;

const RULE: &str = "RULE: never guess a code";

fn fact(nth: u64) -> String {
    format!("FACT: the code of door {nth} is {}", nth * 7_919 + 13)
}

/// Answers questions from what its requests have, and reports each fact that it reads in its summaries.
#[derive(Clone)]
struct Guard {
    window: u64,
    filler: String,
    seen: Arc<Mutex<Seen>>,
}

#[derive(Default)]
struct Seen {
    last: Vec<Entry>,
    requests: u64,
    /// Requests that do not begin with the whole request before.
    restarts: u64,
    flaws: Vec<String>,
    answers: BTreeMap<u64, String>,
    largest: usize,
}

impl Guard {
    fn summary(text: &str) -> Reply {
        let part = text.split("<conversation>").nth(1).unwrap_or_default();
        let facts: Vec<&str> =
            part.split("FACT: ").skip(1).filter_map(|rest| rest.split('.').next()).collect();
        let facts: Vec<String> = facts.into_iter().map(|fact| format!("FACT: {fact}")).collect();
        let said = json!({"task": "guard the doors", "decisions": [], "facts": facts, "done": ["talked"],
            "open": [], "files": [], "outdated": []});
        Reply::new(said.to_string())
    }

    fn note(&self, request: &Request<'_>, text: &str) {
        let mut seen = self.seen.lock().unwrap();
        seen.requests += 1;
        if !request.entries.starts_with(&seen.last) {
            seen.restarts += 1;
        }
        seen.last = request.entries.to_vec();
        seen.largest = seen.largest.max(text.len());
        // Bob says a fact in each of his first turns, and Ann replies after it.
        let known = seen.requests.min(FACTS);
        let missing: Vec<u64> = (1..=known).filter(|nth| !text.contains(&fact(*nth))).collect();
        let has_rule = text.contains(RULE);
        if !missing.is_empty() || !has_rule || !text.starts_with("Guard the doors.") {
            let flaw = format!("request {}: missing {missing:?}, rule {has_rule}", seen.requests);
            seen.flaws.push(flaw);
        }
    }
}

impl Model for Guard {
    fn name(&self) -> &str {
        "test:guard"
    }
    fn context_window(&self) -> Option<u64> {
        Some(self.window)
    }
    async fn complete(&self, request: &Request<'_>, _: &mut dyn DeltaSink) -> Result<Reply, ModelError> {
        request.check().map_err(|flaw| ModelError::new(ModelErrorKind::Bug, "test:guard", flaw))?;
        let text: String =
            request.entries.iter().map(|entry| text_of(entry.parts()).into_owned() + "\n").collect();
        if request.params.schema.is_some() {
            return Ok(Self::summary(&text));
        }
        self.note(request, &text);
        let input = Some(text.len() as u64 / 4);
        let usage = Usage { input, output: Some(300), ..Usage::default() };
        let last =
            request.entries.last().map(|entry| text_of(entry.parts()).into_owned()).unwrap_or_default();
        let Some((_, door)) = last.split_once("QUESTION: door ") else {
            return Ok(Reply { usage, ..Reply::new(format!("I see. {}", self.filler)) });
        };
        let door: u64 = door.split(' ').next().and_then(|door| door.parse().ok()).unwrap_or_default();
        if matches!(request.entries.last(), Some(Entry::User { .. })) {
            let call = ToolCall {
                id: format!("call_{}", request.origin.nth),
                tool: "look".into(),
                args: json!({"door": door}),
            };
            return Ok(Reply {
                finish: FinishReason::Calls,
                parts: vec![Part::ToolCall(call)],
                usage,
                ..Reply::new("")
            });
        }
        let code = text.split(&format!("the code of door {door} is ")).nth(1).unwrap_or("unknown");
        let code: String = code.chars().take_while(char::is_ascii_digit).collect();
        self.seen.lock().unwrap().answers.insert(door, code.clone());
        Ok(Reply { usage, ..Reply::new(format!("It is {code}. {}", self.filler)) })
    }
}

fn guarded(model: Guard, turns: u64) -> Chat {
    let filler = model.filler.clone();
    let (spec, more) = (ToolSpec::new("look", "Looks.", json!({"type": "object"})), filler.clone());
    let look = tool_of(spec.repeatable(), move |args| {
        Ok(ToolResult::done(format!("QUESTION: door {} was looked at. {more}", args["door"])))
    });
    let ann = Assistant::new("Ann", AnyModel::new(model))
        .unwrap()
        .tool(look)
        .compaction(Compaction::default().pin("RULE:"));
    let bob = Function::new("Bob", move |turn| {
        let nth = turn.transcript().turns() / 2 + 1;
        let text = match nth {
            1 => format!("{}. {RULE}. {filler}", fact(1)),
            2..=FACTS => format!("{}. {filler}", fact(nth)),
            // The facts are asked for in the last part of the conversation, and a door now and then.
            _ if nth > turns / 2 - 2 * FACTS && nth % 2 == 0 => {
                format!("QUESTION: door {} please. {filler}", (nth / 2) % FACTS + 1)
            }
            _ => format!("All is quiet. {filler}"),
        };
        Ok(Act::say(text))
    })
    .unwrap();
    Chat::builder("doors")
        .participant(bob)
        .participant(ann)
        .policy(round_robin())
        .stop(stop::max_turns(turns))
        .max_turns(turns)
        .build()
        .unwrap()
}

/// The bytes of the events, and those of the texts in them, each counted once.
fn sizes(events: &[Arc<Event>]) -> (usize, usize) {
    let stored = events.iter().map(|event| serde_json::to_string(event).unwrap().len()).sum();
    let text = |event: &Arc<Event>| match &event.body {
        Body::Message(message) => message.text().len(),
        Body::ToolReturned { result: outcome, .. } => outcome.text().len(),
        Body::Compacted(compacted) => compacted.summary.text().len(),
        _ => 0,
    };
    (stored, events.iter().map(text).sum())
}

async fn play(turns: u64, window: u64, filler: usize) -> (usize, usize, usize) {
    let filler = "The night is long and nothing moves here ".repeat(filler);
    let model = Guard { window, filler, seen: Arc::default() };
    let limits = Limits { calls: Some(3 * turns), ..Limits::default() };
    let mut log = log().await.limits(limits);
    guarded(model.clone(), turns).run_in(&mut log, "Guard the doors.").await.unwrap();
    let events = log.events().await;
    let seen = model.seen.lock().unwrap();
    assert!(seen.flaws.is_empty(), "{window}: {:?}", seen.flaws.first());
    assert!(seen.requests >= turns / 2, "{} requests", seen.requests);
    for door in 1..=FACTS {
        assert_eq!(seen.answers.get(&door), Some(&(door * 7_919 + 13).to_string()), "{window}: door {door}");
    }
    assert!(seen.largest as u64 <= window * 4, "{} bytes in a window of {window} tokens", seen.largest);
    let compactions = events.iter().filter(|event| matches!(event.body, Body::Compacted(_))).count();
    // Each request begins with all of the one before, but after a compaction: so prompt caches are read.
    assert_eq!(seen.restarts, compactions as u64, "{window}");
    let (stored, text) = sizes(&events);
    (compactions, stored, text)
}

/// Plays 2,000 turns through a window of so many tokens, and returns the number of compactions.
async fn two_thousand_turns(window: u64, filler: usize) -> usize {
    let (compactions, stored, text) = play(2_000, window, filler).await;
    assert!(stored < 2 * text, "{window}: {stored} bytes stored for {text} bytes of text");
    compactions
}

#[tokio::test]
async fn two_thousand_turns_fit_into_a_window_of_4k() {
    let compactions = two_thousand_turns(4_000, 30).await;
    assert!((100..=600).contains(&compactions), "{compactions}");
}

#[tokio::test]
async fn two_thousand_turns_fit_into_a_window_of_16k() {
    let compactions = two_thousand_turns(16_000, 40).await;
    assert!((40..=300).contains(&compactions), "{compactions}");
}

#[tokio::test]
async fn two_thousand_turns_fit_into_a_window_of_128k() {
    let compactions = two_thousand_turns(128_000, 100).await;
    assert!((10..=80).contains(&compactions), "{compactions}");
}
