//! Parameters and ids in the form of each API, and parameters that a model is known not to accept.

use crate::common;

use crate::common::{Asked, Heard, ask, config, text, weather};
use polylogue_core::{
    AnyModel, Bound, Effort, Entry, Model as _, ModelErrorKind, Params, Part, Price, Thinking, ToolCall,
    ToolChoice, ToolResult, ToolSpec,
};
use polylogue_models::{Api, Config, Endpoint, EndpointModel, Env, Fallback, Models, Provider};
use polylogue_test::server::{Answer, Behavior, Playbook, Server, Vendor};
use serde_json::{Map, Value, json};

fn all() -> Params {
    Params {
        effort: Some(Effort::XHigh),
        thinking: Some(Thinking::Summary),
        tool_choice: Some(ToolChoice::Tool("weather".into())),
        parallel_tool_calls: Some(false),
        ..Params::default()
    }
}

async fn sent(model: &EndpointModel, server: &Server, params: Params, tools: bool) -> Value {
    let tools = if tools { vec![weather()] } else { Vec::new() };
    ask(model, &Asked { params, tools, ..Asked::default() }).await.0.unwrap();
    assert_eq!(server.violations(), [""; 0]);
    server.requests().last().unwrap().body.clone()
}

async fn server() -> Server {
    Server::start(Behavior::from(Playbook::always(Answer::text("Sunny.")))).await
}

#[tokio::test]
async fn each_parameter_has_its_field() {
    let server = server().await;
    let model = Endpoint::new(config(&server)).unwrap().model("m");
    let body = sent(&model, &server, all(), true).await;
    assert_eq!(body["reasoning_effort"], "xhigh");
    assert_eq!(body["tool_choice"], json!({"type": "function", "function": {"name": "weather"}}));
    assert_eq!(body["parallel_tool_calls"], false);
    for (choice, name) in
        [(ToolChoice::Auto, "auto"), (ToolChoice::None, "none"), (ToolChoice::Any, "required")]
    {
        let params = Params { tool_choice: Some(choice), ..Params::default() };
        assert_eq!(sent(&model, &server, params, true).await["tool_choice"], name);
    }
    let without = sent(&model, &server, all(), false).await;
    assert_eq!((without.get("tool_choice"), without.get("parallel_tool_calls")), (None, None));
}

#[tokio::test]
async fn more_tools_than_a_request_can_have_are_refused_before_it_is_sent() {
    let server = server().await;
    let mut own = config(&server);
    own.deviations.max_tools = Some(2);
    let model = Endpoint::new(own).unwrap().model("m");
    let tool = |n: usize| ToolSpec::new(format!("tool_{n}"), "Does something.", json!({"type": "object"}));
    for (count, is_sent) in [(2, true), (3, false)] {
        let asked = Asked { tools: (0..count).map(tool).collect(), ..Asked::default() };
        let error = ask(&model, &asked).await.0.err();
        assert_eq!(error.as_ref().map(|error| error.kind), (!is_sent).then_some(ModelErrorKind::Config));
        let said = error.map(|error| error.to_string()).unwrap_or_default();
        assert_eq!(said.contains("at most 2 tools, and this one has 3"), !is_sent, "{said}");
    }
    assert_eq!(server.requests().len(), 1);

    let keys = ["OPENAI_API_KEY", "GEMINI_API_KEY", "ANTHROPIC_API_KEY"];
    let vars = keys.into_iter().chain(["GOOGLE_CLOUD_PROJECT", "GOOGLE_CLOUD_LOCATION"]);
    let models = Models::new(Env::of(vars.map(|name| (name, "x"))));
    for (name, most) in [
        ("openai:gpt-4o", Some(128)),
        ("openai-responses:gpt-4o", None),
        ("gemini:gemini-2.5-flash", Some(512)),
        ("vertex:gemini-2.5-flash", Some(128)),
        ("vertex:claude-opus-4-1", None),
        ("anthropic:claude-opus-4-1", None),
    ] {
        assert_eq!(models.model(name).unwrap().max_tools(), most, "{name}");
    }
    let elsewhere = Provider::find("openai").unwrap().config_at(&server.base_url());
    assert_eq!((elsewhere.deviations.max_tools, elsewhere.deviations.max_temperature), (None, None));
}

#[tokio::test]
async fn ollama_has_levels_of_reasoning_and_no_choice_of_tools() {
    let server = server().await;
    let own = Config { key: config(&server).key, ..Config::ollama(&server.ollama_url()) };
    let model = Endpoint::new(own).unwrap().model("m");
    for (effort, think) in
        [(Effort::None, json!(false)), (Effort::Low, json!("low")), (Effort::Max, json!("high"))]
    {
        let params = Params { effort: Some(effort), ..all() };
        let body = sent(&model, &server, params, true).await;
        assert_eq!((&body["think"], body.get("tool_choice")), (&think, None));
    }
    assert_eq!(model.ignored(&all()), ["thinking", "tool_choice", "parallel_tool_calls"]);
}

#[tokio::test]
async fn a_model_that_is_known_not_to_reason_is_not_asked_to() {
    let server = server().await;
    let models = Models::new(Env::of([("OPENAI_API_KEY", "sk-x")]));
    let known = Config { provider: "openai".into(), ..config(&server) };
    models.define(known).unwrap();
    let plain = models.model("openai:gpt-4o").unwrap();
    assert_eq!(plain.ignored(&all()), ["effort", "thinking"]);
    assert_eq!(sent(&plain, &server, all(), true).await.get("reasoning_effort"), None);
    let reasoning = models.model("openai:o3").unwrap();
    assert_eq!(sent(&reasoning, &server, all(), true).await["reasoning_effort"], "high");
    let unknown = models.model("openai:a-model-of-tomorrow").unwrap();
    assert_eq!(sent(&unknown, &server, all(), true).await["reasoning_effort"], "xhigh");
}

/// Whatever a body has of the fields that its API knows, and of no others. `None` where nothing limits the reply.
#[test]
fn a_reply_has_as_many_tokens_as_the_body_asks_for() {
    let keys =
        [("AWS_REGION", "us-east-1"), ("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    let models = Models::new(Env::of(keys));
    for (model, max_tokens, extra, expected) in [
        ("openai-chat:unheard-of", Some(1_000), json!({"max_output_tokens": 1}), Some(1_000)),
        ("openai-chat:unheard-of", None, json!({"max_completion_tokens": 50}), Some(50)),
        ("openai-chat:unheard-of", Some(10), json!({"max_tokens": 60_000}), Some(60_000)),
        ("openai-chat:unheard-of", Some(10), json!({"max_tokens": "60000", "n": 2}), Some(120_000)),
        ("openai-chat:unheard-of", Some(10), json!({"max_completion_tokens": null}), None),
        ("openai-chat:unheard-of", Some(10), json!({"n": null}), Some(10)),
        ("openai-chat:unheard-of", Some(10), json!({"n": "many"}), None),
        ("openai-responses:unheard-of", Some(1), json!({}), Some(16)),
        ("openai-responses:unheard-of", Some(1), json!({"max_output_tokens": 500}), Some(500)),
        ("openai-responses:unheard-of", Some(100), json!({"max_tokens": 1}), Some(100)),
        (
            "gemini:unheard-of",
            Some(10),
            json!({"generationConfig": {"maxOutputTokens": 60_000}}),
            Some(60_000),
        ),
        ("gemini:unheard-of", None, json!({"maxOutputTokens": 70}), Some(70)),
        ("gemini:unheard-of", Some(10), json!({"max_output_tokens": 99}), Some(99)),
        ("gemini:unheard-of", Some(10), json!({"n": 3}), Some(30)),
        ("gemini:unheard-of", Some(10), json!({"generationConfig": {"candidateCount": 8}}), Some(80)),
        ("anthropic:unheard-of", None, json!({}), Some(8_192)),
        ("anthropic:unheard-of", Some(10), json!({"max_tokens": 99}), Some(99)),
        ("bedrock:unheard-of", Some(10), json!({"inferenceConfig": {"maxTokens": 99}}), Some(99)),
        ("bedrock:unheard-of", Some(10), json!({"inferenceConfig": {"temperature": 1}}), None),
        ("bedrock:unheard-of", Some(10), json!({"max_tokens": 99}), Some(99)),
        ("ollama:unheard-of", Some(10), json!({"num_predict": -1}), None),
        ("ollama:unheard-of", Some(10), json!({"options": {"num_predict": 99}}), Some(99)),
    ] {
        let params = Params { max_tokens, extra: extra.as_object().unwrap().clone(), ..Params::default() };
        assert_eq!(
            models.model(model).unwrap().max_output(&params),
            expected,
            "{model} {max_tokens:?} {extra}"
        );
    }
}

/// The reply is cut at the others, too.
#[tokio::test]
async fn as_many_stop_texts_are_sent_as_openai_accepts() {
    let server = server().await;
    let model = Endpoint::new(config(&server)).unwrap().model("m");
    let params = Params { stop: ["1", "2", "3", "4", "5"].map(str::to_owned).to_vec(), ..Params::default() };
    assert_eq!(sent(&model, &server, params, false).await["stop"], json!(["1", "2", "3", "4"]));
}

/// Providers refuse it, and it ends no reply.
#[tokio::test]
async fn an_empty_stop_text_is_not_sent() {
    let server = server().await;
    for (api, url, place) in [
        (Api::ChatCompletions, server.base_url(), "/stop"),
        (Api::Messages, server.root_url(), "/stop_sequences"),
        (Api::Gemini, server.root_url(), "/generationConfig/stopSequences"),
        (Api::Converse, server.root_url(), "/inferenceConfig/stopSequences"),
        (Api::Ollama, server.root_url(), "/options/stop"),
    ] {
        let model = Endpoint::new(Config::of(api, &url)).unwrap().model("m");
        for (stop, expected) in [(&[""][..], None), (&["", "END"][..], Some(json!(["END"])))] {
            let stop = stop.iter().map(|&text| text.to_owned()).collect();
            let body = sent(&model, &server, Params { stop, ..Params::default() }, false).await;
            assert_eq!(body.pointer(place), expected.as_ref(), "{api:?}");
        }
    }
}

/// Models that reason refuse them at OpenAI, and Responses has no field for them. Replies are cut there in any case.
#[tokio::test]
async fn stop_texts_are_left_out_where_they_are_refused_and_still_end_replies() {
    let answers = Playbook::always(Answer::text("Sunny. END Rain."));
    let server = Server::start(Behavior::from(answers).vendor(Vendor::OpenAi)).await;
    for (name, reasons) in [("o3", true), ("o4-mini", true), ("gpt-5", true), ("gpt-4o", false)] {
        for api in ["openai-chat", "openai-responses"] {
            let config = Provider::find(api).unwrap().config_at(&server.base_url());
            let model = Endpoint::new(config).unwrap().model(name);
            let is_sent = api == "openai-chat" && !reasons;
            let params = Params { stop: vec![" END".into()], ..Params::default() };
            // It has its effect.
            assert_eq!((model.takes_stop(), model.ignored(&params)), (is_sent, vec![]), "{api}:{name}");
            let asked = Asked { params, ..Asked::default() };
            let any = AnyModel::from(model);
            let reply = any.complete(&asked.request(), &mut Heard::default()).await.unwrap();
            assert_eq!(text(&reply), "Sunny.", "{api}:{name}");
            let sent = server.requests().last().unwrap().body.clone();
            assert_eq!(sent.get("stop").is_some(), is_sent, "{api}:{name}");
        }
    }
    assert_eq!(server.violations(), [""; 0]);
}

#[tokio::test]
async fn a_number_of_replies_that_cannot_be_read_is_an_error_before_the_call() {
    let server = server().await;
    let model = Endpoint::new(config(&server)).unwrap().model("m");
    for count in [json!("many"), json!(0), json!(1.5)] {
        let extra = json!({"n": count}).as_object().unwrap().clone();
        let asked = Asked { params: Params { extra, ..Params::default() }, ..Asked::default() };
        let error = ask(&model, &asked).await.0.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Config, "{count}");
    }
    assert_eq!(server.count(), 0);
}

/// Other service has another price, which the table does not have.
#[tokio::test]
async fn a_request_for_other_service_has_no_known_cost() {
    let server = server().await;
    let price = Price { input: 1.0, output: 1.0, ..Price::FREE };
    let model = Endpoint::new(config(&server)).unwrap().model("m").with_price(Some(price));
    for (tier, is_priced) in [("flex", true), ("priority", false)] {
        let extra = json!({"service_tier": tier}).as_object().unwrap().clone();
        let asked = Asked { params: Params { extra, ..Params::default() }, ..Asked::default() };
        let bound = Bound::of(&model, &asked.request());
        assert_eq!(bound.least_cost.is_some(), is_priced, "{tier}");
        let reply = ask(&model, &asked).await.0.unwrap();
        assert_eq!(AnyModel::from(model.clone()).reply_cost(&reply).is_some(), is_priced, "{tier}");
    }
}

#[test]
fn the_table_says_whose_replies_can_have_sealed_reasoning() {
    let keys =
        [("AWS_REGION", "us-east-1"), ("AWS_ACCESS_KEY_ID", "id"), ("AWS_SECRET_ACCESS_KEY", "secret")];
    let models = Models::new(Env::of(keys));
    for (model, params, expected) in [
        ("openai:gpt-4o-mini", json!({}), false),
        ("openai:gpt-5", json!({}), true),
        ("openai:gpt-5.1", json!({"effort": "none"}), false),
        ("openai:gpt-5.1", json!({"effort": "none", "reasoning": {"effort": "low"}}), true),
        ("openai:gpt-5.1", json!({"effort": "low"}), true),
        ("openai:unheard-of-chat", json!({}), false),
        ("openai-responses:unheard-of", json!({}), true),
        ("openai-responses:unheard-of", json!({"effort": "none"}), false),
        ("deepseek:unheard-of", json!({"effort": "none"}), true),
        ("deepseek:deepseek-r1", json!({}), false),
        // Of those that can be switched off, none is; of those that reason for a number of tokens, none unless it is asked.
        ("anthropic:claude-sonnet-4-5", json!({}), false),
        ("anthropic:claude-sonnet-4-5", json!({"effort": "low"}), true),
        ("anthropic:claude-sonnet-4-5", json!({"effort": "none"}), false),
        ("anthropic:claude-sonnet-4-5", json!({"effort": "low", "max_tokens": 100}), false),
        ("anthropic:claude-sonnet-4-5", json!({"effort": "low", "tool_choice": "any"}), false),
        (
            "anthropic:claude-sonnet-4-5",
            json!({"thinking": {"type": "enabled", "budget_tokens": 2000}}),
            true,
        ),
        ("anthropic:claude-sonnet-4-5", json!({"tools": [{"type": "web_search_20260209"}]}), true),
        ("anthropic:claude-opus-4-8", json!({}), true),
        ("anthropic:claude-opus-4-8", json!({"effort": "none"}), false),
        ("anthropic:claude-sonnet-5-5", json!({}), true),
        ("anthropic:claude-sonnet-5-5", json!({"effort": "none"}), true),
        ("bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0", json!({}), false),
        ("bedrock:anthropic.claude-sonnet-4-5-20250929-v1:0", json!({"effort": "low"}), true),
        ("bedrock:anthropic.claude-opus-4-8", json!({}), true),
        ("bedrock:anthropic.claude-opus-4-8", json!({"effort": "none"}), false),
        ("bedrock:anthropic.claude-sonnet-5-5", json!({"effort": "none"}), true),
        ("bedrock:amazon.nova-2-lite-v1:0", json!({}), false),
        ("bedrock:amazon.nova-2-lite-v1:0", json!({"effort": "none"}), false),
        ("bedrock:amazon.nova-2-lite-v1:0", json!({"effort": "low"}), true),
        ("bedrock:unheard-of", json!({"effort": "none"}), true),
        ("gemini:gemini-2.5-pro", json!({}), true),
        ("gemini:gemini-2.5-pro", json!({"effort": "none"}), true),
        ("gemini:gemini-2.5-flash", json!({"effort": "none"}), false),
        ("gemini:gemini-3-flash-preview", json!({"effort": "none"}), true),
    ] {
        let given = params.as_object().unwrap().clone();
        let (own, extra): (Map<String, Value>, Map<String, Value>) =
            given.into_iter().partition(|(_, value)| !value.is_object() && !value.is_array());
        let params = Params { extra, ..serde_json::from_value(own.into()).unwrap() };
        assert_eq!(models.model(model).unwrap().returns_seals(&params), expected, "{model} {params:?}");
    }
    let both = Fallback::new(
        ["openai:gpt-4o-mini", "openai:gpt-5"].map(|name| AnyModel::from(models.model(name).unwrap())),
    );
    assert!(both.returns_seals(&Params::default()));
}

/// R7: what OpenAI's models refuse is moved to the nearest effort that they take, by both of its APIs. Those that stop reasoning at
/// `none` take a temperature then.
#[tokio::test]
async fn an_effort_that_a_model_refuses_is_moved_to_one_that_it_takes() {
    let server = Server::start(Behavior::from(Answer::text("Sunny.")).vendor(Vendor::OpenAi)).await;
    let efforts = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
    for (name, expected, tempered) in [
        ("o3", "low low low medium high high high", false),
        ("gpt-5", "minimal minimal low medium high high high", false),
        ("gpt-5-pro", "high high high high high high high", false),
        ("gpt-5.1", "none low low medium high high high", true),
        ("gpt-5.2", "none low low medium high xhigh xhigh", true),
        ("gpt-6-luna", "none low low medium high xhigh max", false),
    ] {
        for api in ["openai-chat", "openai-responses"] {
            let config = Provider::find(api).unwrap().config_at(&server.base_url());
            let model = Endpoint::new(config).unwrap().model(name);
            for (effort, nearest) in efforts.into_iter().zip(expected.split(' ')) {
                let asked = serde_json::from_value(json!(effort)).unwrap();
                let params = Params { effort: Some(asked), temperature: Some(0.5), ..Params::default() };
                let body = sent(&model, &server, params, false).await;
                let sent = body.get("reasoning_effort").unwrap_or(&body["reasoning"]["effort"]);
                assert_eq!(sent, nearest, "{api}:{name} {effort}");
                let is_off = nearest == "none" && tempered;
                assert_eq!(body.get("temperature").is_some(), is_off, "{api}:{name} {effort}");
            }
        }
    }
}

/// What a server says of a parameter is noted for the model, as long as its endpoint exists.
#[tokio::test]
async fn a_parameter_that_a_model_refuses_is_left_out_from_then_on() {
    let play = || Behavior::from(Playbook::always(Answer::text("Sunny."))).no_parameter("seed");
    let params = || Params { seed: Some(7), temperature: Some(0.5), ..Params::default() };
    let server = Server::start(play()).await;
    let endpoint = Endpoint::new(config(&server)).unwrap();
    let model = endpoint.model("m");
    assert_eq!(model.ignored(&params()), [""; 0]);
    let error = ask(&model, &Asked { params: params(), ..Asked::default() }).await.0.unwrap_err();
    assert_eq!((error.kind, error.hint), (ModelErrorKind::ParameterRefused, None), "{}", error.message);
    for (model, ignored) in
        [(&model, &["seed"][..]), (&endpoint.model("m"), &["seed"]), (&endpoint.model("n"), &[])]
    {
        assert_eq!(model.ignored(&params()), ignored, "{}", model.name());
    }
    let body = sent(&model, &server, params(), false).await;
    assert_eq!((body.get("seed"), &body["temperature"]), (None, &json!(0.5)));
    assert_eq!(server.count(), 2);

    // Asked outside of a team, and known before.
    let server = Server::start(play()).await;
    let learns = Endpoint::new(config(&server)).unwrap().model("m");
    let reply = AnyModel::from(learns).ask_with("Weather?", &params(), &mut ()).await.unwrap();
    assert_eq!((text(&reply), server.count()), ("Sunny.".to_owned(), 2));
    let server = Server::start(play()).await;
    let known = Config { drop_parameters: vec!["seed", "stop"], ..config(&server) };
    let model = Endpoint::new(known).unwrap().model("m");
    assert_eq!(model.ignored(&params()), ["seed"]);
    assert_eq!(sent(&model, &server, params(), false).await.get("seed"), None);
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn ids_of_calls_have_the_length_that_the_api_requires() {
    let server = server().await;
    let model = Endpoint::new(Config { call_id_length: Some(9), ..config(&server) }).unwrap().model("m");
    let ids = ["call_of_a_long_name_1", "call_of_a_long_name_2", "aB3dE6gH9"];
    let call =
        |id: &&str| Part::ToolCall(ToolCall { id: (*id).into(), tool: "weather".into(), args: json!({}) });
    let mut entries = vec![Entry::user("Weather?"), Entry::own(ids.iter().map(call).collect())];
    entries.extend(ids.iter().map(|id| Entry::Tool {
        id: (*id).into(),
        tool: "weather".into(),
        result: ToolResult::done("sunny"),
    }));
    let asked = Asked { tools: vec![weather()], ..Asked::new(entries) };
    ask(&model, &asked).await.0.unwrap();
    assert_eq!(server.violations(), [""; 0]);
    let body = server.requests()[0].body.clone();
    let made: Vec<&str> =
        (0..3).map(|nth| body["messages"][2]["tool_calls"][nth]["id"].as_str().unwrap()).collect();
    assert!(made.iter().all(|id| id.len() == 9 && id.bytes().all(|b| b.is_ascii_alphanumeric())), "{made:?}");
    assert_eq!(made[2], "aB3dE6gH9");
    for (nth, id) in made.iter().enumerate() {
        assert_eq!(body["messages"][3 + nth]["tool_call_id"], *id);
    }
}

#[tokio::test]
async fn a_request_that_is_too_long_is_an_error_of_its_own_and_not_retried() {
    let message =
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens.";
    let server = Server::start(Behavior::from(Playbook::always(Answer::error(400, message)))).await;
    let model = Endpoint::new(Config { retries: common::quick(3), ..config(&server) }).unwrap().model("m");
    let asked = Asked { tools: vec![weather()], ..Asked::default() };
    let error = ask(&model, &asked).await.0.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::TooLong { tokens: Some(9001), limit: Some(8192) });
    assert_eq!(server.count(), 1);
}

#[tokio::test]
async fn refused_seals_are_an_error_of_their_own() {
    let message = "The encrypted content could not be verified. Code: invalid_encrypted_content";
    let server = Server::start(Behavior::from(Playbook::always(Answer::error(400, message)))).await;
    let model = Endpoint::new(config(&server)).unwrap().model("m");
    assert_eq!(ask(&model, &Asked::default()).await.0.unwrap_err().kind, ModelErrorKind::SealsRefused);
}
