//! Replies while they are written.

use expect_test::expect;
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

const ANSWER: &str = "# Plan\nA *first* paragraph that is certainly longer than one row.\nInput: None\n\n\
                      ```rust\nfn main() {}\n```\n1. one 中文\n2. two\n   - inner ❤️\n\n| a | b |\n|-|-|\n| c | d |\n\nEnd.";

/// A reply that arrives in `pieces`.
fn play(pieces: &[&str], settings: Settings, columns: usize, rows: usize) -> String {
    let mut stage = Stage::new(settings, columns, rows);
    stage.root(opened(&["A", "B"], "A", "Go"));
    stage.root(turn_started("B"));
    stage.wait(1000);
    for piece in pieces {
        stage.text("B", piece);
    }
    let text = pieces.concat();
    stage.root(sampled("B", vec![Part::text(&*text)]));
    stage.root(said("B", &text));
    stage.screen.end(&ending()).unwrap();
    stage.scrolls()
}

#[test]
fn the_final_screen_is_the_same_however_the_reply_was_split() {
    let whole = Settings { stream: false, ..LIVE };
    for (columns, rows) in [(40, 8), (40, 50), (80, 12), (120, 24)] {
        let expected = play(&[ANSWER], whole, columns, rows);
        let each: Vec<&str> = ANSWER.split_inclusive(|_| true).collect();
        assert_eq!(play(&each, LIVE, columns, rows), expected, "{columns}x{rows}");
        for at in (1..ANSWER.len()).filter(|at| ANSWER.is_char_boundary(*at)) {
            let (head, tail) = ANSWER.split_at(at);
            assert_eq!(play(&[head, tail], LIVE, columns, rows), expected, "{columns}x{rows} at {at}");
        }
    }
}

#[test]
fn a_thinking_agent_has_a_quiet_line_that_vanishes() {
    let mut stage = Stage::live(60, 20);
    stage.root(opened(&["Trader", "Coder"], "Trader", "Go"));
    stage.root(turn_started("Coder"));
    stage.wait(3200);
    expect![[r#"
        participants: Trader, Coder

        Trader → Coder
        Go

        Coder is thinking... 3.2s
    "#]]
    .assert_eq(&stage.sees());
    let thought = "The user wants a plot. So I need the data first. ".repeat(4);
    stage.piece_at(&Path::root(), "Coder", Delta::Thought(thought));
    stage.wait(100);
    expect![[r#"
        participants: Trader, Coder

        Trader → Coder
        Go

        Coder is thinking... 3.3s
          plot. So I need the data first. The user wants a plot. So
          I need the data first.
    "#]]
    .assert_eq(&stage.sees());
    stage.text("Coder", "Here **it** is: `x");
    expect![[r#"
        participants: Trader, Coder

        Trader → Coder
        Go

        Coder → Trader
        Here it is: `x
    "#]]
    .assert_eq(&stage.sees());
    stage.piece_at(
        &Path::root(),
        "Coder",
        Delta::Call { index: 0, tool: Some("plot".into()), args: "{".into() },
    );
    stage.wait(70_000);
    expect![[r#"
        participants: Trader, Coder

        Trader → Coder
        Go

        Coder → Trader
        Here it is: `x

        Coder is calling plot... 1m 13s
    "#]]
    .assert_eq(&stage.sees());
    stage.root(said("Coder", "Here **it** is: `x"));
    expect![[r#"
        participants: Trader, Coder

        Trader → Coder
        Go

        Coder → Trader
        Here it is: `x
    "#]]
    .assert_eq(&stage.sees());
}

#[test]
fn tools_run_visibly() {
    let mut stage = Stage::in_turn_of_b(60, 20);
    stage.root(called("B", "1", "search", json!({"query": "rust"})));
    stage.root(called("B", "2", "fetch", json!({"url": "https://example.org/".repeat(5)})));
    stage.wait(2500);
    expect![[r#"
        participants: A, B

        A → B
        Go

        ⚙ search(query: "rust")... 2.5s
        ⚙ fetch(url: "https://example.org/https://example.…... 2.5s
    "#]]
    .assert_eq(&stage.sees());
    stage.root(returned("B", "2", ToolResult::failed("no network")));
    stage.wait(500);
    expect![[r#"
        participants: A, B

        A → B
        Go

        B → A
        ✗ fetch(url: "https://example.org/http… → no network (2.5s)

        ⚙ search(query: "rust")... 3.0s
    "#]]
    .assert_eq(&stage.sees());
    stage.root(turn_started("A"));
    assert!(stage.sees().contains("B: ⚙ search"), "{}", stage.sees());
    stage.root(Body::Passed { who: name("A") });
    stage.root(returned("B", "1", ToolResult::done("3 hits\na\nb")));
    stage.wait(100);
    expect![[r#"
        participants: A, B

        A → B
        Go

        B → A
        ✗ fetch(url: "https://example.org/http… → no network (2.5s)

        A passes

        B → A
        ⚙ search(query: "rust") → 3 hits (+2 lines) (3.0s)

        B is thinking... 0.1s
    "#]]
    .assert_eq(&stage.sees());
}

#[test]
fn a_reply_that_breaks_off_is_taken_back() {
    let mut stage = Stage::in_turn_of_b(60, 20);
    stage.text("B", "A first try\n\nthat breaks");
    stage.piece_at(&Path::root(), "B", Delta::Restart);
    stage.wait(1000);
    expect![[r#"
        participants: A, B

        A → B
        Go

        B is thinking... 1.0s (attempt 2)
    "#]]
    .assert_eq(&stage.sees());
    stage.text("B", "A second");
    stage.text("B", " try.");
    stage.root(said("B", "A second try."));
    expect![[r#"
        participants: A, B

        A → B
        Go

        B → A
        A second try.
    "#]]
    .assert_eq(&stage.sees());
}

#[test]
fn a_retry_says_why_which_and_when() {
    let mut stage = Stage::in_turn_of_b(70, 20);
    let (cause, wait) = ("429 from openai".to_owned(), Duration::from_secs(2));
    stage.piece_at(&Path::root(), "B", Delta::Retry { cause, retry: 2, retries: 4, wait });
    let status = |stage: &mut Stage| stage.sees().lines().last().map(str::to_owned).unwrap();
    stage.wait(500);
    assert_eq!(status(&mut stage), "B: 429 from openai, retry 2 of 4 in 1.5s");
    stage.wait(1600);
    assert_eq!(status(&mut stage), "B is thinking after 429 from openai, retry 2 of 4... 0.1s");
    stage.piece_at(&Path::root(), "B", Delta::Thought("Hm.".into()));
    stage.wait(100);
    assert!(stage.sees().contains("B is thinking... 0.2s (attempt 3)\n"), "{}", stage.sees());
    stage.root(said("B", "Done."));
    assert!(!stage.sees().contains("429"), "it is shown live only: {}", stage.sees());
}

#[test]
fn a_retry_that_does_not_wait_is_now() {
    let said = |wait| {
        let cause = "429 from openai".to_owned();
        let retry = Delta::Retry { cause, retry: 1, retries: 4, wait: Duration::from_millis(wait) };
        crate::screen::turns::retrying(&name("B"), &retry).unwrap()
    };
    assert_eq!(said(0), "B: 429 from openai, retry 1 of 4 now");
    assert_eq!(said(99), "B: 429 from openai, retry 1 of 4 now");
    assert_eq!(said(100), "B: 429 from openai, retry 1 of 4 in 0.1s");
}

#[test]
fn a_reply_that_is_taller_than_the_screen_scrolls_and_leaves_a_note_if_it_breaks_off() {
    let mut stage = Stage::in_turn_of_b(40, 6);
    let long: String = (1..=9).map(|n| format!("- item {n}\n")).collect();
    stage.text("B", &long);
    expect![[r#"
        • item 4
        • item 5
        • item 6
        • item 7
        • item 8
        • item 9
    "#]]
    .assert_eq(&stage.sees());
    stage.piece_at(&Path::root(), "B", Delta::Restart);
    stage.text("B", "Short.");
    stage.root(said("B", "Short."));
    expect![[r#"
        participants: A, B

        A → B
        Go

        B → A
        • item 1
        • item 2
        • item 3
        • item 4
        (this was not said)

        B → A
        Short.
    "#]]
    .assert_eq(&stage.scrolls());
}

#[test]
fn a_block_that_is_taller_than_the_screen_is_shown_by_its_end() {
    let mut stage = Stage::live(40, 8);
    stage.root(turn_started("B"));
    let table: String = (1..=20).map(|n| format!("| {n} | x |\n")).collect();
    let table = format!("| n | v |\n|-|-|\n{table}");
    stage.text("B", &table);
    expect![[r#"
        B → all
        …
        15 │ x
        16 │ x
        17 │ x
        18 │ x
        19 │ x
        20 │ x
    "#]]
    .assert_eq(&stage.sees());
    stage.root(said("B", &table));
    assert_eq!(stage.scrolls().lines().count(), 1 + 22);
}

#[test]
fn the_final_message_replaces_the_streamed_text() {
    let mut stage = Stage::in_turn_of_b(60, 20);
    stage.text("B", "Thought: hm. Answer: 42");
    stage.root(sampled("B", vec![Part::text("Thought: hm. Answer: 42")]));
    assert!(stage.sees().contains("Thought"), "a draft until something is said");
    stage.root(said("B", "42"));
    let seen = stage.sees();
    assert!(seen.contains("42") && !seen.contains("Thought"), "{seen}");
}

#[test]
fn a_draft_that_is_sent_back_vanishes() {
    let mut stage = Stage::in_turn_of_b(60, 20);
    stage.text("B", "no json");
    stage.root(sampled("B", vec![Part::text("no json")]));
    stage.root(Body::Prompted { who: name("B"), text: "Answer in JSON.".into() });
    stage.text("B", "{}");
    stage.root(sampled("B", vec![Part::text("{}")]));
    stage.root(said("B", "{}"));
    expect![[r#"
        participants: A, B

        A → B
        Go

        B → A
        {}
    "#]]
    .assert_eq(&stage.sees());
}

#[test]
fn several_at_once_one_live_the_others_whole() {
    let mut stage = Stage::live(60, 30);
    stage.root(opened(&["A", "B", "C"], "user", "Go"));
    stage.root(Body::TurnStarted {
        turns: ["A", "B", "C"].map(|who| TurnRequest::to_all(name(who))).to_vec(),
    });
    stage.text("B", "B writes");
    stage.text("A", "A writes");
    stage.text("B", " and writes");
    expect![[r#"
        participants: A, B, C

        user → all
        Go

        B → all
        B writes and writes

        A is writing... 0.1s
        C is thinking... 0.1s
    "#]]
    .assert_eq(&stage.sees());
    stage.root(said("A", "A writes all."));
    expect![[r#"
        participants: A, B, C

        user → all
        Go

        A → all
        A writes all.

        B → all
        B writes and writes

        C is thinking... 0.1s
    "#]]
    .assert_eq(&stage.sees());
    stage.root(said("B", "B writes and writes"));
    stage.text("C", "C is last");
    stage.root(said("C", "C is last"));
    expect![[r#"
        participants: A, B, C

        user → all
        Go

        A → all
        A writes all.

        B → all
        B writes and writes

        C → all
        C is last
    "#]]
    .assert_eq(&stage.sees());
}

#[test]
fn what_comes_while_a_tall_reply_is_written_follows_it() {
    let mut stage = Stage::live(40, 6);
    stage.root(Body::TurnStarted { turns: ["A", "B"].map(|who| TurnRequest::to_all(name(who))).to_vec() });
    let long: String = (1..=7).map(|n| format!("- item {n}\n")).collect();
    stage.text("A", &long);
    stage.root(said("B", "B in between"));
    stage.text("A", "- last");
    stage.root(said("A", &format!("{long}- last")));
    expect![[r#"
        A → all
        • item 1
        • item 2
        • item 3
        • item 4
        • item 5
        • item 6
        • item 7
        • last

        B → all
        B in between
    "#]]
    .assert_eq(&stage.scrolls());
}

#[test]
fn thoughts_stay_if_wanted() {
    for (thought, said_text) in [("I think", "So."), ("I th", "So.")] {
        let mut stage = Stage::new(Settings { thoughts: true, ..LIVE }, 60, 20);
        stage.root(opened(&["A", "B"], "A", "Go"));
        stage.root(turn_started("B"));
        stage.piece_at(&Path::root(), "B", Delta::Thought(thought.into()));
        stage.text("B", said_text);
        stage.root(sampled("B", vec![Part::Thought("I think".into()), Part::text("So.")]));
        stage.root(said("B", "So."));
        let seen = stage.sees();
        assert!(seen.ends_with("B → A\nI think\nSo.\n"), "{seen}");
    }
}

#[test]
fn a_private_turn_is_not_streamed() {
    let mut stage = Stage::live(60, 20);
    stage.root(opened(&["A", "B", "C"], "user", "Go"));
    stage.root(Body::TurnStarted { turns: vec![TurnRequest::private(name("selector"), "Who is next?")] });
    stage.text("selector", "A, because");
    assert!(stage.sees().ends_with("selector is writing... 0.0s\n"), "{}", stage.sees());
    stage.root(Body::Message(Message::new(name("selector"), "A, because it knows").to(Audience::private())));
    assert!(
        !stage.sees().contains("selector"),
        "it may be a summary, which is shown as such: {}",
        stage.sees()
    );
    stage.root(turn_started("A"));
    assert!(stage.sees().contains("selector (private): A, because it knows\n"), "{}", stage.sees());
}

#[test]
fn a_resized_terminal_gets_rows_of_its_size() {
    let mut stage = Stage::live(60, 20);
    stage.root(turn_started("B"));
    stage.text("B", "one two three four five six seven eight nine ten");
    stage.resize(24, 20);
    stage.text("B", " eleven");
    let text = "one two three four five six seven eight nine ten eleven";
    stage.root(said("B", text));
    let seen = stage.sees();
    assert!(seen.ends_with("one two three four five\nsix seven eight nine\nten eleven\n"), "{seen}");
    for (columns, rows) in [(1, 1), (2, 3), (300, 2), (0, 0)] {
        stage.claim_size(columns, rows);
        stage.root(turn_started("B"));
        stage.text("B", ANSWER);
        stage.root(said("B", ANSWER));
    }
    assert!(stage.written.text().contains("End."));
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 60, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    #[test]
    fn any_text_is_streamed_to_the_same_screen(
        pieces in prop::collection::vec("([a-z*_`|#>\\- \n\t\r\u{1b}中❤️]|```\n|\n\n|1\\. ){0,20}", 0..8),
        columns in 10usize..100,
        rows in 4usize..30,
    ) {
        let pieces: Vec<&str> = pieces.iter().map(String::as_str).collect();
        let whole = Settings { stream: false, ..LIVE };
        prop_assert_eq!(play(&pieces, LIVE, columns, rows), play(&pieces, whole, columns, rows));
    }
}
