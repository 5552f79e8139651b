//! A chat with conversations of this machine.

use std::path::Path;
use std::time::Instant;

use polylogue::{Agent as _, Name, Status};
use polylogue_core::{LogId, Part};
use polylogue_mcp::Progress;
use polylogue_runtime::fork::{Fork, ForkPoint};
use polylogue_runtime::{Conversation, OpenOptions, Prepared, Runtime};
use tokio::sync::mpsc::UnboundedReceiver;

use super::lines::{
    Chat, Reply, last_message, print_begins_again, print_forked, print_left, typed, write_markdown,
};
use crate::args::piped;
use crate::commands::fork::note_on_files;
use crate::commands::price::line_of_message;
use crate::error::CliError;
use crate::place::{NamedStore, PlaceOption};
use crate::runner::{Runner, first_shown};
use crate::screen::{Output, Settings};
use crate::signals::Signals;
use crate::stderr::{print_note, print_note_wrapped};
use crate::trust::rules::Always;
use crate::view::{View, new_bound};
use crate::{args, attachments, steering};

/// Why a team that speaks by its script fails at other messages.
const OF_SCRIPT: &str =
    "The script knows only its own conversation. For other messages, name a model with `--model`.";

/// A chat, and where its conversations are.
pub(super) struct Session {
    runtime: Runtime,
    prepared: Prepared,
    settings: Settings,
    input: piped::Input,
    store: NamedStore,
    progress: Option<UnboundedReceiver<Progress>>,
    /// `None` before the first message.
    chat: Option<(Runner, View)>,
    /// How its last run ended.
    status: Option<polylogue_runtime::Result<Status>>,
    begun: Instant,
    /// What the person typed, oldest first.
    history: Vec<String>,
    /// What goes with the next message.
    attached: Vec<Part>,
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
        let store = cli.named_store();
        Self {
            runtime,
            prepared,
            settings,
            input,
            store,
            progress,
            chat: None,
            status: None,
            begun: Instant::now(),
            history: Vec::new(),
            attached: Vec::new(),
        }
    }

    /// Attaches these parts to the next message.
    pub(super) fn attach_parts(&mut self, parts: Vec<Part>) {
        self.attached.extend(parts);
    }

    /// Continues a stored conversation, and shows its last exchange.
    pub(super) async fn open(&mut self, id: &LogId, options: OpenOptions) -> Result<(), CliError> {
        let conversation = self.runtime.open(id, &self.prepared, options).await?;
        let events = conversation.events().await;
        self.history = events.iter().filter_map(|event| typed(event)).collect();
        let last = last_message(&events).map_or(0, |(seq, _)| seq);
        let first = match self.settings.output {
            Output::Json => first_shown(Output::Json, &events, conversation.inherited_events()),
            output if output.is_conversation() => usize::try_from(last).unwrap_or(usize::MAX),
            _ => events.len(),
        };
        self.begin(conversation).await?;
        if let Some((_, view)) = &mut self.chat {
            let (before, rest) = events.split_at(first.min(events.len()));
            before.iter().for_each(|event| view.recall(event));
            rest.iter().for_each(|event| view.show_again(event));
            // The greeting follows, and an interrupted turn may be open.
            view.make_room();
        }
        Ok(())
    }

    /// Makes `conversation` that of the chat.
    async fn begin(&mut self, conversation: Conversation) -> Result<(), CliError> {
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
            says_bound: !self.prepared.is_scripted(),
            keeps_texts: steering::has_one_turn(self.prepared.team()),
        };
        let mut view = runner.view(Instant::now()).await;
        if self.settings.output != Output::Json {
            view.hide_user();
        }
        let events = runner.conversation.events().await;
        if runner.says_bound {
            view.watch_bound(runner.conversation.bound(), &events);
        }
        let bound = new_bound(&self.runtime, runner.conversation.id(), &events).await?;
        if let Some(bound) = bound.as_ref().filter(|_| self.settings.output.is_conversation()) {
            line_of_message(bound).iter().for_each(|line| print_note_wrapped(line));
        }
        view.begin(runner.conversation.id(), runner.conversation.chat().name(), bound.as_ref());
        self.chat = Some((runner, view));
        Ok(())
    }

    /// Ends the output for programs of the conversation that is left.
    async fn end_output(&mut self) -> Result<(), CliError> {
        let Some((runner, view)) = self.chat.as_mut().filter(|_| self.settings.output == Output::Json) else {
            return Ok(());
        };
        let status = match self.status.take() {
            Some(status) => status,
            // It was not run here. Running one that is closed only says how it ended.
            None => match runner.conversation.is_closed().await? {
                true => runner.conversation.run().await,
                false => Ok(Status::Cancelled),
            },
        };
        runner.end(view, &status, self.begun.elapsed()).await.map(drop)
    }

    pub(super) fn introduce(&self) {
        if !self.settings.output.is_conversation() {
            return;
        }
        let team = self.prepared.team();
        let models = team.models().into_iter().collect::<Vec<_>>().join(", ");
        let with = if team.agents.len() == 1 && !models.is_empty() { models } else { team.name.to_string() };
        print_note_wrapped(&format!("Chat with {with}. `/help` lists the commands, Ctrl-D leaves."));
    }
}

impl Chat for Session {
    fn history(&mut self) -> &mut Vec<String> {
        &mut self.history
    }

    fn output(&self) -> Output {
        self.settings.output
    }

    async fn is_over(&self) -> Result<Option<bool>, CliError> {
        match &self.chat {
            Some((runner, _)) => Ok(Some(runner.conversation.is_closed().await?)),
            None => Ok(None),
        }
    }

    async fn say(&mut self, text: String) -> Result<(), CliError> {
        let attached = std::mem::take(&mut self.attached);
        match &self.chat {
            None => {
                let run = self.prepared.run().with_task(text).with_attached(attached);
                let conversation = self.runtime.begin(&run).await?;
                self.begin(conversation).await?;
            }
            Some((runner, _)) => {
                runner.conversation.give_up(Name::user().as_str()).await?;
                let message = attachments::message(Name::user(), text, attached);
                runner.conversation.send(message).await?;
            }
        }
        Ok(())
    }

    async fn reply(&mut self) -> Result<Reply, CliError> {
        let Some((runner, view)) = &mut self.chat else { return Ok(Reply::Stopped { leaves: false }) };
        let cancellation = runner.conversation.cancellation();
        cancellation.clear();
        let mut signals = Signals::at_once()?;
        let status = runner.advance(view, &mut signals).await?;
        view.rest();
        self.status = Some(status.clone());
        if view.is_gone() {
            return Ok(Reply::Unread);
        }
        Ok(match status {
            Ok(Status::Closed { reason, summary }) => Reply::Whole(reason, summary.to_string()),
            Ok(Status::Waiting(_)) => Reply::Question,
            Ok(Status::Cancelled) => Reply::Stopped { leaves: signals.has_left() },
            Err(error) => {
                if self.prepared.is_scripted() {
                    print_note_wrapped(OF_SCRIPT);
                }
                let is_shown = runner.is_failure_shown(&runner.conversation.events().await);
                Reply::Failed(error.into(), is_shown)
            }
        })
    }

    async fn reply_again(&mut self) -> Result<Reply, CliError> {
        self.reply().await
    }

    fn attach(&mut self, file: &Path) -> Result<(), CliError> {
        let part = attachments::part(file)?;
        attachments::check(&self.prepared, std::slice::from_ref(&part))?;
        self.attached.push(part);
        print_note(&format!("`{}` goes with your next message.", file.display()));
        Ok(())
    }

    async fn undo(&mut self) -> Result<(), CliError> {
        let Some((runner, _)) = &self.chat else {
            print_note("There is nothing to undo.");
            return Ok(());
        };
        let id = runner.conversation.id().clone();
        let Some((event, is_first)) = last_message(&runner.conversation.events().await) else {
            return Ok(());
        };
        self.end_output().await?;
        let Some((runner, _)) = &self.chat else { return Ok(()) };
        runner.conversation.release().await?;
        if is_first {
            self.progress = self.chat.take().and_then(|(runner, _)| runner.progress);
            print_begins_again(&id, &PlaceOption::of_store(&self.store));
            return Ok(());
        }
        let Fork { id: fork, files } =
            self.runtime.fork(&id, &ForkPoint { event: Some(event), ..ForkPoint::default() }).await?;
        note_on_files(&files, &id);
        let conversation = self.runtime.open(&fork, &self.prepared, OpenOptions::default()).await?;
        let events = conversation.events().await;
        self.begin(conversation).await?;
        if let Some((_, view)) = &mut self.chat {
            let is_whole = self.settings.output == Output::Json;
            let show = |event| if is_whole { view.show_again(event) } else { view.recall(event) };
            events.iter().map(|event| &**event).for_each(show);
        }
        print_forked(&id, &fork);
        Ok(())
    }

    async fn save(&self, file: &Path) -> Result<(), CliError> {
        let Some((runner, _)) = &self.chat else {
            return Err(CliError::usage("there is nothing to save yet"));
        };
        let conversation = &runner.conversation;
        let name = polylogue::Agent::name(conversation.chat());
        write_markdown(file, name.as_str(), &conversation.events().await)
    }

    async fn leave(mut self) -> Result<(), CliError> {
        let ended = self.end_output().await;
        let Some((runner, view)) = self.chat else { return ended };
        let conversation = &runner.conversation;
        let (id, usage, questions) =
            (conversation.id().clone(), conversation.usage().await, conversation.questions().await);
        // What was appended is kept, whatever the store and the output say now.
        let released = conversation.release().await;
        let place = PlaceOption::of_store(&self.store);
        let asked = questions.into_iter().next().map(|(_, question)| question);
        print_left(self.settings.output, (&id, &place), &usage, asked);
        ended?;
        released?;
        view.finished()
    }
}
