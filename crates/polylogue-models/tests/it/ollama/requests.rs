//! What Ollama is sent.

use polylogue_core::{
    Capabilities, Capability, Entry, Media, Model as _, Params, Part, ToolCall, ToolResult, ToolSpec,
    ToolStatus,
};
use polylogue_models::Config;
use polylogue_test::server::{Answer, Behavior, History, Server};
use serde_json::{Map, Value, json};

use crate::common::{Asked, ask, model, reply};
use crate::ollama::config;

/// The body that is sent for `asked`, with a server that refuses what Ollama would not understand.
async fn sent(config: impl FnOnce(&Server) -> Config, asked: &Asked) -> Value {
    let server = Server::start(Behavior::from("fine")).await;
    let (reply, _) = ask(&model(config(&server)), asked).await;
    assert_eq!((reply.map(|_| ()), server.violations()), (Ok(()), Vec::new()));
    let received = server.requests()[0].clone();
    assert_eq!(
        (&*received.path, received.header("accept")),
        ("/api/chat", Some("application/x-ndjson, application/json"))
    );
    received.body.clone()
}

fn extra(fields: Value) -> Map<String, Value> {
    fields.as_object().unwrap().clone()
}

fn media(url: &str) -> Part {
    Part::Media(Media { media_type: "image/png".into(), url: url.into() })
}

#[tokio::test]
async fn a_conversation_with_tools_and_pictures_is_in_ollamas_form() {
    let call = |id: &str, args: Value| Part::ToolCall(ToolCall { id: id.into(), tool: "look".into(), args });
    let asked = Asked {
        tools: vec![
            ToolSpec::new("look", "Looks.", json!({"type": "object", "properties": {}})).repeatable(),
        ],
        ..Asked::new([
            Entry::User { parts: vec![Part::text("See?"), media("data:image/png;base64,QUJD")] },
            Entry::own(vec![
                Part::Thought("Hm.".into()),
                call("call_of_mine", json!({"at": 1})),
                call("call_of_yours", json!("no object")),
            ]),
            Entry::Tool { id: "call_of_mine".into(), tool: "look".into(), result: ToolResult::done("a cat") },
            Entry::Tool {
                id: "call_of_yours".into(),
                tool: "look".into(),
                result: ToolResult::done("a dog"),
            },
            Entry::assistant("A cat and a dog."),
            Entry::User {
                parts: vec![media("https://example.com/a.png"), media("data:image/png;base64,RA==")],
            },
            Entry::User { parts: vec![Part::Data(json!({"n": 1}))] },
        ])
    };
    let body = sent(config, &asked).await;
    let expected = json!({
        "model": "m",
        "messages": [
            {"role": "system", "content": "Be brief."},
            {"role": "user", "content": "See?", "images": ["QUJD"]},
            {"role": "assistant", "content": "", "tool_calls": [
                {"id": "call_of_mine", "function": {"name": "look", "arguments": {"at": 1}}},
                {"id": "call_of_yours", "function": {"name": "look", "arguments": {"unparsed": "no object"}}}]},
            {"role": "tool", "tool_name": "look", "tool_call_id": "call_of_mine", "content": "a cat"},
            {"role": "tool", "tool_name": "look", "tool_call_id": "call_of_yours", "content": "a dog"},
            {"role": "assistant", "content": "A cat and a dog."},
            {"role": "user", "content": "[image/png: https://example.com/a.png]\n\n{\"n\":1}", "images": ["RA=="]}],
        "tools": [{"type": "function", "function": {"name": "look", "description": "Looks.",
            "parameters": {"type": "object", "properties": {}}}}],
        "stream": true, "truncate": false, "shift": false,
    });
    assert_eq!(body, expected);
}

#[tokio::test]
async fn parameters_are_options_and_the_callers_word_counts() {
    let schema = json!({"type": "object", "properties": {"n": {"type": "integer"}}});
    let params = Params {
        temperature: Some(0.5),
        top_p: Some(0.9),
        top_k: Some(20),
        seed: Some(7),
        max_tokens: Some(100),
        stop: vec!["END".into()],
        schema: Some(schema.clone()),
        ..Params::default()
    };
    let options = json!({"temperature": 0.5, "top_p": 0.9, "top_k": 20, "seed": 7, "num_predict": 100, "stop": ["END"]});
    let with = |fields: Value| Asked {
        params: Params { extra: extra(fields), ..params.clone() },
        ..Asked::default()
    };
    let body = sent(config, &with(json!({}))).await;
    assert_eq!((&body["options"], &body["format"]), (&options, &schema));
    assert_eq!((body.get("think"), body.get("keep_alive")), (None, None));

    let body = sent(
        |server| Config { stream: false, ..config(server) },
        &with(json!({
            "num_ctx": 16384, "temperature": 1, "options": {"seed": 8, "num_gpu": 0}, "max_tokens": 5,
            "think": false, "keep_alive": "10m", "truncate": true, "format": "json", "model": "other:1b"
        })),
    )
    .await;
    let options = json!({"temperature": 1, "top_p": 0.9, "top_k": 20, "seed": 8, "num_predict": 5, "stop": ["END"],
        "num_ctx": 16384, "num_gpu": 0});
    assert_eq!(body["options"], options);
    for (field, value) in [
        ("think", json!(false)),
        ("keep_alive", json!("10m")),
        ("truncate", json!(true)),
        ("shift", json!(false)),
        ("stream", json!(false)),
        ("format", json!("json")),
        ("model", json!("other:1b")),
    ] {
        assert_eq!(body[field], value, "{field}");
    }
}

#[tokio::test]
async fn the_form_of_a_reply_may_be_asked_for_as_of_other_servers() {
    let params = Params { json: true, ..Params::default() };
    let body = sent(config, &Asked { params, ..Asked::default() }).await;
    assert_eq!((&body["format"], body.get("options")), (&json!("json"), None));
    let schema = json!({"type": "object"});
    for (wanted, format) in [
        (json!({"type": "json_object"}), json!("json")),
        (json!({"type": "json_schema", "json_schema": {"name": "reply", "schema": schema}}), schema.clone()),
        (json!({"type": "text"}), Value::Null),
    ] {
        let params = Params { extra: extra(json!({"response_format": wanted})), ..Params::default() };
        let body = sent(config, &Asked { params, ..Asked::default() }).await;
        assert_eq!((&body["format"], body.get("options")), (&format, None), "{wanted}");
    }
}

#[tokio::test]
async fn a_reply_is_streamed_as_the_caller_wants() {
    for (stream, extra_field, expected) in
        [(true, None, true), (false, None, false), (true, Some(false), false)]
    {
        let fields = extra_field.map_or(json!({}), |stream| json!({"stream": stream}));
        let asked =
            Asked { params: Params { extra: extra(fields), ..Params::default() }, ..Asked::default() };
        let body = sent(|server| Config { stream, ..config(server) }, &asked).await;
        assert_eq!(body["stream"], expected);
    }
}

#[tokio::test]
async fn extra_fields_that_cannot_be_sent_are_refused_before_anything_is() {
    let server = Server::start(Behavior::from("x")).await;
    for (fields, says) in [(json!({"options": 1}), "`options`"), (json!({"messages": []}), "`messages`")] {
        let params = Params { extra: extra(fields), ..Params::default() };
        let (refused, _) = ask(&model(config(&server)), &Asked { params, ..Asked::default() }).await;
        let error = refused.unwrap_err();
        assert!(error.message.contains(says), "{error:?}");
        assert_eq!(error.hint.as_deref(), Some("remove it from `extra`"));
    }
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn what_was_written_for_one_api_is_not_sent_to_the_other() {
    let server = Server::start(Behavior::from("fine").history(History::Strict)).await;
    let own = model(config(&server));
    let compatible = model(Config { provider: "c".into(), ..Config::new(server.base_url()) });
    let asked = Asked::new([
        Entry::user("Look."),
        Entry::own(vec![Part::ToolCall(ToolCall {
            id: "call_1234567".into(),
            tool: "t".into(),
            args: json!({}),
        })]),
        Entry::Tool { id: "call_1234567".into(), tool: "t".into(), result: ToolResult::done("seen") },
    ]);
    for model in [&own, &compatible, &own, &compatible] {
        model.complete(&asked.request(), &mut ()).await.unwrap();
    }
    assert_eq!(server.violations(), [""; 0]);
    let requests = server.requests();
    assert_eq!((&requests[0].bytes, &requests[1].bytes), (&requests[2].bytes, &requests[3].bytes));
}

#[tokio::test]
async fn a_key_is_sent_if_there_is_one() {
    let server = Server::start(Behavior::from(Answer::text("x")).key("a-key-of-the-cloud")).await;
    let key = polylogue_models::Key::new("a-key-of-the-cloud");
    assert!(reply(&model(Config { key, ..config(&server) })).await.is_ok());
    assert_eq!(reply(&model(config(&server))).await.unwrap_err().status, Some(401));
}

#[tokio::test]
async fn pictures_of_tools_go_to_models_that_see() {
    let call = ToolCall { id: "c1".into(), tool: "camera".into(), args: json!({}) };
    let parts =
        vec![Part::text("There."), media("data:image/png;base64,QUJD"), media("https://example.com/a.png")];
    let outcome = ToolResult::new(ToolStatus::Done, parts);
    let asked = Asked::new([
        Entry::user("What do you see?"),
        Entry::own(vec![Part::ToolCall(call)]),
        Entry::Tool { id: "c1".into(), tool: "camera".into(), result: outcome },
    ]);
    let capabilities = Capabilities::default().with(Capability::Vision);
    let body = sent(|server| Config { capabilities, ..config(server) }, &asked).await;
    let words = "(The pictures that `camera` returned. No participant wrote the text in them.)";
    let messages = body["messages"].as_array().unwrap();
    assert_eq!(messages[3]["content"], "There.\n\n[image/png]\n\n[image/png: https://example.com/a.png]");
    assert_eq!(messages[4..], [json!({"role": "user", "content": words, "images": ["QUJD"]})]);
    let body = sent(config, &asked).await;
    assert_eq!(body["messages"].as_array().unwrap().len(), 4);
}
