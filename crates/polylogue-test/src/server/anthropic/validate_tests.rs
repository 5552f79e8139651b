use serde_json::json;

use super::super::super::rules::changed;
use super::*;

const NEW: &str = "2026-10-21";

fn legal() -> Value {
    let mut body = json!({
        "model": "claude-sonnet-5",
        "max_tokens": 2000,
        "system": [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral", "ttl": "1h"}}],
        "messages": [
            {"role": "user", "content": "Hello."},
            {"role": "assistant", "content": [
                {"type": "thinking", "thinking": "Hm.", "signature": ""},
                {"type": "text", "text": "I look."},
                {"type": "tool_use", "id": "toolu_1", "name": "look", "input": {"a": 1}},
            ]},
            {"role": "user", "content": [
                {"type": "tool_result", "tool_use_id": "toolu_1", "content": "x", "is_error": true},
                {"type": "text", "text": "And?", "cache_control": {"type": "ephemeral"}},
            ]},
        ],
        "tools": [{"name": "look", "description": "Looks.", "input_schema": {"type": "object"}}],
        "tool_choice": {"type": "auto", "disable_parallel_tool_use": true},
        "thinking": {"type": "adaptive"},
        "output_config": {"effort": "low", "format": {"type": "json_schema", "schema": {
            "type": "object", "properties": {}, "additionalProperties": false,
        }}},
    });
    let messages = body["messages"].as_array().unwrap().clone();
    body["messages"][1]["content"][0]["signature"] = signature(&body, &messages[..1], "Hm.").into();
    body
}

#[test]
fn a_request_within_the_rules_passes() {
    assert_eq!(check(&legal(), NEW), Ok(()));
}

#[test]
fn every_rule_of_the_api_refuses_its_violation() {
    let mark = json!({"type": "ephemeral"});
    let marked = json!([{"type": "text", "text": "x", "cache_control": mark}, {"type": "text", "text": "x", "cache_control": mark}]);
    for (pointer, value, why) in [
        ("/seed", Some(json!(1)), "seed: Extra inputs"),
        ("/temperature", Some(json!(1)), "temperature: Extra inputs"),
        ("/max_tokens", None, "max_tokens: Field required"),
        ("/stop_sequences", Some(json!(["\n"])), "non-whitespace"),
        ("/system/0/text", Some(json!("")), "non-empty"),
        ("/system/0/cache_control/ttl", None, ""),
        ("/messages/0/role", Some(json!("assistant")), "first message must use"),
        ("/messages/0/content", Some(json!(" ")), "non-whitespace"),
        ("/messages/0/content", Some(json!([])), "non-empty content"),
        ("/messages/0/content", Some(json!("Changed.")), "bound to a different conversation"),
        ("/system/0/text", Some(json!("Be long.")), "bound to a different conversation"),
        ("/tools/0/description", Some(json!("Changed.")), "bound to a different conversation"),
        ("/messages/1/content/0/thinking", Some(json!("Changed.")), "bound to a different conversation"),
        ("/messages/1/content/0/cache_control", Some(mark.clone()), "cannot be set here"),
        ("/messages/1/role", Some(json!("user")), "roles must alternate"),
        ("/messages/1/content/2/id", Some(json!("a.b")), "should match pattern"),
        ("/messages/1/content/2/input", Some(json!("{}")), "not an object"),
        ("/messages/1/content/1/type", Some(json!("image")), "not permitted in messages"),
        ("/messages/2/content/0/tool_use_id", Some(json!("toolu_2")), "without `tool_result` blocks"),
        ("/messages/2/content/0", None, "without `tool_result` blocks"),
        ("/messages/2/content", Some(json!("x")), "without `tool_result` blocks"),
        ("/messages/2", None, "without `tool_result` blocks"),
        ("/messages/-", Some(json!({"role": "assistant", "content": "x"})), "prefill"),
        (
            "/messages/-",
            Some(json!({"role": "assistant", "content": [
            {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}]})),
            "",
        ),
        ("/messages/-", Some(json!({"role": "system", "content": "x"})), ""),
        ("/tools/0/input_schema/type", None, "input_schema.type: Field required"),
        ("/tools/0/input_schema/anyOf", Some(json!([])), "anyOf at the top level"),
        ("/tools/0/input_schema/oneOf", Some(json!([])), "anyOf at the top level"),
        ("/tools/0/input_schema/allOf", Some(json!([])), "anyOf at the top level"),
        ("/tools/0/name", Some(json!("a b")), "does not match"),
        ("/tool_choice", Some(json!({"type": "tool", "name": "gone"})), "not found in provided tools"),
        ("/thinking", Some(json!({"type": "enabled", "budget_tokens": 1000})), "at least 1024"),
        ("/output_config/effort", Some(json!("none")), "output_config.effort"),
        ("/output_config/format/schema/additionalProperties", None, "must be explicitly set to false"),
        ("/output_config/format/schema/oneOf", Some(json!([])), "'oneOf' is not supported"),
    ] {
        let checked = check(&changed(&legal(), pointer, value.clone()), NEW);
        match why {
            "" => assert_eq!(checked, Ok(()), "{pointer}"),
            why => {
                let refused = checked.expect_err(&format!("{pointer} = {value:?}"));
                assert!(refused.contains(why), "{pointer}: {refused}");
            }
        }
    }
    let mut crowded = legal();
    crowded["messages"][2]["content"]
        .as_array_mut()
        .unwrap()
        .extend(marked.as_array().unwrap().iter().cloned());
    assert_eq!(check(&crowded, NEW), Ok(()), "four marks");
    crowded["tools"][0]["cache_control"] = json!({"type": "ephemeral", "ttl": "1h"});
    assert!(check(&crowded, NEW).unwrap_err().contains("more than 4 cache points"));
}

#[test]
fn results_come_first_and_the_older_version_takes_a_temperature() {
    let mut body = legal();
    body["messages"][2]["content"].as_array_mut().unwrap().reverse();
    assert!(check(&body, NEW).unwrap_err().contains("after another block"));
    let warm = changed(&legal(), "/temperature", Some(json!(0.5)));
    assert_eq!(check(&warm, "2023-06-01"), Ok(()));
}
