//! Every way of calling tools, and how it is chosen.

use expect_test::expect;
use polylogue::agents::tooling::{PromptedTool, ToolCalling, ToolHistory};
use polylogue::layers::Executor;
use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, Tool, round_robin};
use polylogue_core::{Body, Capabilities, Capability, ConfigError, Error, ModelErrorKind, Params};
use polylogue_models::Script;
use serde_json::{Value, json};

use crate::stage::{Spy, closed, log, name, printed, run};
use crate::tool_calling::things::{alone, clock, entries, high_low, lines, prompts, turn};

const CALL: &str = r#"{"say": null, "call": {"tool": "high_low", "args": {"secret": 7, "guess": 3}}}"#;
const SAY: &str = r#"{"say": "Seven is more.", "call": null}"#;

fn by(tools_by: ToolCalling) -> impl Fn(AnyModel) -> Assistant {
    move |model| Assistant::new("M", model).unwrap().tool(high_low()).tool_calling(tools_by)
}

// The second rung: objects with a schema.
#[tokio::test]
async fn tools_are_called_by_objects_with_a_schema() {
    let done = turn(lines(&[CALL, SAY]), by(ToolCalling::Schema)).await;
    assert_eq!(done.said, "Seven is more.");
    assert!(done.asked.iter().all(|asked| asked.tools.is_empty() && asked.params.schema.is_some()));
    expect![[r#"
        0 opened [M] "Compare 7 and 3." | user: Compare 7 and 3.
        1 turn M
        2 M is prompted: You can use these tools:\n- `high_low`: Compares two numbers.\n  Arguments, as a JSON Schema: {"type":"object","properties":{"secret":{"type":"integer","format":"int64","description":"The number that is to be guessed"},"guess":{"type":"integer","format":"int64","description":"The player's guess"}},"required":["secret","guess"]}\n\nReply with one JSON object and nothing else. To use a tool:\n{"say": null, "call": {"tool": "its name", "args": {}}}\nYou are then told what it returned. To answer:\n{"say": "your answer", "call": null}
        3 script:test replies to M (stop): {"say": null, "call": {"tool": "high_low", "args": {"secret": 7, "guess": 3}}}
        4 M calls high_low {"secret":7,"guess":3} #text-1-1
        5 M gets #text-1-1: The secret number is higher. // (tool)
        6 M is prompted: The tool `high_low` returned:\nThe secret number is higher. // (tool)
        7 script:test replies to M (stop): {"say": "Seven is more.", "call": null}
        8 M replaces its history of the turn: sent Seven is more.
        9 M says: Seven is more.
        10 closed (M replied): Seven is more.
    "#]].assert_eq(&printed(&done.events));
    assert_eq!(done.remembers, ["user: Compare 7 and 3.", "assistant: Seven is more."]);
    let five =
        turn(lines(&[CALL]), |model| by(ToolCalling::Schema)(model).tool_history(ToolHistory::Full)).await;
    assert_eq!(five.remembers.len(), 5);
    assert_eq!(five.said, "The secret number is higher. // (tool)");
}

// A schema is closed and requires all, as strict providers want it; a tool that must be used leaves nothing to say
// before.
#[tokio::test]
async fn the_schema_says_what_may_be_replied() {
    let taught =
        |model| Assistant::new("M", model).unwrap().prompted_tool(PromptedTool::new(high_low()).mandatory());
    let done = turn(lines(&[SAY, CALL, SAY]), |model| taught(model).tool_calling(ToolCalling::Schema)).await;
    let schema = |nth: usize| done.asked[nth].params.schema.clone().unwrap();
    assert_eq!(schema(0)["properties"]["say"], json!({"type": "null"}));
    let calls = schema(0)["properties"]["call"]["anyOf"].as_array().unwrap().clone();
    assert_eq!(calls.len(), 1, "a call and nothing else");
    assert_eq!(calls[0]["properties"]["tool"], json!({"const": "high_low", "type": "string"}));
    assert!(prompts(&done.asked)[1].contains("Call the tool `high_low` before you answer"));
    assert_eq!(schema(2)["properties"]["say"], json!({"type": ["string", "null"]}));
    assert_eq!(schema(2)["required"], json!(["say", "call"]));
    assert_eq!(schema(2)["additionalProperties"], Value::Bool(false));
}

// Errors of an object are reported, up to a limit.
#[tokio::test]
async fn objects_that_cannot_be_used_are_asked_for_again() {
    let other = r#"{"call": {"tool": "high", "args": {}}}"#;
    let misfit = r#"{"call": {"tool": "high_low", "args": {"secret": 7}}}"#;
    let refused = r#"{"call": {"tool": "high_low", "args": {"secret": 7, "guess": 30}}}"#;
    let replies = ["Hello!", "{}", other, misfit, refused, CALL, SAY];
    let done = turn(lines(&replies), by(ToolCalling::Schema)).await;
    let shown = prompts(&done.asked);
    for (nth, flaw) in [
        (1, "there is no JSON in it"),
        (2, "it neither says anything nor calls a tool"),
        (3, "there is no tool `high`, only `high_low`"),
        (4, "`guess` is missing"),
        (5, "the guess must be at most 20"),
    ] {
        assert!(shown[nth].contains(flaw), "{}", shown[nth]);
    }
    assert_eq!(done.said, "Seven is more.");
    let done = turn(lines(&["?"; 5]), by(ToolCalling::Schema)).await;
    assert_eq!(done.reason, "M's limit of 4 errors in choosing a tool");
}

// The limit on calls is announced, and then there is nothing to call.
#[tokio::test]
async fn objects_have_a_limit_on_calls() {
    let done = turn(lines(&[CALL, SAY]), |model| by(ToolCalling::Schema)(model).max_tool_rounds(1)).await;
    let last = &done.asked[1];
    assert_eq!(last.params.schema.as_ref().unwrap()["properties"]["call"], json!({"type": "null"}));
    assert!(prompts(&done.asked)[1].ends_with("Answer now with what you know, without calling a tool."));
}

// What a model says of itself is believed, and nothing is tried.
#[tokio::test]
async fn tool_calling_is_chosen_by_the_capabilities_of_the_model() {
    let auto = by(ToolCalling::Auto);
    let text = ["ack", "It helps.", "yes", r#"{"secret": 7, "guess": 3}"#, "Seven is more."];
    for (capabilities, replies) in [
        (Capabilities::TEXT, &text[..]),
        (Capabilities::TEXT.with(Capability::Json), &text[..]),
        (Capabilities::TEXT.with(Capability::Schema), &[CALL, SAY][..]),
    ] {
        let done = turn(lines(replies).with_capabilities(capabilities), &auto).await;
        assert_eq!(done.said, "Seven is more.", "{capabilities:?}");
        assert!(done.asked.iter().all(|asked| asked.tools.is_empty()), "{capabilities:?}");
        let json = done.asked.iter().any(|asked| asked.params.json);
        assert_eq!(json, capabilities.json == Some(true), "{capabilities:?}");
    }
    let done = turn(lines(&["Seven."]).with_capabilities(Capabilities::ALL), &auto).await;
    assert_eq!(done.asked[0].tools.len(), 1);
}

/// A model of M that refuses tools, schemas and JSON mode, each once, before it talks.
fn refusing(lines: &[&str]) -> polylogue_models::Scripted {
    let mut steps: Vec<Value> = ["tools are not supported", "json_schema is not supported"]
        .into_iter()
        .map(|message| json!({"M": {"error": {"status": 400, "message": message}}}))
        .collect();
    steps.extend(lines.iter().map(|line| match line.strip_prefix('!') {
        Some(message) => json!({"M": {"error": {"status": 422, "message": message}}}),
        None => json!({"M": line}),
    }));
    let script: Script = serde_json::from_value(Value::from(steps)).unwrap();
    script.model("test")
}

// Unknown capabilities are tried: the refusals are in the log, and the turn continues.
#[tokio::test]
async fn a_model_that_refuses_is_asked_in_the_next_way_in_the_same_turn() {
    let replies = ["ack", "It helps.", "yes", "!response_format: extra inputs are not permitted"];
    let replies = [&replies[..], &[r#"{"secret": 7, "guess": 3}"#, "Seven is more."]].concat();
    let done = turn(refusing(&replies), by(ToolCalling::Auto)).await;
    assert_eq!(done.said, "Seven is more.");
    expect![[r#"
        0 opened [M] "Compare 7 and 3." | user: Compare 7 and 3.
        1 turn M
        2 M finds that script:test does not support calling tools: tools are not supported
        3 M is prompted: You can use these tools:\n- `high_low`: Compares two numbers.\n  Arguments, as a JSON Schema: {"type":"object","properties":{"secret":{"type":"integer","format":"int64","description":"The number that is to be guessed"},"guess":{"type":"integer","format":"int64","description":"The player's guess"}},"required":["secret","guess"]}\n\nReply with one JSON object and nothing else. To use a tool:\n{"say": null, "call": {"tool": "its name", "args": {}}}\nYou are then told what it returned. To answer:\n{"say": "your answer", "call": null}
        4 M finds that script:test does not support output by a JSON Schema: json_schema is not supported
        5 M is prompted: Never mind the form of replies that you were told above: just write text.\n\nThere is a tool named `high_low` that you may use to solve the task. What it does: Compares two numbers.\n\nIf you understand, say so in one sentence. Do not solve the task yet.
        6 script:test replies to M (stop): ack
        7 M is prompted: Would the tool `high_low` help you to solve this task, and why?\n<task>\nCompare 7 and 3.\n</task>
        8 script:test replies to M (stop): It helps.
        9 M is prompted: To summarize in one word: will you use it? Answer only `yes` or `no`.
        10 script:test replies to M (stop): yes
        11 M is prompted: To use the tool `high_low`, write its arguments as one JSON object, like this:\n{"secret":"<integer>","guess":"<integer>"}\n- `secret` (integer): The number that is to be guessed\n- `guess` (integer): The player's guess\n\nThe task is:\n<task>\nCompare 7 and 3.\n</task>\n\nOutput the arguments with which the tool `high_low` is to be called for it, as one JSON object and nothing else.
        12 M finds that script:test does not support writing nothing but JSON: response_format: extra inputs are not permitted
        13 script:test replies to M (stop): {"secret": 7, "guess": 3}
        14 M calls high_low {"secret":7,"guess":3} #text-1-1
        15 M gets #text-1-1: The secret number is higher. // (tool)
        16 M is prompted: The tool `high_low` returned:\nThe secret number is higher. // (tool)\n\nNow solve the task with what you know, without any further tool. The task is:\n<task>\nCompare 7 and 3.\n</task>
        17 script:test replies to M (stop): Seven is more.
        18 M replaces its history of the turn: sent Seven is more.
        19 M says: Seven is more.
        20 closed (M replied): Seven is more.
    "#]].assert_eq(&printed(&done.events));
    assert_eq!(done.remembers, ["user: Compare 7 and 3.", "assistant: Seven is more."]);
}

// What was refused once is not tried again: of the log, not of the process.
#[tokio::test]
async fn refused_capabilities_are_known_in_later_turns() {
    let talk = ["ack", "No.", "no", "One."];
    let model = refusing(&[talk, talk].concat());
    let spy = Spy::on(AnyModel::new(model.clone()));
    let chat = Chat::builder("alone").participant(by(ToolCalling::Auto)(spy.model()));
    let chat = chat.policy(with_termination(round_robin(), max_turns(2))).build().unwrap();
    let (_, events) = run(&chat, "Compare 7 and 3.").await;
    model.finish().unwrap();
    let unable = |body: &Body| matches!(body, Body::CapabilityMissing { .. });
    assert_eq!(events.iter().filter(|event| unable(&event.body)).count(), 2);
}

// A way that was set is used: a missing capability is then an error, with its cause.
#[tokio::test]
async fn a_configured_tool_calling_has_no_fallback() {
    let mut log = log().await;
    let error = alone(by(ToolCalling::Native)(AnyModel::new(refusing(&[]))))
        .run_in(&mut log, "go")
        .await
        .unwrap_err();
    let polylogue::Error::Model(error) = error else { panic!("{error}") };
    assert_eq!(error.kind, ModelErrorKind::Unsupported(Capability::Tools));
    assert_eq!(error.fault(), polylogue_core::Fault::Config);
}

// The parameters of an agent are given as they are: a schema in them that the model refuses cannot be got round.
#[tokio::test]
async fn a_schema_among_the_parameters_is_not_got_round() {
    let script: Script = serde_json::from_str(
        r#"[{"M": {"error": {"status": 400, "message": "json_schema is not supported"}}}]"#,
    )
    .unwrap();
    let agent = by(ToolCalling::Auto)(AnyModel::new(script.model("test")));
    let agent = agent.params(Params { schema: Some(json!({"type": "object"})), ..Params::default() });
    let error = alone(agent).run_in(&mut log().await, "go").await.unwrap_err();
    assert!(matches!(&error, Error::Config(ConfigError::UnsupportedParameters { who, .. }) if who == "M"));
    assert_eq!(error.hint().unwrap(), "for structured output, use `Assistant::output_schema`");
}

// With native calls, the model is reminded of a mandatory tool, up to a limit.
#[tokio::test]
async fn a_mandatory_tool_is_reminded_of_natively() {
    let agent = |model| {
        Assistant::new("M", model)
            .unwrap()
            .prompted_tool(PromptedTool::new(clock()).mandatory().max_call_errors(1))
    };
    let script: Script =
        serde_json::from_str(r#"[{"M": "Noon?"}, {"M": {"calls": [{"tool": "clock"}]}}, {"M": "Noon."}]"#)
            .unwrap();
    let done = turn(script.model("test"), agent).await;
    assert_eq!(done.said, "Noon.");
    assert!(prompts(&done.asked)[1].starts_with("Call the tool `clock` before you answer"));
    let done = turn(lines(&["Noon?", "Noon!"]), agent).await;
    assert_eq!(done.reason, "M's limit of 1 error in choosing a tool");
}

// A suggested tool: the call is in the message, its outcome arrives later, and the model sees both as text.
#[tokio::test]
async fn tools_of_others_are_called_by_text_too() {
    for (tools_by, replies) in [
        (
            ToolCalling::Text,
            &["ack", "It helps.", "yes", r#"{"secret": 7, "guess": 3}"#, "ack", "No.", "no", "More."][..],
        ),
        (ToolCalling::Schema, &[CALL, r#"{"say": "More.", "call": null}"#][..]),
    ] {
        let model = lines(replies);
        let spy = Spy::on(AnyModel::new(model.clone()));
        let agent = Assistant::new("M", spy.model()).unwrap().suggest_tool(high_low().spec().clone());
        let bob = polylogue::layers::Stack::new("Bob")
            .unwrap()
            .then(Executor::new().tool(high_low()))
            .otherwise("?");
        let chat = Chat::builder("pair").participant(agent.tool_calling(tools_by)).participant(bob);
        let chat = chat.policy(with_termination(round_robin(), max_turns(3))).build().unwrap();
        let (status, events) = run(&chat, "Compare 7 and 3.").await;
        assert_eq!(closed(&status).1, "More.", "{}", printed(&events));
        model.finish().unwrap();
        let last = spy.asked().pop().unwrap();
        let read = entries(&last.entries);
        assert!(read.iter().all(|entry| !entry.starts_with("tool:")), "{read:#?}");
        let called = r#"assistant: (calls `high_low` with {"secret":7,"guess":3})"#;
        let at = read.iter().position(|entry| entry == called).unwrap_or_else(|| panic!("{read:#?}"));
        assert_eq!(read[at + 1], "user: (`high_low` returned: The secret number is higher. // (tool))");
        let parts = last.entries.iter().flat_map(polylogue_core::Entry::parts);
        assert!(parts.into_iter().all(|part| !matches!(part, polylogue_core::Part::ToolCall(_))));
    }
}

// A conversation started by a model with function calls continues with one without.
#[tokio::test]
async fn earlier_native_calls_are_shown_as_text() {
    let script: Script = serde_json::from_str(
        r#"[{"M": {"calls": [{"tool": "clock"}]}}, {"M": "Noon."}, {"M": "ack"}, {"M": "No."}, {"M": "no"}, {"M": "Still."}]"#,
    )
    .unwrap();
    let spy = Spy::on(AnyModel::new(script.model("test")));
    let chat =
        |tools_by| alone(Assistant::new("M", spy.model()).unwrap().tool(clock()).tool_calling(tools_by));
    let mut log = log().await;
    chat(ToolCalling::Native).run_in(&mut log, "What time is it?").await.unwrap();
    let more = polylogue::Message::new(name("user"), "And now?");
    chat(ToolCalling::Text).continue_with(&mut log, more).await.unwrap();
    let read = entries(&spy.asked()[2].entries);
    assert_eq!(
        read[..5],
        [
            "user: What time is it?",
            "assistant: (calls `clock` with {})",
            "user: (`clock` returned: noon)",
            "assistant: Noon.",
            "user: And now?",
        ]
    );
}
