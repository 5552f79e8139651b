//! Watchers that miss signals, runs that are resumed, readers that leave.

use expect_test::expect;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

fn hear(stage: &mut Stage, event: &Event) -> Flow {
    stage.screen.update(&Update::Event(Arc::new(event.clone()))).unwrap()
}

#[test]
fn a_watcher_that_missed_signals_shows_every_message_once() {
    let mut stage = Stage::in_turn_of_b(60, 30);
    stage.text("B", "The beginning");
    // Lost: the rest of the reply, its event, and the beginning of the next turn.
    let lost = [said("B", "The beginning and the end"), turn_started("A")]
        .map(|body| stage.event_at(&Path::root(), body));
    assert_eq!(stage.screen.update(&Update::Missed { updates: 9, seq: 2 }).unwrap(), Flow::Reread(2));
    for event in &lost {
        assert_eq!(stage.screen.reread(event).unwrap(), Flow::Go);
    }
    stage.text("A", "torn, for its beginning was lost");
    expect![[r#"
        participants: A, B

        A → B
        Go

        B → A
        The beginning and the end

        A is writing... 0.0s
    "#]]
    .assert_eq(&stage.sees());
    // An event that was read again arrives after all.
    assert_eq!(hear(&mut stage, &lost[1]), Flow::Go);
    stage.text("A", "Whole");
    assert!(stage.sees().ends_with("A → B\nWhole\n"), "{}", stage.sees());
    stage.root(said("A", "Whole again"));
    expect![[r#"
        participants: A, B

        A → B
        Go

        B → A
        The beginning and the end

        A → B
        Whole again
    "#]]
    .assert_eq(&stage.sees());
}

#[test]
fn a_reply_with_missing_pieces_is_shown_when_it_is_whole() {
    let mut stage = Stage::in_turn_of_b(60, 30);
    stage.text("B", "The beginning");
    assert_eq!(stage.screen.update(&Update::Missed { updates: 3, seq: 2 }).unwrap(), Flow::Reread(2));
    stage.text("B", "the end");
    assert!(stage.sees().ends_with("A → B\nGo\n\nB is writing... 0.0s\n"), "{}", stage.sees());
    // From its next reply on, all pieces are there.
    stage.root(Body::Prompted { who: name("B"), text: "Shorter.".into() });
    stage.text("B", "All of it");
    assert!(stage.sees().ends_with("B → A\nAll of it\n"), "{}", stage.sees());
}

#[test]
fn a_gap_between_events_is_noticed() {
    for settings in [LIVE, PLAIN, Settings { output: Output::Json, ..PLAIN }] {
        let mut stage = Stage::new(settings, 60, 30);
        stage.root(opened(&["A", "B"], "A", "Go"));
        let (first, second) = (
            stage.event_at(&Path::root(), said("A", "one")),
            stage.event_at(&Path::root(), said("B", "two")),
        );
        assert_eq!(hear(&mut stage, &second), Flow::Reread(1));
        for event in [&first, &second] {
            stage.screen.reread(event).unwrap();
        }
        assert_eq!(hear(&mut stage, &second), Flow::Go);
        let written = stage.written.text();
        assert_eq!((written.matches("one").count(), written.matches("two").count()), (1, 1), "{written}");
    }
}

#[test]
fn a_resumed_run_continues_where_it_was() {
    let mut stage = Stage::live(60, 30);
    let bodies = [opened(&["A", "B"], "A", "Go"), said("B", "before"), turn_started("A")];
    for body in bodies {
        let event = stage.event_at(&Path::root(), body);
        stage.screen.recall(&event);
    }
    stage.wait(1000);
    expect![[r#"
        A is thinking... 1.0s
    "#]]
    .assert_eq(&stage.sees());
    stage.text("A", "after");
    stage.root(said("A", "after"));
    expect![[r#"
        A → B
        after
    "#]]
    .assert_eq(&stage.sees());
}

#[test]
fn a_run_that_stops_in_the_midst_of_a_reply_says_so() {
    let mut stage = Stage::in_turn_of_b(70, 30);
    stage.text("B", "Half a rep");
    stage.screen.end(&RunEnd { status: "stopped".into(), ..ending() }).unwrap();
    expect![[r#"
        participants: A, B

        A → B
        Go

        B → A
        Half a rep
        (broken off here; the turn continues when the run is resumed)

        stopped · 2 turns · 3,480 tokens · cost unknown · 41 s
        `polylogue show 3k7v9x` / `polylogue resume 3k7v9x`
    "#]]
    .assert_eq(&stage.sees());
}

/// The person types while a reply is written.
fn steer(stage: &mut Stage) {
    stage.screen.make_room().unwrap();
    stage.sees();
    stage.terminal.process(b"steer>\r\n");
}

#[test]
fn a_reply_continues_below_what_the_person_types_meanwhile() {
    let mut stage = Stage::in_turn_of_b(70, 30);
    stage.text("B", "One two");
    steer(&mut stage);
    stage.wait(2000);
    stage.text("B", " three");
    steer(&mut stage);
    stage.text("B", " four.");
    stage.root(sampled("B", vec![Part::text("One two three four.")]));
    stage.root(said("B", "One two three four."));
    expect![[r#"
        participants: A, B

        A → B
        Go

        B → A
        One two
        (the reply continues below)
        steer>

        B → A
        three
        (the reply continues below)
        steer>

        B → A
        four.
    "#]]
    .assert_eq(&stage.sees());
}

/// A and B write at once, and the person types while each of them is shown.
fn steer_two(stage: &mut Stage) {
    stage.root(opened(&["A", "B"], "user", "Go"));
    stage.root(Body::TurnStarted {
        turns: vec![TurnRequest::to_all(name("A")), TurnRequest::to_all(name("B"))],
    });
    stage.text("A", "One");
    stage.text("B", "Red");
    steer(stage);
    stage.text("B", " green");
    steer(stage);
    stage.text("B", " blue.");
    stage.text("A", " two.");
}

#[test]
fn replies_of_two_continue_below_what_the_person_types_meanwhile() {
    let mut stage = Stage::live(70, 40);
    steer_two(&mut stage);
    for (who, text) in [("A", "One two."), ("B", "Red green blue.")] {
        stage.root(sampled(who, vec![Part::text(text)]));
        stage.root(said(who, text));
    }
    expect![[r#"
        participants: A, B

        user → all
        Go

        A → B
        One
        (the reply continues below)
        steer>

        B → A
        Red green
        (the reply continues below)
        steer>

        A → B
        two.

        B → A
        blue.
    "#]]
    .assert_eq(&stage.sees());
}

#[test]
fn replies_of_two_that_are_stopped_below_what_the_person_typed_are_marked_there() {
    for is_logged in [true, false] {
        let mut stage = Stage::live(70, 40);
        steer_two(&mut stage);
        if is_logged {
            let text = "One two.".into();
            stage.root(Body::ReplyInterrupted { who: name("A"), model: "script:test".into(), text });
        }
        stage.screen.end(&RunEnd { status: "stopped".into(), ..ending() }).unwrap();
        let seen = stage.sees();
        assert_eq!(seen.matches("\n(broken off here").count(), 2, "{seen}");
        assert!(seen.contains("\nA → B\ntwo.\n(broken off here"), "{seen}");
        assert!(seen.contains("\nB → A\nblue.\n(broken off here"), "{seen}");
        assert!(!seen.contains("One two") && !seen.contains("was cut off"), "{seen}");
    }
}

#[test]
fn what_stands_above_what_the_person_typed_is_not_written_again() {
    for (before, after, shown) in [
        ("All of it.", "", "steer>\n"),
        // A block of code stays one.
        ("```sh\nls", "\ncat\n```\nEnd.", "cat\nEnd.\n"),
    ] {
        let mut stage = Stage::in_turn_of_b(70, 30);
        stage.text("B", before);
        steer(&mut stage);
        if !after.is_empty() {
            stage.text("B", after);
        }
        let whole = format!("{before}{after}");
        stage.root(sampled("B", vec![Part::text(&*whole)]));
        stage.root(said("B", &whole));
        let seen = stage.sees();
        assert!(seen.ends_with(shown), "{seen}");
        assert_eq!(seen.matches("(the reply continues below)").count(), 1, "{seen}");
    }
}

#[test]
fn a_reply_that_is_stopped_below_what_the_person_typed_is_marked_there() {
    for after in ["", " three"] {
        let mut stage = Stage::in_turn_of_b(70, 30);
        stage.text("B", "One two");
        steer(&mut stage);
        if !after.is_empty() {
            stage.text("B", after);
        }
        let text = format!("One two{after}").into();
        stage.root(Body::ReplyInterrupted { who: name("B"), model: "script:test".into(), text });
        let seen = stage.sees();
        let end =
            format!("steer>\n{}(broken off here)\n", if after.is_empty() { "" } else { "\nB → A\nthree\n" });
        assert!(seen.contains(&end), "{seen}");
        assert!(!seen.contains("was cut off"), "{seen}");
    }
}

#[test]
fn a_run_that_waits_leaves_the_terminal_to_others() {
    let mut stage = Stage::live(70, 30);
    stage.root(opened(&["A", "B"], "A", "Go"));
    stage.root(Body::TurnStarted {
        turns: vec![TurnRequest::to_all(name("A")), TurnRequest::to_all(name("B"))],
    });
    let question = polylogue_core::Question::new(name("B"), "Shall I?");
    stage.root(Body::InputRequired(question));
    assert!(stage.sees().contains("A is thinking"));
    stage.screen.rest().unwrap();
    assert!(stage.sees().ends_with("B is asked:\nShall I?\n"), "{}", stage.sees());
    assert!(stage.written.text().ends_with("\x1b[J"), "the cursor stands at the beginning of a row");
}

struct Broken(io::ErrorKind, usize);

impl Write for Broken {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        self.1 += 1;
        Err(self.0.into())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let size = || Box::new(|| Size::USUAL);
    let clock = || Box::new(|| Duration::ZERO);
    let mut stage = Stage::new(PLAIN, 80, 24);
    let event = stage.event_at(&Path::root(), said("A", "hi"));
    let signal = Update::Event(Arc::new(event));
    let mut screen = Screen::new(Broken(io::ErrorKind::BrokenPipe, 0), "team", PLAIN, size(), clock());
    assert_eq!(screen.update(&signal).unwrap(), Flow::Gone);
    assert_eq!(screen.end(&ending()).unwrap(), Flow::Gone);
    assert_eq!(screen.out.1, 1, "it is not tried again");
    let mut screen = Screen::new(Broken(io::ErrorKind::StorageFull, 0), "team", PLAIN, size(), clock());
    assert!(screen.update(&signal).is_err());
}

#[derive(Debug, Clone)]
enum Step {
    Piece(usize, Delta),
    Body { who: usize, kind: usize, text: String, lost: bool },
    Again(prop::sample::Index),
    Missed,
    MakeRoom,
    Resize(usize, usize),
    Wait(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let text = || "[a-z *#`|\n\u{1b}中]{0,30}";
    let piece = prop_oneof![
        text().prop_map(Delta::Text),
        text().prop_map(Delta::Thought),
        Just(Delta::Restart),
        text().prop_map(|args| Delta::Call { index: 0, tool: Some(args.clone()), args }),
    ];
    prop_oneof![
        4 => (0usize..4, piece).prop_map(|(who, piece)| Step::Piece(who, piece)),
        5 => (0usize..4, 0usize..=SAID, text(), prop::bool::weighted(0.2))
            .prop_map(|(who, kind, text, lost)| Step::Body { who, kind, text, lost }),
        1 => any::<prop::sample::Index>().prop_map(Step::Again),
        1 => Just(Step::Missed),
        1 => Just(Step::MakeRoom),
        1 => (40usize..100, 1usize..30).prop_map(|(columns, rows)| Step::Resize(columns, rows)),
        1 => (0u64..5000).prop_map(Step::Wait),
    ]
}

const NAMES: [&str; 4] = ["A", "B", "C", "user"];

/// The last kind of `body`.
const SAID: usize = 11;

/// Reads again what the screen has not shown.
fn catch_up(stage: &mut Stage, log: &[Event]) {
    let missed = Update::Missed { updates: 1, seq: 0 };
    let Flow::Reread(from) = stage.screen.update(&missed).unwrap() else { panic!("it has to be read again") };
    for event in log.iter().filter(|event| event.seq >= from) {
        assert_eq!(stage.screen.reread(event).unwrap(), Flow::Go);
    }
}

fn body(kind: usize, who: &str, text: &str) -> Body {
    let question = || polylogue_core::Question::new(name(who), text);
    match kind {
        0 => opened(&["A", "B", "C"], who, text),
        1 => turn_started(who),
        2 => Body::TurnStarted {
            turns: vec![TurnRequest::private(name(who), text), TurnRequest::to_all(name("C"))],
        },
        3 => sampled(who, vec![Part::Thought(text.into()), Part::text(text)]),
        4 => called(who, "1", text, json!(text)),
        5 => returned(who, "1", ToolResult::done(text)),
        6 => Body::InputRequired(question()),
        7 => Body::InputProvided { to: name(who), text: text.into(), by: Default::default() },
        8 => Body::Prompted { who: name(who), text: text.into() },
        9 => closed(text),
        10 => Body::Passed { who: name(who) },
        _ => said(who, text),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    /// Whatever comes in whatever order: nothing panics, and each message is shown exactly once.
    #[test]
    fn no_message_is_lost_or_repeated(steps in prop::collection::vec(step(), 0..60), thoughts: bool) {
        let mut stage = Stage::new(Settings { thoughts, ..LIVE }, 50, 12);
        stage.root(opened(&["A", "B", "C"], "user", "Go"));
        let mut log: Vec<Event> = Vec::new();
        let mut marks = Vec::new();
        let places = [Path::root(), Path::root().child(&name("A"), 1)];
        for (index, step) in steps.into_iter().enumerate() {
            let at = &places[index % 2];
            match step {
                Step::Piece(who, delta) => {
                    let update = Update::Delta { chat: at.clone(), who: name(NAMES[who]), delta };
                    stage.screen.update(&update).unwrap();
                }
                Step::Body { who, kind, text, lost } => {
                    let mark = format!("mark{index}.");
                    let text = if kind == SAID { format!("{text}\n\n{mark}") } else { text };
                    marks.extend((kind == SAID).then_some(mark));
                    let event = stage.event_at(at, body(kind, NAMES[who], &text));
                    log.push(event.clone());
                    if !lost && let Flow::Reread(_) = hear(&mut stage, &event) {
                        catch_up(&mut stage, &log);
                    }
                }
                Step::Again(_) if log.is_empty() => {}
                Step::Again(which) => {
                    let event = which.get(&log).clone();
                    if hear(&mut stage, &event) != Flow::Go {
                        catch_up(&mut stage, &log);
                    }
                }
                Step::Missed => catch_up(&mut stage, &log),
                Step::MakeRoom => {
                    stage.screen.make_room().unwrap();
                }
                Step::Resize(columns, rows) => stage.claim_size(columns, rows),
                Step::Wait(ms) => stage.wait(ms),
            }
        }
        catch_up(&mut stage, &log);
        stage.screen.end(&ending()).unwrap();
        let written = stage.written.text();
        let found: Vec<usize> = marks.iter().flat_map(|mark| written.match_indices(mark.as_str())).map(|(at, _)| at).collect();
        prop_assert_eq!(found.len(), marks.len(), "{}", written);
    }
}

#[test]
fn what_was_typed_leaves_no_trace_in_what_changes_in_place() {
    let mut stage = Stage::in_turn_of_b(60, 20);
    stage.text("B", "One two three");
    stage.sees();
    // The terminal echoes Ctrl-C.
    stage.terminal.process(b"^C");
    assert!(stage.screen.notice("finishing this step; Ctrl-C again stops now").unwrap());
    let seen = stage.sees();
    assert!(seen.ends_with("One two three\nfinishing this step; Ctrl-C again stops now\n"), "{seen}");
    stage.text("B", " four.");
    stage.root(said("B", "One two three four."));
    stage.screen.end(&ending()).unwrap();
    let seen = stage.sees();
    assert!(seen.contains("\nOne two three four.\n\ndone: ") && !seen.contains("^C"), "{seen}");
    assert!(!Stage::new(PLAIN, 60, 20).screen.notice("not in place").unwrap());
}
