//! The lines of groups, of calls that others run, and of caches.

use expect_test::expect;
use polylogue_core::{Choice, Chooser, ExecutedCall, Opening};

use super::*;

/// A group in which a speaker is picked, asks another for a tool, and one is next for want of a choice.
fn events() -> Vec<Event> {
    let of = || vec![name("Ann"), name("Bob"), name("Cy")];
    let pick = |by: Chooser, who: &str, reply: &str| {
        let choice = Choice { of: of(), by, reply: Some(reply.into()) };
        Body::TurnStarted { turns: vec![TurnRequest::to_all(name(who)).with_choice(choice)] }
    };
    let aside = |text: &str, answer: serde_json::Value| {
        let parts = vec![Part::text(text), Part::Data(answer)];
        Body::Message(Message { from: name("Pick"), to: Audience::private(), parts, outside: Vec::new() })
    };
    let ask = || Body::TurnStarted {
        turns: vec![TurnRequest { to: Audience::private(), ..TurnRequest::to_all(name("Pick")) }],
    };
    let call = ToolCall { id: "c1".into(), tool: "add".into(), args: json!({"a": 1, "b": 2}) };
    let wants = vec![Part::text("I add."), Part::ToolCall(call)];
    let came = ExecutedCall {
        to: name("Ann"),
        id: "c1".into(),
        tool: "add".into(),
        result: ToolResult::done("3\nand no more"),
    };
    let opening = Opening {
        participants: of(),
        task: "Add".into(),
        introduction: Some("Ann: adds\nBob: runs".into()),
        messages: vec![Message::new(name("Bob"), "Add")],
        ..Opening::default()
    };
    let Body::ModelReplied(sample) = sampled("Ann", wants.clone()) else { unreachable!() };
    let bodies = [
        Body::Opened(opening),
        ask(),
        sampled("Pick", vec![Part::text("Ann")]),
        aside("Ann", json!({"speaker": "Ann"})),
        pick(Chooser::Agent(name("Pick")), "Ann", "Ann"),
        Body::ModelReplied(ModelReply { cached: true, ..sample }),
        Body::Message(Message { from: name("Ann"), to: Audience::All, parts: wants, outside: Vec::new() }),
        pick(Chooser::Tools, "Bob", "Bob"),
        Body::Message(Message {
            from: name("Bob"),
            to: Audience::All,
            parts: vec![Part::ToolResult(came)],
            outside: Vec::new(),
        }),
        ask(),
        sampled("Pick", vec![Part::text("Zoe")]),
        aside("Zoe", json!({"speaker": null, "why": "`Zoe` is not a participant"})),
        pick(Chooser::Fallback { why: "`Zoe` is not a participant".into() }, "Cy", "Zoe"),
        said("Cy", "Done"),
        closed("Done"),
    ];
    let event = |(seq, body): (usize, Body)| Event {
        seq: seq as u64,
        chat: Path::root(),
        time: Timestamp(0),
        ran_ms: 0,
        inbox: None,
        body,
    };
    bodies.into_iter().enumerate().map(event).collect()
}

#[test]
fn a_selection_is_shown_in_a_line() {
    let mut stage = Stage::new(PLAIN, 80, 24);
    events().into_iter().for_each(|event| stage.root(event.body));
    expect![[r#"
        participants: Ann, Bob, Cy
        introduction: Ann: adds (+1 line)

        Bob -> all:
        Add

        Pick picks Ann among Ann, Bob, Cy

        Ann -> all:
        I add.
        ⚙ add(a: 1, b: 2)

        Bob -> all:
        ⚙ add(a: 1, b: 2) → 3 (+1 line)

        Cy is next in order: `Zoe` is not a participant; the reply was: Zoe

        Cy -> all:
        Done
    "#]]
    .assert_eq(&stage.written.text());
}

#[test]
fn verbose_output_has_introductions_and_prompts() {
    expect![[r#"
        participants: Ann, Bob, Cy
        introduction:
        Ann: adds
        Bob: runs

        Bob -> all:
        Add

        Pick picks Ann among Ann, Bob, Cy
        Ann's next reply is from the cache

        Ann -> all:
        I add.
        ⚙ add(a: 1, b: 2)

        Bob is next, to run the tools

        Bob -> all:
        ⚙ add(a: 1, b: 2)
          3
          and no more

        Pick -> no one (private):
        Zoe

        Cy is next in order: `Zoe` is not a participant

        Cy -> all:
        Done

        done: Coder said `TERMINATE`
    "#]]
    .assert_eq(&document::shown(&events(), Format::WHOLE, Pictures::default()));
}

#[test]
fn a_markdown_document_has_the_introduction() {
    expect![[r#"
        # group

        *Participants: Ann, Bob, Cy*

        #### Introduction

        Ann: adds
        Bob: runs

        ### Bob

        Add

        *Pick picks Ann among Ann, Bob, Cy*

        *Ann's next reply is from the cache*

        #### Ann before it calls tools

        I add.

        ### Ann

        asks for

        ```
        add(a: 1, b: 2)
        ```

        ### Bob

        for Ann

        ```
        add(a: 1, b: 2)
        ```

        with the result

        ```
        3
        and no more
        ```

        ### Pick (private)

        Zoe

        *Cy is next in order: \`Zoe\` is not a participant; the reply was: Zoe*

        ### Cy

        Done

        *Ended: Coder said \`TERMINATE\`*
    "#]]
    .assert_eq(&document::markdown("group", &events(), Pictures::default()));
}

#[test]
fn text_before_a_call_that_was_streamed_is_not_shown_again() {
    let mut stage = Stage::live(80, 24);
    let mut events = events().into_iter().map(|event| event.body);
    events.by_ref().take(5).for_each(|body| stage.root(body));
    stage.text("Ann", "I add.");
    events.for_each(|body| stage.root(body));
    let sees = stage.scrolls();
    assert_eq!(sees.matches("I add.").count(), 1, "{sees}");
    assert_eq!(sees.matches("⚙ add(a: 1, b: 2)\n").count(), 1, "{sees}");
}
