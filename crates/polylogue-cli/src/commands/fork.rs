//! `polylogue fork`: a new conversation that begins as another.

use polylogue_runtime::ForkPoint;

use super::write;
use crate::error::{CliError, Exit};
use crate::screen::Sanitized;
use crate::tell::tell;
use crate::text_arg::text_of;
use crate::{args, place};

pub(crate) async fn run(cli: &args::Cli, args: &args::change::Fork) -> Result<Exit, CliError> {
    let runtime = place::existing(cli.store.as_deref())?;
    let id = runtime.find(&args.id).await?;
    let text = args.say.as_deref().map(text_of).transpose()?;
    let fork = runtime.fork(&id, &ForkPoint { event: args.at, text }).await?;
    write(&Sanitized::row(fork.as_str()))?;
    tell(&format!("`{fork}` is a fork of `{id}`: `polylogue resume {fork}` continues it"));
    Ok(Exit::Done)
}
