//! What the page does for a person who looks at something else: the title and the icon of its tab, and notifications.

use serde_json::{Value, json};

use crate::browser::Browser;
use crate::conversations::{begin, until};
use crate::page_browser::{browser_of, check_clean, id_of};
use crate::page_live::hide;
use crate::page_views::{show, show_until};
use crate::world::World;

const PATH: &str = "/api/v1/conversations";

/// Notifications of a browser that asks a person who says `window.says`, in `window.shown`. Without a window, a browser has none.
const NOTIFICATIONS: &str = "window.shown = []; window.requests = 0;
    window.Notification = class {
        static permission = 'default';
        static async requestPermission() {
            requests += 1;
            return (this.permission = says);
        }
        constructor(title, { body, tag }) {
            shown.push({title, body, tag, open: () => this.onclick()});
        }
        close() {}
    };";

const BELL: &str = "document.querySelector('[aria-label=Notifications]')";
const ICON: &str = "decodeURIComponent(document.querySelector('link[rel=icon]').href)";

/// A browser whose notifications are those above.
async fn with_notifications(world: &World) -> Option<Browser> {
    let mut browser = browser_of(world).await?;
    browser.command("Page.addScriptToEvaluateOnNewDocument", json!({"source": NOTIFICATIONS})).await;
    browser.reload().await;
    browser.until(BELL).await;
    Some(browser)
}

/// The last one, once there are so many.
async fn notified(browser: &mut Browser, count: usize) -> Value {
    browser.until(&format!("shown.length === {count} && {{...shown.at(-1), open: null}}")).await
}

async fn answer(world: &World, id: &str) {
    let path = format!("{PATH}/{id}");
    let question = until(world, id, "waiting").await["questions"][0]["question"].clone();
    let answered =
        world.post(&format!("{path}/answers"), &json!({"question": question, "text": "Hm."})).await;
    assert_eq!(answered.status, 202, "{}", answered.body);
}

#[tokio::test]
async fn s94_questions_are_counted_in_the_title_and_icon_and_notified_to_a_hidden_tab_that_may() {
    let world = World::new().await;
    let Some(mut browser) = with_notifications(&world).await else { return };
    let id = begin(&world, &json!({"team": "ask", "title": "stuck"})).await;
    show_until(&mut browser, &format!("#/runs/{id}"), "document.title === '(1) stuck · Polylogue'").await;
    browser.until(&format!("/^data:image.*>1<\\/text>/s.test({ICON})")).await;
    // Not allowed, and not asked for by itself.
    hide(&mut browser, true).await;
    answer(&world, &id).await;
    browser.until("document.title === 'stuck · Polylogue'").await;
    browser.until(&format!("{ICON}.endsWith('/page/icon.svg')")).await;
    assert_eq!(browser.eval("[requests, shown.length]").await, json!([0, 0]));
    hide(&mut browser, false).await;
    for (says, is_on) in [("denied", "false"), ("granted", "true")] {
        browser.eval(&format!("window.says = '{says}', {BELL}.click()")).await;
        browser.until(&format!("requests > 0 && {BELL}.ariaPressed === '{is_on}'")).await;
        browser.until(&format!("!!document.querySelector('.failure') === {}", is_on == "false")).await;
    }
    // A question, and the end of a run.
    hide(&mut browser, true).await;
    world.post(&format!("{PATH}/{id}/messages"), &json!({"text": "And?"})).await;
    let asked = notified(&mut browser, 1).await;
    assert!(asked["body"].as_str().unwrap().starts_with("It is the turn of Pat"), "{asked}");
    browser.until("document.title === '(1) stuck · Polylogue'").await;
    answer(&world, &id).await;
    let ended = notified(&mut browser, 2).await;
    assert_eq!(
        (&ended["title"], &ended["body"]),
        (&json!("stuck"), &json!("done: every participant has spoken"))
    );
    assert_ne!(ended["tag"], asked["tag"]);
    // The list, too; and a notification leads to its run.
    hide(&mut browser, false).await;
    show(&mut browser, "#/").await;
    browser.until("document.title === 'Runs · Polylogue' && document.querySelector('.run-row')").await;
    hide(&mut browser, true).await;
    let other = begin(&world, &json!({"team": "ask"})).await;
    notified(&mut browser, 3).await;
    browser.until("document.title === '(1) Runs · Polylogue'").await;
    browser.eval("shown[2].open()").await;
    assert_eq!(id_of(&mut browser).await, other);
    // Turned off again.
    browser.eval(&format!("{BELL}.click()")).await;
    browser.until(&format!("{BELL}.ariaPressed === 'false'")).await;
    browser.until("document.title.startsWith('(1) ask')").await;
    answer(&world, &other).await;
    browser.until("document.title === 'ask · Polylogue'").await;
    assert_eq!(browser.eval("[requests, shown.length]").await, json!([2, 3]));
    check_clean(&browser, &world);
}
