//! The schemas of arguments, by each API. The server of each refuses what the provider refuses.

use crate::common::{Asked, ask, calls, config_of, entry};
use polylogue_core::{Entry, ToolResult, ToolSpec};
use polylogue_models::{Api, Endpoint};
use polylogue_test::server::{Answer, Playbook, Server};
use serde_json::{Value, json};

/// Each API: its provider, a model, and where a request has the schema of its first tool.
const APIS: [(Api, &str, &str, &str); 6] = [
    (Api::ChatCompletions, "openai", "gpt-4o", "/tools/0/function/parameters"),
    (Api::Responses, "openai", "gpt-5", "/tools/0/parameters"),
    (Api::Messages, "anthropic", "claude-sonnet-5", "/tools/0/input_schema"),
    (Api::Gemini, "gemini", "gemini-3-pro-preview", "/tools/0/functionDeclarations/0/parametersJsonSchema"),
    (
        Api::Converse,
        "bedrock",
        "anthropic.claude-sonnet-4-5-20250929-v1:0",
        "/toolConfig/tools/0/toolSpec/inputSchema/json",
    ),
    (Api::Ollama, "ollama", "qwen3", "/tools/0/function/parameters"),
];

/// A tool that takes an id or a path.
fn either() -> Value {
    json!({
        "type": "object", "properties": {"id": {"type": "string"}, "path": {"type": "string"}},
        "anyOf": [{"required": ["id"]}, {"required": ["path"]}],
    })
}

/// P35.
#[tokio::test]
async fn the_arguments_of_every_tool_are_an_object_by_every_api() {
    let text = json!({"type": "string"});
    let closed = json!({"type": "object", "properties": {"at": text}});
    let union = json!({"oneOf": [
        {"type": "object", "properties": {"a": text}, "required": ["a"]},
        {"type": "object", "properties": {"b": text}, "required": ["b"]},
    ]});
    let combined = |names: &str| format!("(arguments in one of these combinations: {names})");
    let cases = [
        (closed.clone(), closed),
        (
            either(),
            json!({"type": "object", "properties": {"id": text, "path": text}, "description": combined("id; path")}),
        ),
        (
            union,
            json!({"type": "object", "properties": {"a": text, "b": text}, "description": combined("a; b")}),
        ),
        (json!({}), json!({"type": "object", "properties": {}})),
        (json!(true), json!({"type": "object", "properties": {}})),
    ];
    for (api, provider, model, place) in APIS {
        let server = Server::start(Answer::text("Hello.")).await;
        let model = Endpoint::new(config_of(api, provider, &server)).unwrap().model(model);
        for (schema, expected) in &cases {
            let tools = vec![ToolSpec::new("look", "Looks.", schema.clone())];
            ask(&model, &Asked { tools, ..Asked::default() }).await.0.unwrap();
            let requests = server.requests();
            let sent = requests.last().unwrap().body.pointer(place);
            // Gemini is sent no schema of a function without arguments.
            let is_left_out = api == Api::Gemini && expected["properties"] == json!({});
            assert_eq!(sent, (!is_left_out).then_some(expected), "{api:?}: {schema}");
        }
        assert_eq!(server.violations(), [""; 0], "{api:?}");
    }
}

#[tokio::test]
async fn a_call_of_a_tool_with_alternatives_has_the_arguments_of_one() {
    for (api, provider, model, _) in APIS {
        let answers = [Answer::default().call("look", json!({"path": "x"})), Answer::text("There.")];
        let server = Server::start(Playbook::list(answers)).await;
        let model = Endpoint::new(config_of(api, provider, &server)).unwrap().model(model);
        let tools = vec![ToolSpec::new("look", "Looks.", either())];
        let mut asked = Asked { tools, ..Asked::default() };
        let reply = ask(&model, &asked).await.0.unwrap();
        let [(id, tool, arguments)]: [_; 1] = calls(&reply).try_into().unwrap();
        assert_eq!((&*tool, &*arguments), ("look", r#"{"path":"x"}"#), "{api:?}");
        asked.entries.extend([entry(&reply), Entry::Tool { id, tool, result: ToolResult::done("A cat.") }]);
        ask(&model, &asked).await.0.unwrap();
        assert_eq!((server.count(), server.violations().len()), (2, 0), "{api:?}");
    }
}
