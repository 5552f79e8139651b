//! The page in a real browser.

use polylogue_server::{NewToken, Scope, login_url};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::conversations::begin_until;
use crate::page_views::{show, show_until};
use crate::world::{World, generous};

/// A browser that is logged in.
pub(crate) async fn browser_of(world: &World) -> Option<Browser> {
    let mut browser = Browser::start().await?;
    let link = world.tokens().create_link(NewToken::local("page")).unwrap();
    browser.open(&login_url(&world.url, &link)).await;
    browser.until("document.querySelector('main h1')?.textContent === 'Runs'").await;
    Some(browser)
}

/// A server, and a browser that is logged in.
pub(crate) async fn page() -> Option<(World, Browser)> {
    let world = World::new().await;
    let browser = browser_of(&world).await?;
    Some((world, browser))
}

/// Nothing has left the server, and no script was refused or has failed.
pub(crate) fn check_clean(browser: &Browser, world: &World) {
    let requests = browser.requests();
    let foreign: Vec<_> = requests
        .iter()
        .filter(|url| !url.starts_with(&world.url) && !url.starts_with("data:") && *url != "about:blank")
        .collect();
    assert!(foreign.is_empty() && !requests.is_empty(), "{foreign:?}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Keeps a picture where `POLYLOGUE_SCREENSHOTS` names a folder.
pub(crate) async fn picture(browser: &mut Browser, name: &str) {
    if let Some(folder) = std::env::var_os("POLYLOGUE_SCREENSHOTS") {
        let png = browser.screenshot().await;
        std::fs::write(std::path::Path::new(&folder).join(format!("{name}.png")), png).unwrap();
    }
}

/// Chooses the team of the form of a new run.
pub(crate) async fn choose(browser: &mut Browser, team: &str) {
    browser.press("New run").await;
    browser.until("document.querySelector('select[name=team]')").await;
    let choose = format!(
        "(() => {{ const it = document.querySelector('select[name=team]'); it.value = '{team}';
            it.dispatchEvent(new Event('change', {{bubbles: true}})); }})()"
    );
    browser.eval(&choose).await;
    browser.until(&format!("location.hash.endsWith('team={team}')")).await;
}

/// Waits until the run is in a state.
pub(crate) async fn until_state(browser: &mut Browser, state: &str) {
    browser.until(&format!("document.querySelector('.run-head .state.{state}')")).await;
}

pub(crate) async fn id_of(browser: &mut Browser) -> String {
    browser
        .until("location.hash.startsWith('#/runs/') && location.hash.split('/')[2].split('?')[0]")
        .await
        .as_str()
        .unwrap()
        .into()
}

// One browser for the whole way, because starting one takes a second.
#[tokio::test]
async fn s92_s93_s96_a_run_is_begun_followed_forked_and_edited_in_the_page() {
    let Some((world, mut browser)) = page().await else { return };
    choose(&mut browser, "talk").await;
    browser.until_text("Two agents who count.").await;
    browser.fill("textarea[name=message]", "Count, **please**.").await;
    picture(&mut browser, "new-run").await;
    browser.press("Begin").await;
    browser.until_text("four").await;
    until_state(&mut browser, "closed").await;
    assert_eq!(browser.eval("document.querySelector('.prose strong').textContent").await, "please");
    picture(&mut browser, "run").await;
    let source = id_of(&mut browser).await;
    // A fork from the second message, which does not run by itself.
    browser.until("document.querySelectorAll('.turn').length === 5").await;
    browser.eval("document.querySelectorAll('.turn')[1].querySelector('button.fork').click()").await;
    browser
        .until(&format!("document.querySelectorAll('main:not([data-run=\"{source}\"]) .turn').length === 2"))
        .await;
    until_state(&mut browser, "halted").await;
    browser.until_text(&format!("fork of {source}")).await;
    browser.press("Resume").await;
    until_state(&mut browser, "closed").await;
    // Back, and another text for the first message.
    browser.eval("history.back()").await;
    browser
        .until(&format!("document.querySelectorAll('main[data-run=\"{source}\"] .turn').length === 5"))
        .await;
    browser.eval("document.querySelectorAll('.turn')[1].querySelector('button.edit').click()").await;
    browser.fill(".edit-form textarea", "eins").await;
    browser.press("Rerun in a fork").await;
    browser.until(&format!("document.querySelector('main[data-run]:not([data-run=\"{source}\"])')")).await;
    browser.until_text("eins").await;
    until_state(&mut browser, "closed").await;
    // A message continues it, and a reload shows the same.
    browser.fill("#say", "Go on.").await;
    browser.press("Send").await;
    browser.until_text("five").await;
    browser.reload().await;
    browser.until_text("five").await;
    browser.press("Runs").await;
    browser.until("document.querySelectorAll('.run-row').length === 3").await;
    picture(&mut browser, "runs").await;
    browser.press("Log out").await;
    browser.until_text("You are not logged in.").await;
    check_clean(&browser, &world);
}

/// Who is logged in.
async fn session(browser: &mut Browser) -> Value {
    browser.eval("fetch('/api/v1/session').then((response) => response.json())").await
}

#[tokio::test]
async fn s92_a_link_does_not_replace_a_session_by_itself() {
    let Some((world, mut browser)) = page().await else { return };
    let own = session(&mut browser).await;
    let new = NewToken { scopes: vec![Scope::Read], ..NewToken::local("another person") };
    let link = login_url(&world.url, &world.tokens().create_link(new).unwrap());
    // In another tab, and in one that shows the page already.
    let (code, first) = (link.split_once('#').unwrap().1, browser.open_tab(&link).await);
    browser.until_text("You are logged in already, as “page” (tenant local).").await;
    assert_eq!(session(&mut browser).await["id"], own["id"]);
    let address = browser.eval("location.href + history.state").await;
    assert!(!address.as_str().unwrap().contains("ply_"), "{address}");
    browser.press("Keep this session").await;
    browser.until("!document.querySelector('.notice')").await;
    browser.turn_to(first);
    browser.eval(&format!("location.hash = '#{code}'")).await;
    browser.until("document.querySelector('.notice')").await;
    assert_eq!(session(&mut browser).await["id"], own["id"]);
    picture(&mut browser, "another-link").await;
    browser.press_and_load("Use the new link").await;
    browser.until("document.querySelector('main h1')?.textContent === 'Runs'").await;
    let other = session(&mut browser).await;
    assert_eq!((&other["name"], &other["scopes"]), (&json!("another person"), &json!(["read"])));
    // The link works once, and the session stays.
    browser.eval(&format!("location.hash = '#{code}'")).await;
    browser.press("Use the new link").await;
    browser.until_text("the link was used before, or has expired").await;
    browser.until("document.querySelector('main h1')?.textContent === 'Runs'").await;
    assert_eq!(session(&mut browser).await["id"], other["id"]);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn s93_s94_a_question_is_answered_in_the_page_and_speech_appears_while_it_runs() {
    let (gate, world) = World::gated("so it goes", generous(), 2).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    choose(&mut browser, "ask").await;
    browser.press("Begin").await;
    browser.until("document.querySelector('.question')").await;
    until_state(&mut browser, "waiting").await;
    browser.fill(".question textarea", "I am stu").await;
    // The question and the draft survive a reload.
    browser.reload().await;
    browser.until("document.querySelector('.question textarea')?.value === 'I am stu'").await;
    browser.fill(".question textarea", "I am stuck.").await;
    picture(&mut browser, "question").await;
    browser.press("Answer").await;
    browser.until_text("Thanks.").await;
    until_state(&mut browser, "closed").await;
    browser.until("!document.querySelector('.question')").await;
    choose(&mut browser, "long").await;
    browser.press("Begin").await;
    browser.until("document.querySelectorAll('.turn:not(.open)').length === 3").await;
    browser.until("document.querySelector('.participants .speaks .name').textContent === 'Ann'").await;
    until_state(&mut browser, "running").await;
    gate.lift();
    until_state(&mut browser, "closed").await;
    check_clean(&browser, &world);
}

/// Whether a link or a button with this text is there.
fn offers(text: &str) -> String {
    format!("[...document.querySelectorAll('a, button')].some((it) => it.textContent === '{text}')")
}

#[tokio::test]
async fn a_session_that_can_only_read_sees_all_and_is_offered_nothing_else() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "ask", "waiting").await;
    show(&mut browser, "#/teams/none").await;
    browser.until("document.querySelector('main h1')?.textContent === 'There is no such team'").await;
    show_until(&mut browser, &format!("#/runs/{id}"), "document.querySelector('.question textarea')").await;
    assert_eq!(browser.eval(&offers("Fork")).await, true);
    let new = NewToken { scopes: vec![Scope::Read], ..NewToken::local("a reader") };
    let link = login_url(&world.url, &world.tokens().create_link(new).unwrap());
    browser.eval(&format!("location.hash = '#{}'", link.split_once('#').unwrap().1)).await;
    browser.press_and_load("Use the new link").await;
    browser.until("document.querySelector('.run-row')").await;
    for text in ["New run", "Import"] {
        assert_eq!(browser.eval(&offers(text)).await, false, "{text}");
    }
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until_text("This session cannot answer.").await;
    assert_eq!(browser.eval("document.querySelectorAll('main textarea').length").await, 0);
    for text in ["Stop", "Fork", "Fork from here", "Remove", "Rename", "Send"] {
        assert_eq!(browser.eval(&offers(text)).await, false, "{text}");
    }
    assert_eq!(browser.eval(&offers("Export")).await, true);
    picture(&mut browser, "only-read").await;
    show_until(&mut browser, "#/teams/ask", "document.querySelector('main svg.graph')").await;
    browser.until_text("This session cannot read the text of team files.").await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_session_that_cannot_answer_is_offered_to_reword_no_participant() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "talk", "closed").await;
    let edits = |who: &str| format!("document.querySelectorAll('{who} .menu .edit').length");
    show_until(&mut browser, &format!("#/runs/{id}"), "document.querySelector('.closed')").await;
    assert_eq!(browser.eval(&format!("{} > 0", edits("[data-who=Ann]"))).await, true);
    let all = browser.eval(&edits("")).await.as_u64().unwrap();
    let of_participants =
        browser.eval(&edits(".turn[data-who]:not([data-who=user])")).await.as_u64().unwrap();
    let new = NewToken { scopes: vec![Scope::Read, Scope::Run], ..NewToken::local("a runner") };
    let link = login_url(&world.url, &world.tokens().create_link(new).unwrap());
    browser.eval(&format!("location.hash = '#{}'", link.split_once('#').unwrap().1)).await;
    browser.press_and_load("Use the new link").await;
    browser.until("document.querySelector('.run-row')").await;
    show_until(&mut browser, &format!("#/runs/{id}"), "document.querySelector('.closed')").await;
    assert_eq!(browser.eval(&edits("[data-who=Ann]")).await, 0);
    assert_eq!(browser.eval(&edits("")).await, all - of_participants, "the task can be another one");
    assert_eq!(browser.eval(&offers("Fork from here")).await, true);
    check_clean(&browser, &world);
}
