//! `--detach`: hands a conversation over to the workers of its store.

use polylogue_core::{BoundSummary, Features, LogId};
use polylogue_runtime::{Conversation, Prepared, Runtime};
use serde_json::json;

use super::takers::Takers;
use super::{unwritable, write};
use crate::args;
use crate::args::worker::features;
use crate::error::{CliError, Exit};
use crate::place::PlaceOption;
use crate::screen::{Output, Sanitized, Settings};
use crate::stderr::print_note_wrapped;

/// Hands a conversation that this process has open over to workers, and prints its id; for programs, with what it takes at most, if it begins.
pub(super) async fn hand_over(
    runtime: &Runtime,
    (conversation, prepared, bound): (&Conversation, &Prepared, Option<&BoundSummary>),
    detach: &args::worker::Detach,
    settings: &Settings,
    place: &PlaceOption,
) -> Result<Exit, CliError> {
    let id = conversation.id();
    // While it is open here, so that no moment is without a process that runs it next.
    runtime.hand_over(id, prepared, needs(detach)?.as_ref()).await?;
    conversation.log_resumption().await?;
    conversation.release().await?;
    print_id(id, bound, settings)?;
    let (cluster, show) = (place.command("cluster"), place.command(&format!("show {id}")));
    let next = Takers::of(runtime, id).await?.in_words(place);
    print_note_wrapped(&format!("{next}; `{cluster}` shows where it runs, and `{show}` what was said"));
    Ok(Exit::Done)
}

/// Refuses what a worker would not learn of, if a conversation is handed over: it has what is stored with it, and its own models.
pub(super) fn check(
    detach: &args::worker::Detach,
    budgets: &args::Budgets,
    options: &args::RunOptions,
) -> Result<(), CliError> {
    needs(detach)?;
    let models = &options.team.models;
    let shared = "give it a name, as in `--budget team=20`, by which processes with one Postgres share it; or limit the conversation, as by `--max-cost`";
    refuse(
        detach,
        [
            ("`--timeout`", models.timeout.is_some(), OF_WORKER),
            ("`--record`", models.record.is_some(), OF_ONE),
            ("`--cache`", models.cache.is_some(), OF_WORKER),
            ("`--replay`", models.replay.is_some(), OF_WORKER),
            ("`--thoughts`", models.thoughts, OF_WORKER),
            ("`--dir`", options.folder.is_given(), OF_MACHINE),
            ("a budget without a name", budgets.of_process().is_some(), shared),
        ],
    )
}

/// The same for a conversation that continues, whose team is stored.
pub(super) fn check_resumed(args: &args::Resume) -> Result<(), CliError> {
    check(&args.detach, &args.budgets, &args.options)?;
    let models = &args.options.team.models;
    refuse(
        &args.detach,
        [
            ("`--model`", models.model.is_some(), OF_WORKER),
            ("`--capabilities`", models.capabilities.is_some(), OF_WORKER),
            ("`--offline`", models.offline, OF_WORKER),
            ("`--answer`", args.answer.is_some(), "`polylogue answer` has a worker continue it"),
        ],
    )
}

const OF_MACHINE: &str = "run it here, without `--detach`: other machines do not have the folder";

const OF_ONE: &str = "`polylogue worker --only ID --record FILE` records one conversation";

const OF_WORKER: &str = "give it to `polylogue worker`, for all conversations that it runs";

/// Refuses the first of `options` that is given with `--detach`: each with whether it is, and what to do instead.
fn refuse<'o>(
    detach: &args::worker::Detach,
    options: impl IntoIterator<Item = (&'o str, bool, &'o str)>,
) -> Result<(), CliError> {
    match options.into_iter().find(|(_, is_given, _)| detach.detach && *is_given) {
        Some((option, _, hint)) => {
            let what = format!("{option} has no effect with `--detach`: the worker does not receive it");
            Err(CliError::usage(what).hint(hint))
        }
        None => Ok(()),
    }
}

/// What a worker must offer besides what the team needs, if the command line says so.
fn needs(detach: &args::worker::Detach) -> Result<Option<Features>, CliError> {
    features("--needs", &detach.needs).map(|needs| Some(needs).filter(|needs| !needs.is_empty()))
}

/// Prints the id of a conversation; for programs, with what it takes at most, if that is known.
pub(super) fn print_id(
    id: &LogId,
    bound: Option<&BoundSummary>,
    settings: &Settings,
) -> Result<(), CliError> {
    match (settings.output, bound) {
        (Output::Json, None) => write(&Sanitized::json(&json!({ "id": id })).map_err(unwritable)?),
        (Output::Json, Some(bound)) => {
            write(&Sanitized::json(&json!({ "id": id, "bound": bound })).map_err(unwritable)?)
        }
        _ => write(&Sanitized::row(id.as_str())),
    }
}
