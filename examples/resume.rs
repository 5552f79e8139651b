//! A person is asked on Monday and answers on Friday, in another process: nothing runs in between, and all state is in
//! the store.
#![expect(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;
use std::path::Path;

use polylogue::kernel::{AnyStore, LogId};
use polylogue::policies::until;
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, Human, Log, Status, round_robin};
use polylogue_models::Script;
use polylogue_store::Sqlite;

/// Both processes build the same chat; it has no state of the conversation.
fn chat() -> Result<Chat, Box<dyn Error>> {
    let script: Script = serde_json::from_str(
        r#"[{"Clerk": "I can book the train at 7:05 or at 9:40. Which one?"},
            {"Clerk": "Booked: 9:40, a seat at the window."}]"#,
    )?;
    let clerk = Assistant::new("Clerk", AnyModel::new(script.model("clerk")))?.system("You book journeys.");
    let policy = until(max_turns(3), round_robin());
    Ok(Chat::named("journey")
        .participant(clerk)
        .participant(Human::new("Traveller")?)
        .policy(policy)
        .build()?)
}

async fn monday(store: &Path) -> Result<(), Box<dyn Error>> {
    let store = AnyStore::new(Sqlite::open(store)?);
    let mut log = Log::create(store, LogId::new("journey")?).await?;
    if let Status::Waiting(questions) = chat()?.run_in(&mut log, "To the sea on Saturday").await?.status {
        for (_, question) in questions {
            println!("Monday: {} is asked: {}", question.who, question.text);
        }
    }
    Ok(())
}

async fn friday(store: &Path) -> Result<(), Box<dyn Error>> {
    let store = AnyStore::new(Sqlite::open(store)?);
    let mut log = Log::open(store, LogId::new("journey")?).await?;
    for (at, question) in log.questions().await? {
        log.answer(&at, &question.who, "The later one").await?;
    }
    let result = chat()?.resume(&mut log).await?;
    println!("Friday: {}", result.text());
    result.stop_reason().iter().for_each(|reason| println!("-- {reason}"));
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    let store = folder.path().join("journeys.db");
    monday(&store).await?;
    friday(&store).await
}
