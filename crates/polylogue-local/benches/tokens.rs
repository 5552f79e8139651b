//! Tokens per second of a model in this process: `cargo bench -p polylogue-local --features engine -- FILE.gguf` prints those of
//! a prompt and those of a reply.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a command-line tool prints")]

use std::process::ExitCode;
use std::time::{Duration, Instant};

use polylogue_core::{AnyModel, DeltaRef, DeltaSink, Params, Reply};
use polylogue_local::{LocalModel, LocalOptions};

type Result<T> = std::result::Result<T, Box<dyn std::error::Error>>;

/// The best of so many counts: disturbances only make a run slower.
const RUNS: u32 = 3;
/// Words of the prompt. A model that knows few words takes several tokens for one.
const WORDS: usize = 100;
/// Tokens of the reply.
const REPLY: u32 = 64;

fn main() -> ExitCode {
    // Cargo adds `--bench`.
    let Some(file) = std::env::args().skip(1).find(|arg| !arg.starts_with("--")) else {
        eprintln!("error: no file\nhint: `cargo bench -p polylogue-local --features engine -- FILE.gguf`");
        return ExitCode::FAILURE;
    };
    match report(&file) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Of the file `path`: tokens of the prompt per second until the first piece of the reply, and of the reply after it.
fn report(path: &str) -> Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
    let model = AnyModel::new(LocalModel::open(path, LocalOptions::default())?);
    // The weights are loaded with the first request.
    runtime.block_on(reply(&model, "Begin", 1))?;
    let mut best = (0.0_f64, 0.0_f64);
    let mut tokens = (0, 0);
    for run in 0..RUNS {
        // Another first word, so that nothing is kept of the run before.
        let prompt = format!("{run} {}", "harbor ledger copper evening ".repeat(WORDS / 4));
        let (reply, until_first, after) = runtime.block_on(reply(&model, &prompt, REPLY))?;
        let counted = |tokens: Option<u64>| tokens.ok_or("the tokens are unknown");
        tokens = (counted(reply.usage.input)?, counted(reply.usage.output)?);
        best.0 = best.0.max(per_second(tokens.0, until_first));
        best.1 = best.1.max(per_second(tokens.1.saturating_sub(1), after));
    }
    println!("{path}, tokens per second, the best of {RUNS} runs:");
    println!("  a prompt of {} tokens   {:.1}", tokens.0, best.0);
    println!("  a reply of {} tokens    {:.1}", tokens.1, best.1);
    Ok(())
}

/// When the first piece of a reply came.
#[derive(Default)]
struct First(Option<Instant>);

impl DeltaSink for First {
    fn push(&mut self, _: DeltaRef<'_>) {
        self.0.get_or_insert_with(Instant::now);
    }
}

/// The reply, the time until its first piece, and the time after that.
async fn reply(model: &AnyModel, prompt: &str, tokens: u32) -> Result<(Reply, Duration, Duration)> {
    let params = Params { max_tokens: Some(tokens), seed: Some(1), ..Params::default() };
    let (begun, mut first) = (Instant::now(), First::default());
    let reply = model.ask_with(prompt, &params, &mut first).await?;
    let first = first.0.unwrap_or_else(Instant::now);
    Ok((reply, first.duration_since(begun), first.elapsed()))
}

#[allow(clippy::cast_precision_loss, reason = "a rate, shown with a few digits")]
fn per_second(tokens: u64, time: Duration) -> f64 {
    tokens as f64 / time.as_secs_f64().max(1e-9)
}
