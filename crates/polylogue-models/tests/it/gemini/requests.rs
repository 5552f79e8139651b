//! What Gemini is sent.

use polylogue_core::{
    Capabilities, Capability, Effort, Entry, Media, Params, Part, Thinking, ToolCall, ToolChoice, ToolResult,
    ToolSpec, ToolStatus,
};
use polylogue_models::Config;
use polylogue_test::server::{Behavior, Server};
use serde_json::{Value, json};

use crate::common::{Asked, ask};
use crate::gemini::{NEW, OLD, config, model};

/// The body that is sent for `asked`, with a server that refuses what Google would.
async fn sent(config: impl FnOnce(&Server) -> Config, name: &str, asked: &Asked) -> Value {
    let server = Server::start(Behavior::from("fine")).await;
    let (reply, _) = ask(&model(config(&server), name), asked).await;
    assert_eq!((reply.map(|_| ()), server.violations()), (Ok(()), Vec::new()));
    server.requests()[0].body.clone()
}

fn media(kind: &str, url: &str) -> Part {
    Part::Media(Media { media_type: kind.into(), url: url.into() })
}

fn look(id: &str, args: Value) -> Part {
    Part::ToolCall(ToolCall { id: id.into(), tool: "look".into(), args })
}

fn result(id: &str, outcome: ToolResult) -> Entry {
    Entry::Tool { id: id.into(), tool: "look".into(), result: outcome }
}

fn params(params: Params) -> Asked {
    Asked { params, ..Asked::default() }
}

#[tokio::test]
async fn path_and_headers_are_googles() {
    for (stream, path) in [
        (true, "/v1beta/models/gemini-3-pro:streamGenerateContent?alt=sse"),
        (false, "/v1beta/models/gemini-3-pro:generateContent"),
    ] {
        let server = Server::start(Behavior::from("fine").key("a-key-that-no-one-may-see")).await;
        let config = Config { stream, ..config(&server) };
        ask(&model(config, NEW), &Asked::default()).await.0.unwrap();
        let request = server.requests()[0].clone();
        assert_eq!(request.path, path);
        assert_eq!(request.header("x-goog-api-key"), Some("a-key-that-no-one-may-see"));
        assert_eq!(request.header("authorization"), None);
    }
}

#[tokio::test]
async fn a_conversation_with_tools_people_and_pictures_is_in_googles_form() {
    let asked = Asked {
        tools: vec![ToolSpec::new(
            "look",
            "Looks.",
            json!({"type": "object", "properties": {"at": {"type": "integer"}}}),
        )],
        ..Asked::new([
            Entry::User { parts: vec![Part::text("See?"), media("image/png", "data:image/png;base64,QUJD")] },
            Entry::own(vec![
                Part::Thought("Hm.".into()),
                Part::text("I look."),
                look("call_of_mine", json!({"at": 1})),
                look("call_of_yours", json!("no object")),
            ]),
            result("call_of_mine", ToolResult::done("a cat")),
            result("call_of_yours", ToolResult::new(ToolStatus::Failed, vec![Part::text("too dark")])),
            Entry::user("Hurry."),
            Entry::assistant("A cat."),
            Entry::User {
                parts: vec![
                    Part::text("And these?"),
                    media("application/pdf", "https://example.com/a.pdf"),
                    media("image/gif", "https://example.com/a.gif"),
                    media("audio/mpeg", "gs://bucket/a.mp3"),
                ],
            },
            Entry::System { parts: vec![Part::text("Be kind.")] },
        ])
    };
    let body = sent(config, NEW, &asked).await;
    let expected = json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "See?"}, {"inlineData": {"mimeType": "image/png", "data": "QUJD"}}]},
            {"role": "model", "parts": [
                {"text": "I look."},
                {"functionCall": {"id": "call_of_mine", "name": "look", "args": {"at": 1}},
                 "thoughtSignature": "skip_thought_signature_validator"},
                {"functionCall": {"id": "call_of_yours", "name": "look", "args": {"unparsed": "no object"}}}]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "call_of_mine", "name": "look", "response": {"output": "a cat"}}},
                {"functionResponse": {"id": "call_of_yours", "name": "look", "response": {"error": "too dark"}}},
                {"text": "Hurry."}]},
            {"role": "model", "parts": [{"text": "A cat."}]},
            {"role": "user", "parts": [
                {"text": "And these?"},
                {"fileData": {"mimeType": "application/pdf", "fileUri": "https://example.com/a.pdf"}},
                {"text": "[image/gif: https://example.com/a.gif]"},
                {"fileData": {"mimeType": "audio/mpeg", "fileUri": "gs://bucket/a.mp3"}},
                {"text": "Be kind."}]}],
        "tools": [{"functionDeclarations": [{"name": "look", "description": "Looks.", "parametersJsonSchema":
            {"type": "object", "properties": {"at": {"type": "integer"}}}}]}],
    });
    assert_eq!(body, expected);
}

/// P52: no part is empty, no message is without parts, and the first one is of the role `user`.
#[tokio::test]
async fn no_part_is_blank_and_no_message_empty() {
    let asked = Asked::new([
        Entry::assistant("Hello."),
        Entry::user(" \n"),
        Entry::own(vec![Part::Thought("Hm.".into()), Part::text(" ")]),
        Entry::own(vec![Part::text("\t"), look("call_of_mine", json!({}))]),
        result("call_of_mine", ToolResult::done(" ")),
    ]);
    let body = sent(config, NEW, &asked).await;
    let contents = body["contents"].as_array().unwrap();
    let roles: Vec<&str> = contents.iter().map(|content| content["role"].as_str().unwrap()).collect();
    assert_eq!(roles, ["user", "model", "user", "model", "user", "model", "user"]);
    let none = json!([{"text": "(no content)"}]);
    assert_eq!((&contents[2]["parts"], &contents[3]["parts"]), (&none, &none));
    assert_eq!(contents[5]["parts"].as_array().unwrap().len(), 1, "only the call");
    assert_eq!(contents[6]["parts"][0]["functionResponse"]["response"]["output"], "(no content)");
}

/// P62: the server refuses what is not rewritten, in the schema of a reply and in that of a tool.
#[tokio::test]
async fn schemas_with_keywords_that_gemini_refuses_are_accepted() {
    let schema = json!({
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "type": "object",
        "properties": {
            "kind": {"const": "cat"},
            "flag": {"const": true},
            "name": {"type": "string", "pattern": "^a", "maxLength": 4},
            "color": {"$ref": "#/$defs/Color", "description": "Its color."},
            "both": {"allOf": [{"type": "string"}, {"minLength": 1}]},
            "one": {"oneOf": [{"type": "string"}, {"not": {"type": "null"}}]},
        },
        "required": ["kind"],
        "additionalProperties": false,
        "$defs": {"Color": {"enum": ["red", "blue"]}},
    });
    let params = Params { schema: Some(schema.clone()), ..Params::default() };
    let tools = vec![ToolSpec::new("look", "Looks.", schema)];
    let body = sent(config, NEW, &Asked { params, tools, ..Asked::default() }).await;
    for place in
        ["/generationConfig/responseJsonSchema", "/tools/0/functionDeclarations/0/parametersJsonSchema"]
    {
        let properties = &body.pointer(place).unwrap()["properties"];
        assert_eq!(properties["kind"], json!({"enum": ["cat"]}), "{place}");
        assert_eq!(properties["color"], json!({"$ref": "#/$defs/Color"}), "{place}");
        assert_eq!(properties.as_object().unwrap().len(), 6, "{place}");
    }
}

#[tokio::test]
async fn parameters_are_in_the_generation_config_and_extra_fields_in_their_place() {
    let schema =
        json!({"type": "object", "properties": {"n": {"const": "x"}}, "additionalProperties": false});
    let all = Params {
        temperature: Some(0.5),
        top_p: Some(0.9),
        top_k: Some(20),
        seed: Some(-7),
        max_tokens: Some(100),
        stop: ["1", "2", "3", "4", "5", "6"].map(String::from).to_vec(),
        schema: Some(schema),
        thinking: Some(Thinking::Summary),
        extra: json!({
            "safetySettings": [], "presencePenalty": 1, "max_tokens": 90, "generationConfig": {"topP": 0.8},
            "labels": {"team": "a"},
        })
        .as_object()
        .unwrap()
        .clone(),
        ..Params::default()
    };
    let body = sent(config, NEW, &params(all)).await;
    assert_eq!(
        body["generationConfig"],
        json!({
            "temperature": 0.5, "topP": 0.8, "topK": 20, "seed": 2_147_483_641, "maxOutputTokens": 90,
            "stopSequences": ["1", "2", "3", "4", "5"], "responseMimeType": "application/json",
            "responseJsonSchema": {"type": "object", "properties": {"n": {"enum": ["x"]}}, "additionalProperties": false},
            "thinkingConfig": {"includeThoughts": true}, "presencePenalty": 1,
        })
    );
    assert_eq!((&body["safetySettings"], &body["labels"]), (&json!([]), &json!({"team": "a"})));
    assert_eq!(sent(config, NEW, &Asked::default()).await.get("generationConfig"), None);
}

/// P61: for each effort from `none` to `max` what the model takes, and what was asked for from a model that is not in the table.
#[tokio::test]
async fn thinking_is_a_level_or_a_number_of_tokens_by_the_table() {
    let efforts: Vec<Effort> =
        serde_json::from_value(json!(["none", "minimal", "low", "medium", "high", "xhigh", "max"])).unwrap();
    let tokens = |least: u32| json!([least, 1_024, 1_024, 8_192, 24_576, 24_576, 24_576]);
    for (model, field, expected) in [
        ("gemini-2.5-flash", "thinkingBudget", tokens(0)),
        ("gemini-2.5-pro", "thinkingBudget", tokens(128)),
        ("gemini-3-flash-preview", "thinkingLevel", json!("MINIMAL MINIMAL LOW MEDIUM HIGH HIGH HIGH")),
        ("gemini-3.1-pro-preview", "thinkingLevel", json!("LOW LOW LOW MEDIUM HIGH HIGH HIGH")),
        ("gemini-3.8-flash", "thinkingLevel", json!("LOW LOW LOW MEDIUM HIGH HIGH HIGH")),
        ("gemini-9-of-tomorrow", "thinkingLevel", json!("MINIMAL MINIMAL LOW MEDIUM HIGH XHIGH XHIGH")),
    ] {
        let expected = expected.as_str().map_or(expected.clone(), |words| words.split(' ').collect());
        for (effort, value) in efforts.iter().zip(expected.as_array().unwrap()) {
            let asked = params(Params { effort: Some(*effort), ..Params::default() });
            let body = sent(config, model, &asked).await;
            assert_eq!(
                body["generationConfig"]["thinkingConfig"],
                json!({field: value}),
                "{model} {effort:?}"
            );
        }
    }
}

#[tokio::test]
async fn a_choice_of_tools_is_a_mode() {
    let tools = || {
        let open = json!({"type": "object", "properties": {"a": {"type": "string", "pattern": "^x"}}, "$schema": "s"});
        vec![
            ToolSpec::new("look", "Looks.", open),
            ToolSpec::new("9lives", "", json!({"type": "object", "properties": {}})),
        ]
    };
    for (choice, config_of) in [
        (ToolChoice::Auto, json!({"mode": "AUTO"})),
        (ToolChoice::None, json!({"mode": "NONE"})),
        (ToolChoice::Any, json!({"mode": "ANY"})),
        (ToolChoice::Tool("9lives".into()), json!({"mode": "ANY", "allowedFunctionNames": ["_9lives"]})),
    ] {
        let params = Params { tool_choice: Some(choice), ..Params::default() };
        let body = sent(config, OLD, &Asked { tools: tools(), params, ..Asked::default() }).await;
        assert_eq!(body["toolConfig"], json!({"functionCallingConfig": config_of}));
        assert_eq!(
            body["tools"][0]["functionDeclarations"],
            json!([
                {"name": "look", "description": "Looks.", "parametersJsonSchema": {"type": "object",
                    "properties": {"a": {"type": "string", "description": "(pattern: \"^x\")"}}}},
                {"name": "_9lives", "description": ""},
            ])
        );
    }
}

/// P63: what cannot be enforced is known before anything is sent, so that the caller asks in words.
#[tokio::test]
async fn a_schema_that_cannot_be_enforced_is_an_unsupported_capability() {
    let server = Server::start(Behavior::from("fine")).await;
    let refused = async |name: &str, params: Params, tools: Vec<ToolSpec>| {
        ask(&model(config(&server), name), &Asked { params, tools, ..Asked::default() })
            .await
            .0
            .unwrap_err()
            .kind
    };
    let unsupported = polylogue_core::ModelErrorKind::Unsupported;
    let schema = |schema| Params { schema: Some(schema), ..Params::default() };
    let recursive = json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]});
    assert_eq!(refused(NEW, schema(recursive), Vec::new()).await, unsupported(Capability::Schema));
    let tools = vec![crate::common::weather()];
    let object = schema(json!({"type": "object"}));
    assert_eq!(refused(OLD, object, tools.clone()).await, unsupported(Capability::Schema));
    let json = Params { json: true, ..Params::default() };
    assert_eq!(refused(OLD, json, tools).await, unsupported(Capability::Json));
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn extra_fields_that_cannot_be_sent_are_refused_before_anything_is() {
    let server = Server::start(Behavior::from("x")).await;
    for (field, value) in [("contents", json!([])), ("generationConfig", json!(1))] {
        let extra = [(field.to_owned(), value)].into_iter().collect();
        let asked = params(Params { extra, ..Params::default() });
        let error = ask(&model(config(&server), NEW), &asked).await.0.unwrap_err();
        assert!(error.message.contains(&format!("`{field}`")), "{error:?}");
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn pictures_of_tools_follow_the_results_for_models_that_see() {
    let picture = media("image/png", "data:image/png;base64,QUJD");
    let outcome = ToolResult::new(ToolStatus::Done, vec![Part::text("There."), picture]);
    let asked = Asked::new([
        Entry::user("What do you see?"),
        Entry::own(vec![look("call_of_mine", json!({}))]),
        result("call_of_mine", outcome),
        Entry::user("Well?"),
    ]);
    let capabilities = Capabilities::default().with(Capability::Vision);
    let body = sent(|server| Config { capabilities, ..config(server) }, OLD, &asked).await;
    let parts = body["contents"][2]["parts"].as_array().unwrap();
    assert_eq!(parts[0]["functionResponse"]["response"]["output"], "There.\n\n[image/png]");
    let words = "(The pictures that `look` returned. No participant wrote the text in them.)";
    let picture = json!({"inlineData": {"mimeType": "image/png", "data": "QUJD"}});
    assert_eq!(parts[1..], [json!({"text": words}), picture, json!({"text": "Well?"})]);
    // The table of models knows that it sees.
    let known = sent(config, OLD, &asked).await;
    assert_eq!(known["contents"], body["contents"]);
    let capabilities = Capabilities::default().without(Capability::Vision);
    let body = sent(|server| Config { capabilities, ..config(server) }, OLD, &asked).await;
    assert_eq!(body["contents"][2]["parts"].as_array().unwrap().len(), 2);
}
