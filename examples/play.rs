//! Shared by the smallest programs: a scripted model, and a conversation that is printed.
#![expect(clippy::print_stdout, reason = "it prints for programs")]

use polylogue::{Chat, Log};

/// The return type of the programs.
pub type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

/// Runs `chat` in memory, with `answers` of people, and prints the messages and the stop reason.
///
/// # Errors
/// When the run fails.
pub async fn play(chat: &Chat, task: &str, answers: &[&str]) -> Result {
    let mut log = Log::in_memory();
    let mut result = chat.run_in(&mut log, task).await?;
    let mut answers = answers.iter();
    while !result.questions().is_empty() {
        for (at, question) in result.questions() {
            let answer = answers.next().ok_or_else(|| format!("no one answers `{}`", question.text))?;
            log.answer(at, &question.who, *answer).await?;
        }
        result = chat.resume(&mut log).await?;
    }
    println!("{result}");
    Ok(())
}
