//! A person who is asked before a tool is called.

use std::time::Duration;

use polylogue::layers::code::CodeBlock;
use polylogue::layers::{AnswerTimeout, Coder, Executor, Stack};
use polylogue::tools::FunctionTool;
use polylogue::tools::approval::{Approval, ApprovalRequest, Decision};
use polylogue::{Chat, Tool};
use polylogue_core::{AnswerEffect, QuestionKind};
use serde_json::{Value, json};

use crate::beyond::stage::{Cast, events_with, print};
use crate::common::pair_chat;

mod own;

fn echo(name: &str) -> impl Tool + use<> {
    FunctionTool::new(name, "Says it again.", async |args: Value| Ok(args["text"].clone())).repeatable()
}

/// Ann calls, and Bob makes the calls; of those with `!` in them a person is asked.
fn pair(cast: &Cast<'_>) -> Chat {
    let executor = Executor::new()
        .tool(echo("echo"))
        .approval(Approval::when(|wanted: &ApprovalRequest| wanted.call.args.to_string().contains('!')));
    let ann = cast.assistant("Ann").suggest_tool(echo("echo").spec().clone());
    let ann = ann.suggest_tool(echo("gone").spec().clone());
    let bob = Stack::new("Bob").unwrap().then(executor).otherwise("Well.");
    pair_chat("pair", ann, bob, 2)
}

const CALLS: &str = r#"[{"Ann": {"calls": [
    {"tool": "echo", "args": {"text": "a!"}, "id": "c1"}, {"tool": "echo", "args": {"text": "b"}, "id": "c2"},
    {"tool": "gone", "args": {"text": "!"}, "id": "c3"}, {"tool": "echo", "args": {"text": "d!"}, "id": "c4"}]}}]"#;

/// What Bob says when the person answers so, whole and cut after every event; and the log.
async fn said(answers: &'static [&'static str]) -> (String, String) {
    let text = print(&events_with(CALLS, &|nth| answers[nth], pair).await);
    assert_eq!(text.matches(" is answered: ").count(), answers.len(), "{text}");
    let said = text.lines().find(|line| line.starts_with("Bob says: ")).unwrap_or_default();
    (said.to_owned(), text)
}

const GONE: &str = "gone #c3 of Ann: There is no tool `gone`. There is `echo`.";

#[tokio::test]
async fn an_approved_call_is_made() {
    let (bob, text) = said(&["yes", "YES"]).await;
    assert_eq!(
        bob,
        format!("Bob says: echo #c1 of Ann: a! | echo #c2 of Ann: b | {GONE} | echo #c4 of Ann: d!")
    );
    let asked = "Bob asks: `Ann` calls `echo` with:\\n\\n```\\n{\"text\":\"a!\"}\\n```\n";
    assert!(text.contains(asked), "{text}");
    // Nothing is run before all is decided.
    assert!(text.find("calls echo").unwrap() > text.rfind("is answered").unwrap(), "{text}");
}

#[tokio::test]
async fn calls_are_rejected_and_their_arguments_changed() {
    let (bob, text) = said(&["No: too loud.", "```json\n{\"text\": \"softly\"}\n```"]).await;
    let changed = "(Before it was made, its arguments were changed to: {\"text\":\"softly\"})";
    assert_eq!(
        bob,
        format!(
            "Bob says: echo #c1 of Ann: This call was not made: it was rejected. too loud. | echo #c2 of Ann: b | {GONE} | \
             echo #c4 of Ann: softly | {changed}"
        )
    );
    assert!(!text.contains("calls echo {\"text\":\"a!\"}"), "{text}");
}

#[tokio::test]
async fn what_is_unclear_is_asked_again_and_exit_ends_it() {
    let (bob, text) = said(&["hm", "```\n[1]\n```", "yes", "no"]).await;
    assert!(
        bob.contains("#c1 of Ann: a!")
            && bob.ends_with("#c4 of Ann: This call was not made: it was rejected."),
        "{bob}"
    );
    assert_eq!(text.matches("asks: The answer was unclear. `Ann` calls").count(), 2, "{text}");
    let (bob, text) = said(&["yes", " EXIT "]).await;
    assert!(bob.is_empty() && text.contains("closed (Bob left: said `exit`)"), "{text}");
    assert!(!text.contains("Bob calls"), "{text}");
}

#[tokio::test]
async fn an_empty_answer_is_no_approval_and_unclear_answers_reject_in_the_end() {
    let (bob, text) = said(&["", " ", "\n", "", "", "yes"]).await;
    assert_eq!(text.matches("asks: The answer was unclear. `Ann` calls").count(), 4, "{text}");
    assert!(
        bob.contains("#c1 of Ann: This call was not made: it was rejected. No answer was clear."),
        "{bob}"
    );
    assert!(!text.contains("calls echo {\"text\":\"a!\"}") && bob.ends_with("#c4 of Ann: d!"), "{text}");
}

#[tokio::test]
async fn a_rejection_runs_nothing_that_its_reason_quotes() {
    let answers =
        &["No, never that. I mean:\n```json\n{\"text\": \"x\"}\n```", "no\n\n~~~\n{\"text\": \"y\"}\n~~~"];
    let (bob, text) = said(answers).await;
    assert!(
        bob.contains("#c1 of Ann: This call was not made: it was rejected. never that. I mean:"),
        "{bob}"
    );
    assert!(bob.contains("#c4 of Ann: This call was not made: it was rejected. ~~~"), "{bob}");
    assert!(!text.contains("calls echo {\"text\":\"x\"}") && !text.contains("were changed to"), "{text}");
}

/// What is asked first about the call of `script`, in a chat in which it is rejected.
async fn asked(script: &Value, chat: impl Fn(&Cast<'_>) -> Chat) -> polylogue_core::Question {
    let events = events_with(&script.to_string(), &|_| "no", chat).await;
    let asked = events.iter().find_map(|event| match &event.body {
        polylogue_core::Body::InputRequired(question) => Some(question.clone()),
        _ => None,
    });
    asked.unwrap()
}

/// A script in which Ann calls `echo` with `args`.
fn calling(args: Value) -> Value {
    json!([{"Ann": {"calls": [{"tool": "echo", "args": args, "id": "c1"}]}}])
}

/// What is asked about a call with `args`, which is in the log with the question.
async fn question(args: Value) -> polylogue_core::Question {
    asked(&calling(args), pair).await
}

#[tokio::test]
async fn a_default_answer_to_an_approval_can_only_refuse() {
    for (answer, counts) in [
        ("yes", false),
        ("Go ahead.", false),
        ("{\"text\": \"mine\"}", false),
        ("```json\n{\"text\": \"mine\"}\n```", false),
        ("", false),
        ("no", true),
        ("No, not at night.", true),
        ("exit", true),
    ] {
        let chat = |cast: &Cast<'_>| {
            let executor = Executor::new().tool(echo("echo")).approval(Approval::always());
            let bob = Stack::new("Bob").unwrap().then(executor).otherwise("Well.");
            pair_chat(
                "pair",
                cast.assistant("Ann").suggest_tool(echo("echo").spec().clone()),
                AnswerTimeout::new(bob, Duration::from_secs(3600), answer),
                2,
            )
        };
        let question = asked(&calling(json!({"text": "a"})), chat).await;
        let default = question.default.map(|default| default.text.to_string());
        assert_eq!(default.as_deref(), counts.then_some(answer), "{answer:?}");
    }
}

#[tokio::test]
async fn what_a_rule_denies_runs_as_no_edit_either() {
    let decide = |text: &str| match text.contains("rm ") {
        true => Decision::Deny("A rule of the user denies it.".into()),
        false => Decision::Ask,
    };
    let again = " asks: That change was refused: A rule of the user denies it. `";
    let calls = move |cast: &Cast<'_>| {
        let approval = Approval::by(move |wanted: &ApprovalRequest| decide(&wanted.call.args.to_string()));
        let executor = Executor::new().tool(echo("echo")).approval(approval);
        pair_chat(
            "pair",
            cast.assistant("Ann").suggest_tool(echo("echo").spec().clone()),
            Stack::new("Bob").unwrap().then(executor).otherwise("Well."),
            2,
        )
    };
    let answers = ["{\"text\": \"rm x\"}", "{\"text\": \"ls\"}"];
    let script = calling(json!({"text": "a"})).to_string();
    let text = print(&events_with(&script, &|nth| answers[nth], calls).await);
    assert_eq!(text.matches(again).count(), 1, "{text}");
    assert!(
        text.contains("calls echo {\"text\":\"ls\"}") && !text.contains("calls echo {\"text\":\"rm"),
        "{text}"
    );

    let code = move |cast: &Cast<'_>| {
        let shell = async |args: Value| Ok(args["code"].clone());
        let shell = FunctionTool::new("shell", "Runs it.", shell).repeatable();
        let coder =
            Coder::new().tool(shell).approval(Approval::by(move |block: &CodeBlock| decide(&block.code)));
        pair_chat("pair", cast.assistant("Ann"), Stack::new("Bob").unwrap().then(coder).otherwise("Well."), 2)
    };
    let answers = ["```sh\nrm x\n```", "```sh\nls\n```"];
    let script = json!([{"Ann": "```sh\npwd\n```"}]).to_string();
    let text = print(&events_with(&script, &|nth| answers[nth], code).await);
    assert_eq!(text.matches(again).count(), 1, "{text}");
    assert!(
        text.contains("calls shell {\"code\":\"ls\\n\"}") && !text.contains("calls shell {\"code\":\"rm"),
        "{text}"
    );
}

#[tokio::test]
async fn a_question_shows_the_exact_arguments_whole_and_nothing_invisible() {
    let reported = "echo `id` [ok](http://a.example/) **!**\u{202e}\u{200b}\u{1b}[2J\u{9b}1m\u{e0041}";
    let question = question(serde_json::json!({"text": reported})).await;
    let shown =
        "{\"text\":\"echo `id` [ok](http://a.example/) **!**⟨U+202E⟩⟨U+200B⟩\\u001b[2J⟨U+009B⟩1m⟨U+E0041⟩\"}";
    assert!(question.text.lines().any(|line| line == shown), "{}", question.text);
    assert_eq!(
        question.call.unwrap().args,
        serde_json::json!({"text": reported}),
        "the log has it unchanged"
    );
    let long: Vec<String> = (0..300).map(|nth| format!("line {nth}!")).collect();
    let question = self::question(serde_json::json!({"text": long})).await;
    assert!(question.text.contains("with (304 lines, all of them shown):"), "{}", question.text);
    assert!(long.iter().all(|line| question.text.contains(line.as_str())));
    assert!(question.text.ends_with("\n```"), "what can be answered is data: {}", question.text);
    let choices = question.choices.iter().map(|choice| (&*choice.answer, choice.effect));
    assert!(choices.eq([
        ("yes", AnswerEffect::Approve),
        ("no", AnswerEffect::Reject),
        ("exit", AnswerEffect::End)
    ]));
    assert_eq!(question.kind, QuestionKind::Approval);
}
