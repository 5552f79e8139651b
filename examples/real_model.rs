//! Two agents with a real model: any OpenAI-compatible endpoint, by its name and the keys in the environment.
//!
//! ```sh
//! OPENAI_API_KEY=... cargo run -p polylogue-examples --bin real_model
//! cargo run -p polylogue-examples --bin real_model ollama:llama3.2
//! ```
#![expect(clippy::print_stdout, clippy::print_stderr, reason = "it is a program")]

use std::path::Path;
use std::process::ExitCode;

use polylogue::kernel::{AnyStore, LogId};
use polylogue::policies::until;
use polylogue::stop::max_turns;
use polylogue::{AnyModel, Assistant, Chat, Error, Limits, Log, Result, round_robin};
use polylogue_models::{Env, Models};
use polylogue_store::Memory;

async fn talk(model: AnyModel) -> Result<()> {
    let policy = until(max_turns(4), round_robin());
    let poet =
        Assistant::new("Poet", model.clone())?.system("You write haiku, and revise them after each remark.");
    let critic = Assistant::new("Critic", model)?.system("You criticise haiku, in one sentence.");
    let chat = Chat::named("haiku").participant(poet).participant(critic).policy(policy).build()?;

    let store = AnyStore::new(Memory::default());
    let log = Log::create(store, LogId::new("haiku")?).await?;
    let mut log = log.limits(Limits { tokens: Some(20_000), ..Limits::default() });
    chat.run_in(&mut log, "A haiku about the sea").await?;
    for line in log.transcript().await?.messages() {
        println!("{}: {}\n", line.message.from, line.message.plain());
    }
    let spent = log.usage().await;
    println!("-- {} calls, {} tokens, {}", spent.calls, spent.tokens(), spent.cost);
    Ok(())
}

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::result::Result<ExitCode, Box<dyn std::error::Error>> {
    let name = std::env::args().nth(1).unwrap_or_else(|| "openai:gpt-4o-mini".to_owned());
    let models = Models::new(Env::with_file(Path::new(".env"))?);
    let done = match models.model(&name) {
        Ok(model) => talk(AnyModel::new(model)).await,
        Err(error) => Err(Error::from(error)),
    };
    let Err(error) = done else { return Ok(ExitCode::SUCCESS) };
    eprintln!("error ({}): {error}", error.fault());
    error.hint().iter().for_each(|hint| eprintln!("hint: {hint}"));
    Ok(ExitCode::FAILURE)
}
