//! What the page shows in a real browser: in time, whole and current.

use std::time::Duration;

use serde_json::{Value, json};

use crate::conversations::{begin, begin_until, events, position, until};
use crate::page_browser::{browser_of, check_clean, page};
use crate::page_views::{key, resize, show, show_until, stored_run};
use crate::steering::asking_for;
use crate::tails::asked;
use crate::world::{World, generous};

const PATH: &str = "/api/v1/conversations";

/// Pieces of texts in which the end of what begins is looked for in vain.
const ENDLESS: &[&str] =
    &["`", "*a ", "**a ", "x_a ", "_a_a", "`a``b", "a._", "[a", "![a](", "http://", "| ", "- "];

#[tokio::test]
async fn no_text_of_a_model_makes_the_page_hang() {
    let Some((world, mut browser)) = page().await else { return };
    let took = format!(
        "import('/page/markdown.js').then(({{ Markdown }}) => {{
            const begun = performance.now();
            for (const piece of {}) Markdown({{ text: 'a ' + piece.repeat(19000 / piece.length) }});
            return performance.now() - begun;
        }})",
        json!(ENDLESS)
    );
    let took = browser.eval(&took).await.as_f64().unwrap();
    // It was hours.
    assert!(took < 20_000.0, "{took} ms");
    check_clean(&browser, &world);
}

#[tokio::test]
async fn an_error_stays_until_a_person_does_something_else() {
    let Some((world, mut browser)) = page().await else { return };
    let import =
        "(() => { const files = new DataTransfer(); files.items.add(new File(['no run'], 'run.jsonl'));
        const field = document.querySelector('input.file'); field.files = files.files;
        field.dispatchEvent(new Event('change', {bubbles: true})); })()";
    browser.eval(import).await;
    browser.until("document.querySelector('.failure')").await;
    let text = browser.eval("document.querySelector('.failure').innerText").await;
    // The list is read again, because a run is new and then closed.
    browser.eval("window.before = performance.getEntriesByType('resource').length").await;
    begin_until(&world, "talk", "closed").await;
    browser.until("document.querySelector('.run-row .state.done')").await;
    let read = "performance.getEntriesByType('resource').slice(window.before).some((it) => it.name.includes('/conversations?'))";
    browser.until(read).await;
    assert_eq!(browser.eval("document.querySelector('.failure')?.innerText").await, text);
    browser.press("New run").await;
    browser.until("document.querySelector('select[name=team]') && !document.querySelector('.failure')").await;
    check_clean(&browser, &world);
}

/// A call that counts at its upper bound, in picodollars.
fn charged(why: &str, calls: u64, cost: u64) -> Value {
    json!({"type": "charged", "who": "Ann", "model": "m", "why": why, "calls": calls, "tokens": 9, "cost": cost})
}

#[tokio::test]
async fn calls_without_a_reply_are_in_the_cost_line_and_in_the_list() {
    let Some((world, mut browser)) = page().await else { return };
    let replied = json!({"type": "model_replied", "who": "Ann", "model": "m", "request": "0".repeat(32), "finish": "stop",
        "parts": [{"text": "Yes."}], "usage": {"input": 3, "output": 1}, "cost": 20_000_000_000_u64});
    let said = json!({"type": "message", "from": "Ann", "parts": [{"text": "Yes."}]});
    let turn = json!({"type": "turn_started", "turns": [{"who": "Ann"}]});
    let mut refused = charged("discarded", 1, 10_000_000_000);
    refused["output"] = json!(2);
    let charges = [charged("cancelled", 1, 500_000_000_000), charged("repeated", 0, 7), refused];
    let bodies = [turn].into_iter().chain(charges).chain([replied, said]);
    let id = stored_run(&world, "cutrun", bodies).await;
    show(&mut browser, "#/runs").await;
    browser.until_text("at most $0.53").await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until_text("10 in, 3 out · $0.03 · 1 call without a reply, at most $0.50 more").await;
    let notes = "[...document.querySelectorAll('.turn .note')].map((note) => note.textContent)";
    assert_eq!(
        browser.eval(notes).await,
        json!(["1 call without a reply, at most $0.50 more", "a reply of m was discarded: 9 tokens, $0.01"])
    );
    check_clean(&browser, &world);
}

/// The requests that the page has begun since the time `window.before`, and that were answered.
const ANSWERED: &str = "performance.getEntriesByType('resource').filter((it) => it.startTime > window.before).map((it) => it.name)";

#[tokio::test]
async fn a_run_that_is_removed_and_a_session_that_has_ended_are_not_asked_for_repeatedly() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin(&world, &json!({"team": "ask"})).await;
    show_until(&mut browser, &format!("#/runs/{id}"), "document.querySelector('.question')").await;
    assert_eq!(world.send(world.request("DELETE", &format!("{PATH}/{id}"))).await.status, 200);
    browser.until("document.querySelector('main h1').textContent === 'There is no such run'").await;
    let id = begin(&world, &json!({"team": "ask"})).await;
    show_until(&mut browser, &format!("#/runs/{id}"), "document.querySelector('.question')").await;
    let tokens = world.get("/api/v1/tokens").await.json();
    let session =
        tokens["tokens"].as_array().unwrap().iter().find(|token| token["kind"] == "session").unwrap();
    let path = format!("/api/v1/tokens/{}", session["id"].as_str().unwrap());
    assert_eq!(world.send(world.request("DELETE", &path)).await.status, 200);
    browser.until_text("You are not logged in.").await;
    // As long as a try again would have taken.
    browser.eval("window.before = performance.now()").await;
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert_eq!(browser.eval(ANSWERED).await, json!([]));
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_server_that_is_busy_has_logged_no_one_out() {
    let Some((world, mut browser)) = page().await else { return };
    let busy = "const real = window.fetch; window.fetch = async (path, options) => {
        if (!path.endsWith('/session') || window.free) return real(path, options);
        return new Response(JSON.stringify({detail: 'the server is busy', status: 503}), {status: 503});
    };";
    let script = browser.command("Page.addScriptToEvaluateOnNewDocument", json!({"source": busy})).await;
    browser.reload().await;
    browser.until_text("the server is busy").await;
    assert!(!browser.text().await.contains("not logged in"));
    browser.eval("window.free = true").await;
    browser.until("document.querySelector('main h1')?.textContent === 'Runs'").await;
    browser.until("!document.querySelector('.failure')").await;
    browser.command("Page.removeScriptToEvaluateOnNewDocument", script).await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_search_reads_the_list_a_few_times_and_not_at_each_letter() {
    const SEARCH: &str = "the conversation about whispering in the house";
    let Some((world, mut browser)) = page().await else { return };
    for title in [SEARCH, "another one"] {
        begin(&world, &json!({"team": "talk", "title": title})).await;
    }
    browser.until("document.querySelectorAll('.run-row .state.done').length === 2").await;
    browser.eval("window.before = performance.now()").await;
    browser.eval("window.begun = performance.now(); document.querySelector('#search').focus()").await;
    for letter in SEARCH.chars() {
        browser.command("Input.insertText", json!({"text": letter.to_string()})).await;
    }
    browser.until("document.querySelectorAll('.run-row').length === 1").await;
    let title =
        "document.querySelector('#search').value + '|' + document.querySelector('.run-title').textContent";
    assert_eq!(browser.eval(title).await, format!("{SEARCH}|{SEARCH}"));
    let is_few = format!("({ANSWERED}).length < 3 + (performance.now() - window.begun) / 200");
    let (is_few, answered) = (browser.eval(&is_few).await, browser.eval(ANSWERED).await);
    assert_eq!(is_few, true, "{answered}");
    browser.fill("#search", "none is like this").await;
    browser.until_text("No run matches.").await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn runs_that_new_ones_push_off_the_first_page_of_the_list_stay_in_it() {
    let world = World::with(generous()).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    for _ in 0..52 {
        begin(&world, &json!({"team": "talk"})).await;
    }
    let ids = "[...document.querySelectorAll('.run-row > .run-facts > .mono')].map((it) => it.textContent)";
    browser.press("Older runs").await;
    browser.until(&format!("({ids}).length === 52")).await;
    let before = browser.eval(ids).await;
    let new = begin(&world, &json!({"team": "talk"})).await;
    browser.until(&format!("({ids})[0] === '{new}'")).await;
    let mut all = vec![json!(new)];
    all.extend(before.as_array().unwrap().clone());
    assert_eq!(browser.eval(ids).await, json!(all));
    check_clean(&browser, &world);
}

#[tokio::test]
async fn the_address_of_any_event_leads_to_the_turn_that_it_is_in() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "talk", "closed").await;
    let events = events(&world, &id).await;
    let second = position(&events, "two");
    assert_eq!(events[second - 1]["type"], "model_replied", "it has no place of its own");
    for at in [second, second - 1] {
        show_until(&mut browser, "#/runs", "document.querySelector('main h1')?.textContent === 'Runs'").await;
        show(&mut browser, &format!("#/runs/{id}?at={at}")).await;
        browser.until(&format!("document.activeElement.id === 'm{second}'")).await;
    }
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_question_that_waits_grows_in_the_timeline() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "ask", "waiting").await;
    show(&mut browser, &format!("#/runs/{id}/timeline")).await;
    // No event says how time passes.
    let lasts = "document.querySelector('.calls tbody tr td:nth-child(4)')?.innerText ?? ''";
    browser.until(&format!("/^[1-9][0-9.]* s …$/.test({lasts})")).await;
    let waits = browser.eval(lasts).await;
    browser.until(&format!("({lasts}) !== {waits}")).await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn long_names_and_titles_make_no_view_wider_than_the_screen() {
    let (name, title) = (format!("Ann_{}", "x".repeat(56)), format!("\u{202e}{}", "T".repeat(150)));
    let team = format!(
        "name: wide\ntask: Talk.\nagents: [{{name: {name}}}, {{name: Bob}}]\nchat: {{participants: [{name}, Bob], pattern: round_robin, stop: {{max_turns: 2}}}}\nscript: [{{{name}: one}}, {{Bob: two}}]\n"
    );
    let teams = [("wide".to_owned(), team)];
    let world = World::with_teams(&teams).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let a = begin(&world, &json!({"team": "wide", "title": title})).await;
    let b = begin(&world, &json!({"team": "wide"})).await;
    for id in [&a, &b] {
        until(&world, id, "closed").await;
    }
    let views = [
        (
            format!("#/compare?a={b}&b={a}"),
            "document.querySelector('.common') && document.querySelectorAll('option').length > 4",
        ),
        (format!("#/runs/{a}"), "document.querySelector('.closed')"),
        (format!("#/runs/{a}/timeline"), "document.querySelector('.calls td')"),
    ];
    for width in [320, 820, 1440] {
        resize(&mut browser, width).await;
        for (address, is_there) in &views {
            show_until(&mut browser, address, is_there).await;
            let over = browser.eval("Math.max(0, document.documentElement.scrollWidth - innerWidth)").await;
            assert_eq!(over, 0, "{address} {width}");
        }
    }
    let shown = browser.eval("document.title").await;
    assert!(shown.as_str().unwrap().starts_with("⟨U+202E⟩TT"), "{shown}");
    check_clean(&browser, &world);
}

#[tokio::test]
async fn the_menu_of_a_message_closes_for_another_one_at_a_click_elsewhere_and_at_escape() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "talk", "closed").await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until("document.querySelectorAll('.turn').length === 5").await;
    let open = "[...document.querySelectorAll('.menu')].map((it) => Number(it.open)).join('')";
    let menu = |nth: u32| format!("document.querySelectorAll('.menu > summary')[{nth}]");
    browser.eval(&format!("{}.click()", menu(1))).await;
    browser.eval(&format!("{0}.focus(), {0}.click()", menu(2))).await;
    browser.until(&format!("({open}) === '00100'")).await;
    key(&mut browser, "Escape").await;
    browser.until(&format!("({open}) === '00000'")).await;
    assert_eq!(browser.eval(&format!("document.activeElement === {}", menu(2))).await, true);
    browser.eval(&format!("{}.click()", menu(3))).await;
    browser.until(&format!("({open}) === '00010'")).await;
    browser.eval("document.querySelector('.run-head h1').click()").await;
    browser.until(&format!("({open}) === '00000'")).await;
    check_clean(&browser, &world);
}

/// Two who speak at the same time, and an agent with a nested chat.
const DESK: &str = "
name: desk
task: Write.
agents:
  - {name: Writer}
  - {name: Facts}
  - {name: Style}
  - {name: Editor, nested_chats: [{chat: check, when: {from: Style}}]}
  - {name: Reader}
chat:
  participants: [Writer, Facts, Style, Editor]
  pattern: {graph: {start: Writer, edges: {Writer: [Facts, Style], Facts: Editor, Style: Editor}}}
chats:
  - {name: check, participants: [Editor, Reader], opening: {from: Reader, text: Is it good?}, stop: {max_turns: 2}}
script: [{Writer: a}, {Facts: b}, {Style: c}, {Editor: d}, {Reader: e}]
";

#[tokio::test]
async fn the_graph_counts_who_speaks_at_the_same_time_and_in_nested_chats() {
    let world = World::with_team("desk", DESK).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin_until(&world, "desk", "closed").await;
    show(&mut browser, &format!("#/runs/{id}/graph")).await;
    // All edges that a conversation takes: to the parallel ones, from both of them, to the end, and within the nested chat.
    browser.until("document.querySelectorAll('.edge-count').length === 8").await;
    let table = "[...document.querySelectorAll('.graph-table tbody tr')].map((it) => [0, 1, 4].map((at) => it.cells[at].textContent).join(' '))";
    let rows: Vec<String> = serde_json::from_value(browser.eval(table).await).unwrap();
    for row in [
        "the beginning Writer 1", "Editor the end 1", "Writer Facts 1", "Writer Style 1", "Facts Editor 1",
        "Style Editor 1", "Editor check ", "the beginning Editor 1", "Editor Reader 1",
    ] {
        assert!(rows.iter().any(|it| it == row), "{row} is not in {rows:?}");
    }
    // At a limit, a run does not come to the end of its graph.
    let id = begin(&world, &json!({"team": "desk", "limits": {"turns": 1}})).await;
    until(&world, &id, "closed").await;
    show(&mut browser, &format!("#/runs/{id}/graph")).await;
    browser.until(&format!("({table}).includes('the beginning Writer 1')")).await;
    browser.until(&format!("({table}).includes('Editor the end 0')")).await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_comparison_is_of_the_runs_that_are_chosen_however_late_another_one_comes() {
    let Some((world, mut browser)) = page().await else { return };
    let mut ids = Vec::new();
    for team in ["talk", "talk", "whisper"] {
        ids.push(begin(&world, &json!({"team": team})).await);
    }
    for id in &ids {
        until(&world, id, "closed").await;
    }
    let late = format!(
        "{{ const real = window.fetch; window.fetch = async (path, options) => {{
            const answer = await real(path, options);
            if (path.includes('/compare?') && path.includes('{}')) await new Promise((go) => (window.go = go));
            return answer;
        }}; }} 0",
        ids[2]
    );
    browser.eval(&late).await;
    show_until(&mut browser, &format!("#/compare?a={}&b={}", ids[0], ids[2]), "!!window.go").await;
    show(&mut browser, &format!("#/compare?a={}&b={}", ids[0], ids[1])).await;
    let sides = "[...document.querySelectorAll('.side .mono')].map((it) => it.textContent)";
    browser.until(&format!("({sides}).length === 2")).await;
    browser.eval("window.go(), new Promise((done) => setTimeout(done, 300))").await;
    assert_eq!(browser.eval(sides).await, json!([ids[0], ids[1]]));
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_question_says_until_when_which_answer_counts_and_disturbs_no_one_who_writes() {
    let world = World::with_team("soon", &asking_for("50 s")).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "soon"})).await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    let left = "document.querySelector('.time-limit [aria-hidden=true]').textContent";
    let shown = browser.until(left).await;
    let is_said = format!("/^In [0-9]+ s the answer is Not today\\. by default\\.$/.test({shown})");
    assert_eq!(browser.eval(&is_said).await, true, "{shown}");
    browser.fill(".question textarea", "I am thi").await;
    // For a screen reader: once, with the question.
    let read = "document.getElementById(document.activeElement.getAttribute('aria-describedby')).querySelector('.sr-only').textContent";
    let once = browser.eval(read).await;
    assert!(once.as_str().unwrap().starts_with("At "), "{once}");
    browser.until(&format!("{left} !== {shown}")).await;
    assert_eq!(browser.eval(read).await, once, "the focus is still in the field, and nothing new is read");
    assert_eq!(browser.eval("document.activeElement.value").await, "I am thi");
    browser.press("Answer").await;
    browser.until("document.querySelector('main[data-run] .state.done')").await;
    assert_eq!(browser.eval("document.querySelectorAll('.time-limit').length").await, 0);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_run_that_was_stopped_while_it_waited_is_resumed_when_the_time_for_the_answer_is_up() {
    let world = World::with_team("soon", &asking_for("3 s")).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "soon"})).await;
    asked(&world, &id).await;
    // Its run may be just leaving it.
    tokio::time::sleep(Duration::from_millis(200)).await;
    let stopped = world.post(&format!("{PATH}/{id}/stop"), &json!({})).await.json();
    assert_eq!(stopped["stopped"], true);
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until_text("The time is up: the answer is Not today.").await;
    // It does not continue by itself.
    browser.press("Resume").await;
    browser.until("document.querySelector('main[data-run] .state.done')").await;
    browser.until_text("Answer of no one in time: Not today.").await;
    check_clean(&browser, &world);
}
