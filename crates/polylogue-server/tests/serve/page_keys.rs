//! The page by the keyboard alone, with a focus that is seen at each stop: S99.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::conversations::begin_until;
use crate::page_browser::{check_clean, id_of, page, until_state};

/// Keys as a keyboard sends them, with their effects in the browser.
pub(crate) async fn strike(browser: &mut Browser, key: &str) {
    let (name, code, text) = match key {
        "Tab" => ("Tab", 9, ""),
        "Enter" => ("Enter", 13, "\r"),
        "Escape" => ("Escape", 27, ""),
        "ArrowDown" => ("ArrowDown", 40, ""),
        "ArrowUp" => ("ArrowUp", 38, ""),
        letter => (letter, 0, letter),
    };
    for kind in [if text.is_empty() { "rawKeyDown" } else { "keyDown" }, "keyUp"] {
        let text = if kind == "keyDown" { text } else { "" };
        let event =
            json!({"type": kind, "key": name, "code": name, "windowsVirtualKeyCode": code, "text": text});
        browser.command("Input.dispatchKeyEvent", event).await;
    }
}

async fn write(browser: &mut Browser, text: &str) {
    browser.command("Input.insertText", json!({"text": text})).await;
}

/// The focus is seen, wherever it is but on the whole page.
async fn check_seen(browser: &mut Browser) {
    let unseen = "(() => { const it = document.activeElement; const style = getComputedStyle(it); return it === document.body || it.matches('main') || (style.outlineStyle !== 'none' && parseFloat(style.outlineWidth) > 0) ? '' : it.outerHTML.slice(0, 200); })()";
    assert_eq!(browser.eval(unseen).await, "", "the focus is not seen");
}

/// Presses Tab until the focus is on what the selector or the text of a button names. Each place on the way shows its focus.
async fn tab_to(browser: &mut Browser, wanted: &str) {
    let is_there = format!(
        "(() => {{ const it = document.activeElement; try {{ if (it.matches({0})) return true; }} catch {{}} return it.textContent.trim() === {0}; }})()",
        json!(wanted)
    );
    for _ in 0..200 {
        strike(browser, "Tab").await;
        check_seen(browser).await;
        if browser.eval(&is_there).await == true {
            return;
        }
    }
    panic!("Tab does not come to `{wanted}`: {}", browser.text().await);
}

#[tokio::test]
async fn s99_a_run_is_begun_answered_forked_and_edited_and_a_team_written_by_the_keyboard_alone() {
    let Some((world, mut browser)) = page().await else { return };
    for part in ["g", "n"] {
        strike(&mut browser, part).await;
    }
    browser.until("document.querySelector('select[name=team]')").await;
    tab_to(&mut browser, "select[name=team]").await;
    // The next team, and the one before; the focus stays.
    for (arrow, team) in [("ArrowDown", "short"), ("ArrowUp", "ask")] {
        strike(&mut browser, arrow).await;
        browser.until(&format!("location.hash.endsWith('team={team}') && document.querySelector('select[name=team]').value === '{team}'")).await;
        assert_eq!(browser.eval("document.activeElement.matches('select[name=team]')").await, true, "{team}");
    }
    tab_to(&mut browser, "textarea[name=message]").await;
    write(&mut browser, "Help me.").await;
    tab_to(&mut browser, "Begin").await;
    strike(&mut browser, "Enter").await;
    browser.until("document.querySelector('.question textarea')").await;
    let source = id_of(&mut browser).await;
    strike(&mut browser, "a").await;
    browser.until("document.activeElement.matches('.question textarea')").await;
    write(&mut browser, "I am stuck.").await;
    tab_to(&mut browser, "Answer").await;
    strike(&mut browser, "Enter").await;
    until_state(&mut browser, "closed").await;
    browser.until_text("Thanks.").await;
    // What had the focus is gone.
    browser.until("document.activeElement.matches('main')").await;
    // The last message is edited in a fork.
    strike(&mut browser, "Escape").await;
    strike(&mut browser, "k").await;
    browser
        .until(
            "document.activeElement.matches('.turn') && document.activeElement.innerText.includes('Thanks.')",
        )
        .await;
    check_seen(&mut browser).await;
    strike(&mut browser, "e").await;
    browser.until("document.activeElement.matches('.edit-form textarea')").await;
    write(&mut browser, "You are welcome. ").await;
    tab_to(&mut browser, "Rerun in a fork").await;
    strike(&mut browser, "Enter").await;
    browser.until(&format!("document.querySelector('main[data-run]:not([data-run=\"{source}\"])')")).await;
    browser.until_text(&format!("edited fork of {source}")).await;
    browser.until_text("You are welcome.").await;
    until_state(&mut browser, "closed").await;
    // A fork from its first message.
    let edited = id_of(&mut browser).await;
    strike(&mut browser, "j").await;
    strike(&mut browser, "f").await;
    browser.until(&format!("document.querySelector('main[data-run]:not([data-run=\"{edited}\"])')")).await;
    browser.until_text(&format!("fork of {edited}")).await;
    // A team: Tab indents, and Escape leaves the field to Tab.
    // The two keys count together for a moment, which a busy machine can exceed: then the second one is another key.
    for _ in 0..5 {
        for part in ["g", "t"] {
            strike(&mut browser, part).await;
        }
        if browser.eval("location.hash === '#/teams'").await == true {
            break;
        }
    }
    browser.until("document.querySelector('.teams .run-row a')").await;
    tab_to(&mut browser, ".teams .run-row a").await;
    strike(&mut browser, "Enter").await;
    browser.until_text("No errors.").await;
    tab_to(&mut browser, ".text textarea").await;
    let length = "document.querySelector('.text textarea').value.length";
    let before = browser.eval(length).await.as_u64().unwrap();
    strike(&mut browser, "Tab").await;
    assert_eq!(browser.eval(length).await, before + 2);
    assert_eq!(browser.eval("document.activeElement.matches('.text textarea')").await, true);
    strike(&mut browser, "Escape").await;
    strike(&mut browser, "Tab").await;
    assert_eq!(browser.eval("document.activeElement.matches('.text textarea')").await, false);
    tab_to(&mut browser, "Discard changes").await;
    strike(&mut browser, "Enter").await;
    browser.until(&format!("{length} === {before}")).await;
    tab_to(&mut browser, "Log out").await;
    strike(&mut browser, "Enter").await;
    browser.until_text("You are not logged in.").await;
    check_clean(&browser, &world);
}

/// Whether the focus is on what the selector names.
async fn is_on(browser: &mut Browser, selector: &str) -> Value {
    browser.eval(&format!("document.activeElement.matches({})", json!(selector))).await
}

/// Opens a request by the button that has the focus, does something, and closes it: the focus is where it was.
async fn in_request(browser: &mut Browser, steps: impl AsyncFnOnce(&mut Browser)) {
    let opener = browser.eval("(window.opener_ = document.activeElement).textContent").await;
    strike(browser, "Enter").await;
    browser.until("document.querySelector('dialog.request[open] .entry')").await;
    check_seen(browser).await;
    steps(browser).await;
    strike(browser, "Escape").await;
    browser.until("!document.querySelector('dialog')").await;
    assert_eq!(browser.eval("document.activeElement === window.opener_").await, true, "{opener}");
}

#[tokio::test]
async fn s99_a_run_is_read_its_calls_are_opened_and_it_is_continued_by_the_keyboard_alone() {
    let Some((world, mut browser)) = page().await else { return };
    begin_until(&world, "talk", "closed").await;
    browser.until("document.querySelector('.run-row .state.done')").await;
    tab_to(&mut browser, ".run-row a").await;
    strike(&mut browser, "Enter").await;
    browser.until("document.querySelectorAll('.turn').length === 5").await;
    let at = |text: &str| {
        format!(
            "document.activeElement.matches('.turn') && document.activeElement.innerText.includes('{text}')"
        )
    };
    for text in ["Count.", "one", "two", "three", "four"] {
        strike(&mut browser, "j").await;
        browser.until(&at(text)).await;
        check_seen(&mut browser).await;
    }
    strike(&mut browser, "k").await;
    browser.until(&at("three")).await;
    // The exact request of this turn, and the one before.
    strike(&mut browser, "v").await;
    browser.until_text("What Ann does not receive is dimmed.").await;
    tab_to(&mut browser, "request 2").await;
    in_request(&mut browser, async |browser: &mut Browser| {
        browser.until_text("was sent: call 2 of 2").await;
        tab_to(browser, "[aria-label='The call before']").await;
        strike(browser, "Enter").await;
        browser.until_text("was sent: call 1 of 2").await;
        // There is none before, and the focus stays.
        strike(browser, "Enter").await;
        assert_eq!(is_on(browser, "[aria-label='The call before']").await, true);
        check_seen(browser).await;
    })
    .await;
    for shown in ["What Bob does not receive is dimmed.", "Click a name for its point of view."] {
        strike(&mut browser, "v").await;
        browser.until_text(shown).await;
    }
    strike(&mut browser, "t").await;
    browser.until("document.querySelectorAll('.calls tbody tr').length === 4").await;
    tab_to(&mut browser, "[aria-label='Zoom in']").await;
    for zoom in [2, 4, 8, 16, 16] {
        strike(&mut browser, "Enter").await;
        browser.until(&format!("location.hash.includes('zoom={zoom}')")).await;
        assert_eq!(is_on(&mut browser, "[aria-label='Zoom in']").await, true, "{zoom}");
    }
    tab_to(&mut browser, ".calls tbody button").await;
    in_request(&mut browser, async |browser: &mut Browser| browser.until_text("Exactly what was sent").await)
        .await;
    strike(&mut browser, "w").await;
    browser.until("document.querySelector('.graph .node')").await;
    strike(&mut browser, "c").await;
    browser.until("document.querySelectorAll('.turn').length === 5").await;
    // A menu and the list of keys are left by Escape.
    strike(&mut browser, "k").await;
    tab_to(&mut browser, ".menu > summary").await;
    strike(&mut browser, "Enter").await;
    tab_to(&mut browser, "Fork from here").await;
    strike(&mut browser, "Escape").await;
    browser.until("!document.querySelector('.menu[open]')").await;
    assert_eq!(is_on(&mut browser, ".menu > summary").await, true);
    strike(&mut browser, "?").await;
    browser.until("document.querySelector('dialog.help[open]')").await;
    strike(&mut browser, "Escape").await;
    browser.until("!document.querySelector('dialog')").await;
    strike(&mut browser, "s").await;
    browser.until("document.activeElement.matches('#say')").await;
    write(&mut browser, "Go on.").await;
    tab_to(&mut browser, "Send").await;
    strike(&mut browser, "Enter").await;
    browser.until_text("five").await;
    assert_eq!(is_on(&mut browser, "#say").await, true, "to write on");
    until_state(&mut browser, "closed").await;
    check_clean(&browser, &world);
}
