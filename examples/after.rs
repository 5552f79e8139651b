//! Chats as a graph: two at the same time, and one after both that is told what came of them.

use polylogue::{Assistant, Carry, Chat, Prerequisites, once_each};
use polylogue_examples::{Result, play, scripted};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result {
    let model = scripted(
        r#"[{"Clerk": "A ton costs 90."}, {"Reporter": "The harbour is closed."},
            {"Analyst": {"say": "Buy: it will be 100.", "expect": {"last": "Context: \nA ton costs 90.\nThe harbour"}}}]"#,
    )?;
    let order =
        Prerequisites::new([("prices", vec![]), ("news", vec![]), ("report", vec!["prices", "news"])])?;
    let step = |chat: &str, who: &str, carry: Carry| -> Result<Chat> {
        let alone = Chat::named(chat).with(Assistant::new(who, model.clone())?).policy(once_each());
        Ok(carry.along(&order).begins(alone).build()?)
    };
    let chat = Chat::named("market")
        .with(step("prices", "Clerk", Carry::message("What does it cost?"))?)
        .with(step("news", "Reporter", Carry::message("What is new?"))?)
        .with(step("report", "Analyst", Carry::message("Buy or sell?"))?)
        .policy(order.clone())
        .build()?;
    play(&chat, "", &[]).await
}
