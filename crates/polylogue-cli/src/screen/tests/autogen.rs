//! The layout of AutoGen.

use expect_test::expect;
use polylogue::stop::LibraryStopReason;
use polylogue_core::{Choice, Chooser, ExecutedCall, Media, Question, StopReason};

use super::*;

fn shown(events: &[(&str, Body)]) -> String {
    document::autogen("club", &log(events), false).to_string()
}

fn log(events: &[(&str, Body)]) -> Vec<Event> {
    let event = |(seq, (at, body)): (usize, &(&str, Body))| Event {
        seq: seq as u64,
        chat: serde_json::from_value((*at).into()).unwrap(),
        time: Timestamp(0),
        ran_ms: 0,
        inbox: None,
        body: body.clone(),
    };
    events.iter().enumerate().map(event).collect()
}

fn say(from: &str, parts: Vec<Part>) -> Body {
    Body::Message(Message { from: name(from), to: Audience::All, parts, outside: Vec::new() })
}

fn call(id: &str, tool: &str, args: serde_json::Value) -> Part {
    Part::ToolCall(ToolCall { id: id.into(), tool: tool.into(), args })
}

fn outcome(to: &str, id: &str, text: &str) -> Part {
    let outcome = ToolResult::done(text);
    Part::ToolResult(ExecutedCall { to: name(to), id: id.into(), tool: "add".into(), result: outcome })
}

fn ended(summary: &str) -> Body {
    Body::Closed { reason: StopReason::Finished, summary: summary.into() }
}

fn answered(to: &str, text: &str) -> Body {
    Body::InputProvided { to: name(to), text: text.into(), by: Default::default() }
}

fn asked(who: &str, text: &str) -> Body {
    Body::InputRequired(Question::new(name(who), text))
}

/// Item 100: header, separator, what is flattened.
#[test]
fn two_agents() {
    let picture = Part::Media(Media { media_type: "image/png".into(), url: "https://h/p.png".into() });
    let look = vec![Part::text("Look:\r\n"), picture, Part::text(" nice")];
    let events = [
        ("", opened(&["Ann", "Bob"], "Ann", "What is\n2 + 2?")),
        ("", turn_started("Bob")),
        ("", sampled("Bob", look.clone())),
        ("", say("Bob", look)),
        ("", turn_started("Ann")),
        ("", say("Ann", vec![Part::text("")])),
        ("", ended("Look")),
    ];
    expect![[r#"
        Ann (to Bob):

        What is
        2 + 2?

        --------------------------------------------------------------------------------
        Bob (to Ann):

        Look:
        <image> nice

        --------------------------------------------------------------------------------
        Ann (to Bob):



        --------------------------------------------------------------------------------
    "#]]
    .assert_eq(&shown(&events));
}

/// Item 100: the star lines of calls and their results, in messages.
#[test]
fn calls_in_messages() {
    let calls = vec![call("c1", "add", json!({"a": 1})), call("c2", "add", json!("{broken"))];
    let both = [vec![Part::text("I add.")], calls].concat();
    let events = [
        ("", opened(&["Ann", "Bob"], "Bob", "Add")),
        ("", turn_started("Ann")),
        ("", sampled("Ann", both.clone())),
        ("", say("Ann", both)),
        ("", turn_started("Bob")),
        ("", called("Bob", "c1", "add", json!({"a": 1}))),
        ("", returned("Bob", "c1", ToolResult::done("2"))),
        ("", say("Bob", vec![outcome("Ann", "c1", "2"), outcome("Ann", "c2", "Error: no JSON")])),
        ("", turn_started("Ann")),
        ("", say("Ann", vec![call("c3", "add", json!({}))])),
        ("", turn_started("Bob")),
        ("", say("Bob", vec![outcome("Ann", "c3", "USER INTERRUPTED"), Part::text("Leave it")])),
    ];
    expect![[r#"
        Bob (to Ann):

        Add

        --------------------------------------------------------------------------------
        Ann (to Bob):

        I add.
        ***** Suggested tool call (c1): add *****
        Arguments:
        {"a":1}
        *****************************************
        ***** Suggested tool call (c2): add *****
        Arguments:
        {broken
        *****************************************

        --------------------------------------------------------------------------------

        >>>>>>>> EXECUTING FUNCTION add...
        Bob (to Ann):

        Bob (to Ann):

        ***** Response from calling tool (c1) *****
        2
        *******************************************

        --------------------------------------------------------------------------------
        Bob (to Ann):

        ***** Response from calling tool (c2) *****
        Error: no JSON
        *******************************************

        --------------------------------------------------------------------------------
        Ann (to Bob):

        ***** Suggested tool call (c3): add *****
        Arguments:
        {}
        *****************************************

        --------------------------------------------------------------------------------
        Bob (to Ann):

        Bob (to Ann):

        ***** Response from calling tool (c3) *****
        USER INTERRUPTED
        *******************************************

        --------------------------------------------------------------------------------
        Leave it

        --------------------------------------------------------------------------------
    "#]]
    .assert_eq(&shown(&events).replace("Arguments: \n", "Arguments:\n"));
}

/// Item 100: the calls that an agent makes by itself, within its turn.
#[test]
fn calls_within_a_turn() {
    let wants = vec![Part::text("I look."), call("c1", "look", json!({}))];
    let events = [
        ("", opened(&["Ann", "Bob"], "user", "Go")),
        ("", turn_started("Ann")),
        ("", sampled("Ann", wants)),
        ("", called("Ann", "c1", "look", json!({}))),
        ("", returned("Ann", "c1", ToolResult::failed("dark"))),
        ("", sampled("Ann", vec![Part::text("It is dark.")])),
        ("", said("Ann", "It is dark.")),
    ];
    expect![[r#"
        user (to club):

        Go

        --------------------------------------------------------------------------------
        Ann (to Ann):

        I look.
        ***** Suggested tool call (c1): look *****
        Arguments:
        {}
        ******************************************

        --------------------------------------------------------------------------------

        >>>>>>>> EXECUTING FUNCTION look...
        Ann (to Ann):

        ***** Response from calling tool (c1) *****
        dark
        *******************************************

        --------------------------------------------------------------------------------
        Ann (to Bob):

        It is dark.

        --------------------------------------------------------------------------------
    "#]]
    .assert_eq(&shown(&events).replace("Arguments: \n", "Arguments:\n"));
}

/// Item 100: what a person did who was asked.
#[test]
fn people() {
    let events = [
        ("", opened(&["Ann", "Bob"], "Bob", "Hi")),
        ("", turn_started("Ann")),
        ("", asked("Ann", "Feedback to Bob: ")),
        ("", answered("Ann", "")),
        ("", sampled("Ann", vec![Part::text("Hello")])),
        ("", said("Ann", "Hello")),
        ("", turn_started("Bob")),
        ("", said("Bob", "And now?")),
        ("", turn_started("Ann")),
        ("", asked("Ann", "Feedback to Bob: ")),
        ("", answered("Ann", "Stop it")),
        ("", said("Ann", "Stop it")),
        ("", turn_started("Bob")),
        ("", Body::Left { who: name("Bob"), why: "said `exit`".into() }),
        ("", turn_started("Ann")),
        ("", asked("Ann", "Feedback to Bob: ")),
    ];
    expect![[r#"
        Bob (to Ann):

        Hi

        --------------------------------------------------------------------------------
        Feedback to Bob:

        >>>>>>>> NO HUMAN INPUT RECEIVED.

        >>>>>>>> USING AUTO REPLY...
        Ann (to Bob):

        Hello

        --------------------------------------------------------------------------------
        Bob (to Ann):

        And now?

        --------------------------------------------------------------------------------
        Feedback to Bob: Stop it
        Ann (to Bob):

        Stop it

        --------------------------------------------------------------------------------

        >>>>>>>> Bob leaves: said `exit`
        Feedback to Bob:
    "#]]
    .assert_eq(&shown(&events).replace(": \n", ":\n"));
}

/// Item 100: who skips a question that ends the conversation gets no reply from the agent; nor does who passes.
#[test]
fn nothing_typed_is_no_automatic_reply_where_it_ends_the_turn() {
    let after = |end: Body| {
        let asked = [
            ("", turn_started("Ann")),
            ("", asked("Ann", "Feedback: ")),
            ("", answered("Ann", "")),
            ("", end),
        ];
        shown(&asked)
    };
    let who = name("Ann");
    let ended = StopReason::from(LibraryStopReason::Mentioned { text: "TERMINATE".into(), by: name("Bob") });
    assert!(after(Body::Stopped { who: who.clone(), reason: ended }).ends_with("NO HUMAN INPUT RECEIVED.\n"));
    assert!(after(Body::Passed { who: who.clone() }).ends_with("NO HUMAN INPUT RECEIVED.\n"));
    let nothing = StopReason::from(LibraryStopReason::NoReply { who: who.clone() });
    assert!(after(Body::Stopped { who, reason: nothing }).ends_with("USING AUTO REPLY...\n"));
}

/// Item 100: a group says who is next and speaks to the group; private turns are not part of it.
#[test]
fn groups() {
    let choice = Choice { of: vec![name("Bob")], by: Chooser::Agent(name("Pick")), reply: None };
    let pick = TurnRequest::private(name("Pick"), "Who?");
    let aside = Message {
        from: name("Pick"),
        to: Audience::private(),
        parts: vec![Part::text("Bob")],
        outside: Vec::new(),
    };
    let events = [
        ("", opened(&["Ann", "Bob", "Cy"], "Ann", "Hi")),
        ("", Body::TurnStarted { turns: vec![pick] }),
        ("", sampled("Pick", vec![Part::text("Bob")])),
        ("", Body::Message(aside)),
        ("", Body::TurnStarted { turns: vec![TurnRequest::to_all(name("Bob")).with_choice(choice)] }),
        ("", said("Bob", "Hello")),
        ("", Body::Cleared { who: name("Ann"), of: None, keep: 2 }),
        ("", turn_started("Cy")),
        ("", Body::Passed { who: name("Cy") }),
    ];
    expect![[r#"
        Ann (to club):

        Hi

        --------------------------------------------------------------------------------

        Next speaker: Bob

        Bob (to club):

        Hello

        --------------------------------------------------------------------------------
        Clearing history for all agents except last 2 messages.

        Next speaker: Cy

    "#]]
    .assert_eq(&shown(&events));
}

/// Item 100: chats in a sequence begin with a banner, and nothing else is shown of the sequence; a chat that an agent holds
/// to find its reply does so, too, and the reply follows.
#[test]
fn chats_within_chats() {
    let inner = |summary: &str| {
        let at = "/first.1";
        [
            (at, opened(&["Ann"], "user", "Add 1")),
            (at, turn_started("Ann")),
            (at, said("Ann", summary)),
            (at, ended(summary)),
        ]
    };
    let before = [("", opened(&["first", "second", "third"], "user", "1, 2")), ("", turn_started("first"))];
    let sequence =
        [&before[..], &inner("2, 3"), &[("", said("first", "2, 3")), ("", ended("2, 3"))]].concat();
    expect![[r#"

        ********************************************************************************
        Starting a new chat....

        ********************************************************************************
        user (to Ann):

        Add 1

        --------------------------------------------------------------------------------
        Ann (to user):

        2, 3

        --------------------------------------------------------------------------------
    "#]]
    .assert_eq(&shown(&sequence));

    let nested = [
        &[("", opened(&["first", "Bob"], "Bob", "Add")), ("", turn_started("first"))],
        &inner("2, 3")[..],
        &[
            ("", said("first", "2, 3")),
            ("", turn_started("Bob")),
            ("", said("Bob", "Thanks")),
            ("", ended("Thanks")),
        ],
    ];
    expect![[r#"
        Bob (to first):

        Add

        --------------------------------------------------------------------------------

        ********************************************************************************
        Starting a new chat....

        ********************************************************************************
        user (to Ann):

        Add 1

        --------------------------------------------------------------------------------
        Ann (to user):

        2, 3

        --------------------------------------------------------------------------------
        first (to Bob):

        2, 3

        --------------------------------------------------------------------------------
        Bob (to first):

        Thanks

        --------------------------------------------------------------------------------
    "#]]
    .assert_eq(&shown(&nested.concat()));
}

#[test]
fn a_chat_that_continues_another_does_not_show_it_again() {
    let messages = [("boss", "14"), ("adder", "15"), ("boss", "Again")]
        .map(|(from, text)| Message::new(name(from), text));
    let with = vec![name("boss"), name("adder")];
    let again = Opening {
        participants: with,
        task: "Again".into(),
        messages: messages.to_vec(),
        ..Opening::default()
    };
    let events = [
        ("", opened(&["one", "two"], "user", "Add")),
        ("", turn_started("one")),
        ("/one.1", opened(&["boss", "adder"], "boss", "14")),
        ("/one.1", turn_started("adder")),
        ("/one.1", said("adder", "15")),
        ("/one.1", ended("15")),
        ("", said("one", "15")),
        ("", turn_started("two")),
        ("/two.1", Body::Opened(again)),
        ("/two.1", turn_started("adder")),
        ("/two.1", said("adder", "16")),
    ];
    let shown = shown(&events);
    let said: Vec<&str> = shown.lines().filter(|line| line.len() < 6 && !line.is_empty()).collect();
    assert_eq!(said, ["14", "15", "Again", "16"], "{shown}");
}

#[test]
fn colors_are_those_that_people_know_and_nothing_drives_the_terminal() {
    let events = [
        ("", opened(&["Ann", "Bob"], "Ann", "\x1b[2Jhi")),
        ("", turn_started("Bob")),
        ("", say("Bob", vec![call("c\x07", "add", json!({}))])),
        ("", turn_started("Ann")),
        ("", called("Ann", "c\x07", "add", json!({}))),
    ];
    expect![[r#"
        ESC[33mAnnESC[0m (to Bob):

        ␛[2Jhi

        --------------------------------------------------------------------------------
        ESC[33mBobESC[0m (to Ann):

        ESC[32m***** Suggested tool call (c␇): add *****ESC[0m
        Arguments:
        {}
        ESC[32m*****************************************ESC[0m

        --------------------------------------------------------------------------------

        ESC[35m>>>>>>>> EXECUTING FUNCTION add...ESC[0m
    "#]]
    .assert_eq(&document::autogen("club", &log(&events), true).replace('\x1b', "ESC").replace(": \n", ":\n"));
}

#[test]
fn a_run_is_shown_while_it_runs() {
    let mut stage = Stage::new(Settings { output: Output::AutoGen, ..PLAIN }, 80, 24);
    stage.root(opened(&["Ann", "Bob"], "Ann", "Hi"));
    stage.root(turn_started("Bob"));
    stage.root(asked("Bob", "Yes?"));
    assert!(stage.written.text().ends_with("---\nYes?\n"), "{}", stage.written.text());
    stage.root(answered("Bob", "Hello"));
    stage.root(said("Bob", "Hello"));
    stage.screen.end(&ending()).unwrap();
    expect![[r#"
        Ann (to Bob):

        Hi

        --------------------------------------------------------------------------------
        Yes?
        Bob (to Ann):

        Hello

        --------------------------------------------------------------------------------

        done: Coder said `TERMINATE` · 2 turns · 3,480 tokens · cost unknown · 41 s
        `polylogue show 3k7v9x` / `polylogue resume 3k7v9x`
    "#]]
    .assert_eq(&stage.written.text());
}
