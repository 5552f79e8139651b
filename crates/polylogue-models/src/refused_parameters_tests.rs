use polylogue_core::{CacheLifetime, Effort, Thinking, ToolChoice};
use serde_json::json;

use super::*;

/// A request with all parameters.
fn all() -> Params {
    Params {
        temperature: Some(0.5),
        top_p: Some(0.5),
        top_k: Some(4),
        seed: Some(7),
        max_tokens: Some(9),
        stop: vec!["x".into()],
        effort: Some(Effort::Low),
        thinking: Some(Thinking::Hidden),
        tool_choice: Some(ToolChoice::Any),
        parallel_tool_calls: Some(false),
        prompt_cache: Some(CacheLifetime::Day),
        ..Params::default()
    }
}

fn error(status: u16, message: &str, body: Option<&Value>) -> ModelError {
    let message = format!("the provider answered with status {status}: {message}");
    let error = ModelError::new(ModelErrorKind::Config, "p:m", message);
    ModelError { status: Some(status), body: body.map(ToString::to_string), ..error }
}

/// In the words of OpenAI, Together, xAI, Groq, Mistral, Gemini, Anthropic, Bedrock and compatible servers.
#[test]
fn every_provider_that_refuses_a_parameter_is_understood() {
    let forbidden = json!([{"type": "extra_forbidden", "loc": ["body", "seed"], "msg": "Extra inputs are not permitted", "input": 7}]).to_string();
    let values = "Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported";
    for (status, message, expected) in [
        (400, "Unsupported parameter: 'temperature' is not supported with this model", "temperature"),
        (400, values, "temperature"),
        (400, "seed is not supported for this model", "seed"),
        (400, "Model grok-4 does not support parameter stop", "stop"),
        (400, "Argument not supported on this model: stop", "stop"),
        (400, "property 'top_k' is unsupported", "top_k"),
        (422, forbidden.as_str(), "seed"),
        (
            400,
            "Invalid JSON payload received. Unknown name \"topK\" at 'generation_config': Cannot find field",
            "top_k",
        ),
        (400, "top_k: Extra inputs are not permitted", "top_k"),
        (400, "`temperature` is deprecated for this model", "temperature"),
        (400, "Unrecognized request argument supplied: reasoning_effort", "effort"),
        (400, "Unsupported parameter: 'reasoning.effort' is not supported with this model", "effort"),
        (400, "Unsupported parameter: 'reasoning.summary' is not supported with this model", "thinking"),
        (400, "output_config.effort: Extra inputs are not permitted", "effort"),
        (
            400,
            "Unsupported parameter: 'parallel_tool_calls' is not supported with this model",
            "parallel_tool_calls",
        ),
        (400, "Unknown parameter: 'tool_choice'", "tool_choice"),
        (
            400,
            "This model doesn't support the toolConfig.toolChoice.any field. Remove toolConfig.toolChoice.any and try again",
            "tool_choice",
        ),
        (
            400,
            "This model doesn't support the stopSequences field. Remove stopSequences and try again",
            "stop",
        ),
        (400, "Thinking level MINIMAL is not supported for this model", "effort"),
        (400, "Unknown parameter: 'prompt_cache_retention'", "prompt_cache"),
        (400, "unexpected keyword argument 'random_seed'", "seed"),
    ] {
        assert_eq!(refused(&error(status, message, None), &all()), [expected], "{message}");
        assert_eq!(
            refused(&error(status, message, None), &Params::default()),
            [""; 0],
            "not sent: {message}"
        );
    }
    for (message, expected) in [
        ("temperature and top_p are not supported with this model", ["temperature", "top_p"]),
        // In the words of Ollama.
        ("\"llama3.2\" does not support thinking", ["effort", "thinking"]),
    ] {
        assert_eq!(refused(&error(400, message, None), &all()), expected, "{message}");
    }
}

/// Values out of range, other fields, lists of what is supported, and other errors.
#[test]
fn what_is_refused_for_other_reasons_stays_an_error() {
    for (status, message) in [
        (400, "Invalid 'temperature': decimal above maximum value. Expected a value <= 2"),
        (400, "`top_p` must be > 0.0 and < 1.0"),
        (400, "Unsupported value: 'reasoning_effort' does not support 'low'. Supported values are: 'medium'"),
        (
            400,
            "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead",
        ),
        (400, "Unknown parameter: 'min_p'. There are: temperature, top_p, seed, stop"),
        (400, "Unsupported parameter: 'tools' is not supported with this model"),
        (400, "\"auto\" tool choice requires --enable-auto-tool-choice, and is not supported without"),
        (400, "the stopwatch, temperatures and a seedling are unknown"),
        (401, "seed is not supported for this key"),
        (429, "seed is unavailable"),
    ] {
        assert_eq!(refused(&error(status, message, None), &all()), [""; 0], "{message}");
    }
    let filtered =
        ModelError { kind: ModelErrorKind::ContentFiltered, ..error(400, "seed is not allowed", None) };
    assert_eq!(refused(&filtered, &all()), [""; 0]);
}

#[test]
fn the_field_that_an_error_names_counts_before_its_words() {
    let of = |param: Value| {
        let body = json!({"error": {"message": "m", "param": param, "code": "unsupported_parameter"}});
        refused(&error(400, "seed or stop are not supported here", Some(&body)), &all())
    };
    assert_eq!(of(json!("stop")), ["stop"]);
    assert_eq!(of(json!("reasoning.effort")), ["effort"]);
    assert_eq!(of(json!("messages")), [""; 0]);
    assert_eq!(of(Value::Null), ["seed", "stop"]);
}

#[test]
fn every_parameter_that_can_be_left_out_has_a_field() {
    let names: Vec<&str> = FIELDS.iter().map(|(name, _)| *name).collect();
    assert_eq!(all().names(), names);
}

#[test]
fn what_one_model_refuses_others_may_take() {
    let refused = RefusedParameters::default();
    refused.learn("p:m", ["seed"]);
    refused.learn("p:m", ["seed", "stop"]);
    assert_eq!(refused.of("p:m"), BTreeSet::from(["seed", "stop"]));
    assert_eq!(refused.of("p:other"), BTreeSet::new());
    assert!(refused.has_any("p:m", &["top_p", "stop"]) && !refused.has_any("p:m", &["top_p"]));
}

#[test]
fn a_refused_summary_is_no_parameter_of_a_team() {
    assert!(!all().names().contains(&SUMMARY));
    let unverified = "Your organization must be verified to generate reasoning summaries";
    assert!(refuses_summary(&error(400, unverified, None)));
    assert_eq!(refused(&error(400, unverified, None), &all()), [""; 0]);
    assert!(!refuses_summary(&error(500, unverified, None)));
}
