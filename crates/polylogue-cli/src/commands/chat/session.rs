//! A chat while it is held: a message, its replies, and so on.

use std::fs::OpenOptions as FileOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Instant;

use polylogue::{Agent as _, Name, Status};
use polylogue_core::{Body, Event, LogId, Part, RunOutcome, StopReason};
use polylogue_mcp::Progress;
use polylogue_runtime::{Conversation, Fork, ForkPoint, OpenOptions, Prepared, Runtime};
use tokio::sync::mpsc::UnboundedReceiver;

use super::command::{HELP, Input};
use crate::args::piped;
use crate::commands::fork::note_on_files;
use crate::commands::write;
use crate::error::{CliError, Exit};
use crate::place::{shell_word, store_option};
use crate::prompt::{self, Typed};
use crate::runner::Runner;
use crate::screen::picture::Pictures;
use crate::screen::{Output, RunEnd, Sanitized, Settings, cost, document, tokens};
use crate::signals::Signals;
use crate::stderr::{print_note, print_note_wrapped};
use crate::trust::rules::Always;
use crate::view::View;
use crate::{args, attachments};

/// What a person sees where a message can be typed.
pub(crate) const PROMPT: &str = "> ";

/// Why a team that speaks by its script fails at other messages.
const OF_SCRIPT: &str =
    "The script knows only its own conversation. For other messages, name a model with `--model`.";

/// A chat, and where its conversations are.
pub(super) struct Session {
    runtime: Runtime,
    prepared: Prepared,
    settings: Settings,
    input: piped::Input,
    store: Option<PathBuf>,
    progress: Option<UnboundedReceiver<Progress>>,
    /// `None` before the first message.
    chat: Option<(Runner, View)>,
    /// What the person typed, oldest first.
    history: Vec<String>,
    /// What goes with the next message.
    attached: Vec<Part>,
}

/// Whether the chat continues.
enum Next {
    Continue,
    Leave(Exit),
}

impl Session {
    pub(super) fn new(
        cli: &args::Cli,
        runtime: Runtime,
        mut prepared: Prepared,
        settings: Settings,
        input: piped::Input,
    ) -> Self {
        let progress = prepared.servers_mut().take_progress();
        let store = cli.store.clone();
        Self {
            runtime,
            prepared,
            settings,
            input,
            store,
            progress,
            chat: None,
            history: Vec::new(),
            attached: Vec::new(),
        }
    }

    /// Attaches these parts to the next message.
    pub(super) fn attach(&mut self, parts: Vec<Part>) {
        self.attached.extend(parts);
    }

    /// Attaches a file to the next message.
    fn attach_file(&mut self, file: &Path) -> Result<(), CliError> {
        let part = attachments::part(file)?;
        attachments::check(&self.prepared, std::slice::from_ref(&part))?;
        self.attached.push(part);
        print_note(&format!("`{}` goes with your next message.", file.display()));
        Ok(())
    }

    /// Continues a stored conversation, and shows its last exchange.
    pub(super) async fn open(&mut self, id: &LogId, options: OpenOptions) -> Result<(), CliError> {
        let conversation = self.runtime.open(id, &self.prepared, options).await?;
        let events = conversation.events().await;
        self.history = events.iter().filter_map(|event| typed(event)).collect();
        let last = last_message(&events).map_or(0, |(seq, _)| seq);
        let shown = self.settings.output.is_conversation();
        self.begin(conversation).await;
        if let Some((_, view)) = &mut self.chat {
            let (before, rest): (Vec<_>, Vec<_>) =
                events.iter().partition(|event| !shown || event.seq < last);
            before.into_iter().for_each(|event| view.recall(event));
            rest.into_iter().for_each(|event| view.show_again(event));
        }
        Ok(())
    }

    /// Makes `conversation` the one that is held.
    async fn begin(&mut self, conversation: Conversation) {
        let progress = match self.chat.take() {
            Some((runner, _)) => runner.progress,
            None => self.progress.take(),
        };
        let runner = Runner {
            conversation,
            runtime: self.runtime.clone(),
            settings: self.settings,
            answer: None,
            input: self.input,
            work: self.store.clone(),
            always: Always::of(self.prepared.access()),
            progress,
        };
        let mut view = runner.view(Instant::now()).await;
        view.hide_user();
        view.begin(runner.conversation.id(), runner.conversation.chat().name());
        self.chat = Some((runner, view));
    }

    /// Holds the chat until the person leaves or the input ends.
    pub(super) async fn run(mut self) -> Result<Exit, CliError> {
        self.introduce();
        let mut exit = Exit::Done;
        // A conversation that was interrupted continues first.
        if let Some((runner, _)) = &self.chat
            && !runner.conversation.is_closed().await?
            && let Next::Leave(exit) = self.exchange(&mut exit).await?
        {
            return self.leave(exit).await;
        }
        loop {
            let line = match prompt::is_typed() {
                true => prompt::message(PROMPT, self.history.clone(), &mut Signals::new()?).await?,
                false => prompt::read_piped(&mut Signals::new()?).await?.map_or(Typed::End, Typed::Text),
            };
            let next = match line {
                Typed::End => return self.leave(exit).await,
                Typed::Interrupted => Next::Continue,
                Typed::Text(line) => self.typed(&line, &mut exit).await?,
            };
            if let Next::Leave(exit) = next {
                return self.leave(exit).await;
            }
        }
    }

    fn introduce(&self) {
        if !self.settings.output.is_conversation() {
            return;
        }
        let team = self.prepared.team();
        let models = team.models().into_iter().collect::<Vec<_>>().join(", ");
        let with = if team.agents.len() == 1 && !models.is_empty() { models } else { team.name.to_string() };
        print_note_wrapped(&format!("Chat with {with}. `/help` lists the commands, Ctrl-D leaves."));
    }

    async fn typed(&mut self, line: &str, exit: &mut Exit) -> Result<Next, CliError> {
        // Commands are for people: what comes through a pipe is a message.
        let input = match prompt::is_typed() {
            true => Input::of(line),
            false => {
                Some(line).filter(|line| !line.trim().is_empty()).map(|line| Input::Message(line.to_owned()))
            }
        };
        match input {
            None => {}
            Some(Input::Exit) => return Ok(Next::Leave(Exit::Done)),
            Some(Input::Help) => HELP.lines().for_each(print_note),
            Some(Input::Unknown(why)) => print_note_wrapped(&why),
            Some(Input::Save(file)) => {
                self.save(&file).await.unwrap_or_else(|error| print_note(&error.to_string()))
            }
            Some(Input::Attach(file)) => {
                self.attach_file(&file).unwrap_or_else(|error| print_note(&error.to_string()))
            }
            Some(Input::Undo) => self.undo().await?,
            Some(Input::Retry) => return self.retry(exit).await,
            Some(Input::Message(text)) => {
                self.history.push(text.clone());
                self.say(text).await?;
                return self.exchange(exit).await;
            }
        }
        Ok(Next::Continue)
    }

    /// Sends a message of the person's: the task, if it is the first.
    async fn say(&mut self, text: String) -> Result<(), CliError> {
        let attached = std::mem::take(&mut self.attached);
        match &self.chat {
            None => {
                let conversation = self.runtime.begin(&self.prepared.run().with_task(text)).await?;
                conversation.attach(attached);
                self.begin(conversation).await;
            }
            Some((runner, _)) => {
                runner.conversation.give_up(Name::user().as_str()).await?;
                let message = attachments::message(Name::user(), text, attached);
                runner.conversation.send(message).await?;
            }
        }
        Ok(())
    }

    /// Runs until the replies to a message are there. `exit` says how the last one ended.
    async fn exchange(&mut self, exit: &mut Exit) -> Result<Next, CliError> {
        let Some((runner, view)) = &mut self.chat else { return Ok(Next::Continue) };
        let cancellation = runner.conversation.cancellation();
        cancellation.clear();
        let mut signals = Signals::at_once()?;
        let status = runner.advance(view, &mut signals).await?;
        view.rest();
        if view.is_gone() {
            return Ok(Next::Leave(Exit::Done));
        }
        match status {
            Ok(Status::Closed { reason, summary }) => {
                if self.settings.output == Output::Result {
                    write(&Sanitized::plain(&format!("{}\n", summary.trim_end())))?;
                }
                print_limit(&reason);
                *exit = Exit::from(&reason);
                Ok(Next::Continue)
            }
            Ok(Status::Waiting(_)) => Ok(Next::Leave(Exit::Waiting)),
            Ok(Status::Cancelled) if signals.has_left() || !prompt::is_typed() => {
                Ok(Next::Leave(Exit::Stopped))
            }
            Ok(Status::Cancelled) => {
                print_note("(stopped)");
                Ok(Next::Continue)
            }
            Err(error) => {
                if self.prepared.is_scripted() {
                    print_note_wrapped(OF_SCRIPT);
                }
                let is_shown = runner.is_failure_shown(&runner.conversation.events().await);
                match (prompt::is_typed(), is_shown) {
                    (false, false) => return Err(error.into()),
                    (false, true) => return Ok(Next::Leave(Exit::Failed)),
                    (true, false) => print_note(&CliError::from(error).to_string()),
                    (true, true) => {}
                }
                print_note("`/retry` tries again.");
                Ok(Next::Continue)
            }
        }
    }

    async fn retry(&mut self, exit: &mut Exit) -> Result<Next, CliError> {
        let is_over = match &self.chat {
            Some((runner, _)) => runner.conversation.is_closed().await?,
            None => true,
        };
        if is_over {
            print_note("There is nothing to try again: the last message has its reply.");
            return Ok(Next::Continue);
        }
        self.exchange(exit).await
    }

    /// Continues from before the last message, in a fork: the conversation itself stays unchanged.
    async fn undo(&mut self) -> Result<(), CliError> {
        let Some((runner, _)) = &self.chat else {
            print_note("There is nothing to undo.");
            return Ok(());
        };
        let id = runner.conversation.id().clone();
        let Some((event, is_first)) = last_message(&runner.conversation.events().await) else {
            return Ok(());
        };
        runner.conversation.release().await?;
        if is_first {
            self.progress = self.chat.take().and_then(|(runner, _)| runner.progress);
            print_note_wrapped(&format!(
                "Undone: the chat begins again. `polylogue show {id}` shows what was said."
            ));
            return Ok(());
        }
        let Fork { id: fork, files } =
            self.runtime.fork(&id, &ForkPoint { event: Some(event), ..ForkPoint::default() }).await?;
        note_on_files(&files, &id);
        let conversation = self.runtime.open(&fork, &self.prepared, OpenOptions::default()).await?;
        let events = conversation.events().await;
        self.begin(conversation).await;
        if let Some((_, view)) = &mut self.chat {
            events.iter().for_each(|event| view.recall(event));
        }
        print_note_wrapped(&format!("Undone: the chat continues as {fork}; {id} keeps what was said."));
        Ok(())
    }

    async fn save(&self, file: &Path) -> Result<(), CliError> {
        let Some((runner, _)) = &self.chat else {
            return Err(CliError::usage("there is nothing to save yet"));
        };
        let conversation = &runner.conversation;
        let name = polylogue::Agent::name(conversation.chat());
        save(file, name.as_str(), &conversation.events().await)
    }

    /// Ends the chat, and says how to continue it.
    async fn leave(self, exit: Exit) -> Result<Exit, CliError> {
        let Some((runner, view)) = self.chat else { return Ok(exit) };
        let conversation = &runner.conversation;
        let (id, usage, questions) =
            (conversation.id().clone(), conversation.usage().await, conversation.questions().await);
        conversation.release().await?;
        view.finished()?;
        if self.settings.output.is_conversation() {
            let store =
                store_option(self.store.as_deref()).map(|store| format!(" {store}")).unwrap_or_default();
            print_note(&format!("{} · {}", tokens(&usage), cost(&usage)));
            print_note(&format!("`polylogue show {id}{store}` / `polylogue chat --resume {id}{store}`"));
        } else if let Some((_, question)) = questions.first() {
            print_note(&format!("{} is asked: {}", question.who, question.text));
            print_note_wrapped(&format!("answer with `polylogue resume {id} --answer TEXT`"));
        }
        Ok(exit)
    }
}

/// Writes a conversation to a new file, as Markdown.
pub(crate) fn save(file: &Path, name: &str, events: &[Arc<Event>]) -> Result<(), CliError> {
    let events: Vec<Event> = events.iter().map(|event| (**event).clone()).collect();
    let text = document::markdown(name, &events, Pictures::default());
    let unwritten =
        |error: std::io::Error| CliError::usage(format!("`{}` cannot be written: {error}", file.display()));
    let mut out = FileOptions::new().write(true).create_new(true).open(file).map_err(unwritten)?;
    out.write_all(text.as_bytes()).map_err(unwritten)?;
    print_note(&format!("saved to {}", shell_word(file)));
    Ok(())
}

/// Says why no more is said, unless all was said.
pub(crate) fn print_limit(reason: &StopReason) {
    if reason.outcome() != RunOutcome::Done {
        print_note_wrapped(&format!("({})", RunEnd::why(reason)));
    }
}

/// The event of the last message of the user's in the outermost chat, and whether it is the first one.
pub(crate) fn last_message(events: &[Arc<Event>]) -> Option<(u64, bool)> {
    let is_message = |body: &Body| matches!(body, Body::Opened(_) | Body::Reopened { message: Some(_), .. });
    let last = events.iter().rfind(|event| event.at.is_root() && is_message(&event.body))?;
    Some((last.seq, matches!(last.body, Body::Opened(_))))
}

/// What the user typed, if the event is a message of the user's.
pub(crate) fn typed(event: &Event) -> Option<String> {
    match &event.body {
        Body::Opened(opening) if event.at.is_root() => Some(opening.task.to_string()),
        Body::Reopened { message: Some(message), .. } if event.at.is_root() => {
            Some(message.plain().into_owned())
        }
        _ => None,
    }
}
