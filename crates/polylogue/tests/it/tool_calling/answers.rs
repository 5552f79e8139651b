//! Answers of a form, whatever the model can do.

use polylogue::agents::tooling::ToolCalling;
use polylogue::{AnyModel, Assistant};
use polylogue_core::{Body, Capabilities, Capability, Entry, Part, text_of};
use polylogue_models::{Script, Scripted};
use serde_json::{Value, json};

use crate::stage::{name, printed};
use crate::tool_calling::things::{Turned, clock, lines, prompts, turn};

fn schema() -> Value {
    json!({
        "type": "object", "properties": {"more": {"type": "integer"}}, "required": ["more"],
        "additionalProperties": false,
    })
}

fn shaped(model: AnyModel) -> Assistant {
    Assistant::new("M", model).unwrap().output_schema(schema())
}

fn said(done: &Turned) -> Vec<Part> {
    let said = done.events.iter().rev().find_map(|event| match &event.body {
        Body::Message(message) if event.chat.is_root() => Some(message.parts.clone()),
        _ => None,
    });
    said.unwrap_or_default()
}

fn seven() -> Vec<Part> {
    vec![Part::text(r#"{"more":7}"#), Part::Data(json!({"more": 7}))]
}

// The text is for all, the value for programs; each reader gets it once.
#[tokio::test]
async fn the_value_rides_on_the_message() {
    let done = turn(lines(&["{\"more\": 7}"]), shaped).await;
    assert_eq!(said(&done), seven());
    assert_eq!(done.asked[0].params.schema, Some(schema()));
    assert_eq!(done.remembers, ["user: Compare 7 and 3.", "assistant: {\"more\":7}"]);
    let transcript = polylogue::Transcript::from_events(&polylogue_core::Path::root(), &done.events).unwrap();
    let reader =
        polylogue_core::View::of(&transcript, &name("Reader"), polylogue_core::ViewOptions::default());
    let read: Vec<_> = reader.entries().iter().flat_map(Entry::parts).collect();
    assert_eq!(read.len(), 2, "{read:?}");
}

// Schema, JSON mode, plain text: by what the model can do.
#[tokio::test]
async fn the_form_is_asked_for_in_the_best_way_the_model_knows() {
    for (capabilities, has_schema, json) in [
        (Capabilities::ALL, true, false),
        (Capabilities::default(), true, false),
        (Capabilities::TEXT.with(Capability::Json), false, true),
        (Capabilities::TEXT, false, false),
    ] {
        let done = turn(lines(&["Here: ```{'more': 7}```"]).with_capabilities(capabilities), shaped).await;
        let params = &done.asked[0].params;
        assert_eq!((params.schema.is_some(), params.json), (has_schema, json), "{capabilities:?}");
        assert_eq!(prompts(&done.asked)[0].contains("JSON Schema"), !has_schema, "{capabilities:?}");
        assert_eq!(said(&done), seven());
        assert_eq!(done.remembers, ["user: Compare 7 and 3.", "assistant: {\"more\":7}"]);
    }
    for (tools_by, has_schema, json) in [
        (ToolCalling::Native, true, false),
        (ToolCalling::Schema, true, false),
        (ToolCalling::Json, false, true),
        (ToolCalling::Text, false, false),
    ] {
        let done = turn(lines(&["{\"more\": 7}"]), |model| shaped(model).tool_calling(tools_by)).await;
        let params = &done.asked[0].params;
        assert_eq!((params.schema.is_some(), params.json), (has_schema, json), "{tools_by:?}");
    }
}

fn refusing(messages: &[&str], reply: &str) -> Scripted {
    let error = |message: &&str| json!({"M": {"error": {"status": 400, "message": message}}});
    let steps: Vec<Value> = messages.iter().map(error).chain([json!({"M": reply})]).collect();
    let script: Script = serde_json::from_value(Value::from(steps)).unwrap();
    script.model("test")
}

// A refusal takes the answer one rung down, and down again.
#[tokio::test]
async fn a_refused_schema_falls_back_to_json_and_then_to_text() {
    let refusals = ["json_schema is not supported", "response_format is not supported"];
    let done = turn(refusing(&refusals, "{\"more\": 7}"), shaped).await;
    assert_eq!(said(&done), seven());
    let how: Vec<_> = done.asked.iter().map(|a| (a.params.schema.is_some(), a.params.json)).collect();
    assert_eq!(how, [(true, false), (false, true), (false, false)]);
    assert!(
        printed(&done.events)
            .contains("does not support output by a JSON Schema: json_schema is not supported")
    );
}

// JSON mode writes objects: a list is asked for in text where its schema is refused.
#[tokio::test]
async fn a_form_that_is_no_object_is_not_asked_for_in_json_mode() {
    let list = json!({"type": "array", "items": {"type": "integer"}});
    let listed = |model: AnyModel| Assistant::new("M", model).unwrap().output_schema(list.clone());
    let expected = vec![Part::text("[7]"), Part::Data(json!([7]))];
    let how = |done: &Turned| -> Vec<_> {
        done.asked.iter().map(|asked| (asked.params.schema.is_some(), asked.params.json)).collect()
    };
    let done = turn(refusing(&["json_schema is not supported"], "It is [7]."), listed).await;
    assert_eq!((said(&done), how(&done)), (expected.clone(), vec![(true, false), (false, false)]));
    let knows_json = Capabilities::TEXT.with(Capability::Json);
    let done = turn(lines(&["seven", "[7]"]).with_capabilities(knows_json), listed).await;
    assert_eq!((said(&done), how(&done)), (expected, vec![(false, false), (false, false)]));
}

// The repair sees the schema, the last output and the error, and nothing of the conversation.
#[tokio::test]
async fn a_repair_receives_only_schema_output_and_error() {
    let done = turn(lines(&["{\"more\": \"7\"}", "seven", "{\"more\": 7}"]), shaped).await;
    assert_eq!(said(&done), seven());
    for (nth, last, error) in [
        (1, "{\"more\": \"7\"}", "`more` must be of type integer; got \"7\""),
        (2, "seven", "there is no JSON in it that can be read"),
    ] {
        let [only] = &done.asked[nth].entries[..] else { panic!("one entry") };
        assert_eq!(
            text_of(only.parts()),
            format!(
                "This was to be JSON that satisfies this JSON Schema:\n{}\n\nIt is:\n{last}\n\nWhat is wrong with it: \
                 {error}\n\nWrite the corrected JSON and nothing else.",
                schema()
            )
        );
        assert_eq!(done.asked[nth].params.schema, Some(schema()));
    }
    assert_eq!(done.remembers, ["user: Compare 7 and 3.", "assistant: {\"more\":7}"]);
}

// The limit on repairs ends the chat with its own reason.
#[tokio::test]
async fn repairs_have_a_limit() {
    let done = turn(lines(&["a", "b", "c", "d"]), shaped).await;
    assert_eq!(done.reason, "M's limit of 3 errors in the form of its answer");
    let done = turn(lines(&["a"]), |model| shaped(model).output_retries(0)).await;
    assert_eq!(done.reason, "M's limit of 0 errors in the form of its answer");
    assert_eq!(said(&done), []);
}

// With tools: in every way of calling them the answer has its form.
#[tokio::test]
async fn tools_and_a_form_go_together() {
    let with_clock = |tools_by| move |model| shaped(model).tool(clock()).tool_calling(tools_by);
    let native = r#"[{"M": {"calls": [{"tool": "clock"}]}}, {"M": "It is noon: seven more."}, {"M": "{\"more\": 7}"}]"#;
    let script: Script = serde_json::from_str(native).unwrap();
    let done = turn(script.model("test"), with_clock(ToolCalling::Auto)).await;
    assert_eq!(said(&done), seven());
    assert!(done.asked[0].params.schema.is_none() && done.asked[2].tools.is_empty());
    let at_once = r#"[{"M": {"calls": [{"tool": "clock"}]}}, {"M": "{\"more\": 7}"}]"#;
    let script: Script = serde_json::from_str(at_once).unwrap();
    assert_eq!(said(&turn(script.model("test"), with_clock(ToolCalling::Auto)).await), seven());

    let call = r#"{"say": null, "call": {"tool": "clock", "args": {}}}"#;
    let objects = [call, r#"{"say": {"more": "7"}, "call": null}"#, r#"{"more": 7}"#];
    let done = turn(lines(&objects), with_clock(ToolCalling::Schema)).await;
    assert_eq!(said(&done), seven(), "repaired");
    assert_eq!(done.asked[0].params.schema.as_ref().unwrap()["properties"]["say"]["anyOf"][1], schema());

    let talk = ["ack", "It helps.", "yes", "{\"more\": 7}"];
    let done = turn(lines(&talk), with_clock(ToolCalling::Text)).await;
    assert_eq!(said(&done), seven());
    assert!(printed(&done.events).contains("gets #text-1-1: noon"));
}
