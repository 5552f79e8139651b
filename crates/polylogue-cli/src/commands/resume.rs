//! `polylogue resume`: continue a conversation.

use std::path::Path;

use polylogue::{Message, Name};
use polylogue_config::suggest;
use polylogue_core::{Due, GivenApproval, LogId, OpenQuestion, Part, Queue as _, Store as _};
use polylogue_runtime::stored::StoredDocument;
use polylogue_runtime::{Conversation, OpenOptions, Prepared, RequestedPermission, Resumed, Runtime};
use polylogue_team::{Loaded, TeamChange, Usage};

use super::hand_over::{check_resumed, hand_over, print_id};
use super::team_version::{NewerTeam, TeamVersion};
use super::{steer, waiting};
use crate::error::{CliError, Exit};
use crate::launch::{Launch, UNWATCHED, settings};
use crate::limit;
use crate::place::{self, PlaceOption, shell_word};
use crate::runner::Runner;
use crate::screen::{Output, Settings};
use crate::stderr::print_note;
use crate::text_arg::text_of;
use crate::trust::rules::Always;
use crate::{args, attachments, trust};

pub(crate) async fn run(cli: &args::Cli, args: &args::Resume) -> Result<Exit, CliError> {
    check_resumed(args)?;
    let input = args.options.piped.of(args.message.as_deref(), args.answer.as_deref())?;
    let runtime = place::existing(&cli.named_store())?;
    if args.detach.detach {
        runtime.queue()?;
    }
    let id = runtime.find(&args.id).await?;
    let settings = settings(cli, &args.options);
    let place = PlaceOption::of_store(&cli.named_store());
    if !args.take_over && steer::unpause(&runtime, &id, given(args), &place).await? {
        if args.detach.detach {
            print_id(&id, None, &settings)?;
        }
        return Ok(Exit::Done);
    }
    let runtime = args.budgets.pay_for(runtime).await?;
    let (mut prepared, conversation, attached) = opened(args, &runtime, &id, &settings).await?;
    if args.answer.is_some() {
        waiting::chosen(OpenQuestion::of(&conversation.events().await), &id, None)?;
    }
    let message = message(args, &conversation, attached)?;
    let resumed = conversation.resume(message.clone()).await?;
    if resumed != Resumed::Continues
        && let Some(queue) = runtime.store().queue()
    {
        // One that is parked has nothing left that could fail again.
        queue.schedule(&id, Due::Never, None).await?;
    }
    let (refused, over) = (refused(&resumed, args), over(&resumed, args));
    let given = message.as_ref().zip(args.message.as_deref());
    report_unchanged(&conversation, resumed, given, &place).await?;
    // Nothing is run then, which only programs read in the output, too.
    let refused_now = refused.filter(|_| args.detach.detach || settings.output != Output::Json);
    if let Some(exit) = refused_now.or(over) {
        conversation.release().await?;
        return Ok(exit);
    }
    if args.detach.detach {
        return hand_over(&runtime, (&conversation, &prepared, None), &args.detach, &settings, &place).await;
    }
    let runner = Runner {
        conversation,
        runtime,
        settings,
        answer: args.answer.clone(),
        input,
        work: cli.named_store(),
        always: Always::of(prepared.access()),
        progress: prepared.servers_mut().take_progress(),
        says_bound: !prepared.is_scripted(),
        keeps_texts: false,
    };
    let exit = runner.run().await?;
    Ok(refused.unwrap_or(exit))
}

/// What the command line adds to the conversation, or to how it runs: a process that has it open cannot be given that by `resume`.
fn given(args: &args::Resume) -> Option<&'static str> {
    let args::RunOptions { team, folder, .. } = &args.options;
    let args::TeamOptions { models, allowed, limits } = team;
    // A watcher can be shown thoughts, too.
    let args::Models { model, capabilities, offline, timeout, record, cache, replay, thoughts: _ } = models;
    let has_budget = !args.budgets.shared().is_empty() || args.budgets.of_process().is_some();
    let of_models = model.is_some() || capabilities.is_some() || *offline || timeout.is_some();
    let of_replies = record.is_some() || cache.is_some() || replay.is_some();
    [
        ("a message", args.message.is_some()),
        ("an answer", args.answer.is_some()),
        ("limits", !limits.overrides().is_empty()),
        ("a budget", has_budget),
        ("options of models", of_models || of_replies),
        ("permissions", allowed.permits.trust || !allowed.permits.grants.is_empty() || allowed.mcp.is_some()),
        ("a folder", folder.is_given()),
        ("changes of its team", args.accept_changes),
        ("what it needs", !args.detach.needs.is_empty()),
    ]
    .into_iter()
    .find_map(|(what, is_given)| is_given.then_some(what))
}

/// The conversation with its team, as it was stored or as its file is now, and what is attached to the next message.
async fn opened(
    args: &args::Resume,
    runtime: &Runtime,
    id: &LogId,
    settings: &Settings,
) -> Result<(Prepared, Conversation, Vec<Part>), CliError> {
    let stored = Stored {
        id,
        options: &args.options,
        asks: args.answer.is_none(),
        settings,
        version: TeamVersion::wanted(args),
        shared_budget: args.budgets.limits_cost(),
    };
    let (prepared, changes) = stored.prepare(runtime).await?;
    check_approvals(runtime, id, &prepared).await?;
    let mut before = None;
    if !changes.is_empty() {
        runtime.check_version(id, &prepared).await.map_err(unfit)?;
        before = stored.before(runtime).await?;
    }
    let attached = attached(args)?;
    attachments::check(&prepared, &attached)?;
    let options = OpenOptions {
        take_over: args.take_over,
        more: args.options.team.limits.overrides(),
        is_harmless_version: !changes.is_empty() && changes.iter().all(|change| change.is_harmless),
        ..OpenOptions::default()
    };
    let conversation = runtime.open_version(id, (&prepared, before.as_ref()), options).await?;
    if !changes.is_empty() {
        conversation.change_team(&prepared, changes)?;
    }
    Ok((prepared, conversation, attached))
}

/// Refuses to make a call that another user has approved, where the team can do more than its sandbox lets it: what a store from elsewhere
/// says may have been approved by no person.
async fn check_approvals(runtime: &Runtime, id: &LogId, prepared: &Prepared) -> Result<(), CliError> {
    let is_harmless = RequestedPermission::of_team(prepared.team(), &Usage::default()).is_empty();
    if is_harmless || trust::is_sealed(&runtime.stored_document(id).await?.team()?)? {
        return Ok(());
    }
    let events = runtime.store().read(id, 0).await?;
    let Some(GivenApproval { who, call, asked, .. }) = GivenApproval::of(&events).into_iter().next() else {
        return Ok(());
    };
    let what =
        format!("another user has approved the call `{}` of `{who}`, and it would be made now", call.tool);
    Err(CliError::usage(what).hint(format!("`polylogue fork {id} --at {asked}` makes a fork that asks you")))
}

/// Why the conversation cannot continue with the team of the current file.
fn unfit(error: polylogue_runtime::Error) -> CliError {
    let polylogue_runtime::Error::BadMove { who, .. } = &error else { return error.into() };
    let hint = format!("`--pinned` continues with the stored team; else keep `{who}` in the team file");
    CliError::from(error).hint(hint)
}

/// The exit code if the message is refused, because the conversation would end again at once: nothing is run, so the code says why.
fn refused(resumed: &Resumed, args: &args::Resume) -> Option<Exit> {
    match resumed {
        Resumed::EndsAgain(reason) if args.message.is_some() => Some(match Exit::from(reason) {
            // That the chat was done is no success of the message.
            Exit::Done => Exit::Usage,
            exit => exit,
        }),
        _ => None,
    }
}

/// The exit code if it was to be handed over, and is over: no worker has anything to do.
fn over(resumed: &Resumed, args: &args::Resume) -> Option<Exit> {
    match resumed {
        Resumed::Done(reason) | Resumed::EndsAgain(reason) if args.detach.detach => Some(Exit::from(reason)),
        _ => None,
    }
}

/// Says why nothing is done, and what continues the conversation, with the message that was `given`, as it was typed.
async fn report_unchanged(
    conversation: &Conversation,
    resumed: Resumed,
    given: Option<(&Message, &str)>,
    place: &PlaceOption,
) -> Result<(), CliError> {
    let id = conversation.id();
    let (reason, what) = match resumed {
        Resumed::Continues => return Ok(()),
        Resumed::Done(reason) => (reason, format!("`{id}` is over")),
        Resumed::EndsAgain(reason) if given.is_some() => {
            (reason, format!("the message was not added: no agent of `{id}` could reply to it"))
        }
        Resumed::EndsAgain(reason) => (reason, format!("nothing is done: `{id}` would end again at once")),
    };
    let message = given.map(|(_, text)| format!("{} ", shell_word(Path::new(text))));
    let way =
        match limit::command_to_continue(conversation, &reason, given.map(|(message, _)| message)).await? {
            // A message that was not added is given again under a higher limit.
            Some(way) if message.is_none() || !way.starts_with('"') => {
                let resume = format!("resume {id} {}{way}", message.unwrap_or_default());
                format!("`{}` continues it", place.command(&resume))
            }
            Some(_) => "another message can continue it".into(),
            None => match limit::higher_budget(&reason) {
                Some(option) => {
                    let resume = format!("resume {id} {}{option}", message.unwrap_or_default());
                    format!("`{}`, with a higher limit of the budget, continues it", place.command(&resume))
                }
                None => "neither a higher limit nor a message continues it".into(),
            },
        };
    print_note(&format!("{what}: {reason}; {way}"));
    Ok(())
}

/// A stored conversation that is to be prepared again, and how.
#[derive(Clone, Copy)]
pub(super) struct Stored<'a> {
    pub(super) id: &'a LogId,
    pub(super) options: &'a args::RunOptions,
    /// Whether there may be a person to ask.
    pub(super) asks: bool,
    pub(super) settings: &'a Settings,
    /// The version of the team.
    pub(super) version: TeamVersion<'a>,
    /// Whether the process has a budget of money.
    pub(super) shared_budget: bool,
}

impl Stored<'_> {
    /// Prepares the team that is stored with the conversation, or the one of the current file, with how that differs.
    pub(super) async fn prepare(self, runtime: &Runtime) -> Result<(Prepared, Vec<TeamChange>), CliError> {
        let document = runtime.stored_document(self.id).await?;
        self.prepare_document(runtime, &document).await
    }

    /// The same from its `document`.
    pub(super) async fn prepare_document(
        self,
        runtime: &Runtime,
        document: &StoredDocument,
    ) -> Result<(Prepared, Vec<TeamChange>), CliError> {
        let args::TeamOptions { models, allowed, limits } = &self.options.team;
        let dir = self.options.folder.path()?;
        let stored = document.team()?;
        // What a store says that this user has not sealed allows nothing.
        let is_sealed = trust::is_sealed(&stored)?;
        let trusted = if is_sealed { stored.digest.clone() } else { stored.own_digest() };
        let by_script = stored.offline && models.model.is_none() && models.replay.is_none();
        let models = args::Models {
            offline: by_script || models.offline,
            capabilities: models.capabilities.or(stored.capabilities),
            ..models.clone()
        };
        if let Some(dir) = stored.dir.as_ref().filter(|_| !is_sealed && dir.is_none()) {
            let what = format!("the agents of `{}` worked in the folder `{}`", self.id, dir.display());
            // Also for a worker, which has no such option.
            let hint = format!("if they may, name it: `polylogue resume {} --dir FOLDER`", self.id);
            return Err(CliError::usage(what).hint(hint));
        }
        let before = document.limits()?.unwrap_or(stored.limits);
        let newer = self.version.of(self.id, &stored, document.team_changed())?;
        let is_newer = newer.is_some();
        let mut changes = Vec::new();
        let (mut team, digest, trusted, file, outside) = match newer {
            Some(NewerTeam { loaded: Loaded { team, digest, outside, .. }, changes: differences }) => {
                changes = differences;
                let file = team.file().to_owned();
                (team, digest.clone(), digest, file, outside)
            }
            None => (stored.team, stored.digest, trusted, format!("conversation {}", self.id), Vec::new()),
        };
        if let Some(model) = &models.model {
            team.use_model(model);
        }
        let launch = Launch {
            team,
            digest,
            trusted,
            file,
            outside,
            models: &models,
            permits: &allowed.permits,
            servers: allowed.mcp.clone().or(stored.mcp.filter(|_| is_sealed)),
            dir: dir.or(stored.dir.filter(|_| is_sealed)),
            limits: limits.overrides().or(before),
            shared_budget: self.shared_budget,
            // Another version of the team is allowed what its own content was trusted with.
            before: if is_sealed && !is_newer { stored.allowed } else { Vec::new() },
            resumed: true,
            asks: self.asks,
            shown: Some(self.settings),
        };
        Ok((launch.prepare(runtime.place()).await?, changes))
    }

    /// The team with which the conversation continued last, if calls of it may have been in flight when its process died: only that team can
    /// tell what they were.
    pub(super) async fn before(self, runtime: &Runtime) -> Result<Option<Prepared>, CliError> {
        if !runtime.may_have_lost_calls(self.id).await? {
            return Ok(None);
        }
        // With the models that it had, which are not called.
        let team = args::TeamOptions { models: args::Models::default(), ..self.options.team.clone() };
        let options = &args::RunOptions { team, ..self.options.clone() };
        let version = TeamVersion::Pinned;
        let pinned = Stored { options, version, asks: false, settings: &UNWATCHED, ..self };
        match pinned.prepare(runtime).await {
            Ok((prepared, _)) => Ok(Some(prepared)),
            Err(error) => {
                let (why, _) = error.into_parts();
                print_note(&format!(
                    "calls that were in flight count as the changed team makes them, because the stored one cannot be prepared: {why}"
                ));
                Ok(None)
            }
        }
    }
}

/// What is attached to the next message.
fn attached(args: &args::Resume) -> Result<Vec<Part>, CliError> {
    if args.message.is_none() && !args.attach.is_empty() {
        let hint = "give the message, too: `polylogue resume ID \"What is this?\" --attach FILE`";
        return Err(CliError::usage("`--attach` is for the next message, and there is none").hint(hint));
    }
    args.attach.parts()
}

/// The next message of a conversation that has ended.
fn message(
    args: &args::Resume,
    conversation: &Conversation,
    attached: Vec<Part>,
) -> Result<Option<Message>, CliError> {
    let Some(text) = args.message.as_deref().map(text_of).transpose()? else { return Ok(None) };
    if text.trim().is_empty() {
        return Err(CliError::usage("the message is empty"));
    }
    let speaker = args.speaker.as_deref().unwrap_or(Name::user().as_str()).to_owned();
    match conversation.authors().find(|name| name.as_str() == Name::composed(&speaker)) {
        Some(name) => Ok(Some(attachments::message(name, text, attached))),
        None => {
            let names: Vec<Name> = conversation.authors().collect();
            let names: Vec<&str> = names.iter().map(Name::as_str).collect();
            Err(CliError::usage(format!("there is no participant `{speaker}`"))
                .hint(suggest::hint(&speaker, names)))
        }
    }
}
