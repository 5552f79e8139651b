//! What Bedrock receives.

use polylogue_core::{
    Capability, Effort, Entry, Media, Model as _, ModelErrorKind, Params, Part, ToolCall, ToolChoice,
    ToolResult, ToolSpec,
};
use polylogue_models::{Config, Endpoint};
use polylogue_test::server::{Behavior, Server};
use serde_json::{Map, Value, json};

use crate::bedrock::config;
use crate::common::{Asked, ask, model};

/// The path and the body that are sent for `asked`, with a server that refuses what Bedrock refuses.
async fn sent(stream: bool, asked: &Asked) -> (String, Value) {
    let server = Server::start(Behavior::from("fine")).await;
    let (reply, _) = ask(&model(Config { stream, ..config(&server) }), asked).await;
    assert_eq!((reply.map(|_| ()), server.violations()), (Ok(()), Vec::new()));
    let received = server.requests()[0].clone();
    (received.path.clone(), received.body.clone())
}

fn extra(fields: Value) -> Map<String, Value> {
    fields.as_object().unwrap().clone()
}

fn media(kind: &str, url: &str) -> Part {
    Part::Media(Media { media_type: kind.into(), url: url.into() })
}

fn call(id: &str, args: Value) -> Part {
    Part::ToolCall(ToolCall { id: id.into(), tool: "look".into(), args })
}

fn returned(id: &str, outcome: ToolResult) -> Entry {
    Entry::Tool { id: id.into(), tool: "look".into(), result: outcome }
}

/// P91, P94: alternation, results first, pictures and documents as bytes.
#[tokio::test]
async fn a_conversation_with_tools_pictures_and_documents_is_in_converses_form() {
    let asked = Asked {
        tools: vec![ToolSpec::new("look", "Looks.", json!({"properties": {}})).repeatable()],
        ..Asked::new([
            Entry::User { parts: vec![Part::text("See?"), media("image/png", "data:image/png;base64,QUJD")] },
            Entry::User { parts: vec![media("application/pdf", "data:application/pdf;base64,RA==")] },
            Entry::own(vec![
                Part::Thought("Hm.".into()),
                call("call_of_mine", json!({"at": 1})),
                call("functions.look:0", json!("no object")),
            ]),
            returned("call_of_mine", ToolResult::done("a cat")),
            returned("functions.look:0", ToolResult::done("")),
            Entry::System { parts: vec![Part::text("Two.")] },
            Entry::User { parts: vec![media("image/png", "https://example.com/a.png")] },
            Entry::assistant("A cat."),
            Entry::User { parts: vec![media("text/csv", "data:text/csv;base64,RQ==")] },
        ])
    };
    let (path, body) = sent(true, &asked).await;
    assert_eq!(path, "/model/m/converse-stream");
    let other = body["messages"][1]["content"][1]["toolUse"]["toolUseId"].as_str().unwrap().to_owned();
    let document = |name: &str, format: &str, bytes: &str| json!({"document": {"name": name, "format": format, "source": {"bytes": bytes}}});
    let expected = json!({
        "system": [{"text": "Be brief."}],
        "messages": [
            {"role": "user", "content": [
                {"text": "See?"},
                {"image": {"format": "png", "source": {"bytes": "QUJD"}}},
                document("document 1", "pdf", "RA=="),
            ]},
            {"role": "assistant", "content": [
                {"toolUse": {"toolUseId": "call_of_mine", "name": "look", "input": {"at": 1}}},
                {"toolUse": {"toolUseId": other, "name": "look", "input": {"unparsed": "no object"}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "call_of_mine", "content": [{"text": "a cat"}]}},
                {"toolResult": {"toolUseId": other, "content": [{"text": "(no content)"}]}},
                {"text": "Two."},
                {"text": "[image/png: https://example.com/a.png]"},
            ]},
            {"role": "assistant", "content": [{"text": "A cat."}]},
            {"role": "user", "content": [document("document 2", "csv", "RQ=="), {"text": "(no content)"}]},
        ],
        "toolConfig": {"tools": [{"toolSpec": {
            "name": "look", "description": "Looks.", "inputSchema": {"json": {"type": "object", "properties": {}}},
        }}]},
    });
    assert_eq!(body, expected);
}

/// P92, P93: no empty system text, parameters where Converse has them, the schema as a text, the model's own fields.
#[tokio::test]
async fn parameters_are_where_converse_has_them() {
    let schema = json!({
        "type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": false,
    });
    let mut asked = Asked {
        system: Some(" ".into()),
        params: Params {
            temperature: Some(0.5),
            top_p: Some(0.9),
            max_tokens: Some(7),
            stop: vec!["END".into()],
            effort: Some(Effort::Low),
            schema: Some(schema.clone()),
            extra: extra(json!({
                "thinking": {"type": "adaptive"}, "requestMetadata": {"k": "v"},
                "additionalModelRequestFields": {"top_k": 4},
            })),
            ..Params::default()
        },
        ..Asked::default()
    };
    let format = |schema: &Value| json!({"type": "json_schema", "structure": {"jsonSchema": {"name": "reply", "schema": schema}}});
    let expected = json!({
        "messages": [{"role": "user", "content": [{"text": "How is the weather?"}]}],
        "inferenceConfig": {"maxTokens": 7, "temperature": 0.5, "topP": 0.9, "stopSequences": ["END"]},
        "outputConfig": {"textFormat": format(&schema), "effort": "low"},
        "additionalModelRequestFields": {"thinking": {"type": "adaptive"}, "top_k": 4},
        "requestMetadata": {"k": "v"},
    });
    let (path, mut body) = sent(false, &asked).await;
    let text = body.pointer_mut("/outputConfig/textFormat/structure/jsonSchema/schema").unwrap();
    // The order of its keys does not matter.
    *text = serde_json::from_str(text.as_str().unwrap()).unwrap();
    assert_eq!((&*path, body), ("/model/m/converse", expected));
    asked.params.extra =
        extra(json!({"inferenceConfig": {"maxTokens": 9}, "stream": true, "model": "a:b/c"}));
    let (path, body) = sent(false, &asked).await;
    assert_eq!(
        (&*path, &body["inferenceConfig"]),
        ("/model/a%3Ab%2Fc/converse-stream", &json!({"maxTokens": 9}))
    );
    assert_eq!(body.get("additionalModelRequestFields"), None);
}

/// P90.
#[tokio::test]
async fn a_conversation_with_calls_has_tools_even_if_none_is_offered() {
    let mut asked = Asked::new([
        Entry::user("Look."),
        Entry::own(vec![call("call_of_mine", json!({}))]),
        returned("call_of_mine", ToolResult::done("a cat")),
    ]);
    let (_, body) = sent(true, &asked).await;
    assert_eq!(body["toolConfig"]["tools"][0]["toolSpec"]["name"], "look");
    asked.tools = vec![ToolSpec::new("look", "", json!(true))];
    for (choice, expected) in [
        (ToolChoice::Auto, json!({"auto": {}})),
        (ToolChoice::Any, json!({"any": {}})),
        (ToolChoice::Tool("look".into()), json!({"tool": {"name": "look"}})),
        (ToolChoice::None, Value::Null),
    ] {
        asked.params.tool_choice = Some(choice);
        let (_, body) = sent(true, &asked).await;
        assert_eq!(body["toolConfig"]["toolChoice"], expected);
    }
}

/// Claude that reasons for a number of tokens refuses to do so where calls are continued without the reasoning before them.
#[tokio::test]
async fn calls_without_reasoning_are_continued_without_reasoning() {
    let server = Server::start(Behavior::from("fine")).await;
    let entries = [
        Entry::user("Look."),
        Entry::own(vec![call("call_of_mine", json!({}))]),
        returned("call_of_mine", ToolResult::done("a cat")),
    ];
    for (model, reasons) in
        [("anthropic.claude-sonnet-4-5-20250929-v1:0", false), ("anthropic.claude-sonnet-4-6", true)]
    {
        let params = Params {
            effort: Some(Effort::Low),
            stop: vec!["\n\n".into(), "END".into()],
            ..Params::default()
        };
        let tools = vec![ToolSpec::new("look", "", json!(true))];
        let asked = Asked { tools, params, ..Asked::new(entries.clone()) };
        let model = Endpoint::new(config(&server)).unwrap().model(model);
        ask(&model, &asked).await.0.unwrap();
        let body = server.requests().last().unwrap().body.clone();
        let thinking = body.pointer("/additionalModelRequestFields/thinking");
        assert_eq!(thinking.is_some(), reasons, "{body}");
        // Claude refuses stop sequences of white space.
        assert_eq!(body["inferenceConfig"]["stopSequences"], json!(["END"]));
    }
    assert_eq!(server.violations(), [""; 0]);
}

#[tokio::test]
async fn what_cannot_be_sent_is_refused_or_named() {
    let server = Server::start(Behavior::from("fine")).await;
    let model = Endpoint::new(config(&server)).unwrap().model("m");
    for (field, value) in
        [("messages", json!([])), ("system", json!("x")), ("additionalModelRequestFields", json!([1]))]
    {
        let params = Params { extra: extra(json!({field: value})), ..Params::default() };
        let error = ask(&model, &Asked { params, ..Asked::default() }).await.0.unwrap_err();
        assert!(error.message.contains(field), "{error:?}");
    }
    assert_eq!(server.requests().len(), 0);
    let params = Params { top_k: Some(1), seed: Some(2), temperature: Some(0.1), ..Params::default() };
    assert_eq!(model.ignored(&params), ["top_k", "seed"]);
    let params = Params {
        effort: Some(Effort::None),
        tool_choice: Some(ToolChoice::None),
        json: true,
        ..Params::default()
    };
    assert_eq!(model.ignored(&params), ["effort", "tool_choice"]);
    let error = ask(&model, &Asked { params, ..Asked::default() }).await.0.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unsupported(Capability::Json));
}

/// Cache points are sent to the models of which the table knows that they take them, and never more than four: the server refuses
/// a fifth.
#[tokio::test]
async fn cache_points_are_sent_to_models_that_take_them() {
    const POINT: &str = r#",{"cachePoint":{"type":"default"}}"#;
    for (name, counts) in [
        ("us.anthropic.claude-sonnet-4-5-20250929-v1:0", [2, 3, 4, 4]),
        ("meta.llama3-8b-instruct-v1:0", [0; 4]),
    ] {
        let server = Server::start(Behavior::from("fine")).await;
        let model = Endpoint::new(config(&server)).unwrap().model(name);
        let tools = vec![ToolSpec::new("look", "Looks.", json!({"type": "object"}))];
        let mut asked = Asked { tools, system: Some("Be brief. ".repeat(1000)), ..Asked::default() };
        let mut before = String::new();
        for (nth, count) in counts.into_iter().enumerate() {
            ask(&model, &asked).await.0.unwrap();
            let text = String::from_utf8(server.requests()[nth].bytes.clone()).unwrap();
            assert_eq!(text.matches(POINT).count(), count, "{nth}: {text}");
            let plain = text.replace(POINT, "");
            let end = plain.rfind(r#"]}],"toolConfig""#).unwrap();
            assert!(plain.starts_with(&before), "{plain}");
            plain[..end].clone_into(&mut before);
            let id = format!("call_number_{nth}");
            asked.entries.push(Entry::own(vec![call(&id, json!({}))]));
            asked.entries.push(returned(&id, ToolResult::done("a cat")));
        }
        assert_eq!(server.violations(), [""; 0]);
    }
}
