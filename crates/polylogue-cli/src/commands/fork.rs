//! `polylogue fork`: a new conversation that begins as another.

use polylogue_core::LogId;
use polylogue_runtime::fork::{Fork, ForkPoint, ForkedFiles};

use super::steer::resume;
use super::write;
use crate::error::{CliError, Exit};
use crate::screen::Sanitized;
use crate::stderr::{print_note, print_note_wrapped};
use crate::text_arg::text_of;
use crate::{args, place};

pub(crate) async fn run(cli: &args::Cli, args: &args::change::Fork) -> Result<Exit, CliError> {
    let runtime = place::existing(&cli.named_store())?;
    let id = runtime.find(&args.id).await?;
    let text = args.say.as_deref().map(text_of).transpose()?;
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(CliError::usage("there is no text to say"));
    }
    let Fork { id: fork, files } =
        runtime.fork(&id, &ForkPoint { event: args.at, text, ..ForkPoint::default() }).await?;
    write(&Sanitized::row(fork.as_str()))?;
    print_note_wrapped(&format!("`{fork}` is a fork of `{id}`: `{}` continues it", resume(cli, &fork)));
    note_on_files(&files, &id);
    Ok(Exit::Done)
}

/// Says what the user must know of the files of the fork of `id`.
pub(crate) fn note_on_files(files: &ForkedFiles, id: &LogId) {
    let why = match files {
        ForkedFiles::None => return,
        ForkedFiles::Copied => return print_note("It has a copy of the files of the original."),
        ForkedFiles::Changed { event } => {
            format!("the tool call at event {event} and those after it may have changed them")
        }
        ForkedFiles::InUse => "another process runs it and may be changing them".into(),
    };
    print_note_wrapped(&format!("warning: it has none of the files that programs of `{id}` wrote: {why}."));
}
