//! What the page shows in a real browser: in time, whole and current.

use serde_json::json;

use crate::conversations::{begin, until};
use crate::page_browser::{browser_of, check_clean};
use crate::world::World;

/// Pieces of texts in which the end of what begins is looked for in vain.
const ENDLESS: &[&str] =
    &["`", "*a ", "**a ", "x_a ", "_a_a", "`a``b", "a._", "[a", "![a](", "http://", "| ", "- "];

#[tokio::test]
async fn no_text_of_a_model_makes_the_page_hang() {
    let world = World::new().await;
    let Some(mut browser) = browser_of(&world).await else { return };
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
    let world = World::new().await;
    let Some(mut browser) = browser_of(&world).await else { return };
    let import =
        "(() => { const files = new DataTransfer(); files.items.add(new File(['no run'], 'run.jsonl'));
        const field = document.querySelector('input.file'); field.files = files.files;
        field.dispatchEvent(new Event('change', {bubbles: true})); })()";
    browser.eval(import).await;
    browser.until("document.querySelector('.failure')").await;
    let text = browser.eval("document.querySelector('.failure').innerText").await;
    // The list is read again, because a run is new and then closed.
    browser.eval("window.before = performance.getEntriesByType('resource').length").await;
    let id = begin(&world, &json!({"team": "talk"})).await;
    until(&world, &id, "closed").await;
    browser.until("document.querySelector('.run-row .state.done')").await;
    let read = "performance.getEntriesByType('resource').slice(window.before).some((it) => it.name.includes('/conversations?'))";
    browser.until(read).await;
    assert_eq!(browser.eval("document.querySelector('.failure')?.innerText").await, text);
    browser.press("New run").await;
    browser.until("document.querySelector('select[name=team]') && !document.querySelector('.failure')").await;
    check_clean(&browser, &world);
}
