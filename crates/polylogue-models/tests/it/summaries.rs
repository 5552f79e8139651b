//! Summaries of reasoning: an endpoint asks for them where a model reasons anyway and does not show it.

use polylogue_core::{Effort, ModelErrorKind, Params, Thinking};
use polylogue_models::{Api, Config, Endpoint};
use polylogue_test::server::{Answer, Playbook, Received, Server};
use serde_json::{Value, json};

use crate::common::{Asked, ask, config_of, text};

/// The body for a model with `params`; the server accepts it.
async fn sent((api, provider, model): (Api, &str, &str), params: &Params, summarize: bool) -> Value {
    let server = Server::start(Answer::text("Sunny.")).await;
    let config = Config { summarize_reasoning: summarize, ..config_of(api, provider, &server) };
    let asked = Asked { params: params.clone(), ..Asked::default() };
    let model = Endpoint::new(config).unwrap().model(model);
    ask(&model, &asked).await.0.unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(server.violations(), [""; 0]);
    server.requests()[0].body.clone()
}

/// Nothing else in a request depends on it, so that the provider's cache of the prompt is used as before.
#[tokio::test]
async fn a_summary_is_asked_for_where_the_model_reasons_anyway() {
    let usual = Params::default();
    let [none, low] =
        [Effort::None, Effort::Low].map(|effort| Params { effort: Some(effort), ..Params::default() });
    let hidden = Params { thinking: Some(Thinking::Hidden), ..Params::default() };
    let adaptive = json!({"type": "adaptive", "display": "summarized"});
    let openai = |model| (Api::Responses, "openai", model);
    let claude = |model| (Api::Messages, "anthropic", model);
    let gemini = |model| (Api::Gemini, "gemini", model);
    let bedrock = |model| (Api::Converse, "bedrock", model);
    let (of_gemini, of_bedrock) =
        ("/generationConfig/thinkingConfig", "/additionalModelRequestFields/thinking");
    for (model, params, place, expected) in [
        (openai("gpt-5"), &usual, "/reasoning", json!({"summary": "auto"})),
        (openai("gpt-5"), &low, "/reasoning", json!({"effort": "low", "summary": "auto"})),
        (openai("gpt-5"), &hidden, "/reasoning", Value::Null),
        (openai("gpt-5.1"), &none, "/reasoning", json!({"effort": "none"})),
        (openai("unheard-of"), &usual, "/reasoning", Value::Null),
        ((Api::ChatCompletions, "openai", "gpt-5"), &usual, "/reasoning", Value::Null),
        (claude("claude-opus-5"), &usual, "/thinking", adaptive.clone()),
        (claude("claude-opus-5"), &none, "/thinking", json!({"type": "disabled"})),
        (claude("claude-opus-5"), &hidden, "/thinking/display", json!("omitted")),
        (claude("claude-opus-5-5"), &usual, "/thinking/display", json!("summarized")),
        // It reasons only when it is asked to.
        (claude("claude-opus-4-8"), &usual, "/thinking", Value::Null),
        (claude("claude-opus-4-8"), &low, "/thinking", adaptive.clone()),
        // It shows a summary by default.
        (claude("claude-sonnet-4-5"), &low, "/thinking/display", Value::Null),
        (gemini("gemini-3.1-pro-preview"), &usual, of_gemini, json!({"includeThoughts": true})),
        (gemini("gemini-2.5-flash"), &none, of_gemini, json!({"thinkingBudget": 0})),
        (gemini("unheard-of"), &usual, of_gemini, Value::Null),
        (bedrock("anthropic.claude-opus-5"), &usual, of_bedrock, adaptive.clone()),
        (bedrock("anthropic.claude-opus-4-8"), &usual, of_bedrock, Value::Null),
        (bedrock("anthropic.claude-opus-4-8"), &low, of_bedrock, adaptive.clone()),
        (bedrock("openai.gpt-oss-120b-1:0"), &usual, of_bedrock, Value::Null),
    ] {
        let [mut with, mut without] = [sent(model, params, true).await, sent(model, params, false).await];
        assert_eq!(with.pointer(place).unwrap_or(&Value::Null), &expected, "{model:?} {params:?}");
        let field = place.split('/').nth(1).unwrap();
        for body in [&mut with, &mut without] {
            body.as_object_mut().unwrap().shift_remove(field);
        }
        assert_eq!(with, without, "{model:?} {params:?}");
    }
}

/// OpenAI refuses summaries to accounts that are not verified.
#[tokio::test]
async fn a_refused_summary_is_left_out_and_not_asked_for_again() {
    let refusal = "Your organization must be verified to generate reasoning summaries";
    let play = move |asked: &Received, _: usize| match asked.body["reasoning"].get("summary") {
        Some(_) => Answer::error(400, refusal).code("unsupported_value"),
        None => Answer::text("Sunny."),
    };
    let server = Server::start(Playbook::new(play)).await;
    let config = Config { summarize_reasoning: true, ..config_of(Api::Responses, "openai", &server) };
    let endpoint = Endpoint::new(config).unwrap();
    // A model that refused it is asked once, another one first for a summary, too.
    for (model, count) in [("gpt-5", 2), ("gpt-5", 3), ("gpt-5-mini", 5)] {
        let reply = ask(&endpoint.model(model), &Asked::default()).await.0.unwrap();
        assert_eq!((text(&reply), server.count()), ("Sunny.".to_owned(), count), "{model}");
    }
    // What the team wishes is not left out.
    let params = Params { thinking: Some(Thinking::Summary), ..Params::default() };
    let error = ask(&endpoint.model("gpt-5"), &Asked { params, ..Asked::default() }).await.0.unwrap_err();
    assert!(error.message.contains(refusal), "{error}");
    assert_eq!(server.count(), 6);
}

/// What is refused to a team is not asked for by the endpoint either.
#[tokio::test]
async fn no_summary_is_asked_for_where_that_of_a_team_was_refused() {
    let refusal = "Unsupported parameter: 'reasoning.summary' is not supported with this model.";
    let play = move |asked: &Received, _: usize| match asked.body["reasoning"].get("summary") {
        Some(_) => Answer::error(400, refusal),
        None => Answer::text("Sunny."),
    };
    let server = Server::start(Playbook::new(play)).await;
    let config = Config { summarize_reasoning: true, ..config_of(Api::Responses, "openai", &server) };
    let model = Endpoint::new(config).unwrap().model("gpt-5");
    let params = Params { thinking: Some(Thinking::Summary), ..Params::default() };
    let error = ask(&model, &Asked { params, ..Asked::default() }).await.0.unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::ParameterRefused);
    let reply = ask(&model, &Asked::default()).await.0.unwrap();
    assert_eq!((text(&reply), server.count()), ("Sunny.".to_owned(), 2));
}

#[tokio::test]
async fn another_refusal_is_no_reason_to_ask_again() {
    let server = Server::start(Playbook::always(Answer::error(400, "The input is odd."))).await;
    let config = Config { summarize_reasoning: true, ..config_of(Api::Responses, "openai", &server) };
    let error = ask(&Endpoint::new(config).unwrap().model("gpt-5"), &Asked::default()).await.0.unwrap_err();
    assert!(error.message.contains("The input is odd"), "{error}");
    assert_eq!(server.count(), 1);
}
