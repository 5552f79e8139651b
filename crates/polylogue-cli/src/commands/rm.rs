//! `polylogue rm`: remove conversations.

use polylogue::Store;

use super::{work, write};
use crate::error::{CliError, Exit};
use crate::screen::Sanitized;
use crate::{args, place};

pub(crate) async fn run(cli: &args::Cli, args: &args::Rm) -> Result<Exit, CliError> {
    let store = place::existing(cli.store.as_deref())?;
    let mut ids = Vec::new();
    for text in &args.ids {
        ids.push(place::find(&store, text).await?);
    }
    for id in ids {
        store.remove(&id).await?;
        work::remove(cli.store.as_deref(), &id)?;
        write(&Sanitized::row(&format!("removed {id}")))?;
    }
    Ok(Exit::Done)
}
