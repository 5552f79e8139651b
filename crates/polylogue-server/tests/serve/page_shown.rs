//! What the page shows in a real browser: in time, whole and current.

use serde_json::json;

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
