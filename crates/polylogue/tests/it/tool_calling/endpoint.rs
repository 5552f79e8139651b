//! A server that answers nothing but plain text: tools and answers of a form work all the same, and no request is
//! malformed.

use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, round_robin, sequential};
use polylogue_models::{Config, Endpoint, EndpointModel};
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use serde_json::{Value, json};

use crate::common::solo_chat;
use crate::stage::{closed, log_of, printed, run};
use crate::tool_calling::things::{clock, high_low};

/// Answers by what the last message asks for, as a small model might.
fn small_model() -> Behavior {
    let replies = [
        ("What is wrong with it", "Sorry: {\"more\": 7}"),
        ("satisfies this JSON Schema", "more: seven"),
        ("one JSON object and nothing else", "```json\n{'secret': 7, 'guess': 3}\n```"),
        ("Answer only `yes` or `no`", "<think>hm, no?</think>Yes."),
        ("Would the tool", "I think that it would help."),
        ("There is a tool named", "I understand."),
        ("Now solve the task", "Seven is more than three."),
    ];
    let play = move |request: &polylogue_test::server::Received, _: usize| {
        let last = request.last_text();
        let known = replies.iter().find(|(asked, _)| last.contains(asked));
        known.map_or_else(|| Answer::unexpected(format!("asked: {last}")), |(_, reply)| Answer::text(*reply))
    };
    Behavior::from(Playbook::new(play)).text_only()
}

fn endpoint(server: &Server) -> Endpoint {
    Endpoint::new(Config::new(server.base_url())).unwrap()
}

fn model(endpoint: &Endpoint) -> EndpointModel {
    endpoint.model("small")
}

fn form() -> Value {
    json!({"type": "object", "properties": {"more": {"type": "integer"}}, "required": ["more"]})
}

fn bodies_with(server: &Server, field: &str) -> usize {
    server.requests().iter().filter(|request| request.body.get(field).is_some()).count()
}

#[tokio::test]
async fn a_tool_works_on_a_server_of_plain_text() {
    let server = Server::start(small_model()).await;
    let endpoint = endpoint(&server);
    let agent = |who: &str| Assistant::new(who, AnyModel::new(model(&endpoint))).unwrap().tool(high_low());
    let chat = Chat::builder("pair").participant(agent("Ann")).participant(agent("Bob"));
    let chat = chat.policy(with_termination(round_robin(), max_turns(4))).build().unwrap();
    let (status, events) = run(&chat, "Is seven more than three?").await;
    let text = printed(&events);
    assert_eq!(closed(&status).1, "Seven is more than three.", "{text}");
    assert_eq!(text.matches("The secret number is higher. // (tool)\n").count(), 4, "{text}");
    assert_eq!(server.violations(), [""; 0]);
    // Ann found out; Bob, who never asked before, was spared it.
    assert_eq!(text.matches("does not support").count(), 6, "each says what it found: {text}");
    assert_eq!((bodies_with(&server, "tools"), bodies_with(&server, "response_format")), (1, 2));
}

#[tokio::test]
async fn an_answer_of_a_form_works_on_a_server_of_plain_text() {
    let server = Server::start(small_model()).await;
    let agent =
        Assistant::new("Ann", AnyModel::new(model(&endpoint(&server)))).unwrap().output_schema(form());
    let chat = Chat::builder("alone").participant(agent).policy(sequential()).build().unwrap();
    let (status, events) = run(&chat, "How much more is ten than three?").await;
    assert_eq!(closed(&status).1, r#"{"more":7}"#, "{}", printed(&events));
    assert_eq!(server.violations(), [""; 0]);
    assert_eq!(bodies_with(&server, "response_format"), 2, "a schema, then JSON mode, then neither");
}

// What the configuration says is not tried.
#[tokio::test]
async fn a_known_missing_capability_is_not_tried() {
    let server = Server::start(small_model()).await;
    let config =
        Config { capabilities: polylogue_core::Capabilities::TEXT, ..Config::new(server.base_url()) };
    let model = AnyModel::new(Endpoint::new(config).unwrap().model("small"));
    let agent = Assistant::new("Ann", model).unwrap().tool(clock()).tool(clock()).output_schema(form());
    let chat = Chat::builder("alone").participant(agent).policy(sequential()).build().unwrap();
    let (status, events) = run(&chat, "How much more is ten than three?").await;
    assert_eq!(closed(&status).1, r#"{"more":7}"#, "{}", printed(&events));
    assert_eq!((bodies_with(&server, "tools"), bodies_with(&server, "response_format")), (0, 0));
    assert_eq!(server.violations(), [""; 0]);
}

// A turn that started in a way that the server refuses continues in another, without a question, once it is configured.
#[tokio::test]
async fn a_failed_turn_continues_once_the_missing_capability_is_configured() {
    let first = Server::start(small_model()).await;
    let ann = |model| Assistant::new("Ann", AnyModel::new(model)).unwrap().tool(high_low());
    let chat = |model| Chat::builder("alone").participant(ann(model)).policy(sequential()).build().unwrap();
    let (_, events) = run(&chat(model(&endpoint(&first))), "Is seven more than three?").await;
    for cut in 1..events.len() {
        let server = Server::start(small_model()).await;
        let config =
            Config { capabilities: polylogue_core::Capabilities::TEXT, ..Config::new(server.base_url()) };
        let chat = chat(Endpoint::new(config).unwrap().model("small"));
        let mut log = log_of(&events[..cut]).await;
        let status = chat.resume(&mut log).await.unwrap().status;
        assert_eq!(closed(&status).1, "Seven is more than three.", "{}", printed(&log.events().await));
        assert_eq!((bodies_with(&server, "tools"), bodies_with(&server, "response_format")), (0, 0));
        assert_eq!(server.violations(), [""; 0], "cut before event {cut}");
    }
}

// Ollama refuses tools of models that know none, and holds every model to a schema.
#[tokio::test]
async fn a_tool_works_on_a_model_of_ollama_without_tools() {
    let play = |request: &polylogue_test::server::Received, _: usize| {
        let last = request.last_text();
        let call = r#"{"say": null, "call": {"tool": "high_low", "args": {"secret": 7, "guess": 3}}}"#;
        match (last.contains("You can use these tools"), last.contains("returned:")) {
            (true, _) => Answer::text(call).think("Seven is more, but I am to call it."),
            (_, true) => Answer::text(r#"{"say": "Seven is more than three.", "call": null}"#),
            _ => Answer::unexpected(format!("asked: {last}")),
        }
    };
    let server = Server::start(Behavior::from(Playbook::new(play)).text_only()).await;
    let endpoint = Endpoint::new(Config::ollama(&server.ollama_url())).unwrap();
    let agent = Assistant::new("Ann", AnyModel::new(model(&endpoint))).unwrap().tool(high_low());
    let chat = solo_chat("alone", agent, 2);
    let (status, events) = run(&chat, "Is seven more than three?").await;
    let text = printed(&events);
    assert_eq!(closed(&status).1, "Seven is more than three.", "{text}");
    assert_eq!(text.matches("The secret number is higher. // (tool)\n").count(), 2 * 2, "{text}");
    assert_eq!(server.violations(), [""; 0]);
    assert_eq!((bodies_with(&server, "tools"), bodies_with(&server, "format")), (1, 4));
}
