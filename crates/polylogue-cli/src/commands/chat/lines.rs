//! A chat, wherever its conversations are: what a person types, and what follows from it.

use std::io;
use std::path::Path;
use std::sync::Arc;

use polylogue_core::{Body, Event, LogId, Question, RunOutcome, StopReason, TotalUsage};
use polylogue_runtime::question_text::in_words;

use super::command::{HELP, Input};
use crate::commands::write_data;
use crate::error::{CliError, Exit};
use crate::place::{PlaceOption, shell_word};
use crate::prompt::{self, Messages, Typed};
use crate::screen::picture::Pictures;
use crate::screen::{Output, RunEnd, cost, document, tokens, uncertain};
use crate::signals::Signals;
use crate::stderr::{print_error, print_note, print_note_wrapped, print_table};
use crate::whole_file;

/// What a person sees where a message can be typed.
const PROMPT: &str = "> ";

/// A chat with conversations of this machine, or of a server.
pub(crate) trait Chat: Sized {
    /// What the person typed, oldest first.
    fn history(&mut self) -> &mut Vec<String>;

    fn output(&self) -> Output;

    /// Whether the last message has its reply. `None` before the first message.
    async fn is_over(&self) -> Result<Option<bool>, CliError>;

    /// Sends a message of the person's: the task, if it is the first.
    async fn say(&mut self, text: String) -> Result<(), CliError>;

    /// Runs, or follows, until the replies to the last message are there.
    async fn reply(&mut self) -> Result<Reply, CliError>;

    /// The same after an interruption or an error.
    async fn reply_again(&mut self) -> Result<Reply, CliError>;

    /// Attaches a file to the next message.
    fn attach(&mut self, file: &Path) -> Result<(), CliError>;

    /// Continues from before the last message, in a fork: the conversation itself stays unchanged.
    async fn undo(&mut self) -> Result<(), CliError>;

    /// Writes the conversation to a new file.
    async fn save(&self, file: &Path) -> Result<(), CliError>;

    /// Ends the chat, and says how to continue it.
    async fn leave(self) -> Result<(), CliError>;
}

/// What followed a message.
pub(crate) enum Reply {
    /// The replies, with the reason for which no more is said, and the result.
    Whole(StopReason, String),
    /// A question that is not answered here.
    Question,
    /// It was stopped; to leave the chat, if `leaves`.
    Stopped { leaves: bool },
    /// An error, and whether it was shown in the conversation.
    Failed(CliError, bool),
    /// No one reads the output any more.
    Unread,
}

/// Whether the chat continues.
enum Next {
    Continue,
    Leave(Result<Exit, CliError>),
}

/// Runs the chat until the person leaves or the input ends.
pub(crate) async fn run_chat(mut chat: impl Chat) -> Result<Exit, CliError> {
    let end = converse(&mut chat).await;
    leave(chat, end).await
}

/// Does what the person types until the chat ends.
async fn converse(chat: &mut impl Chat) -> Result<Exit, CliError> {
    let (mut exit, mut messages) = (Exit::Done, Messages::default());
    // A conversation that was interrupted continues first.
    if chat.is_over().await? == Some(false) {
        let reply = chat.reply_again().await?;
        if let Next::Leave(end) = show(chat, reply, &mut exit)? {
            return end;
        }
    }
    loop {
        let line = match prompt::is_typed() {
            true => messages.next(PROMPT, chat.history().clone(), &mut Signals::new()?).await?,
            false => prompt::read_piped(&mut Signals::new()?).await?.map_or(Typed::End, Typed::Text),
        };
        let next = match line {
            Typed::End => return Ok(exit),
            Typed::Interrupted => {
                print_note("Ctrl-D leaves the chat.");
                Next::Continue
            }
            Typed::Text(line) => obey(chat, &line, &mut exit).await?,
        };
        if let Next::Leave(end) = next {
            return end;
        }
    }
}

/// Ends the chat. The error with which it ends counts, also if it cannot be left properly because of it.
async fn leave(chat: impl Chat, end: Result<Exit, CliError>) -> Result<Exit, CliError> {
    let left = chat.leave().await;
    end.and_then(|exit| left.map(|()| exit))
}

/// Does what a line says. `exit` says how the last run ended.
async fn obey(chat: &mut impl Chat, line: &str, exit: &mut Exit) -> Result<Next, CliError> {
    // Commands are for people: what comes through a pipe is a message.
    let input = match prompt::is_typed() {
        true => Input::of(line),
        false => {
            Some(line).filter(|line| !line.trim().is_empty()).map(|line| Input::Message(line.to_owned()))
        }
    };
    match input {
        None => {}
        Some(Input::Exit) => return Ok(Next::Leave(Ok(Exit::Done))),
        Some(Input::Help) => print_table(HELP),
        Some(Input::Unknown(why)) => print_note_wrapped(&why),
        Some(Input::Save(file)) => chat.save(&file).await.unwrap_or_else(|error| print_error(&error)),
        Some(Input::Attach(file)) => chat.attach(&file).unwrap_or_else(|error| print_error(&error)),
        Some(Input::Undo) => chat.undo().await?,
        Some(Input::Retry) if chat.is_over().await? == Some(false) => {
            let reply = chat.reply_again().await?;
            return show(chat, reply, exit);
        }
        Some(Input::Retry) => {
            print_note_wrapped("There is nothing to try again: the last message has its reply.");
        }
        Some(Input::Message(text)) => {
            chat.history().push(text.clone());
            chat.say(text).await?;
            let reply = chat.reply().await?;
            return show(chat, reply, exit);
        }
    }
    Ok(Next::Continue)
}

fn show(chat: &impl Chat, reply: Reply, exit: &mut Exit) -> Result<Next, CliError> {
    match reply {
        Reply::Whole(reason, result) => {
            if chat.output() == Output::Result {
                write_data(&format!("{}\n", result.trim_end()))?;
            }
            print_limit(&reason);
            *exit = Exit::from(&reason);
            Ok(Next::Continue)
        }
        Reply::Question => Ok(Next::Leave(Ok(Exit::Waiting))),
        Reply::Unread => Ok(Next::Leave(Ok(Exit::Done))),
        Reply::Stopped { leaves } if leaves || !prompt::is_typed() => Ok(Next::Leave(Ok(Exit::Stopped))),
        Reply::Stopped { .. } => {
            print_note("(stopped)");
            Ok(Next::Continue)
        }
        Reply::Failed(error, is_shown) => {
            match (prompt::is_typed(), is_shown) {
                (false, false) => return Ok(Next::Leave(Err(error))),
                (false, true) => return Ok(Next::Leave(Ok(Exit::Failed))),
                (true, false) => print_error(&error),
                (true, true) => {}
            }
            print_note("`/retry` tries again.");
            Ok(Next::Continue)
        }
    }
}

/// Says that a chat begins again, after its first message was taken back.
pub(crate) fn print_begins_again(id: &LogId, place: &PlaceOption) {
    let show = place.command(&format!("show {id}"));
    print_note_wrapped(&format!("Undone: the chat begins again. `{show}` shows what was said."));
}

/// Says that a chat continues in a fork.
pub(crate) fn print_forked(id: &LogId, fork: &LogId) {
    print_note_wrapped(&format!("Undone: the chat continues as {fork}; {id} keeps what was said."));
}

/// Says what the conversation took and how to continue it, or who is asked what.
pub(crate) fn print_left(
    output: Output,
    (id, place): (&LogId, &PlaceOption),
    usage: &TotalUsage,
    asked: Option<Question>,
) {
    if output.is_conversation() {
        let facts = [tokens(usage), cost(usage)].into_iter().chain(uncertain(usage));
        print_note_wrapped(&facts.collect::<Vec<_>>().join(" · "));
        let [show, resume] = ["show", "chat --resume"].map(|words| place.command(&format!("{words} {id}")));
        print_note(&format!("`{show}` / `{resume}`"));
    } else if let Some(question) = asked {
        print_note(&format!("{} is asked: {}", question.who, in_words(&question)));
        let answer = place.command(&format!("resume {id} --answer TEXT"));
        print_note_wrapped(&format!("answer with `{answer}`"));
    }
}

/// Writes a conversation to a new file, as Markdown.
pub(crate) fn write_markdown(file: &Path, name: &str, events: &[Arc<Event>]) -> Result<(), CliError> {
    let events: Vec<Event> = events.iter().map(|event| (**event).clone()).collect();
    let text = document::markdown(name, &events, Pictures::default());
    whole_file::create(file, text.as_bytes()).map_err(|error| match error.kind() {
        io::ErrorKind::AlreadyExists => {
            CliError::usage(format!("`{}` exists", file.display())).hint("name another file")
        }
        _ => CliError::failed(format!("`{}` cannot be written: {error}", file.display())),
    })?;
    print_note(&format!("saved to {}", shell_word(file)));
    Ok(())
}

/// Says why no more is said, unless all was said.
fn print_limit(reason: &StopReason) {
    if reason.outcome() != RunOutcome::Done {
        print_note_wrapped(&format!("({})", RunEnd::why(reason)));
    }
}

/// The event of the last message of the user's in the outermost chat, and whether it is the first one.
pub(crate) fn last_message(events: &[Arc<Event>]) -> Option<(u64, bool)> {
    let is_message = |body: &Body| matches!(body, Body::Opened(_) | Body::Reopened { message: Some(_), .. });
    let last = events.iter().rfind(|event| event.chat.is_root() && is_message(&event.body))?;
    Some((last.seq, matches!(last.body, Body::Opened(_))))
}

/// What the user typed, if the event is a message of the user's.
pub(crate) fn typed(event: &Event) -> Option<String> {
    match &event.body {
        Body::Opened(opening) if event.chat.is_root() => Some(opening.task.to_string()),
        Body::Reopened { message: Some(message), .. } if event.chat.is_root() => {
            Some(message.text().into_owned())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    /// A chat that cannot be left properly.
    struct Stuck;

    impl Chat for Stuck {
        fn history(&mut self) -> &mut Vec<String> {
            unreachable!("nothing is typed")
        }

        fn output(&self) -> Output {
            Output::Result
        }

        async fn is_over(&self) -> Result<Option<bool>, CliError> {
            Ok(None)
        }

        async fn say(&mut self, _: String) -> Result<(), CliError> {
            Ok(())
        }

        async fn reply(&mut self) -> Result<Reply, CliError> {
            Ok(Reply::Unread)
        }

        async fn reply_again(&mut self) -> Result<Reply, CliError> {
            Ok(Reply::Unread)
        }

        fn attach(&mut self, _: &Path) -> Result<(), CliError> {
            Ok(())
        }

        async fn undo(&mut self) -> Result<(), CliError> {
            Ok(())
        }

        async fn save(&self, _: &Path) -> Result<(), CliError> {
            Ok(())
        }

        async fn leave(self) -> Result<(), CliError> {
            Err(CliError::failed("the store is full"))
        }
    }

    #[test]
    fn the_error_with_which_a_chat_ends_is_not_lost_if_it_cannot_be_left() {
        let error = |end| leave(Stuck, end).now_or_never().unwrap().unwrap_err().to_string();
        assert_eq!(error(Err(CliError::failed("no model"))), CliError::failed("no model").to_string());
        assert_eq!(error(Ok(Exit::Done)), CliError::failed("the store is full").to_string());
    }
}
