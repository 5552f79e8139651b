//! JSON objects reach every wire with their keys in the order in which they were written: a model that is to reason
//! before it answers has to receive the two in this order.

use crate::common;

use crate::common::{Asked, ask, calls, text};
use polylogue_core::{Entry, Params, Part, ToolCall, ToolResult, ToolSpec};
use polylogue_models::{Api, Config, Endpoint};
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use serde_json::json;

const SCHEMA: &str = r#"{"type":"object","properties":{"reasoning":{"type":"string"},"answer":{"type":"string"}},"required":["reasoning","answer"],"additionalProperties":false}"#;
/// The part of the schema that every API is sent; Gemini's has no `additionalProperties`.
const PROPERTIES: &str = r#""properties":{"reasoning":{"type":"string"},"answer":{"type":"string"}}"#;
const ARGUMENTS: &str = r#"{"reasoning":"9.9 is 9.90.","answer":"9.9"}"#;

fn asked() -> Asked {
    let (schema, arguments) =
        (serde_json::from_str(SCHEMA).unwrap(), serde_json::from_str(ARGUMENTS).unwrap());
    let call = ToolCall { id: "call_1".into(), tool: "submit".into(), args: arguments };
    let mut asked = Asked::new([
        Entry::user("Which is larger?"),
        Entry::own(vec![Part::ToolCall(call)]),
        Entry::Tool { id: "call_1".into(), tool: "submit".into(), result: ToolResult::done("taken") },
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

/// Each API: its provider, and a model that calls tools and replies by a schema.
const APIS: [(Api, &str, &str); 6] = [
    (Api::ChatCompletions, "openai", "gpt-4o"),
    (Api::Responses, "openai", "gpt-5"),
    (Api::Messages, "anthropic", "claude-sonnet-5"),
    (Api::Gemini, "gemini", "gemini-3-pro-preview"),
    (Api::Converse, "bedrock", "anthropic.claude-sonnet-4-5-20250929-v1:0"),
    (Api::Ollama, "ollama", "qwen3"),
];

#[tokio::test]
async fn schemas_arguments_and_values_keep_their_order_on_every_wire() {
    for (api, provider, name) in APIS {
        let answer = Answer::text("").call_raw("submit", ARGUMENTS);
        let server = Server::start(Behavior::from(Playbook::always(answer))).await;
        let config = common::config_of(api, provider, &server);
        for stream in [true, false] {
            let config = Config { stream, ..config.clone() };
            let model = Endpoint::new(config).unwrap().model(name);
            let reply = ask(&model, &asked()).await.0.unwrap();
            let bytes = server.requests().pop().unwrap().bytes.clone();
            let sent = String::from_utf8_lossy(&bytes);
            assert_eq!(count(&bytes, PROPERTIES), 2, "{api:?}: the form of the reply and the tool: {sent}");
            assert_eq!(count(&bytes, ARGUMENTS), 2, "{api:?}: the earlier call and the value: {sent}");
            assert_eq!(calls(&reply)[0].2, ARGUMENTS, "{api:?}: what the model wrote: {}", text(&reply));
        }
        assert_eq!((server.count(), server.violations().len()), (2, 0), "{api:?}");
    }
}
