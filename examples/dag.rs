//! A DAG of chats: two run in parallel, a third starts after both with their results.
#![expect(clippy::print_stdout, reason = "it is a program")]

use polylogue::policies::{Carryover, Dag};
use polylogue::{Assistant, Chat, Result, sequential};

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn std::error::Error>> {
    let model = polylogue::models::scripted(
        r#"[{"Clerk": "A ton costs 90."}, {"Reporter": "The harbor is closed."},
            {"Analyst": {"say": "Buy: it will be 100.", "expect": {"last": "Context: \nA ton costs 90.\nThe harbor"}}}]"#,
    )?;
    let order = Dag::new([("prices", vec![]), ("news", vec![]), ("report", vec!["prices", "news"])])?;
    let step = |chat: &str, who: &str, carry: Carryover| -> Result<Chat> {
        let alone = Chat::builder(chat).participant(Assistant::new(who, &model)?).policy(sequential());
        carry.dependencies_of(&order).apply_to(alone).build()
    };
    let chat = Chat::builder("market")
        .participant(step("prices", "Clerk", Carryover::message("What does it cost?"))?)
        .participant(step("news", "Reporter", Carryover::message("What is new?"))?)
        .participant(step("report", "Analyst", Carryover::message("Buy or sell?"))?)
        .policy(order.clone())
        .build()?;
    println!("{}", chat.run("").await?);
    Ok(())
}
