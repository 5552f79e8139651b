//! Shared by the smallest programs: a scripted model, and a conversation that is printed.
#![expect(clippy::print_stdout, reason = "it prints for programs")]

use polylogue::{AnyModel, AnyStore, Chat, Log, LogId, Meta, Status};
use polylogue_models::Script;
use polylogue_store::Memory;

/// The return type of the programs.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// A scripted model, in JSON. `Models::new(Env::process()).model("openai:gpt-4o-mini")?` is a real one.
///
/// # Errors
/// When the script is invalid.
pub fn scripted(script: &str) -> Result<AnyModel> {
    let script: Script = serde_json::from_str(script)?;
    Ok(AnyModel::new(script.model("example")))
}

/// Runs `chat` in memory, with `answers` of people, and prints the messages and the stop reason.
///
/// # Errors
/// When the run fails.
pub async fn play(chat: &Chat, task: &str, answers: &[&str]) -> Result {
    let store = AnyStore::new(Memory::default());
    let mut log = Log::create(store, LogId::new("example")?, &Meta::default()).await?;
    let mut status = chat.run(&mut log, task).await?;
    let mut answers = answers.iter();
    while let Status::Waiting(questions) = &status {
        for (at, question) in questions {
            let answer = answers.next().ok_or_else(|| format!("no one answers `{}`", question.text))?;
            log.answer(at, &question.who, *answer).await?;
        }
        status = chat.resume(&mut log).await?;
    }
    for line in log.transcript().await?.messages() {
        let text = line.message.plain();
        if !text.is_empty() {
            println!("{}: {text}", line.message.from);
        }
    }
    if let Status::Closed { reason, summary } = status {
        println!("-- {reason}: {summary}");
    }
    Ok(())
}
