//! Requests, byte for byte.

use polylogue_core::{
    AnyModel, Effort, Entry, Media, Model as _, ModelErrorKind, Params, Part, Thinking, ToolCall, ToolChoice,
    ToolResult, ToolSpec,
};
use polylogue_models::{Config, EndpointModel};
use polylogue_test::server::{Answer, Behavior, Playbook, Server};
use serde_json::{Value, json};

use super::{config, plain, reasoning};
use crate::common::{Asked, ask, text, weather};

async fn server() -> Server {
    Server::start(Behavior::from(Playbook::always(Answer::text("Sunny.")))).await
}

/// The body that is sent of `asked`.
async fn sent(model: &EndpointModel, server: &Server, asked: &Asked) -> Value {
    ask(model, asked).await.0.unwrap();
    assert_eq!(server.violations(), [""; 0]);
    server.requests().last().unwrap().body.clone()
}

fn closed() -> Value {
    json!({"type": "object", "properties": {"at": {"type": "string"}}, "required": ["at"], "additionalProperties": false})
}

/// P69, P73, P79: everything that a request can have, each at its place.
#[tokio::test]
async fn a_request_has_all_parameters() {
    let server = server().await;
    let params = Params {
        effort: Some(Effort::Low),
        thinking: Some(Thinking::Summary),
        tool_choice: Some(ToolChoice::Tool("look".into())),
        parallel_tool_calls: Some(false),
        max_tokens: Some(500),
        schema: Some(closed()),
        ..Params::default()
    };
    let untyped = ToolSpec::new("any", "Takes anything.", json!({}));
    let tools = vec![ToolSpec::new("look", "Looks.", closed()), weather(), untyped];
    let entries = vec![
        Entry::user("Where?"),
        Entry::own(vec![
            Part::Thought("Hm.".into()),
            Part::text("I look."),
            Part::ToolCall(ToolCall {
                id: "call_12345678".into(),
                tool: "look".into(),
                args: json!({"at": "a"}),
            }),
        ]),
        Entry::Tool { id: "call_12345678".into(), tool: "look".into(), result: ToolResult::done("There.") },
        Entry::System { parts: vec![Part::text("Be quick.")] },
        Entry::user("Well?"),
    ];
    let asked = Asked { tools, params, ..Asked::new(entries) };
    let body = sent(&reasoning(config(&server)), &server, &asked).await;
    let empty = json!({"type": "object", "properties": {}});
    let expected = json!({
        "model": "gpt-5",
        "instructions": "Be brief.",
        "input": [
            {"role": "user", "content": "Where?"},
            {"role": "assistant", "content": "I look."},
            {"type": "function_call", "call_id": "call_12345678", "name": "look", "arguments": "{\"at\":\"a\"}"},
            {"type": "function_call_output", "call_id": "call_12345678", "output": "There."},
            {"role": "developer", "content": "Be quick."},
            {"role": "user", "content": "Well?"},
        ],
        "tools": [
            {"type": "function", "name": "look", "description": "Looks.", "parameters": closed(), "strict": true},
            {"type": "function", "name": "weather", "description": "Tells the weather.", "parameters": empty, "strict": false},
            {"type": "function", "name": "any", "description": "Takes anything.", "parameters": empty, "strict": false},
        ],
        "tool_choice": {"type": "function", "name": "look"},
        "parallel_tool_calls": false,
        "max_output_tokens": 500,
        "reasoning": {"effort": "low", "summary": "auto"},
        "text": {"format": {"type": "json_schema", "name": "reply", "schema": closed(), "strict": true}},
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "stream": true,
        "stream_options": {"include_obfuscation": false},
    });
    assert_eq!(body, expected);
}

/// P80: a model that reasons refuses sampling, and one that does not refuses reasoning.
#[tokio::test]
async fn what_a_model_refuses_is_left_out_and_told() {
    let server = server().await;
    let params = Params {
        temperature: Some(0.5),
        top_p: Some(0.9),
        top_k: Some(4),
        seed: Some(1),
        effort: Some(Effort::High),
        thinking: Some(Thinking::Summary),
        ..Params::default()
    };
    let asked = Asked { params: params.clone(), ..Asked::default() };
    let model = reasoning(config(&server));
    assert_eq!(model.ignored(&params), ["temperature", "top_p", "top_k", "seed"]);
    let body = sent(&model, &server, &asked).await;
    assert_eq!((body.get("temperature"), body["reasoning"]["effort"].as_str()), (None, Some("high")));
    let model = plain(config(&server));
    assert_eq!(model.ignored(&params), ["top_k", "seed", "effort", "thinking"]);
    let body = sent(&model, &server, &asked).await;
    let absent = [body.get("reasoning"), body.get("include"), body.get("seed")];
    assert_eq!((body["temperature"].as_f64(), absent), (Some(0.5), [None, None, None]));
}

/// P74: stop texts have no field. The reply is cut there.
#[tokio::test]
async fn stop_texts_are_not_sent() {
    let server = server().await;
    let params = Params { stop: vec!["\n".into()], max_tokens: Some(3), json: true, ..Params::default() };
    let body = sent(&reasoning(config(&server)), &server, &Asked { params, ..Asked::default() }).await;
    let format = json!({"format": {"type": "json_object"}});
    assert_eq!((body.get("stop"), &body["max_output_tokens"], &body["text"]), (None, &json!(16), &format));
    let params = Params { stop: vec!["nn".into()], ..Params::default() };
    let (model, asked) = (AnyModel::new(reasoning(config(&server))), Asked { params, ..Asked::default() });
    let reply = model.complete(&asked.request(), &mut ()).await.unwrap();
    assert_eq!((text(&reply), server.requests()[1].body.get("stop")), ("Su".to_owned(), None));
}

/// P81: pictures, documents and sound in the forms that the API takes.
#[tokio::test]
async fn media_has_its_own_parts() {
    let server = server().await;
    let media = |kind: &str, url: &str| Part::Media(Media { media_type: kind.into(), url: url.into() });
    let picture = || media("image/png", "data:image/png;base64,AAAA");
    let parts = vec![
        Part::text("Look:"),
        media("image/jpeg", "https://example.com/a.jpg"),
        media("application/pdf", "data:application/pdf;base64,BBBB"),
        media("application/pdf", "https://example.com/b.pdf"),
        media("audio/wav", "data:audio/wav;base64,CCCC"),
        media("video/mp4", "https://example.com/c.mp4"),
    ];
    let call = ToolCall { id: "call_12345678".into(), tool: "look".into(), args: json!({}) };
    let outcome = ToolResult { parts: vec![Part::text("This:"), picture()], ..ToolResult::done("") };
    let result = Entry::Tool { id: call.id.clone(), tool: call.tool.clone(), result: outcome };
    let entries = vec![Entry::User { parts }, Entry::own(vec![Part::ToolCall(call)]), result];
    let mut sees = config(&server);
    sees.capabilities.vision = Some(true);
    let body = sent(&reasoning(sees), &server, &Asked::new(entries.clone())).await;
    assert_eq!(
        body["input"][0]["content"],
        json!([
            {"type": "input_text", "text": "Look:"},
            {"type": "input_image", "image_url": "https://example.com/a.jpg"},
            {"type": "input_file", "filename": "document.pdf", "file_data": "data:application/pdf;base64,BBBB"},
            {"type": "input_file", "file_url": "https://example.com/b.pdf"},
            {"type": "input_audio", "input_audio": {"data": "CCCC", "format": "wav"}},
            {"type": "input_text", "text": "[video/mp4: https://example.com/c.mp4]"},
        ])
    );
    let shown = json!([
        {"type": "input_text", "text": "This:"},
        {"type": "input_image", "image_url": "data:image/png;base64,AAAA"},
    ]);
    assert_eq!((&body["input"][2]["output"], body["input"].as_array().unwrap().len()), (&shown, 3));
    let mut blind = config(&server);
    blind.capabilities.vision = Some(false);
    let body = sent(&reasoning(blind), &server, &Asked::new(entries)).await;
    assert_eq!(body["input"][2]["output"], "This:\n\n[image/png]");
}

/// Extra fields take precedence, and are merged with the objects that other parameters have their place in.
#[tokio::test]
async fn extra_fields_take_precedence() {
    let server = server().await;
    let extra =
        json!({"text": {"verbosity": "low"}, "reasoning": {"effort": "medium"}, "service_tier": "flex"});
    let Value::Object(extra) = extra else { panic!() };
    let params = Params { effort: Some(Effort::Low), schema: Some(closed()), extra, ..Params::default() };
    let body = sent(&reasoning(config(&server)), &server, &Asked { params, ..Asked::default() }).await;
    assert_eq!((&body["reasoning"]["effort"], &body["text"]["verbosity"]), (&json!("medium"), &json!("low")));
    assert_eq!((&body["text"]["format"]["strict"], &body["service_tier"]), (&json!(true), &json!("flex")));
    for name in ["input", "instructions", "previous_response_id", "conversation", "truncation", "background"]
    {
        let params =
            Params { extra: [(name.to_owned(), json!("x"))].into_iter().collect(), ..Params::default() };
        let asked = Asked { params, ..Asked::default() };
        let error = ask(&reasoning(config(&server)), &asked).await.0.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Config, "{name}");
        assert!(error.message.contains(name), "{error}");
    }
    assert_eq!(server.count(), 1);
}

/// P11: a later request of the same view begins with the bytes of the earlier one.
#[tokio::test]
async fn a_later_request_begins_as_the_earlier_one() {
    let server = server().await;
    let model = reasoning(Config { stream: false, ..config(&server) });
    let mut asked = Asked::new([Entry::user("One?")]);
    for text in ["Two?", "Three?"] {
        let reply = ask(&model, &asked).await.0.unwrap();
        asked.entries.push(Entry::Assistant { parts: reply.parts, verbatim: reply.verbatim });
        asked.entries.push(Entry::user(text));
    }
    ask(&model, &asked).await.0.unwrap();
    let requests = server.requests();
    for pair in requests.windows(2) {
        let end = pair[0].bytes.windows(2).rposition(|two| two == b"}]").unwrap();
        assert_eq!(pair[0].bytes[..=end], pair[1].bytes[..=end]);
    }
    assert_eq!(server.violations(), [""; 0]);
}
