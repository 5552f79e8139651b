//! Replies of random models that are held to JSON, schemas and calls.
#![cfg(feature = "engine")]
#![allow(missing_docs, clippy::unwrap_used, reason = "tests")]

mod common;

use common::tiny::Tiny;
use common::{Asked, Pieces, model, model_with, run};
use polylogue_core::{
    Capability, Entry, FinishReason, ModelErrorKind, Part, ToolChoice, ToolResult, ToolSpec,
};
use polylogue_local::LocalOptions;
use serde_json::{Value, json};

fn schema() -> Value {
    json!({
        "type": "object",
        "properties": {
            "next_speaker": { "enum": ["coder", "tester", "é"] },
            "score": { "type": "integer", "minimum": 0, "maximum": 99 },
            "note": { "type": "string", "maxLength": 8 },
            "tags": { "type": "array", "items": { "type": "boolean" }, "maxItems": 3 },
        },
        "required": ["next_speaker", "score", "note", "tags"],
        "additionalProperties": false,
    })
}

#[test]
fn random_weights_always_satisfy_a_schema() {
    for byte_pairs in [false, true] {
        let (_folder, model) = model_with(&Tiny { byte_pairs, ..Tiny::default() }, LocalOptions::default());
        for seed in 0..25 {
            let asked = Asked::new("Who is next?").with(|params| {
                params.schema = Some(schema());
                params.max_tokens = Some(400);
                params.seed = Some(seed);
            });
            let pieces = Pieces::default();
            let reply = run(asked.stream(&model, &mut pieces.clone())).unwrap();
            assert_eq!(reply.finish, FinishReason::Stop, "seed {seed}: {}", reply.text());
            assert_eq!(pieces.text(), reply.text());
            let value: Value = serde_json::from_str(&reply.text()).unwrap();
            assert!(
                ["coder", "tester", "é"].contains(&value["next_speaker"].as_str().unwrap()),
                "seed {seed}"
            );
            assert!(value["score"].as_u64().unwrap() <= 99, "seed {seed}");
            assert!(value["note"].as_str().unwrap().chars().count() <= 8, "seed {seed}");
            assert!(value["tags"].as_array().unwrap().iter().all(Value::is_boolean), "seed {seed}");
            assert_eq!(value.as_object().unwrap().len(), 4);
        }
    }
}

#[test]
fn json_of_any_form_is_an_object() {
    let (_folder, model) = model();
    let mut whole = 0;
    for seed in 0..20 {
        let asked = Asked::new("Write JSON.").with(|params| {
            params.json = true;
            params.max_tokens = Some(300);
            params.seed = Some(seed);
        });
        let reply = run(asked.ask(&model)).unwrap();
        if reply.finish == FinishReason::Stop {
            match serde_json::from_str::<Value>(&reply.text()) {
                Ok(value) => assert!(value.is_object(), "seed {seed}"),
                // A number with a thousand digits is JSON.
                Err(error) => {
                    assert!(error.to_string().contains("number out of range"), "seed {seed}: {error}")
                }
            }
            whole += 1;
        }
    }
    assert!(whole > 3, "{whole} of 20 ended");
}

#[test]
fn a_schema_that_cannot_be_a_grammar_is_a_missing_capability() {
    let (_folder, model) = model();
    let schema =
        json!({ "type": "object", "properties": { "a": { "$ref": "#/no/such" } }, "required": ["a"] });
    let error = run(Asked::new("hi").with(|params| params.schema = Some(schema)).ask(&model)).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unsupported(Capability::Schema));
}

fn tools() -> Vec<ToolSpec> {
    let arguments = json!({
        "type": "object",
        "properties": { "city": { "enum": ["Rome", "Oslo"] } },
        "required": ["city"],
        "additionalProperties": false,
    });
    vec![
        ToolSpec::new("weather", "The weather of a city.", arguments),
        ToolSpec::new(
            "clock",
            "The time.",
            json!({ "type": "object", "properties": {}, "additionalProperties": false }),
        ),
    ]
}

#[test]
fn a_call_that_must_be_is_made_with_arguments_that_fit() {
    let (_folder, model) = model();
    let mut seen = std::collections::BTreeSet::new();
    for seed in 0..12 {
        let asked = Asked { tools: tools(), ..Asked::new("Call.") }.with(|params| {
            params.tool_choice = Some(ToolChoice::Any);
            // The weights are random, and some tokens much likelier.
            params.temperature = Some(20.0);
            params.parallel_tool_calls = Some(false);
            params.max_tokens = Some(300);
            params.seed = Some(seed);
        });
        let pieces = Pieces::default();
        let reply = run(asked.stream(&model, &mut pieces.clone())).unwrap();
        assert_eq!(reply.finish, FinishReason::Calls, "seed {seed}: {reply:?}");
        let [Part::ToolCall(call)] = reply.parts.as_slice() else { panic!("seed {seed}: {reply:?}") };
        assert_eq!(call.id, "call_3_0");
        match call.tool.as_str() {
            "weather" => assert!(["Rome", "Oslo"].contains(&call.args["city"].as_str().unwrap())),
            other => assert_eq!((other, &call.args), ("clock", &json!({}))),
        }
        assert!(pieces.text().starts_with("Call { index: 0"), "{}", pieces.text());
        seen.insert(call.tool.clone());
    }
    assert_eq!(seen.len(), 2);
}

#[test]
fn one_tool_can_be_demanded_and_none_can_be_called() {
    let (_folder, model) = model();
    let asked = Asked { tools: tools(), ..Asked::new("Call.") };
    let demanded = asked.clone().with(|params| {
        params.tool_choice = Some(ToolChoice::Tool("clock".into()));
        params.max_tokens = Some(100);
        params.parallel_tool_calls = Some(false);
    });
    let calls = run(demanded.ask(&model)).unwrap().calls();
    assert_eq!(calls.iter().map(|call| call.tool.as_str()).collect::<Vec<_>>(), ["clock"]);
    let none = asked.with(|params| params.tool_choice = Some(ToolChoice::None));
    assert!(run(none.ask(&model)).unwrap().calls().is_empty());
}

#[test]
fn a_model_that_may_call_writes_text_or_calls_that_are_whole() {
    let (_folder, model) = model();
    for seed in 0..10 {
        let asked = Asked { tools: tools(), ..Asked::new("Call.") }.with(|params| params.seed = Some(seed));
        let reply = run(asked.ask(&model)).unwrap();
        assert!(reply.calls().iter().all(|call| call.args.is_object()), "seed {seed}: {reply:?}");
    }
}

#[test]
fn calls_and_their_results_are_part_of_the_next_prompt() {
    let (_folder, model) = model();
    let call = polylogue_core::ToolCall {
        id: "call_0_0".into(),
        tool: "weather".into(),
        args: json!({ "city": "Rome" }),
    };
    let outcome = ToolResult::done("sunny, and <|im_end|> is only text");
    let entries = vec![
        Entry::user("What is the weather?"),
        Entry::own(vec![Part::ToolCall(call)]),
        Entry::Tool { id: "call_0_0".into(), tool: "weather".into(), result: outcome },
    ];
    let asked = Asked { entries, tools: tools(), ..Asked::new("") };
    let before = vec![Entry::user("What is the weather?")];
    let before = run(Asked { entries: before, tools: tools(), ..Asked::new("") }.ask(&model)).unwrap();
    let reply = run(asked.ask(&model)).unwrap();
    assert!(reply.usage.input.unwrap() > before.usage.input.unwrap() + 60);
    assert!(reply.usage.cached.unwrap() > 100, "{:?}", reply.usage);
}

#[test]
fn a_template_without_tools_refuses_them_so_that_they_are_taught_by_prompt() {
    let (_folder, model) = model_with(&Tiny { template: None, ..Tiny::default() }, LocalOptions::default());
    let error = run(Asked { tools: tools(), ..Asked::new("Call.") }.ask(&model)).unwrap_err();
    assert_eq!(error.kind, ModelErrorKind::Unsupported(Capability::Tools));
}
