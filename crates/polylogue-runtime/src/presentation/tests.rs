//! Events in, items out.

use expect_test::{Expect, expect};
use polylogue_core::{
    Body, Choice, Chooser, Digest, Event, Message, ModelReply, Name, Opening, Part, Path, Question,
    StopReason, Timestamp, ToolCall, ToolResult, TurnRequest, text_of,
};
use serde_json::json;

use super::*;

fn name(text: &str) -> Name {
    Name::new(text).unwrap()
}

fn replied(who: &str, parts: Vec<Part>) -> Body {
    let request = Digest::try_from("0".repeat(32)).unwrap();
    Body::ModelReplied(ModelReply::new(name(who), "script:test", request, parts))
}

fn events(bodies: Vec<Body>) -> Vec<Event> {
    let event = |(seq, body): (usize, Body)| {
        let seq = u64::try_from(seq).unwrap();
        Event { seq, chat: Path::root(), time: Timestamp(seq * 1000), ran_ms: 0, inbox: None, body }
    };
    bodies.into_iter().enumerate().map(event).collect()
}

/// Each item in a line.
fn line(item: &Item) -> String {
    match &item.kind {
        Kind::ChatOpened { opening, task } => {
            format!("opened with {}, task {task:?}", opening.participants.len())
        }
        Kind::TurnStarted { request, is_announced: true } => format!("turn of {}, announced", request.who),
        Kind::TurnStarted { request, .. } => format!("turn of {}", request.who),
        Kind::TurnEnded { who } => format!("end of the turn of {who}"),
        Kind::ModelReplied { who, .. } => format!("reply to {who}"),
        Kind::FellBack { who, model, asked, .. } => format!("{model} replies to {who} instead of {asked}"),
        Kind::PromptCacheMissed { who, change } => format!("{who}: {change}"),
        Kind::SealsDropped { who, model, bytes } => format!("{bytes} bytes of {model} for {who} are dropped"),
        Kind::CallWritten { who, model, .. } => format!("{model} writes a call to {who}"),
        Kind::Reasoning { who, text, .. } => format!("{who} thinks {text:?}"),
        Kind::Narration { who, text, .. } => format!("{who} narrates {text:?}"),
        Kind::Draft { who, text } => format!("{who} drafts {text:?}"),
        Kind::Prompted { who, text } => format!("{who} is prompted {text:?}"),
        Kind::ToolCalled { who, call, is_code, is_requested } => {
            format!("{who} calls {}, code {is_code}, requested {is_requested}", call.tool)
        }
        Kind::ToolReturned(returned) => {
            let result = result_text(&returned.result);
            format!(
                "{} returned {result:?} after {:?}, {:?}",
                returned.call.tool, returned.took, returned.shown
            )
        }
        Kind::Message(said) => {
            format!(
                "{} says {:?}, known {}, result {}",
                said.message.from,
                text_of(&said.parts),
                said.is_shown(),
                said.result_of.is_some()
            )
        }
        Kind::PrivateReply { who, text } => format!("{who} writes privately {text:?}"),
        Kind::Decision { who, text } => format!("{who} decides {text:?}"),
        Kind::InputRequired(question) => format!("{} is asked", question.who),
        Kind::InputProvided { to, text, is_repeated, .. } => {
            format!("answer for {to} {text:?}, repeated {is_repeated}")
        }
        Kind::Failed { who, error } => format!("{who} failed: {}", error.message),
        Kind::Notice(body) => format!("{body:?}"),
        Kind::Remembered { who, text } => format!("{who} remembers {text:?}"),
        Kind::ChatClosed { summary, source, .. } => format!("closed with {summary:?}, {source:?}"),
        Kind::Reopened => "reopened".into(),
        Kind::CallPending { who, call } => format!("{who} waits for {}", call.tool),
    }
}

fn check(detail: Detail, bodies: Vec<Body>, expected: &Expect) {
    let lines: Vec<String> = Presentation::of(detail, &events(bodies)).iter().map(line).collect();
    expected.assert_eq(&lines.join("\n"));
}

fn opened() -> Body {
    let messages = vec![Message::new(Name::user(), "Add 1 and 2.")];
    let participants = vec![name("Ann"), name("Bob")];
    Body::Opened(Opening { participants, task: "Add 1 and 2.".into(), messages, ..Opening::default() })
}

fn turn(who: &str) -> Body {
    Body::TurnStarted { turns: vec![TurnRequest::to_all(name(who))] }
}

fn call(id: &str, tool: &str) -> ToolCall {
    ToolCall { id: id.into(), tool: tool.into(), args: json!({}) }
}

fn said(who: &str, text: &str) -> Body {
    Body::Message(Message::new(name(who), text))
}

/// A reply becomes a message, and the message the summary.
#[test]
fn a_text_that_three_events_have_is_in_one_item() {
    let closed = Body::Closed { reason: StopReason::Finished, summary: "3".into() };
    let (called, result) = (call("c", "add"), ToolResult::done("3"));
    let bodies = vec![
        opened(),
        turn("Ann"),
        replied(
            "Ann",
            vec![Part::Thought("Hm.".into()), Part::text("I add."), Part::ToolCall(called.clone())],
        ),
        Body::ToolCalled { who: name("Ann"), call: called },
        Body::ToolReturned { who: name("Ann"), id: "c".into(), result },
        replied("Ann", vec![Part::text("3")]),
        said("Ann", "3"),
        closed,
    ];
    check(
        Detail::Brief,
        bodies,
        &expect![[r#"
            opened with 2, task None
            user says "Add 1 and 2.", known false, result false
            turn of Ann
            reply to Ann
            Ann thinks "Hm."
            Ann narrates "I add."
            Ann calls add, code false, requested false
            add returned "3" after 1s, Here
            reply to Ann
            Ann says "3", known false, result false
            end of the turn of Ann
            closed with "3", LastMessage"#]],
    );
}

#[test]
fn the_end_of_a_pause_is_shown_and_a_request_to_continue_without_one_is_not() {
    check(
        Detail::Brief,
        vec![opened(), Body::Resumed, Body::Paused, Body::Resumed, Body::Resumed],
        &expect![[r#"
            opened with 2, task None
            user says "Add 1 and 2.", known false, result false
            Paused
            Resumed"#]],
    );
}

/// A tool that ends the turn returns the message; the note of a handoff is posted after another message, and its call announces
/// the next turn.
#[test]
fn a_message_that_is_the_result_of_a_call_is_marked() {
    let handed = |who: &str| {
        let choice = Choice { of: Vec::new(), by: Chooser::Handoff, reply: None };
        Body::TurnStarted { turns: vec![TurnRequest::to_all(name(who)).with_choice(choice)] }
    };
    let first = call("c", "transfer_to_Bob");
    let second = ToolCall { args: json!({"note": "Look."}), ..call("d", "transfer_to_Ann") };
    let returned = |who: &str, id: &str, text: &str| Body::ToolReturned {
        who: name(who),
        id: id.into(),
        result: ToolResult::done(text),
    };
    let bodies = vec![
        turn("Ann"),
        replied("Ann", vec![Part::ToolCall(first.clone())]),
        Body::ToolCalled { who: name("Ann"), call: first },
        returned("Ann", "c", "I hand over to Bob."),
        said("Ann", "I hand over to Bob."),
        handed("Bob"),
        replied("Bob", vec![Part::text("Hello."), Part::ToolCall(second.clone())]),
        Body::ToolCalled { who: name("Bob"), call: second },
        returned("Bob", "d", "Look."),
        said("Bob", "Hello."),
        Body::Posted(Message::new(name("Bob"), "Look.")),
        handed("Ann"),
        said("Ann", "Look."),
        handed("Bob"),
    ];
    check(
        Detail::Brief,
        bodies,
        &expect![[r#"
            turn of Ann
            reply to Ann
            Ann calls transfer_to_Bob, code false, requested false
            transfer_to_Bob returned "I hand over to Bob." after 1s, Here
            Ann says "I hand over to Bob.", known false, result true
            end of the turn of Ann
            turn of Bob, announced
            reply to Bob
            Bob narrates "Hello."
            Bob calls transfer_to_Ann, code false, requested false
            transfer_to_Ann returned "Look." after 1s, Here
            Bob says "", known true, result false
            end of the turn of Bob
            Bob says "Look.", known false, result true
            turn of Ann, announced
            Ann says "Look.", known false, result false
            end of the turn of Ann
            turn of Bob"#]],
    );
}

#[test]
fn drafts_and_private_texts_are_whole_or_as_short_as_can_be() {
    let ask = |text: &str| Body::Prompted { who: name("Ann"), text: text.into() };
    let private = Body::TurnStarted { turns: vec![TurnRequest::private(name("Ann"), "Who is next?")] };
    let choice = Message::new(name("Ann"), "Bob").to(Audience::private());
    let bodies = || {
        vec![
            private.clone(),
            replied("Ann", vec![Part::text("Zoe")]),
            ask("There is no Zoe."),
            replied("Ann", vec![Part::text("Bob")]),
            Body::Message(choice.clone()),
            Body::Closed { reason: StopReason::Finished, summary: "Bob".into() },
        ]
    };
    check(
        Detail::Brief,
        bodies(),
        &expect![[r#"
            turn of Ann
            reply to Ann
            reply to Ann
            end of the turn of Ann
            closed with "Bob", New"#]],
    );
    check(
        Detail::Whole,
        bodies(),
        &expect![[r#"
            turn of Ann
            reply to Ann
            Ann drafts "Zoe"
            Ann is prompted "There is no Zoe."
            reply to Ann
            Ann says "Bob", known false, result false
            end of the turn of Ann
            closed with "Bob", LastMessage"#]],
    );
}

#[test]
fn results_of_code_are_with_their_message_or_late() {
    let code = call(&format!("{}0-0", polylogue::layers::code::CALL_ID), "python");
    let ran = |result: ToolResult| {
        let id = code.id.clone();
        vec![
            turn("Bob"),
            Body::ToolCalled { who: name("Bob"), call: code.clone() },
            Body::ToolReturned { who: name("Bob"), id, result },
        ]
    };
    let result = ToolResult::done("exitcode: 0 (execution succeeded)\nCode output: 3");
    let reply = Message {
        parts: polylogue::layers::code::reply_of(std::slice::from_ref(&result)),
        ..Message::new(name("Bob"), "")
    };
    let with_message = || [ran(result.clone()), vec![Body::Message(reply.clone())]].concat();
    check(
        Detail::Brief,
        with_message(),
        &expect![[r#"
        turn of Bob
        Bob calls python, code true, requested false
        python returned "exitcode: 0 (execution succeeded)\nCode output: 3" after 1s, InMessage
        Bob says "exitcode: 0 (execution succeeded)\nCode output: 3", known false, result false
        end of the turn of Bob"#]],
    );
    check(
        Detail::Whole,
        with_message(),
        &expect![[r#"
        turn of Bob
        Bob calls python, code true, requested false
        python returned "exitcode: 0 (execution succeeded)\nCode output: 3" after 1s, Here
        Bob says "", known true, result false
        end of the turn of Bob"#]],
    );
    check(
        Detail::Brief,
        [ran(result), vec![said("Bob", "I say no more.")]].concat(),
        &expect![[r#"
        turn of Bob
        Bob calls python, code true, requested false
        python returned "exitcode: 0 (execution succeeded)\nCode output: 3" after 1s, InMessage
        python returned "exitcode: 0 (execution succeeded)\nCode output: 3" after 0ns, Late
        Bob says "I say no more.", known false, result false
        end of the turn of Bob"#]],
    );
}

#[test]
fn a_message_from_outside_is_shown_and_ends_no_turn() {
    let sent = Body::Sent(Message::new(Name::user(), "Hurry up."));
    check(
        Detail::Brief,
        vec![turn("Bob"), sent, said("Bob", "Done.")],
        &expect![[r#"
        turn of Bob
        user says "Hurry up.", known false, result false
        Bob says "Done.", known false, result false
        end of the turn of Bob"#]],
    );
}

#[test]
fn an_answer_that_becomes_a_message_is_marked_and_open_calls_come_last() {
    let bodies = vec![
        turn("Bob"),
        Body::InputRequired(Question::new(name("Bob"), "Well?")),
        Body::InputProvided { to: name("Bob"), text: "Yes.".into(), by: Default::default() },
        said("Bob", "Yes."),
        turn("Ann"),
        Body::ToolCalled { who: name("Ann"), call: call("c", "add") },
    ];
    check(
        Detail::Brief,
        bodies,
        &expect![[r#"
        turn of Bob
        Bob is asked
        answer for Bob "Yes.", repeated true
        Bob says "Yes.", known false, result false
        end of the turn of Bob
        turn of Ann
        Ann calls add, code false, requested false
        Ann waits for add"#]],
    );
}

fn private(who: &str, prompt: &str) -> Body {
    Body::TurnStarted { turns: vec![TurnRequest::private(name(who), prompt)] }
}

fn private_reply(who: &str, text: &str) -> Body {
    Body::Message(Message::new(name(who), text).to(Audience::private()))
}

fn selected(who: &str, by: &str, reply: &str) -> Body {
    let choice = Choice { of: Vec::new(), by: Chooser::Agent(name(by)), reply: Some(reply.into()) };
    Body::TurnStarted { turns: vec![TurnRequest::to_all(name(who)).with_choice(choice)] }
}

/// A planner writes facts, a plan, the message with both, a ledger, the instruction in it, and selects the speaker in it.
#[test]
fn a_plan_is_in_the_message_with_it_and_a_ledger_in_what_follows_from_it() {
    let posted = |text: &str| Body::Posted(Message::new(name("Lead"), text));
    let ledger = r#"{"next_speaker": {"answer": "Bob"}, "instruction": {"answer": "Say \"7\"."}}"#;
    let bodies = vec![
        private("Lead", "What is known?"),
        replied("Lead", vec![Part::text("Seven.")]),
        private_reply("Lead", "Seven."),
        private("Lead", "Plan!"),
        private_reply("Lead", "1. Bob\n2. Ann"),
        posted("Known: Seven.\nPlan:\n1. Bob\n2. Ann"),
        private("Lead", "Judge!"),
        private_reply("Lead", ledger),
        posted("Say \"7\"."),
        selected("Bob", "Lead", ledger),
        said("Bob", "7"),
    ];
    check(
        Detail::Brief,
        bodies,
        &expect![[r#"
            turn of Lead
            reply to Lead
            end of the turn of Lead
            turn of Lead
            end of the turn of Lead
            Lead says "Known: Seven.\nPlan:\n1. Bob\n2. Ann", known false, result false
            turn of Lead
            end of the turn of Lead
            Lead says "Say \"7\".", known false, result false
            turn of Bob
            Bob says "7", known false, result false
            end of the turn of Bob"#]],
    );
}

/// A planner writes the last ledger, sums up, and the chat ends.
#[test]
fn the_last_ledger_is_in_the_reason_for_which_the_chat_ends() {
    let ledger = r#"{"is_request_satisfied": {"answer": true}, "instruction": {"answer": ""}}"#;
    let closed_by = |reason: StopReason| {
        let bodies = vec![
            private("Lead", "Judge!"),
            private_reply("Lead", ledger),
            private("Lead", "Sum up!"),
            private_reply("Lead", "It is 7."),
            Body::Closed { reason, summary: "It is 7.".into() },
        ];
        let items = Presentation::of(Detail::Brief, &events(bodies));
        items.iter().filter(|item| matches!(item.kind, Kind::PrivateReply { .. })).count()
    };
    let satisfied = |by: &str| polylogue::stop::LibraryStopReason::RequestSatisfied { by: name(by) }.into();
    assert_eq!(closed_by(satisfied("Lead")), 0);
    assert_eq!([closed_by(satisfied("Bob")), closed_by(StopReason::Finished)], [1, 1]);
}

#[test]
fn private_replies_without_an_effect_that_shows_them_are_shown_in_their_order() {
    let bodies = vec![
        private("Ann", "Vote!"),
        private_reply("Ann", "red"),
        private("Bob", "Vote!"),
        private_reply("Bob", "blue"),
        private("Lead", "Think!"),
        private_reply("Lead", "Hm."),
        private("Lead", "Decide!"),
        private_reply("Lead", "blue, then"),
        turn("Ann"),
        said("Ann", "So blue."),
        private("Lead", "Sum up!"),
        private_reply("Lead", "We took blue."),
        Body::Closed { reason: StopReason::Finished, summary: "We took blue.".into() },
    ];
    check(
        Detail::Brief,
        bodies,
        &expect![[r#"
        turn of Ann
        end of the turn of Ann
        Ann writes privately "red"
        turn of Bob
        end of the turn of Bob
        Bob writes privately "blue"
        turn of Lead
        end of the turn of Lead
        turn of Lead
        end of the turn of Lead
        Lead writes privately "Hm."
        Lead writes privately "blue, then"
        turn of Ann
        Ann says "So blue.", known false, result false
        end of the turn of Ann
        turn of Lead
        end of the turn of Lead
        closed with "We took blue.", New"#]],
    );
}

/// The result of a nested chat becomes the message of the participant that ran it, and the summary of the chat around.
#[test]
fn what_a_nested_chat_passes_on_is_marked_as_repeated() {
    let inner = Path::root().child(&name("Ann"), 1);
    let at = |at: &Path, body: Body| (at.clone(), body);
    let nested = Opening {
        participants: vec![name("Cy")],
        messages: vec![Message::new(Name::user(), "Add 1 and 2.")],
        ..Opening::default()
    };
    let closed = |summary: &str| Body::Closed { reason: StopReason::Finished, summary: summary.into() };
    let root = Path::root();
    let bodies = [
        at(&root, opened()),
        at(&root, turn("Ann")),
        at(&inner, Body::Opened(nested)),
        at(&inner, turn("Cy")),
        at(&inner, said("Cy", "It is 3. DONE")),
        at(&inner, closed("It is 3.")),
        at(&root, said("Ann", "It is 3.")),
        at(&root, turn("Bob")),
        at(&root, said("Bob", "Add 1 and 2.")),
        at(&root, closed("It is 3.")),
    ];
    let mut log = events(bodies.iter().map(|(_, body)| body.clone()).collect());
    log.iter_mut().zip(&bodies).for_each(|(event, (at, _))| event.chat = at.clone());
    for detail in [Detail::Brief, Detail::Whole] {
        let items = Presentation::of(detail, &log);
        let messages = items.iter().filter_map(|item| match &item.kind {
            Kind::Message(said) => Some((said.message.text().into_owned(), said.repeats)),
            _ => None,
        });
        let expected = [
            ("Add 1 and 2.", false),
            ("Add 1 and 2.", true),
            ("It is 3. DONE", false),
            ("It is 3.", true),
            ("Add 1 and 2.", false),
        ];
        assert_eq!(messages.collect::<Vec<_>>(), expected.map(|(text, repeats)| (text.to_owned(), repeats)));
        let sources: Vec<_> = items
            .iter()
            .filter_map(|item| match &item.kind {
                Kind::ChatClosed { source, .. } => Some(source.clone()),
                _ => None,
            })
            .collect();
        assert_eq!(sources, [SummarySource::LastMessage, SummarySource::EarlierMessage(name("Ann"))]);
    }
}

/// Once for each agent and model; a script has no server.
#[test]
fn a_call_that_a_model_wrote_as_text_is_shown_with_what_its_server_needs() {
    let by = |who: &str, model: &str, parts: Vec<Part>| match replied(who, parts) {
        Body::ModelReplied(reply) => Body::ModelReplied(ModelReply { model: model.into(), ..reply }),
        other => other,
    };
    let wrote = || Part::text("I look.\n<tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n</tool_call>");
    let log = events(vec![
        opened(),
        by("Ann", "vllm:m", vec![wrote()]),
        by("Ann", "vllm:m", vec![wrote()]),
        by("Ann", "house:m", vec![wrote()]),
        by("Bob", "vllm:m", vec![wrote()]),
        by("Bob", "house:m", vec![Part::text("It is 3.")]),
        by("Bob", "sglang:m", vec![wrote(), Part::ToolCall(call("c", "add"))]),
        by("Bob", "script:test", vec![wrote()]),
    ]);
    let items = Presentation::of(Detail::Brief, &log);
    let notes: Vec<String> =
        items.iter().filter(|item| matches!(item.kind, Kind::CallWritten { .. })).map(line).collect();
    let expected =
        ["vllm:m writes a call to Ann", "house:m writes a call to Ann", "vllm:m writes a call to Bob"];
    assert_eq!(notes, expected);
}
