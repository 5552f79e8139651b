//! What reasoning models think is kept apart, however it comes: it is not an answer, no arguments, no decision, it ends
//! nothing, and no other agent receives it.

use std::time::Duration;

use polylogue::agents::tooling::ToolCalling;
use polylogue::policies::with_termination;
use polylogue::stop::{max_turns, says};
use polylogue::{AnyModel, Assistant, Chat, round_robin};
use polylogue_core::{Body, Capabilities, Part};
use polylogue_models::{Config, Endpoint, Script};
use polylogue_test::server::{Answer, Behavior, Playbook, Quirk, Received, Server};
use serde_json::{Value, json};

use crate::stage::{closed, printed, run};
use crate::tool_calling::things::{high_low, lines, turn};

const JSON: &str = r#"{"secret": 7, "guess": 3}"#;

/// A model that thinks `thought` before each of `says`, as a field of the reply.
fn by_field(thought: &str, says: &[&str]) -> polylogue_models::Scripted {
    let step = |text: &&str| json!({"M": {"think": thought, "say": text}});
    let script: Script = serde_json::from_value(says.iter().map(step).collect::<Value>()).unwrap();
    script.model("test")
}

/// The same within the text: between tags, or before one whose beginning is in the prompt.
fn by_tags(thought: &str, says: &[&str]) -> [polylogue_models::Scripted; 3] {
    ["<think>{}</think>\n", "<thinking>{}</thinking>", "{}</think>\n\n"].map(|form| {
        let texts: Vec<String> = says.iter().map(|text| form.replace("{}", thought) + text).collect();
        lines(&texts.iter().map(String::as_str).collect::<Vec<_>>())
    })
}

fn each(thought: &str, says: &[&str]) -> impl Iterator<Item = polylogue_models::Scripted> {
    std::iter::once(by_field(thought, says)).chain(by_tags(thought, says))
}

#[tokio::test]
async fn thoughts_are_no_arguments_and_no_decision() {
    let thought = r#"no, or {"secret": 1, "guess": 1}"#;
    for model in each(thought, &["ack", "It helps.", "yes", JSON, "More."]) {
        let made =
            |model| Assistant::new("M", model).unwrap().tool(high_low()).tool_calling(ToolCalling::Text);
        let done = turn(model, made).await;
        let called = done.events.iter().find_map(|event| match &event.body {
            Body::ToolCalled { call, .. } => Some(call.args.clone()),
            _ => None,
        });
        assert_eq!(called, Some(json!({"secret": 7, "guess": 3})), "{}", printed(&done.events));
    }
    let call = format!(r#"{{"say": null, "call": {{"tool": "high_low", "args": {JSON}}}}}"#);
    for model in each(r#"{"say": "Equal.", "call": null}"#, &[&call, r#"{"say": "More.", "call": null}"#]) {
        let made =
            |model| Assistant::new("M", model).unwrap().tool(high_low()).tool_calling(ToolCalling::Schema);
        assert_eq!(turn(model, made).await.said, "More.");
    }
}

#[tokio::test]
async fn thoughts_are_no_answer_of_a_form() {
    let form = json!({"type": "object", "properties": {"more": {"type": "integer"}}, "required": ["more"]});
    let made = |model| Assistant::new("M", model).unwrap().output_schema(form.clone());
    for model in each(r#"{"more": 1}"#, &[r#"{"more": 7}"#]) {
        assert_eq!(turn(model, made).await.said, r#"{"more":7}"#);
    }
    // A thought that never ends holds no answer: it is asked for again.
    for tag in ["<think>", "<thinking>"] {
        let unclosed = format!("{tag}perhaps {{\"more\": 1}}");
        let done = turn(lines(&[&unclosed, r#"{"more": 7}"#]), made).await;
        assert_eq!(done.said, r#"{"more":7}"#, "{}", printed(&done.events));
    }
}

/// Thinks of the end in each reply, however its server tells thoughts.
fn thinks_of_the_end() -> Behavior {
    let play =
        |asked: &Received, _: usize| Answer::text(format!("Word {}.", asked.turn())).think("STOP, shall I?");
    Behavior::from(Playbook::new(play))
}

/// A request without the thoughts that Ollama's models have back with their own messages.
fn without_own(request: &Received) -> String {
    let mut body = request.body.clone();
    for message in body["messages"].as_array_mut().unwrap() {
        if message["role"] == "assistant" {
            message.as_object_mut().unwrap().shift_remove("thinking");
        }
    }
    body.to_string()
}

// Two who think talk: over fields, over tags, over tags in many pieces, over Ollama's field.
#[tokio::test]
async fn reasoning_is_not_sent_to_other_agents_and_terminates_nothing() {
    let ways = [
        (false, thinks_of_the_end()),
        (false, thinks_of_the_end().with(Quirk::ThinkTags)),
        (false, thinks_of_the_end().with(Quirk::ThinkTags).with(Quirk::SplitEvery(1))),
        (true, thinks_of_the_end()),
        (true, thinks_of_the_end().with(Quirk::ThinkTags).with(Quirk::SplitEvery(1))),
    ];
    for (nth, (is_ollama, behavior)) in ways.into_iter().enumerate() {
        let server = Server::start(behavior.latency(Duration::ZERO)).await;
        let config =
            if is_ollama { Config::ollama(&server.ollama_url()) } else { Config::new(server.base_url()) };
        let model = Endpoint::new(config).unwrap().model("m");
        let agent = |who| Assistant::new(who, AnyModel::new(model.clone())).unwrap();
        let chat = Chat::builder("pair").participant(agent("Ann")).participant(agent("Bob"));
        let chat = chat.policy(with_termination(round_robin(), says("STOP") | max_turns(4))).build().unwrap();
        let (status, events) = run(&chat, "Talk.").await;
        assert_eq!(closed(&status).1, "Word 1.", "way {nth}: {}", printed(&events));
        assert_eq!(server.count(), 4, "way {nth}");
        assert!(server.requests().iter().all(|request| !without_own(request).contains("STOP")), "way {nth}");
        let thoughts = events.iter().filter(|event| match &event.body {
            Body::ModelReplied(sample) => sample.parts.contains(&Part::Thought("STOP, shall I?".into())),
            _ => false,
        });
        assert_eq!(thoughts.count(), 4, "way {nth}: the log has them");
        let received = |body: &Body| matches!(body, Body::Message(m) if m.parts.iter().any(|p| matches!(p, Part::Thought(_))));
        assert!(!events.iter().any(|event| received(&event.body)), "way {nth}: no agent says them");
        assert_eq!(server.violations(), [""; 0]);
    }
}

// A model that only writes text, with reasoning in every step, uses a tool all the same.
#[tokio::test]
async fn a_small_model_that_thinks_uses_a_tool() {
    let replies = ["ack", "It helps.", "yes", JSON, "More."];
    for capabilities in [Capabilities::TEXT, Capabilities::TEXT.with(polylogue_core::Capability::Json)] {
        let model = by_field("hm, no", &replies).with_capabilities(capabilities);
        let done = turn(model, |model| Assistant::new("M", model).unwrap().tool(high_low())).await;
        assert_eq!(done.said, "More.");
        assert!(done.remembers.iter().all(|entry| !entry.contains("hm")), "{:?}", done.remembers);
    }
}
