use serde_json::json;

use super::super::super::rules::changed;
use super::*;

fn legal() -> Value {
    json!({
        "systemInstruction": {"parts": [{"text": "Be brief."}]},
        "contents": [
            {"role": "user", "parts": [{"text": "Hello."}]},
            {"role": "model", "parts": [
                {"text": "", "thoughtSignature": seal("gemini", "")},
                {"functionCall": {"id": "1", "name": "look", "args": {"b": 1, "a": 2}},
                 "thoughtSignature": seal("gemini", r#"look{"b":1,"a":2}"#)},
                {"functionCall": {"name": "look", "args": {}}},
            ]},
            {"role": "user", "parts": [
                {"functionResponse": {"id": "1", "name": "look", "response": {"output": "x"}}},
                {"functionResponse": {"name": "look", "response": {"error": "y"}}},
            ]},
        ],
        "tools": [{"functionDeclarations": [
            {"name": "look", "description": "Looks.", "parametersJsonSchema": {"type": "object", "properties": {"a": {"enum": ["x"]}}}},
        ]}],
        "toolConfig": {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": ["look"]}},
        "generationConfig": {"temperature": 1, "maxOutputTokens": 10, "stopSequences": ["END"], "thinkingConfig": {"thinkingLevel": "LOW"}},
    })
}

#[test]
fn a_request_within_the_rules_passes() {
    assert_eq!(validate("gemini-3-pro", &legal()), Ok(()));
}

#[test]
fn vertex_refuses_ids() {
    let mut request = legal();
    let why = "Unknown name \"id\" at 'contents[1].parts[1].functionCall': Cannot find field.";
    assert_eq!(without_ids(&request), Err(why.to_owned()));
    request["contents"][1]["parts"][1]["functionCall"].as_object_mut().unwrap().shift_remove("id");
    assert!(without_ids(&request).unwrap_err().contains("functionResponse"));
    request["contents"][2]["parts"][0]["functionResponse"].as_object_mut().unwrap().shift_remove("id");
    assert_eq!(without_ids(&request), Ok(()));
}

#[test]
fn every_rule_of_the_api_refuses_its_violation() {
    for (pointer, value, why) in [
        ("/stop", Some(json!(1)), "unknown field `stop`"),
        ("/contents", Some(json!([])), "not specified"),
        ("/continuationToken", Some(json!("another")), "not of this request"),
        ("/contents/0/role", Some(json!("model")), "although it is the first"),
        ("/contents/0/role", Some(json!("system")), "role `system`"),
        ("/contents/0/parts", Some(json!([])), "no parts"),
        ("/contents/0/parts/0/text", Some(json!(" ")), "empty text"),
        ("/contents/0/parts/0/inlineData", Some(json!({})), "has `text` and `inlineData`"),
        ("/contents/1/parts/0/thoughtSignature", None, "empty text"),
        ("/contents/1/parts/1/thoughtSignature", Some(json!("abcd")), "not valid"),
        ("/contents/1/parts/1/thoughtSignature", None, "missing a `thought_signature`"),
        ("/contents/1/parts/1/functionCall/args", Some(json!("{}")), "not an object"),
        ("/contents/2/parts/0/functionResponse/response", Some(json!("x")), "not an object"),
        ("/contents/2/parts/0/functionResponse/id", Some(json!("2")), "responds to"),
        ("/contents/2/parts/1", None, "number of function response parts"),
        ("/contents/2", None, "the last calls have no responses"),
        (
            "/contents/-",
            Some(json!({"role": "model", "parts": [{"text": "x"}]})),
            "the last content is the model's",
        ),
        ("/tools/0/functionDeclarations/0/name", Some(json!("9")), "invalid function name"),
        ("/tools/0/functionDeclarations/0/parameters", Some(json!({})), "has `parameters` and"),
        (
            "/tools/0/functionDeclarations/0/parametersJsonSchema/allOf",
            Some(json!([])),
            "unknown field `allOf`",
        ),
        ("/tools/0/functionDeclarations/0/parametersJsonSchema/$ref", Some(json!("#")), "next to `$ref`"),
        ("/tools/0/functionDeclarations/0/parametersJsonSchema/anyOf", Some(json!([])), "at the top level"),
        ("/tools/0/functionDeclarations/0/parametersJsonSchema/type", None, "'type: \"object\"'"),
        ("/toolConfig/functionCallingConfig/allowedFunctionNames", Some(json!(["gone"])), "not declared"),
        ("/toolConfig/functionCallingConfig/mode", Some(json!("AUTO")), "only allowed with the mode ANY"),
        ("/generationConfig/temperature", Some(json!(3)), "from 0 to 2"),
        ("/generationConfig/stopSequences", Some(json!(["1", "2", "3", "4", "5", "6"])), "more than 5"),
        ("/generationConfig/responseJsonSchema", Some(json!({})), "needs the response mime type"),
        ("/generationConfig/thinkingConfig/thinkingBudget", Some(json!(1)), "only set one of"),
    ] {
        let refused = validate("gemini-3-pro", &changed(&legal(), pointer, value.clone()));
        let refused = refused.expect_err(&format!("{pointer} = {value:?}"));
        assert!(refused.contains(why), "{pointer}: {refused}");
    }
}

#[test]
fn a_model_takes_its_own_levels_and_numbers_of_tokens_only() {
    let place = "/generationConfig/thinkingConfig";
    for (model, level, is_legal) in [
        ("gemini-3-pro-preview", "MINIMAL", false),
        ("gemini-3-pro-preview", "MEDIUM", false),
        ("gemini-3.1-pro-preview", "MEDIUM", true),
        ("gemini-3.8-flash", "MINIMAL", false),
        ("gemini-3-flash-preview", "MINIMAL", true),
        ("gemini-3-flash-preview", "XHIGH", false),
        ("gemini-4-argon", "XHIGH", true),
        ("gemini-4-argon", "HUGE", false),
    ] {
        let asked = changed(&legal(), place, Some(json!({"thinkingLevel": level})));
        assert_eq!(validate(model, &asked).is_ok(), is_legal, "{model} {level}");
    }
    let unsigned = changed(&legal(), "/contents/1/parts/1/thoughtSignature", None);
    let off = changed(&unsigned, place, Some(json!({"thinkingBudget": 0})));
    assert_eq!(validate("gemini-2.5-flash", &off), Ok(()));
    assert!(validate("gemini-2.5-pro", &off).unwrap_err().contains("only works in thinking mode"));
}

#[test]
fn older_models_have_other_rules() {
    let model = "gemini-2.5-flash";
    let unsigned = changed(&legal(), "/contents/1/parts/1/thoughtSignature", None);
    assert!(validate(model, &unsigned).unwrap_err().contains("Thinking level is not supported"));
    let budget = changed(&unsigned, "/generationConfig/thinkingConfig", Some(json!({"thinkingBudget": -1})));
    assert_eq!(validate(model, &budget), Ok(()));
    let as_json = changed(&budget, "/generationConfig/responseMimeType", Some(json!("application/json")));
    assert!(validate(model, &as_json).unwrap_err().contains("response mime type"));
}
