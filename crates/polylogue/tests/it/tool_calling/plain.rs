//! A server whose chat template knows no system role and refuses a content of `null`: it is sent the same in another form.

use polylogue::agents::tooling::ToolCalling;
use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, Tool, round_robin};
use polylogue_core::{Body, Capabilities, Capability, Event};
use polylogue_models::{Config, Endpoint, EndpointModel, LearnedCapabilities};
use polylogue_test::server::{Answer, Behavior, Playbook, Received, Server};
use serde_json::{Value, json};
use std::sync::Arc;

use crate::common::solo_chat;
use crate::stage::{closed, log_of, printed, run};
use crate::tool_calling::things::high_low;

/// Calls the tool without a word if it was not called since the last message, and then says its result.
fn template() -> Behavior {
    let play = |request: &Received, _: usize| match request.messages().last().unwrap()["role"].as_str() {
        Some("tool") => Answer::text("Seven is more than three."),
        _ => Answer::tool("high_low", json!({"secret": 7, "guess": 3})),
    };
    Behavior::from(Playbook::new(play)).plain_template()
}

fn model(server: &Server) -> EndpointModel {
    Endpoint::new(Config::new(server.base_url())).unwrap().model("gemma")
}

/// Two who take two turns each, on one model.
fn pair(model: EndpointModel) -> Chat {
    let model = AnyModel::new(model);
    let agent = |who: &str| {
        let agent = Assistant::new(who, model.clone()).unwrap();
        agent.system(format!("You are {who}, and brief.")).tool(high_low())
    };
    let chat = Chat::builder("pair").participant(agent("Ann")).participant(agent("Bob"));
    chat.policy(with_termination(round_robin(), max_turns(4))).build().unwrap()
}

fn has_system(request: &Received) -> bool {
    request.messages().iter().any(|message| message["role"] == "system")
}

fn has_null(request: &Received) -> bool {
    request.messages().iter().any(|message| message.get("content").is_some_and(Value::is_null))
}

/// What the log says that a model refused, in order.
fn refused(events: &[Arc<Event>]) -> Vec<Capability> {
    let lacks = |event: &Arc<Event>| match &event.body {
        Body::CapabilityMissing { capability: lacks, .. } => Some(*lacks),
        _ => None,
    };
    events.iter().filter_map(lacks).collect()
}

#[tokio::test]
async fn a_refused_system_role_is_folded_into_the_first_message_and_calls_omit_null_from_then_on() {
    let server = Server::start(template()).await;
    let (status, events) = run(&pair(model(&server)), "Is seven more than three?").await;
    let text = printed(&events);
    assert_eq!(closed(&status).1, "Seven is more than three.", "{text}");
    // Each is refused once in the whole conversation: Bob is spared what Ann found out.
    assert_eq!(refused(&events), [Capability::SystemRole, Capability::NullContent], "{text}");
    assert_eq!(server.violations(), [""; 0]);
    let requests = server.requests();
    let refused: Vec<usize> =
        (0..requests.len()).filter(|&at| has_system(&requests[at]) || has_null(&requests[at])).collect();
    assert_eq!((requests.len(), refused), (4 * 2 + 2, vec![0, 2]), "{text}");
    for request in requests.iter().skip(3) {
        let first = &request.messages()[0];
        let words = first["content"].as_str().unwrap();
        assert_eq!(first["role"], "user");
        assert!(words.starts_with("You are Ann, and brief.") || words.starts_with("You are Bob, and brief."));
        assert!(words.contains("Is seven more than three?"), "{words}");
        let said = request.messages().iter().filter(|message| message.to_string().contains(", and brief."));
        assert_eq!(said.count(), 1, "the system text stands there once");
    }
    let calls =
        requests.iter().flat_map(|request| request.messages()).filter(|m| m.get("tool_calls").is_some());
    assert!(calls.clone().count() > 6 && calls.filter(|m| m.get("content").is_none()).count() > 6);
}

#[tokio::test]
async fn a_conversation_on_a_plain_template_comes_to_the_same_end_wherever_it_is_cut() {
    let first = Server::start(template()).await;
    let (_, whole) = run(&pair(model(&first)), "Is seven more than three?").await;
    for cut in 1..whole.len() {
        let server = Server::start(template()).await;
        let mut log = log_of(&whole[..cut]).await;
        let status = pair(model(&server)).resume(&mut log).await.unwrap().status;
        let events = log.events().await;
        assert_eq!(closed(&status).1, "Seven is more than three.", "cut before event {cut}");
        assert_eq!(server.violations(), [""; 0], "cut before event {cut}");
        // A fresh process may have to find out again, in a later turn; nothing is refused twice in it.
        let again = refused(&events[cut..]);
        assert!(again.len() <= 2 && (again.len() < 2 || again[0] != again[1]), "cut before {cut}: {again:?}");
    }
}

#[tokio::test]
async fn a_turn_that_calls_tools_by_text_is_resumed_wherever_it_is_cut_after_a_refused_format() {
    let play = |request: &Received, _: usize| {
        let last = request.messages().last().unwrap()["content"].as_str().unwrap().to_owned();
        Answer::text(if last.contains("Answer only `yes` or `no`") { "no" } else { "Seven is more." })
    };
    let chat = |server: &Server| {
        let agent = Assistant::new("Ann", AnyModel::new(model(server))).unwrap().system("You are Ann.");
        let agent = agent.tool(high_low()).tool_calling(ToolCalling::Text);
        solo_chat("one", agent, 1)
    };
    let server = || Server::start(Behavior::from(Playbook::new(play)).plain_template());
    let (first, second) = (server().await, server().await);
    let (_, whole) = run(&chat(&first), "Is seven more than three?").await;
    assert_eq!(refused(&whole), [Capability::SystemRole]);
    for cut in 1..whole.len() {
        let mut log = log_of(&whole[..cut]).await;
        let status = chat(&second).resume(&mut log).await.unwrap().status;
        assert_eq!(closed(&status).1, "Seven is more.", "cut before event {cut}");
    }
}

/// Two agents on a server that takes no user message right after the result of a tool, until each has spoken.
async fn interrupted(config: Config, server: &Server) -> (Vec<Capability>, Vec<String>) {
    let model = AnyModel::new(Endpoint::new(config).unwrap().model("mistral"));
    let agent = |who: &str| {
        let agent = Assistant::new(who, model.clone()).unwrap().system(format!("You are {who}."));
        agent.suggest_tool(high_low().spec().clone())
    };
    let chat = Chat::builder("pair").participant(agent("Ann")).participant(agent("Bob"));
    let chat = chat.policy(with_termination(round_robin(), max_turns(4))).build().unwrap();
    let before = server.count();
    let (status, events) = run(&chat, "Is seven more than three?").await;
    assert!(matches!(status, polylogue::Status::Closed { .. }), "{}", printed(&events));
    assert_eq!(server.violations(), [""; 0]);
    let after_tool = |request: &Received| {
        let roles: Vec<&str> = request.messages().iter().map(|m| m["role"].as_str().unwrap()).collect();
        let at = roles.iter().position(|role| *role == "tool")?;
        Some(roles.get(at + 1..).unwrap_or_default().join(" "))
    };
    let seen: Vec<String> =
        server.requests().iter().skip(before).filter_map(|request| after_tool(request)).collect();
    (refused(&events), seen)
}

#[tokio::test]
async fn noted_is_sent_only_to_a_model_that_refused_a_user_message_after_a_result() {
    let play = |request: &Received, _: usize| match request.messages().len() {
        2 => Answer::tool("high_low", json!({"secret": 7, "guess": 3})),
        _ => Answer::text("Well."),
    };
    let behavior = || Behavior::from(Playbook::new(play));
    let free = Server::start(behavior()).await;
    let (lacks, seen) = interrupted(Config::new(free.base_url()), &free).await;
    assert!(
        lacks.is_empty() && !seen.is_empty() && seen.iter().all(|roles| roles.starts_with("user")),
        "{seen:?}"
    );
    let strict = Server::start(behavior().no_user_after_tool()).await;
    let (lacks, seen) = interrupted(Config::new(strict.base_url()), &strict).await;
    assert_eq!(lacks, [Capability::UserAfterTool]);
    assert_eq!(seen[0], "user", "it is tried once");
    assert!(seen.len() > 1 && seen[1..].iter().all(|roles| roles.starts_with("assistant user")), "{seen:?}");
    let said = Config {
        capabilities: Capabilities::default().without(Capability::UserAfterTool),
        ..Config::new(strict.base_url())
    };
    let (lacks, seen) = interrupted(said, &strict).await;
    assert!(lacks.is_empty() && seen.iter().all(|roles| roles.starts_with("assistant user")), "{seen:?}");
}

#[tokio::test]
async fn what_is_said_or_found_of_a_template_is_not_tried() {
    let folder = tempfile::tempdir().unwrap();
    let known = || Some(LearnedCapabilities::at(folder.path().join("capabilities.json")));
    let server = Server::start(template()).await;
    let lacks = Capabilities::default().without(Capability::SystemRole).without(Capability::NullContent);
    let mut count = 0;
    // The third is a later process, which knows what the second found.
    for (nth, refusals) in [0, 2, 0].into_iter().enumerate() {
        let config = Config::new(server.base_url());
        let config = match nth {
            0 => Config { capabilities: lacks, ..config },
            _ => Config { known: known(), ..config },
        };
        let chat = pair(Endpoint::new(config).unwrap().model("gemma"));
        let (status, events) = run(&chat, "Is seven more than three?").await;
        assert_eq!(closed(&status).1, "Seven is more than three.");
        assert_eq!(
            (refused(&events).len(), server.count() - count),
            (refusals, 4 * 2 + refusals),
            "{}",
            printed(&events)
        );
        count = server.count();
    }
    assert_eq!(server.violations(), [""; 0]);
}
