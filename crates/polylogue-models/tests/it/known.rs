//! What models turn out to be able to do, and what is remembered of it.

use crate::common;

use std::path::Path;

use crate::common::{Asked, KEY, ask, config, weather};
use polylogue_core::{Capabilities, Capability, Entry, Model, ModelErrorKind, Params};
use polylogue_models::{
    Cassette, Config, Endpoint, EndpointModel, Finding, LearnedCapabilities, Probed, Recorder, Recording,
};
use polylogue_test::server::{Answer, Behavior, Playbook, Received, Server};
use serde_json::json;
use tempfile::tempdir;

/// A model whose findings are kept at `place`, as a fresh process has it.
fn model_at(server: &Server, place: &Path) -> EndpointModel {
    known(server, place, Capabilities::default())
}

fn known(server: &Server, place: &Path, capabilities: Capabilities) -> EndpointModel {
    let config = Config { known: Some(LearnedCapabilities::at(place)), capabilities, ..config(server) };
    Endpoint::new(config).unwrap().model("m")
}

fn with_tools() -> Asked {
    Asked { tools: vec![weather()], ..Asked::default() }
}

fn with_schema() -> Asked {
    let form = json!({"type": "object", "properties": {"sky": {"type": "string"}}, "required": ["sky"]});
    Asked { params: Params { schema: Some(form), ..Params::default() }, ..Asked::default() }
}

fn found(place: &Path, server: &Server, capability: Capability) -> Option<Finding> {
    LearnedCapabilities::at(place).of(&server.base_url(), "m").get(&capability).cloned()
}

#[tokio::test]
async fn what_was_refused_is_not_asked_for_again_in_a_later_process() {
    let folder = tempdir().unwrap();
    let place = folder.path().join("below").join("capabilities.json");
    let server = Server::start(Behavior::from("Sunny.").text_only()).await;
    let first = ask(&model_at(&server, &place), &with_tools()).await.0.unwrap_err();
    assert_eq!((first.kind, server.count()), (ModelErrorKind::Unsupported(Capability::Tools), 1));
    let again = ask(&model_at(&server, &place), &with_tools()).await.0.unwrap_err();
    assert_eq!((again.kind, server.count()), (ModelErrorKind::Unsupported(Capability::Tools), 1));
    assert_eq!(again.message, format!("as it was found before: {}", first.message));
    assert!(!std::fs::read_to_string(&place).unwrap().contains(KEY));
    // What is configured goes before it, and what is not known is tried.
    let sure = known(&server, &place, Capabilities::ALL);
    assert!(ask(&sure, &with_tools()).await.0.is_err());
    assert!(ask(&model_at(&server, &place), &with_schema()).await.0.is_err());
    assert_eq!(server.count(), 3);
    assert!(ask(&model_at(&server, &place), &Asked::default()).await.0.is_ok(), "text is always possible");
}

#[tokio::test]
async fn what_was_done_is_known_too() {
    let folder = tempdir().unwrap();
    let place = folder.path().join("capabilities.json");
    let answer = Answer::text(r#"{"sky": "blue"}"#).call("weather", json!({}));
    let server = Server::start(Behavior::from(Playbook::always(answer))).await;
    let model = model_at(&server, &place);
    ask(&model, &with_tools()).await.0.unwrap();
    assert!(found(&place, &server, Capability::Tools).unwrap().has);
    assert_eq!(found(&place, &server, Capability::Schema), None);
    ask(&model, &with_schema()).await.0.unwrap();
    assert!(found(&place, &server, Capability::Schema).unwrap().is_fresh());
    // A server that takes a tool and does nothing with it has shown nothing.
    let silent = Server::start(Behavior::from("Sunny.")).await;
    ask(&model_at(&silent, &place), &with_tools()).await.0.unwrap();
    assert_eq!(found(&place, &silent, Capability::Tools), None);
    assert_eq!(LearnedCapabilities::at(&place).all().len(), 1);
}

// A cache that is old, damaged, of a later version, or cannot be written is ignored.
#[tokio::test]
async fn a_file_that_is_of_no_use_is_as_good_as_none() {
    let folder = tempdir().unwrap();
    let place = folder.path().join("capabilities.json");
    let server = Server::start(Behavior::from("Sunny.").text_only()).await;
    let base = server.base_url();
    let old = json!({"polylogue_capabilities": 1, "models": {base: {"m": {
        "tools": {"has": false, "why": "long ago", "time_ms": 1}
    }}}});
    let later = json!({"polylogue_capabilities": 2, "models": []});
    for (nth, text) in [old.to_string(), later.to_string(), "{".into(), "\u{0}".into()].iter().enumerate() {
        std::fs::write(&place, text).unwrap();
        let error = ask(&model_at(&server, &place), &with_tools()).await.0.unwrap_err();
        assert!(error.message.contains("'tools' is not supported"), "{error}");
        assert_eq!(server.count(), nth + 1, "it was asked: {text}");
        assert!(!found(&place, &server, Capability::Tools).unwrap().has, "it is written again: {text}");
    }
    let nowhere = folder.path().join("capabilities.json").join("in a file");
    let model = model_at(&server, &nowhere);
    assert!(ask(&model, &with_tools()).await.0.is_err());
    assert!(ask(&model, &Asked::default()).await.0.is_ok());
}

#[tokio::test]
async fn several_processes_add_to_one_file() {
    let folder = tempdir().unwrap();
    let place = folder.path().join("capabilities.json");
    let server = Server::start(Behavior::from("Sunny.").text_only()).await;
    let [one, other] = [model_at(&server, &place), model_at(&server, &place)];
    assert!(ask(&one, &with_tools()).await.0.is_err());
    assert!(ask(&other, &with_schema()).await.0.is_err());
    for capability in [Capability::Tools, Capability::Schema] {
        assert!(!found(&place, &server, capability).unwrap().has);
    }
    let files = std::fs::read_dir(folder.path()).unwrap().count();
    assert_eq!(files, 1, "nothing is left next to it");
}

/// Plays a model that is asked what it can do.
fn probed_model(can: Capabilities) -> Behavior {
    let play = move |asked: &Received, _: usize| {
        let form = asked.body.get("response_format").map(|form| form["type"].as_str().unwrap_or_default());
        match form {
            None if can.tools == Some(true) => Answer::tool("note", json!({"word": "ready"})),
            Some("json_schema") if can.schema == Some(true) => Answer::text(r#"{"shade_of_grass": "green"}"#),
            Some("json_object") if can.json == Some(true) => Answer::text(r#"{"grass": "green"}"#),
            _ => Answer::text("It is `green`: {\"color\": \"green\"}").usage(20, 10),
        }
    };
    Behavior::from(Playbook::new(play))
}

fn in_words(probed: &[Probed]) -> Vec<String> {
    probed.iter().map(|probed| format!("{:?}: {:?} {}", probed.capability, probed.has, probed.why)).collect()
}

#[tokio::test]
async fn a_model_is_probed_by_three_questions() {
    let folder = tempdir().unwrap();
    let place = folder.path().join("capabilities.json");
    let able = Server::start(probed_model(Capabilities::ALL)).await;
    let model = model_at(&able, &place);
    let found = in_words(&model.probe().await.unwrap());
    assert_eq!(found, ["Tools: Some(true) ", "Schema: Some(true) ", "Json: Some(true) "]);
    assert_eq!((able.count(), able.violations()), (3, Vec::new()));
    assert!(model.endpoint().findings("m").values().all(|finding| finding.has));
    // One that takes everything and does nothing with it.
    let deaf = Server::start(probed_model(Capabilities::TEXT)).await;
    let found = in_words(&model_at(&deaf, &place).probe().await.unwrap());
    assert_eq!(
        found,
        [
            "Tools: Some(false) it did not call the tool that it was told to call",
            "Schema: Some(false) it did not keep to the schema that it was given",
            "Json: Some(false) it wrote more than JSON, or none",
        ]
    );
    let error = ask(&model_at(&deaf, &place), &with_tools()).await.0.unwrap_err();
    assert_eq!(error.message, "as it was found before: it did not call the tool that it was told to call");
    // One that refuses; what it refused before is asked again.
    let refuses = Server::start(Behavior::from("x").text_only()).await;
    let model = model_at(&refuses, &place);
    model.probe().await.unwrap();
    let probed = model.probe().await.unwrap();
    assert!(probed.iter().all(|probed| probed.has == Some(false)), "{probed:?}");
    assert_eq!(refuses.count(), 6);
}

#[tokio::test]
async fn a_probe_says_how_a_server_reads_calls() {
    let wrote = "<tool_call>\n{\"name\": \"note\", \"arguments\": {\"word\": \"ready\"}}\n</tool_call>";
    let server = Server::start(Playbook::always(Answer::text(wrote))).await;
    let model = Endpoint::new(Config { provider: "vllm".into(), ..config(&server) }).unwrap().model("m");
    let probed = in_words(&model.probe().await.unwrap());
    let expected = "Tools: Some(false) it wrote the call as text: start the server";
    assert!(probed[0].starts_with(expected) && probed[0].contains("--tool-call-parser"), "{probed:?}");
}

#[tokio::test]
async fn a_probe_that_does_not_tell_keeps_nothing() {
    let folder = tempdir().unwrap();
    let place = folder.path().join("capabilities.json");
    let cut = Server::start(Behavior::from(Playbook::always(Answer::text("gr").finish("length")))).await;
    let probed = model_at(&cut, &place).probe().await.unwrap();
    assert!(probed.iter().all(|probed| probed.has.is_none()), "{probed:?}");
    let locked = Server::start(Behavior::from("x").key("another")).await;
    assert!(model_at(&locked, &place).probe().await.is_err());
    assert_eq!(locked.count(), 1, "the rest would be refused, too");
    assert!(LearnedCapabilities::at(&place).all().is_empty());
}

// A recording of a run for which capabilities were configured is replayed without them.
#[tokio::test]
async fn what_was_never_asked_of_a_recorded_model_is_not_asked_in_the_replay() {
    let folder = tempdir().unwrap();
    let place = folder.path().join("c.jsonl");
    let server = Server::start(Behavior::from("Sunny.").text_only()).await;
    let cassette = Cassette::create(&place).unwrap();
    let recorder = Recorder::new(common::model(config(&server)), &cassette);
    let json = Params { json: true, ..Params::default() };
    let asked = Asked { params: json, ..Asked::new([Entry::user("How?")]) };
    assert!(recorder.complete(&asked.request(), &mut ()).await.is_err());
    drop((recorder, cassette));
    let replayed = Recording::open(&place).unwrap().model("test:m").capabilities();
    assert_eq!(replayed, Capabilities { json: None, vision: None, ..Capabilities::TEXT });
}
