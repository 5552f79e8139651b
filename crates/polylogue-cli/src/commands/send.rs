//! `polylogue send`: say something in a conversation that no process runs.

use polylogue::Name;

use crate::error::{CliError, Exit};
use crate::stderr::print_note;
use crate::text_arg::text_of;
use crate::{args, attachments, place};

pub(crate) async fn run(cli: &args::Cli, args: &args::change::Send) -> Result<Exit, CliError> {
    let runtime = place::existing(cli.store.as_deref())?;
    let id = runtime.find(&args.id).await?;
    let (text, attached) = (text_of(&args.text)?, args.attach.parts()?);
    if text.trim().is_empty() {
        return Err(CliError::usage("there is no text to send"));
    }
    runtime.send(&id, attachments::message(Name::user(), text, attached)).await?;
    print_note(&format!("sent; `polylogue resume {id}` continues the conversation"));
    Ok(Exit::Done)
}
