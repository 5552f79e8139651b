//! How the page presents what it shows, in a real browser: once, in words, and where a person looks for it.

use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::conversations::{begin, begin_until, until};
use crate::page_browser::{browser_of, check_clean, page, picture};
use crate::page_views::{resize, show, show_until, stored_run};
use crate::world::{World, generous};

const PATH: &str = "/api/v1/conversations";

/// The folder of the shipped teams.
fn teams() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../teams")
}

/// Scrolls as a person does: until the page has heard of it, and follows its end no more.
async fn scroll(browser: &mut Browser, top: u32) {
    let scroll = format!(
        "(async () => {{
            do {{
                scrollTo(0, {top});
                for (let frame = 0; frame < 2; frame++) await new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
            }} while (scrollY !== {top});
        }})()"
    );
    browser.eval(&scroll).await;
}

/// How often the conversation shows a text.
async fn count(browser: &mut Browser, text: &str) -> Value {
    browser
        .eval(&format!("document.querySelector('.talk').innerText.split({}).length - 1", json!(text)))
        .await
}

#[tokio::test]
async fn the_list_shows_tasks_and_is_where_it_was_when_a_person_comes_back() {
    const RUNS: usize = 30;
    let world = World::with(generous()).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    browser.until_text("There is no run yet.").await;
    for number in 0..RUNS {
        begin(&world, &json!({"team": "talk", "message": format!("Count to {number}.")})).await;
    }
    let rows = format!("document.querySelectorAll('.run-row .state.done').length === {RUNS}");
    browser.until(&rows).await;
    assert_eq!(browser.eval("document.querySelector('.run-task').textContent").await, "Count to 29.");
    scroll(&mut browser, 700).await;
    browser.eval("document.querySelectorAll('.run-row > a')[10].click()").await;
    browser.until("document.querySelector('.closed')").await;
    browser.eval("history.back()").await;
    browser.until(&format!("{rows} && scrollY === 700")).await;
    // By a link, it is at its beginning.
    browser.press("Teams").await;
    browser.until("document.querySelector('.teams .run-row')").await;
    browser.press("Runs").await;
    browser.until(&format!("{rows} && scrollY === 0")).await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_result_is_shown_once_with_its_call_and_an_open_question_once_in_its_box() {
    let Some((world, mut browser)) = page().await else { return };
    let outcome = json!({"status": "done", "parts": [{"text": "The only result."}]});
    let bodies = [
        json!({"type": "turn_started", "turns": [{"who": "Ann"}]}),
        json!({"type": "tool_called", "who": "Ann", "call": {"id": "c", "tool": "read", "args": {}}}),
        json!({"type": "tool_returned", "who": "Ann", "id": "c", "result": outcome}),
        json!({"type": "message", "from": "Ann", "parts": [
            {"tool_result": {"to": "Bob", "id": "c", "tool": "read", "result": outcome}},
        ]}),
    ];
    let id = stored_run(&world, "once", bodies).await;
    show_until(&mut browser, &format!("#/runs/{id}"), "document.querySelector('.call')").await;
    browser.eval("document.querySelectorAll('.talk details').forEach((it) => { it.open = true; })").await;
    assert_eq!(count(&mut browser, "The only result.").await, 1);
    let id = begin(&world, &json!({"team": "ask"})).await;
    let asked = until(&world, &id, "waiting").await["questions"][0]["text"].clone();
    show_until(&mut browser, &format!("#/runs/{id}"), "document.querySelector('.question')").await;
    assert_eq!(count(&mut browser, asked.as_str().unwrap()).await, 1);
    // Nothing is being written, so there is no line for it.
    let line = "document.querySelector('.turn.open .live-text').getBoundingClientRect().height";
    assert_eq!(browser.eval(line).await, 0);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn what_is_read_stays_in_its_place_when_the_point_of_view_changes() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "whisper", "closed").await;
    show_until(&mut browser, &format!("#/runs/{id}"), "document.querySelector('.closed')").await;
    scroll(&mut browser, 400).await;
    let place = "window.read.getBoundingClientRect().top";
    let before = browser
        .eval(&format!(
            "window.read = [...document.querySelectorAll('.turn')].find((it) => it.getBoundingClientRect().top > 0); {place}"
        ))
        .await;
    browser.eval("document.querySelector('[data-view=Guesser]').click()").await;
    browser.until(&format!("document.querySelector('.dimmed') && Math.abs({place} - {before}) < 2")).await;
    browser.press("Show everything").await;
    browser.until(&format!("!document.querySelector('.dimmed') && Math.abs({place} - {before}) < 2")).await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_comparison_shows_other_tasks_and_says_when_both_are_the_same() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin(&world, &json!({"team": "talk"})).await;
    let events = until(&world, &id, "closed").await["seq"].clone();
    let fork = json!({"seq": 0, "text": "Count down.", "run": true});
    let fork = world.post(&format!("{PATH}/{id}/fork"), &fork).await.json();
    let fork = fork["id"].as_str().unwrap();
    until(&world, fork, "closed").await;
    show(&mut browser, &format!("#/compare?a={id}&b={fork}")).await;
    browser.until_text("They differ from the beginning.").await;
    let tasks = "[...document.querySelectorAll('.tasks .parts')].map((it) => it.innerText)";
    assert_eq!(browser.eval(tasks).await, json!(["Count.", "Count down."]));
    // In one column, each is of a side, and what is the same is there once.
    let shown = "[...document.querySelectorAll('.pair.same .said')].filter((it) => it.offsetHeight).length";
    resize(&mut browser, 1440).await;
    let both = browser.eval(shown).await.as_u64().unwrap();
    resize(&mut browser, 390).await;
    assert_eq!(browser.eval(shown).await, both / 2);
    let marks = "[...document.querySelectorAll('.tasks .mark')].map((it) => it.innerText).join()";
    assert_eq!(browser.eval(marks).await, "A,B");
    picture(&mut browser, "compare-narrow").await;
    let copy = world.post(&format!("{PATH}/{id}/fork"), &json!({})).await.json();
    show(&mut browser, &format!("#/compare?a={id}&b={}", copy["id"].as_str().unwrap())).await;
    browser.until_text(&format!("Both have the same {events} events.")).await;
    assert!(!browser.text().await.contains("Show where they part"));
    check_clean(&browser, &world);
}

#[tokio::test]
async fn on_a_phone_the_top_has_two_rows_and_no_button_of_a_dialog_leaves_its_row() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "whisper", "closed").await;
    resize(&mut browser, 390).await;
    show(&mut browser, &format!("#/runs/{id}?request=Guesser:2")).await;
    browser.until("document.querySelector('dialog .entry')").await;
    let rows = |selector: &str| {
        format!(
            "new Set([...document.querySelectorAll('{selector}')].filter((it) => it.offsetHeight)
                .map((it) => {{ const {{ top, bottom }} = it.getBoundingClientRect(); return Math.round((top + bottom) / 2); }})).size"
        )
    };
    assert_eq!(browser.eval(&rows(".top > :not(.spring, .skip)")).await, 2);
    assert_eq!(browser.eval(&rows(".dialog-head > *")).await, 1);
    picture(&mut browser, "request-narrow").await;
    check_clean(&browser, &world);
}

/// Four people who are asked at the same time.
pub(crate) const ASKED: &str = "
name: asked
task: What do you think?
agents: [{name: Ann, human: true}, {name: Bob, human: true}, {name: Cid, human: true}, {name: Dora, human: true}]
chat: {participants: [Ann, Bob, Cid, Dora], pattern: parallel}
";

#[tokio::test]
async fn however_many_questions_wait_a_part_of_the_screen_is_left_for_what_was_said() {
    let world = World::with_team("asked", ASKED).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "asked"})).await;
    until(&world, &id, "waiting").await;
    for width in [390, 1440] {
        resize(&mut browser, width).await;
        show(&mut browser, &format!("#/runs/{id}")).await;
        browser.until("document.querySelectorAll('.question').length === 4").await;
        browser.until("document.querySelector('.boxes').offsetHeight <= 0.76 * innerHeight").await;
        // The last one is there for who goes to it.
        browser.eval("[...document.querySelectorAll('.question .answer')].at(-1).focus()").await;
        let is_seen = "(() => { const [all, own] = [document.querySelector('.questions'), document.activeElement].map((it) => it.getBoundingClientRect()); return own.top >= all.top && own.bottom <= all.bottom && own.bottom <= innerHeight; })()";
        browser.until(is_seen).await;
        show(&mut browser, "#/teams").await;
        browser.until("!document.querySelector('.question')").await;
    }
    check_clean(&browser, &world);
}

#[tokio::test]
async fn at_each_width_a_hint_is_whole_and_a_name_is_nearest_to_its_own_bars() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "talk", "closed").await;
    let is_whole = "(() => {
        const it = document.querySelector('search.filters input');
        const style = getComputedStyle(it);
        const pen = document.createElement('canvas').getContext('2d');
        pen.font = style.font;
        const space = it.clientWidth - parseFloat(style.paddingLeft) - parseFloat(style.paddingRight);
        return pen.measureText(it.placeholder).width <= space;
    })()";
    let is_nearest = "(() => {
        const of = (part) => [...document.querySelectorAll(`.lane:not(.scale) > ${part}`)].map((it) => it.getBoundingClientRect());
        const [names, bars] = [of('.lane-name'), of('.bars')];
        return names.length === 2 && bars[1].top - names[1].bottom < names[1].top - bars[0].bottom;
    })()";
    for width in [1280, 768, 390] {
        resize(&mut browser, width).await;
        show_until(&mut browser, "#/", "document.querySelector('search.filters input')").await;
        assert_eq!(browser.eval(is_whole).await, true, "{width}");
        show(&mut browser, &format!("#/runs/{id}/timeline")).await;
        browser.until("document.querySelector('.lane > .bars')").await;
        assert_eq!(browser.eval(is_nearest).await, true, "{width}");
    }
    check_clean(&browser, &world);
}

#[tokio::test]
async fn the_bar_of_a_person_who_is_waited_for_has_the_pattern_that_the_key_shows() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "ask", "waiting").await;
    show_until(&mut browser, &format!("#/runs/{id}/timeline"), "document.querySelector('.bar.person')").await;
    let fill = "getComputedStyle(document.querySelector('.bar.person')).fill";
    assert_eq!(browser.eval(fill).await, "url(\"#waits\")");
    assert_eq!(browser.eval("document.querySelectorAll('pattern#waits .stripe').length").await, 1);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn no_line_of_a_graph_lies_over_its_texts() {
    let desk = std::fs::read_to_string(teams().join("support-desk.yaml")).unwrap();
    let world = World::with_team("support-desk", &desk).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin_until(&world, "support-desk", "closed").await;
    show(&mut browser, &format!("#/runs/{id}/graph")).await;
    browser.until("document.querySelectorAll('.edge-label').length > 3 && document.querySelector('.edge-label .edge-count')").await;
    let over = "[...document.querySelectorAll('.edge-label')].filter((it) =>
        [...it.parentNode.querySelectorAll(':scope > .edge')].some((line) => it.compareDocumentPosition(line) & Node.DOCUMENT_POSITION_FOLLOWING)).length";
    assert_eq!(browser.eval(over).await, 0);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_wide_graph_has_a_shadow_where_more_of_it_is_out_of_sight() {
    let chess = std::fs::read_to_string(teams().join("nested-chess.yaml")).unwrap();
    let world = World::with_team("nested-chess", &chess).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "nested-chess"})).await;
    show(&mut browser, &format!("#/runs/{id}/graph")).await;
    browser.until("document.querySelectorAll('.shade').length === 2").await;
    // At its own end of the picture, a shadow is behind a cover.
    let shadows = "(() => {
        const [left, right] = [...document.querySelectorAll('.shade')].map((it) => it.getBoundingClientRect());
        const whole = document.querySelector('.graph-whole').getBoundingClientRect();
        return [left.left > whole.left + 1, right.right < whole.right - 1];
    })()";
    let scroll = |left: &str| format!("document.querySelector('.graph-scroll').scrollLeft = {left}");
    resize(&mut browser, 390).await;
    assert_eq!(browser.eval(shadows).await, json!([false, true]));
    browser.eval(&scroll("60")).await;
    assert_eq!(browser.eval(shadows).await, json!([true, true]));
    browser.eval(&scroll("1e6")).await;
    assert_eq!(browser.eval(shadows).await, json!([true, false]));
    resize(&mut browser, 1440).await;
    assert_eq!(browser.eval(shadows).await, json!([false, false]));
    check_clean(&browser, &world);
}

#[tokio::test]
async fn amounts_are_written_out_and_what_is_unknown_of_all_calls_is_said_once() {
    let Some((world, mut browser)) = page().await else { return };
    for (call, text) in [
        ("dollars(0)", "$0"),
        ("dollars(5e11)", "$0.50"),
        ("dollars(1.234e11)", "$0.1234"),
        ("dollars(1.5e12)", "$1.50"),
        ("dollars(2.5e7)", "$0.000025"),
        ("dollars(1.29e5)", "$0.00000013"),
        ("spending({calls: 2, unmetered: 2, cost: 0})", "2 calls · tokens unknown · $0"),
        (
            "spending({calls: 3, input: 50, output: 7, unmetered: 1, unpriced: 3})",
            "3 calls · 50 in, 7 out · 1 call with unknown tokens · cost unknown",
        ),
    ] {
        let shown = format!("import('/page/format.js').then(({{ dollars, spending }}) => {call})");
        assert_eq!(browser.eval(&shown).await, text, "{call}");
    }
    check_clean(&browser, &world);
}
