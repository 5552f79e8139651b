//! `chat` with a team of a server, line by line.

use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use polylogue_client::wire::conversation::{Conversation, ConversationState, Fork, NewConversation, Resume};
use polylogue_client::wire::team::Team;
use polylogue_core::{Body, Event, OpenQuestion};

use super::begin::{all_teams, limits, served, team_id};
use super::named_server::{Remote, uncertain};
use super::watch::{Rest, Watch, ended};
use crate::args;
use crate::args::piped::Input as Piped;
use crate::commands::chat::lines::{
    Chat, Reply, last_message, print_begins_again, print_forked, print_left, run_chat, typed, write_markdown,
};
use crate::commands::chat::settings_of;
use crate::commands::price::line_of_message;
use crate::error::{CliError, Exit};
use crate::runner::{first_shown, is_failure_shown};
use crate::screen::text::folded;
use crate::screen::{Output, Settings};
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
        rest: None,
        begun: Instant::now(),
        history: Vec::new(),
    };
    match (&args.resume, &args.team) {
        (Some(text), _) => session.open(text).await?,
        (None, Some(team)) => {
            let team = served(remote, team_id(team)?).await?;
            session.new.limits = limits(cli, &args.options.team, &team)?;
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
    run_chat(session).await
}

/// A chat while it runs.
struct Session<'r> {
    remote: &'r Remote,
    settings: Settings,
    input: Piped,
    /// How the conversation begins, and begins again.
    new: NewConversation,
    /// `None` before the first message.
    chat: Option<(Watch<'r>, View)>,
    /// Where it came to rest last.
    rest: Option<Rest>,
    begun: Instant,
    /// What the person typed, oldest first.
    history: Vec<String>,
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
            let resume = self.remote.place.command(&format!("resume {}", conversation.id));
            return Err(CliError::usage("limits of a chat on a server are set when it begins")
                .hint(format!("`{resume}` raises them")));
        }
        self.new.team.clone_from(&conversation.team);
        let shown = self.settings.output.is_conversation();
        if shown {
            self.greet(&conversation.team_name);
        }
        let (mut watch, mut view) = self.watched(conversation).await?;
        self.history = watch.events.iter().filter_map(|event| typed(event)).collect();
        let last = last_message(&watch.events).map_or(0, |(seq, _)| seq);
        let first = match self.settings.output {
            Output::Json => first_shown(Output::Json, &watch.events, watch.events.len() as u64),
            _ if shown => usize::try_from(last).unwrap_or(usize::MAX),
            _ => watch.events.len(),
        };
        let (before, rest) = watch.events.split_at(first.min(watch.events.len()));
        before.iter().for_each(|event| view.recall(event));
        rest.iter().for_each(|event| view.show_again(event));
        watch.is_resumed = true;
        self.chat = Some((watch, view));
        Ok(())
    }

    /// Ends the output for programs of the conversation that is left.
    async fn end_output(&mut self) -> Result<(), CliError> {
        let Some((watch, view)) = self.chat.take_if(|_| self.settings.output == Output::Json) else {
            return Ok(());
        };
        // One that was not run here is closed.
        let is_closed = || if is_over(&watch.events) { Rest::Closed } else { Rest::Stopped };
        let rest = self.rest.take().unwrap_or_else(is_closed);
        watch.finish(view, rest, self.begun.elapsed()).await.map(drop)
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
}

impl Chat for Session<'_> {
    fn history(&mut self) -> &mut Vec<String> {
        &mut self.history
    }

    fn output(&self) -> Output {
        self.settings.output
    }

    async fn is_over(&self) -> Result<Option<bool>, CliError> {
        Ok(self.chat.as_ref().map(|(watch, _)| is_over(&watch.events)))
    }

    async fn say(&mut self, text: String) -> Result<(), CliError> {
        let client = &self.remote.client;
        if let Some((watch, _)) = &self.chat {
            client.send(&watch.conversation.id, &text).await?;
            return Ok(());
        }
        let new = NewConversation { message: Some(text), ..self.new.clone() };
        let begun = client.begin(&new).await;
        let begun = begun.map_err(|error| uncertain(error, "the conversation may have begun"))?;
        if let Some(bound) = begun.bound.as_ref().filter(|_| self.settings.output.is_conversation()) {
            line_of_message(bound).iter().for_each(|line| print_note_wrapped(line));
        }
        // Its first events come as they happen.
        self.chat = Some(self.watched(Conversation { seq: 0, bound_ended: None, ..begun }).await?);
        Ok(())
    }

    async fn reply(&mut self) -> Result<Reply, CliError> {
        let Some((watch, view)) = &mut self.chat else { return Ok(Reply::Stopped { leaves: false }) };
        let mut signals = Signals::at_once()?;
        let rest = watch.until_rest(view, &mut signals).await?;
        watch.is_resumed = false;
        view.rest();
        self.rest = Some(rest.clone());
        if view.is_gone() {
            return Ok(Reply::Unread);
        }
        Ok(match rest {
            Rest::Closed => {
                let (reason, result) = ended(&watch.events)?;
                Reply::Whole(reason.clone(), result.to_owned())
            }
            Rest::Waiting(_) => Reply::Question,
            Rest::Left => Reply::Stopped { leaves: true },
            Rest::Stopped => Reply::Stopped { leaves: signals.has_left() },
            Rest::Failed(why) => {
                Reply::Failed(CliError::failed(why), is_failure_shown(self.settings.output, &watch.events))
            }
        })
    }

    async fn reply_again(&mut self) -> Result<Reply, CliError> {
        if let Some((watch, _)) = &self.chat {
            let id = &watch.conversation.id;
            if self.remote.client.conversation(id).await?.state == ConversationState::Halted {
                let resumed = self.remote.client.resume(id, &Resume::default()).await;
                resumed.map_err(|error| uncertain(error, "the conversation may continue"))?;
            }
        }
        self.reply().await
    }

    fn attach(&mut self, _: &Path) -> Result<(), CliError> {
        Err(CliError::usage("messages to a server are texts: files cannot be attached to them"))
    }

    async fn undo(&mut self) -> Result<(), CliError> {
        let Some((watch, _)) = &self.chat else {
            print_note("There is nothing to undo.");
            return Ok(());
        };
        let id = watch.conversation.id.clone();
        let Some((event, is_first)) = last_message(&watch.events) else { return Ok(()) };
        self.end_output().await?;
        if is_first {
            self.chat = None;
            print_begins_again(&id, &self.remote.place);
            return Ok(());
        }
        let forked = self.remote.client.fork(&id, &Fork { seq: Some(event), ..Fork::default() }).await;
        let fork = forked.map_err(|error| uncertain(error, "the fork may exist"))?.id;
        let fork = self.remote.client.conversation(&fork).await?;
        let (watch, mut view) = self.watched(fork).await?;
        let is_whole = self.settings.output == Output::Json;
        let show = |event| if is_whole { view.show_again(event) } else { view.recall(event) };
        watch.events.iter().map(|event| &**event).for_each(show);
        let fork = watch.conversation.id.clone();
        self.chat = Some((watch, view));
        print_forked(&id, &fork);
        Ok(())
    }

    async fn save(&self, file: &Path) -> Result<(), CliError> {
        match &self.chat {
            None => Err(CliError::usage("there is nothing to save yet")),
            Some((watch, _)) => write_markdown(file, &watch.conversation.team_name, &watch.events),
        }
    }

    async fn leave(mut self) -> Result<(), CliError> {
        self.end_output().await?;
        let Some((watch, view)) = self.chat else { return Ok(()) };
        view.finished()?;
        let Conversation { id, usage, questions, .. } =
            self.remote.client.conversation(&watch.conversation.id).await?;
        let asked = questions.into_iter().next().map(OpenQuestion::from);
        print_left(self.settings.output, (&id, &self.remote.place), &usage, asked.map(|open| open.question));
        Ok(())
    }
}

/// Whether the last message has its reply.
fn is_over(events: &[Arc<Event>]) -> bool {
    let last = events.iter().rev().filter(|event| event.chat.is_root()).find_map(|event| match event.body {
        Body::Closed { .. } => Some(true),
        Body::Reopened { .. } | Body::Sent(_) => Some(false),
        _ => None,
    });
    last.unwrap_or(false)
}
