//! The page for those who read from right to left, who use no mouse, and who see only a part of it.

use serde_json::json;

use crate::conversations::{begin, until};
use crate::page_browser::{browser_of, check_clean};
use crate::page_keys::strike;
use crate::page_layout::ASKED;
use crate::page_views::{key, long_run, resize, show};
use crate::world::World;

#[tokio::test]
async fn an_error_is_in_view_however_far_the_page_is_scrolled() {
    let world = World::new().await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = long_run(&world, 60).await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until("document.body.innerText.includes('Message 59.') && scrollY > 1000").await;
    browser.eval("navigator.clipboard.writeText = () => Promise.reject(new Error('no')), 0").await;
    browser
        .eval("[...document.querySelectorAll('.turn')].at(-1).querySelector('.menu button').click()")
        .await;
    browser
        .until("document.querySelector('.failure')?.innerText.includes('does not allow this page to copy')")
        .await;
    let place = "document.querySelector('.failure').getBoundingClientRect()";
    let in_view = format!("(({{top, bottom}}) => top >= 0 && bottom <= innerHeight)({place})");
    assert_eq!(browser.eval(&in_view).await, true);
    assert_eq!(browser.eval("scrollY > 1000").await, true);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn what_is_copied_is_said_and_the_focus_stays_at_its_menu() {
    let world = World::new().await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "talk"})).await;
    until(&world, &id, "closed").await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until("document.querySelector('.closed')").await;
    browser.eval("navigator.clipboard.writeText = async (text) => { window.copied = text; }, 0").await;
    let menu = "document.querySelector('[data-who=Ann] .menu')";
    browser.eval(&format!("{menu}.open = true, {menu}.querySelector('button').focus()")).await;
    browser.eval(&format!("{menu}.querySelector('button').click()")).await;
    browser.until("document.querySelector('[role=status] > .done-note')").await;
    assert_eq!(browser.eval("window.copied").await, "one");
    assert_eq!(
        browser.eval(&format!("document.activeElement === {menu}.querySelector('summary')")).await,
        true
    );
    check_clean(&browser, &world);
}

#[tokio::test]
async fn the_focus_is_where_a_form_was_opened_that_is_closed() {
    let world = World::new().await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "whisper"})).await;
    until(&world, &id, "closed").await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until("document.querySelector('.closed')").await;
    browser
        .eval("document.querySelector('.rename').focus(), document.querySelector('.rename').click()")
        .await;
    browser.until("document.activeElement.name === 'title'").await;
    key(&mut browser, "Escape").await;
    browser.until("document.activeElement.matches('.rename')").await;
    browser.eval("document.querySelector('.turn button.edit').click()").await;
    browser.until("document.activeElement.matches('.edit-form textarea')").await;
    browser.press("Cancel").await;
    browser
        .until("!document.querySelector('.edit-form') && document.activeElement.matches('.menu > summary')")
        .await;
    browser.eval("document.querySelector('[data-view=Guesser]').click()").await;
    browser.until("document.querySelector('.viewpoint button')").await;
    browser.eval("document.querySelector('.viewpoint button').focus()").await;
    browser.press("Show everything").await;
    browser
        .until(
            "!document.querySelector('.viewpoint') && document.activeElement.matches('[data-view=Guesser]')",
        )
        .await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn what_keys_give_the_focus_does_not_lie_under_the_questions() {
    let world = World::with_team("asked", ASKED).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "asked"})).await;
    until(&world, &id, "waiting").await;
    resize(&mut browser, 390).await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until("document.querySelectorAll('.question').length === 4").await;
    // How far the element with the focus lies under the questions, if it is a part of what was said.
    let hidden = "(() => { const it = document.activeElement; const [own, boxes] = [it, document.querySelector('.boxes')].map((it) => it.getBoundingClientRect()); return it.closest('.conversation') ? own.bottom - boxes.top : null; })()";
    browser.eval("document.querySelector('.tabs a').focus()").await;
    let mut stops = 0;
    while browser.eval("!document.activeElement.closest('.question')").await == true {
        strike(&mut browser, "Tab").await;
        if let Some(hidden) = browser.eval(hidden).await.as_f64() {
            assert!(hidden <= 0.0, "{hidden} pixels of stop {stops}");
            stops += 1;
        }
    }
    assert!(stops > 3, "{stops}");
    // Keys and screen readers come to the participants before what was said, as on the screen.
    let order = "document.querySelector('aside').compareDocumentPosition(document.querySelector('.talk')) & Node.DOCUMENT_POSITION_FOLLOWING";
    assert_eq!(browser.eval(order).await, 4);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn an_address_that_names_what_there_is_not_says_so_and_begins_nothing_else() {
    let world = World::new().await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "talk"})).await;
    until(&world, &id, "closed").await;
    show(&mut browser, "#/new?team=nothing").await;
    browser.until_text("No team “nothing” is served.").await;
    assert_eq!(browser.eval("document.querySelector('select[name=team]').value").await, "");
    assert_eq!(browser.eval("document.querySelector('form button.main')").await, json!(null));
    show(&mut browser, &format!("#/runs/{id}?request=Zoe:1")).await;
    browser.until("document.querySelector('dialog .bad code')?.textContent === 'Zoe'").await;
    browser.eval("document.querySelector('dialog').close()").await;
    // A hint for programs is none for people.
    show(&mut browser, &format!("#/compare?a={id}&b=nothing")).await;
    browser.until("document.querySelector('.failure')").await;
    assert_eq!(browser.eval("document.querySelector('.failure').innerText.includes('/api/')").await, false);
    check_clean(&browser, &world);
}

const WORDS: &str = r#"
name: words
task: Write.
agents: [{name: Ann}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 2}}
script:
  - Ann: "\u05e9\u05dc\u05d5\u05dd.\n\n- \u05d0\u05d7\u05ea"
  - Bob: "Peace.\n\n- one"
"#;

#[tokio::test]
async fn a_text_begins_at_the_side_where_its_script_does() {
    let world = World::with_team("words", WORDS).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "words"})).await;
    until(&world, &id, "closed").await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until("document.querySelector('.closed')").await;
    // How far a paragraph is from both sides of its place, and the direction of its list.
    let sides = "(who) => { const text = document.querySelector(`[data-who=${who}] .prose`); const [all, range] = [text.querySelector('p'), document.createRange()]; range.selectNodeContents(all); const [out, own] = [all, range].map((it) => it.getBoundingClientRect()); return [own.left - out.left < 2, out.right - own.right < 2, getComputedStyle(text.querySelector('ul')).direction]; }";
    assert_eq!(browser.eval(&format!("({sides})('Ann')")).await, json!([false, true, "rtl"]));
    assert_eq!(browser.eval(&format!("({sides})('Bob')")).await, json!([true, false, "ltr"]));
    check_clean(&browser, &world);
}

#[tokio::test]
async fn letters_do_nothing_where_a_person_has_switched_them_off() {
    let world = World::new().await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let switch = "document.querySelector('dialog.help input[type=checkbox]')";
    for is_on in [false, true] {
        browser.eval("document.querySelector('[aria-label=Keys]').click()").await;
        browser.until(switch).await;
        browser.eval(&format!("{switch}.click(), document.querySelector('dialog').close()")).await;
        browser.until("!document.querySelector('dialog')").await;
        show(&mut browser, "#/teams").await;
        browser.until("document.querySelector('.teams .run-row')").await;
        for letter in ["g", "r"] {
            key(&mut browser, letter).await;
        }
        let expected = if is_on { "#/" } else { "#/teams" };
        assert_eq!(browser.eval("location.hash").await, expected);
        // A browser keeps it.
        browser.reload().await;
        browser.until("document.querySelector('main h1')").await;
    }
    check_clean(&browser, &world);
}
