//! `polylogue chat`: a conversation with a model or a team, line by line.

mod command;
pub(crate) mod lines;
mod session;

use std::path::Path;

use polylogue_core::{LogId, Name};
use polylogue_runtime::{OpenOptions, Prepared, Runtime, StoreLocation};
use polylogue_team::{Loaded, Overrides};

use super::resume::Stored;
use super::team_version::TeamVersion;
use crate::error::{CliError, Exit};
use crate::launch::{Launch, print_default_model, print_local_models, print_scripted, settings};
use crate::prompt;
use crate::screen::text::folded;
use crate::screen::{Output, Settings};
use crate::stderr::{print_note, print_note_wrapped};
use crate::text_arg::text_of;
use crate::user_config::default_model;
use crate::{args, attachments, place, trust};
use session::Session;

/// The team of a chat with one model.
const ONE_MODEL: &str = "name: chat
agents: [{name: Assistant}]
chat: {participants: [Assistant], pattern: sequential}
";

/// The same with a system message, which is a variable, so that braces in it are plain.
const WITH_SYSTEM: &str = "name: chat
vars: {system: ''}
agents: [{name: Assistant, system: '{{system}}'}]
chat: {participants: [Assistant], pattern: sequential}
";

pub(crate) async fn run(cli: &args::Cli, args: &args::chat::Chat) -> Result<Exit, CliError> {
    let input = args.options.piped.of(None, None)?;
    let settings = settings_of(cli, args);
    let runtime = match &args.resume {
        Some(_) => place::existing(&cli.named_store())?,
        None => place::open(&cli.named_store())?,
    };
    let (prepared, id) = match &args.resume {
        Some(text) => {
            let id = runtime.find(text).await?;
            (stored(args, &runtime, &id, &settings).await?, Some(id))
        }
        None => (new(cli, args, &settings, runtime.place()).await?, None),
    };
    let options = OpenOptions { more: args.options.team.limits.overrides(), ..OpenOptions::default() };
    let attached = args.attach.parts()?;
    attachments::check(&prepared, &attached)?;
    let mut session = Session::new(cli, runtime, prepared, settings, input);
    session.attach_parts(attached);
    if let Some(id) = id {
        session.open(&id, options).await?;
        if settings.output.is_conversation() {
            // The greeting is not a part of the message above it.
            print_note("");
        }
    }
    session.introduce();
    lines::run_chat(session).await
}

/// Where no person types, only replies are written.
pub(crate) fn settings_of(cli: &args::Cli, args: &args::chat::Chat) -> Settings {
    let mut settings = settings(cli, &args.options);
    if !prompt::is_typed() && settings.output != Output::Json {
        settings.output = Output::Result;
    }
    settings
}

/// The team of a new conversation.
async fn new(
    cli: &args::Cli,
    args: &args::chat::Chat,
    settings: &Settings,
    place: &StoreLocation,
) -> Result<Prepared, CliError> {
    let default = default_model(cli, &args.options.team.models)?;
    let overrides = Overrides {
        vars: args.vars.iter().cloned().collect(),
        model: args.options.team.models.model.clone(),
        default_model: default.as_ref().map(|given| given.value.clone()),
        ..Overrides::default()
    };
    let (loaded, file) = match &args.team {
        Some(file) => (trust::load(file, &overrides, &args.options.team.allowed.permits)?, file.as_path()),
        None => (one_model(args, overrides)?, Path::new("chat")),
    };
    let mut launch = Launch::of(loaded, file, &args.options.team).with_default_cost(cli)?;
    launch.shown = Some(settings);
    launch.dir = args.options.folder.path()?;
    let prepared = launch.prepare(place).await?;
    if settings.output.is_conversation() {
        print_scripted(&prepared, false);
        print_local_models(&prepared);
        print_expected_line(&prepared);
        if args.team.is_some() {
            print_default_model(&prepared, default.as_ref());
        }
    }
    Ok(prepared)
}

/// Says with which line the script of a team begins.
fn print_expected_line(prepared: &Prepared) {
    let task = folded(prepared.run().task());
    if prepared.is_scripted() && !task.is_empty() {
        print_note_wrapped(&format!("The script is written for one task. Begin with it: {task}"));
    }
}

fn one_model(args: &args::chat::Chat, mut overrides: Overrides) -> Result<Loaded, CliError> {
    if args.options.team.models.offline {
        let what = "`--offline` plays the script of a team, and no team is named";
        return Err(CliError::usage(what).hint("name one, such as `polylogue chat demo:council --offline`"));
    }
    if overrides.model.is_none() && overrides.default_model.is_none() {
        let error = CliError::usage("no model is set");
        // The team and its agent are ours, so they are not named.
        let no_model = polylogue_runtime::Error::NoModel { team: Name::user(), who: Vec::new() };
        return Err(no_model.hint().into_iter().fold(error, CliError::hint));
    }
    let system = args.system.as_deref().map(text_of).transpose()?;
    let text = if system.is_some() { WITH_SYSTEM } else { ONE_MODEL };
    overrides.vars.extend(system.map(|system| ("system".to_owned(), system)));
    Ok(polylogue_team::parse(text, "chat", &overrides)?)
}

/// The team that is stored with the conversation `id`.
async fn stored(
    args: &args::chat::Chat,
    runtime: &Runtime,
    id: &LogId,
    settings: &Settings,
) -> Result<Prepared, CliError> {
    // A chat continues with the team as it was: `resume` has the options for another one.
    let version = TeamVersion::Pinned;
    let stored = Stored { id, options: &args.options, asks: true, settings, version, shared_budget: false };
    Ok(stored.prepare(runtime).await?.0)
}
