//! `polylogue resume`: continue a conversation.

use std::path::PathBuf;
use std::sync::Arc;

use polylogue::{Message, Name};
use polylogue_core::{LimitOverrides, LogId, Store as _};
use polylogue_runtime::{Conversation, OpenOptions, Prepared, Resumed, Runtime};

use crate::error::{CliError, Exit};
use crate::launch::{Launch, settings};
use crate::limit;
use crate::runner::Runner;
use crate::screen::Settings;
use crate::stderr::print_note;
use crate::text_arg::text_of;
use crate::trust::rules::Always;
use crate::{args, place, trust};

pub(crate) async fn run(cli: &args::Cli, args: &args::Resume) -> Result<Exit, CliError> {
    let input = args.piped.of(args.message.as_deref(), args.answer.as_deref())?;
    let runtime = place::existing(cli.store.as_deref())?;
    let id = runtime.find(&args.id).await?;
    let settings = settings(cli, args.output);
    let stored = Stored {
        id: &id,
        models: &args.models,
        allowed: &args.allowed,
        dir: args.folder.path()?,
        limits: args.limits.overrides(),
        asks: args.answer.is_none(),
        settings: &settings,
    };
    let mut prepared = stored.prepare(cli, &runtime).await?;
    let options = OpenOptions { take_over: args.take_over, limits: args.limits.overrides() };
    let conversation = runtime.open(&id, &prepared, options).await?;
    if args.answer.is_some() && conversation.questions().await.is_empty() {
        return Err(polylogue_runtime::Error::NoQuestion { id }.into());
    }
    let message = message(args, &conversation)?;
    let resumed = conversation.resume(message).await?;
    if resumed == Resumed::Done {
        print_note(&format!("`{id}` is over; `polylogue resume {id} {}` continues it", limit::MORE));
    }
    if let Resumed::EndsAgain(reason) = resumed {
        let way = match limit::command_to_continue(&reason, conversation.limits()) {
            Some(option) if option.starts_with('-') => format!("a higher limit (`{option}`) continues it"),
            Some(more) => {
                format!("`polylogue resume {id} {more}` continues it, and the team's limits count again")
            }
            None => "say something more to continue it".into(),
        };
        print_note(&format!("nothing is done: `{id}` would end again at once: {reason}; {way}"));
    }
    Runner {
        conversation,
        runtime,
        settings,
        answer: args.answer.clone(),
        input,
        work: cli.store.clone(),
        always: Always::of(prepared.access()),
        progress: prepared.servers_mut().take_progress(),
    }
    .run()
    .await
}

/// A stored conversation that is to be prepared again, and how.
pub(super) struct Stored<'a> {
    pub(super) id: &'a LogId,
    pub(super) models: &'a args::Models,
    pub(super) allowed: &'a args::Allowed,
    /// The user's own folder in which agents work.
    pub(super) dir: Option<PathBuf>,
    pub(super) limits: LimitOverrides,
    /// Whether there may be a person to ask.
    pub(super) asks: bool,
    pub(super) settings: &'a Settings,
}

impl Stored<'_> {
    /// Prepares the team that is stored with the conversation.
    pub(super) async fn prepare(self, cli: &args::Cli, runtime: &Runtime) -> Result<Prepared, CliError> {
        let mut stored = runtime.stored_team(self.id).await?;
        // What a store says that this user has not sealed allows nothing.
        let is_sealed = trust::is_sealed(&stored)?;
        let trusted = if is_sealed { stored.digest.clone() } else { stored.own_digest() };
        let by_script = stored.offline && self.models.model.is_none() && self.models.replay.is_none();
        let models = args::Models {
            offline: by_script || self.models.offline,
            capabilities: self.models.capabilities.or(stored.capabilities),
            ..self.models.clone()
        };
        if let Some(dir) = stored.dir.as_ref().filter(|_| !is_sealed && self.dir.is_none()) {
            let what = format!("the agents of `{}` worked in the folder `{}`", self.id, dir.display());
            return Err(CliError::usage(what).hint("if they may, name it with `--dir`"));
        }
        let events: Vec<_> = runtime.store().read(self.id, 0).await?.into_iter().map(Arc::new).collect();
        let before = LimitOverrides::last_of(&events).unwrap_or(stored.limits);
        if let Some(model) = &models.model {
            stored.team.use_model(model);
        }
        let launch = Launch {
            team: stored.team,
            digest: stored.digest,
            trusted,
            file: format!("conversation {}", self.id),
            outside: Vec::new(),
            models: &models,
            permits: &self.allowed.permits,
            servers: self.allowed.mcp.clone().or(stored.mcp.filter(|_| is_sealed)),
            dir: self.dir.or(stored.dir.filter(|_| is_sealed)),
            limits: self.limits.or(before),
            shared_budget: false,
            before: if is_sealed { stored.allowed } else { Vec::new() },
            resumed: true,
            asks: self.asks,
            shown: Some(self.settings),
        };
        launch.prepare(cli.store.as_deref()).await
    }
}

/// The next message of a conversation that has ended.
fn message(args: &args::Resume, conversation: &Conversation) -> Result<Option<Message>, CliError> {
    let Some(text) = args.message.as_deref().map(text_of).transpose()? else { return Ok(None) };
    if text.trim().is_empty() {
        return Err(CliError::usage("there is nothing in the text that the conversation is to go on about"));
    }
    let speaker = args.speaker.as_deref().unwrap_or(Name::user().as_str()).to_owned();
    match conversation.authors().find(|name| name.as_str() == Name::composed(&speaker)) {
        Some(name) => Ok(Some(Message::text(name, text))),
        None => {
            let names: Vec<String> = conversation.authors().map(|name| format!("`{name}`")).collect();
            Err(CliError::usage(format!("there is no `{speaker}` who could say so"))
                .hint(format!("there are {}", names.join(", "))))
        }
    }
}
