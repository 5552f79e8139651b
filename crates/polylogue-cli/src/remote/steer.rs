//! Instructions to conversations of a server.

use polylogue::Name;
use polylogue_client::wire::conversation::{Conversation, ConversationState, Fork, Resume, When};
use polylogue_client::{Client, ClientError};
use polylogue_core::text::enumerated;
use polylogue_core::{Instruction, LogId};

use super::named_server::{Remote, uncertain};
use crate::args;
use crate::commands::steer::{STORED, nothing_to_cancel, nothing_to_pause, paused};
use crate::commands::{keeping, waiting, write};
use crate::error::{CliError, Exit};
use crate::prompt::question::meant;
use crate::screen::Sanitized;
use crate::stderr::{print_note, print_note_wrapped};
use crate::text_arg::text_of;

/// The command that continues a conversation of the server.
fn resume(remote: &Remote, id: &LogId) -> String {
    remote.place.command(&format!("resume {id}"))
}

/// Passes on what the person typed while the conversation is followed.
pub(super) async fn carry_out(client: &Client, id: &LogId, instruction: Instruction) -> Result<(), CliError> {
    match instruction {
        Instruction::Send(message) => drop(client.send(id, &message.text()).await?),
        Instruction::NextSpeaker { who } => drop(client.choose_next(id, who.as_str()).await?),
        Instruction::RaiseLimits { more, .. } => drop(client.raise(id, more).await?),
        Instruction::RaiseAgentLimits { who, more, .. } => {
            drop(client.raise_agent(id, who.as_str(), more).await?);
        }
        Instruction::RaiseChatLimits { chat, more, .. } => drop(client.raise_chat(id, &chat, more).await?),
        Instruction::Pause => drop(client.pause(id).await?),
        Instruction::Resume => drop(client.resume(id, &Resume::default()).await?),
        Instruction::Cancel { now } => {
            drop(client.stop(id, if now { When::Now } else { When::AfterStep }).await?);
        }
        // No other is typed there.
        _ => {}
    }
    Ok(())
}

pub(super) async fn send(args: &args::steer::Send, remote: &Remote) -> Result<Exit, CliError> {
    let text = text_of(&args.text)?;
    if text.trim().is_empty() {
        return Err(CliError::usage("there is no text to send"));
    }
    let Conversation { id, .. } = remote.client.find(&args.id).await?;
    let system = args.system.then(Name::system);
    let from = args.speaker.as_deref().or(system.as_ref().map(Name::as_str));
    remote.client.send_as(&id, from, &text).await?;
    print_note("sent");
    Ok(Exit::Done)
}

pub(super) async fn answer(args: &args::steer::Answer, remote: &Remote) -> Result<Exit, CliError> {
    let Conversation { id, questions, .. } = remote.client.find(&args.id).await?;
    let (number, text) = waiting::given(args)?;
    let open = waiting::chosen(questions.into_iter().map(Into::into).collect(), &id, number)?;
    let text = meant(&open.question, text_of(text)?);
    remote.client.answer(&id, open.seq, &text).await?;
    print_note("answered");
    Ok(Exit::Done)
}

pub(super) async fn cancel(args: &args::steer::Cancel, remote: &Remote) -> Result<Exit, CliError> {
    let Conversation { id, state, questions, .. } = remote.client.find(&args.id).await?;
    let when = if args.now { When::Now } else { When::AfterStep };
    if !remote.client.stop(&id, when).await?.stopped {
        let asked = enumerated(questions.iter().map(|open| open.who.as_str()));
        let rest = (state == ConversationState::Closed, asked.as_str());
        return Err(nothing_to_cancel(&id, rest, &remote.place));
    }
    print_note("cancelled");
    Ok(Exit::Done)
}

pub(super) async fn pause(args: &args::steer::Pause, remote: &Remote) -> Result<Exit, CliError> {
    let Conversation { id, .. } = remote.client.find(&args.id).await?;
    let conversation = remote.client.pause(&id).await.map_err(|error| not_paused(error, remote, &id))?;
    match conversation.paused {
        true => print_note_wrapped(&paused(&id, &remote.place)),
        false => print_note_wrapped(STORED),
    }
    Ok(Exit::Done)
}

/// Why a conversation was not paused. What the server says of one that has ended is for programs.
fn not_paused(error: ClientError, remote: &Remote, id: &LogId) -> CliError {
    match error.problem().is_some_and(|problem| problem.word() == "over") {
        true => nothing_to_pause(id, &remote.place),
        false => error.into(),
    }
}

pub(super) async fn next(args: &args::steer::Next, remote: &Remote) -> Result<Exit, CliError> {
    let Conversation { id, .. } = remote.client.find(&args.id).await?;
    let Conversation { state, .. } = remote.client.choose_next(&id, &args.name).await?;
    let (who, running) = (&args.name, state == ConversationState::Running);
    print_note_wrapped(&match running {
        true => format!("{who} speaks next"),
        false => format!(
            "{who} speaks next if the chat allows it; `{}` continues the conversation",
            resume(remote, &id)
        ),
    });
    Ok(Exit::Done)
}

pub(super) async fn raise(args: &args::steer::Raise, remote: &Remote) -> Result<Exit, CliError> {
    let more = args.more()?;
    let Conversation { id, .. } = remote.client.find(&args.id).await?;
    let Conversation { state, .. } = match (&args.agent, &args.chat) {
        (Some(agent), _) => remote.client.raise_agent(&id, agent, more).await?,
        (None, Some(chat)) => remote.client.raise_chat(&id, chat, more).await?,
        (None, None) => remote.client.raise(&id, more).await?,
    };
    print_note_wrapped(&match state {
        ConversationState::Running | ConversationState::Waiting => "raised".to_owned(),
        ConversationState::Halted | ConversationState::Closed => {
            format!("raised; `{}` continues the conversation", resume(remote, &id))
        }
    });
    Ok(Exit::Done)
}

pub(super) async fn fork(args: &args::change::Fork, remote: &Remote) -> Result<Exit, CliError> {
    let text = args.say.as_deref().map(text_of).transpose()?;
    if text.as_ref().is_some_and(|text| text.trim().is_empty()) {
        return Err(CliError::usage("there is no text to say"));
    }
    let Conversation { id, .. } = remote.client.find(&args.id).await?;
    let fork = Fork { seq: args.at, text, team: None, run: false };
    let forked = remote.client.fork(&id, &fork).await;
    let fork = forked.map_err(|error| uncertain(error, "the fork may exist"))?.id;
    write(&Sanitized::row(fork.as_str()))?;
    print_note_wrapped(&format!("`{fork}` is a fork of `{id}`: `{}` continues it", resume(remote, &fork)));
    Ok(Exit::Done)
}

pub(super) async fn rm(args: &args::Rm, remote: &Remote) -> Result<Exit, CliError> {
    let mut ids = Vec::new();
    for text in &args.which.ids {
        keeping::add(&mut ids, remote.client.find(text).await?.id);
    }
    for id in ids {
        remote.client.remove(&id).await?;
        write(&Sanitized::row(&format!("removed {id}")))?;
    }
    Ok(Exit::Done)
}
