//! A person is asked on Monday and answers on Friday, in another process: nothing runs in between, and all state is in
//! the store.
#![expect(clippy::print_stdout, reason = "it is a program")]

use std::error::Error;
use std::path::Path;

use polylogue::agents::Human;
use polylogue::stores::Sqlite;
use polylogue::{Assistant, Chat, Log, models, round_robin, stop};

/// Both processes build the same chat; it has no state of the conversation.
fn chat() -> Result<Chat, Box<dyn Error>> {
    let model = models::scripted(
        r#"[{"Clerk": "I can book the train at 7:05 or at 9:40. Which one?"},
            {"Clerk": "Booked: 9:40, a seat at the window."}]"#,
    )?;
    Ok(Chat::builder("journey")
        .participant(Assistant::new("Clerk", model)?.system("You book journeys."))
        .participant(Human::new("Traveler")?)
        .policy(round_robin())
        .stop(stop::max_turns(3))
        .build()?)
}

async fn monday(store: &Path) -> Result<(), Box<dyn Error>> {
    let mut log = Log::create(Sqlite::open(store)?, "journey").await?;
    let result = chat()?.run_in(&mut log, "To the sea on Saturday").await?;
    for (_, question) in result.questions() {
        println!("Monday: {} is asked: {}", question.who, question.text);
    }
    Ok(())
}

async fn friday(store: &Path) -> Result<(), Box<dyn Error>> {
    let mut log = Log::open(Sqlite::open(store)?, "journey").await?;
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
