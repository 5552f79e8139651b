//! Reading runs in a real browser: large results, fast keys, colors, and what is loaded once.

use serde_json::json;

use crate::page_browser::{browser_of, check_clean};
use crate::page_views::{show, stored_run};
use crate::world::World;

#[tokio::test]
async fn of_a_large_result_the_beginning_is_shown_and_all_of_it_at_a_press() {
    const TIMES: usize = 100_000;
    let world = World::new().await;
    let Some(mut browser) = browser_of(&world).await else { return };
    // A character of two units, so that a cut at any even place would halve one.
    let text = format!("x{}", "😀".repeat(TIMES));
    let call = json!({"id": "c", "tool": "read", "args": {}});
    let bodies = [
        json!({"type": "turn_started", "turns": [{"who": "Ann"}]}),
        json!({"type": "tool_called", "who": "Ann", "call": call}),
        json!({"type": "tool_returned", "who": "Ann", "id": "c", "outcome": {"status": "done", "parts": [{"text": text}]}}),
        json!({"type": "message", "from": "Ann", "parts": [{"text": "I have read it."}]}),
    ];
    let id = stored_run(&world, "large", bodies).await;
    show(&mut browser, &format!("#/runs/{id}")).await;
    browser.until("document.querySelector('.call > summary')").await;
    browser.eval("document.querySelector('.call > summary').click()").await;
    let shown = "[...document.querySelectorAll('.call pre')].at(-1).textContent";
    let begins = format!("({shown}).length < 30000 && ({shown}).endsWith('😀…') && ({shown}).isWellFormed()");
    assert_eq!(browser.eval(&begins).await, true);
    browser.press("Show all 200k characters").await;
    browser.until(&format!("({shown}).length === {}", 2 * TIMES + 1)).await;
    browser.press("Show less").await;
    browser.until(&begins).await;
    check_clean(&browser, &world);
}
