//! `polylogue send`, `cancel`, `pause`, `next`, `raise`: instructions to a conversation, whichever process runs it.

use polylogue::Name;
use polylogue_config::suggest;
use polylogue_core::text::enumerated;
use polylogue_core::{Instruction, LogId, Progress, Store as _, Summary};
use polylogue_runtime::Runtime;
use polylogue_runtime::steering::Steered;
use polylogue_server::{ask_server, cancel_promised};

use super::takers::Takers;
use crate::args::steer::raising;
use crate::error::{CliError, Exit};
use crate::place::{self, PlaceOption};
use crate::stderr::print_note_wrapped;
use crate::text_arg::text_of;
use crate::{args, attachments};

pub(crate) async fn send(cli: &args::Cli, args: &args::steer::Send) -> Result<Exit, CliError> {
    let (runtime, id) = found(cli, &args.id).await?;
    let (text, attached) = (text_of(&args.text)?, args.attach.parts()?);
    if text.trim().is_empty() {
        return Err(CliError::usage("there is no text to send"));
    }
    let author = match &args.speaker {
        Some(speaker) => participant(&runtime, &id, speaker).await?,
        None if args.system => Name::system(),
        None => Name::user(),
    };
    let message = attachments::message(author, text, attached);
    let later = format!("sent; `{}` continues the conversation", resume(cli, &id));
    let texts = Texts { done: "sent", idle: &later };
    give(&runtime, &id, Instruction::Send(message), &texts).await
}

pub(crate) async fn cancel(cli: &args::Cli, args: &args::steer::Cancel) -> Result<Exit, CliError> {
    let (runtime, id) = found(cli, &args.id).await?;
    if is_running(&runtime, &id).await? {
        // By the time when it is looked at again, its process may have released it because of this.
        let texts = Texts { done: "cancelled", idle: "cancelled" };
        return give(&runtime, &id, Instruction::Cancel { now: args.now }, &texts).await;
    }
    // One that a server is to run can be in the queue of workers, too: then the server must know, or it would begin it.
    let is_queued = cancel_promised(&runtime, &id, args.now).await?;
    if !is_queued && !runtime.cancel_queued(&id, args.now).await? {
        let events = runtime.store().read(&id, 0).await?;
        let Summary { progress, questions, .. } = Summary::of(&events, true);
        let asked = enumerated(questions.iter().map(|(_, who)| who.as_str()));
        let rest = (matches!(progress, Progress::Closed(_)), asked.as_str());
        return Err(nothing_to_cancel(&id, rest, &PlaceOption::of_store(&cli.named_store())));
    }
    print_note_wrapped(&format!(
        "cancelled: it does not continue by itself; `{}` continues it",
        resume(cli, &id)
    ));
    Ok(Exit::Done)
}

/// Why a conversation that nothing continues is not cancelled: it has ended (`is_over`), waits for those who are `asked`, or does not run.
pub(crate) fn nothing_to_cancel(id: &LogId, (is_over, asked): (bool, &str), place: &PlaceOption) -> CliError {
    let (why, hint) = match (is_over, asked) {
        (true, _) => (
            format!("`{id}` has ended"),
            format!("a message continues it: `{}`", place.command(&format!("send {id} TEXT"))),
        ),
        (false, "") => (
            format!("no process runs `{id}`"),
            format!("`{}` continues it", place.command(&format!("resume {id}"))),
        ),
        (false, asked) => (
            format!("`{id}` waits for {asked}"),
            format!(
                "it does not continue without an answer; `{}` removes it",
                place.command(&format!("rm {id}"))
            ),
        ),
    };
    CliError::usage(format!("{why}, so there is nothing to cancel")).hint(hint)
}

pub(crate) async fn pause(cli: &args::Cli, args: &args::steer::Pause) -> Result<Exit, CliError> {
    let (runtime, id) = found(cli, &args.id).await?;
    let events = runtime.store().read(&id, 0).await?;
    let place = PlaceOption::of_store(&cli.named_store());
    if matches!(Summary::of(&events, true).progress, Progress::Closed(_)) {
        return Err(nothing_to_pause(&id, &place));
    }
    let done = paused(&id, &place);
    give(&runtime, &id, Instruction::Pause, &Texts { done: &done, idle: &done }).await
}

/// That the conversation `id` was paused.
pub(crate) fn paused(id: &LogId, place: &PlaceOption) -> String {
    format!("paused; `{}` continues it", place.command(&format!("resume {id}")))
}

/// Why a conversation that has ended is not paused.
pub(crate) fn nothing_to_pause(id: &LogId, place: &PlaceOption) -> CliError {
    CliError::usage(format!("`{id}` has ended, so there is nothing to pause"))
        .hint(format!("a message continues it: `{}`", place.command(&format!("send {id} TEXT"))))
}

/// What is said of an instruction that the process which runs the conversation has not carried out yet.
pub(crate) const STORED: &str = "stored; the process that runs the conversation takes it when its turn ends, or, if it has died, the next one that runs it";

/// Continues a conversation that another process has open and that is paused. Returns whether there was one. That process cannot be `given`
/// anything by this.
pub(crate) async fn unpause(
    runtime: &Runtime,
    id: &LogId,
    given: Option<&str>,
    place: &PlaceOption,
) -> Result<bool, CliError> {
    let events = runtime.store().read(id, 0).await?;
    if !Summary::of(&events, true).is_paused || !is_running(runtime, id).await? {
        return Ok(false);
    }
    if let Some(given) = given {
        let what =
            format!("`{id}` is paused, and open in another process, which `resume` cannot give {given}");
        let [resume, raise, send] =
            ["resume", "raise", "send"].map(|word| place.command(&format!("{word} {id}")));
        return Err(CliError::usage(what).hint(format!(
            "`{resume}` continues it there; `{raise}` raises its limits before, and `{send}` sends a message"
        )));
    }
    if let Steered::Refused(why) = runtime.steer(id, Instruction::Resume).await? {
        return Err(refused(id, &why));
    }
    // One whose process has ended meanwhile is continued as all others.
    let is_running = is_running(runtime, id).await?;
    if is_running {
        print_note_wrapped("the process that runs it continues");
    }
    Ok(is_running)
}

pub(crate) async fn next(cli: &args::Cli, args: &args::steer::Next) -> Result<Exit, CliError> {
    let (runtime, id) = found(cli, &args.id).await?;
    let who = participant(&runtime, &id, &args.name).await?;
    let done = format!("{who} speaks next");
    let later =
        format!("{who} speaks next if the chat allows it; `{}` continues the conversation", resume(cli, &id));
    give(&runtime, &id, Instruction::NextSpeaker { who }, &Texts { done: &done, idle: &later }).await
}

pub(crate) async fn raise(cli: &args::Cli, args: &args::steer::Raise) -> Result<Exit, CliError> {
    let (runtime, id) = found(cli, &args.id).await?;
    let instruction = raising(args.agent.as_deref(), args.chat.as_deref(), args.more()?)?;
    let idle = format!("raised; `{}` continues the conversation", resume(cli, &id));
    give(&runtime, &id, instruction, &Texts { done: "raised", idle: &idle }).await
}

/// The command that continues a conversation of the store that the command line names.
pub(super) fn resume(cli: &args::Cli, id: &LogId) -> String {
    PlaceOption::of_store(&cli.named_store()).command(&format!("resume {id}"))
}

/// What is said when an instruction was given.
pub(super) struct Texts<'a> {
    /// To a process that runs the conversation.
    pub(super) done: &'a str,
    /// To a conversation that no process runs.
    pub(super) idle: &'a str,
}

pub(super) async fn give(
    runtime: &Runtime,
    id: &LogId,
    instruction: Instruction,
    texts: &Texts<'_>,
) -> Result<Exit, CliError> {
    let continues = match &instruction {
        Instruction::Send(_) | Instruction::Answer { .. } => true,
        // It answers the question at the limit, if one is open.
        Instruction::RaiseLimits { .. }
        | Instruction::RaiseAgentLimits { .. }
        | Instruction::RaiseChatLimits { .. } => {
            let open = runtime.open_questions(id).await?;
            open.iter().any(|open| open.question.is_about_limit())
        }
        _ => false,
    };
    let steered = runtime.steer(id, instruction).await?;
    let is_running = is_running(runtime, id).await?;
    let is_idle = continues && !is_running && matches!(steered, Steered::Done { .. });
    let taker = if is_idle { taker(runtime, id).await? } else { None };
    match steered {
        Steered::Refused(why) => return Err(refused(id, &why)),
        Steered::Done { .. } if is_running => print_note_wrapped(texts.done),
        Steered::Posted if is_running => print_note_wrapped(STORED),
        Steered::Done { .. } | Steered::Posted => match taker {
            Some(taker) => print_note_wrapped(&format!("{}; {taker} continues the conversation", texts.done)),
            None => print_note_wrapped(texts.idle),
        },
    }
    Ok(Exit::Done)
}

/// Who continues a conversation that was just given an answer or a message, if anyone does: one that is paused waits to be resumed.
async fn taker(runtime: &Runtime, id: &LogId) -> Result<Option<&'static str>, CliError> {
    let events = runtime.store().read(id, 0).await?;
    if Summary::of(&events, true).is_paused {
        return Ok(None);
    }
    Ok(match Takers::of(runtime, id).await? {
        Takers::Some => Some("a worker"),
        // If it cannot be asked, `resume` continues.
        _ if matches!(ask_server(runtime, id).await, Ok(true)) => Some("the server"),
        _ => None,
    })
}

fn refused(id: &LogId, why: &str) -> CliError {
    CliError::usage(format!("`{id}` refuses it: {why}"))
}

pub(super) async fn found(cli: &args::Cli, id: &str) -> Result<(Runtime, LogId), CliError> {
    let runtime = place::existing(&cli.named_store())?;
    let id = runtime.find(id).await?;
    Ok((runtime, id))
}

/// Whether a process has claimed the conversation.
async fn is_running(runtime: &Runtime, id: &LogId) -> Result<bool, CliError> {
    Ok(runtime.is_claimed(id).await?)
}

/// The participant of the outermost chat that `text` names.
async fn participant(runtime: &Runtime, id: &LogId, text: &str) -> Result<Name, CliError> {
    let opening = runtime.opening(id).await?;
    let Some(opening) = opening else { return Err(runtime.not_begun(id).await?.into()) };
    let names = || opening.participants.iter().chain(&opening.late_joiners);
    names().find(|name| name.as_str() == Name::composed(text)).cloned().ok_or_else(|| {
        let names: Vec<&str> = names().map(Name::as_str).collect();
        CliError::usage(format!("there is no participant `{text}`")).hint(suggest::hint(text, names))
    })
}
