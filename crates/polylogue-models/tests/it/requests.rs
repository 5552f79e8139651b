//! What is sent, as a server with the rules of the strictest ones sees it.

use crate::common::{Asked, ask, config, model, reply, text, weather};
use polylogue_core::{
    Capabilities, Capability, Entry, Media, Model, Part, Price, ToolCall, ToolResult, ToolStatus, Usage,
};
use polylogue_models::{Cache, Config, Endpoint, Env, Models};
use polylogue_test::server::{Answer, Behavior, History, Playbook, Quirk, Server};
use serde_json::{Value, json};

#[tokio::test]
async fn a_long_conversation_is_well_formed_and_goes_over_one_connection() {
    for stream in [true, false] {
        let server = Server::start(Behavior::from(Playbook::echo())).await;
        let model = model(Config { stream, ..config(&server) });
        let mut asked = Asked::new([
            Entry::user("Begin."),
            Entry::assistant("I begin."),
            Entry::user("Line 0"),
            Entry::user("Line 0 too"),
        ]);
        for nth in 1..40_u64 {
            asked.nth = nth;
            let reply = ask(&model, &asked).await.0.unwrap();
            assert!(text(&reply).contains(&format!("Line {}", nth - 1)), "{reply:?}");
            if nth % 5 == 0 {
                let id = format!("call_weather_{nth}");
                let call = ToolCall { id: id.clone(), tool: "weather".into(), args: json!({"nth": nth}) };
                asked.entries.push(Entry::own(vec![Part::ToolCall(call)]));
                asked.entries.push(Entry::Tool {
                    id,
                    tool: "weather".into(),
                    result: ToolResult::done("sunny"),
                });
            }
            asked.entries.push(Entry::own(reply.parts));
            asked.entries.push(Entry::user(format!("Line {nth}")));
        }
        assert_eq!((server.violations(), server.count()), (Vec::<String>::new(), 39));
        assert_eq!(server.connections(), 1, "stream {stream}");
        let requests = server.requests();
        for pair in requests.windows(2) {
            let (earlier, later) = (pair[0].messages(), pair[1].messages());
            let settled = earlier.len() - 1;
            assert_eq!(earlier[..settled], later[..settled], "what was sent stays as it was");
        }
    }
}

#[tokio::test]
async fn tools_schemas_and_parameters_reach_the_server_as_they_are() {
    let server = Server::start(Behavior::from("{}")).await;
    let mut asked = Asked { tools: vec![weather()], ..Asked::default() };
    asked.params = polylogue_core::Params {
        temperature: Some(0.2),
        seed: Some(7),
        max_tokens: Some(50),
        stop: vec!["END".into()],
        schema: Some(json!({"type": "object", "properties": {"a": {"type": "string"}},
                            "required": ["a"], "additionalProperties": false})),
        extra: json!({"guided_grammar": "x", "temperature": 0.5}).as_object().unwrap().clone(),
        ..Default::default()
    };
    ask(&model(config(&server)), &asked).await.0.unwrap();
    assert_eq!(server.violations(), [""; 0]);
    let mut body = server.requests()[0].body.clone();
    assert_eq!(body["tools"][0]["function"]["name"], "weather");
    assert_eq!(body["response_format"]["json_schema"]["strict"], true);
    for field in ["messages", "tools", "response_format"] {
        body.as_object_mut().unwrap().shift_remove(field);
    }
    let expected = json!({"model": "m", "temperature": 0.5, "seed": 7, "max_tokens": 50, "stop": ["END"],
        "guided_grammar": "x", "stream": true, "stream_options": {"include_usage": true}});
    assert_eq!(body, expected);
}

#[tokio::test]
async fn streaming_is_the_endpoints_choice_and_the_requests_word_wins() {
    let server = Server::start(Behavior::from("x")).await;
    let mut asked = Asked::default();
    for (stream, extra, sent) in [
        (true, None, json!(true)),
        (false, None, Value::Null),
        (true, Some(false), json!(false)),
        (false, Some(true), json!(true)),
    ] {
        asked.params.extra = extra.map(|extra| ("stream".to_owned(), json!(extra))).into_iter().collect();
        let model = model(Config { stream, ..config(&server) });
        ask(&model, &asked).await.0.unwrap();
        assert_eq!(server.requests().last().unwrap().body["stream"], sent);
    }
}

#[tokio::test]
async fn what_cannot_work_is_refused_before_anything_is_sent() {
    let server = Server::start(Behavior::from("x")).await;
    let without = Config { key: None, needs_key: true, ..config(&server) };
    let error = reply(&model(without)).await.unwrap_err();
    assert_eq!(error.hint.unwrap(), "no key was sent; set `TEST_API_KEY` in the environment or in `.env`");
    let mut asked = Asked::default();
    asked.params.extra.insert("messages".into(), json!([]));
    let error = ask(&model(config(&server)), &asked).await.0.unwrap_err();
    assert!(error.message.contains("`messages`"), "{error}");
    assert_eq!(server.count(), 0);
}

#[tokio::test]
async fn a_server_without_tools_says_so_and_the_hint_too() {
    let server = Server::start(Behavior::from("x").text_only()).await;
    let asked = Asked { tools: vec![weather()], ..Asked::default() };
    let error = ask(&model(config(&server)), &asked).await.0.unwrap_err();
    assert_eq!(error.status, Some(400));
    assert!(error.hint.as_deref().unwrap_or_default().contains("cannot call tools"), "{error:?}");
}

#[tokio::test]
async fn roles_are_kept_apart_where_that_is_wanted() {
    let server = Server::start(Behavior::from("x").history(History::Loose)).await;
    let asked = Asked::new([Entry::user("a"), Entry::user("b")]);
    ask(&model(Config { merge: false, ..config(&server) }), &asked).await.0.unwrap();
    assert_eq!(server.requests()[0].messages().len(), 3);
}

#[tokio::test]
async fn the_environment_leads_to_the_server() {
    let server = Server::start(Behavior::from(Answer::text("hi").usage(10, 5)).key("sk-from-env")).await;
    let env = Env::of([("OPENAI_BASE_URL", server.base_url()), ("OPENAI_API_KEY", "sk-from-env".into())]);
    let models = Models::new(env);
    for spec in ["openai:gpt-4o", "openai/gpt-4o", "compatible:anything/at:all"] {
        let model = models.model(spec).unwrap();
        assert_eq!(text(&reply(&model).await.unwrap()), "hi");
    }
    assert_eq!(server.requests()[2].model(), "anything/at:all");
    let ollama = Models::new(Env::of([("OLLAMA_HOST", server.address().to_string())]));
    for (spec, path) in [("ollama:m", "/api/chat"), ("ollama-openai:m", "/v1/chat/completions")] {
        let model = ollama.model(spec).unwrap();
        let error = reply(&model).await.unwrap_err();
        assert!(error.hint.unwrap().contains("`OLLAMA_API_KEY`"), "this server wants a key after all");
        assert_eq!(server.requests().last().unwrap().path, path);
        assert_eq!(model.cost(&Usage::default()), Some(polylogue_core::Money::default()));
    }
}

#[tokio::test]
async fn the_base_url_may_be_written_in_several_ways() {
    let server = Server::start(Behavior::from("x")).await;
    let base = server.base_url();
    for url in [
        base.clone(),
        format!("{base}/"),
        format!("{base}/chat/completions"),
        format!(" {base}?api-version=1 "),
    ] {
        reply(&model(Config { base_url: url, ..config(&server) })).await.unwrap();
    }
    let paths: Vec<String> = server.requests().iter().map(|request| request.path.clone()).collect();
    assert!(paths.iter().all(|path| path.starts_with("/v1/chat/completions")), "{paths:?}");
    assert!(paths[3].ends_with("?api-version=1") || paths[3] == "/v1/chat/completions", "{paths:?}");
    let lacks = Config { base_url: base.replace("/v1", ""), ..config(&server) };
    let error = reply(&model(lacks)).await.unwrap_err();
    assert!(error.status == Some(404) && error.hint.unwrap().contains("usually ends in `/v1`"));
}

#[test]
fn a_price_can_be_given_instead_of_the_list_price() {
    let endpoint =
        Endpoint::new(Config { provider: "openai".into(), ..Config::new("http://127.0.0.1:1/v1") }).unwrap();
    let usage = Usage { input: Some(1_000_000), output: Some(0), ..Usage::default() };
    let dollars = |model: polylogue_models::EndpointModel| model.cost(&usage).map(|cost| cost.as_dollars());
    assert_eq!(dollars(endpoint.model("gpt-4o-mini")), Some(0.15));
    assert_eq!(dollars(endpoint.model("unheard-of")), None);
    let price = Price { input: 7.0, ..Price::FREE };
    assert_eq!(dollars(endpoint.model("unheard-of").with_price(Some(price))), Some(7.0));
    assert_eq!(dollars(endpoint.model("gpt-4o-mini").with_price(None)), None);
}

#[tokio::test]
async fn a_reply_whose_stream_stays_open_after_its_end_is_returned_at_once() {
    let answer = Answer::text("done").with(Quirk::NoLength);
    let server = Server::start(Behavior::from(answer)).await;
    assert_eq!(text(&reply(&model(config(&server))).await.unwrap()), "done");
}

#[tokio::test]
async fn pictures_of_tools_go_to_models_that_see() {
    let asked = looked();
    for capabilities in [
        Capabilities::default(),
        Capabilities::ALL.without(Capability::Vision),
        Capabilities::default().with(Capability::Vision),
    ] {
        let server = Server::start(Behavior::from("a cat")).await;
        ask(&model(Config { capabilities, ..config(&server) }), &asked).await.0.unwrap();
        assert_eq!(server.violations(), [""; 0]);
        let messages = server.requests()[0].messages().to_vec();
        assert_eq!(messages[3]["content"], "There it is.\n\n[image/png]");
        let words = "(The pictures that `camera` returned. No participant wrote the text in them.)";
        let shown = [json!({"role": "user", "content": [
            {"type": "text", "text": words},
            {"type": "image_url", "image_url": {"url": PICTURE}},
        ]})];
        let expected = if capabilities.vision == Some(true) { &shown[..] } else { &[] };
        assert_eq!(messages[4..], *expected, "{capabilities:?}");
    }
}

#[tokio::test]
async fn when_a_model_refuses_a_picture_the_error_says_which_setting_to_change() {
    let asked = looked();
    let advice = |hint: &Option<String>| hint.as_deref().is_some_and(|hint| hint.contains("`vision: false`"));
    for (vision, words, expected) in [
        (true, "this model does not support image input", true),
        (true, "the context is too long", false),
        (false, "this model does not support image input", false),
    ] {
        let server = Server::start(Playbook::list([Answer::error(400, words)])).await;
        let capabilities = Capabilities { vision: Some(vision), ..Capabilities::default() };
        let error = ask(&model(Config { capabilities, ..config(&server) }), &asked).await.0.unwrap_err();
        assert_eq!((error.status, advice(&error.hint)), (Some(400), expected), "{error:?}");
    }
}

#[tokio::test]
async fn a_reply_of_a_model_that_saw_is_not_given_for_one_that_did_not() {
    let server = Server::start(Playbook::list([Answer::text("something"), Answer::text("a cat")])).await;
    let cache = Cache::memory();
    let asked = looked();
    for (capabilities, expected) in [
        (Capabilities::TEXT, "something"),
        (Capabilities::ALL, "a cat"),
        (Capabilities::TEXT, "something"),
        (Capabilities::ALL, "a cat"),
    ] {
        let model = cache.around(model(Config { capabilities, ..config(&server) }));
        let reply = model.complete(&asked.request(), &mut ()).await.unwrap();
        assert_eq!(text(&reply), expected);
    }
    assert_eq!((server.count(), server.violations()), (2, Vec::new()));
}

const PICTURE: &str = "data:image/png;base64,QUJD";

/// A conversation in which a tool has just returned a picture.
fn looked() -> Asked {
    let call = ToolCall { id: "c1".into(), tool: "camera".into(), args: json!({}) };
    let picture = Part::Media(Media { media_type: "image/png".into(), url: PICTURE.into() });
    let outcome = ToolResult::new(ToolStatus::Done, vec![Part::text("There it is."), picture]);
    Asked::new([
        Entry::user("What do you see?"),
        Entry::own(vec![Part::ToolCall(call)]),
        Entry::Tool { id: "c1".into(), tool: "camera".into(), result: outcome },
    ])
}
