//! JSON, the result alone, colors without a terminal.

use expect_test::expect;
use polylogue_core::{Choice, Chooser, Verbatim};

use super::*;

#[test]
fn json_is_one_event_a_line_and_then_the_totals() {
    let mut stage = Stage::new(Settings { output: Output::Json, ..PLAIN }, 80, 24);
    conversation(&mut stage);
    let written = stage.written.text();
    let (events, end) = written.trim_end().rsplit_once('\n').unwrap();
    let events: Vec<Event> = events.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(events.len(), 11);
    assert!(events.iter().enumerate().all(|(index, event)| event.seq == index as u64));
    assert!(end.starts_with(r#"{"type":"run_ended","id":"3k7v9x","state":"done","status":"done: Coder said `TERMINATE`","turns":2,"#));
    assert_eq!(stage.written.pieces(), 12);
}

#[test]
fn quiet_writes_the_result_alone() {
    let quiet = Settings { output: Output::Result, ..PLAIN };
    let mut stage = Stage::new(quiet, 80, 24);
    conversation(&mut stage);
    assert_eq!(stage.written.text(), "<CAMEL_TASK_DONE>\n");

    let mut stage = Stage::new(quiet, 80, 24);
    stage.root(said("A", "the *last*\x1b[0m words\n"));
    stage.root(Body::Message(Message::new(name("S"), "not this").to(Audience::private())));
    stage.at(&Path::root().child(&name("A"), 1), closed("nor this"));
    stage.root(closed(""));
    stage.screen.end(&ending()).unwrap();
    assert_eq!(stage.written.text(), "the *last*\x1b[0m words\n", "a program gets the result unchanged");

    let looks = OutputStyle { terminal: true, ..OutputStyle::PLAIN };
    let mut stage = Stage::new(Settings { looks, ..quiet }, 80, 24);
    stage.root(said("A", "the *last*\x1b[0m words\n"));
    stage.screen.end(&ending()).unwrap();
    assert_eq!(stage.written.text(), "the *last*␛[0m words\n");

    let mut stage = Stage::new(quiet, 80, 24);
    stage.screen.end(&ending()).unwrap();
    assert_eq!(stage.written.pieces(), 0);
}

/// The terminal would break them anywhere.
#[test]
fn rows_of_plain_text_at_a_terminal_end_between_words_and_code_is_not_broken() {
    let code = "print('a line of code that is longer than one row')";
    let text = format!(
        "Words that are more than one row of this terminal has room for.\n\n````python\n{code}\n```\n````\nAnd words after the code that are too many for one row."
    );
    let written = |looks| {
        let mut stage = Stage::new(Settings { looks, ..PLAIN }, 40, 24);
        stage.root(opened(&["A", "B"], "A", "Go"));
        stage.root(said("A", &text));
        stage.screen.end(&ending()).unwrap();
        stage.written.text()
    };
    let at_terminal = written(OutputStyle { terminal: true, ..OutputStyle::PLAIN });
    let long: Vec<&str> = at_terminal.lines().filter(|line| line.chars().count() > 39).collect();
    assert_eq!(long, [code], "{at_terminal}");
    assert!(at_terminal.contains("\nWords that are more than one row of\nthis terminal"), "{at_terminal}");
    assert!(at_terminal.contains("\n```\n````\nAnd words after"), "{at_terminal}");
    assert!(written(OutputStyle::PLAIN).contains(&text), "a file gets it unchanged");
}

#[test]
fn without_streaming_messages_come_whole_but_waiting_is_visible() {
    let mut stage = Stage::new(Settings { stream: false, ..LIVE }, 60, 20);
    stage.root(opened(&["A", "B"], "A", "Go"));
    stage.root(turn_started("B"));
    stage.text("B", "secret until said");
    expect![[r#"
        participants: A, B

        A → B
        Go

        B is writing... 0.0s
    "#]]
    .assert_eq(&stage.sees());
    stage.root(said("B", "secret until said"));
    assert!(stage.sees().ends_with("B → A\nsecret until said\n"));
}

#[test]
fn colors_without_a_terminal_never_move_the_cursor() {
    let looks = OutputStyle { color: true, ..OutputStyle::PLAIN };
    let mut stage = Stage::new(Settings { looks, ..LIVE }, 60, 20);
    conversation(&mut stage);
    let written = stage.written.text();
    assert!(written.contains("\x1b[1;36mTrader\x1b[0m"));
    assert!(!written.contains('\r') && !written.contains("\x1b[J"));
    let mut live = Stage::new(LIVE, 60, 60);
    conversation(&mut live);
    let mut terminal = vt100::Parser::new(60, 60, 0);
    terminal.process(written.replace('\n', "\r\n").as_bytes());
    assert_eq!(trimmed(terminal.screen().contents().lines()), live.sees(), "what stays is the same");
}

#[test]
fn each_signal_is_written_at_once() {
    let mut stage = Stage::live(60, 20);
    stage.root(opened(&["A", "B"], "A", "Go"));
    assert_eq!(stage.written.pieces(), 1);
    stage.root(turn_started("B"));
    assert_eq!(stage.written.pieces(), 2);
    stage.wait(100);
    for _ in 0..100 {
        stage.piece_at(&Path::root(), "B", Delta::Text("x".into()));
    }
    assert_eq!(stage.written.pieces(), 3, "pieces that come at once wait for the next frame");
    stage.wait(40);
    assert_eq!(stage.written.pieces(), 4);
    assert!(stage.sees().contains(&"x".repeat(59)));
    stage.screen.tick().unwrap();
    assert_eq!(stage.written.pieces(), 4, "nothing changed, nothing is written");
}

// Thoughts are dimmed while they are written, when they are shown again, and where nothing can be dimmed they are named.
#[test]
fn thoughts_are_dimmed_and_words_are_not() {
    let turn = |stage: &mut Stage, live: bool| {
        stage.root(opened(&["A", "B"], "A", "Go"));
        stage.root(turn_started("B"));
        if live {
            stage.piece_at(&Path::root(), "B", Delta::Thought("I think".into()));
            stage.text("B", "So.");
        }
        stage.root(sampled("B", vec![Part::Thought("I think".into()), Part::text("So.")]));
        stage.root(said("B", "So."));
    };
    for live in [true, false] {
        let mut stage = Stage::new(Settings { thoughts: true, ..LIVE }, 60, 20);
        turn(&mut stage, live);
        let written = stage.written.text();
        assert!(written.contains("\u{1b}[2;3mI think\u{1b}[0m"), "{written:?}");
        assert!(!written.contains("mSo."), "{written:?}");
        let mut stage = Stage::new(LIVE, 60, 20);
        turn(&mut stage, live);
        assert!(!stage.written.text().contains("I think"), "they are shown to those who ask for them");
    }
    let mut stage = Stage::new(Settings { thoughts: true, ..PLAIN }, 60, 20);
    turn(&mut stage, false);
    assert!(stage.written.text().contains("(thinks:)\nI think\nSo.\n"), "{}", stage.written.text());
}

/// A handoff with this note, as the message of a turn without another text.
fn handoff(note: &str) -> Vec<Body> {
    let choice = Choice { of: Vec::new(), by: Chooser::Handoff, reply: None };
    vec![
        opened(&["A", "B"], "user", "Go"),
        turn_started("A"),
        called("A", "c", "transfer_to_B", json!({"note": note})),
        returned("A", "c", ToolResult::done(note)),
        said("A", note),
        Body::TurnStarted { turns: vec![TurnRequest::to_all(name("B")).with_choice(choice)] },
        said("B", "Yes."),
        closed("Yes."),
    ]
}

#[test]
fn a_handoff_and_its_note_are_printed_once() {
    let long = format!("{}end", "word ".repeat(60));
    for note in ["A short end", "Lines,\nand the \"end\"", &long] {
        let mut stage = Stage::live(80, 40);
        let events: Vec<Event> =
            handoff(note).into_iter().map(|body| stage.event_at(&Path::root(), body)).collect();
        let mut printed = vec![
            document::shown(&events, Format::WHOLE, Pictures::default()).to_string(),
            document::markdown("t", &events, Pictures::default()).to_string(),
            document::autogen("t", &events, false).to_string(),
        ];
        for settings in [PLAIN, VERBOSE, LIVE] {
            let mut stage = Stage::new(settings, 80, 40);
            handoff(note).into_iter().for_each(|body| stage.root(body));
            printed.push(if settings.looks.live { stage.scrolls() } else { stage.written.text() });
        }
        for text in printed {
            assert_eq!(text.matches("end").count(), 1, "{text}");
            assert!(!text.contains("is handed to"), "{text}");
        }
    }
    // Nothing was called: a person gives the turn back.
    let mut stage = Stage::new(PLAIN, 80, 24);
    let back = handoff("")
        .into_iter()
        .filter(|body| !matches!(body, Body::ToolCalled { .. } | Body::ToolReturned { .. }));
    back.for_each(|body| stage.root(body));
    assert!(stage.written.text().contains("the turn is handed to B"), "{}", stage.written.text());
}

#[test]
fn the_result_of_a_tool_that_ends_the_turn_is_the_message() {
    for (settings, result, expected) in [
        (PLAIN, "It is 7.", "⚙ add(a: 3) → It is 7.\n\nB -> A:\nYes.\n"),
        (PLAIN, "It is\n7.", "⚙ add(a: 3) → It is (+1 line)\nIt is\n7.\n\nB -> A:\nYes.\n"),
        (VERBOSE, "It is\n7.", "⚙ add(a: 3)\n  It is\n  7.\n\nB -> A:\nYes.\n"),
    ] {
        let mut stage = Stage::new(settings, 80, 24);
        stage.root(opened(&["A", "B"], "user", "Go"));
        stage.root(turn_started("A"));
        stage.root(called("A", "c", "add", json!({"a": 3})));
        stage.root(returned("A", "c", ToolResult::done(result)));
        stage.root(said("A", result));
        stage.root(turn_started("B"));
        stage.root(said("B", "Yes."));
        assert!(stage.written.text().ends_with(expected), "{}", stage.written.text());
    }
}

#[test]
fn code_that_does_not_fit_its_line_is_below_it_and_unbroken() {
    let code = format!("echo {}", "word ".repeat(40).trim_end());
    for settings in [PLAIN, LIVE] {
        let mut stage = Stage::new(settings, 80, 24);
        stage.root(opened(&["A", "B"], "user", "Go"));
        stage.root(turn_started("A"));
        stage.root(called("A", "c", "shell", json!({"code": code})));
        stage.root(returned("A", "c", ToolResult::done("ok")));
        let written = stage.written.text();
        assert!(written.contains(&code), "{written}");
        assert!(
            settings.looks.live || written.ends_with(&format!("⚙ shell():\n{code}\n→ ok\n")),
            "{written}"
        );
    }
}

#[test]
fn output_of_code_that_no_message_has_follows_its_call() {
    let mut stage = Stage::new(PLAIN, 80, 24);
    let id = format!("{}0-0", polylogue::layers::code::CALL_ID);
    stage.root(opened(&["A", "B"], "user", "Go"));
    stage.root(turn_started("A"));
    stage.root(called("A", &id, "python", json!({"code": "x\ny"})));
    stage.root(returned("A", &id, ToolResult::failed("exitcode: 1 (execution failed)\nCode output: no")));
    stage.root(said("A", "That is all."));
    let expected = "A -> B:\n✗ python\n→ exitcode 1: no\nThat is all.\n";
    assert!(stage.written.text().ends_with(expected), "{}", stage.written.text());
}

const VERBOSE: Settings = Settings { verbose: true, thoughts: true, ..PLAIN };

/// A private turn with a prompt, a draft that is sent back, a decision and a selection, and a call with a long result.
fn in_private(stage: &mut Stage) {
    let long = "a private text of one line ".repeat(20);
    let request = TurnRequest::private(name("Lead"), format!("Who is next? {long}"));
    let verdict = json!({"verdict": {"complete": false, "reply": format!("yes\n{long}")}});
    let aside =
        |parts: Vec<Part>| Message { parts, ..Message::new(name("Lead"), "").to(Audience::private()) };
    stage.root(opened(&["A", "B"], "user", "Go"));
    stage.root(Body::TurnStarted { turns: vec![request] });
    stage.root(sampled("Lead", vec![Part::text(format!("Zoe, says {long}"))]));
    stage.root(Body::Prompted { who: name("Lead"), text: format!("There is no Zoe. {long}").into() });
    stage.root(sampled("Lead", vec![Part::text(format!("A, says {long}"))]));
    stage.root(Body::Message(aside(vec![Part::text(format!("A, says {long}")), Part::Data(verdict)])));
    stage.root(turn_started("A"));
    stage.root(called("A", "c", "list", json!({})));
    stage.root(returned("A", "c", ToolResult::done(format!("first\n{long}\nlast"))));
    stage.root(said("A", "Done."));
    stage.root(closed("Done."));
}

#[test]
fn verbose_cuts_nothing_and_shows_what_show_does() {
    let mut stage = Stage::new(VERBOSE, 80, 24);
    in_private(&mut stage);
    let written = stage.written.text();
    let long = "a private text of one line ".repeat(20);
    let long = long.trim_end();
    for label in ["Who is next? ", "Zoe, says ", "There is no Zoe. ", "A, says "] {
        assert!(written.contains(&format!("{label}{long}")), "{label}: {written}");
    }
    assert!(written.contains(&format!("  first\n  {long}\n  last\n")), "{written}");
    assert!(
        written.contains(&format!("(the task is not complete; the answer was: yes\n{long})\n")),
        "{written}"
    );
    assert!(!written.contains('…') && !written.contains(" lines)"), "{written}");

    let mut brief = Stage::new(PLAIN, 80, 24);
    in_private(&mut brief);
    assert!(brief.written.text().len() < written.len() / 4, "{}", brief.written.text());
}

#[test]
fn a_call_that_a_model_wrote_as_text_is_noted_once() {
    let mut stage = Stage::new(PLAIN, 80, 24);
    let wrote = "<tool_call>\n{\"name\": \"add\", \"arguments\": {}}\n</tool_call>";
    stage.root(opened(&["A", "B"], "A", "Go"));
    for _ in 0..2 {
        stage.root(turn_started("B"));
        let Body::ModelReplied(reply) = sampled("B", vec![Part::text(wrote)]) else { panic!() };
        stage.root(Body::ModelReplied(ModelReply { model: "llamacpp:m".into(), ..reply }));
        stage.root(said("B", wrote));
    }
    let seen = stage.written.text();
    assert_eq!(seen.matches("B: `llamacpp:m` wrote a tool call as text").count(), 1, "{seen}");
    assert_eq!(seen.matches("--jinja").count(), 1, "{seen}");
}

#[test]
fn verbose_says_that_what_a_provider_sealed_was_not_kept() {
    for (settings, count) in [(PLAIN, 0), (VERBOSE, 1)] {
        let mut stage = Stage::new(settings, 200, 24);
        stage.root(opened(&["A", "B"], "A", "Go"));
        stage.root(turn_started("B"));
        let Body::ModelReplied(reply) = sampled("B", vec![Part::text("Yes.")]) else { panic!() };
        let verbatim = Verbatim { dropped_seals: Some(2_000_000), ..Verbatim::default() };
        stage.root(Body::ModelReplied(ModelReply { verbatim: Some(Arc::new(verbatim)), ..reply }));
        stage.root(said("B", "Yes."));
        let seen = stage.written.text();
        assert_eq!(seen.matches("sealed of this reply has 2000000 bytes").count(), count, "{seen}");
    }
}
