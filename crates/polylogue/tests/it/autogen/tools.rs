//! Tools: items 58 to 65.

use std::sync::Arc;

use polylogue::layers::Executor;
use polylogue::layers::human_input::HumanInput;
use polylogue::layers::reply::Stack;
use polylogue::policies::{with_summary_by, with_termination};
use polylogue::stop::LoopDetector;
use polylogue::stop::{Stop, max_turns};
use polylogue::tools::FunctionTool;
use polylogue::tools::GetHistory;
use polylogue::{Act, AnyModel, Assistant, Chat, Function, Message, Tool, round_robin, sequential};
use polylogue_core::{Body, Entry, Event, Part, ToolCall, ToolError, ToolStatus};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::common::pair_chat;
use crate::stage::{Spy, closed, name, printed, run, script};

#[derive(Deserialize, JsonSchema)]
struct Exchange {
    /// The amount in euros
    amount: f64,
    /// The other currency
    #[serde(default = "dollars")]
    to: String,
    /// A note on the receipt
    note: Option<String>,
    rounding: Option<Rounding>,
}

#[derive(Deserialize, JsonSchema)]
struct Rounding {
    /// Number of digits
    digits: u8,
}

fn dollars() -> String {
    "USD".into()
}

fn exchange() -> impl Tool {
    FunctionTool::new("exchange", "Converts money.", async |args: Exchange| {
        let digits = args.rounding.map_or(2, |rounding| rounding.digits);
        match &*args.to {
            "USD" => Ok(json!({"amount": args.amount * 2.0, "note": args.note, "digits": digits})),
            other => Err(ToolError(format!("There is no rate for {other}."))),
        }
    })
}

fn clock() -> impl Tool {
    FunctionTool::new("clock", "Tells the time.", async |_: ()| Ok("noon"))
}

/// Ann, who is offered the tools of `executor`, and Bob, who runs them and else says `So it is.`.
fn pair(model: &AnyModel, executor: Executor) -> Chat {
    let ann = Assistant::new("Ann", model.clone()).unwrap();
    let ann = executor.specs().cloned().fold(ann, Assistant::suggest_tool);
    let bob = Stack::new("Bob").unwrap().then(HumanInput::never()).then(executor).otherwise("So it is.");
    pair_chat("pair", ann, bob, 3)
}

/// The outcomes in what `who` said.
fn outcomes(events: &[Arc<Event>], who: &str) -> Vec<Vec<(String, ToolStatus, Vec<Part>)>> {
    let outcome = |part: &Part| match part {
        Part::ToolResult(answer) => {
            Some((answer.id.clone(), answer.result.status, answer.result.parts.clone()))
        }
        _ => None,
    };
    let said = |event: &Arc<Event>| match &event.body {
        Body::Message(message) if message.from == name(who) => {
            Some(message.parts.iter().filter_map(outcome).collect())
        }
        _ => None,
    };
    events.iter().filter_map(said).collect()
}

// Item 58.
#[test]
fn the_schema_of_a_declared_function_is_that_of_its_arguments() {
    let tool = exchange();
    assert_eq!((&*tool.spec().name, &*tool.spec().description), ("exchange", "Converts money."));
    let schema = &tool.spec().parameters;
    assert_eq!(schema["type"], "object");
    assert_eq!(schema["required"], json!(["amount"]));
    let properties = &schema["properties"];
    assert_eq!(properties["amount"]["type"], "number");
    assert_eq!(properties["amount"]["description"], "The amount in euros");
    assert_eq!(
        properties["to"],
        json!({"type": "string", "description": "The other currency", "default": "USD"})
    );
    let rounding = properties["rounding"].to_string();
    assert!(rounding.contains("Number of digits") && !rounding.contains("$ref"), "{rounding}");
    let none = clock();
    assert_eq!(none.spec().parameters, json!({"type": "object", "properties": {}}));
}

// Item 59.
#[tokio::test]
async fn two_calls_in_one_message_are_answered_in_one_message_in_their_order() {
    let spy = Spy::on(script(
        r#"[{"Ann": {"say": "Both.", "calls": [{"tool": "exchange", "args": {"amount": 1}, "id": "first"},
                                              {"tool": "clock", "id": "second"}]}}, {"Ann": "Thanks."}]"#,
    ));
    let (_, events) = run(&pair(&spy.model(), Executor::new().tool(clock()).tool(exchange())), "go").await;
    let ids: Vec<Vec<String>> = outcomes(&events, "Bob")
        .into_iter()
        .map(|all| all.into_iter().map(|(id, ..)| id).collect())
        .collect();
    assert_eq!(ids, [["first", "second"]]);
    let read = &spy.asked()[1].entries[2..];
    let ids: Vec<_> = read
        .iter()
        .map(|entry| match entry {
            Entry::Tool { id, tool, .. } => (&**id, &**tool),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(ids, [("first", "exchange"), ("second", "clock")]);
}

// Item 60, trap T13: the outcome has the error, and the chat continues.
#[tokio::test]
async fn every_error_of_a_call_is_its_outcome() {
    for (call, shown) in [
        (json!({"tool": "clock_tower"}), "There is no tool `clock_tower`. There are `clock` and `exchange`."),
        (
            json!({"tool": "exchange", "args": "{amount: 1}"}),
            "The arguments of `exchange` must be a JSON object; got: \"{amount: 1}\"",
        ),
        (json!({"tool": "exchange", "args": {"amount": 1, "to": "XYZ"}}), "There is no rate for XYZ."),
        (
            json!({"tool": "exchange", "args": {"amount": "much"}}),
            "The arguments of `exchange` are wrong: invalid type: string \"much\", expected f64",
        ),
        (json!({"tool": "exchange"}), "The arguments of `exchange` are wrong: missing field `amount`"),
    ] {
        let steps = json!([{"Ann": {"calls": [call]}}, {"Ann": "I see."}, {"Ann": "Fine."}]);
        let executor = Executor::new().tool(clock()).tool(exchange());
        // The model calls a tool that it was not offered: the caller gets an error at once.
        let model = script(&steps.to_string());
        let (status, events) = run(&pair(&model, executor), "go").await;
        let text = printed(&events);
        assert!(text.contains(shown), "{shown}\n{text}");
        assert_eq!(closed(&status).0, "3 of 3 turns", "{text}");
    }
}

// Item 60: in a chat of two the executor answers calls of unknown tools, as no other participant can.
#[tokio::test]
async fn an_executor_answers_calls_of_tools_that_it_does_not_have() {
    let chat = |others: usize, executor: Executor| {
        let ann = Assistant::new("Ann", script(r#"[{"Ann": {"calls": [{"tool": "clock"}]}}]"#)).unwrap();
        let bob = Stack::new("Bob").unwrap().then(executor).otherwise("Pardon?");
        let chat =
            Chat::builder("group").participant(ann.suggest_tool(clock().spec().clone())).participant(bob);
        let other = |_| Function::new("Cem", |_| Ok(Act::Pass)).unwrap();
        (0..others)
            .map(other)
            .fold(chat, polylogue_core::ChatBuilder::participant)
            .policy(sequential())
            .build()
            .unwrap()
    };
    let text = async |chat: Chat| printed(&run(&chat, "go").await.1);
    let unknown = "Bob says: clock #Ann-0-0 of Ann: There is no tool `clock`. There is `exchange`.";
    let owns = || Executor::new().tool(exchange());
    assert!(text(chat(0, owns())).await.contains(unknown));
    assert!(text(chat(1, owns())).await.contains("Bob says: Pardon?"));
    assert!(text(chat(1, owns().answers_all())).await.contains(unknown));
}

// Item 61.
#[tokio::test]
async fn arguments_with_line_breaks_inside_strings_are_read() {
    let cell = FunctionTool::new("python", "Runs a cell.", async |args: Value| Ok(args["cell"].clone()));
    let steps = json!([{"Ann": {"calls": [{"tool": "python", "args": "{\"cell\":\n \"a = 1\n\tprint(a)\"}"}]}}, {"Ann": "ok"}]);
    let spy = Spy::on(script(&steps.to_string()));
    let (_, events) = run(&pair(&spy.model(), Executor::new().tool(cell)), "go").await;
    assert_eq!(outcomes(&events, "Bob")[0][0].2, [Part::text("a = 1\n\tprint(a)")]);
    // The history has them as they were read.
    let call = spy.asked()[1].entries.iter().flat_map(Entry::parts).find_map(|part| match part {
        Part::ToolCall(call) => Some(call.args.clone()),
        _ => None,
    });
    assert_eq!(call, Some(json!({"cell": "a = 1\n\tprint(a)"})));
}

// Item 62.
#[tokio::test]
async fn illegal_characters_in_a_tools_name_become_underscores() {
    let tool = FunctionTool::new("get_time", "Tells the time.", async |_: ()| Ok("noon"));
    let spy = Spy::on(script(r#"[{"Ann": {"calls": [{"tool": "get.time"}]}}, {"Ann": "ok"}]"#));
    let (_, events) = run(&pair(&spy.model(), Executor::new().tool(tool)), "go").await;
    assert_eq!(outcomes(&events, "Bob")[0][0].2, [Part::text("noon")]);
    let names: Vec<_> = spy.asked()[1]
        .entries
        .iter()
        .flat_map(Entry::parts)
        .filter_map(|part| match part {
            Part::ToolCall(call) => Some(call.tool.clone()),
            _ => None,
        })
        .collect();
    assert_eq!(names, ["get_time"]);
}

// Item 63.
#[tokio::test]
async fn a_result_that_is_no_text_is_returned_as_json() {
    let value =
        FunctionTool::new("value", "Returns a value.", async |_: ()| Ok(json!({"größe": [1, 2.5, "ö"]})));
    let nothing = FunctionTool::new("nothing", "Returns nothing.", async |_: ()| Ok(()));
    let text = FunctionTool::new("text", "Returns a text.", async |_: ()| Ok("größe"));
    let spy = Spy::on(script(
        r#"[{"Ann": {"calls": [{"tool": "value"}, {"tool": "nothing"}, {"tool": "text"}]}}, {"Ann": "ok"}]"#,
    ));
    run(&pair(&spy.model(), Executor::new().tool(value).tool(nothing).tool(text)), "go").await;
    let asked = spy.asked();
    let read: Vec<_> = asked[1].entries[2..].iter().map(|entry| &entry.parts()[0]).collect();
    let json = Part::Data(json!({"größe": [1, 2.5, "ö"]}));
    assert_eq!(read, [&json, &Part::text("(nothing)"), &Part::text("größe")]);
    let Part::Data(value) = read[0] else { panic!("it is not text") };
    assert_eq!(value.to_string(), r#"{"größe":[1,2.5,"ö"]}"#);
}

// Item 64.
#[tokio::test]
async fn who_only_advertises_a_tool_never_runs_it() {
    let spy = Spy::on(script(r#"[{"Ann": {"calls": [{"tool": "clock"}]}}, {"Ann": "So you do not know."}]"#));
    let ann = Assistant::new("Ann", spy.model()).unwrap().suggest_tool(clock().spec().clone());
    let bob = Function::new("Bob", |_| Ok(Act::say("What?"))).unwrap();
    let chat = pair_chat("pair", ann, bob, 3);
    let (_, events) = run(&chat, "time?").await;
    assert!(!events.iter().any(|event| matches!(event.body, Body::ToolCalled { .. })));
    // The tool did not run: the call has an outcome all the same.
    let Entry::Tool { result: outcome, .. } = &spy.asked()[1].entries[2] else {
        panic!("the call is answered")
    };
    assert_eq!((outcome.status, &*outcome.text()), (ToolStatus::Failed, "This call was not made."));
}

// Item 64: a tool of the same name replaces the earlier one, whichever agent runs it.
#[tokio::test]
async fn the_tool_of_a_name_that_was_given_last_counts() {
    let other = || FunctionTool::new("clock", "Tells the hour.", async |_: ()| Ok("twelve"));
    let ann = Assistant::new("Ann", script("[]")).unwrap();
    let shown = |ann: &Assistant| ann.specs().iter().map(|spec| spec.description.clone()).collect::<Vec<_>>();
    let advertises = ann.clone().suggest_tool(clock().spec().clone()).suggest_tool(other().spec().clone());
    assert_eq!(shown(&advertises), ["Tells the hour."]);
    assert_eq!(shown(&advertises.tool(clock())), ["Tells the time."]);
    assert_eq!(shown(&ann.tool(clock()).suggest_tool(other().spec().clone())), ["Tells the hour."]);
    let model = script(r#"[{"Ann": {"calls": [{"tool": "clock"}]}}, {"Ann": "ok"}]"#);
    let (_, events) = run(&pair(&model, Executor::new().tool(clock()).tool(other())), "go").await;
    assert_eq!(outcomes(&events, "Bob")[0][0].2, [Part::text("twelve")]);
}

// Own tools of the same reply are run at once; the call for others is in the message, with what was said.
#[tokio::test]
async fn own_tools_and_those_of_others_are_called_together() {
    let spy = Spy::on(script(
        r#"[{"Ann": {"say": "Wait.", "calls": [{"tool": "clock", "id": "c"}, {"tool": "get_history", "id": "h"}]}}, {"Ann": "Noon."}]"#,
    ));
    let ann = Assistant::new("Ann", spy.model()).unwrap().tool(GetHistory::default());
    let ann = ann.suggest_tool(clock().spec().clone());
    let bob = Stack::new("Bob").unwrap().then(Executor::new().tool(clock()));
    let chat = pair_chat("pair", ann, bob, 3);
    let (_, events) = run(&chat, "time?").await;
    assert!(printed(&events).contains("Ann says: Wait. | call clock {} #c\n"), "{}", printed(&events));
    let asked = spy.asked();
    let names: Vec<_> = asked[0].tools.iter().map(|spec| &*spec.name).collect();
    assert_eq!(names, ["get_history", "clock"]);
    let read: Vec<_> = asked[1].entries[2..]
        .iter()
        .map(|entry| match entry {
            Entry::Tool { id, result: outcome, .. } => (&**id, outcome.text().into_owned()),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(read, [("c", "noon".to_owned()), ("h", "user: time?".to_owned())]);
}

// In private turns no participant could run a suggested tool, so it is not offered.
#[tokio::test]
async fn suggested_tools_are_not_offered_in_private_turns() {
    let spy = Spy::on(script(r#"[{"Ann": "Hello."}, {"Ann": "They greeted."}]"#));
    let ann = Assistant::new("Ann", spy.model()).unwrap().tool(GetHistory::default());
    let ann = ann.suggest_tool(clock().spec().clone());
    let policy = with_summary_by(sequential(), name("Ann"), |_| "Sum up.".into());
    let chat = Chat::builder("alone").participant(ann).policy(policy).build().unwrap();
    assert_eq!(closed(&run(&chat, "hi").await.0).1, "They greeted.");
    let offered: Vec<usize> = spy.asked().iter().map(|asked| asked.tools.len()).collect();
    assert_eq!(offered, [2, 1]);
}

// Item 65: each waits until the other has begun, and the first is done last.
#[tokio::test]
async fn calls_of_one_message_run_at_the_same_time_and_keep_their_order() {
    let begun = Arc::new(Barrier::new(2));
    let second_is_done = Arc::new(Barrier::new(2));
    let (begins, waits) = (Arc::clone(&begun), Arc::clone(&second_is_done));
    let first = FunctionTool::new("first", "Is done last.", move |_: ()| {
        let (begins, waits) = (Arc::clone(&begins), Arc::clone(&waits));
        async move {
            begins.wait().await;
            waits.wait().await;
            Ok("first")
        }
    });
    let second = FunctionTool::new("second", "Is done first.", move |_: ()| {
        let (begun, done) = (Arc::clone(&begun), Arc::clone(&second_is_done));
        async move {
            begun.wait().await;
            done.wait().await;
            Ok("second")
        }
    });
    let model = script(r#"[{"Ann": {"calls": [{"tool": "first"}, {"tool": "second"}]}}, {"Ann": "ok"}]"#);
    let (_, events) = run(&pair(&model, Executor::new().tool(first).tool(second)), "go").await;
    let texts: Vec<_> = outcomes(&events, "Bob").remove(0).into_iter().map(|(_, _, parts)| parts).collect();
    assert_eq!(texts, [[Part::text("first")], [Part::text("second")]]);
}

// Two callers may use the same id: each gets the outcome of its own call. Private calls are for the agents that see them.
#[tokio::test]
async fn calls_of_several_agents_are_distinguished() {
    let echo = FunctionTool::new("echo", "Says it again.", async |args: Value| Ok(args["text"].clone()));
    let call = |text: &str| {
        Part::ToolCall(ToolCall { id: "c1".into(), tool: "echo".into(), args: json!({"text": text}) })
    };
    let ask = move |who: &str, text: &str| Message { parts: vec![call(text)], ..Message::new(name(who), "") };
    let private = polylogue_core::Audience::Only(vec![name("Cem")]);
    let bob = Stack::new("Bob").unwrap().then(Executor::new().tool(echo)).otherwise("nothing to do");
    let silent = |who| Function::new(who, |_| Ok(Act::Pass)).unwrap();
    let chat = Chat::builder("group")
        .participant(silent("Ann"))
        .participant(silent("Cem"))
        .participant(silent("Dan"))
        .participant(bob);
    let opening =
        move |_: &str| vec![ask("Ann", "a"), ask("Cem", "c"), ask("Dan", "secret").to(private.clone())];
    let (_, events) = run(&chat.opening(opening).policy(sequential()).build().unwrap(), "").await;
    let text = printed(&events);
    assert!(text.contains("Bob says: echo #c1 of Ann: a | echo #c1 of Cem: c\n"), "{text}");
}

// The caller sees the outcome in a message as such, the others see text.
#[tokio::test]
async fn outcomes_are_text_for_all_but_the_caller() {
    let model = script(
        r#"[{"Ann": {"calls": [{"tool": "clock", "id": "c1"}, {"tool": "exchange", "args": {"amount": 2}, "id": "c2"}]}}]"#,
    );
    let executor = Executor::new().tool(clock()).tool(exchange());
    let ann = executor.specs().cloned().fold(Assistant::new("Ann", model).unwrap(), Assistant::suggest_tool);
    let bob = Stack::new("Bob").unwrap().then(executor);
    let spy = Spy::on(script(r#"[{"Cem": "I see."}]"#));
    let cem = Assistant::new("Cem", spy.model()).unwrap();
    let chat = Chat::builder("group")
        .participant(ann)
        .participant(bob)
        .participant(cem)
        .policy(sequential())
        .build()
        .unwrap();
    run(&chat, "time?").await;
    let asked = spy.asked();
    let texts: Vec<_> = asked[0].entries.iter().map(|entry| polylogue_core::text_of(entry.parts())).collect();
    let called = "Ann: (calls `clock` with {})\n\n(calls `exchange` with {\"amount\":2})";
    let value = json!({"amount": 4.0, "note": null, "digits": 2});
    let returned = format!("Bob: (`clock` returned: noon)\n\n(`exchange` returned: {value})");
    assert_eq!(texts, ["user: time?", called, &*returned]);
}

// Calls of suggested tools have no text: neither they nor their outcomes are a loop while they differ.
#[tokio::test]
async fn calls_without_text_are_a_loop_only_when_they_are_equal() {
    let reason = async |amount: fn(usize) -> usize| {
        let call = |nth| json!({"Ann": {"calls": [{"tool": "exchange", "args": {"amount": amount(nth)}}]}});
        let steps: Vec<Value> = (0..7).map(call).chain([json!({"Ann": "That is all."})]).collect();
        let executor = Executor::new().tool(exchange());
        let ann = Assistant::new("Ann", script(&Value::from(steps).to_string())).unwrap();
        let ann = executor.specs().cloned().fold(ann, Assistant::suggest_tool);
        let bob = Stack::new("Bob").unwrap().then(executor).otherwise("So it is.");
        let strict = LoopDetector { calls: 3, ..LoopDetector::default() };
        let chat = Chat::builder("pair").participant(ann).participant(bob);
        let chat =
            chat.policy(with_termination(round_robin(), Stop::from(strict) | max_turns(14))).build().unwrap();
        let (status, _) = run(&chat, "go").await;
        closed(&status).0
    };
    assert_eq!(reason(|nth| nth).await, "no participant said anything; 14 of 14 turns");
    assert_eq!(reason(|_| 7).await, "loop detected: the same tool call repeatedly");
}
