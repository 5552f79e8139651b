//! `--detach`: hands a conversation over to the workers of its store.

use polylogue_core::{Features, Instruction, LimitOverrides, LogId};
use polylogue_runtime::{Conversation, Prepared, Runtime};
use serde_json::json;

use super::{unwritable, write};
use crate::args;
use crate::args::worker::features;
use crate::error::{CliError, Exit};
use crate::screen::{Output, Sanitized, Settings};
use crate::stderr::print_note_wrapped;

/// Hands a conversation that this process has open over to workers, and prints its id.
pub(super) async fn hand_over(
    runtime: &Runtime,
    (conversation, prepared): (&Conversation, &Prepared),
    detach: &args::worker::Detach,
    settings: &Settings,
) -> Result<Exit, CliError> {
    let id = conversation.id();
    // While it is open here, so that no moment is without a process that runs it next.
    runtime.hand_over_prepared(id, prepared, needs(detach)?.as_ref()).await?;
    conversation.release().await?;
    print(id, settings)
}

/// Has workers continue a conversation that a person has paused or cancelled, which may use `more` than it has used so far.
pub(super) async fn continue_by_worker(
    runtime: &Runtime,
    id: &LogId,
    more: LimitOverrides,
    detach: &args::worker::Detach,
    settings: &Settings,
) -> Result<Exit, CliError> {
    // Refused where there is no queue, before anything is changed. A worker that takes it now finds it stopped, and leaves it.
    runtime.hand_over(id, needs(detach)?.as_ref()).await?;
    if !more.is_empty() {
        runtime.steer(id, Instruction::RaiseLimits(more)).await?;
    }
    runtime.steer(id, Instruction::Resume).await?;
    print(id, settings)
}

/// What a worker must offer besides what the team needs, if the command line says so.
fn needs(detach: &args::worker::Detach) -> Result<Option<Features>, CliError> {
    features(&detach.needs).map(|needs| Some(needs).filter(|needs| !needs.is_empty()))
}

fn print(id: &LogId, settings: &Settings) -> Result<Exit, CliError> {
    match settings.output {
        Output::Json => write(&Sanitized::json(&json!({ "id": id })).map_err(unwritable)?)?,
        _ => write(&Sanitized::row(id.as_str()))?,
    }
    print_note_wrapped(&format!(
        "a worker runs it; `polylogue cluster` shows where, and `polylogue show {id}` what was said"
    ));
    Ok(Exit::Done)
}
