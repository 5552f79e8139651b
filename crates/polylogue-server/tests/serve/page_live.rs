//! The page while a model writes, and in many tabs: S93, S94, S99.

use std::sync::Arc;
use std::time::Duration;

use polylogue_store::parts::this_process;
use polylogue_test::server::{Answer, PieceGate, Playbook};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::conversations::{self, until};
use crate::live::{Cluster, Node, model, run};
use crate::page_browser::{browser_of, check_clean, choose, id_of, page, until_state};
use crate::world::{Gate, LONG, World};

const WHOLE: &str = "alpha beta gamma";

/// What the model has written so far of a turn that is open.
const LIVE: &str = "document.querySelector('.turn.open .live-text')?.textContent ?? ''";

/// Types of the events that are stored.
async fn stored(world: &World, id: &str) -> Vec<Value> {
    let page = world.get(&format!("/api/v1/conversations/{id}/events")).await.json();
    page["events"].as_array().unwrap().iter().map(|event| event["type"].clone()).collect()
}

/// A browser in a run whose first model call has begun, and writes as the gate says.
async fn begun(gate: &PieceGate) -> Option<(World, Browser)> {
    let first = gate.clone();
    let model = Playbook::new(move |_, number| match number {
        0 => Answer::text(WHOLE).pieces(3).gated(&first),
        _ => Answer::text("more"),
    });
    let world = World::with_playbook("long", LONG, model).await;
    let mut browser = browser_of(&world).await?;
    choose(&mut browser, "long").await;
    // A reload would lose it.
    browser.eval("window.kept = true").await;
    browser.press("Begin").await;
    until_state(&mut browser, "running").await;
    Some((world, browser))
}

#[tokio::test]
async fn s93_live_text_grows_before_its_message_is_stored() {
    let gate = PieceGate::new();
    let Some((world, mut browser)) = begun(&gate).await else { return };
    let id = id_of(&mut browser).await;
    // The first chunk says who speaks.
    gate.open_until(2);
    let first = browser.until(LIVE).await.as_str().unwrap().to_owned();
    assert!(WHOLE.starts_with(&first) && first.len() < WHOLE.len(), "{first}");
    assert!(!stored(&world, &id).await.contains(&json!("message")), "it is shown before it is a message");
    browser.until("document.querySelector('.participants .speaks .name')?.textContent === 'Ann'").await;
    // The speaker is lit in the graph, and the text is still there afterwards.
    browser.press("Graph").await;
    browser.until("document.querySelector('.node.speaks[data-node=Ann]')").await;
    assert_eq!(browser.eval("document.querySelectorAll('.node.speaks').length").await, 1);
    browser.press("Conversation").await;
    browser.until(&format!("({LIVE}) === {}", json!(first))).await;
    gate.open_until(3);
    let second = browser.until(&format!("({LIVE}).length > {} && ({LIVE})", first.len())).await;
    let second = second.as_str().unwrap();
    assert!(
        WHOLE.starts_with(second) && second.starts_with(&first) && second.len() < WHOLE.len(),
        "{second}"
    );
    assert!(!stored(&world, &id).await.contains(&json!("message")));
    gate.lift();
    browser
        .until(&format!(
            "[...document.querySelectorAll('.turn:not(.open)')].some((it) => it.innerText.includes({}))",
            json!(WHOLE)
        ))
        .await;
    until_state(&mut browser, "closed").await;
    assert_eq!(browser.eval(&format!("{LIVE} + document.querySelectorAll('.turn.open').length")).await, "0");
    assert_eq!(browser.eval("window.kept").await, true, "without a reload");
    check_clean(&browser, &world);
}

#[tokio::test]
async fn the_end_of_what_is_being_said_is_in_view_until_a_person_scrolls_up() {
    let gate = PieceGate::new();
    let first = gate.clone();
    let text = "A line of a long reply.\n\n".repeat(300);
    let model = Playbook::new(move |_, number| match number {
        0 => Answer::text(text.clone()).pieces(30).gated(&first),
        _ => Answer::text("more"),
    });
    let world = World::with_playbook("long", LONG, model).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    choose(&mut browser, "long").await;
    browser.press("Begin").await;
    until_state(&mut browser, "running").await;
    for chunks in [5, 10, 15] {
        gate.open_until(chunks);
        browser.until(&format!("({LIVE}).length >= {}", (chunks - 2) * 200)).await;
        browser.until("document.querySelector('.caret').getBoundingClientRect().bottom < innerHeight").await;
    }
    browser.eval("scrollBy(0, -50)").await;
    // The page has seen it.
    browser.eval("new Promise((done) => requestAnimationFrame(() => setTimeout(done, 100)))").await;
    let place = browser.eval("scrollY").await;
    gate.open_until(25);
    browser.until("document.querySelector('.newer')").await;
    assert_eq!(browser.eval("scrollY").await, place, "it stays where the person reads");
    browser.press("Newer messages ↓").await;
    browser.until("document.querySelector('.caret').getBoundingClientRect().bottom < innerHeight").await;
    gate.lift();
    until_state(&mut browser, "closed").await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn live_text_has_no_hole_after_a_message_while_a_tab_is_hidden_and_after_a_reload() {
    let gate = PieceGate::new();
    let Some((world, mut browser)) = begun(&gate).await else { return };
    gate.open_until(2);
    let first = browser.until(LIVE).await;
    let tails = |browser: &Browser| browser.requests().iter().filter(|url| url.contains("/events?")).count();
    assert_eq!(tails(&browser), 1);
    browser.fill("#say", "Hello.").await;
    browser.press("Send").await;
    // It is received at once, and said after the turn.
    browser
        .until("performance.getEntriesByType('resource').some((it) => it.name.endsWith('/messages'))")
        .await;
    assert_eq!(browser.eval(LIVE).await, first);
    assert_eq!(tails(&browser), 1, "the stream is the same");
    hide(&mut browser, true).await;
    until_streams(&world, "0").await;
    gate.open_until(3);
    hide(&mut browser, false).await;
    let longer = format!("({LIVE}).length > {} && ({LIVE})", first.as_str().unwrap().len());
    let second = browser.until(&longer).await;
    assert!(WHOLE.starts_with(second.as_str().unwrap()), "{second}");
    // Another page, which has received nothing of it.
    browser.reload().await;
    browser.until(&format!("({LIVE}) === {second}")).await;
    gate.lift();
    until_state(&mut browser, "closed").await;
    browser.until_text(WHOLE).await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_reply_whose_beginning_was_missed_says_so_until_it_is_whole() {
    let gate = PieceGate::new();
    let Some((world, mut browser)) = begun(&gate).await else { return };
    gate.open_until(2);
    let first = browser.until(LIVE).await;
    // The stream that is opened again begins with what was written so far.
    let kept = "window.EventSource = class extends EventSource {
        constructor(...args) {
            super(...args);
            window.source = this;
            this.addEventListener('delta', (event) => { window.came ||= JSON.parse(event.data).type === 'text'; });
        }
    }; 0";
    browser.eval(kept).await;
    hide(&mut browser, true).await;
    hide(&mut browser, false).await;
    browser.until(&format!("window.came && ({LIVE}) === {first}")).await;
    // As for a client that was slow.
    browser.eval("window.source.dispatchEvent(new MessageEvent('missed', {data: '{\"seq\": 0}'}))").await;
    browser.until(&format!("({LIVE}) === ''")).await;
    gate.open_until(3);
    browser.until(&format!("({LIVE}).startsWith('… ')")).await;
    browser.until_text("The beginning of this reply was missed").await;
    gate.lift();
    until_state(&mut browser, "closed").await;
    browser.until_text(WHOLE).await;
    assert!(!browser.text().await.contains("was missed"));
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_run_is_stopped_in_the_middle_of_a_reply_and_resumed_by_its_buttons() {
    let gate = PieceGate::new();
    let Some((world, mut browser)) = begun(&gate).await else { return };
    gate.open_until(2);
    let first = browser.until(LIVE).await.as_str().unwrap().trim_end().to_owned();
    browser.press("Stop now").await;
    until_state(&mut browser, "halted").await;
    let cut = "document.querySelector('.turn.open .fold[open]')?.innerText ?? ''";
    browser.until(&format!("({cut}).includes({})", json!(first))).await;
    // Nothing is being written.
    browser.until(&format!("({LIVE}) === ''")).await;
    let caret = "getComputedStyle(document.querySelector('.turn.open .caret')).display";
    assert_eq!(browser.eval(caret).await, "none");
    gate.lift();
    browser.press("Resume").await;
    until_state(&mut browser, "closed").await;
    browser.until_text("more").await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn s99_nothing_moves_where_motion_is_not_wanted() {
    let gate = PieceGate::new();
    let Some((world, mut browser)) = begun(&gate).await else { return };
    gate.open_until(2);
    browser.until(LIVE).await;
    let moving = "[['.caret', ''], ['.state.running', '::before']].map(([it, part]) => getComputedStyle(document.querySelector(it), part).animationName)";
    for (wanted, names) in [("no-preference", json!(["pulse", "pulse"])), ("reduce", json!(["none", "none"]))]
    {
        let motion = json!({"features": [{"name": "prefers-reduced-motion", "value": wanted}]});
        browser.command("Emulation.setEmulatedMedia", motion).await;
        assert_eq!(browser.eval(moving).await, names, "{wanted}");
    }
    gate.lift();
    until_state(&mut browser, "closed").await;
    check_clean(&browser, &world);
}

/// Its calls never end by themselves, and no two replies are equal.
const ENDLESS: &str = "
name: endless
task: Count.
agents: [{name: Ann, model: 'openai:gpt-4o-mini'}]
chat: {participants: [Ann], pattern: round_robin, stop: {max_turns: 100000}}
";

/// The timeline grows during a run whose events never leave half a second without one.
#[tokio::test]
async fn s93_the_timeline_grows_while_calls_follow_each_other_fast() {
    let gate = Arc::new(Gate::until(1));
    let passed = Arc::clone(&gate);
    let model = Playbook::new(move |_, number| {
        passed.pass(number);
        Answer::text(format!("number {number}"))
    });
    let world = World::with_playbook("endless", ENDLESS, model).await;
    let Some(mut browser) = browser_of(&world).await else { return gate.lift() };
    let id = conversations::begin(&world, &json!({"team": "endless"})).await;
    browser.eval(&format!("location.hash = '#/runs/{id}/timeline'")).await;
    let rows = "document.querySelectorAll('.calls tbody tr').length";
    browser.until(&format!("{rows} === 1")).await;
    let opened = Arc::clone(&gate);
    let opening = tokio::spawn(async move {
        for open in 2.. {
            opened.open_until(open);
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    });
    for least in [2, 6, 12] {
        browser.until(&format!("{rows} >= {least}")).await;
    }
    until_state(&mut browser, "running").await;
    opening.abort();
    world.post(&format!("/api/v1/conversations/{id}/stop"), &json!({"when": "now"})).await;
    gate.lift();
    until(&world, &id, "halted").await;
    // Each call once, and all of them.
    until_state(&mut browser, "halted").await;
    let calls = world.get(&format!("/api/v1/conversations/{id}/calls")).await.json();
    let calls = calls["calls"].as_array().unwrap().len();
    browser.until(&format!("{rows} === {}", calls.min(200))).await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn s93_the_timeline_has_the_first_token_of_a_reply_that_was_received_while_it_was_written() {
    let gate = PieceGate::new();
    let Some((world, mut browser)) = begun(&gate).await else { return };
    gate.open_until(2);
    browser.until(LIVE).await;
    gate.lift();
    until_state(&mut browser, "closed").await;
    browser.press("Timeline").await;
    browser.until("document.querySelector('.bar.model + .until-first')").await;
    let times = "[3, 4].map((at) => document.querySelector('.calls tbody tr').cells[at].innerText)
        .map((it) => parseFloat(it) * (it.endsWith(' ms') ? 1 : 1000))";
    let times: Vec<f64> = serde_json::from_value(browser.eval(times).await).unwrap();
    assert!(times[1] <= times[0], "the first token comes before the last one: {times:?}");
    // It is in no event.
    browser.reload().await;
    browser.until("document.querySelector('.calls tbody tr')?.cells[4].innerText === '?'").await;
    assert_eq!(browser.eval("document.querySelectorAll('.until-first').length").await, 0);
    check_clean(&browser, &world);
}

/// Hides or shows the tab, as its script sees it: without a window, all tabs count as visible.
pub(crate) async fn hide(browser: &mut Browser, hidden: bool) {
    browser
        .eval(&format!(
            "Object.defineProperty(document, 'hidden', {{value: {hidden}, configurable: true}}), document.dispatchEvent(new Event('visibilitychange'))"
        ))
        .await;
}

/// How many event streams the server has.
async fn streams(world: &World) -> String {
    let text = world.get("/metrics").await.body;
    let line = text.lines().find_map(|line| line.strip_prefix("polylogue_streams "));
    line.unwrap().trim().to_owned()
}

async fn until_streams(world: &World, number: &str) {
    let are_there = async {
        while streams(world).await != number {
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    };
    tokio::time::timeout(Duration::from_secs(60), are_there).await.unwrap();
}

/// A browser has six connections to a server for all of its tabs.
#[tokio::test]
async fn s94_eight_tabs_show_their_questions_since_a_hidden_one_holds_no_connection() {
    let Some((world, mut browser)) = page().await else { return };
    hide(&mut browser, true).await;
    let (mut tabs, mut ids) = (Vec::new(), Vec::new());
    for _ in 0..8 {
        let id = conversations::begin(&world, &json!({"team": "ask"})).await;
        until(&world, &id, "waiting").await;
        tabs.push(browser.open_tab(&format!("{}/#/runs/{id}", world.url)).await);
        browser.until("document.querySelector('.question textarea')").await;
        until_streams(&world, "1").await;
        hide(&mut browser, true).await;
        until_streams(&world, "0").await;
        ids.push(id);
    }
    // The last one is answered elsewhere: its title says so while it is hidden, and its text follows when it is shown.
    let last = ids.last().unwrap();
    browser.until("document.title.startsWith('(1) ')").await;
    let path = format!("/api/v1/conversations/{last}");
    let question = world.get(&path).await.json()["questions"][0]["question"].clone();
    world.post(&format!("{path}/answers"), &json!({"question": question, "text": "Hm."})).await;
    browser.until("!document.title.startsWith('(')").await;
    assert_eq!(streams(&world).await, "0");
    hide(&mut browser, false).await;
    browser.until_text("Thanks.").await;
    let turns = "document.querySelectorAll('.turn').length";
    assert_eq!(browser.eval(turns).await, 3, "each message once");
    hide(&mut browser, true).await;
    // The first run, in the second tab.
    browser.turn_to(tabs.swap_remove(1));
    hide(&mut browser, false).await;
    browser.fill(".question textarea", "I am stuck.").await;
    browser.press("Answer").await;
    until_state(&mut browser, "closed").await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn the_list_follows_its_runs_by_one_stream() {
    let Some((world, mut browser)) = page().await else { return };
    until_streams(&world, "1").await;
    let id = conversations::begin(&world, &json!({"team": "ask"})).await;
    let row = |state: &str| format!("document.querySelector('.run-row a[href$=\"{id}\"] .state.{state}')");
    browser.until(&row("waiting")).await;
    let path = format!("/api/v1/conversations/{id}");
    world.post(&format!("{path}/messages"), &json!({"text": "And?"})).await;
    let question = world.get(&path).await.json()["questions"][0]["question"].clone();
    world.post(&format!("{path}/answers"), &json!({"question": question, "text": "Hm."})).await;
    browser.until(&row("closed")).await;
    // One that leaves a filtered list, which is not followed while it is hidden.
    browser.eval("location.hash = '#/?state=waiting'").await;
    browser.until("document.querySelectorAll('.run-row').length === 0").await;
    let other = conversations::begin(&world, &json!({"team": "ask"})).await;
    browser.until("document.querySelectorAll('.run-row').length === 1").await;
    hide(&mut browser, true).await;
    until_streams(&world, "0").await;
    let removed = world.send(world.request("DELETE", &format!("/api/v1/conversations/{other}"))).await;
    assert_eq!(removed.status, 200);
    hide(&mut browser, false).await;
    browser.until("document.querySelectorAll('.run-row').length === 0").await;
    let feeds = browser.requests().iter().filter(|url| url.ends_with("/api/v1/feed")).count();
    assert_eq!(feeds, 2, "one, also for another filter, and one after it was hidden");
    // A message that was sent into it is not in what was computed before it began.
    let why = "the conversation continued with a message";
    assert_eq!(world.get(&path).await.json()["bound_ended"], why);
    browser.eval(&format!("location.hash = '#/runs/{id}'")).await;
    browser.until_text(&format!("The maximum computed before the run no longer applies: {why}.")).await;
    check_clean(&browser, &world);
}

/// W39: the page says which process runs a conversation, also when it moves, and names none when none runs it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn w39_the_page_shows_which_process_runs_a_conversation() {
    const NODE: &str = "document.querySelector('.run-head .node')?.textContent ?? ''";
    let slow = model(Duration::from_millis(50), 3000, Duration::from_millis(100));
    let Some(cluster) = Cluster::new(&[], slow).await else { return };
    let Some(mut browser) = browser_of(&cluster.front).await else { return };
    let node = Node::new(&cluster, 2, None).await;
    let conversation = node.begin().await;
    let running = run(&conversation);
    browser.eval(&format!("location.hash = '#/runs/{}'", conversation.id())).await;
    until_state(&mut browser, "running").await;
    browser.until(&format!("({NODE}) === {}", json!(format!("run by {}", this_process())))).await;
    // What the database says of its holder after a move, which no event says.
    let _ = cluster.database.sql("UPDATE polylogue.nodes SET process = 'elsewhere:7'");
    browser.until(&format!("({NODE}) === 'run by elsewhere:7'")).await;
    conversation.cancellation().cancel_now();
    running.await.unwrap();
    conversation.release().await.unwrap();
    until_state(&mut browser, "halted").await;
    assert_eq!(browser.eval(NODE).await, "", "no process runs it");
    check_clean(&browser, &cluster.front);
}
