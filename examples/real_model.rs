//! Two agents with a real model: any OpenAI-compatible endpoint, by its name and the keys in the environment.
//!
//! ```sh
//! OPENAI_API_KEY=... cargo run -p polylogue-examples --bin real_model
//! cargo run -p polylogue-examples --bin real_model ollama:llama3.2
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::process::ExitCode;

use polylogue::{Assistant, Chat, Limits, Log, Result, models, round_robin, stop};

async fn talk(model: &str) -> Result<()> {
    let model = models::named(model)?;
    let chat = Chat::builder("haiku")
        .participant(
            Assistant::new("Poet", &model)?.system("You write haiku, and revise them after each remark."),
        )
        .participant(Assistant::new("Critic", &model)?.system("You criticize haiku, in one sentence."))
        .policy(round_robin())
        .stop(stop::max_turns(4))
        .build()?;
    let mut log = Log::in_memory().limits(Limits { tokens: Some(20_000), ..Limits::default() });
    let result = chat.run_in(&mut log, "A haiku about the sea").await?;
    println!("{result}\n");
    println!("-- {} calls, {} tokens, {}", result.usage.calls, result.usage.tokens(), result.usage.cost);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> ExitCode {
    let name = std::env::args().nth(1).unwrap_or_else(|| "openai:gpt-4o-mini".to_owned());
    let Err(error) = talk(&name).await else { return ExitCode::SUCCESS };
    eprintln!("error ({}): {error}", error.fault());
    error.hint().iter().for_each(|hint| eprintln!("hint: {hint}"));
    ExitCode::FAILURE
}
