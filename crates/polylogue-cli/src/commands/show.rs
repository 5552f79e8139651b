//! `polylogue show`: a whole conversation, what one agent's model was sent, or what every agent knows.

pub(crate) mod code;
pub(crate) mod cost;
pub(crate) mod side_by_side;

use std::io;

use polylogue_core::text::enumerated;
use polylogue_core::{
    AnyStore, Body, BoundSummary, Event, LogId, OpenState, Part, Progress, RecoveredEvents, Store,
    StoreError, Summary,
};
use polylogue_runtime::stored::{StoredTeam, is_imported};
use polylogue_runtime::{AgentHistory, RebuiltRequest, Runtime};
use polylogue_server::promised_by_server;

use super::runs::{begins_later, origin};
use super::{unwritable, write, write_rows};
use crate::error::{CliError, Exit};
use crate::launch::wish;
use crate::place::{self, PlaceOption};
use crate::screen::json::RunLine;
use crate::screen::picture::Pictures;
use crate::screen::{Format, OutputStyle, Sanitized, Size, document};
use crate::stderr::{print_note, print_note_wrapped};
use crate::{args, work_dir};

pub(crate) async fn run(cli: &args::Cli, args: &args::Show) -> Result<Exit, CliError> {
    let runtime = place::existing(&cli.named_store())?;
    let id = runtime.find(&args.id).await?;
    let RecoveredEvents { mut events, damage } = runtime.store().read_intact(&id).await?;
    // From the first bad event on, nothing is known to be what was written.
    if let Some(damage) = &damage {
        events.truncate(usize::try_from(damage.intact()).unwrap_or(usize::MAX));
    }
    if let Some(nth) = args.code {
        return code::print(&events, nth);
    }
    if cli.verbose > 0 {
        with_whole_results(runtime.store(), &id, &mut events).await?;
    }
    let looks = OutputStyle::of(wish(cli.color), &io::stdout());
    let pictures = work_dir::pictures(&cli.named_store(), &id, looks);
    let text = match &args.agent {
        _ if args.cost => cost::shown(&events, args.json, looks).map_err(unwritable)?,
        _ if args.history || args.side_by_side => {
            histories(&runtime.stored_team(&id).await?, &events, args, looks)?
        }
        Some(agent) => {
            let kept = runtime.stored_team(&id).await?;
            match args.call.is_none() && !args.json && kept.works_on_tasks(agent)? {
                true => histories(&kept, &events, args, looks)?,
                false => received(&kept, &events, agent, args, looks)?,
            }
        }
        None => whole(&runtime.store().meta(&id).await?.title, &events, args, looks, pictures)?,
    };
    let is_whole = args.agent.is_none() && !args.cost && !args.history && !args.side_by_side;
    let bound = runtime.bound_summary(&id).await.ok().flatten();
    let ended = runtime.bound_exception(&id).await.ok().flatten().map(|why| why.to_string());
    let bound = bound.filter(|_| is_whole);
    write_with_bound(&text, &id, bound.as_ref().map(|bound| (bound, ended.as_deref())), args)?;
    let is_whole = is_whole && !args.json;
    let meta = runtime.store().meta(&id).await.ok();
    // One that was imported has references to files, and no files.
    let is_imported = meta.as_ref().is_some_and(is_imported);
    if let Some(parent) = meta.and_then(|meta| meta.parent).filter(|_| is_whole) {
        write(&Sanitized::plain("\n"))?;
        write(&Sanitized::row(&origin(&parent)))?;
    }
    let files = work_dir::summary(&cli.named_store(), &id);
    let place = PlaceOption::of_store(&cli.named_store());
    let stored = if is_imported { 0 } else { work_dir::stored_files(&events) };
    let files = files.or_else(|| work_dir::stored_summary(&id, stored, &place));
    if let Some(files) = files.filter(|_| is_whole) {
        write(&Sanitized::plain("\n"))?;
        write(&Sanitized::row(&files))?;
    }
    let Some(damage) = damage else {
        if is_whole && !args.markdown {
            print_stored(&runtime, &events, (&id, &place)).await;
        }
        return Ok(Exit::Done);
    };
    if !args.json {
        let verify = place.command(&format!("verify {id}"));
        write(&Sanitized::plain("\n"))?;
        write(&Sanitized::row(&cut_off(&damage, &verify)))?;
    }
    Err(damage.into())
}

fn histories(
    kept: &StoredTeam,
    events: &[Event],
    args: &args::Show,
    looks: OutputStyle,
) -> Result<Sanitized, CliError> {
    let missing = |agent: &str| CliError::from(kept.no_model_for(agent));
    side_by_side::shown(&AgentHistory::all(kept, events)?, args, looks, missing)
}

/// One request of the agent: what its view was when the model was asked.
fn received(
    kept: &StoredTeam,
    events: &[Event],
    agent: &str,
    args: &args::Show,
    looks: OutputStyle,
) -> Result<Sanitized, CliError> {
    let request = RebuiltRequest::of(kept, events, agent, args.call)?;
    if !request.is_exact {
        print_note(
            "The team was changed since: what was sent differed in the system text, tools or parameters.",
        );
    }
    match args.json {
        true => Sanitized::json(&request.to_json()).map_err(unwritable),
        false => Ok(document::received(request.system.as_deref(), &request.entries, looks.color)),
    }
}

/// Writes a conversation with what it was computed to take at most, if that is known: to programs in a line before it, as `run` does, and to
/// people in one after it, with why it no longer applies. Other layouts have no place for it.
pub(crate) fn write_with_bound(
    text: &Sanitized,
    id: &LogId,
    bound: Option<(&BoundSummary, Option<&str>)>,
    args: &args::Show,
) -> Result<(), CliError> {
    let is_other = args.markdown || args.style == args::Style::Autogen;
    let Some((bound, ended)) = bound.filter(|_| !is_other) else { return write(text) };
    if args.json {
        write(&Sanitized::json(&RunLine::Bound { id, bound }).map_err(unwritable)?)?;
        return write(text);
    }
    write(text)?;
    write(&Sanitized::plain("\n"))?;
    let ended = ended.map(|why| format!("; it no longer applies: {why}")).unwrap_or_default();
    write_rows(&Sanitized::row(&format!("computed before the run: {bound}{ended}")), false)
}

/// Whether a conversation runs, and its state if it is open. Where nothing can be written, no process runs it.
async fn running_or_open(runtime: &Runtime, id: &LogId) -> (bool, Option<OpenState>) {
    let is_running = runtime.is_claimed(id).await.unwrap_or(false);
    let Ok(listing) = runtime.listing(id).await else { return (is_running, None) };
    (is_running, runtime.open_state(&listing).await.unwrap_or_default())
}

/// The same as [`print_open`] of a conversation in the store, which can also wait in the server of the store.
async fn print_stored(runtime: &Runtime, events: &[Event], (id, place): (&LogId, &PlaceOption)) {
    let (is_running, open) = running_or_open(runtime, id).await;
    if begins_later(open) && promised_by_server(runtime).is_ok_and(|promised| promised.contains(id)) {
        let cancel = place.command(&format!("cancel {id}"));
        return print_note_wrapped(&format!(
            "It waits for the server, which runs it when others have ended: `{cancel}` cancels it."
        ));
    }
    print_open(events, (id, place), (is_running, open));
}

/// Says how a conversation continues that has not ended: whether it runs, and in which state it is if it neither waits for a person nor has failed
/// nor is paused.
pub(crate) fn print_open(
    events: &[Event],
    (id, place): (&LogId, &PlaceOption),
    (is_running, open): (bool, Option<OpenState>),
) {
    let Summary { progress, questions, is_paused, .. } = Summary::of(events, true);
    let asked = enumerated(questions.iter().map(|(_, who)| who.as_str()));
    let resume = place.command(&format!("resume {id}"));
    let number = if questions.len() > 1 { "NUMBER " } else { "" };
    let answer = place.command(&format!("answer {id} {number}TEXT"));
    print_note_wrapped(&match progress {
        Progress::Closed(_) => return,
        _ if is_running && !asked.is_empty() => {
            format!("It waits for {asked}: `{answer}` answers.")
        }
        _ if is_running => "It is running.".to_owned(),
        Progress::Failed(_) => format!("It has failed: `{resume}` tries again."),
        Progress::Open if questions.len() > 1 => {
            format!("It waits for {asked}: `{answer}` answers one, and `{resume}` continues it.")
        }
        Progress::Open if !asked.is_empty() => {
            format!("It waits for {asked}: `{resume} --answer TEXT` answers.")
        }
        Progress::Open if is_paused => format!("It is paused: `{resume}` continues it."),
        _ if open == Some(OpenState::Queued) => {
            let cluster = place.command("cluster");
            format!(
                "It waits for a worker: `{cluster}` shows what it needs, and `{resume}` continues it here."
            )
        }
        Progress::New => format!("It has not begun: `{resume}` begins it."),
        Progress::Open => format!("It has not ended: `{resume}` continues it."),
    });
}

/// Puts the large results that are stored with the conversation into its events.
async fn with_whole_results(store: &AnyStore, id: &LogId, events: &mut [Event]) -> Result<(), CliError> {
    for event in events {
        let Body::ToolReturned { result: outcome, .. } = &mut event.body else { continue };
        let Some(stored) = &outcome.stored else { continue };
        if let Some(bytes) = store.stored_blob(id, &stored.id).await? {
            let others = outcome.parts.drain(..).filter(|part| !matches!(part, Part::Text(_)));
            outcome.parts =
                std::iter::once(Part::text(String::from_utf8_lossy(&bytes))).chain(others).collect();
            outcome.stored = None;
        }
    }
    Ok(())
}

/// A whole conversation, in the layout that `args` name.
pub(crate) fn whole(
    title: &str,
    events: &[Event],
    args: &args::Show,
    looks: OutputStyle,
    pictures: Pictures,
) -> Result<Sanitized, CliError> {
    Ok(match args {
        args if args.json => {
            events.iter().map(Sanitized::json).collect::<Result<Sanitized, _>>().map_err(unwritable)?
        }
        args if args.markdown => document::markdown(title, events, pictures),
        args if args.style == args::Style::Autogen => document::autogen(title, events, looks.color),
        _ => {
            let columns = Size::of_terminal().text_columns();
            let (width, terminal) = (looks.color.then_some(columns), looks.terminal.then_some(columns));
            document::shown(events, Format { width, terminal, ..Format::WHOLE }, pictures)
        }
    })
}

/// The last line of what is shown of a damaged conversation, which the command `verify` checks.
fn cut_off(damage: &StoreError, verify: &str) -> String {
    let todo = format!("`{verify}` checks it, and with `--repair` keeps the events before");
    format!("DAMAGED: event {} and all after it are not shown; {todo}", damage.intact())
}
