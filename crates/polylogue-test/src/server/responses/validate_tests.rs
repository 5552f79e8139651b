use serde_json::json;

use super::super::super::rules::changed;
use super::*;

fn legal() -> Value {
    let reasoning = |id: &str| json!({"type": "reasoning", "id": id, "summary": [], "encrypted_content": seal("responses", &format!("gpt-5{id}"))});
    json!({
        "model": "gpt-5",
        "store": false,
        "include": ["reasoning.encrypted_content"],
        "instructions": "Be brief.",
        "max_output_tokens": 100,
        "reasoning": {"effort": "low", "summary": "auto"},
        "input": [
            {"role": "user", "content": "Hello."},
            reasoning("rs_1"),
            {"type": "message", "role": "assistant", "id": "msg_1", "status": "completed", "phase": "commentary",
             "content": [{"type": "output_text", "text": "I look.", "annotations": []}]},
            {"type": "function_call", "id": "fc_1", "call_id": "call_1", "name": "look", "arguments": "{\"b\": 1}"},
            {"type": "function_call_output", "call_id": "call_1", "output": "It is there."},
        ],
        "tools": [{"type": "function", "name": "look", "description": "Looks.", "strict": true, "parameters": {
            "type": "object", "properties": {"b": {"type": "integer"}}, "required": ["b"], "additionalProperties": false,
        }}, {"type": "function", "name": "see", "description": "Sees.", "strict": false, "parameters": {
            "type": "object", "properties": {"b": {}},
        }}],
        "tool_choice": {"type": "function", "name": "look"},
        "text": {"format": {"type": "json_schema", "name": "reply", "strict": false, "schema": {"type": "object"}}},
    })
}

#[test]
fn a_request_within_the_rules_passes() {
    assert_eq!(validate(&legal()), Ok(()));
}

#[test]
fn every_rule_of_the_api_refuses_its_violation() {
    for (pointer, value, why) in [
        ("/stop", Some(json!(["x"])), "Unknown parameter: 'stop'"),
        ("/store", None, "`store` is not false"),
        ("/truncation", Some(json!("auto")), "depend on the server"),
        ("/previous_response_id", Some(json!("resp_1")), "depend on the server"),
        ("/max_output_tokens", Some(json!(15)), "from 16"),
        ("/temperature", Some(json!(1)), "'temperature' is not supported"),
        ("/reasoning/effort", Some(json!("huge")), "'huge' is not supported"),
        ("/reasoning/summary", Some(json!("long")), "Invalid value"),
        ("/input", Some(json!([])), "`input` is empty"),
        ("/input/0/content", Some(json!(" ")), "empty text"),
        ("/input/0/content", Some(json!([])), "empty content"),
        ("/input/0/role", Some(json!("tool")), "unknown role"),
        ("/input/1/encrypted_content", Some(json!("x")), "could not be verified"),
        ("/input/2", Some(json!({"role": "user", "content": "x"})), "without its required following item"),
        ("/input/2/id", Some(json!("rs_1")), "Duplicate item"),
        ("/input/2/content/0/type", Some(json!("input_text")), "Supported values are"),
        ("/input/3/name", Some(json!("a b")), "does not match"),
        ("/input/4", None, "No tool output found for function call call_1"),
        ("/input/3", None, "No tool call found"),
        (
            "/input/-",
            Some(json!({"type": "function_call_output", "call_id": "call_1", "output": ""})),
            "second output",
        ),
        ("/input/-", Some(json!({"role": "assistant", "content": "x"})), "the last item is the assistant's"),
        ("/tools", Some(json!([])), "`tools` is empty"),
        ("/tools/0/strict", None, "does not say whether"),
        ("/tools/0/parameters/required", Some(json!([])), "Missing 'b'"),
        ("/tools/0/parameters/additionalProperties", None, "to be false"),
        ("/tools/0/parameters/properties/b/not", Some(json!({})), "'not' is not permitted"),
        ("/tools/0/parameters/properties/b/default", Some(json!(1)), "'default' is not permitted"),
        ("/tools/0/parameters/properties/b/format", Some(json!("uri")), "'uri' is not a valid format"),
        ("/tools/0/parameters/properties/b/type", None, "schema must have a 'type' key"),
        ("/tools/0/parameters/properties/b", Some(json!(true)), "schema must have a 'type' key"),
        ("/tools/0/parameters/properties/b/type", Some(json!("array")), "array schema missing items"),
        ("/tools/0/parameters/properties/b/type", Some(json!("object")), "object schema missing properties"),
        (
            "/tools/0/parameters/properties/b",
            Some(json!({"$ref": "#", "title": "B"})),
            "$ref cannot have keywords {'title'}",
        ),
        ("/tools/0/parameters/anyOf", Some(json!([{"type": "object"}])), "at the top level"),
        ("/tools/1/parameters/properties", None, "object schema missing properties"),
        ("/tools/1/parameters/properties/b/type", Some(json!("array")), "array schema missing items"),
        ("/tools/1/parameters/oneOf", Some(json!([])), "at the top level"),
        ("/tools/0/parameters/type", Some(json!("array")), "'type: \"object\"'"),
        ("/text/format/schema/type", Some(json!("array")), "'type: \"object\"', got 'type: \"array\"'"),
        ("/text/format/schema/anyOf", Some(json!([])), "at the top level"),
        ("/tool_choice/name", Some(json!("gone")), "names no tool"),
        ("/text/format/strict", None, "`strict` is not said"),
    ] {
        let refused = validate(&changed(&legal(), pointer, value.clone()));
        let refused = refused.expect_err(&format!("{pointer} = {value:?}"));
        assert!(refused.contains(why), "{pointer}: {refused}");
    }
}

#[test]
fn a_model_that_does_not_reason_takes_a_temperature_but_no_effort() {
    let other = json!({"model": "gpt-4o", "store": false, "temperature": 1, "input": "Hello."});
    assert_eq!(validate(&other), Ok(()));
    let effort = changed(&other, "/reasoning", Some(json!({"effort": "low"})));
    assert!(validate(&effort).unwrap_err().contains("'reasoning' is not supported"));
}

#[test]
fn a_model_that_reasons_takes_its_own_efforts_and_a_temperature_at_none() {
    let asked = |model: &str, effort: &str| json!({"model": model, "store": false, "reasoning": {"effort": effort}, "input": "Hello."});
    for (model, efforts, others) in [
        ("gpt-5", "minimal low medium high", "none xhigh max"),
        ("gpt-5-pro", "high", "none minimal low medium xhigh max"),
        ("gpt-5.1", "none low medium high", "minimal xhigh max"),
        ("o3", "low medium high", "none minimal xhigh max"),
    ] {
        assert!(efforts.split(' ').all(|effort| validate(&asked(model, effort)).is_ok()), "{model}");
        assert!(others.split(' ').all(|effort| validate(&asked(model, effort)).is_err()), "{model}");
    }
    let with_temperature = |effort| changed(&asked("gpt-5.1", effort), "/temperature", Some(json!(1)));
    assert_eq!(validate(&with_temperature("none")), Ok(()));
    assert!(validate(&with_temperature("low")).unwrap_err().contains("'temperature' is not supported"));
}
