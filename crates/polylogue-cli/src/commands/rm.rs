//! `polylogue rm`: remove conversations.

use super::write;
use crate::error::{CliError, Exit};
use crate::screen::Sanitized;
use crate::{args, place};

pub(crate) async fn run(cli: &args::Cli, args: &args::Rm) -> Result<Exit, CliError> {
    let runtime = place::existing(cli.store.as_deref())?;
    let mut ids = Vec::new();
    for text in &args.ids {
        ids.push(runtime.find(text).await?);
    }
    for id in ids {
        runtime.remove(&id).await?;
        write(&Sanitized::row(&format!("removed {id}")))?;
    }
    Ok(Exit::Done)
}
