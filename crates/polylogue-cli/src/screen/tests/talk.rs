//! The lines of events.

use expect_test::{Expect, expect};
use polylogue_core::{Failure, Fault, Question};

use super::*;

fn check_width(columns: usize, expected: &Expect) {
    let mut stage = Stage::live(columns, 50);
    conversation(&mut stage);
    expected.assert_eq(&stage.scrolls());
}

#[test]
fn a_conversation_at_40_columns() {
    check_width(
        40,
        &expect![[r#"
            participants: Trader, Coder

            Trader → Coder
            Instruction: plot the price.
            Input: AAPL

            Coder → Trader
            I look it up first.
            ⚙ quotes(symbol: "… → day,price (+2 li…
            Solution: here is the plot:

            ── python
            import matplotlib
            plot(x)

            Day │ Price
            ────┼──────
            1   │   170

            • done
            • Next request.

            Trader → Coder
            <CAMEL_TASK_DONE>

            done: Coder said `TERMINATE` · 2 turns
            · 3,480 tokens · cost unknown · 41 s
            `polylogue show 3k7v9x`
            `polylogue resume 3k7v9x`
        "#]],
    );
}

#[test]
fn a_conversation_at_80_columns_and_more() {
    let expected = expect![[r#"
            participants: Trader, Coder

            Trader → Coder
            Instruction: plot the price.
            Input: AAPL

            Coder → Trader
            I look it up first.
            ⚙ quotes(symbol: "AAPL", days: 30) → day,price (+2 lines) (1.5s)
            Solution: here is the plot:

            ── python
            import matplotlib
            plot(x)

            Day │ Price
            ────┼──────
            1   │   170

            • done
            • Next request.

            Trader → Coder
            <CAMEL_TASK_DONE>

            done: Coder said `TERMINATE` · 2 turns · 3,480 tokens · cost unknown · 41 s
            `polylogue show 3k7v9x` / `polylogue resume 3k7v9x`
        "#]];
    [80, 120].into_iter().for_each(|columns| check_width(columns, &expected));
}

#[test]
fn a_conversation_in_plain_text() {
    let mut stage = Stage::new(PLAIN, 80, 24);
    conversation(&mut stage);
    expect![[r#"
        participants: Trader, Coder

        Trader -> Coder:
        Instruction: plot the *price*.
        Input: `AAPL`

        Coder -> Trader:
        I look it up first.
        ⚙ quotes(symbol: "AAPL", days: 30) → day,price (+2 lines) (1.5s)
        Solution: here is the **plot**:

        ```python
        import matplotlib
        plot(x)
        ```

        | Day | Price |
        |-|-:|
        | 1 | 170 |

        - done
        - Next request.

        Trader -> Coder:
        <CAMEL_TASK_DONE>

        done: Coder said `TERMINATE` · 2 turns · 3,480 tokens · cost unknown · 41 s
        `polylogue show 3k7v9x` / `polylogue resume 3k7v9x`
    "#]]
    .assert_eq(&stage.written.text());
    assert_eq!(stage.written.pieces(), 6, "one piece for each block, none for a token");
}

#[test]
fn speakers_are_colored_and_the_rest_is_quiet() {
    let mut stage = Stage::live(60, 20);
    stage.root(opened(&["Trader", "Coder"], "Trader", "**Go**"));
    expect![[r#"
        ESC[2mparticipants: Trader, CoderESC[0m

        ESC[1;36mTraderESC[0mESC[2m → ESC[0mESC[1;32mCoderESC[0m
        ESC[1mGoESC[0m
    "#]]
    .assert_eq(&stage.written.text().replace('\x1b', "ESC").replace('\r', ""));
}

#[test]
fn the_recipients_of_messages_are_shown() {
    let mut stage = Stage::live(60, 40);
    stage.root(opened(&["A", "B", "C"], "user", "to the room"));
    let to = |names: &[&str]| Audience::Only(names.iter().map(|who| name(who)).collect());
    stage.root(Body::Message(Message::new(name("A"), "to one").to(to(&["B"]))));
    stage.root(Body::Posted(Message::new(name("A"), "to two").to(to(&["B", "C"]))));
    stage.root(Body::Message(Message::new(name("B"), "C\nbecause C knows").to(Audience::private())));
    stage.root(said("C", ""));
    expect![[r#"
        participants: A, B, C

        user → all
        to the room

        A → B
        to one

        A → B, C
        to two

        B (private): C (+1 line)

        C → all
        (says nothing)
    "#]]
    .assert_eq(&stage.sees());
}

#[test]
fn chats_within_chats_are_set_apart() {
    let mut stage = Stage::live(60, 40);
    let root = Path::root();
    let inner = root.child(&name("critics"), 1);
    stage.root(opened(&["writer", "critics"], "user", "Write."));
    stage.root(said("writer", "A text."));
    stage.root(turn_started("critics"));
    stage.wait(1000);
    stage.at(&inner, opened(&["judge", "jury"], "writer", "A text."));
    stage.at(&inner, turn_started("judge"));
    stage.wait(1100);
    expect![[r#"
        participants: writer, critics

        user → all
        Write.

        writer → critics
        A text.

        ┊ chat critics begins: judge, jury
        ┊
        ┊ writer → all · critics
        ┊ A text. (as above)

        ┊ judge is thinking... 1.1s
    "#]]
    .assert_eq(&stage.sees());
    stage.piece_at(&inner, "judge", Delta::Text("Too short.\n\n- a".into()));
    stage.at(&inner, sampled("judge", vec![Part::text("Too short.\n\n- a")]));
    stage.at(&inner, said("judge", "Too short.\n\n- a"));
    stage.at(&inner, called("jury", "c", "vote", json!({})));
    stage.at(&inner, returned("jury", "c", ToolResult::failed("no quorum")));
    stage.at(&inner, closed("Too short."));
    stage.root(said("critics", "Too short."));
    expect![[r#"
        participants: writer, critics

        user → all
        Write.

        writer → critics
        A text.

        ┊ chat critics begins: judge, jury
        ┊
        ┊ writer → all · critics
        ┊ A text. (as above)
        ┊
        ┊ judge → jury · critics
        ┊ Too short.
        ┊
        ┊ • a
        ┊
        ┊ jury → judge · critics
        ┊ ✗ vote() → no quorum
        ┊
        ┊ chat critics ends: Coder said `TERMINATE`

        critics → writer
        Too short.
    "#]]
    .assert_eq(&stage.sees());
}

#[test]
fn failures_approvals_and_other_events_are_shown() {
    let mut stage = Stage::live(70, 60);
    stage.root(opened(&["A", "B"], "user", "hi"));
    stage.root(Body::Passed { who: name("A") });
    stage.root(Body::Prompted { who: name("B"), text: "That was not JSON.\nTry again.".into() });
    stage.root(Body::InputRequired(Question::new(name("B"), "May I *run* it?")));
    stage.root(Body::InputProvided { to: name("B"), text: "yes".into(), by: Default::default() });
    let error = Failure {
        fault: Fault::Provider,
        message: "status 429".into(),
        hint: Some("wait".into()),
        unsent: false,
        postponed: false,
        permanent: false,
    };
    stage.root(Body::Failed { who: name("B"), error });
    stage.root(Body::reopened(None));
    stage.root(Body::Left { who: name("A"), why: "bored".into() });
    let media = polylogue_core::Media {
        media_type: "image/png".into(),
        url: format!("data:{}", "x".repeat(99)).into(),
    };
    let parts = vec![Part::text("See:"), Part::Media(media), Part::Data(json!({"score": 7}))];
    stage.root(Body::Message(Message { from: name("B"), to: Audience::All, parts, outside: Vec::new() }));
    stage.root(called("B", "c9", "deploy", json!({"to": "prod"})));
    stage.root(closed("All in all: a **summary**."));
    stage.screen.end(&ending()).unwrap();
    expect![[r#"
        participants: A, B

        user → all
        hi

        A passes

        B is asked:
        May I run it?

        answer for B: yes
        B is prompted: That was not JSON. (+1 line)

        ✗ B failed (provider): status 429
          hint: wait
        the conversation continues
        A leaves: bored

        B → A
        See:
        [picture: image/png]
        {"score":7}

        summary
        All in all: a summary.

        B: deploy(to: "prod") has no result yet

        done: Coder said `TERMINATE` · 2 turns · 3,480 tokens · cost unknown
        · 41 s
        `polylogue show 3k7v9x` / `polylogue resume 3k7v9x`
    "#]]
    .assert_eq(&stage.sees());
}

#[test]
fn no_text_drives_the_terminal() {
    let evil = "\x1b[2J\x1b]0;title\x07\u{9b}5m\r\x08\x1b[999A";
    let mut stage = Stage::live(80, 40);
    stage.root(opened(&["A", "B"], "user", evil));
    stage.text("A", evil);
    stage.root(said("A", evil));
    stage.root(called("A", evil, evil, json!({evil: evil})));
    stage.wait(100);
    stage.root(returned("A", evil, ToolResult::failed(evil)));
    stage.piece_at(&Path::root(), "A", Delta::Call { index: 0, tool: Some(evil.into()), args: evil.into() });
    stage.piece_at(&Path::root(), "A", Delta::Thought(evil.into()));
    stage.wait(100);
    let error = Failure {
        fault: Fault::Tool,
        message: evil.into(),
        hint: Some(evil.into()),
        unsent: false,
        postponed: false,
        permanent: false,
    };
    stage.root(Body::Failed { who: name("A"), error });
    stage.root(Body::Left { who: name("A"), why: evil.into() });
    stage.root(Body::Prompted { who: name("A"), text: evil.into() });
    stage.root(closed(evil));
    stage.screen.end(&RunEnd { status: evil.into(), ..ending() }).unwrap();
    let written = stage.written.text();
    for foreign in ["\x1b[2J", "\x1b]", "\u{9b}", "\x08", "\x07"] {
        assert!(!written.contains(foreign), "{foreign:?}");
    }
    assert!(written.contains("␛[2J"));
    // Besides line ends, only our own colors and moves are left.
    let ours = written.split('\x1b').skip(1).all(|rest| {
        let end = rest.find(|c: char| c.is_ascii_alphabetic()).unwrap();
        rest.starts_with('[') && matches!(&rest[end..=end], "m" | "A" | "J")
    });
    assert!(ours);
}

#[test]
fn a_text_that_the_next_event_repeats_is_shown_once() {
    let mut stage = Stage::new(PLAIN, 80, 30);
    stage.root(opened(&["A", "B"], "user", "Go"));
    stage.root(Body::InputRequired(Question::new(name("A"), "Your turn.")));
    stage.root(Body::InputProvided { to: name("A"), text: "Yes.".into(), by: Default::default() });
    stage.root(said("A", "Yes."));
    stage.root(Body::InputProvided { to: name("B"), text: "allow".into(), by: Default::default() });
    stage.root(said("B", "It is done."));
    stage.root(Body::Message(Message::new(name("judge"), "All agreed.").to(Audience::private())));
    stage.root(closed("All agreed."));
    expect![[r#"
        participants: A, B

        user -> all:
        Go

        A is asked:
        Your turn.

        A -> B:
        Yes.

        answer for B: allow

        B -> A:
        It is done.

        summary
        All agreed.
    "#]]
    .assert_eq(&stage.written.text());
}

#[test]
fn code_of_a_call_is_shown_as_code_and_output_of_a_program_verbatim() {
    let mut stage = Stage::live(60, 40);
    stage.root(opened(&["Ann", "Bob"], "user", "Count."));
    stage.root(turn_started("Ann"));
    let code = "for n in range(2):\n    print(n, '*a* long line that is not broken', '# no heading')";
    stage.root(called("Ann", "c1", "python", json!({"code": code, "timeout": 5})));
    stage.root(returned("Ann", "c1", ToolResult::done("0\n1")));
    stage.root(said("Ann", "Done."));
    stage.root(turn_started("Bob"));
    let id = format!("{}0-0", polylogue::layers::code::CALL_ID);
    let outcome = ToolResult::done("exitcode: 0 (execution succeeded)\nCode output: # *a*\n    1. b");
    stage.root(called("Bob", &id, "python", json!({"code": "print(1)\nprint(2)"})));
    stage.root(returned("Bob", &id, outcome.clone()));
    let parts = polylogue::layers::code::reply_of(&[outcome]);
    stage.root(Body::Message(Message { parts, ..Message::new(name("Bob"), "") }));
    expect![[r#"
        participants: Ann, Bob

        user → all
        Count.

        Ann → Bob
        ⚙ python(timeout: 5):
        for n in range(2):
            print(n, '*a* long line that is not broken', '# no headi
        ng')
        → 0 (+1 line)
        Done.

        Bob → Ann
        ⚙ python
        exitcode: 0 (execution succeeded)
        Code output: # *a*
            1. b
    "#]]
    .assert_eq(&stage.scrolls());
}
