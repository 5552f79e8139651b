//! Parameters by what the table says of a model.

use polylogue_core::{
    Capability, Effort, Entry, Model, ModelErrorKind, Params, Part, Thinking, ToolCall, ToolChoice,
    ToolResult,
};
use polylogue_models::{Config, Endpoint};
use polylogue_test::server::{Answer, Behavior, Server};
use serde_json::{Map, Value, json};

use super::{claude, config};
use crate::common::{Asked, ask, weather};

/// The body for `model` with `params`, without what every request has, and the version of the API; the server accepts it.
async fn sent(model: &str, params: Params) -> (Map<String, Value>, String) {
    let server = Server::start(Answer::text("{}")).await;
    let asked = Asked { tools: vec![weather()], params, ..Asked::default() };
    let model = claude(&server, model);
    ask(&model, &asked).await.0.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(server.violations(), [""; 0]);
    let received = &server.requests()[0];
    let mut body = received.body.as_object().unwrap().clone();
    for usual in ["model", "system", "messages", "tools", "stream"] {
        body.shift_remove(usual);
    }
    (body, received.header("anthropic-version").unwrap().to_owned())
}

async fn body(model: &str, params: Params) -> Value {
    sent(model, params).await.0.into()
}

fn effort(effort: Effort) -> Params {
    Params { effort: Some(effort), max_tokens: Some(40_000), ..Params::default() }
}

// P26, P27.
#[tokio::test]
async fn a_temperature_goes_with_the_older_version_and_only_to_models_that_take_one() {
    let params = Params { temperature: Some(0.5), top_k: Some(3), max_tokens: Some(9), ..Params::default() };
    let (body, version) = sent("claude-sonnet-4-6", params.clone()).await;
    assert_eq!(
        (Value::from(body), &*version),
        (json!({"max_tokens": 9, "temperature": 0.5, "top_k": 3}), "2023-06-01")
    );
    let (body, version) = sent("claude-sonnet-5", params.clone()).await;
    assert_eq!((Value::from(body), &*version), (json!({"max_tokens": 9}), "2026-10-21"));
    let server = Server::start(Answer::text("")).await;
    assert_eq!(claude(&server, "claude-sonnet-5").ignored(&params), ["temperature", "top_k"]);
    assert_eq!(claude(&server, "claude-sonnet-4-6").ignored(&params), [""; 0]);
    let both = Params { top_p: Some(0.5), seed: Some(1), ..params };
    assert_eq!(claude(&server, "claude-sonnet-4-6").ignored(&both), ["top_p", "seed"]);
}

#[tokio::test]
async fn a_limit_is_never_above_that_of_the_model() {
    let most = |max_tokens| Params { max_tokens: Some(max_tokens), ..Params::default() };
    assert_eq!(body("claude-haiku-4-5", most(1_000_000)).await, json!({"max_tokens": 64_000}));
    assert_eq!(body("claude-of-tomorrow", most(1_000_000)).await, json!({"max_tokens": 1_000_000}));
    let server = Server::start(Answer::text("")).await;
    assert_eq!(claude(&server, "claude-of-tomorrow").max_output(&Params::default()), Some(8192));
    assert_eq!(claude(&server, "claude-haiku-4-5").max_output(&most(1_000_000)), Some(64_000));
}

#[tokio::test]
async fn reasoning_is_adaptive_or_has_a_budget_as_the_table_says() {
    for (model, level, thinking, config) in [
        ("claude-sonnet-5", Effort::High, json!({"type": "adaptive"}), json!({"effort": "high"})),
        ("claude-sonnet-5", Effort::Minimal, json!({"type": "adaptive"}), json!({"effort": "low"})),
        ("claude-sonnet-5", Effort::Max, json!({"type": "adaptive"}), json!({"effort": "max"})),
        ("claude-sonnet-5", Effort::None, json!({"type": "disabled"}), Value::Null),
        // Its reasoning cannot be switched off.
        ("claude-sonnet-5-5", Effort::None, Value::Null, json!({"effort": "low"})),
        (
            "claude-opus-4-5",
            Effort::Max,
            json!({"type": "enabled", "budget_tokens": 20_000}),
            json!({"effort": "high"}),
        ),
        ("claude-sonnet-4-5", Effort::Low, json!({"type": "enabled", "budget_tokens": 4096}), Value::Null),
        ("claude-sonnet-4-5", Effort::None, json!({"type": "disabled"}), Value::Null),
    ] {
        let body = body(model, effort(level)).await;
        assert_eq!((&body["thinking"], &body["output_config"]), (&thinking, &config), "{model} {level:?}");
    }
    let shown = |thinking| Params { thinking: Some(thinking), max_tokens: Some(9000), ..Params::default() };
    let summary = json!({"type": "adaptive", "display": "summarized"});
    assert_eq!(body("claude-sonnet-5", shown(Thinking::Summary)).await["thinking"], summary);
    let hidden = json!({"type": "enabled", "budget_tokens": 4500, "display": "omitted"});
    assert_eq!(body("claude-sonnet-4-5", shown(Thinking::Hidden)).await["thinking"], hidden);
    let short = Params { max_tokens: Some(1000), ..effort(Effort::High) };
    assert_eq!(body("claude-sonnet-4-5", short).await, json!({"max_tokens": 1000}), "too short to reason");
}

/// A reply has at least as much text as reasoning, and that has at least 1,024 tokens.
#[tokio::test]
async fn reasoning_for_which_a_limit_leaves_no_room_is_named_as_left_out() {
    let asked = |max_tokens| Params {
        temperature: Some(0.5),
        effort: Some(Effort::Low),
        thinking: Some(Thinking::Summary),
        max_tokens: Some(max_tokens),
        ..Params::default()
    };
    let server = Server::start(Answer::text("")).await;
    for (model, max_tokens, ignored, kept) in [
        ("claude-sonnet-4-5", 2047, vec!["effort", "thinking"], "temperature"),
        ("claude-sonnet-4-5", 2048, vec!["temperature"], "thinking"),
        ("claude-opus-4-5", 2047, vec!["effort", "thinking"], "temperature"),
        ("claude-sonnet-5", 100, vec!["temperature"], "thinking"),
    ] {
        let params = asked(max_tokens);
        assert_eq!(claude(&server, model).ignored(&params), ignored, "{model} {max_tokens}");
        let body = body(model, params).await;
        assert!(body.get(kept).is_some(), "{model} {max_tokens}: {body}");
        assert!(ignored.iter().all(|name| body.get(*name).is_none()), "{model} {max_tokens}: {body}");
    }
    // The limit is not why: a call is required.
    let forced = Params { tool_choice: Some(ToolChoice::Any), ..asked(100) };
    assert_eq!(claude(&server, "claude-sonnet-4-5").least_to_reason(&forced), None);
    let off = Params { effort: Some(Effort::None), ..asked(100) };
    assert_eq!(claude(&server, "claude-sonnet-4-5").ignored(&off), [""; 0]);
}

// P47.
#[tokio::test]
async fn a_forced_call_is_sent_unless_the_model_refuses_it() {
    let choice =
        |tool_choice, parallel_tool_calls| Params { tool_choice, parallel_tool_calls, ..Params::default() };
    let tool = ToolChoice::Tool("weather".into());
    for (params, expected) in [
        (choice(Some(ToolChoice::Any), None), json!({"type": "any"})),
        (
            choice(Some(tool), Some(true)),
            json!({"type": "tool", "name": "weather", "disable_parallel_tool_use": false}),
        ),
        (choice(Some(ToolChoice::None), Some(false)), json!({"type": "none"})),
        (choice(None, Some(false)), json!({"type": "auto", "disable_parallel_tool_use": true})),
        (choice(None, None), Value::Null),
    ] {
        assert_eq!(body("claude-sonnet-5", params.clone()).await["tool_choice"], expected);
    }
    let any = choice(Some(ToolChoice::Any), None);
    assert_eq!(body("claude-opus-5-5", any.clone()).await["tool_choice"], Value::Null);
    let server = Server::start(Answer::text("")).await;
    assert_eq!(claude(&server, "claude-opus-5-5").ignored(&any), ["tool_choice"]);
    let reasons = Params { effort: Some(Effort::High), temperature: Some(1.0), ..any };
    let forced = body("claude-sonnet-4-5", reasons).await;
    assert_eq!((&forced["tool_choice"], &forced["thinking"]), (&json!({"type": "any"}), &Value::Null));
}

/// P45, P46: what the provider cannot enforce is known before anything is sent, so that the caller asks in words.
/// A model that reasons for a number of tokens refuses to do so where calls are continued without the reasoning before them, such as
/// those of another model.
#[tokio::test]
async fn calls_without_reasoning_are_continued_without_reasoning() {
    let call = ToolCall { id: "call_of_another_model".into(), tool: "weather".into(), args: json!({}) };
    let outcome = ToolResult::done("sunny");
    let result = Entry::Tool { id: call.id.clone(), tool: call.tool.clone(), result: outcome };
    let within = vec![Entry::user("Weather?"), Entry::own(vec![Part::ToolCall(call)]), result];
    let after = [within.clone(), vec![Entry::assistant("Sunny."), Entry::user("Thanks.")]].concat();
    let server = Server::start(Behavior::from("fine")).await;
    for (model, entries, reasons) in [
        ("claude-sonnet-4-5", &within, false),
        ("claude-sonnet-4-5", &after, true),
        ("claude-sonnet-4-6", &within, true),
    ] {
        let asked =
            Asked { tools: vec![weather()], params: effort(Effort::Low), ..Asked::new(entries.clone()) };
        ask(&claude(&server, model), &asked).await.0.unwrap_or_else(|error| panic!("{model}: {error}"));
        let sent = server.requests().last().unwrap().body.clone();
        assert_eq!(sent.get("thinking").is_some(), reasons, "{model}: {sent}");
    }
    assert_eq!(server.violations(), [""; 0]);
}

#[tokio::test]
async fn a_schema_is_enforced_if_it_can_be() {
    let schema = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "minLength": 2}},
        "required": ["name"],
    });
    let asked = Params { schema: Some(schema), effort: Some(Effort::Low), ..Params::default() };
    let format = json!({"type": "json_schema", "schema": {
        "type": "object",
        "properties": {"name": {"type": "string", "description": "(minLength: 2)"}},
        "required": ["name"],
        "additionalProperties": false,
    }});
    assert_eq!(
        body("claude-sonnet-5", asked).await["output_config"],
        json!({"effort": "low", "format": format})
    );
    let server = Server::start(Answer::text("")).await;
    let open = Params { schema: Some(json!({"type": "object"})), ..Params::default() };
    let recursive = json!({
        "type": "object", "properties": {"next": {"$ref": "#"}}, "required": [], "additionalProperties": false,
    });
    let recursive = Params { schema: Some(recursive), ..Params::default() };
    let json = Params { json: true, ..Params::default() };
    let (schema, any) = (Capability::Schema, Capability::Json);
    for (params, lacks) in [(open, schema), (recursive, schema), (json, any)] {
        let asked = Asked { params, ..Asked::default() };
        let error = ask(&claude(&server, "claude-sonnet-5"), &asked).await.0.unwrap_err();
        assert_eq!(error.kind, ModelErrorKind::Unsupported(lacks), "{error}");
    }
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn extra_fields_take_precedence_and_the_conversation_is_none() {
    let with = |name: &str, value: Value| {
        let extra = [(name.to_owned(), value)].into_iter().collect();
        Params {
            extra,
            effort: Some(Effort::Low),
            stop: vec!["\n".into(), "END".into()],
            ..Params::default()
        }
    };
    let body = body("claude-sonnet-5", with("thinking", json!({"type": "disabled"}))).await;
    assert_eq!((&body["thinking"], &body["stop_sequences"]), (&json!({"type": "disabled"}), &json!(["END"])));
    let server = Server::start(Answer::text("")).await;
    for name in ["system", "messages"] {
        let asked = Asked { params: with(name, json!([])), ..Asked::default() };
        let error = ask(&claude(&server, "claude-sonnet-5"), &asked).await.0.unwrap_err();
        assert!(error.kind == ModelErrorKind::Config && error.message.contains(name), "{error}");
    }
}

/// Reasoning that is bound to what came before it is ignored where that changed, not refused.
#[tokio::test]
async fn a_model_whose_reasoning_is_bound_is_asked_to_drop_it() {
    let bound = json!({"type": "adaptive", "block_binding": {"prefix_mismatch_behavior": "drop_block"}});
    let beta = "thinking-binding-controls-2026-08-01";
    let off = Params { effort: Some(Effort::None), ..Params::default() };
    for (model, params, headers, thinking, header) in [
        ("claude-sonnet-5-5", Params::default(), vec![], Some(&bound), Some(beta.to_owned())),
        (
            "claude-sonnet-5-5",
            Params::default(),
            vec![("anthropic-beta".to_owned(), "mine".to_owned())],
            Some(&bound),
            Some(format!("mine,{beta}")),
        ),
        ("claude-sonnet-5-5", off, vec![], None, None),
        ("claude-sonnet-5", Params::default(), vec![], None, None),
    ] {
        let server = Server::start(Behavior::from("So.")).await;
        let endpoint = Endpoint::new(Config { headers, ..config(&server) }).unwrap();
        ask(&endpoint.model(model), &Asked { params, ..Asked::default() }).await.0.unwrap();
        let request = &server.requests()[0];
        assert_eq!(request.body.get("thinking"), thinking, "{model}");
        assert_eq!(request.header("anthropic-beta").map(str::to_owned), header, "{model}");
        assert_eq!(server.violations(), [""; 0]);
    }
}
