//! How much models reason: each family has its own field.

use polylogue_core::{CacheLifetime, Effort, Model as _, Params, Thinking, ToolSpec};
use polylogue_models::Endpoint;
use polylogue_test::server::{Behavior, Server};
use serde_json::{Value, json};

use crate::bedrock::config;
use crate::common::{Asked, ask};

const CLAUDE: &str = "us.anthropic.claude-sonnet-4-5-20250929-v1:0";
const NEW_CLAUDE: &str = "anthropic.claude-sonnet-5";
const NOVA: &str = "us.amazon.nova-2-lite-v1:0";

/// The body of a request to `model`, and the parameters that it leaves out.
async fn sent(model: &str, params: Params) -> (Value, Vec<&'static str>) {
    let server = Server::start(Behavior::from("fine")).await;
    let model = Endpoint::new(config(&server)).unwrap().model(model);
    let ignored = model.ignored(&params);
    ask(&model, &Asked { params, ..Asked::default() }).await.0.unwrap();
    assert_eq!(server.violations(), [""; 0]);
    (server.requests()[0].body.clone(), ignored)
}

#[tokio::test]
async fn each_family_has_its_field_for_the_effort() {
    let own = "additionalModelRequestFields";
    let effort = |effort| Params { effort: Some(effort), ..Params::default() };
    let nova = |level: &str| json!({"reasoningConfig": {"type": "enabled", "maxReasoningEffort": level}});
    for (model, params, expected) in [
        (CLAUDE, effort(Effort::Low), json!({"thinking": {"type": "enabled", "budget_tokens": 4096}})),
        (CLAUDE, effort(Effort::None), json!({"thinking": {"type": "disabled"}})),
        (NEW_CLAUDE, effort(Effort::Max), json!({"thinking": {"type": "adaptive"}})),
        (NOVA, effort(Effort::Minimal), nova("low")),
        (NOVA, effort(Effort::Max), nova("high")),
        (NOVA, Params { max_tokens: Some(900), ..effort(Effort::Max) }, nova("medium")),
        (NOVA, effort(Effort::None), json!({"reasoningConfig": {"type": "disabled"}})),
        ("openai.gpt-oss-120b-1:0", effort(Effort::Medium), json!({"reasoning_effort": "medium"})),
    ] {
        let (body, ignored) = sent(model, params).await;
        assert_eq!((&body[own], ignored), (&expected, vec![]), "{model}");
        let effort = if model == NEW_CLAUDE { json!({"effort": "max"}) } else { Value::Null };
        assert_eq!(body["outputConfig"], effort, "{model}");
    }
    // What a family has no field for is left out.
    for (model, params) in [
        ("deepseek.r1-v1:0", effort(Effort::High)),
        ("openai.gpt-oss-120b-1:0", effort(Effort::None)),
        ("meta.llama3-8b-instruct-v1:0", effort(Effort::High)),
    ] {
        let (body, ignored) = sent(model, params).await;
        assert_eq!((body.get(own), ignored), (None, vec!["effort"]), "{model}");
    }
}

/// The server refuses what the families do not take together.
#[tokio::test]
async fn what_does_not_go_with_reasoning_is_left_out() {
    let params = Params { temperature: Some(0.2), effort: Some(Effort::High), ..Params::default() };
    for model in [CLAUDE, NOVA] {
        let (body, ignored) = sent(model, params.clone()).await;
        assert_eq!((ignored, &body["inferenceConfig"]), (vec!["temperature"], &Value::Null), "{model}");
    }
    // Where the limit on the reply leaves no room for reasoning, it is the reasoning that is left out.
    let short = Params { max_tokens: Some(2000), ..params };
    let (body, ignored) = sent(CLAUDE, short.clone()).await;
    assert_eq!((ignored, body.get("additionalModelRequestFields")), (vec!["effort"], None));
    assert_eq!(body["inferenceConfig"], json!({"maxTokens": 2000, "temperature": 0.2}));
    assert_eq!(sent(NOVA, short).await.1, [""; 0]);
    let shown = Params { thinking: Some(Thinking::Summary), ..Params::default() };
    let (body, ignored) = sent(NEW_CLAUDE, shown.clone()).await;
    let thinking = json!({"thinking": {"type": "adaptive", "display": "summarized"}});
    assert_eq!((&body["additionalModelRequestFields"], ignored), (&thinking, vec![]));
    assert_eq!(sent(NOVA, shown).await.1, ["thinking"]);
    // What the caller gives counts more.
    let extra = json!({"thinking": {"type": "disabled"}}).as_object().unwrap().clone();
    let (body, _) =
        sent(CLAUDE, Params { extra, ..Params { effort: Some(Effort::Low), ..Params::default() } }).await;
    assert_eq!(body["additionalModelRequestFields"]["thinking"], json!({"type": "disabled"}));
}

/// The models of which the table has the price of it cache for an hour.
#[tokio::test]
async fn the_prompt_is_cached_for_an_hour_where_the_model_can() {
    let params = Params { prompt_cache: Some(CacheLifetime::Hour), ..Params::default() };
    for (name, is_long) in [(CLAUDE, true), ("us.amazon.nova-pro-v1:0", false), ("m", false)] {
        let server = Server::start(Behavior::from("fine")).await;
        let model = Endpoint::new(config(&server)).unwrap().model(name);
        let tools = vec![ToolSpec::new("look", "Looks.", json!({"type": "object"}))];
        let system = Some("Be brief. ".repeat(1000));
        let asked = Asked { tools, system, params: params.clone(), ..Asked::default() };
        ask(&model, &asked).await.0.unwrap();
        let text = server.requests()[0].body.to_string();
        assert_eq!(text.matches(r#""ttl":"1h""#).count(), if is_long { 2 } else { 0 }, "{text}");
        assert_eq!(model.ignored(&params), if is_long { vec![] } else { vec!["prompt_cache"] }, "{name}");
        assert_eq!(server.violations(), [""; 0]);
    }
}
