//! What a person writes in the page, in a real browser: it is neither lost nor sent twice.

use serde_json::json;

use crate::browser::Browser;
use crate::conversations::{begin_until, events, said, until};
use crate::page_browser::{check_clean, choose, id_of, page, until_state};
use crate::page_views::show;

const PATH: &str = "/api/v1/conversations";

/// From now on, POST requests to paths with this end are answered once `window.answer` is called: with `true` by the server, and with `false`
/// not at all. Each is counted in `window.sent`.
async fn hold(browser: &mut Browser, end: &str) {
    let hold = format!(
        "window.sent = 0; window.real ??= window.fetch; window.fetch = async (path, options) => {{
            if (options?.method === 'POST' && path.endsWith({})) {{
                window.sent += 1;
                if (!await new Promise((answer) => (window.answer = answer))) throw new TypeError('no connection');
            }}
            return window.real(path, options);
        }}; 0",
        json!(end)
    );
    browser.eval(&hold).await;
}

/// Answers the request that is held.
async fn answer(browser: &mut Browser, by_server: bool) {
    browser.until("window.sent > 0 && !!window.answer").await;
    browser
        .eval(&format!("{{ const answer = window.answer; window.answer = null; answer({by_server}); }} 0"))
        .await;
}

fn value(selector: &str) -> String {
    format!("document.querySelector({}).value", json!(selector))
}

#[tokio::test]
async fn what_was_written_for_a_new_run_stays_when_it_is_refused_and_for_another_team() {
    let Some((world, mut browser)) = page().await else { return };
    choose(&mut browser, "talk").await;
    browser.fill("textarea[name=message]", "Count to ten.").await;
    browser.fill("textarea[name='input:tone']", "loud").await;
    hold(&mut browser, "/conversations").await;
    browser.press("Begin").await;
    answer(&mut browser, false).await;
    browser.until_text("the server cannot be reached").await;
    browser.until("!document.querySelector('form button.main').disabled").await;
    assert_eq!(browser.eval(&value("textarea[name='input:tone']")).await, "loud");
    choose(&mut browser, "ask").await;
    browser.until("!document.querySelector('textarea[name=\"input:tone\"]')").await;
    assert_eq!(browser.eval(&value("textarea[name=message]")).await, "Count to ten.");
    choose(&mut browser, "talk").await;
    browser.fill("textarea[name='input:tone']", "loud").await;
    browser.press("Begin").await;
    answer(&mut browser, true).await;
    until_state(&mut browser, "closed").await;
    let id = id_of(&mut browser).await;
    let view = world.get(&format!("{PATH}/{id}/views/Ann?call=1")).await.json();
    assert_eq!(view["request"]["system"], "Be loud.");
    browser.until_text("Count to ten.").await;
    browser.press("New run").await;
    browser.until("document.querySelector('textarea[name=message]')?.value === ''").await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn what_is_written_while_a_message_is_sent_stays() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "talk", "closed").await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    hold(&mut browser, "/messages").await;
    browser.fill("#say", "Go on.").await;
    browser.press("Send").await;
    browser.until(&format!("{} === ''", value("#say"))).await;
    browser.fill("#say", "And more.").await;
    answer(&mut browser, true).await;
    browser.until_text("Go on.").await;
    browser.until_text("five").await;
    assert_eq!(browser.eval(&value("#say")).await, "And more.");
    // A message that was not sent is there again, before what was written since.
    browser.press("Send").await;
    browser.until(&format!("{} === ''", value("#say"))).await;
    browser.fill("#say", "Please.").await;
    answer(&mut browser, false).await;
    browser.until(&format!("{} === 'And more.\\nPlease.'", value("#say"))).await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn another_text_for_a_message_stays_while_other_views_are_shown() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "talk", "closed").await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until("document.querySelectorAll('.turn').length === 5").await;
    browser.eval("document.querySelectorAll('.turn')[1].querySelector('button.edit').click()").await;
    browser.until("document.activeElement.matches('.edit-form textarea')").await;
    browser.fill(".edit-form textarea", "eins").await;
    browser.press("Timeline").await;
    browser.until("document.querySelector('.timeline')").await;
    browser.press("Conversation").await;
    browser.until(&format!("{} === 'eins'", value(".edit-form textarea"))).await;
    browser.press("Cancel").await;
    browser.press("Timeline").await;
    browser.until("document.querySelector('.timeline')").await;
    browser.press("Conversation").await;
    browser.until("document.querySelectorAll('.turn').length === 5").await;
    assert_eq!(browser.eval("document.querySelectorAll('.edit-form').length").await, 0);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_second_press_and_a_request_whose_answer_was_lost_have_one_effect() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "talk", "closed").await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until("document.querySelectorAll('.turn').length === 5").await;
    let lost = "{ const real = window.fetch; window.fetch = async (path, options) => {
            const answer = await real(path, options);
            if (options?.method !== 'POST' || !path.endsWith('/messages')) return answer;
            window.answers = (window.answers ?? 0) + 1;
            if (window.answers === 1) throw new TypeError('the connection is lost');
            return answer;
        }; } 0";
    browser.eval(lost).await;
    browser.fill("#say", "Go on.").await;
    browser.press("Send").await;
    browser.until_text("the server cannot be reached").await;
    until(&world, &id, "closed").await;
    browser.until(&format!("{} === 'Go on.'", value("#say"))).await;
    browser.press("Send").await;
    browser.until("window.answers === 2 && !document.querySelector('.failure')").await;
    until(&world, &id, "closed").await;
    let said = said(&events(&world, &id).await);
    assert_eq!(said.iter().filter(|text| text.contains("Go on.")).count(), 1, "{said:?}");
    let press = "[...document.querySelectorAll('.run-head button')].find((it) => it.textContent.trim() === 'Fork').click()";
    browser.eval(&format!("{press}, {press}")).await;
    browser.until(&format!("document.querySelector('main[data-run]:not([data-run=\"{id}\"])')")).await;
    let forks = world.get(&format!("{PATH}?parent={id}")).await.json();
    assert_eq!(forks["conversations"].as_array().unwrap().len(), 1, "{forks}");
    check_clean(&browser, &world);
}

#[tokio::test]
async fn what_tab_and_a_word_have_written_in_a_team_file_can_be_undone() {
    let Some((world, mut browser)) = page().await else { return };
    show(&mut browser, "#/teams/talk").await;
    browser.until_text("No errors.").await;
    let begins = |text: &str| format!("{}.startsWith({})", value(".text textarea"), json!(text));
    let undo = "document.querySelector('.text textarea').focus(), document.execCommand('undo')";
    browser
        .eval("{ const it = document.querySelector('.text textarea'); it.focus(); it.setSelectionRange(0, 0); } 0")
        .await;
    browser.command("Input.insertText", json!({"text": "tas"})).await;
    let tab = json!({"type": "rawKeyDown", "key": "Tab", "code": "Tab", "windowsVirtualKeyCode": 9});
    browser.command("Input.dispatchKeyEvent", tab).await;
    browser.until(&begins("tas  \n")).await;
    browser.eval(undo).await;
    browser.until(&begins("tas\n")).await;
    // A word of the completion, where the caret is.
    browser.press("task").await;
    browser.until(&begins("task: \n")).await;
    browser.eval(undo).await;
    browser.until(&begins("tas\n")).await;
    check_clean(&browser, &world);
}
