//! A team and what its models reply.

use polylogue_test::server::{Answer, Behavior, Playbook};
use serde_json::json;

/// Two agents, one with a tool, that end when Bob says so.
pub(crate) const TALK: &str = r#"
name: talk
description: Two of them talk.
task: Talk about {{what}}.
vars: {what: the weather}
agents:
  - {name: Alice, system: "You are Alice. The task: {{task}}", description: Talks until GOODBYE}
  - {name: Bob, system: You are Bob., tools: [get_history]}
chat:
  participants: [Alice, Bob]
  stop: {says: GOODBYE}
"#;

/// What Alice and Bob reply: a pure function of the request. Bob looks things up first.
pub(crate) fn talk() -> Behavior {
    let lookup = Answer::text("I look.")
        .think("What was said?")
        .call("get_history", json!({"limit": 2}))
        .call("get_history", json!({"limit": 1}));
    let alice = ["It rains today.", "Then I take my umbrella along."].map(Answer::text).to_vec();
    let bob = vec![lookup, Answer::text("It will be dry tomorrow."), Answer::text("GOODBYE")];
    Behavior::from(Playbook::by_agent([("You are Alice", alice), ("You are Bob", bob)])).key(super::home::KEY)
}

/// How often models are asked in the talk.
pub(crate) const CALLS: usize = 5;

/// What is said in the talk, the task included.
pub(crate) const SAID: [&str; 5] = [
    "Talk about the weather.",
    "It rains today.",
    "It will be dry tomorrow.",
    "Then I take my umbrella along.",
    "GOODBYE",
];

/// The texts of messages in `events`, in order, those of the opening included.
pub(crate) fn said(events: &[serde_json::Value]) -> Vec<String> {
    let text = |message: &serde_json::Value| {
        let parts = message["parts"].as_array().unwrap().iter();
        parts.filter_map(|part| part["text"].as_str()).collect::<Vec<_>>().join("\n\n")
    };
    let mut said = Vec::new();
    for event in events {
        match event["type"].as_str().unwrap() {
            "opened" => said.extend(event["messages"].as_array().unwrap().iter().map(text)),
            "message" | "posted" => said.push(text(event)),
            _ => {}
        }
    }
    said
}
