//! The page while a model writes: S93, S99.

use polylogue_test::server::{Answer, PieceGate, Playbook};
use serde_json::{Value, json};

use crate::browser::Browser;
use crate::page_browser::{browser_of, check_clean, choose, id_of, until_state};
use crate::world::{LONG, World};

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
    assert_eq!(
        browser.eval("document.querySelector('.participants .speaks .name').textContent").await,
        "Ann"
    );
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
