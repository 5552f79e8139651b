//! Invariant 6 in every way of calling tools: a log that is cut anywhere becomes the same log again, and no finished call is
//! made twice, in a process that has learned nothing of the model yet.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};

use polylogue::agents::tooling::{PromptedTool, ToolCalling, ToolHistory};
use polylogue::{AnyModel, Assistant, Chat, parallel};
use polylogue_core::{Body, Capabilities, Event, ToolResult, ToolSpec};
use polylogue_models::Script;
use polylogue_test::cut::{Calls, uncharged};
use polylogue_test::tool::tool_of;
use serde_json::{Value, json};

use crate::common::{cut_everywhere, solo_chat};
use crate::stage::{log, log_of, printed};
use crate::tool_calling::things::{clock, high_low, note};

async fn check(chat: impl Fn(&Calls) -> Chat) -> Vec<Arc<Event>> {
    cut_everywhere("Compare 7 and 3.", chat).await
}

fn script(replies: &[&str]) -> Script {
    let step = |reply: &&str| match (reply.strip_prefix('!'), reply.strip_prefix('#')) {
        (Some(refusal), _) => json!({"M": {"error": {"status": 400, "message": refusal}}}),
        (_, Some(tool)) => json!({"M": {"calls": [{"tool": tool}]}}),
        _ => json!({"M": reply}),
    };
    serde_json::from_value(replies.iter().map(step).collect::<Value>()).unwrap()
}

/// M alone, as `made`, for `turns`.
fn chat(
    calls: &Calls,
    script: &Script,
    capabilities: Capabilities,
    turns: u64,
    made: impl Fn(Assistant) -> Assistant,
) -> Chat {
    let model = calls.through(script.model("test").with_capabilities(capabilities));
    let agent = made(Assistant::new("M", model).unwrap());
    solo_chat("alone", agent, turns)
}

const JSON: &str = r#"{"secret": 7, "guess": 3}"#;
const MISFIT: &str = r#"{"secret": 7}"#;
const REFUSED: &str = r#"{"secret": 7, "guess": 30}"#;

#[tokio::test]
async fn one_tool_by_text_with_errors_on_the_way() {
    for trace in [ToolHistory::Answer, ToolHistory::Full] {
        let more = if trace == ToolHistory::Answer { &["end"][..] } else { &[] };
        let how = if trace == ToolHistory::Answer { &[][..] } else { &["ack"] };
        let turn = [&["ack"][..], how, &["helps", "hm", "yes", "none", MISFIT, REFUSED, JSON], more].concat();
        let script = script(&[&turn[..], &turn].concat());
        let made =
            |agent: Assistant| agent.tool(high_low()).tool_calling(ToolCalling::Text).tool_history(trace);
        check(|calls| chat(calls, &script, Capabilities::default(), 2, made)).await;
    }
}

#[tokio::test]
async fn several_tools_by_text() {
    let turn = ["ack", "ok", "yes", "high_low", JSON, "more", "yes", "?", "clock", "enough", "no", "end"];
    let script = script(&[turn, turn].concat());
    let made = |agent: Assistant| agent.tool(high_low()).tool(clock()).tool_calling(ToolCalling::Text);
    check(|calls| chat(calls, &script, Capabilities::default(), 2, made)).await;
}

#[tokio::test]
async fn objects_with_a_schema() {
    let call = format!(r#"{{"say": null, "call": {{"tool": "high_low", "args": {JSON}}}}}"#);
    let misfit = format!(r#"{{"call": {{"tool": "high_low", "args": {MISFIT}}}}}"#);
    let turn = ["what?", &misfit, &call, &call, r#"{"say": "end"}"#];
    let script = script(&[turn, turn].concat());
    let made = |agent: Assistant| agent.tool(high_low()).tool_calling(ToolCalling::Schema);
    check(|calls| chat(calls, &script, Capabilities::default(), 2, made)).await;
}

#[tokio::test]
async fn a_model_that_refuses_tools() {
    let refusals = ["!tools are not supported", "!json_schema is not supported"];
    let first = ["ack", "helps", "yes", "!response_format is not supported", JSON, "end"];
    let second = ["ack", "helps", "yes", JSON, "end"];
    let script = script(&[&refusals[..], &first, &second].concat());
    let made = |agent: Assistant| agent.tool(high_low());
    let events = check(|calls| chat(calls, &script, Capabilities::default(), 2, made)).await;
    assert_eq!(printed(&events).matches("does not support").count(), 3);
}

// Two that find out at the same time: what one finds out must not change how the turn of the other began.
#[tokio::test]
async fn two_at_the_same_time_that_turn_out_to_be_unable() {
    let steps = |who: &str| {
        let refusals = ["tools are not supported", "json_schema is not supported"];
        let refusals = refusals.map(|message| json!({who: {"error": {"status": 400, "message": message}}}));
        let talk = ["ack", "no", "no", "end"].map(|reply| json!({who: reply}));
        refusals.into_iter().chain(talk)
    };
    let script: Script = serde_json::from_value(steps("A").chain(steps("B")).collect::<Value>()).unwrap();
    let chat = |calls: &Calls| {
        let agent = |who| Assistant::new(who, calls.through(script.model("test"))).unwrap().tool(clock());
        Chat::builder("both")
            .participant(agent("A"))
            .participant(agent("B"))
            .policy(parallel())
            .build()
            .unwrap()
    };
    let mut log = log().await;
    chat(&Calls::default()).run_in(&mut log, "What time is it?").await.unwrap();
    let whole = log.events().await;
    assert_eq!(printed(&whole).matches("does not support").count(), 4, "{}", printed(&whole));
    for cut in 1..whole.len() {
        let calls = Calls::default();
        let mut log = log_of(&whole[..cut]).await;
        chat(&calls).resume(&mut log).await.unwrap();
        let again = log.events().await;
        assert_eq!(turns(&whole), turns(&again), "cut before event {cut}");
        let left = whole[cut..].iter().filter(|event| matches!(event.body, Body::ModelReplied(_))).count();
        assert_eq!(calls.made(), left as u64, "cut before event {cut}: no call is made twice");
    }
}

/// What happened in the turn of each agent, apart from the others: how the events of turns at the same time stand between each
/// other depends on who was faster. What was said, and all that belongs to no turn, is in one order.
fn turns(events: &[Arc<Event>]) -> BTreeMap<String, Vec<Body>> {
    let mut turns: BTreeMap<String, Vec<Body>> = BTreeMap::new();
    for Event { body, .. } in uncharged(events).iter().map(Arc::as_ref) {
        let who = serde_json::to_value(body).unwrap()["who"].as_str().unwrap_or_default().to_owned();
        turns.entry(who).or_default().push(body.clone());
    }
    turns
}

#[tokio::test]
async fn an_answer_of_a_form_that_is_repaired() {
    let form = json!({"type": "object", "properties": {"more": {"type": "integer"}}, "required": ["more"]});
    let replies = ["!json_schema is not supported", "?", "{}", r#"{"more": 7}"#, "?", r#"{"more": 8}"#];
    let script = script(&replies);
    let made = |agent: Assistant| agent.output_schema(form.clone());
    let events = check(|calls| chat(calls, &script, Capabilities::default(), 2, made)).await;
    assert!(printed(&events).contains(r#"M says: {"more":8} | {"more":8}"#), "{}", printed(&events));
}

#[tokio::test]
async fn a_turn_that_is_given_up_and_a_tool_that_is_reminded_of() {
    let script = script(&["later", "#note", "?", "later", "later"]);
    let made =
        |agent: Assistant| agent.prompted_tool(PromptedTool::new(note()).mandatory().max_call_errors(1));
    let events = check(|calls| chat(calls, &script, Capabilities::ALL, 2, made)).await;
    assert!(printed(&events).contains("closed (M's limit of 1 error in choosing a tool)"));
}

// Invariant 7: a call that was in flight when the process died is not made again, and the model receives an outcome of unknown status.
#[tokio::test]
async fn a_call_in_flight_is_not_made_again() {
    let spec = ToolSpec::new("pay", "Pays.", json!({"type": "object", "properties": {}}));
    let calls = Arc::new(AtomicU32::new(0));
    let agent = |script: &Script| {
        let counted = Arc::clone(&calls);
        // It must not be called twice.
        let pay = tool_of(spec.clone(), move |_| {
            counted.fetch_add(1, Ordering::Relaxed);
            Ok(ToolResult::done("done"))
        });
        let model = AnyModel::new(script.model("test"));
        Assistant::new("M", model)
            .unwrap()
            .prompted_tool(PromptedTool::new(pay).mandatory())
            .tool_calling(ToolCalling::Text)
    };
    let whole = script(&["ack", "It is paid."]);
    let mut log = log().await;
    crate::tool_calling::things::alone(agent(&whole)).run_in(&mut log, "Pay.").await.unwrap();
    let events = log.events().await;
    let called = events.iter().position(|event| matches!(event.body, Body::ToolCalled { .. })).unwrap();
    let mut cut = log_of(&events[..=called]).await;
    crate::tool_calling::things::alone(agent(&whole)).resume(&mut cut).await.unwrap();
    assert_eq!(calls.load(Ordering::Relaxed), 1);
    assert!(printed(&cut.events().await).contains("gets #text-1-1 unknown"));
}

/// Runs M whole as `capabilities` say, and then on from every cut as `others` say; every run has to end.
async fn continues_otherwise(
    capabilities: Capabilities,
    replies: &[&str],
    made: impl Fn(Assistant) -> Assistant + Copy,
) {
    let play = script(replies);
    let whole_chat = chat(&Calls::default(), &play, capabilities, 2, made);
    let mut whole = log().await;
    whole_chat.run_in(&mut whole, "Compare 7 and 3.").await.unwrap();
    let events = whole.events().await;
    for others in [
        Capabilities::default(),
        Capabilities::TEXT,
        Capabilities::TEXT.with(polylogue_core::Capability::Schema),
        Capabilities::ALL,
    ] {
        for cut in 1..events.len() {
            let mut log = log_of(&events[..cut]).await;
            let model = Anything(others);
            let agent = made(Assistant::new("M", AnyModel::new(model)).unwrap());
            let chat = solo_chat("alone", agent, 2);
            let status = chat.resume(&mut log).await.map(|run| run.status);
            let again = log.events().await;
            assert!(
                matches!(status, Ok(polylogue::Status::Closed { .. })),
                "{others:?}, cut before event {cut}: {status:?}\n{}",
                printed(&again)
            );
            assert_eq!(printed(&again[..cut]), printed(&events[..cut]));
        }
    }
}

/// A model that says whatever is wanted, in whatever way, and calls no tool by itself.
struct Anything(Capabilities);

impl polylogue_core::Model for Anything {
    fn name(&self) -> &'static str {
        "other:model"
    }
    async fn complete(
        &self,
        request: &polylogue_core::Request<'_>,
        _: &mut dyn polylogue_core::DeltaSink,
    ) -> Result<polylogue_core::Reply, polylogue_core::ModelError> {
        let last = polylogue_core::text_of(request.entries.last().unwrap().parts());
        let reply = |text: &str| Ok(polylogue_core::Reply::new(text));
        match &request.params.schema {
            Some(schema) if schema["properties"].get("say").is_some() => {
                reply(r#"{"say": "end", "call": null}"#)
            }
            Some(_) => reply(r#"{"more": 7}"#),
            None if last.contains("satisfies this JSON Schema") => reply(r#"{"more": 7}"#),
            None if last.contains("the whole JSON object") || last.contains("as one JSON object") => {
                reply(JSON)
            }
            None if last.contains("`yes` or `no`") => reply("no"),
            None => reply("end"),
        }
    }
    fn capabilities(&self) -> Capabilities {
        self.0
    }
}

// More may be known of a model after a break, and another model may speak: the turn continues as it was begun, and the next one in
// the best way there is now.
#[tokio::test]
async fn a_turn_continues_in_its_way_whatever_capabilities_are_known_by_then() {
    let with_tool = |agent: Assistant| agent.tool(high_low());
    let talk = ["ack", "It helps.", "yes", MISFIT, JSON, "end"];
    continues_otherwise(Capabilities::TEXT, &[talk, talk].concat(), with_tool).await;
    let refusals = ["!tools are not supported", "!json_schema is not supported"];
    let json = ["ack", "It helps.", "yes", "!response_format is not supported", JSON, "end"];
    continues_otherwise(Capabilities::default(), &[&refusals[..], &json, &talk].concat(), with_tool).await;
    let call = format!(r#"{{"say": null, "call": {{"tool": "high_low", "args": {JSON}}}}}"#);
    let object = ["what?", &call, r#"{"say": "end", "call": null}"#];
    continues_otherwise(
        Capabilities::TEXT.with(polylogue_core::Capability::Schema),
        &[object, object].concat(),
        with_tool,
    )
    .await;
    continues_otherwise(Capabilities::ALL, &["#high_low", "end", "end"], with_tool).await;
    let form = json!({"type": "object", "properties": {"more": {"type": "integer"}}, "required": ["more"]});
    let form = &form;
    let shaped = |agent: Assistant| agent.output_schema(form.clone());
    continues_otherwise(Capabilities::TEXT, &["?", r#"{"more": 7}"#, r#"{"more": 7}"#], shaped).await;
    let refused = ["!json_schema is not supported", "?", r#"{"more": 7}"#, r#"{"more": 7}"#];
    continues_otherwise(Capabilities::default(), &refused, shaped).await;
    continues_otherwise(Capabilities::ALL, &["?", r#"{"more": 7}"#, r#"{"more": 7}"#], shaped).await;
}
