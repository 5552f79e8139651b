//! The table of deviations: what each provider is sent.

use crate::common::{Asked, ask, weather};
use polylogue_core::{
    Capability, Entry, FinishReason, Media, Model as _, ModelErrorKind, Params, Part, ToolCall, ToolChoice,
    ToolResult,
};
use polylogue_models::{Config, Endpoint, Provider, Retries};
use polylogue_test::server::{Answer, Behavior, History, Playbook, Server, Vendor};
use serde_json::{Value, json};

/// What `provider` is sent of a request with everything that providers treat differently.
async fn sent(provider: &str, model: &str) -> Value {
    sent_with(provider, model, "call_of_another_provider").await
}

/// The same, with a call that has this id.
async fn sent_with(provider: &str, model: &str, id: &str) -> Value {
    let server =
        Server::start(Behavior::from(Playbook::always(Answer::text("Sunny."))).history(History::Loose)).await;
    let config = Provider::find(provider).unwrap().config_at(&server.base_url());
    let endpoint = Endpoint::new(Config { retries: Retries::none(), ..config }).unwrap();
    let params = Params {
        seed: Some(7),
        top_k: Some(4),
        stop: vec!["\n\n".into()],
        tool_choice: Some(ToolChoice::Tool("weather".into())),
        ..Params::default()
    };
    let call = ToolCall { id: id.into(), tool: "weather".into(), args: json!({}) };
    let result =
        Entry::Tool { id: call.id.clone(), tool: call.tool.clone(), result: ToolResult::done("sunny") };
    let entries =
        vec![Entry::user("Weather?"), Entry::own(vec![Part::ToolCall(call)]), result, Entry::user("So?")];
    let asked = Asked { tools: vec![weather()], params, ..Asked::new(entries) };
    // The scripted server knows OpenAI's fields only; what it was sent is what counts.
    let _ = ask(&endpoint.model(model), &asked).await;
    server.requests()[0].body.clone()
}

/// What a request has at these places.
fn at(body: &Value, pointers: &[&str]) -> Vec<Value> {
    pointers.iter().map(|pointer| body.pointer(pointer).cloned().unwrap_or_default()).collect()
}

const PLACES: [&str; 6] = [
    "/seed",
    "/random_seed",
    "/top_k",
    "/stop/0",
    "/tool_choice/function/name",
    "/stream_options/include_usage",
];

/// P100, P105: each row of the table.
#[tokio::test]
async fn each_provider_is_sent_what_it_accepts() {
    let null = Value::Null;
    let [seed, top_k, stop, tool, yes] = [json!(7), json!(4), json!("\n\n"), json!("weather"), json!(true)];
    for (provider, model, expected) in [
        ("openai-chat", "o3", [&seed, &null, &top_k, &null, &tool, &yes]),
        ("openai-chat", "gpt-4o", [&seed, &null, &top_k, &stop, &tool, &yes]),
        ("vllm", "m", [&seed, &null, &top_k, &stop, &tool, &yes]),
        ("llamacpp", "m", [&seed, &null, &top_k, &stop, &null, &yes]),
        ("sglang", "m", [&seed, &null, &top_k, &stop, &tool, &yes]),
        ("tgi", "m", [&seed, &null, &top_k, &stop, &tool, &yes]),
        ("together", "m", [&seed, &null, &top_k, &stop, &tool, &yes]),
        ("qwen", "m", [&seed, &null, &top_k, &stop, &tool, &yes]),
        ("openrouter", "m", [&seed, &null, &top_k, &stop, &tool, &yes]),
        ("deepseek", "m", [&seed, &null, &top_k, &stop, &tool, &yes]),
        ("mistral", "m", [&null, &seed, &null, &stop, &tool, &null]),
        ("moonshot", "m", [&seed, &null, &top_k, &stop, &tool, &yes]),
        ("groq", "m", [&seed, &null, &null, &stop, &tool, &yes]),
        ("xai", "grok-4.20", [&seed, &null, &top_k, &null, &tool, &yes]),
        ("xai", "m", [&seed, &null, &top_k, &stop, &tool, &yes]),
        ("lmstudio", "m", [&seed, &null, &top_k, &stop, &null, &yes]),
        ("cohere", "m", [&seed, &null, &null, &stop, &null, &yes]),
    ] {
        let body = sent(provider, model).await;
        assert_eq!(at(&body, &PLACES).iter().collect::<Vec<_>>(), expected, "{provider}:{model}");
    }
    for provider in ["lmstudio", "llamacpp", "cohere"] {
        assert_eq!(sent(provider, "m").await["tool_choice"], "required", "{provider}");
    }
}

/// TGI's formats of replies are its grammars, which its strict server asks for.
#[tokio::test]
async fn schemas_are_sent_in_the_form_of_the_provider() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]});
    for (name, vendor, schema_form, json_form) in [
        (
            "tgi",
            Vendor::Tgi,
            json!({"type": "json", "value": schema}),
            json!({"type": "json", "value": {"type": "object"}}),
        ),
        (
            "vllm",
            Vendor::Vllm,
            json!({"type": "json_schema", "json_schema": {"name": "reply", "schema": schema, "strict": false}}),
            json!({"type": "json_object"}),
        ),
    ] {
        let answers = Playbook::always(Answer::text(r#"{"a": "b"}"#));
        let server = Server::start(Behavior::from(answers).vendor(vendor)).await;
        let config = Provider::find(name).unwrap().config_at(&server.base_url());
        let model = Endpoint::new(Config { retries: Retries::none(), ..config }).unwrap().model("m");
        for params in [
            Params { schema: Some(schema.clone()), ..Params::default() },
            Params { json: true, ..Params::default() },
        ] {
            ask(&model, &Asked { params, ..Asked::default() }).await.0.unwrap();
        }
        assert_eq!(server.violations(), [""; 0], "{name}");
        let formats =
            server.requests().iter().map(|sent| sent.body["response_format"].clone()).collect::<Vec<_>>();
        assert_eq!(formats, [schema_form, json_form], "{name}");
    }
}

/// P73: OpenAI refuses schemas of anything else than an object, strict or not. Where it is known to be OpenAI, the caller asks in
/// another way.
#[tokio::test]
async fn openai_is_sent_schemas_of_objects_only() {
    let list = json!({"type": "array", "items": {"type": "string"}});
    let either = json!({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]});
    for (name, is_known) in [("openai-chat", true), ("openai-chat", false), ("openai-responses", true)] {
        for schema in [&list, &either] {
            let answers = Playbook::always(Answer::text("[]"));
            let server = Server::start(Behavior::from(answers).vendor(Vendor::OpenAi)).await;
            let mut config = Provider::find(name).unwrap().config_at(&server.base_url());
            assert!(!config.deviations.schemas_of_objects, "another server may be at another address");
            config.deviations.schemas_of_objects = is_known;
            let config = Config { retries: Retries::none(), ..config };
            let params = Params { schema: Some(schema.clone()), ..Params::default() };
            let asked = Asked { params, ..Asked::default() };
            let error = ask(&Endpoint::new(config).unwrap().model("gpt-4o"), &asked).await.0.unwrap_err();
            let lacks = error.kind == ModelErrorKind::Unsupported(Capability::Schema);
            assert_eq!((lacks, server.count() == 0), (is_known, is_known), "{name}: {schema}: {error}");
            let hint = error.hint.unwrap_or_default();
            assert_eq!(hint.contains("does not take the JSON Schema"), !is_known, "{hint}");
        }
    }
    for name in ["openai", "openai-chat", "azure"] {
        let own = Provider::find(name).unwrap().config_at("https://api.openai.com/v1");
        assert!(own.deviations.schemas_of_objects, "{name}");
    }
}

/// OpenAI's reference has no `top_k`. Other servers with its API take it.
#[test]
fn openai_is_sent_no_top_k() {
    let params = Params { top_k: Some(4), ..Params::default() };
    let ignored = |name: &str, address: &str| {
        let config = Provider::find(name).unwrap().config_at(address);
        Endpoint::new(config).unwrap().model("gpt-4o").ignored(&params)
    };
    for name in ["openai", "openai-chat", "openai-responses"] {
        assert_eq!(ignored(name, "https://api.openai.com/v1"), ["top_k"], "{name}");
    }
    assert_eq!(ignored("azure", "https://house.openai.azure.com"), ["top_k"]);
    assert_eq!(ignored("openai", "http://127.0.0.1:8000/v1"), [""; 0]);
    assert_eq!(ignored("vllm", "http://127.0.0.1:8000/v1"), [""; 0]);
}

/// P100: ids of nine characters, and no user message after the result of a tool.
#[tokio::test]
async fn mistral_has_its_own_ids_and_order() {
    let body = sent("mistral", "m").await;
    let id = body.pointer("/messages/2/tool_calls/0/id").and_then(Value::as_str).unwrap();
    assert!(id.len() == 9 && id.bytes().all(|byte| byte.is_ascii_alphanumeric()), "{id}");
    let roles: Vec<&str> = body["messages"]
        .as_array()
        .unwrap()
        .iter()
        .map(|message| message["role"].as_str().unwrap())
        .collect();
    assert_eq!(roles, ["system", "user", "assistant", "tool", "assistant", "user"]);
}

/// Ids that other providers make can be longer than OpenAI's APIs accept.
#[tokio::test]
async fn a_long_id_of_a_call_is_replaced_in_the_call_and_its_result() {
    for (provider, most, call, result) in [
        ("openai-chat", 40, "/messages/2/tool_calls/0/id", "/messages/3/tool_call_id"),
        ("openai-responses", 64, "/input/1/call_id", "/input/2/call_id"),
    ] {
        for length in [most, most + 1, 500] {
            let id = "functions.look:0".chars().cycle().take(length).collect::<String>();
            let body = sent_with(provider, "m", &id).await;
            let [call, result]: [Value; 2] = at(&body, &[call, result]).try_into().unwrap();
            assert_eq!(call, result, "{body}");
            assert_eq!(call == *id, length <= most, "{provider}: {call}");
            assert!((1..=most).contains(&call.as_str().unwrap().len()), "{provider}: {call}");
        }
    }
}

/// OpenAI refuses more than 128 calls in a message, which a reply can have: they are sent as several messages.
#[tokio::test]
async fn many_calls_of_a_reply_are_several_messages_with_their_results() {
    let call = |nth: usize| ToolCall {
        id: format!("call_{nth}"),
        tool: "weather".into(),
        args: json!({"nth": nth}),
    };
    let mut parts = vec![Part::text("I look.")];
    parts.extend((0..300).map(|nth| Part::ToolCall(call(nth))));
    let result = |nth: usize| {
        let (ToolCall { id, tool, .. }, outcome) = (call(nth), ToolResult::done(format!("sunny {nth}")));
        Entry::Tool { id, tool, result: outcome }
    };
    let mut entries = vec![Entry::user("Weather?"), Entry::own(parts)];
    entries.extend((0..300).map(result));
    for (most, answer) in [(Some(128), "Sunny."), (None, "")] {
        let server = Server::start(Behavior::from(answer).vendor(Vendor::OpenAi)).await;
        let mut config = Provider::find("openai-chat").unwrap().config_at(&server.base_url());
        assert_eq!(config.deviations.max_calls, Some(128));
        config.deviations.max_calls = most;
        let model = Endpoint::new(Config { retries: Retries::none(), ..config }).unwrap().model("gpt-4o");
        let mut asked = Asked { tools: vec![weather()], ..Asked::new(entries.clone()) };
        assert_eq!(ask(&model, &asked).await.0.is_ok(), most.is_some());
        assert_eq!(server.violations().is_empty(), most.is_some(), "{:?}", server.violations());
        if most.is_none() {
            continue;
        }
        let sent = server.requests()[0].messages().to_vec();
        let ids = |message: &Value| -> Vec<Value> {
            let calls = message["tool_calls"].as_array().into_iter().flatten();
            calls.map(|call| call["id"].clone()).chain(message.get("tool_call_id").cloned()).collect()
        };
        let expected =
            |nths: std::ops::Range<usize>| nths.map(|nth| json!(format!("call_{nth}"))).collect::<Vec<_>>();
        let mut at = 2;
        for nths in [0..128, 128..256, 256..300] {
            assert_eq!(ids(&sent[at]), expected(nths.clone()));
            assert_eq!(sent[at]["content"], if nths.start == 0 { json!("I look.") } else { Value::Null });
            let results: Vec<Value> = sent[at + 1..][..nths.len()].iter().flat_map(ids).collect();
            assert_eq!(results, expected(nths.clone()));
            at += 1 + nths.len();
        }
        assert_eq!(at, sent.len());
        // The next request, of which most is kept, begins with the same messages.
        asked.entries.extend([Entry::assistant("Sunny."), Entry::user("And now?")]);
        ask(&model, &asked).await.0.unwrap();
        assert_eq!(server.requests()[1].messages()[..at], sent[..]);
    }
}

/// P102: Groq's error for a tool call that it cannot parse is a reply that is asked for again, with what the model wrote, as a status and
/// in a stream.
#[tokio::test]
async fn a_call_that_cannot_be_parsed_is_a_malformed_reply() {
    let wrote = "<function=weather{\"city\"";
    let failed = |more: Value| {
        let mut error = json!({"message": "Failed to call a function.", "code": "tool_use_failed"});
        error.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        json!({"error": error}).to_string()
    };
    let streamed = |body: String| {
        let event = format!("event: error\ndata: {body}\n\n");
        let head = format!("content-type: text/event-stream\r\ncontent-length: {}", event.len());
        Behavior::raw(format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{event}"))
    };
    let generation = json!({"failed_generation": wrote, "status_code": 400});
    for (behavior, parts) in [
        (Behavior::from(Playbook::always(Answer::unparsed(wrote))), vec![Part::unparsed(wrote)]),
        (streamed(failed(generation)), vec![Part::unparsed(wrote)]),
        (streamed(failed(json!({"status_code": 400}))), Vec::new()),
    ] {
        let server = Server::start(behavior).await;
        let config = Provider::find("groq").unwrap().config_at(&server.base_url());
        let model = Endpoint::new(Config { retries: Retries::none(), ..config }).unwrap().model("m");
        let asked = Asked { tools: vec![weather()], ..Asked::default() };
        let reply = ask(&model, &asked).await.0.unwrap();
        assert_eq!((reply.finish, reply.parts, server.count()), (FinishReason::Malformed, parts, 1));
    }
}

/// Documents and sounds have other forms at Mistral, with data or by their addresses.
#[tokio::test]
async fn documents_and_sounds_are_sent_as_the_provider_reads_them() {
    let file = |kind: &str, url: &str| Part::Media(Media { media_type: kind.into(), url: url.into() });
    let parts = || {
        vec![
            Part::text("What is it?"),
            file("application/pdf", "data:application/pdf;base64,JVBERg=="),
            file("application/pdf", "https://example.org/a.pdf"),
            file("audio/mpeg", "data:audio/mpeg;base64,SUQz"),
            file("image/png", "https://example.org/a.png"),
        ]
    };
    let data = "data:application/pdf;base64,JVBERg==";
    for (provider, document, by_address, sound) in [
        (
            "mistral",
            json!({"type": "document_url", "document_url": data}),
            json!({"type": "document_url", "document_url": "https://example.org/a.pdf"}),
            json!({"type": "input_audio", "input_audio": "SUQz"}),
        ),
        (
            "openai-chat",
            json!({"type": "file", "file": {"filename": "document.pdf", "file_data": data}}),
            Value::Null,
            json!({"type": "input_audio", "input_audio": {"data": "SUQz", "format": "mp3"}}),
        ),
    ] {
        let server =
            Server::start(Behavior::from(Playbook::always(Answer::text("Sunny."))).history(History::Loose))
                .await;
        let config = Provider::find(provider).unwrap().config_at(&server.base_url());
        let model = Endpoint::new(Config { retries: Retries::none(), ..config }).unwrap().model("m");
        let _ = ask(&model, &Asked::new([Entry::User { parts: parts() }])).await;
        let content = server.requests()[0].body.pointer("/messages/1/content").unwrap().clone();
        assert_eq!((&content[1], &content[3]), (&document, &sound), "{provider}");
        assert_eq!(content[4]["image_url"]["url"], "https://example.org/a.png");
        // OpenAI reads no documents by address: the text names it.
        match by_address.is_null() {
            true => assert_eq!(content[2]["type"], "text"),
            false => assert_eq!(content[2], by_address),
        }
    }
}
