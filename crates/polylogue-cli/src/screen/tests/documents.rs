//! `show`.

use expect_test::expect;
use polylogue_core::Entry;

use super::*;

fn events() -> Vec<Event> {
    let mut stage = Stage::live(80, 24);
    let root = Path::root();
    let inner = root.child(&name("critic"), 1);
    let call = ToolCall { id: "c1".into(), tool: "run".into(), args: json!({"code": "print(1)"}) };
    let request = TurnRequest { prompt: Some("Be brief.\nVery.".into()), ..TurnRequest::to_all(name("B")) };
    let mut list = vec![
        (root.clone(), opened(&["A", "B"], "A", "Do **it**")),
        (root.clone(), Body::TurnStarted { turns: vec![request] }),
        (root.clone(), sampled("B", vec![Part::Thought("hm".into()), Part::text("a draft")])),
        (root.clone(), Body::Prompted { who: name("B"), text: "No.".into() }),
        (root.clone(), sampled("B", vec![Part::text("I run it"), Part::ToolCall(call.clone())])),
        (root.clone(), called("B", "c1", "run", call.args)),
        (root.clone(), returned("B", "c1", ToolResult::done("1\n```\n2"))),
        (root.clone(), sampled("B", vec![Part::text("Done:\n```py\nprint(1)")])),
        (root.clone(), said("B", "Done:\n```py\nprint(1)")),
        (inner.clone(), opened(&["judge"], "B", "Judge *it*_")),
        (inner.clone(), said("judge", "Good\x1b[1m.")),
        (inner, closed("Good.")),
    ];
    let aside = Message::new(name("A"), "no one hears").to(Audience::private());
    list.push((root.clone(), Body::Message(aside)));
    list.push((root.clone(), called("A", "c2", "mail", json!({}))));
    list.push((root, closed("A summary.")));
    list.into_iter().map(|(at, body)| stage.event_at(&at, body)).collect()
}

#[test]
fn the_whole_conversation_as_plain_text() {
    expect![[r#"
        participants: A, B

        A -> B:
        Do **it**

        B is prompted in private:
        Be brief.
        Very.

        B -> A:
        (thinks:)
        hm

        B wrote, but did not say: a draft
        B is prompted: No.

        B -> A:
        I run it
        ⚙ run(code: print(1))
          1
          ```
          2
        Done:
        ```py
        print(1)

        chat critic begins: judge

        B -> judge · critic:
        Judge *it*_

        judge · critic:
        Good␛[1m.

        chat critic ends: Coder said `TERMINATE`

        A -> no one (private):
        no one hears

        summary
        A summary.

        done: Coder said `TERMINATE`
        A: mail() has no result yet
    "#]]
    .assert_eq(&document::shown(&events(), Format::WHOLE, Pictures::default()));
}

#[test]
fn the_whole_conversation_on_a_terminal() {
    let shown = document::shown(&events(), Format { width: Some(50), ..Format::WHOLE }, Pictures::default());
    let mut terminal = vt100::Parser::new(80, 50, 0);
    terminal.process(shown.replace('\n', "\r\n").as_bytes());
    expect![[r#"
        participants: A, B

        A → B
        Do it

        B is prompted in private:
        Be brief.
        Very.

        B → A
        hm

        B wrote, but did not say: a draft
        B is prompted: No.

        B → A
        I run it
        ⚙ run(code: print(1))
          1
          ```
          2
        Done:
        ── py
        print(1)

        ┊ chat critic begins: judge
        ┊
        ┊ B → judge · critic
        ┊ Judge it_
        ┊
        ┊ judge · critic
        ┊ Good␛[1m.
        ┊
        ┊ chat critic ends: Coder said `TERMINATE`

        A → no one (private)
        no one hears

        summary
        A summary.

        done: Coder said `TERMINATE`
        A: mail() has no result yet
    "#]]
    .assert_eq(&trimmed(terminal.screen().contents().lines()));
}

#[test]
fn the_conversation_as_a_markdown_file() {
    expect![[r##"
        # Do it

        *Participants: A, B*

        ### A

        Do **it**

        #### B before it calls tools

        I run it

        B calls

        ```
        run()
        ```

        with `code`

        ```
        print(1)
        ```

        with the result

        ````
        1
        ```
        2
        ````

        ### B

        Done:
        ```py
        print(1)
        ```

        *chat critic begins: judge*

        ### B · critic

        Judge *it*_

        ### judge · critic

        Good␛[1m.

        *chat critic ends: Coder said \`TERMINATE\`*

        ### A (private)

        no one hears

        ## Summary

        A summary.

        *Ended: Coder said \`TERMINATE\`*

        *A: mail() has no result yet*
    "##]]
    .assert_eq(&document::markdown("Do\nit", &events(), Pictures::default()));
}

#[test]
fn entries_as_a_model_received_them() {
    let call = ToolCall { id: "c1".into(), tool: "run".into(), args: json!({"code": "1"}) };
    let entries = [
        Entry::user("**Do** it\nnow\x1b[2J"),
        Entry::own(vec![Part::text("I run it"), Part::ToolCall(call)]),
        Entry::Tool { id: "c1".into(), tool: "run".into(), result: ToolResult::done("1") },
    ];
    expect![[r#"
        [system]:
        You are B.

        [user]:
        **Do** it
        now␛[2J

        [assistant]:
        I run it
        call c1: run {"code":"1"}

        [tool run (c1)]:
        1
    "#]]
    .assert_eq(&document::received(Some("You are B."), &entries, false));
    assert!(document::received(None, &entries, true).starts_with("\x1b[1m[user]:\x1b[0m\n"));
}
