use serde_json::json;

use super::super::super::rules::changed;
use super::*;

/// What is wrong with a request to a model that binds its thoughts to nothing.
fn checked(body: &Value) -> Result<(), String> {
    validate("m", body)
}

fn legal() -> Value {
    json!({
        "system": [{"text": "Be brief."}, {"cachePoint": {"type": "default"}}],
        "messages": [
            {"role": "user", "content": [
                {"text": "Hello."},
                {"document": {"format": "pdf", "name": "a (1)", "source": {"bytes": "AAAA"}}},
            ]},
            {"role": "assistant", "content": [
                {"reasoningContent": {"reasoningText": {"text": "Hm.", "signature": signature("m", &Value::Null, &[], "Hm.")}}},
                {"toolUse": {"toolUseId": "t1", "name": "look", "input": {}}},
            ]},
            {"role": "user", "content": [
                {"toolResult": {"toolUseId": "t1", "status": "success", "content": [{"text": "x"}]}},
                {"text": "And?"},
            ]},
        ],
        "toolConfig": {
            "tools": [{"toolSpec": {"name": "look", "description": "Looks.", "inputSchema": {"json": {"type": "object"}}}}],
            "toolChoice": {"tool": {"name": "look"}},
        },
        "inferenceConfig": {"maxTokens": 10, "temperature": 0.5},
        "outputConfig": {"textFormat": {"type": "json_schema", "structure": {"jsonSchema": {"name": "r", "schema": "{}"}}}},
    })
}

#[test]
fn a_request_within_the_rules_passes() {
    assert_eq!(checked(&legal()), Ok(()));
}

#[test]
fn every_rule_of_the_api_refuses_its_violation() {
    let mut marked = vec![json!({"text": "x"})];
    marked.resize(6, json!({"cachePoint": {"type": "default"}}));
    for (pointer, value, why) in [
        ("/model", Some(json!("m")), "unknown field `model`"),
        ("/system", Some(json!([])), "leave it out"),
        ("/system", Some(marked.into()), "more than 4 cache points"),
        ("/messages", Some(json!([])), "at least one message"),
        ("/messages/0/role", Some(json!("assistant")), "start with a user message"),
        ("/messages/1/role", Some(json!("user")), "must alternate"),
        ("/messages/0/content/0/text", Some(json!("\n")), "is blank"),
        ("/messages/0/content/0", None, "must have a text"),
        ("/messages/0/content/1/document/name", Some(json!("a.pdf")), "file name can only contain"),
        ("/messages/0/content/1/document/format", Some(json!("exe")), "unknown format"),
        (
            "/messages/1/content/0/reasoningContent/reasoningText/signature",
            Some(json!("x")),
            "Invalid `signature`",
        ),
        ("/messages/1/content/1/toolUse/toolUseId", Some(json!("a b")), "illegal or used again"),
        ("/messages/1/content/1/toolUse/input", Some(json!("{}")), "not an object"),
        ("/messages/2/content/0", None, "does not match the toolUse blocks"),
        ("/messages/2/content/0/toolResult/content", Some(json!([])), "empty content"),
        ("/messages/2/content/0/toolResult/status", Some(json!("bad")), "neither `success` nor `error`"),
        ("/messages/2/content/0/toolResult/toolUseId", Some(json!("t2")), "does not match"),
        ("/messages/2", None, "must end with a user message"),
        ("/toolConfig", None, "toolConfig field must be defined"),
        ("/toolConfig/tools/0/toolSpec/description", Some(json!("")), "empty description"),
        ("/toolConfig/tools/0/toolSpec/inputSchema/json/type", None, "'type: \"object\"'"),
        ("/toolConfig/tools/0/toolSpec/inputSchema/json/anyOf", Some(json!([])), "at the top level"),
        ("/toolConfig/toolChoice", Some(json!({"tool": {"name": "gone"}})), "not a tool"),
        ("/inferenceConfig/temperature", Some(json!(1.5)), "from 0 to 1"),
        (
            "/outputConfig/textFormat/structure/jsonSchema/schema",
            Some(json!({})),
            "not a text with a JSON object",
        ),
    ] {
        let refused = checked(&changed(&legal(), pointer, value.clone()));
        let refused = refused.expect_err(&format!("{pointer} = {value:?}"));
        assert!(refused.contains(why), "{pointer}: {refused}");
    }
}

#[test]
fn results_come_first() {
    let mut body = legal();
    let content = body.pointer_mut("/messages/2/content").and_then(Value::as_array_mut).unwrap();
    content.reverse();
    assert!(checked(&body).unwrap_err().contains("results come first"));
}

/// Claude signs a thought together with all that came before it, without the marks of caches.
#[test]
fn thoughts_of_claude_are_bound_to_what_came_before_them() {
    let model = "anthropic.claude-sonnet-5-v1%3A0";
    let mut body = legal();
    let before = body["messages"].as_array().unwrap()[..1].to_vec();
    let signed = signature(model, &body, &before, "Hm.");
    body["messages"][1]["content"][0]["reasoningContent"]["reasoningText"]["signature"] = signed.into();
    assert_eq!(validate(model, &body), Ok(()));
    let mut marked = body.clone();
    let content = marked.pointer_mut("/messages/0/content").and_then(Value::as_array_mut).unwrap();
    content.push(json!({"cachePoint": {"type": "default"}}));
    assert_eq!(validate(model, &marked), Ok(()));
    for (pointer, value) in [
        ("/messages/0/content/0/text", json!("Hi.")),
        ("/system/0/text", json!("Be long.")),
        ("/toolConfig/tools/0/toolSpec/description", json!("Sees.")),
    ] {
        let refused = validate(model, &changed(&body, pointer, Some(value))).unwrap_err();
        assert!(refused.contains("Invalid `signature`"), "{pointer}: {refused}");
    }
}
