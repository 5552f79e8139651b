//! One tool by a talk: items 55, 56 and 58 to 66.

use std::sync::atomic::{AtomicU32, Ordering};

use expect_test::expect;
use polylogue::agents::tooling::{PromptedTool, ToolHistory};
use polylogue::policies::with_termination;
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, Function, Tool, round_robin};
use polylogue_core::{Body, Capabilities, Capability, ToolResult, ToolSpec};
use polylogue_test::tool::tool_of;
use serde_json::json;

use crate::stage::{Spy, printed, run};
use crate::tool_calling::things::{broken, clock, high_low, lines, note, prompts, remembered, talker, turn};

const JSON: &str = r#"{"secret": 7, "guess": 3}"#;
const HIGHER: &str = "The secret number is higher. // (tool)";

fn must() -> PromptedTool {
    PromptedTool::new(high_low()).mandatory()
}

fn five(agent: Assistant) -> Assistant {
    agent.tool_history(ToolHistory::Full)
}

// Item 55: the five messages, and what the tool returned is what the others hear.
#[tokio::test]
async fn a_turn_with_a_tool_leaves_five_messages() {
    let done = turn(lines(&["I see.", "I see.", JSON]), |model| five(talker(model, must()))).await;
    assert_eq!(done.said, HIGHER);
    assert_eq!(
        done.remembers,
        [
            "user: Compare 7 and 3.",
            "assistant: I can use the tool 'high_low' related to the task to solve it correctly.",
            "user: Output the tool 'high_low' as valid JSON.",
            "assistant: {\"secret\":7,\"guess\":3}",
            "user: The secret number is higher. // (tool)",
        ]
    );
}

// Items 55 and 56: the partner reads the raw output, and none of the talk about the tool is in a later request.
#[tokio::test]
async fn the_partner_reads_what_the_tool_returned_and_the_talk_is_forgotten() {
    let spy = Spy::on(AnyModel::new(lines(&["Ack.", "Ack.", JSON, "Ack.", "Ack.", JSON])));
    let master = five(talker(spy.model(), must()));
    let player = Function::new("P", |turn| {
        let received = turn.last_message().map(|line| line.message.text().into_owned());
        Ok(polylogue::Act::say(format!("I heard: {}", received.unwrap_or_default())))
    });
    let chat = Chat::builder("game").participant(master).participant(player.unwrap());
    let chat = chat.policy(with_termination(round_robin(), max_turns(3))).build().unwrap();
    let (_, events) = run(&chat, "Compare 7 and 3.").await;
    assert!(printed(&events).contains("P says: I heard: The secret number is higher. // (tool)\n"));
    let second = crate::tool_calling::things::entries(&spy.asked()[3].entries);
    assert_eq!(second.len(), 7, "five messages, what P said, and the first question: {second:#?}");
    assert_eq!(second[5], "user: I heard: The secret number is higher. // (tool)");
    assert_eq!(remembered(&events).len(), 10);
}

// Item 58: three requests, the third in JSON mode, none with tools; with the answer remembered instead, three as well.
#[tokio::test]
async fn a_mandatory_tool_takes_three_requests() {
    let capabilities = Capabilities::TEXT.with(Capability::Json);
    let done =
        turn(lines(&["1", "2", JSON]).with_capabilities(capabilities), |model| five(talker(model, must())))
            .await;
    assert_eq!(done.asked.iter().map(|asked| asked.params.json).collect::<Vec<_>>(), [false, false, true]);
    assert!(done.asked.iter().all(|asked| asked.tools.is_empty() && asked.params.schema.is_none()));
    let said = turn(lines(&["1", JSON, "Seven is more."]), |model| talker(model, must())).await;
    assert_eq!(said.said, "Seven is more.");
    assert!(said.asked.iter().all(|asked| !asked.params.json), "it is unknown whether it has a JSON mode");
    assert_eq!(said.remembers, ["user: Compare 7 and 3.", "assistant: Seven is more."]);
}

// Item 58, what is asked.
#[tokio::test]
async fn the_talk_about_a_tool() {
    let done = turn(lines(&["I see.", JSON, "Seven is more."]), |model| talker(model, must())).await;
    expect![[r#"
        0 opened [M] "Compare 7 and 3." | user: Compare 7 and 3.
        1 turn M
        2 M is prompted: There is a tool named `high_low` that you must use to solve the task. What it does: Compares two numbers.\n\nIf you understand, say so in one sentence. Do not solve the task yet.
        3 script:test replies to M (stop): I see.
        4 M is prompted: To use the tool `high_low`, write its arguments as one JSON object, like this:\n{"secret":"<integer>","guess":"<integer>"}\n- `secret` (integer): The number that is to be guessed\n- `guess` (integer): The player's guess\n\nThe task is:\n<task>\nCompare 7 and 3.\n</task>\n\nOutput the arguments with which the tool `high_low` is to be called for it, as one JSON object and nothing else.
        5 script:test replies to M (stop): {"secret": 7, "guess": 3}
        6 M calls high_low {"secret":7,"guess":3} #text-1-1
        7 M gets #text-1-1: The secret number is higher. // (tool)
        8 M is prompted: The tool `high_low` returned:\nThe secret number is higher. // (tool)\n\nNow solve the task with what you know, without any further tool. The task is:\n<task>\nCompare 7 and 3.\n</task>
        9 script:test replies to M (stop): Seven is more.
        10 M replaces its history of the turn: sent Seven is more.
        11 M says: Seven is more.
        12 closed (M replied): Seven is more.
    "#]]
    .assert_eq(&printed(&done.events));
}

// Item 59: five requests either way in the document's form; a refused tool leaves prompt and answer.
#[tokio::test]
async fn an_optional_tool_may_be_refused() {
    let optional = || PromptedTool::new(high_low());
    let no = ["ack", "ack", "It would not help.", "No.", "Seven."];
    let done = turn(lines(&no), |model| five(talker(model, optional()))).await;
    assert_eq!(done.asked.len(), 5);
    assert_eq!(done.remembers, ["user: Compare 7 and 3.", "assistant: Seven."]);
    assert!(!done.events.iter().any(|event| matches!(event.body, Body::ToolCalled { .. })));
    let yes = ["ack", "ack", "It helps.", "yes", JSON];
    let done = turn(lines(&yes), |model| five(talker(model, optional()))).await;
    assert_eq!((done.asked.len(), done.remembers.len(), &*done.said), (5, 5, HIGHER));
}

// Item 59 [F]: what is neither yes nor no is asked for once more, and is a no if it stays so; thoughts decide nothing.
#[tokio::test]
async fn an_answer_that_is_neither_yes_nor_no_is_requested_once_more() {
    for (replies, is_called) in [
        (&["a", "b", "I know it", "yes", JSON, "end"][..], true),
        (&["a", "b", "maybe", "not sure", "end"], false),
        (&["a", "b", "<think>yes, yes</think>no", "end"], false),
    ] {
        let done = turn(lines(replies), |model| talker(model, PromptedTool::new(high_low()))).await;
        let calls = done.events.iter().any(|event| matches!(event.body, Body::ToolCalled { .. }));
        assert_eq!((calls, &*done.said), (is_called, "end"), "{replies:?}");
    }
}

// Item 60: examples are read before the arguments are written, are no requests, and are in no history.
#[tokio::test]
async fn examples_are_read_and_forgotten() {
    let taught = || must().example("compare 1 with the secret 2", json!({"secret": 2, "guess": 1}));
    let example = "to `compare 1 with the secret 2` you would write:\n{\"secret\":2,\"guess\":1}";
    let done = turn(lines(&["ack", JSON, "end"]), |model| talker(model, taught())).await;
    let shown: Vec<bool> = prompts(&done.asked).iter().map(|prompt| prompt.contains(example)).collect();
    assert_eq!(shown, [false, true, false]);
    assert!(!done.remembers.join("\n").contains("secret 2"));
    let done = turn(lines(&["ack", "ack", JSON]), |model| five(talker(model, taught()))).await;
    let shown: Vec<bool> = prompts(&done.asked).iter().map(|prompt| prompt.contains(example)).collect();
    assert_eq!(shown, [false, true, false], "after the instructions");
    assert_eq!(done.remembers.len(), 5);
    assert!(!done.remembers.join("\n").contains("secret 2"));
}

// Item 61: the model receives the tool's error; only the accepted JSON stays.
#[tokio::test]
async fn arguments_that_a_tool_refuses_are_corrected_by_the_model() {
    let replies = ["ack", "ack", r#"{"secret": 7, "guess": 30}"#, JSON];
    let done = turn(lines(&replies), |model| five(talker(model, must()))).await;
    assert!(prompts(&done.asked)[3].starts_with(
        "The tool `high_low` could not be used: the guess must be at most 20\n\nCorrect the arguments."
    ));
    assert_eq!(done.remembers.len(), 5);
    assert_eq!(done.remembers[3], "assistant: {\"secret\":7,\"guess\":3}");
}

// Item 62: N errors are tolerated, and the next one ends the chat with its own reason; the two kinds are counted
// separately.
#[tokio::test]
async fn errors_have_limits_that_are_counted_apart() {
    let refused = r#"{"secret": 7, "guess": 30}"#;
    let misfit = r#"{"secret": 7}"#;
    let taught = || must().max_errors(1).max_call_errors(2);
    let done = turn(lines(&["a", refused, refused]), |model| talker(model, taught())).await;
    assert_eq!(done.reason, "M's limit of 1 error in calling `high_low`");
    assert_eq!(done.remembers, ["user: Compare 7 and 3."], "nothing of the turn stays");
    let done = turn(lines(&["a", misfit, misfit, misfit]), |model| talker(model, taught())).await;
    assert_eq!(done.reason, "M's limit of 2 errors in the arguments of `high_low`");
    let apart = ["a", misfit, refused, misfit, JSON, "end"];
    let done = turn(lines(&apart), |model| talker(model, taught())).await;
    assert_eq!(done.said, "end");
    let done = turn(lines(&["a", refused]), |model| talker(model, must().max_errors(0))).await;
    assert_eq!(done.reason, "M's limit of 0 errors in calling `high_low`");
}

// Arguments that are JSON and no object do not fit the tool, whatever the tool is: they count to that limit, and the
// model receives what they are.
#[tokio::test]
async fn json_that_is_no_object_counts_as_arguments_that_do_not_fit() {
    for json in ["[1,2]", "```json\n[1, 2]\n```", "7", "\"seven\"", "null"] {
        let taught = || must().max_errors(0).max_call_errors(1);
        let done = turn(lines(&["a", json, json]), |model| talker(model, taught())).await;
        assert_eq!(done.reason, "M's limit of 1 error in the arguments of `high_low`", "{json}");
    }
    let done = turn(lines(&["a", "[1,2]", JSON, "end"]), |model| talker(model, must())).await;
    let shown = &prompts(&done.asked)[2];
    assert!(shown.contains("the arguments must be a JSON object; got [1,2]"), "{shown}");
    assert!(shown.contains("{\"secret\":\"<integer>\",\"guess\":\"<integer>\"}"), "{shown}");
}

// Item 62: arguments that do not fit come back with how they look; the tool is not run with them.
#[tokio::test]
async fn arguments_that_do_not_fit_are_reported_with_their_format() {
    let misfit = r#"{"secret": "seven", "guess": 3}"#;
    let done = turn(lines(&["a", misfit, JSON, "end"]), |model| talker(model, must())).await;
    let shown = &prompts(&done.asked)[2];
    assert!(shown.contains("`secret` must be of type integer; got \"seven\""), "{shown}");
    assert!(shown.contains("{\"secret\":\"<integer>\",\"guess\":\"<integer>\"}"), "{shown}");
    let calls = done.events.iter().filter(|event| matches!(event.body, Body::ToolCalled { .. })).count();
    assert_eq!(calls, 1);
}

// Item 63 [F]: what is not JSON is an error like any other; nearly JSON, and JSON among words, is read.
#[tokio::test]
async fn a_reply_that_is_no_json_is_requested_again() {
    let done = turn(lines(&["a", "seven and three", "{\"secret\": 7, ", JSON, "end"]), |model| {
        talker(model, must())
    });
    let done = done.await;
    assert!(prompts(&done.asked)[2].contains("there is no JSON in it that can be read"));
    assert_eq!(done.said, "end");
    for nearly in [
        "Sure:\n```json\n{'secret': 7, 'guess': 3,}\n```",
        "<think>{\"secret\": 1, \"guess\": 1}</think>{secret: 7, guess: 3}",
        r#"{"arguments": {"secret": 7, "guess": 3}}"#,
        r#"{"high_low": {"secret": 7, "guess": 3}}"#,
    ] {
        let done = turn(lines(&["a", nearly, "end"]), |model| talker(model, must())).await;
        assert!(printed(&done.events).contains(HIGHER), "{nearly}");
    }
    let never = turn(lines(&["a", "x", "x"]), |model| talker(model, must().max_errors(1))).await;
    assert_eq!(never.reason, "M's limit of 1 error in calling `high_low`");
}

// Item 64: without a further request.
#[tokio::test]
async fn a_tool_that_returns_nothing_is_said_to_have_succeeded() {
    let success = "Tool note was called successfully. It didn't return anything.";
    let json = r#"{"text": "7 > 3"}"#;
    let taught = || PromptedTool::new(note()).mandatory();
    let done = turn(lines(&["a", json]), |model| talker(model, taught())).await;
    assert_eq!(done.said, success);
    assert_eq!(done.remembers, ["user: Compare 7 and 3.".to_owned(), format!("assistant: {success}")]);
    let done = turn(lines(&["a", "b", json]), |model| five(talker(model, taught()))).await;
    assert_eq!(done.remembers[4], format!("user: {success}"));
}

// Item 65: a failing tool is reported, and does not fail the run.
#[tokio::test]
async fn a_failing_tool_fails_only_its_call() {
    let schema = json!({"type": "object", "properties": {"x": {"type": "integer"}}});
    let taught = || PromptedTool::new(broken(ToolSpec::new("press", "Presses.", schema.clone()))).mandatory();
    let done = turn(lines(&["a", "{\"x\": 1}", "{\"x\": 2}"]), |model| talker(model, taught().max_errors(1)));
    let done = done.await;
    assert_eq!(done.reason, "M's limit of 1 error in calling `press`");
    assert!(prompts(&done.asked)[2].contains("The tool `press` crashed; this is a fault of the tool."));
    assert_eq!(done.remembers, ["user: Compare 7 and 3."]);
}

// Item 66, and a tool without arguments: none are requested.
#[tokio::test]
async fn a_tool_keeps_its_state_from_turn_to_turn() {
    let spec = ToolSpec::new("count", "Counts.", json!({"type": "object", "properties": {}}));
    let model = AnyModel::new(lines(&["ack", "ack", "ack", "ack", "ack", "ack"]));
    let calls = AtomicU32::new(0);
    let counter =
        tool_of(spec, move |_| Ok(ToolResult::done((calls.fetch_add(1, Ordering::Relaxed) + 1).to_string())));
    let counter = PromptedTool::new(counter).mandatory();
    let chat = Chat::builder("counting").participant(five(talker(model, counter)));
    let chat = chat.policy(with_termination(round_robin(), max_turns(3))).build().unwrap();
    let (_, events) = run(&chat, "Count.").await;
    let said = events.iter().filter_map(|event| match &event.body {
        Body::Message(message) => Some(message.text().into_owned()),
        _ => None,
    });
    assert_eq!(said.collect::<Vec<_>>(), ["1", "2", "3"]);
}

// A tool whose outcome ends the turn ends it here, too.
#[tokio::test]
async fn a_tool_that_ends_the_turn_gives_the_message() {
    let spec = clock().spec().clone().ends_turn();
    let ending = || tool_of(spec.clone(), |_| Ok(ToolResult::done("It is noon.")));
    let done = turn(lines(&["ack"]), |model| talker(model, PromptedTool::new(ending()).mandatory())).await;
    assert_eq!(done.said, "It is noon.");
    assert_eq!(done.remembers[1], "assistant: It is noon.");
}

// In a private turn it answers at once: a question of the policy is not a task.
#[tokio::test]
async fn no_tools_in_private_turns() {
    let model = lines(&["ack", JSON, "Seven.", "It was about numbers."]);
    let spy = Spy::on(AnyModel::new(model.clone()));
    let agent = talker(spy.model(), must());
    let judge = polylogue::Name::new("M").unwrap();
    let policy =
        polylogue::policies::with_summary_by(polylogue::sequential(), judge, |_| "What was it about?".into());
    let chat = Chat::builder("alone").participant(agent).policy(policy).build().unwrap();
    let (status, _) = run(&chat, "Compare 7 and 3.").await;
    assert_eq!(crate::stage::closed(&status).1, "It was about numbers.");
    model.finish().unwrap();
}
