//! `chat` with a team of a server, line by line.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use polylogue_client::wire::conversation::{Conversation, Fork, NewConversation, Resume, State};
use polylogue_client::wire::team::Team;
use polylogue_core::{Body, Event};

use super::begin::{all_teams, served, team_id};
use super::named_server::{Remote, uncertain};
use super::watch::{Rest, Watch};
use crate::args;
use crate::args::piped::Input as Piped;
use crate::commands::chat::command::{HELP, Input};
use crate::commands::chat::session::{PROMPT, last_message, print_limit, save, typed};
use crate::commands::chat::settings_of;
use crate::commands::write;
use crate::error::{CliError, Exit};
use crate::prompt::{self, Typed};
use crate::runner::is_failure_shown;
use crate::screen::text::folded;
use crate::screen::{Output, Sanitized, Settings, cost, tokens};
use crate::signals::Signals;
use crate::stderr::{print_note, print_note_wrapped};
use crate::view::View;

pub(super) async fn run(cli: &args::Cli, args: &args::chat::Chat, remote: &Remote) -> Result<Exit, CliError> {
    let input = args.options.piped.of(None, None)?;
    let settings = settings_of(cli, args);
    let mut session = Session {
        remote,
        settings,
        input,
        new: NewConversation { limits: args.options.team.limits.overrides(), ..NewConversation::default() },
        chat: None,
        history: Vec::new(),
    };
    match (&args.resume, &args.team) {
        (Some(text), _) => session.open(text).await?,
        (None, Some(team)) => {
            let team = served(remote, team_id(team)?).await?;
            session.new.inputs = args.vars.iter().cloned().collect();
            session.introduce(&team);
            session.new.team = team.id;
        }
        (None, None) => {
            let teams = all_teams(remote).await?;
            return Err(CliError::usage("a chat on a server is with one of its teams, and none is named")
                .hint(format!("`polylogue chat TEAM`; the server has {teams}")));
        }
    }
    session.run().await
}

/// A chat while it is held.
struct Session<'r> {
    remote: &'r Remote,
    settings: Settings,
    input: Piped,
    /// How the conversation begins, and begins again.
    new: NewConversation,
    /// `None` before the first message.
    chat: Option<(Watch<'r>, View)>,
    /// What the person typed, oldest first.
    history: Vec<String>,
}

/// Whether the chat continues.
enum Next {
    Continue,
    Leave(Exit),
}

impl<'r> Session<'r> {
    fn introduce(&self, team: &Team) {
        if !self.settings.output.is_conversation() {
            return;
        }
        let task = team.task.as_deref().map(folded).unwrap_or_default();
        if team.scripted && !task.is_empty() {
            print_note_wrapped(&format!("The script is written for one task. Begin with it: {task}"));
        }
        self.greet(&team.name);
    }

    fn greet(&self, team: &str) {
        let url = self.remote.client.url();
        print_note_wrapped(&format!("Chat with {team} at {url}. `/help` lists the commands, Ctrl-D leaves."));
    }

    /// Continues a conversation of the server, and shows its last exchange.
    async fn open(&mut self, text: &str) -> Result<(), CliError> {
        let conversation = self.remote.client.find(text).await?;
        if !self.new.limits.is_empty() {
            return Err(CliError::usage("limits of a chat on a server are set when it begins")
                .hint(format!("`polylogue resume {}` raises them", conversation.id)));
        }
        self.new.team.clone_from(&conversation.team);
        let shown = self.settings.output.is_conversation();
        if shown {
            self.greet(&conversation.team_name);
        }
        let (mut watch, mut view) = self.watched(conversation).await?;
        self.history = watch.events.iter().filter_map(|event| typed(event)).collect();
        let last = last_message(&watch.events).map_or(0, |(seq, _)| seq);
        for event in &watch.events {
            if shown && event.seq >= last { view.show_again(event) } else { view.recall(event) }
        }
        watch.is_resumed = true;
        self.chat = Some((watch, view));
        Ok(())
    }

    /// A conversation with its events so far, and a view of it.
    async fn watched(&self, conversation: Conversation) -> Result<(Watch<'r>, View), CliError> {
        let events = match conversation.seq {
            0 => Vec::new(),
            _ => self.remote.client.all_events(&conversation.id, 0).await?,
        };
        let watch = Watch {
            remote: self.remote,
            conversation,
            settings: self.settings,
            answer: None,
            input: self.input,
            events: events.into_iter().map(Into::into).collect(),
            is_resumed: false,
        };
        let view = watch.view(Instant::now(), true)?;
        Ok((watch, view))
    }

    async fn run(mut self) -> Result<Exit, CliError> {
        let mut exit = Exit::Done;
        // A conversation that was interrupted continues first.
        if self.chat.as_ref().is_some_and(|(watch, _)| !is_over(&watch.events))
            && let Next::Leave(exit) = self.retry(&mut exit).await?
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
                self.save(&file).unwrap_or_else(|error| print_note(&error.to_string()))
            }
            Some(Input::Attach(_)) => {
                print_note_wrapped("Messages to a server are texts: files cannot be attached to them.");
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
        let client = &self.remote.client;
        if let Some((watch, _)) = &self.chat {
            client.send(&watch.conversation.id, &text).await?;
            return Ok(());
        }
        let new = NewConversation { message: Some(text), ..self.new.clone() };
        let begun = client.begin(&new).await;
        let begun = begun.map_err(|error| uncertain(error, "the conversation may have begun"))?;
        // Its first events come as they happen.
        self.chat = Some(self.watched(Conversation { seq: 0, ..begun }).await?);
        Ok(())
    }

    /// Follows it until the replies to a message are there. `exit` says how the last one ended.
    async fn exchange(&mut self, exit: &mut Exit) -> Result<Next, CliError> {
        let Some((watch, view)) = &mut self.chat else { return Ok(Next::Continue) };
        let mut signals = Signals::at_once()?;
        let rest = watch.until_rest(view, &mut signals).await?;
        watch.is_resumed = false;
        view.rest();
        if view.is_gone() {
            return Ok(Next::Leave(Exit::Done));
        }
        match rest {
            Rest::Closed => {
                let reason = watch.reason()?;
                if self.settings.output == Output::Result {
                    write(&Sanitized::plain(&format!("{}\n", result(&watch.events).trim_end())))?;
                }
                print_limit(reason);
                *exit = Exit::from(reason);
                Ok(Next::Continue)
            }
            Rest::Waiting(_) => Ok(Next::Leave(Exit::Waiting)),
            Rest::Left => Ok(Next::Leave(Exit::Stopped)),
            Rest::Stopped if signals.has_left() || !prompt::is_typed() => Ok(Next::Leave(Exit::Stopped)),
            Rest::Stopped => {
                print_note("(stopped)");
                Ok(Next::Continue)
            }
            Rest::Failed(why) => {
                let is_shown = is_failure_shown(self.settings.output, &watch.events);
                match (prompt::is_typed(), is_shown) {
                    (false, false) => return Err(CliError::failed(why)),
                    (false, true) => return Ok(Next::Leave(Exit::Failed)),
                    (true, false) => print_note(&why),
                    (true, true) => {}
                }
                print_note("`/retry` tries again.");
                Ok(Next::Continue)
            }
        }
    }

    async fn retry(&mut self, exit: &mut Exit) -> Result<Next, CliError> {
        let open = self.chat.as_ref().filter(|(watch, _)| !is_over(&watch.events));
        let Some((watch, _)) = open else {
            print_note("There is nothing to try again: the last message has its reply.");
            return Ok(Next::Continue);
        };
        let id = &watch.conversation.id;
        if self.remote.client.conversation(id).await?.state == State::Halted {
            let resumed = self.remote.client.resume(id, &Resume::default()).await;
            resumed.map_err(|error| uncertain(error, "the conversation may continue"))?;
        }
        self.exchange(exit).await
    }

    /// Continues from before the last message, in a fork: the conversation itself stays unchanged.
    async fn undo(&mut self) -> Result<(), CliError> {
        let Some((watch, _)) = &self.chat else {
            print_note("There is nothing to undo.");
            return Ok(());
        };
        let id = watch.conversation.id.clone();
        let Some((event, is_first)) = last_message(&watch.events) else { return Ok(()) };
        if is_first {
            self.chat = None;
            print_note_wrapped(&format!(
                "Undone: the chat begins again. `polylogue show {id}` shows what was said."
            ));
            return Ok(());
        }
        let forked = self.remote.client.fork(&id, &Fork { seq: Some(event), ..Fork::default() }).await;
        let fork = forked.map_err(|error| uncertain(error, "the fork may exist"))?.id;
        let fork = self.remote.client.conversation(&fork).await?;
        let (watch, mut view) = self.watched(fork).await?;
        watch.events.iter().for_each(|event| view.recall(event));
        let fork = watch.conversation.id.clone();
        self.chat = Some((watch, view));
        print_note_wrapped(&format!("Undone: the chat continues as {fork}; {id} keeps what was said."));
        Ok(())
    }

    fn save(&self, file: &Path) -> Result<(), CliError> {
        match &self.chat {
            None => Err(CliError::usage("there is nothing to save yet")),
            Some((watch, _)) => save(file, &watch.conversation.team_name, &watch.events),
        }
    }

    /// Ends the chat, and says how to continue it.
    async fn leave(self, exit: Exit) -> Result<Exit, CliError> {
        let Some((watch, view)) = self.chat else { return Ok(exit) };
        view.finished()?;
        let Conversation { id, spent, asked, .. } =
            self.remote.client.conversation(&watch.conversation.id).await?;
        if self.settings.output.is_conversation() {
            let option = self.remote.option.as_ref().map(|option| format!(" {option}")).unwrap_or_default();
            print_note(&format!("{} · {}", tokens(&spent), cost(&spent)));
            print_note(&format!("`polylogue show {id}{option}` / `polylogue chat --resume {id}{option}`"));
        } else if let Some(asked) = asked.first() {
            print_note(&format!("{} is asked: {}", asked.who, asked.text));
            print_note_wrapped(&format!("answer with `polylogue resume {id} --answer TEXT`"));
        }
        Ok(exit)
    }
}

/// Whether the last message has its reply.
fn is_over(events: &[Arc<Event>]) -> bool {
    let last = events.iter().rev().filter(|event| event.at.is_root()).find_map(|event| match event.body {
        Body::Closed { .. } => Some(true),
        Body::Reopened { .. } | Body::Sent(_) => Some(false),
        _ => None,
    });
    last.unwrap_or(false)
}

/// The result of the last exchange.
fn result(events: &[Arc<Event>]) -> &str {
    let last = events.iter().rev().filter(|event| event.at.is_root()).find_map(|event| match &event.body {
        Body::Closed { summary, .. } => Some(&**summary),
        _ => None,
    });
    last.unwrap_or_default()
}
