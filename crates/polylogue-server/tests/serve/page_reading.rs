//! Reading runs in a real browser: large results, fast keys, colors, what is loaded once, and runs that are paused.

use serde_json::json;

use crate::browser::Browser;
use crate::conversations::{begin, begin_until, events, position, until};
use crate::page_browser::{browser_of, check_clean, page, until_state};
use crate::page_views::{long_run, show, show_until, stored_run};
use crate::world::{World, generous};

#[tokio::test]
async fn of_a_large_result_the_beginning_is_shown_and_all_of_it_at_a_press() {
    const TIMES: usize = 100_000;
    let Some((world, mut browser)) = page().await else { return };
    // A character of two units, so that a cut at any even place would halve one; and lines that are longer than a piece.
    let text = format!("x{}\n{}", "😀".repeat(TIMES), "a b ".repeat(TIMES));
    let call = json!({"id": "c", "tool": "read", "args": {}});
    let bodies = [
        json!({"type": "turn_started", "turns": [{"who": "Ann"}]}),
        json!({"type": "tool_called", "who": "Ann", "call": call}),
        json!({"type": "tool_returned", "who": "Ann", "id": "c", "result": {"status": "done", "parts": [{"text": text}]}}),
        json!({"type": "message", "from": "Ann", "parts": [{"text": "I have read it."}]}),
    ];
    let id = stored_run(&world, "large", bodies).await;
    show_until(&mut browser, &format!("#/runs/{id}"), "document.querySelector('.call > summary')").await;
    browser.eval("document.querySelector('.call > summary').click()").await;
    let shown = "[...document.querySelectorAll('.call pre')].at(-1).textContent";
    let begins = format!("({shown}).length < 30000 && ({shown}).endsWith('😀…') && ({shown}).isWellFormed()");
    assert_eq!(browser.eval(&begins).await, true);
    browser.press("Show all 600k characters").await;
    browser.eval(&format!("window.whole = {}; 0", json!(text))).await;
    browser.until(&format!("({shown}) === window.whole")).await;
    // In pieces, of which those out of view cost nothing.
    let pieces = "[...document.querySelectorAll('.call pre .piece')]";
    let are_small = format!(
        "{pieces}.every((it) => it.textContent.length <= 10000 && it.textContent.isWellFormed() && getComputedStyle(it).contentVisibility === 'auto')"
    );
    assert_eq!(browser.eval(&are_small).await, true);
    assert!(browser.eval(&format!("{pieces}.length")).await.as_u64() >= Some(60));
    // What is selected is copied without a mark of them.
    browser
        .eval(
            "addEventListener('copy', (event) => { window.copied = event.clipboardData.getData('text/plain'); });
            getSelection().selectAllChildren([...document.querySelectorAll('.call pre')].at(-1)); 0",
        )
        .await;
    let copy = json!({"type": "rawKeyDown", "key": "c", "code": "KeyC", "windowsVirtualKeyCode": 67, "modifiers": 2, "commands": ["copy"]});
    browser.command("Input.dispatchKeyEvent", copy).await;
    browser.until("window.copied").await;
    assert_eq!(browser.eval("window.copied === window.whole").await, true);
    browser.press("Show less").await;
    browser.until(&begins).await;
    check_clean(&browser, &world);
}

/// Opens a run of 600 messages at the first, which has the focus.
async fn open_long_run(browser: &mut Browser, id: &str) {
    show(browser, &format!("#/runs/{id}?at=2")).await;
    browser.until("document.activeElement.id === 'm2'").await;
    // All of it was received.
    browser.until_text("Message 599.").await;
}

#[tokio::test]
async fn keys_that_come_faster_than_frames_pass_over_no_message() {
    let Some((world, mut browser)) = page().await else { return };
    let id = long_run(&world, 600).await;
    open_long_run(&mut browser, &id).await;
    // Each as an event of its own, as a keyboard sends them, and none waits for a frame.
    let strike = |key: &str, times: u32| {
        format!(
            "(async () => {{
                const channel = new MessageChannel();
                for (let i = 0; i < {times}; i++) {{
                    document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {{key: '{key}', bubbles: true}}));
                    await new Promise((next) => {{ channel.port1.onmessage = next; channel.port2.postMessage(0); }});
                }}
                return /Message \\d+/.exec(document.activeElement.innerText)[0];
            }})()"
        )
    };
    for (key, times, message) in
        [("j", 300, "Message 300"), ("k", 290, "Message 10"), ("j", 50, "Message 60")]
    {
        assert_eq!(browser.eval(&strike(key, times)).await, message);
    }
    check_clean(&browser, &world);
}

/// Observers that say only what a test has them say, in `say`: of all that is observed, what was seen in the frames since, the latest last.
const OBSERVERS: &str = "window.observed = new Map();
    window.IntersectionObserver = class {
        constructor(seen) { this.seen = seen; }
        observe(it) { observed.set(it, this.seen); }
        unobserve(it) { observed.delete(it); }
        disconnect() {}
    };
    window.say = (...frames) => [...observed].forEach(([target, seen]) => seen(frames.map((isIntersecting) => ({target, isIntersecting}))));
    0";

#[tokio::test]
async fn keys_move_from_the_message_with_the_focus_whatever_observers_say_and_when() {
    let Some((world, mut browser)) = page().await else { return };
    let id = long_run(&world, 600).await;
    browser.eval(OBSERVERS).await;
    open_long_run(&mut browser, &id).await;
    let strike = "(async () => {
        const channel = new MessageChannel();
        const task = () => new Promise((next) => { channel.port1.onmessage = next; channel.port2.postMessage(0); });
        for (let i = 0; i < 300; i++) {
            document.activeElement.dispatchEvent(new KeyboardEvent('keydown', {key: 'j', bubbles: true}));
            if (i % 2) await task();
            // Of a frame before the key.
            say(true, false);
            await task();
        }
        return /Message \\d+/.exec(document.activeElement.innerText)[0];
    })()";
    assert_eq!(browser.eval(strike).await, "Message 300");
    // What is always drawn, and the part with the focus: at most 40 messages in each of four.
    let drawn = "document.querySelectorAll('.turn').length";
    let few = browser.eval(drawn).await.as_u64().unwrap();
    assert!((1..=160).contains(&few), "{few} messages are drawn");
    browser.eval("say(false, true)").await;
    browser.until(&format!("{drawn} === 600")).await;
    browser.eval("say(false)").await;
    browser.until(&format!("{drawn} === {few}")).await;
    assert_eq!(browser.eval("document.activeElement.id").await, "m602");
    check_clean(&browser, &world);
}

#[tokio::test]
async fn the_message_of_an_address_has_the_focus_in_the_step_that_draws_it() {
    let Some((world, mut browser)) = page().await else { return };
    let id = long_run(&world, 600).await;
    let watch = "window.focused = [];
        new MutationObserver(() => {
            if (document.getElementById('m2')) focused.push(document.activeElement.id);
        }).observe(document.getElementById('page'), {childList: true, subtree: true});
        0";
    browser.eval(watch).await;
    show_until(&mut browser, &format!("#/runs/{id}?at=2"), "focused.length > 0").await;
    assert_eq!(browser.eval("focused[0]").await, "m2");
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_message_of_an_address_that_comes_late_takes_the_focus_from_no_field() {
    let (gate, world) = World::gated("so it goes", generous(), 1).await;
    let Some(mut browser) = browser_of(&world).await else { return gate.lift() };
    let id = begin(&world, &json!({"team": "long"})).await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until("document.querySelector('.turn.open[data-who=Bob]')").await;
    let stored = world.get(&format!("/api/v1/conversations/{id}/events")).await.json();
    let next = stored["events"].as_array().unwrap().len();
    show_until(&mut browser, "#/runs", "!document.querySelector('.turn')").await;
    show(&mut browser, &format!("#/runs/{id}?at={next}")).await;
    browser.until("document.querySelector('.turn.open[data-who=Bob]')").await;
    browser.eval("document.getElementById('say').focus()").await;
    gate.lift();
    until_state(&mut browser, "closed").await;
    browser.until("document.querySelector('.closed')").await;
    assert_eq!(browser.eval("document.activeElement.id").await, "say");
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_run_that_does_not_exist_has_a_heading_at_once_and_says_so_with_the_first_response() {
    let Some((world, mut browser)) = page().await else { return };
    // Streams say nothing, and requests for the run wait.
    let held = "window.EventSource = class { addEventListener() {} close() {} };
        { const real = window.fetch; const held = new Promise((go) => { window.go = go; });
        window.fetch = async (path, options) => {
            if (path.endsWith('/nothing')) await held;
            return real(path, options);
        }; } 0";
    browser.eval(held).await;
    show(&mut browser, "#/runs/nothing").await;
    browser.until("document.querySelector('main[aria-busy] h1')?.textContent === 'nothing'").await;
    browser.eval("go()").await;
    browser.until("document.querySelector('main h1')?.textContent === 'There is no such run'").await;
    assert_eq!(browser.eval("document.querySelectorAll('.failure').length").await, 0);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn names_of_two_runs_keep_the_colors_of_their_runs_where_no_two_have_the_same() {
    let Some((world, mut browser)) = page().await else { return };
    let many: Vec<String> = (0..13).map(|n| format!("P{n}")).collect();
    for (first, second, expected) in [
        // The third of the second run keeps its color, and is not in the way of those before it.
        (
            json!(["Ann", "Bob"]),
            json!(["Cy", "Di", "Eve"]),
            json!({"Ann": "c0", "Bob": "c1", "Cy": "c3", "Di": "c4", "Eve": "c2"}),
        ),
        (json!(["Ann", "Bob"]), json!(["Bob", "Ann"]), json!({"Ann": "c0", "Bob": "c1"})),
        (json!(["Ann", "Bob"]), json!(["Bob", "Cy"]), json!({"Ann": "c0", "Bob": "c1", "Cy": "c2"})),
        // Those that are not shown need no color.
        (json!(many), json!(["Ann", "Bob"]), json!({"P0": "c0", "P11": "c11", "Bob": "c1", "Ann": "c2"})),
        (json!(["user", "Ann"]), json!(["Bob"]), json!({"user": "user", "Ann": "c1", "Bob": "c0"})),
        // More than there are colors.
        (
            json!(many[..12]),
            json!(["Ann", "Bob"]),
            json!({"P0": "c0", "P1": "c1", "P2": "c2", "P3": "c3", "P4": "c4", "P5": "c5", "P6": "c6", "P7": "c7", "P8": "c8", "P9": "c9", "P10": "c10", "P11": "c11", "Ann": "c0", "Bob": "c1"}),
        ),
    ] {
        let shown: Vec<&String> = expected.as_object().unwrap().keys().collect();
        let shown = json!(shown);
        let colors = format!(
            "import('/page/names.js').then(({{ colorOf, merged }}) => {{
                const names = merged({first}, {second}, new Set({shown}.filter((name) => name !== 'user')));
                return Object.fromEntries({shown}.map((name) => [name, colorOf(names, name)]));
            }})"
        );
        assert_eq!(browser.eval(&colors).await, expected, "{first} and {second}");
    }
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_name_has_the_same_color_in_a_run_and_in_its_comparison() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "talk", "closed").await;
    // Of what differs, Bob says the first message.
    let second = position(&events(&world, &id).await, "two");
    let fork = json!({"seq": second, "text": "zwei", "run": true});
    let fork = world.post(&format!("/api/v1/conversations/{id}/fork"), &fork).await.json();
    let fork = fork["id"].as_str().unwrap();
    until(&world, fork, "closed").await;
    let colors = |within: &str| {
        format!(
            "Object.fromEntries([...document.querySelectorAll('{within} .name')].map((it) => [it.textContent, it.className]))"
        )
    };
    show(&mut browser, &format!("#/runs/{fork}")).await;
    browser.until("document.querySelector('.closed') && document.querySelector('.participants .name')").await;
    let of_run = browser.eval(&colors(".participants")).await;
    show_until(&mut browser, &format!("#/compare?a={id}&b={fork}"), "document.querySelector('.said')").await;
    assert_eq!(browser.eval(&colors(".said")).await, of_run);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn what_a_view_reads_once_is_read_again_when_the_server_was_busy() {
    let Some((world, mut browser)) = page().await else { return };
    let mut ids = Vec::new();
    for _ in 0..2 {
        let id = begin_until(&world, "talk", "closed").await;
        ids.push(id);
    }
    // The first request to each path.
    let busy = "{ const [real, seen] = [window.fetch, new Set()]; window.fetch = async (path, options) => {
        const asked = path.split('?')[0];
        if (seen.has(asked)) return real(path, options);
        seen.add(asked);
        return new Response(JSON.stringify({detail: 'the server is busy', status: 503}), {status: 503});
    }; } 0";
    browser.eval(busy).await;
    let (a, b) = (&ids[0], &ids[1]);
    for (view, is_there) in [
        ("new".to_owned(), "document.querySelector('select[name=team]')"),
        (format!("runs/{a}"), "document.querySelector('.closed')"),
        (format!("runs/{a}/graph"), "document.querySelector('.graph .node')"),
        (format!("runs/{a}/timeline"), "document.querySelector('.calls td')"),
        (format!("compare?a={a}&b={b}"), "document.querySelector('.common')"),
        ("teams/talk".to_owned(), "document.body.innerText.includes('No errors.')"),
    ] {
        show_until(&mut browser, &format!("#/{view}"), is_there).await;
        browser.until("!document.querySelector('.failure')").await;
    }
    // The schema, too.
    browser.fill(".text textarea", "agents:\n  - name: Ann\n    tool_c").await;
    browser.until("document.querySelector('.word')?.textContent === 'tool_calling'").await;
    // What there is not is said, and stays.
    show(&mut browser, "#/teams/nothing").await;
    browser.until("document.querySelector('h1')?.textContent === 'There is no such team'").await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn a_run_that_is_paused_says_so_and_is_resumed_by_its_button() {
    let (gate, world) = World::gated("so it goes", generous(), 1).await;
    let Some(mut browser) = browser_of(&world).await else { return gate.lift() };
    let id = begin(&world, &json!({"team": "long"})).await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    until_state(&mut browser, "running").await;
    let paused = world.post(&format!("/api/v1/conversations/{id}/pause"), &json!({})).await;
    assert_eq!(paused.status, 202, "{}", paused.body);
    gate.lift();
    browser.until("document.querySelector('.run-head .state').textContent === 'paused'").await;
    browser.press("Resume").await;
    until_state(&mut browser, "closed").await;
    check_clean(&browser, &world);
}
