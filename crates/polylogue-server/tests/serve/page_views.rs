//! The views of a run in a real browser: points of view, requests, graph, timeline, comparison, the editor, keys, long runs.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join;
use polylogue_core::{Event, LogId, Meta, Store as _, Timestamp};
use polylogue_server::{NewToken, login_url};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::conversations::{begin, begin_until, events, said, until};
use crate::page_browser::{browser_of, check_clean, page, picture};
use crate::world::{World, generous};

const PATH: &str = "/api/v1/conversations";

pub(crate) async fn show(browser: &mut Browser, address: &str) {
    browser.eval(&format!("location.hash = {}", json!(address))).await;
}

/// Shows what is at `address`, and waits until this holds.
pub(crate) async fn show_until(browser: &mut Browser, address: &str, holds: &str) {
    show(browser, address).await;
    browser.until(holds).await;
}

pub(crate) async fn key(browser: &mut Browser, key: &str) {
    for kind in ["keyDown", "keyUp"] {
        let text = if kind == "keyDown" && key.chars().count() == 1 { key } else { "" };
        browser.command("Input.dispatchKeyEvent", json!({"type": kind, "key": key, "text": text})).await;
    }
}

pub(crate) async fn resize(browser: &mut Browser, width: u32) {
    let size = json!({"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": false});
    browser.command("Emulation.setDeviceMetricsOverride", size).await;
}

#[tokio::test]
async fn s95_a_point_of_view_dims_what_is_not_received_and_opens_the_exact_request() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "whisper", "closed").await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until_text("What a game!").await;
    assert_eq!(browser.eval("document.querySelectorAll('.dimmed').length").await, 0);
    browser.eval("document.querySelector('[data-view=Guesser]').click()").await;
    browser.until("document.querySelectorAll('.dimmed').length > 0").await;
    let dimmed =
        browser.eval("[...document.querySelectorAll('.dimmed')].map((it) => it.innerText).join()").await;
    let dimmed = dimmed.as_str().unwrap();
    // What the keeper says to itself, and nothing of the guesser's own.
    assert!(dimmed.contains("It is 2.") && dimmed.contains("not received by Guesser"), "{dimmed}");
    assert!(!dimmed.contains("1?") && !dimmed.contains("What a game!"), "{dimmed}");
    picture(&mut browser, "point-of-view").await;
    browser.press("request 2").await;
    browser.until("document.querySelector('dialog.request .entry')").await;
    let view = world.get(&format!("{PATH}/{id}/views/Guesser?call=2")).await.json();
    assert_eq!(view["exact"], true);
    let entries = view["request"]["entries"].as_array().unwrap();
    let texts: Vec<_> = entries.iter().map(|entry| entry["parts"][0]["text"].clone()).collect();
    let shown = "[...document.querySelectorAll('.entry pre')].map((it) => it.textContent)";
    assert_eq!(browser.eval(shown).await, json!(texts));
    browser.until_text("Exactly what was sent").await;
    assert_ne!(browser.eval("document.querySelectorAll('.entry.is-new').length").await, 0);
    picture(&mut browser, "request").await;
    // The next call, and the address of each.
    browser.eval("document.querySelector('[aria-label=\"The next call\"]').click()").await;
    browser.until("location.hash.includes('request=Guesser%3A3')").await;
    key(&mut browser, "Escape").await;
    browser.eval("document.querySelector('dialog.request')?.close()").await;
    browser.until("!location.hash.includes('request') && !document.querySelector('dialog')").await;
    browser.press("Show everything").await;
    browser.until("document.querySelectorAll('.dimmed').length === 0").await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn s95_an_address_with_the_name_of_no_participant_says_so_with_those_there_are() {
    let world = World::new().await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "whisper"})).await;
    until(&world, &id, "closed").await;
    show(&mut browser, &format!("#/runs/{id}?as=Stranger")).await;
    browser.until("document.querySelector('.no-viewer')?.textContent.includes('“Stranger”')").await;
    browser.until("document.querySelector('.closed')").await;
    let names = "[...document.querySelectorAll('.no-viewer button')].map((it) => it.textContent)";
    assert_eq!(browser.eval(names).await, json!(["Keeper", "Guesser", "Show everything"]));
    // Wherever the page is scrolled to.
    let in_view = "(({top, bottom}) => top >= 0 && bottom <= innerHeight)(document.querySelector('.no-viewer').getBoundingClientRect())";
    browser.until(in_view).await;
    assert_eq!(browser.eval("document.querySelectorAll('.dimmed').length").await, 0);
    browser.press("Guesser").await;
    browser.until("document.querySelector('.dimmed') && !document.querySelector('.no-viewer')").await;
    assert_eq!(browser.eval("location.hash.split('?')[1]").await, "as=Guesser");
    check_clean(&browser, &world);
}

#[tokio::test]
async fn s93_the_graph_lights_the_speaker_and_counts_and_the_timeline_has_each_call() {
    let (gate, world) = World::gated("so it goes", generous(), 3).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "long"})).await;
    show(&mut browser, &format!("#/runs/{id}/graph")).await;
    // Three replies: Ann, Bob, Ann; the fourth call waits.
    // From the beginning to Ann, and between Ann and Bob in both directions.
    let counts = "[...document.querySelectorAll('.edge-count')].map((it) => it.textContent).join()";
    browser.until(&format!("({counts}) === '1×,3×'")).await;
    browser.until("document.querySelector('.node.speaks')?.dataset.node === 'Bob'").await;
    picture(&mut browser, "graph").await;
    gate.lift();
    // The loop detection ends it after eight equal messages.
    browser.until("!document.querySelector('.node.speaks')").await;
    browser.until(&format!("({counts}) === '1×,7×'")).await;
    until(&world, &id, "closed").await;
    browser.press("Timeline").await;
    browser.until("document.querySelectorAll('.calls tbody tr').length === 8").await;
    assert_eq!(browser.eval("document.querySelectorAll('.lane:not(.scale)').length").await, 2);
    assert_eq!(browser.eval("document.querySelectorAll('.bar.model').length").await, 8);
    // Without a width, a short one would not be drawn.
    let drawn = "[...document.querySelectorAll('.bar')].filter((it) => it.width.baseVal.value > 0).length";
    assert_eq!(browser.eval(drawn).await, 8);
    browser.press("Time").await;
    browser.until("document.querySelector('th[aria-sort=descending]')?.innerText.startsWith('Time')").await;
    let times = "[...document.querySelectorAll('.calls tbody tr td:nth-child(4)')].map((it) => parseFloat(it.innerText) * (it.innerText.endsWith(' ms') ? 1 : 1000))";
    let times: Vec<f64> = serde_json::from_value(browser.eval(times).await).unwrap();
    assert!(times.len() == 8 && times.is_sorted_by(|a, b| a >= b), "{times:?}");
    picture(&mut browser, "timeline").await;
    browser.eval("document.querySelector('.calls tbody button').click()").await;
    browser.until("document.querySelector('dialog.request .entry')").await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn s96_s97_a_fork_is_compared_and_a_team_is_edited_with_findings_at_their_lines() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin_until(&world, "talk", "closed").await;
    let events = world.get(&format!("{PATH}/{id}/events")).await.json();
    let second = crate::conversations::position(events["events"].as_array().unwrap(), "two");
    let fork = json!({"seq": second, "text": "zwei", "run": true});
    let fork = world.post(&format!("{PATH}/{id}/fork"), &fork).await.json();
    let fork = fork["id"].as_str().unwrap();
    until(&world, fork, "closed").await;
    show_until(&mut browser, &format!("#/runs/{fork}"), "document.querySelector('.run-head a.button')").await;
    browser.eval("document.querySelector('.run-head a.button').click()").await;
    browser.until(&format!("location.hash === '#/compare?a={id}&b={fork}'")).await;
    browser.until_text(&format!("Both begin with the same {second} events.")).await;
    let first = browser.eval("document.querySelector('.pair.first').innerText").await;
    let first = first.as_str().unwrap();
    assert!(first.contains("first difference") && first.contains("two") && first.contains("zwei"), "{first}");
    picture(&mut browser, "compare").await;

    show(&mut browser, "#/teams/talk").await;
    browser.until_text("No errors.").await;
    browser.until("document.querySelector('.graph .node')").await;
    let text = std::fs::read_to_string(world.dir.path().join("talk.yaml")).unwrap();
    assert_eq!(browser.eval("document.querySelector('.text textarea').value").await, text);
    let broken = text.replace("pattern: round_robin", "pattern: round_robbin");
    // By itself, without a word of the person.
    browser.fill(".text textarea", &broken).await;
    browser.until("document.querySelector('.findings .error')").await;
    let line = broken.lines().position(|line| line.contains("robbin")).unwrap() + 1;
    browser.until(&format!("document.querySelector('.gutter .error').textContent.trim() === '{line}'")).await;
    // It leads to its place.
    browser.press(&format!("line {line}")).await;
    let place = "(() => { const it = document.querySelector('.text textarea'); return it.value.slice(0, it.selectionStart).split('\\n').length; })()";
    assert_eq!(browser.eval(place).await, line);
    // There is no editor besides the text area that could fail to load: the page has loaded what each view has, and nothing was refused.
    let scripts = "performance.getEntriesByType('resource').filter((it) => it.initiatorType === 'script' && it.responseStatus >= 400).length";
    assert_eq!(browser.eval(scripts).await, 0);
    // The draft survives a reload; nothing was executed or written.
    browser.reload().await;
    browser.until("document.querySelector('.text textarea')?.value.includes('robbin')").await;
    picture(&mut browser, "editor").await;
    assert_eq!(std::fs::read_to_string(world.dir.path().join("talk.yaml")).unwrap(), text);
    browser.press("Discard changes").await;
    browser.until_text("No errors.").await;
    // What the schema allows where the caret is, and a click writes it.
    let offered = "[...document.querySelectorAll('.word')].map((it) => it.textContent).join()";
    for (begun, words) in [
        ("agents:\n  - name: Ann\n    tool_c", "tool_calling"),
        ("agents:\n  - {name: Ann}\nscript_", "script_pace"),
        ("sandbox:\n  backend: d", "docker"),
        ("agents:\n  - name: Ann\n    system: tool_c", ""),
        ("agents: [{name: Ann, tool_c", "tool_calling"),
        ("agents:\n  - {name: Ann, system: 'Be {kind, ', tool_c", "tool_calling"),
        ("sandbox: {backend: d", "docker"),
        ("agents: [{name: Ann, human: tr", "true"),
        ("chat: {pattern: {group: {allow_r", "allow_repeat_speaker"),
        ("agents: [{name: Ann, system: tool_c", ""),
        ("task: Write {tool_c", ""),
    ] {
        browser.fill(".text textarea", begun).await;
        browser.until(&format!("({offered}) === '{words}'")).await;
    }
    browser.fill(".text textarea", "agents:\n  - name: Ann\n    output_r").await;
    browser.press("output_retries").await;
    let text = "agents:\n  - name: Ann\n    output_retries: ";
    browser.until(&format!("document.querySelector('.text textarea').value === {}", json!(text))).await;
    browser.press("Discard changes").await;
    check_clean(&browser, &world);
}

#[tokio::test]
async fn s94_a_question_in_two_tabs_is_answered_once_and_keys_do_what_is_listed() {
    let Some((world, mut browser)) = page().await else { return };
    let Some(mut other) = browser_of(&world).await else { return };
    let id = begin(&world, &json!({"team": "ask"})).await;
    for tab in [&mut browser, &mut other] {
        show(tab, &format!("#/runs/{id}")).await;
        tab.until("document.querySelector('.question textarea')").await;
    }
    // By keys alone: the list of keys, the question, the answer.
    key(&mut browser, "?").await;
    browser.until("document.querySelector('dialog.help[open] kbd')").await;
    picture(&mut browser, "keys").await;
    browser.eval("document.querySelector('dialog.help').close()").await;
    browser.until("!document.querySelector('dialog')").await;
    key(&mut browser, "a").await;
    browser.until("document.activeElement === document.querySelector('.question textarea')").await;
    // A key within a field is a letter.
    browser.command("Input.insertText", json!({"text": "Why j?"})).await;
    let enter = json!({"type": "rawKeyDown", "key": "Enter", "code": "Enter", "windowsVirtualKeyCode": 13, "modifiers": 2});
    browser.command("Input.dispatchKeyEvent", enter).await;
    for tab in [&mut browser, &mut other] {
        tab.until_text("Thanks.").await;
        tab.until("!document.querySelector('.question')").await;
        tab.until_text("Why j?").await;
    }
    browser.eval("document.activeElement.blur()").await;
    key(&mut browser, "k").await;
    browser
        .until(
            "document.activeElement.matches('.turn') && document.activeElement.innerText.includes('Thanks.')",
        )
        .await;
    key(&mut browser, "k").await;
    browser.until("document.activeElement.closest('.turn')?.innerText.includes('Why j?')").await;
    key(&mut browser, "j").await;
    browser.until("document.activeElement.closest('.turn')?.innerText.includes('Thanks.')").await;
    key(&mut browser, "v").await;
    browser.until("location.hash.includes('as=Pat')").await;
    key(&mut browser, "t").await;
    browser.until("location.hash.includes('/timeline') && document.querySelector('.timeline')").await;
    for part in ["g", "r"] {
        key(&mut browser, part).await;
    }
    browser.until("document.querySelector('main h1').textContent === 'Runs'").await;
    key(&mut browser, "/").await;
    browser.until("document.activeElement.id === 'search'").await;
    // Another question, which both answer at the same time.
    let id = begin(&world, &json!({"team": "ask"})).await;
    for (tab, text) in [(&mut browser, "One."), (&mut other, "Two.")] {
        show(tab, &format!("#/runs/{id}")).await;
        tab.fill(".question textarea", text).await;
    }
    let answer = "[...document.querySelectorAll('.question button')].find((it) => it.textContent.trim() === 'Answer')?.click()";
    join(browser.eval(answer), other.eval(answer)).await;
    for tab in [&mut browser, &mut other] {
        tab.until_text("Thanks.").await;
        tab.until("!document.querySelector('.question')").await;
    }
    let events = events(&world, &id).await;
    assert_eq!(events.iter().filter(|event| event["type"] == "input_provided").count(), 1);
    let said = said(&events);
    assert!(said == ["One.", "Thanks."] || said == ["Two.", "Thanks."], "{said:?}");
    check_clean(&browser, &world);
    check_clean(&other, &world);
}

/// A closed conversation of `count` messages.
pub(crate) async fn long_run(world: &World, count: u64) -> String {
    let turn = |n: u64| {
        let who = if n.is_multiple_of(2) { "Ann" } else { "Bob" };
        let text = format!("Message {n}.\n\n- one\n- **two**");
        [
            json!({"type": "turn_started", "turns": [{"who": who}]}),
            json!({"type": "message", "from": who, "parts": [{"text": text}]}),
        ]
    };
    stored_run(world, "longrun", (0..count).flat_map(turn)).await
}

/// A closed conversation of Ann and Bob with these events.
pub(crate) async fn stored_run(world: &World, id: &str, bodies: impl IntoIterator<Item = Value>) -> String {
    let opened = json!({"type": "opened", "participants": ["Ann", "Bob"], "task": "Talk.", "messages": []});
    let closed = json!({"type": "closed", "reason": "finished", "summary": ""});
    let all = std::iter::once(opened).chain(bodies).chain([closed]);
    let event = |(seq, mut body): (u64, Value)| {
        body["seq"] = seq.into();
        body["time_ms"] = (1_700_000_000_000 + seq).into();
        Arc::new(serde_json::from_value::<Event>(body).unwrap())
    };
    let events: Vec<Arc<Event>> = (0..).zip(all).map(event).collect();
    let (store, id) = (world.store().await, LogId::new(id).unwrap());
    let meta = Meta { title: "talk".into(), created: Timestamp(1_700_000_000_000), ..Meta::default() };
    let claim = store.create(&id, &meta).await.unwrap();
    for batch in events.chunks(1000) {
        store.append(&claim, batch).await.unwrap();
    }
    store.release(claim).await.unwrap();
    id.to_string()
}

#[tokio::test]
async fn s100_of_10_000_messages_only_those_near_the_screen_are_drawn() {
    const MESSAGES: u64 = 10_000;
    let Some((world, mut browser)) = page().await else { return };
    let id = long_run(&world, MESSAGES).await;
    show_until(&mut browser, "#/runs", "!document.querySelector('.turn')").await;
    browser.eval("window.begun = performance.now()").await;
    show_until(&mut browser, &format!("#/runs/{id}"), "document.querySelector('.turn')").await;
    let first = browser.eval("performance.now() - window.begun").await.as_f64().unwrap();
    browser.until("document.body.innerText.includes('Message 9999.')").await;
    let all = browser.eval("performance.now() - window.begun").await.as_f64().unwrap();
    browser.until("document.body.innerText.includes('The chat ended')").await;
    // It opens at its end, although its parts come and are measured one after the other.
    browser.until("document.documentElement.scrollHeight - scrollY - innerHeight < 2").await;
    assert_eq!(browser.eval("document.querySelectorAll('.newer').length").await, 0);
    tokio::time::sleep(Duration::from_millis(500)).await;
    // Through the whole run, a screen at a time near both ends, and in leaps between.
    let scroll = "(async () => {
        const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
        const high = document.documentElement.scrollHeight;
        let most = 0;
        window.added = 0;
        window.most_added = 0;
        new MutationObserver((changes) => {
            window.added = changes.flatMap((it) => [...it.addedNodes]).filter((it) => it.matches?.('.turn')).length;
            window.most_added = Math.max(window.most_added, window.added);
        }).observe(document.querySelector('.list'), {childList: true, subtree: true});
        for (let at = 0; at <= 60; at++) {
            scrollTo(0, at < 20 ? at * 600 : high * (at / 60));
            await frame();
            await frame();
            most = Math.max(most, document.querySelectorAll('.turn').length);
        }
        return most;
    })()";
    browser.trace().await;
    let most = browser.eval(scroll).await.as_u64().unwrap();
    let longest = browser.longest_task().await;
    // Times are those of the machine: they are printed, and what they grow with is asserted.
    println!("first paint {first:.0} ms, all {all:.0} ms, most {most} turns drawn, longest task {longest:?}");
    // Six parts of 40: the two at the end are always drawn, and a leap has those of where it began and of where it ends.
    assert!((1..=240).contains(&most), "{most} turns are drawn at once");
    // What would make a task long: no step of scrolling draws more than a few parts of the list.
    let added = browser.eval("window.most_added").await.as_u64().unwrap();
    assert!((1..=200).contains(&added), "{added} turns are drawn by one step");
    // A message in the middle has an address.
    show(&mut browser, &format!("#/runs/{id}?at={}", 2 * (MESSAGES / 2) + 2)).await;
    browser.until("document.activeElement?.innerText?.includes('Message 5000.')").await;
    // It stays in view when what is before it is drawn.
    browser.until_text("Message 4970.").await;
    let top = browser.eval("document.activeElement.getBoundingClientRect().top").await.as_f64().unwrap();
    assert!((0.0..860.0).contains(&top), "{top}");
    check_clean(&browser, &world);
}

/// What axe finds in the page.
pub(crate) const VIOLATIONS: &str = "axe.run(document).then((found) => found.violations.map((it) => `${it.id}: ${it.nodes.map((node) => `${node.target} ${node.failureSummary}`).join('; ')}`))";

/// axe-core, which `.ci/test` installs.
pub(crate) fn axe() -> Option<String> {
    let file: PathBuf =
        Path::new(env!("CARGO_TARGET_TMPDIR")).parent().unwrap().join("axe/node_modules/axe-core/axe.min.js");
    polylogue_test::skip::has("axe-core", file.exists()).then(|| std::fs::read_to_string(file).unwrap())
}

#[tokio::test]
async fn s99_every_view_passes_axe_in_both_themes_and_fits_320_pixels() {
    let world = World::new().await;
    let Some(axe) = axe() else { return };
    let Some(mut browser) = browser_of(&world).await else { return };
    let (id, asks) =
        (begin(&world, &json!({"team": "whisper"})).await, begin(&world, &json!({"team": "ask"})).await);
    until(&world, &id, "closed").await;
    until(&world, &asks, "waiting").await;
    let other = begin_until(&world, "whisper", "closed").await;
    browser.eval(&format!("{axe};0")).await;
    let views = [
        ("".to_owned(), "document.querySelectorAll('.run-row').length === 3"),
        ("new?team=talk".to_owned(), "document.querySelector('textarea[name=message]')"),
        (format!("runs/{id}?as=Guesser"), "document.querySelector('.closed')"),
        (format!("runs/{id}?request=Guesser:2"), "document.querySelector('.entry')"),
        (format!("runs/{id}/graph"), "document.querySelector('.node')"),
        (format!("runs/{id}/timeline"), "document.querySelector('.calls td')"),
        (format!("runs/{asks}"), "document.querySelector('.question')"),
        (format!("compare?a={id}&b={other}"), "document.querySelector('.common')"),
        ("teams".to_owned(), "document.querySelector('.teams .run-row')"),
        ("teams/talk".to_owned(), "document.querySelector('.graph')"),
        ("cluster".to_owned(), "document.querySelector('.cluster-part')"),
    ];
    let mut found = Vec::new();
    for (address, is_there) in &views {
        for (theme, width) in [("light", 1440), ("dark", 900), ("light", 320), ("dark", 320)] {
            resize(&mut browser, width).await;
            browser.eval(&format!("document.documentElement.dataset.theme = '{theme}'")).await;
            show_until(&mut browser, &format!("#/{address}"), is_there).await;
            found.extend(violations(&mut browser, &format!("{address} {theme} {width}")).await);
            let name = address
                .split(['?', '='])
                .next()
                .unwrap_or_default()
                .replace(id.as_str(), "run")
                .replace(asks.as_str(), "asks")
                .replace('/', "-");
            picture(&mut browser, &format!("axe-{name}-{theme}-{width}")).await;
        }
        if address.contains("request") {
            browser.eval("document.querySelector('dialog').close()").await;
        }
    }
    // Another link, and a browser without a session.
    let link = world.tokens().create_link(NewToken::local("page")).unwrap();
    let link = login_url(&world.url, &link);
    show_until(&mut browser, link.split_once('#').unwrap().1, "document.querySelector('.notice')").await;
    for view in ["another link", "logged out"] {
        for (theme, width) in [("light", 1440), ("dark", 320)] {
            resize(&mut browser, width).await;
            browser.eval(&format!("document.documentElement.dataset.theme = '{theme}'")).await;
            found.extend(violations(&mut browser, &format!("{view} {theme} {width}")).await);
        }
        if view == "another link" {
            browser.press("Log out").await;
            browser.until_text("You are not logged in.").await;
        }
    }
    assert_eq!(found, Vec::<String>::new());
    check_clean(&browser, &world);
}

/// What axe finds in a view, and whether it is too wide.
async fn violations(browser: &mut Browser, view: &str) -> Vec<String> {
    let violations = browser.eval(VIOLATIONS).await;
    let mut found: Vec<String> =
        violations.as_array().unwrap().iter().map(|it| format!("{view}: {it}")).collect();
    let over = browser.eval("document.documentElement.scrollWidth - innerWidth").await;
    if over.as_f64() > Some(0.0) {
        found.push(format!("{view}: {over} pixels too wide"));
    }
    found
}

/// Texts that would run in a page that takes them for markup.
const HOSTILE: &str = r##"
name: hostile
description: '<img src=x onerror="window.hit=1">'
task: '<script>window.hit=2</script>'
agents: [{name: Ann, system: '<svg onload="window.hit=3">'}, {name: Bob}]
chat: {participants: [Ann, Bob], pattern: round_robin, stop: {max_turns: 4}}
script:
  - Ann: '<script>window.hit=4</script><img src=x onerror="window.hit=5"> [a](javascript:window.hit=6)'
  - Bob: '[b](data:text/html,<script>window.hit=7</script>) ![c](https://evil.test/c.png) <a href="javascript:window.hit=8">d</a>'
  - Ann: "```html\n<iframe srcdoc='<script>parent.hit=9</script>'></iframe>\n```\n| <b onmouseover=window.hit=10>x</b> | y |\n|---|---|\n| [e](JaVaScRiPt:window.hit=11) | [f](vbscript:x) |"
  - Bob: "</pre></p><style>*{display:none}</style>\u202Efdp.exe\u3164\u206A\u2028 [g](https://good.test)"
"##;

const HOSTILE_FILES: &str = "
name: hostile-files
task: Write.
agents: [{name: Ann, tools: [write_file, read_file]}]
chat: {participants: [Ann], pattern: round_robin, stop: {max_turns: 1}}
script:
  - Ann: {calls: [{tool: write_file, args: {path: '<img src=x onerror=window.hit=1>.txt', content: '<script>window.hit=2</script>'}}]}
  - Ann: {calls: [{tool: read_file, args: {path: '<img src=x onerror=window.hit=1>.txt'}}]}
  - Ann: Written.
";

#[tokio::test]
async fn s98_no_call_no_result_and_no_name_of_a_file_becomes_markup() {
    let world = World::with_team("hostile-files", HOSTILE_FILES).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin_until(&world, "hostile-files", "closed").await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until_text("Written.").await;
    browser
        .eval("document.querySelectorAll('.talk details:not(.menu)').forEach((it) => { it.open = true; })")
        .await;
    // As an argument of the first call, and as the result of the second one.
    browser
        .until("[...document.querySelectorAll('.talk pre')].filter((it) => it.textContent.includes('<script>window.hit=2</script>')).length > 1")
        .await;
    browser.press("Files").await;
    browser
        .until("[...document.querySelectorAll('.files a')].some((it) => it.textContent === '<img src=x onerror=window.hit=1>.txt')")
        .await;
    let made = "document.querySelectorAll('script:not([src^=\"/page/\"]), [onerror]').length";
    assert_eq!(browser.eval(made).await, 0);
    assert_eq!(browser.eval("window.hit ?? null").await, Value::Null);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn s98_no_text_becomes_markup_in_any_view() {
    let world = World::with_team("hostile", HOSTILE).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let title = "<img src=x onerror=window.hit=12>";
    let id = begin(&world, &json!({"team": "hostile", "title": title})).await;
    until(&world, &id, "closed").await;
    let views = [
        ("".to_owned(), title),
        (format!("runs/{id}"), "<iframe srcdoc="),
        (format!("runs/{id}?request=Ann:2"), "<svg onload="),
        (format!("runs/{id}/graph"), "in turn"),
        (format!("runs/{id}/timeline"), "script:hostile"),
        (format!("compare?a={id}&b={id}"), title),
        ("teams".to_owned(), "<img src=x onerror"),
        // With the graph of its text.
        ("teams/hostile".to_owned(), "No errors."),
        ("new?team=hostile".to_owned(), "<img src=x onerror"),
    ];
    for (address, text) in &views {
        show(&mut browser, &format!("#/{address}")).await;
        browser.until_text(text).await;
        let made = "document.querySelectorAll('script:not([src^=\"/page/\"]), iframe, [onerror], [onload], [onmouseover], body style').length";
        assert_eq!(browser.eval(made).await, 0, "{address}");
        let links = "[...document.querySelectorAll('main a')].map((it) => it.protocol).filter((it) => !['http:', 'https:', 'mailto:'].includes(it)).join()";
        assert_eq!(browser.eval(links).await, "", "{address}");
        if address.contains("request") {
            browser.eval("document.querySelector('dialog').close()").await;
        }
    }
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until_text("⟨U+202E⟩").await;
    browser.until_text("⟨U+3164⟩⟨U+206A⟩⟨U+2028⟩").await;
    assert_eq!(browser.eval("window.hit ?? null").await, Value::Null);
    check_clean(&browser, &world);
}

#[tokio::test]
async fn s100_the_page_continues_by_itself_when_the_server_is_restarted() {
    let Some((world, mut browser)) = page().await else { return };
    let id = begin(&world, &json!({"team": "ask"})).await;
    show_until(&mut browser, &format!("#/runs/{id}"), "document.querySelector('.question textarea')").await;
    // A reload would lose it.
    browser.eval("window.kept = true").await;
    let world = world.restart_here().await;
    // As another client would: the page hears of it.
    let waiting = until(&world, &id, "waiting").await;
    let answer = json!({"question": waiting["questions"][0]["question"], "text": "After the restart."});
    assert_eq!(world.post(&format!("{PATH}/{id}/answers"), &answer).await.status, 202);
    browser.until_text("Thanks.").await;
    browser.until("!document.querySelector('.question')").await;
    assert_eq!(browser.eval("document.querySelectorAll('.closed').length > 0").await, true);
    assert_eq!(browser.eval("window.kept").await, true, "by itself, and not by a reload");
    let said = "[...document.querySelectorAll('.turn')].filter((it) => it.innerText.includes('After the restart.')).length";
    assert_eq!(browser.eval(said).await, 1, "each message once");
}

#[tokio::test]
async fn the_picture_in_the_readme_is_one_of_the_page() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    let desk = std::fs::read_to_string(folder.join("teams/support-desk.yaml")).unwrap();
    let world = World::with_team("support-desk", &desk).await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let id = begin_until(&world, "support-desk", "closed").await;
    resize(&mut browser, 1280).await;
    browser.eval("document.documentElement.dataset.theme = 'light'").await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until("document.querySelector('.closed') && document.querySelectorAll('.turn').length > 4").await;
    browser.eval("document.querySelector('[data-view]').click()").await;
    browser.until("document.querySelector('.requests')").await;
    // After the page has kept in place what was read.
    browser.eval("new Promise((done) => requestAnimationFrame(() => done(scrollTo(0, 0))))").await;
    let file = folder.join("docs/images/page.png");
    if std::env::var_os("UPDATE").is_some() {
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(&file, browser.screenshot().await).unwrap();
    }
    let png = std::fs::read(&file).unwrap();
    assert_eq!(png[16..24], [1280_u32.to_be_bytes(), 900_u32.to_be_bytes()].concat());
    assert!(png.len() < 200_000, "{} bytes", png.len());
    let readme = std::fs::read_to_string(folder.join("README.md")).unwrap();
    assert!(readme.contains("(docs/images/page.png)"));
    check_clean(&browser, &world);
}
