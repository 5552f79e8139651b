//! JSON objects reach every wire with their keys in the order in which they were written: a model that is to reason
//! before it answers has to receive the two in this order.

#![allow(clippy::unwrap_used, clippy::expect_used, clippy::indexing_slicing, clippy::panic, reason = "tests")]

mod common;

use common::{Asked, ask, calls, model, text};
use polylogue_core::{Call, Entry, Outcome, Params, Part, ToolSpec};
use polylogue_models::{Config, Retries};
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use serde_json::json;

const SCHEMA: &str = r#"{"type":"object","properties":{"reasoning":{"type":"string"},"answer":{"type":"string"}},"required":["reasoning","answer"]}"#;
const ARGUMENTS: &str = r#"{"reasoning":"9.9 is 9.90.","answer":"9.9"}"#;

fn asked() -> Asked {
    let (schema, arguments) =
        (serde_json::from_str(SCHEMA).unwrap(), serde_json::from_str(ARGUMENTS).unwrap());
    let call = Call { id: "call_1".into(), tool: "submit".into(), args: arguments };
    let mut asked = Asked::new([
        Entry::user("Which is larger?"),
        Entry::own(vec![Part::Call(call)]),
        Entry::Tool { id: "call_1".into(), tool: "submit".into(), outcome: Outcome::done("taken") },
        Entry::User { parts: vec![Part::Data(serde_json::from_str(ARGUMENTS).unwrap())] },
    ]);
    asked.params = Params { schema: Some(serde_json::from_str(SCHEMA).unwrap()), ..Params::default() };
    asked.tools = vec![ToolSpec::new("submit", "Submits an answer.", schema)];
    asked
}

/// How often `json` is in the bytes, raw or escaped within a text.
fn count(bytes: &[u8], value: &str) -> usize {
    let sent = String::from_utf8(bytes.to_vec()).unwrap();
    let quoted = json!(value).to_string();
    sent.matches(value).count() + sent.matches(quoted.trim_matches('"')).count()
}

#[tokio::test]
async fn schemas_arguments_and_values_keep_their_order_on_every_wire() {
    let answer = Answer::text("").call_raw("submit", ARGUMENTS);
    let server = Server::start(Behavior::from(Playbook::always(answer))).await;
    let ollama = Config { retries: Retries::none(), ..Config::ollama(&server.ollama_url()) };
    for config in [common::config(&server), ollama] {
        for stream in [true, false] {
            let reply = ask(&model(Config { stream, ..config.clone() }), &asked()).await.0.unwrap();
            let bytes = server.requests().pop().unwrap().bytes.clone();
            let sent = String::from_utf8_lossy(&bytes);
            assert_eq!(count(&bytes, SCHEMA), 2, "the form of the reply and the tool: {sent}");
            assert_eq!(count(&bytes, ARGUMENTS), 2, "the earlier call and the value: {sent}");
            assert_eq!(calls(&reply)[0].2, ARGUMENTS, "what the model wrote: {}", text(&reply));
        }
    }
    let requests = server.requests();
    assert_eq!(requests.iter().filter(|request| request.is_ollama()).count(), 2);
    assert_eq!(requests.len(), 4);
}
