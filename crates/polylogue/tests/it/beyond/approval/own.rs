//! A person approves the tool calls of an assistant, however its model makes them.

use std::sync::{Arc, Mutex};

use polylogue::agents::reason::{React, Rewoo};
use polylogue::agents::{PromptedTool, ToolCalling};
use polylogue::layers::parse::ActionExecutor;
use polylogue::tools::Approval;
use polylogue::tools::FunctionTool;
use polylogue::tools::agent_tool::AgentTool;
use polylogue::{AnyModel, Assistant, Chat, Status, Tool};
use polylogue_core::{Body, Event, ToolStatus};
use polylogue_models::Script;
use polylogue_test::cut::uncharged;
use serde_json::{Value, json};

use crate::beyond::stage::{Cast, events, events_with, print};
use crate::common::{log_of, pair_chat, run_or_resume, solo_chat};

#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Said {
    text: String,
}

fn echo(name: &str) -> impl Tool + use<> {
    FunctionTool::new(name, "Says it again.", async |Said { text }: Said| Ok(text)).repeatable()
}

fn alone(ann: Assistant) -> Chat {
    solo_chat("alone", ann, 2)
}

/// The log of Ann, who calls `echo`, whole and cut after every event; the person gives these answers.
async fn talk(by: ToolCalling, script: &str, answers: &'static [&'static str]) -> String {
    let chat = |cast: &Cast<'_>| {
        alone(
            cast.assistant("Ann")
                .tool_calling(by)
                .tool(echo("echo"))
                .tool(echo("mute"))
                .approval(Approval::of_tools(["ec*"])),
        )
    };
    let text = print(&events_with(script, &|nth| answers[nth], chat).await);
    assert_eq!(text.matches(" is answered: ").count(), answers.len(), "{text}");
    text
}

const NATIVE: &str = r#"[
    {"Ann": {"calls": [
        {"tool": "echo", "args": {"text": "a"}, "id": "c1"}, {"tool": "mute", "args": {"text": "b"}, "id": "c2"},
        {"tool": "gone", "args": {}, "id": "c3"}, {"tool": "echo", "args": {"text": "d"}, "id": "c4"}]}},
    {"Ann": {"say": "So it is."}}, {"Ann": "And that is all."}]"#;

#[tokio::test]
async fn own_calls_are_approved_rejected_and_edited() {
    let text =
        talk(ToolCalling::Native, NATIVE, &["No: too loud.", "```json\n{\"text\": \"softly\"}\n```"]).await;
    let asked = "Ann asks: `Ann` calls `echo` with:\\n\\n```\\n{\"text\":\"a\"}\\n```\n";
    assert!(text.contains(asked), "{text}");
    // No approval for tools that the rule does not name, or that cannot be called.
    assert_eq!(text.matches(" asks: ").count(), 2, "{text}");
    assert!(text.contains("#c1 failed: This call was not made: it was rejected. too loud."), "{text}");
    assert!(
        text.contains("softly | (Before it was made, its arguments were changed to: {\"text\":\"softly\"})"),
        "{text}"
    );
    // Nothing is called before all is decided.
    assert!(text.find("calls mute").unwrap() > text.rfind("is answered").unwrap(), "{text}");
    assert!(text.contains("Ann says: So it is."), "{text}");
}

/// Two calls in one message, one without its argument: a person decides only about the other one.
#[tokio::test]
async fn no_one_is_asked_about_a_call_with_wrong_arguments() {
    let script = r#"[
        {"Ann": {"calls": [
            {"tool": "echo", "args": {"txt": "a"}, "id": "c1"}, {"tool": "echo", "args": {"text": "b"}, "id": "c2"}]}},
        {"Ann": "So it is."}, {"Ann": "And that is all."}]"#;
    let text = talk(ToolCalling::Native, script, &["yes"]).await;
    assert_eq!(text.matches(" asks: ").count(), 1, "{text}");
    assert!(text.contains("#c1 failed: The arguments of `echo` are wrong: `text` is missing"), "{text}");
    assert!(text.contains("#c2: b"), "{text}");
}

/// The person learns what is wrong, and no call is made with it.
#[tokio::test]
async fn arguments_that_a_person_changed_to_wrong_ones_are_asked_about_again() {
    let answers = &["{\"txt\": \"softly\"}", "```\n{\"text\": 1}\n```", "{\"text\": \"softly\"}", "yes"];
    let text = talk(ToolCalling::Native, NATIVE, answers).await;
    for flaw in ["`text` is missing. ", "`text` must be of type string; got 1. "] {
        let again = format!("asks: The arguments of `echo` are wrong: {flaw}");
        assert_eq!(text.matches(&again).count(), 1, "{text}");
    }
    assert!(text.contains("#c1: softly | (Before it was made"), "{text}");
    assert!(!text.contains("failed: The arguments"), "{text}");
    // The call is rejected after the fifth, and stays rejected while the next one is decided.
    const WRONG: &str = "{\"txt\": \"softly\"}";
    let text = talk(ToolCalling::Native, NATIVE, &[WRONG, WRONG, WRONG, WRONG, WRONG, "yes"]).await;
    assert!(
        text.contains("#c1 failed: This call was not made: it was rejected. No answer was clear."),
        "{text}"
    );
    assert!(!text.contains("txt\":\"softly\"} #c1") && text.contains("#c4: d"), "{text}");
}

#[tokio::test]
async fn what_is_unclear_is_asked_again_and_exit_ends_it() {
    let text = talk(ToolCalling::Native, NATIVE, &["maybe", "yes", "yes"]).await;
    assert!(text.contains("asks: The answer was unclear. `Ann` calls `echo`"), "{text}");
    let text = talk(ToolCalling::Native, NATIVE, &["yes", "exit"]).await;
    assert!(text.contains("closed (Ann left: said `exit`)") && !text.contains("calls mute"), "{text}");
}

#[tokio::test]
async fn only_the_answers_in_the_question_approve_or_reject() {
    for other in ["y", "ok", "run", "Run it", "yes please", "n", "reject", "always", "", "y\n"] {
        let answers: &'static [&'static str] = vec![other, "yEs", "NO: too loud"].leak();
        let text = talk(ToolCalling::Native, NATIVE, answers).await;
        assert_eq!(text.matches("The answer was unclear.").count(), 1, "{other:?}: {text}");
        assert_eq!(text.matches(" is answered: ").count(), 3, "{other:?}: {text}");
        assert!(text.contains("it was rejected. too loud"), "{other:?}: {text}");
    }
}

/// Where tools are called by text, a rejection is not an error of the model: it receives the reason, and continues.
#[tokio::test]
async fn a_rejection_is_the_outcome_of_a_call_by_text() {
    let script = r#"[
        {"Ann": "Understood."}, {"Ann": "{\"text\": \"a\"}"},
        {"Ann": {"say": "Then not.", "expect": {"last": "The tool `echo` returned:\nThis call was not made: it was rejected. Not now."}}}]"#;
    let chat = |cast: &Cast<'_>| {
        let must = PromptedTool::new(echo("echo")).mandatory().max_errors(0);
        let ann = cast
            .assistant("Ann")
            .tool_calling(ToolCalling::Text)
            .prompted_tool(must)
            .approval(Approval::always());
        solo_chat("alone", ann, 1)
    };
    let text = print(&events_with(script, &|_| "no, Not now.", chat).await);
    assert!(text.contains("Ann says: Then not.") && text.contains("closed (1 of 1 turn"), "{text}");
    let script = r#"[{"Ann": "Understood."}, {"Ann": "{\"text\": \"a\"}"}, {"Ann": "Well."}]"#;
    let text = print(&events_with(script, &|_| "```\n{\"text\": \"b\"}\n```", chat).await);
    assert!(text.contains("returned:\\nb\\n\\n(Before it was made"), "{text}");
    // Of several tools, too.
    let script = r#"[
        {"Ann": "Understood."}, {"Ann": "One would help."}, {"Ann": "yes"}, {"Ann": "echo"}, {"Ann": "{\"text\": \"a\"}"},
        {"Ann": {"say": "No, that was not to be.", "expect": {"last": "another"}}}, {"Ann": "no"}, {"Ann": "Then not."},
        {"Ann": "Understood."}, {"Ann": "No."}, {"Ann": "no"}, {"Ann": "And that is all."}]"#;
    let text = talk(ToolCalling::Text, script, &["no"]).await;
    assert!(text.contains("returned:\\nThis call was not made: it was rejected."), "{text}");
    assert!(text.contains("Ann says: Then not."), "{text}");
}

#[tokio::test]
async fn calls_in_objects_are_asked_about() {
    let script = r#"[
        {"Ann": "{\"say\": null, \"call\": {\"tool\": \"echo\", \"args\": {\"text\": \"a\"}}}"},
        {"Ann": "{\"say\": null, \"call\": {\"tool\": \"echo\", \"args\": {\"text\": \"b\"}}}"},
        {"Ann": "{\"say\": \"So it is.\", \"call\": null}"}, {"Ann": "{\"say\": \"All.\", \"call\": null}"}]"#;
    let text = talk(ToolCalling::Schema, script, &["no, louder", "yes"]).await;
    assert!(text.contains("returned:\\nThis call was not made: it was rejected. louder"), "{text}");
    assert!(text.contains("returned:\\nb") && text.contains("Ann says: So it is."), "{text}");
}

#[tokio::test]
async fn an_agent_is_asked_only_when_a_person_lets_it() {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "Bob", "args": {"task": "Add 1 and 2."}, "id": "c1"},
                           {"tool": "Bob", "args": {"task": "Sing."}, "id": "c2"}]}},
        {"Bob": {"say": "4", "expect": {"last": "Add 1 and 3."}}}, {"Ann": "It is 4."}, {"Ann": "All."}]"#;
    let chat = |cast: &Cast<'_>| {
        let ann = cast.assistant("Ann").agent_tool(AgentTool::agent(cast.assistant("Bob")));
        alone(ann.approval(Approval::always()))
    };
    let answers = [" {\"task\": \"Add 1 and 3.\"}", "no"];
    let text = print(&events_with(script, &|nth| answers[nth], chat).await);
    assert!(
        text.contains("#c1: 4 | (Before it was made") && text.contains("#c2 failed: This call was not made"),
        "{text}"
    );
}

#[tokio::test]
async fn without_a_rule_no_approval_is_needed() {
    let text = print(
        &events(NATIVE, |cast| alone(cast.assistant("Ann").tool(echo("echo")).tool(echo("mute")))).await,
    );
    assert!(!text.contains(" asks: "), "{text}");
}

/// What was done, in order.
type Effects = Arc<Mutex<Vec<String>>>;

/// Does something that is not to be done twice.
fn write(effects: &Effects) -> impl Tool + use<> {
    let effects = Arc::clone(effects);
    FunctionTool::new("write", "Writes a line.", move |args: Value| {
        let effects = Arc::clone(&effects);
        async move {
            effects.lock().unwrap().push(args["text"].as_str().unwrap().to_owned());
            Ok("written")
        }
    })
}

/// Plays it from `prefix`, with `effects` of what ran before.
async fn play(prefix: &[Arc<Event>], effects: &Effects) -> Vec<Arc<Event>> {
    let script = r#"[
        {"Ann": {"calls": [{"tool": "write", "args": {"text": "one"}, "id": "c1"}, {"tool": "write", "args": {"text": "two"}, "id": "c2"}]}},
        {"Ann": {"calls": [{"tool": "write", "args": {"text": "three"}, "id": "c3"}]}}, {"Ann": "Done."}]"#;
    let model: Script = serde_json::from_str(script).unwrap();
    let ann = Assistant::new("Ann", AnyModel::new(model.model("test"))).unwrap();
    let ann = ann.tool(write(effects)).approval(Approval::always());
    let chat = solo_chat("one", ann, 1);
    let mut log = log_of(prefix).await;
    let mut status = run_or_resume(&chat, &mut log, "go").await.unwrap().status;
    while let Status::Waiting(questions) = &status {
        let (at, question) = &questions[0];
        let answer = if question.text.contains("two") { "```\n{\"text\": \"2\"}\n```" } else { "yes" };
        log.answer(at, &question.who, answer).await.unwrap();
        status = chat.resume(&mut log).await.unwrap().status;
    }
    log.events().await
}

#[tokio::test]
async fn what_was_approved_is_done_once_wherever_the_process_dies() {
    let effects = Effects::default();
    let whole = play(&[], &effects).await;
    let all = ["one", "2", "three"];
    assert_eq!(*effects.lock().unwrap(), all);
    let (mut same, mut in_flight) = (0, 0);
    for cut in 1..whole.len() {
        let prefix = &whole[..cut];
        let count = |is: fn(&Body) -> bool| prefix.iter().filter(|event| is(&event.body)).count();
        let called = count(|body| matches!(body, Body::ToolCalled { .. }));
        let returned = count(|body| matches!(body, Body::ToolReturned { .. }));
        // All that was called was done before the process died.
        let effects = Effects::default();
        effects.lock().unwrap().extend(all[..called].iter().map(|text| (*text).to_owned()));
        let again = play(prefix, &effects).await;
        assert_eq!(*effects.lock().unwrap(), all, "cut before event {cut}");
        let asked = again.iter().filter(|event| matches!(event.body, Body::InputRequired(_))).count();
        assert_eq!(asked, 3, "cut before event {cut}");
        let unknown = |event: &&Arc<Event>| matches!(&event.body, Body::ToolReturned { result: outcome, .. } if outcome.status == ToolStatus::Unknown);
        let unknown = again.iter().filter(unknown).count();
        assert_eq!(unknown, called - returned, "cut before event {cut}");
        if unknown == 0 {
            assert_eq!(uncharged(&again), whole, "cut before event {cut}");
            same += 1;
        } else {
            in_flight += 1;
        }
    }
    assert!(same >= 12 && in_flight >= 3, "{same} cuts between calls, {in_flight} within");
}

/// Who reasons in rounds asks as anyone does, and nothing is done twice.
#[tokio::test]
async fn calls_in_rounds_are_asked_about() {
    let chat = |cast: &Cast<'_>| {
        let ann = cast.assistant("Ann").tool(echo("echo")).tool(echo("mute"));
        let ann = React::new(ann.approval(Approval::of_tools(["echo"])));
        solo_chat("alone", ann, 1)
    };
    let script = r#"[
        {"Ann": {"calls": [
            {"tool": "echo", "args": {"text": "a"}, "id": "c1"}, {"tool": "mute", "args": {"text": "b"}, "id": "c2"}]}},
        {"Ann": {"calls": [{"tool": "echo", "args": {"text": "c"}, "id": "c3"}]}}, {"Ann": "So it is."}]"#;
    let answers = ["no, not a", "{\"text\": \"d\"}"];
    let text = print(&events_with(script, &|nth| answers[nth], chat).await);
    assert!(text.contains("#c1 failed: This call was not made: it was rejected. not a"), "{text}");
    assert!(text.contains("#c2: b") && text.contains("#c3: d | (Before it was made"), "{text}");
    assert!(text.contains("Ann says: So it is."), "{text}");
    // In text, too.
    let script = r#"[
        {"Ann": "Action: echo\nAction Input: {\"text\": \"a\"}"},
        {"Ann": {"say": "Final Answer: no.", "expect": {"last": "it was rejected. not a"}}}]"#;
    let chat = |cast: &Cast<'_>| {
        let ann = cast.assistant("Ann").tool(echo("echo")).approval(Approval::always());
        let ann = React::new(ann).in_text();
        solo_chat("alone", ann, 1)
    };
    let text = print(&events_with(script, &|_| "no, not a", chat).await);
    assert_eq!(text.matches(" asks: ").count(), 1, "{text}");
}

/// An agent that plans all calls at once asks about each, and the evidence is the outcomes.
#[tokio::test]
async fn calls_of_a_plan_are_asked_about() {
    let chat = |cast: &Cast<'_>| {
        let rewoo = Rewoo::new("Ann", cast.assistant("Planner"), cast.assistant("Solver")).unwrap();
        let rewoo = rewoo.tool(echo("echo")).approval(Approval::always());
        solo_chat("alone", rewoo, 1)
    };
    let script = r##"[
        {"Planner": "Plan: ask\n#E1 = echo[{\"text\": \"a\"}]\nPlan: ask again\n#E2 = echo[{\"text\": \"#E1\"}]"},
        {"Solver": {"say": "Well.", "expect": {"last": "#E2: This call was not made"}}}]"##;
    let answers = ["{\"text\": \"b\"}", "no"];
    let text = print(&events_with(script, &|nth| answers[nth], chat).await);
    assert!(text.contains(": b | (Before it was made") && text.contains("Ann says: Well."), "{text}");
    assert_eq!(text.matches(" asks: `Ann` calls `echo` with").count(), 2, "{text}");
}

/// So is who runs what a parser read.
#[tokio::test]
async fn what_a_parser_read_is_asked_about() {
    let call = json!({"name": "echo", "parameters": {"text": "a"}});
    let chat = move |cast: &Cast<'_>| {
        let ann = polylogue::Function::new("Ann", {
            let call = call.clone();
            move |_| {
                Ok(polylogue::Act::Say(vec![
                    polylogue_core::Part::text("I call."),
                    polylogue_core::Part::Note(call.clone()),
                ]))
            }
        });
        let _ = cast;
        let actions =
            ActionExecutor::new("Bob").unwrap().tool(echo("echo")).approval(Approval::of_tools(["echo"]));
        pair_chat("pair", ann.unwrap(), actions, 2)
    };
    let text = print(&events_with("[]", &|_| "no, too soon", &chat).await);
    assert!(text.contains("asks: `Ann` calls `echo` with:\\n\\n```\\n{\"text\":\"a\"}\\n"), "{text}");
    assert!(text.contains("Bob says: This call was not made: it was rejected. too soon"), "{text}");
}
