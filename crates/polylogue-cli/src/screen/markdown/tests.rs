use expect_test::{Expect, expect};
use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use super::*;

fn shown(text: &str, width: usize) -> String {
    let lines = Markdown::lines(text, width, Style::PLAIN);
    lines.iter().map(|line| format!("{}\n", line.text())).collect()
}

fn check(text: &str, expected: &Expect) {
    expected.assert_eq(&shown(text, 40));
}

#[test]
fn blocks_keep_the_authors_spacing() {
    check(
        "# Title\nText of a paragraph that is longer than forty columns.\nInput: None\n\n\n## Next\n\n---\nEnd",
        &expect![[r#"
            Title
            Text of a paragraph that is longer than
            forty columns.
            Input: None

            Next

            ────────────────────────────────────────
            End
        "#]],
    );
}

#[test]
fn emphasis_code_and_links() {
    check(
        "*a* **b** ~~c~~ `d` [e](https://x.y) <https://z.w> ![pic](p.png) \\* &amp; &#27;[2J <CAMEL_TASK_DONE>",
        &expect![[r#"
            a b c d e (https://x.y) https://z.w
            image: pic (p.png) * & ␛[2J
            <CAMEL_TASK_DONE>
        "#]],
    );
}

#[test]
fn lists_count_on_nest_and_hold_blocks() {
    check(
        "Steps:\n1. one\n1. two\n   - inner\n   - inner, a longer one that has to wrap\n\n1. three\n\n   More.\n   ```py\n   x = 1\n\n   y\n   ```\n\n- [x] done\n- [ ] open\n\nAfter\n7. not a list",
        &expect![[r#"
            Steps:
            1. one
            2. two
               • inner
               • inner, a longer one that has to
                 wrap

            3. three

               More.
               ── py
            x = 1

            y

            • ☑ done
            • ☐ open

            After
            7. not a list
        "#]],
    );
}

#[test]
fn code_has_a_gutter_and_is_never_reflowed() {
    check(
        "Look:\n```rust\nfn main() {\n    let a_long_name = another_long_name(1, 2, 3);\n\n# no heading\n}\n```\nDone.\n~~~\n``` inside\n~~~\n\n    indented\n",
        &expect![[r#"
            Look:
            ── rust
            fn main() {
                let a_long_name = another_long_name(1, 2, 3);

            # no heading
            }
            Done.
            ──
            ``` inside

            ──
            indented
        "#]],
    );
}

#[test]
fn quotes() {
    check(
        "> one\n> two\n>\n> - three\n>> four\n\nfive",
        &expect![[r#"
        ▌ one
        ▌ two
        ▌
        ▌ • three
        ▌ ▌ four

        five
    "#]],
    );
}

#[test]
fn tables_are_aligned() {
    let table =
        "| Name | Count | Note |\n|:--|--:|:-:|\n| 中文 | 7 | *x* |\n| b | 1234 | a\\|b |\n| only |\n";
    check(
        table,
        &expect![[r#"
        Name │ Count │ Note
        ─────┼───────┼─────
        中文 │     7 │  x
        b    │  1234 │ a|b
        only │       │
    "#]],
    );
    let wide = "|Name|What it is for|Why|\n|-|-|-|\n|alpha|a rather long description of it|because of that and this|\n";
    expect![[r#"
        Name  │ What it is for │ Why
        ──────┼────────────────┼───────────────
        alpha │ a rather long  │ because of
              │ description of │ that and this
              │ it             │
    "#]]
    .assert_eq(&shown(wide, 40));
    expect![[r#"
        Name: alpha
        What it is for: a
        rather long
        description of it
        Why: because of that
        and this
    "#]]
    .assert_eq(&shown(wide, 20));
}

#[test]
fn malformed_markdown_is_rendered() {
    check("", &expect![[r#""#]]);
    check("\n\n  \n", &expect![[r#""#]]);
    check(
        "-\n- \n-x\n1986. A year\n1986\\. A year",
        &expect![[r#"
        •
        •
        -x
        1986. A year
              1986. A year
    "#]],
    );
    check(
        "a\r\nb\rc\u{0}\x1b[31m\n\n```\n\x1b[2J\tx\n",
        &expect![[r#"
            a
            b␍c␀␛[31m

            ──
            ␛[2J    x
        "#]],
    );
    check(
        "Heading\n=======\ntext\n<b>bold</b>\n\n<div>\n- x\n</div>\n\n| no table\n\nSee [1].\n\n[1]: https://x.y\n\n```\n```\n\n>>",
        &expect![[r#"
            Heading
            text
            <b>bold</b>

            <div>
            • x
            </div>

            | no table

            See [1].

            [1]: https://x.y

            ──

            >>
        "#]],
    );
}

#[test]
fn code_streams_line_by_line_and_lists_item_by_item() {
    let mut markdown = Markdown::new(40, Style::PLAIN);
    let mut settled = |piece: &str| {
        markdown.push(piece);
        markdown.settled().len()
    };
    assert_eq!(settled("# T"), 0);
    assert_eq!(settled("itle\n"), 1);
    assert_eq!(settled("\npara"), 1);
    assert_eq!(settled("graph\n\n"), 3);
    assert_eq!(settled("```\nco"), 5);
    assert_eq!(settled("de\n"), 6);
    assert_eq!(settled("more\n```\n"), 7);
    assert_eq!(settled("- a\n- b"), 7);
    assert_eq!(settled("\n- c"), 8);
}

#[test]
fn a_long_unfinished_block_is_previewed_by_its_end() {
    let mut markdown = Markdown::new(40, Style::PLAIN);
    markdown.push(&"wörd ".repeat(10_000));
    markdown.push("end");
    let pending = markdown.pending();
    assert!(pending.len() < 80, "{}", pending.len());
    assert!(pending.last().unwrap().text().ends_with("end"));
    markdown.finish();
    assert!(markdown.settled().len() > 1000);
}

#[test]
fn hostile_texts_are_rendered_in_good_time() {
    for text in
        ["[".repeat(20_000), ">".repeat(20_000), "- ".repeat(10_000), "*a ".repeat(10_000), "`".repeat(9999)]
    {
        let begun = std::time::Instant::now();
        let lines = Markdown::lines(&text, 40, Style::PLAIN);
        assert!(!lines.is_empty());
        assert!(begun.elapsed().as_secs() < 20, "{}", &text[..3]);
    }
}

/// Pieces that Markdown is made of, so that random texts hit its rules.
fn markdown_text() -> impl Strategy<Value = String> {
    let piece = prop_oneof![
        Just("\n".to_owned()),
        Just("\n\n".to_owned()),
        Just("```rust\n".to_owned()),
        Just("```".to_owned()),
        Just("    ".to_owned()),
        prop::sample::select(vec![
            "- ", "1. ", "  * ", "# ", "> ", "|a|b|\n|-|-|\n|c|", "---", "**", "_", "`", "[x](y)", "\r",
            "~~~"
        ])
        .prop_map(str::to_owned),
        "[a-zé中❤️ ]{0,12}",
        any::<char>().prop_map(String::from),
    ];
    prop::collection::vec(piece, 0..30).prop_map(|pieces| pieces.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 400, failure_persistence: None, rng_seed: RngSeed::Fixed(7), ..ProptestConfig::default() })]

    #[test]
    fn how_a_text_is_cut_makes_no_difference(text in markdown_text(), cuts in prop::collection::vec(any::<prop::sample::Index>(), 0..8), width in 8usize..120) {
        let mut at: Vec<usize> = cuts.iter().map(|cut| cut.index(text.len() + 1)).filter(|at| text.is_char_boundary(*at)).collect();
        at.sort_unstable();
        at.push(text.len());
        let mut markdown = Markdown::new(width, Style::PLAIN);
        let mut from = 0;
        let mut settled: Vec<Line> = Vec::new();
        for to in at {
            markdown.push(&text[from..to]);
            from = to;
            prop_assert!(markdown.settled().starts_with(&settled), "what is settled stays");
            settled = markdown.settled().to_vec();
            // If the text ended here, what is shown would be final.
            let now = [settled.clone(), markdown.pending()].concat();
            prop_assert_eq!(now, Markdown::lines(&text[..to], width, Style::PLAIN));
        }
        markdown.finish();
        prop_assert_eq!(markdown.settled(), &*Markdown::lines(&text, width, Style::PLAIN));
    }

    #[test]
    fn no_row_is_too_wide_and_none_drives_the_terminal(text in markdown_text(), width in 20usize..120) {
        for line in Markdown::lines(&text, width, Style::PLAIN) {
            prop_assert!(line.text().chars().all(|c| visible(c) == c));
            prop_assert!(line.is_verbatim() || line.width() <= width, "{:?}", line.text());
        }
    }
}
